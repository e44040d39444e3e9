// The symbol table of the running program.
#pragma once
#include <map>
#include <string>

namespace tandem::simt {

// Address and mangled name of every function of the main program; empty where the table was stripped or cannot be read.
const std::map<const void*, std::string>& symbols_of_program();

// The name as it is written in C++; `mangled` itself when it is not one.
std::string demangled(const std::string& mangled);

}  // namespace tandem::simt
