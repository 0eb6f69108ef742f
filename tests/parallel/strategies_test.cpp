#include "core/parallel/strategies.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "core/base/error.h"
#include "tests/parallel/einsum_program.h"

namespace lunaria::parallel {
namespace {

// Letters by their names: "b" and "n" for batch over the first axis and heads over the second.
std::string text(const ProgramOperator& op, const Cuts& cuts) {
    std::string text;
    for (int c : cuts) text += c >= 0 ? op.letters[static_cast<size_t>(c)].name : c == kIncomplete ? "+" : "-";
    return text;
}

TEST(Strategies, a_transformer_is_cut_by_columns_and_rows) {
    const auto p = EinsumProgram::gpt_layers(4, 16, 1024, 4096, 32);
    const Cluster c = small_cluster();
    const ProgramIndex index(p.program);
    const Strategies strategies(index, {{"dp", 4}, {"tp", 8}}, c, {});
    const ProgramPlan plan = strategies.search();
    EXPECT_TRUE(plan.is_exact());
    // Columns, rows, and tokens between them, as people do it by hand.
    const std::map<std::string, std::string> megatron{
        {"q", "bn"},    {"k", "bn"},    {"v", "bn"},   {"scores", "bn"}, {"softmax", "bn"}, {"values", "bn"},
        {"proj", "bn"}, {"norm", "bs"}, {"add", "bs"}, {"fc1", "bf"},    {"gelu", "bf"},    {"fc2", "bf"}};
    std::vector<Cuts> cuts;
    for (const ProgramOperator& op : p.program.operators)
        for (const Cuts& way : strategies.ways(static_cast<int>(cuts.size())))
            if (text(op, way) == megatron.at(op.name)) {
                cuts.push_back(way);
                break;
            }
    EXPECT_LT(strategies.given(cuts).seconds, plan.seconds * 1.03);
    for (size_t i : {1, 2, 3, 4, 5, 6, 7})
        EXPECT_EQ(text(p.program.operators[i], plan.cuts[i]), "bn") << p.program.operators[i].name;
}

TEST(Strategies, the_plan_of_a_layer_is_the_best_of_all) {
    const auto p = EinsumProgram::gpt_layers(1, 8, 512, 1024, 16);
    Program one;  // a half of a layer, so that all plans can be tried
    one.tensors = p.program.tensors;
    one.operators.assign(p.program.operators.begin() + 9, p.program.operators.begin() + 14);
    const Cluster c = small_cluster();
    for (const MeshAxes& mesh : {MeshAxes{{"a", 2}, {"b", 4}}, {{"a", 8}, {"b", 2}}}) {
        const ProgramIndex index(one);
        const Strategies strategies(index, mesh, c, {});
        const ProgramPlan plan = strategies.search();
        EXPECT_NEAR(plan.seconds, strategies.problem().exhaustive().seconds, 1e-12);
        // The cost of a plan is that of its parts.
        double seconds = plan.shared.gradients;
        for (const OperatorCost& cost : plan.costs)
            seconds += cost.forward + cost.backward + cost.communication + cost.gradients;
        for (const Movement& m : plan.movements) seconds += m.forward + m.backward;
        EXPECT_NEAR(seconds, plan.seconds, 1e-12);
        EXPECT_NEAR(strategies.given(plan.cuts).seconds, plan.seconds, 1e-12);
    }
}

TEST(Strategies, no_single_change_makes_a_plan_cheaper) {
    const auto p = EinsumProgram::gpt_layers(2, 16, 512, 2048, 16);
    const Cluster c = small_cluster();
    PlanSettings untied;
    untied.ties_layers = false;
    const ProgramIndex index(p.program);
    const Strategies strategies(index, {{"dp", 4}, {"tp", 4}}, c, untied);
    const ProgramPlan plan = strategies.search();
    std::mt19937 random(7);
    for (int turn = 0; turn < 100; ++turn) {
        auto cuts = plan.cuts;
        const auto op = random() % cuts.size();
        const auto& ways = strategies.ways(static_cast<int>(op));
        cuts[op] = ways[random() % ways.size()];
        EXPECT_GE(strategies.given(cuts).seconds, plan.seconds * (1 - 1e-12));
    }
}

TEST(Strategies, a_limit_of_memory_is_kept) {
    const auto p = EinsumProgram::gpt_layers(4, 8, 512, 4096, 32);
    const Cluster c = small_cluster();
    const ProgramIndex index(p.program);
    const Strategies strategies(index, {{"dp", 4}, {"tp", 4}}, c, {});
    const ProgramPlan plan = strategies.search();
    const ProgramPlan smaller = strategies.search(plan.bytes * 0.9);
    EXPECT_LE(smaller.bytes, plan.bytes * 0.9);
    EXPECT_GE(smaller.seconds, plan.seconds);
    EXPECT_GE(smaller.seconds, smaller.bound);
    EXPECT_LT(smaller.seconds, smaller.bound * 1.05);
    EXPECT_THROW(strategies.search(1e6), Error);
}

TEST(Strategies, sharded_states_are_divided_by_the_ranks_that_share_them) {
    EinsumProgram p({{'b', 64}, {'h', 256}, {'f', 512}});
    p.op("dense", "x w > y", "bh,hf->bf");
    const Cluster c = small_cluster();
    const double n = 256 * 512;
    for (int level : {0, 1, 2, 3}) {
        PlanSettings settings;
        settings.level = level;
        const ProgramIndex index(p.program);
        const Strategies strategies(index, {{"dp", 8}}, c, settings);
        const ProgramPlan plan = strategies.given({{0}});
        const double share[] = {1, 1.0 / 8};
        EXPECT_DOUBLE_EQ(plan.costs[0].state_bytes,
                         n * (2 * share[level >= 3] + 2 * share[level >= 2] + 12 * share[level >= 1]));
    }
}

TEST(Strategies, equal_layers_with_equal_cuts_are_as_good_as_free_ones) {
    const auto p = EinsumProgram::gpt_layers(6, 512, 2048, 12288, 96);
    const Cluster c = small_cluster();
    const ProgramIndex index(p.program);
    for (const MeshAxes& mesh : {MeshAxes{{"a", 8}, {"b", 16}}, {{"a", 128}}}) {
        PlanSettings untied;
        untied.ties_layers = false;
        const Strategies tied(index, mesh, c, {}), freely(index, mesh, c, untied);
        const ProgramPlan plan = tied.search(), best = freely.search();
        EXPECT_TRUE(plan.is_exact());
        EXPECT_TRUE(best.is_exact());
        EXPECT_GE(plan.seconds, best.seconds * (1 - 1e-9));
        EXPECT_LT(plan.seconds, best.seconds * 1.01);
        EXPECT_LT(tied.problem().count(), 50u);
    }
}

}  // namespace
}  // namespace lunaria::parallel
