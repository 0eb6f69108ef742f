// Activation functions.
#include "backends/cpu/simd/element_loop.h"
#include "core/ops/formulas_activation.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {
constexpr auto kRows0 = float_rows(formula::Activations{});
constexpr auto kRows1 = float_rows(formula::SmoothActivations{});
}  // namespace

void visit_activations(const LoopVisitor& visitor) {
    visit(visitor, kRows0, 1);
    visit(visitor, kRows1, 6);
}

}  // namespace lunaria::cpu::LUNARIA_ISA
