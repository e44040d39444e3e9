#include "kernels/cpu/isa.h"

#if defined(TANDEM_X86_KERNELS)
#include <cpuid.h>
#endif

#include <cstdlib>
#include <string>

#include "src/base/error.h"

namespace tandem {
namespace cpu {

extern const KernelTable kKernelsPortable;
#if defined(TANDEM_X86_KERNELS)
extern const KernelTable kKernelsAvx2, kKernelsAvx512;
#endif

}  // namespace cpu

namespace {

constexpr Isa kBestFirst[] = {Isa::avx512, Isa::avx2, Isa::portable};

std::string allowed_names() {
  std::string names;
  for (Isa isa : kBestFirst) {
    if (machine_has(isa)) names += (names.empty() ? "" : ", ") + std::string(name_of(isa));
  }
  return names;
}

}  // namespace

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::avx512:
      return "avx512";
    case Isa::avx2:
      return "avx2";
    default:
      return "portable";
  }
}

#if defined(TANDEM_X86_KERNELS)
namespace {

// Not among the names that clang 14 knows.
bool machine_has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

}  // namespace
#endif

cpu::ReadAhead machine_read_ahead() {
#if defined(TANDEM_X86_KERNELS)
  unsigned highest = 0, ebx = 0, ecx = 0, edx = 0;
  const bool intel = __get_cpuid(0, &highest, &ebx, &ecx, &edx) != 0 && ebx == signature_INTEL_ebx &&
                     ecx == signature_INTEL_ecx && edx == signature_INTEL_edx;
  return intel ? cpu::ReadAhead{.few_rows_l2 = 8192, .l1 = 2048} : cpu::ReadAhead{};
#else
  return {};
#endif
}

bool machine_has(Isa isa) {
#if defined(TANDEM_X86_KERNELS)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && machine_has_f16c();
  switch (isa) {
    case Isa::avx512:
      return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vnni");
    case Isa::avx2:
      return avx2;
    default:
      return true;
  }
#else
  return isa == Isa::portable;
#endif
}

Isa choose_isa() {
  if (const char* wanted = std::getenv("TANDEM_ISA"); wanted && *wanted) {
    for (Isa isa : kBestFirst) {
      if (name_of(isa) == wanted && machine_has(isa)) return isa;
    }
    fail(ErrorKind::usage, "TANDEM_ISA: expected one of {}, which this machine runs, got '{}'", allowed_names(),
         wanted);
  }
  for (Isa isa : kBestFirst) {
    if (machine_has(isa)) return isa;
  }
  return Isa::portable;
}

const cpu::KernelTable& kernels_of(Isa isa) {
#if defined(TANDEM_X86_KERNELS)
  if (isa == Isa::avx512) return cpu::kKernelsAvx512;
  if (isa == Isa::avx2) return cpu::kKernelsAvx2;
#endif
  if (isa != Isa::portable)
    fail(ErrorKind::usage, "cpu backend: instruction set {} is not in this build", name_of(isa));
  return cpu::kKernelsPortable;
}

}  // namespace tandem
