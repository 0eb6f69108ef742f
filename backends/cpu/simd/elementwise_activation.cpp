// Activation functions and their gradients.
#include "backends/cpu/simd/element_loop.h"
#include "core/ops/formulas_activation.h"
#include "core/ops/formulas_gradient.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {
constexpr auto kRows0 = float_rows(formula::Activations{});
constexpr auto kHalves0 = half_rows(formula::Activations{});
constexpr auto kHalves2 = half_rows(formula::ActivationGradients{});
constexpr auto kRows1 = float_rows(formula::SmoothActivations{});
constexpr auto kRows2 = float_rows(formula::ActivationGradients{});
constexpr auto kRows3 = float_rows(formula::SmoothActivationGradients{});
}  // namespace

void visit_activations(const LoopVisitor& visitor) {
    visit(visitor, kRows0, 1);
    visit(visitor, kHalves0, 1);
    visit(visitor, kHalves2, 1);
    visit(visitor, kRows1, 6);
    visit(visitor, kRows2, 1);
    visit(visitor, kRows3, 6);
}

}  // namespace lunaria::cpu::LUNARIA_ISA
