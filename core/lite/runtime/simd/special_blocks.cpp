// Trigonometric and special functions.
#include "core/lite/runtime/simd/formula_block.h"
#include "core/ops/formulas_math.h"
#include "core/ops/formulas_special.h"

namespace lunaria::lite::LUNARIA_ISA {

namespace {
constexpr auto kFormulas = entries_for(decltype(formula::Trigonometry() + formula::SpecialFunctions())());
}  // namespace

FormulaBlocks special_blocks() { return list_of(kFormulas); }

}  // namespace lunaria::lite::LUNARIA_ISA
