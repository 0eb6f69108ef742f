// Error functions, gamma functions, remainders.
#include "backends/cpu/simd/element_loop.h"
#include "core/ops/formulas_math.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {
constexpr auto kRows0 = float_rows(formula::SpecialFunctions{});
}  // namespace

void visit_special(const LoopVisitor& visitor) { visit(visitor, kRows0, 20); }

}  // namespace lunaria::cpu::LUNARIA_ISA
