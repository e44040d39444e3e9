#include "kernels/simt/symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

namespace tandem::simt {
namespace {

// Objects of T at a place of the file; empty when they do not all lie in it.
template <typename T>
std::vector<T> read_at(std::span<const char> file, std::size_t offset, std::size_t count) {
  if (offset > file.size() || count > (file.size() - offset) / sizeof(T)) return {};
  std::vector<T> objects(count);
  if (count > 0) std::memcpy(objects.data(), file.data() + offset, count * sizeof(T));
  return objects;
}

// What the addresses of the file are moved by in this process.
std::uintptr_t load_offset() {
  std::uintptr_t offset = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<std::uintptr_t*>(out) = info->dlpi_addr;
        return 1;  // the program comes first
      },
      &offset);
  return offset;
}

std::map<const void*, std::string> read_symbols() {
  std::ifstream stream("/proc/self/exe", std::ios::binary);
  const std::vector<char> file{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  std::map<const void*, std::string> symbols;
  const auto header = read_at<ElfW(Ehdr)>(file, 0, 1);
  if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0) return symbols;
  const auto sections = read_at<ElfW(Shdr)>(file, header[0].e_shoff, header[0].e_shnum);
  for (const auto& section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const auto names = read_at<char>(file, sections[section.sh_link].sh_offset, sections[section.sh_link].sh_size);
    for (const auto& symbol : read_at<ElfW(Sym)>(file, section.sh_offset, section.sh_size / sizeof(ElfW(Sym)))) {
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_value == 0 || symbol.st_name >= names.size()) continue;
      const char* name = names.data() + symbol.st_name;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the file has numbers
      symbols.emplace(reinterpret_cast<const void*>(load_offset() + symbol.st_value),
                      std::string(name, strnlen(name, names.size() - symbol.st_name)));
    }
  }
  return symbols;
}

}  // namespace

const std::map<const void*, std::string>& symbols_of_program() {
  static const std::map<const void*, std::string> symbols = read_symbols();
  return symbols;
}

std::string demangled(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 ? name.get() : mangled;
}

}  // namespace tandem::simt
