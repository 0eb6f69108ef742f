#include "core/loops/loop_check.h"

#include <gtest/gtest.h>

#include "core/operator/op.h"

namespace lunaria::graph {
namespace {

TEST(LoopCheck, FormulasHaveTheOperandsOfTheirOperators) {
    int count = 0;
    for (const auto& op : registry().all()) {
        const FormulaForm form = formula_form(op->name());
        if (form.operands == 0 || !op->is_elementwise) continue;
        ++count;
        ASSERT_EQ(form.operands, op->signature.params.size()) << op->name();
        for (size_t k = 0; k < form.operands; ++k)
            EXPECT_EQ((form.masks >> k & 1) != 0, op->signature.params[k].type == ArgType::mask) << op->name();
    }
    EXPECT_GT(count, 100);
    EXPECT_EQ(formula_form("no such formula").operands, 0U);
}

}  // namespace
}  // namespace lunaria::graph
