#include "kernels/simt/fiber.h"

#include <sys/mman.h>

#include <atomic>
#include <boost/context/detail/fcontext.hpp>
#include <new>

#include "kernels/simt/sanitizer.h"

namespace tandem::simt {
namespace {

// Kernels keep little on the stack; the frames of a sanitizer build are several times as large. Untouched pages cost
// nothing.
constexpr std::size_t kStackBytes = kAddressSanitizer ? 512 << 10 : 128 << 10;
constexpr std::size_t kGuardBytes = 64 << 10;  // a multiple of every page size in use
// Stacks begin at different places of a page: were they all alike, the hot lines of a block's threads would share the
// same few sets of the cache.
constexpr std::size_t kColourStep = 17 * 64, kColours = 15;

}  // namespace

namespace context = boost::context::detail;

// Library calls behind the class, so that its header needs no Boost.
struct Fiber::Jump {
  static void first(context::transfer_t from) { enter(from.fctx, static_cast<Fiber*>(from.data)); }
};

Fiber::Fiber() {
  void* mapping = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mprotect(mapping, kGuardBytes, PROT_NONE);
  stack_ = static_cast<std::byte*>(mapping) + kGuardBytes;
  static std::atomic<unsigned> made{0};
  top_ = stack_ + kStackBytes - made++ % kColours * kColourStep;
}

Fiber::~Fiber() {
  unpoison(stack_, kStackBytes);
  munmap(stack_ - kGuardBytes, kGuardBytes + kStackBytes);
}

void Fiber::start(void (*entry)(void*), void* argument) {
  entry_ = entry;
  argument_ = argument;
  context_ = context::make_fcontext(top_, static_cast<std::size_t>(top_ - stack_), Jump::first);
}

void Fiber::forget_frames() { unpoison(stack_, kStackBytes); }

void Fiber::enter(void* from, Fiber* fiber) {
  finish_switch(nullptr, &fiber->caller_stack_, &fiber->caller_stack_bytes_);
  fiber->caller_ = from;
  fiber->entry_(fiber->argument_);
  start_switch(nullptr, fiber->caller_stack_, fiber->caller_stack_bytes_);
  context::jump_fcontext(fiber->caller_, nullptr);
  __builtin_unreachable();
}

void Fiber::resume() {
  void* shadow = nullptr;
  start_switch(&shadow, stack_, kStackBytes);
  context_ = context::jump_fcontext(context_, this).fctx;
  finish_switch(shadow, nullptr, nullptr);
}

void Fiber::suspend() {
  start_switch(&shadow_, caller_stack_, caller_stack_bytes_);
  caller_ = context::jump_fcontext(caller_, nullptr).fctx;
  finish_switch(shadow_, &caller_stack_, &caller_stack_bytes_);
}

}  // namespace tandem::simt
