// Formulas that cost a few instructions.
#include "core/lite/runtime/simd/formula_block.h"
#include "core/ops/formulas_activation.h"
#include "core/ops/formulas_compare.h"
#include "core/ops/formulas_gradient.h"
#include "core/ops/formulas_math.h"

namespace lunaria::lite::LUNARIA_ISA {

namespace {
constexpr auto kFormulas =
    entries_for(decltype(formula::CheapMath() + formula::Activations() + formula::ActivationGradients() +
                         formula::Comparisons() + formula::Tests() + formula::Divisions())());
constexpr Entries<2> kSelections{{mask_entry<formula::Where, 0>(), mask_entry<formula::MaskedFill, 1>()}};
constexpr auto kAll = [] {
    Entries<sizeof(kFormulas.row) / sizeof(FormulaBlock) + 2> all;
    int n = 0;
    for (const FormulaBlock& f : kFormulas.row) all.row[n++] = f;
    for (const FormulaBlock& f : kSelections.row) all.row[n++] = f;
    return all;
}();
}  // namespace

FormulaBlocks arithmetic_blocks() { return list_of(kAll); }

BlockSet block_set() { return {{arithmetic_blocks(), smooth_blocks(), special_blocks()}, row_blocks()}; }

}  // namespace lunaria::lite::LUNARIA_ISA
