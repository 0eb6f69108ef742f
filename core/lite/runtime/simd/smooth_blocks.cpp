// Exponentials, logarithms, and the activation functions made of them.
#include "core/lite/runtime/simd/formula_block.h"
#include "core/ops/formulas_activation.h"
#include "core/ops/formulas_gradient.h"
#include "core/ops/formulas_math.h"

namespace lunaria::lite::LUNARIA_ISA {

namespace {
constexpr auto kFormulas = entries_for(decltype(formula::Exponentials() + formula::Hyperbolics() +
                                                formula::SmoothActivations() + formula::SmoothActivationGradients())());
}  // namespace

FormulaBlocks smooth_blocks() { return list_of(kFormulas); }

}  // namespace lunaria::lite::LUNARIA_ISA
