// The rows of the primitives: what one says has to fit what the others say, and the prelude that consists of them.
#include "jit/language.h"

#include <gtest/gtest.h>

#include <set>

#include "core/ir/verifier.h"
#include "jit/number.h"
#include "jit/vm/prelude.h"

namespace lunaria::lua {
namespace {

TEST(PrimitivesTest, each_of_lua_s_operations_is_one_primitive) {
    std::set<Operation> found;
    for (const auto& op : language().all()) {
        const Facts& f = facts(*op);
        if (f.operation == Operation::none) continue;
        EXPECT_TRUE(found.insert(f.operation).second) << op->name();
        EXPECT_EQ(std::string_view(f.event).substr(0, 2), "__") << op->name();
        EXPECT_EQ(f.is_unary(), op->signature.params.size() == 1) << op->name();
        EXPECT_TRUE(f.saved && f.derivative) << op->name();
    }
    EXPECT_EQ(found.size(), static_cast<size_t>(Operation::none));
}

TEST(PrimitivesTest, arithmetic_on_numbers_computes_what_the_operation_does) {
    for (const auto& op : language().all()) {
        const Facts& f = facts(*op);
        if (!f.is_arithmetic()) continue;
        const Op& typed = on_numbers(*f.on_tensors);
        EXPECT_TRUE(facts(typed).of_numbers) << op->name();
        const std::vector<Value> args(op->signature.params.size(), Value(3));
        EXPECT_TRUE(same_value(run_number(*op, args), run_number(typed, args))) << op->name();
    }
}

// What is left out where nothing uses its result may do nothing else.
TEST(PrimitivesTest, what_is_spare_has_no_other_effect) {
    for (const auto& op : language().all()) {
        const Facts& f = facts(*op);
        if (!f.spare) continue;
        EXPECT_FALSE(f.calls || f.stops || f.goes_elsewhere || f.access == Access::writes_field) << op->name();
        // A shadow that is read is a state, which reading does not change.
        EXPECT_TRUE(op->is_repeatable() || op.get() == &primitive("shadow_get")) << op->name();
    }
}

TEST(PrimitivesTest, operators_have_no_facts_of_primitives) {
    for (const char* name : {"add", "equal", "where"}) {
        const Op& op = registry().get(name);
        EXPECT_FALSE(is_primitive(op));
        EXPECT_EQ(facts(op).operation, Operation::none);
        EXPECT_EQ(facts(op).derivative, nullptr);
    }
}

TEST(PreludeTest, every_function_keeps_the_rules_of_graphs) {
    for (size_t i = 0; i < static_cast<size_t>(vm::Prelude::count); ++i) {
        const vm::OperatorFunction& f = vm::prelude(static_cast<vm::Prelude>(i));
        EXPECT_NO_THROW(ir::verify(f.function->graph)) << i;
        EXPECT_FALSE(f.function->graph.body().empty()) << i;
        // Where it goes on from an error it has taken the same way so far.
        if (!f.function->failed) continue;
        const ir::Graph &whole = f.function->graph, &failed = f.function->failed->function->graph;
        EXPECT_EQ(whole.name, failed.name);
        EXPECT_EQ(whole.parameters().size(), failed.parameters().size());
        for (size_t k = 0; k < 2; ++k) EXPECT_EQ(whole.body()[k]->op, failed.body()[k]->op) << whole.name;
    }
}

}  // namespace
}  // namespace lunaria::lua
