// Trigonometry and hyperbolic functions.
#include "backends/cpu/simd/element_loop.h"
#include "core/ops/formulas_math.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {
constexpr auto kRows0 = float_rows(formula::Trigonometry{});
constexpr auto kRows1 = float_rows(formula::Hyperbolics{});
}  // namespace

void visit_trigonometry(const LoopVisitor& visitor) {
    visit(visitor, kRows0, 6);
    visit(visitor, kRows1, 6);
}

}  // namespace lunaria::cpu::LUNARIA_ISA
