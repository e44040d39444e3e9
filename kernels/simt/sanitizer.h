// What AddressSanitizer is told about fibers and red zones; nothing in other builds.
#pragma once
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define TANDEM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TANDEM_ASAN 1
#endif
#endif

#ifdef TANDEM_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace tandem::simt {

#ifdef TANDEM_ASAN
inline constexpr bool kAddressSanitizer = true;

inline void poison(const void* data, std::size_t bytes) { __asan_poison_memory_region(data, bytes); }
inline void unpoison(const void* data, std::size_t bytes) { __asan_unpoison_memory_region(data, bytes); }
inline void start_switch(void** shadow, const void* stack, std::size_t bytes) {
  __sanitizer_start_switch_fiber(shadow, stack, bytes);
}
inline void finish_switch(void* shadow, const void** stack, std::size_t* bytes) {
  __sanitizer_finish_switch_fiber(shadow, stack, bytes);
}
#else
inline constexpr bool kAddressSanitizer = false;

inline void poison(const void*, std::size_t) {}
inline void unpoison(const void*, std::size_t) {}
inline void start_switch(void**, const void*, std::size_t) {}
inline void finish_switch(void*, const void**, std::size_t*) {}
#endif

}  // namespace tandem::simt
