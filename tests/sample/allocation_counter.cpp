#include "tests/sample/allocation_counter.h"

#include <cstdlib>
#include <new>

namespace {

long count = 0;

void* allocate(std::size_t bytes) {
  ++count;
  return std::malloc(bytes == 0 ? 1 : bytes);
}

}  // namespace

namespace tandem::testing {

long allocations() { return count; }

}  // namespace tandem::testing

void* operator new(std::size_t bytes) {
  if (void* memory = allocate(bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
