// Error functions, gamma functions, remainders.
#include "backends/cpu/simd/element_loop.h"
#include "core/ops/formulas_math.h"
#include "core/ops/formulas_special.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {
constexpr auto kRows0 = float_rows(formula::SpecialFunctions{});
constexpr auto kRows1 = float_rows(formula::Divisions{});
}  // namespace

void visit_special(const LoopVisitor& visitor) {
    visit(visitor, kRows0, 20);
    visit(visitor, kRows1, 20);
}

}  // namespace lunaria::cpu::LUNARIA_ISA
