#include "kernels/simt/launches.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <mutex>

#include "kernels/simt/symbols.h"

namespace tandem::simt {
namespace {

struct Record {
  std::mutex mutex;
  std::set<const void*> kernels;
};

Record& record() {
  static Record instance;
  return instance;
}

}  // namespace

void record_launch(const void* kernel) {
  const std::lock_guard lock(record().mutex);
  record().kernels.insert(kernel);
}

std::set<const void*> launched_kernels() {
  const std::lock_guard lock(record().mutex);
  return record().kernels;
}

std::string function_name(const void* function) {
  const auto found = symbols_of_program().find(function);
  if (found == symbols_of_program().end()) return fmt::format("kernel at {}", function);
  return without_signature(demangled(found->second));
}

std::string without_signature(const std::string& demangled) {
  // The parameter list is the first parenthesis outside template arguments, but for "(anonymous namespace)".
  int depth = 0;
  std::size_t begin = 0, end = demangled.size();
  for (std::size_t i = 0; i < demangled.size(); ++i) {
    const char c = demangled[i];
    if (demangled.compare(i, 21, "(anonymous namespace)") == 0) {
      i += 20;
    } else if (c == '<') {
      ++depth;
    } else if (c == '>') {
      --depth;
    } else if (c == ' ' && depth == 0) {
      begin = i + 1;  // behind the return type of a template
    } else if (c == '(' && depth == 0) {
      end = i;
      break;
    }
  }
  return demangled.substr(begin, end - begin);
}

}  // namespace tandem::simt
