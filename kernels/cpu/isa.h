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

// What suits this machine's cores. Zen 4 reads ahead better alone with one or two rows (27.3 instead of 29.4 ms, Q4_K);
// Intel's cores do not (1.5B, one row: 33.6 instead of 41.6 ms), and want lines in L1 before the loads ask for them
// (Q6_K, time over plain reading at 1, 4, 8 rows: 1.04, 1.10, 1.24 instead of 1.10, 1.22, 1.36).
cpu::ReadAhead machine_read_ahead();

}  // namespace tandem
