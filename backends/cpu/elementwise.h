// Kernels of all elementwise operators: one function that looks the operator's loop up by element type and instruction
// set, and walks it over operands of any layout.
#pragma once

#include <optional>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/simd/loops.h"

namespace lunaria::cpu {

// The loops of an operator, by element type.
struct OpLoops {
    struct Entry {
        ElementLoop loop = nullptr;
        ElementLoop around = nullptr;  // the same, writing around the caches
        int operands = 0, mask = -1, cost = 1;
        bool boolean = false;
    };
    std::array<Entry, kDTypeCount> by_dtype;
    bool divides = false;           // an integer divisor (operand 1) must not be 0
    bool raises = false;            // an integer exponent (operand 1) must not be negative
    bool has_replacements = false;  // operands 1 to 3 may be missing: 0 and the largest numbers
    bool has_limits = false;        // operands 1 and 2 may be missing: no limit
    bool takes_bools = false;       // operands are converted to bool
    // The result that is the same for all integers, for operators such as isnan.
    std::optional<bool> of_integers;
};

// The amount of work for one more thread, in additions of floats.
inline constexpr int64_t kThreadWork = 48 * 1024;

// For the instruction set in use.
const OpLoops& loops_of(const Op& op);

// The instruction set in use: the best of the processor, or the value of the environment variable LUNARIA_ISA (v2,
// avx2, avx512). Tests switch it.
enum class Isa : uint8_t { v2, avx2, avx512 };
Isa current_isa();
bool isa_available(Isa isa);
void set_isa(Isa isa);  // throws value_error when the processor does not have it
std::string_view name_of(Isa isa);

// Registers both kernels for every elementwise operator of the registry.
void add_elementwise_kernels(KernelTable& table);

// One thread's dense conversion of `count` elements, if there is a fast one; nullptr otherwise.
ConvertLoop find_conversion(DType from, DType to);

// Loops in double precision and on wrapping integers, for the plain kernels and for operators without pack loops.
void visit_plain_loops(const LoopVisitor& visitor);
void visit_complex_loops(const LoopVisitor& visitor);  // part of them

bool run_elementwise(const KernelCall& call);
bool run_elementwise_plain(const KernelCall& call);

}  // namespace lunaria::cpu
