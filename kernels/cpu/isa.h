// Instruction sets of the CPU backend and the choice among them.
#pragma once
#include <string_view>

#include "kernels/cpu/kernel_table.h"

namespace tandem {

enum class Isa : unsigned char { portable, avx2, avx512 };

std::string_view name_of(Isa isa);  // "portable", "avx2", "avx512"

// Whether this machine runs it: avx2 also needs FMA and F16C; avx512 needs F, BW, VL, DQ and VNNI.
bool machine_has(Isa isa);

// What TANDEM_ISA names, else the best that the machine has. Throws Error(usage) for an unknown name or one that this
// machine cannot run, naming the allowed ones.
Isa choose_isa();

const cpu::KernelTable& kernels_of(Isa isa);

}  // namespace tandem
