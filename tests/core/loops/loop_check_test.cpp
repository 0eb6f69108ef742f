#include "core/loops/loop_check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/operator/op.h"

namespace lunaria::graph {
namespace {

TEST(LoopCheck, FormulasHaveTheOperandsOfTheirOperators) {
    int count = 0;
    for (const auto& op : registry().all()) {
        const FormulaForm form = formula_form(op->name());
        if (form.operands == 0 || !op->is_elementwise) continue;
        ++count;
        // Attributes that ask for another computation, such as div's rounding_mode, are none of the formula's.
        const auto operands = std::ranges::count_if(op->signature.params, [](const Param& p) {
            return is_tensor_type(p.type) || p.type == ArgType::number || p.type == ArgType::boolean;
        });
        ASSERT_EQ(form.operands, static_cast<size_t>(operands)) << op->name();
        for (size_t k = 0; k < form.operands; ++k)
            EXPECT_EQ((form.masks >> k & 1) != 0, op->signature.params[k].type == ArgType::mask) << op->name();
    }
    EXPECT_GT(count, 100);
    EXPECT_EQ(formula_form("no such formula").operands, 0U);
}

}  // namespace
}  // namespace lunaria::graph
