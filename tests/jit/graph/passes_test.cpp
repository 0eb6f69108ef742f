// Each pass, by the graph before and the graph after.
#include "jit/graph/passes.h"

#include <gtest/gtest.h>

#include "backends/cpu/device.h"
#include "core/ir/builder.h"
#include "core/ir/parser.h"
#include "core/ir/verifier.h"
#include "jit/graph/fusion.h"

namespace lunaria::graph {
namespace {

class PassTest : public ::testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }

    // The names of the operators that are left, in order, after the passes.
    static std::string ops_after(std::string_view text, std::initializer_list<bool (*)(ir::Graph&)> passes) {
        ir::ParsedGraph parsed = ir::parse(text, {&exchanges()});
        for (auto pass : passes) {
            pass(*parsed.graph);
            EXPECT_NO_THROW(ir::verify(*parsed.graph));
        }
        std::string names;
        for (const ir::Node* node : parsed.graph->body()) names += str(names.empty() ? "" : " ", node->op->name());
        return names;
    }
    // Operators as those that send and receive will be: `exchange` is ordered, `set` writes.
    static const Registry& exchanges() {
        static const Registry* const made = [] {
            auto* r = new Registry;
            r->add("exchange(x: same)").infer(same_as_first).effect(Effect::ordered);
            r->add("set(x: same)").infer(same_as_first).effect(Effect::state);
            return r;
        }();
        return *made;
    }
    static std::string body(std::string_view lines) {
        return str("graph f(%0 x: float32(2, 3), %1 y: float32(2, 3)) {\n", lines, "}\n");
    }
};

TEST_F(PassTest, what_nobody_needs_goes) {
    EXPECT_EQ(ops_after(body("  %2 = ops.mul(%0, %1)  : float32(2, 3)\n"
                             "  %3 = ops.add(%0, %1)  : float32(2, 3)\n"
                             "  return %3\n"),
                        {remove_dead_code}),
              "add");
}

TEST_F(PassTest, random_numbers_that_nobody_needs_are_drawn) {
    EXPECT_EQ(ops_after(body("  %2 = ops.randn({2, 3}, nil, nil)  : float32(2, 3)\n"
                             "  return %0\n"),
                        {remove_dead_code}),
              "randn");
}

TEST_F(PassTest, equal_computations_are_done_once) {
    EXPECT_EQ(ops_after(body("  %2 = ops.exp(%0)      : float32(2, 3)\n"
                             "  %3 = ops.exp(%0)      : float32(2, 3)\n"
                             "  %4 = ops.add(%2, %3)  : float32(2, 3)\n"
                             "  return %4\n"),
                        {share_common_subexpressions}),
              "exp add");
}

TEST_F(PassTest, random_numbers_are_not_shared) {
    EXPECT_EQ(ops_after(body("  %2 = ops.randn({2, 3}, nil, nil)  : float32(2, 3)\n"
                             "  %3 = ops.randn({2, 3}, nil, nil)  : float32(2, 3)\n"
                             "  %4 = ops.add(%2, %3)              : float32(2, 3)\n"
                             "  return %4\n"),
                        {share_common_subexpressions}),
              "randn randn add");
}

TEST_F(PassTest, what_is_exchanged_with_the_outside_stays_as_often_as_it_is_written) {
    constexpr std::string_view kTwice =
        "  %2 = exchange(%0)      : float32(2, 3)\n"
        "  %3 = exchange(%0)      : float32(2, 3)\n"
        "  %4 = ops.add(%2, %2)   : float32(2, 3)\n"
        "  return %4\n";
    EXPECT_EQ(ops_after(body(kTwice), {share_common_subexpressions, fold_constants, remove_dead_code}),
              "exchange exchange add");
    constexpr std::string_view kConstant =
        "  %2 = float32(2, 3) {1, 2, 3, 4, 5, 6}\n"
        "  %3 = exchange(%2)      : float32(2, 3)\n"
        "  return %3\n";
    EXPECT_EQ(ops_after(body(kConstant), {fold_constants}), "exchange");
}

// `between` stands between two equal computations.
std::string around(std::string_view between) {
    return str("  %2 = ops.exp(%0)      : float32(2, 3)\n  %3 = ", between,
               "(%1)     : float32(2, 3)\n"
               "  %4 = ops.exp(%0)      : float32(2, 3)\n"
               "  %5 = ops.add(%2, %4)  : float32(2, 3)\n"
               "  return %5\n");
}

TEST_F(PassTest, an_exchange_keeps_nothing_else_apart_as_a_write_does) {
    EXPECT_EQ(ops_after(body(around("exchange")), {share_common_subexpressions}), "exp exchange add");
    EXPECT_EQ(ops_after(body(around("set")), {share_common_subexpressions}), "exp set exp add");
}

TEST_F(PassTest, loops_are_joined_across_an_exchange_and_exchanges_keep_their_order) {
    const auto pieces = [](std::string_view between, std::string_view result = "{%5, %3, %4}") {
        const ir::ParsedGraph parsed = ir::parse(body(str("  %2 = ops.exp(%0)      : float32(2, 3)\n  %3 = ", between,
                                                          "(%1)     : float32(2, 3)\n  %4 = ", between,
                                                          "(%0)     : float32(2, 3)\n"
                                                          "  %5 = ops.mul(%2, %2)  : float32(2, 3)\n"
                                                          "  return ",
                                                          result, "\n")),
                                                 {&exchanges()});
        std::string text;
        for (const Piece& piece : cut(*parsed.graph, Arrangements(*parsed.graph), {}, {}, true)) {
            text += text.empty() ? "" : " | ";
            for (const ir::Node* node : piece.nodes) text += str(node == piece.nodes[0] ? "" : " ", '%', node->id);
        }
        return text;
    };
    EXPECT_EQ(pieces("exchange"), "%2 %5 | %3 | %4");
    EXPECT_EQ(pieces("set"), "%2 | %3 | %4 | %5");
    // What nothing reads is told to the outside as soon as it is known.
    EXPECT_EQ(pieces("exchange", "%5"), "%3 | %4 | %2 %5");
    EXPECT_EQ(pieces("set", "%5"), "%2 | %3 | %4 | %5");
}

TEST_F(PassTest, constants_are_folded) {
    EXPECT_EQ(ops_after(body("  %2 = float32(2) {1, 2}\n"
                             "  %3 = ops.exp(%2)                      : float32(2)\n"
                             "  %4 = ops.reshape(%3, {2, 1})          : float32(2, 1)\n"
                             "  %5 = ops.mul(%0, %4)                  : float32(2, 3)\n"
                             "  return %5\n"),
                        {fold_constants}),
              "mul");
}

TEST_F(PassTest, neutral_elements_go) {
    EXPECT_EQ(ops_after(body("  %2 = ops.mul(%0, 1.0)       : float32(2, 3)\n"
                             "  %3 = ops.sub(%2, 0.0)       : float32(2, 3)\n"
                             "  %4 = ops.div(%3, 1, nil)    : float32(2, 3)\n"
                             "  %5 = ops.pow(%4, 1)         : float32(2, 3)\n"
                             "  return %5\n"),
                        {simplify_algebra}),
              "");
}

TEST_F(PassTest, adding_zero_stays_where_it_turns_minus_zero_into_zero) {
    EXPECT_EQ(ops_after(body("  %2 = ops.add(%0, 0.0)  : float32(2, 3)\n  return %2\n"), {simplify_algebra}), "add");
}

TEST_F(PassTest, quotients_by_powers_of_two_are_products) {
    EXPECT_EQ(ops_after(body("  %2 = ops.div(%0, 8.0, nil)  : float32(2, 3)\n  return %2\n"), {simplify_algebra}),
              "mul");
    EXPECT_EQ(ops_after(body("  %2 = ops.div(%0, 3.0, nil)  : float32(2, 3)\n  return %2\n"), {simplify_algebra}),
              "div");
}

TEST_F(PassTest, double_negation_goes) {
    EXPECT_EQ(ops_after(body("  %2 = ops.neg(%0)  : float32(2, 3)\n"
                             "  %3 = ops.neg(%2)  : float32(2, 3)\n"
                             "  return %3\n"),
                        {simplify_algebra, remove_dead_code}),
              "");
}

TEST_F(PassTest, casts_go_only_where_nothing_is_lost) {
    EXPECT_EQ(ops_after(body("  %2 = ops.cast(%0, float64)  : float64(2, 3)\n"
                             "  %3 = ops.cast(%2, float32)  : float32(2, 3)\n"
                             "  return %3\n"),
                        {simplify_algebra, remove_dead_code}),
              "");
    EXPECT_EQ(ops_after(body("  %2 = ops.cast(%0, float16)  : float16(2, 3)\n"
                             "  %3 = ops.cast(%2, float32)  : float32(2, 3)\n"
                             "  return %3\n"),
                        {simplify_algebra, remove_dead_code}),
              "cast cast");
}

TEST_F(PassTest, short_powers_need_no_logarithm) {
    auto power = [&](const std::string& exponent) {
        return ops_after(body("  %2 = ops.pow(%0, " + exponent + ")  : float32(2, 3)\n  return %2\n"),
                         {simplify_algebra});
    };
    EXPECT_EQ(power("2"), "square");
    EXPECT_EQ(power("3"), "square mul");
    EXPECT_EQ(power("4"), "square square");
    EXPECT_EQ(power("-1"), "reciprocal");
    EXPECT_EQ(power("-2"), "reciprocal square");
    EXPECT_EQ(power("0.5"), "sqrt add equal where");
    EXPECT_EQ(power("-0.5"), "sqrt add equal where reciprocal");
    EXPECT_EQ(power("2.5"), "pow");
}

TEST_F(PassTest, transposing_twice_is_nothing) {
    EXPECT_EQ(ops_after(body("  %2 = ops.transpose(%0, {1, 0})  : float32(3, 2)\n"
                             "  %3 = ops.transpose(%2, {1, 0})  : float32(2, 3)\n"
                             "  return %3\n"),
                        {simplify_views, remove_dead_code}),
              "");
}

TEST_F(PassTest, chains_of_reshapes_are_one) {
    EXPECT_EQ(ops_after(body("  %2 = ops.reshape(%0, {6})       : float32(6)\n"
                             "  %3 = ops.expand_dims(%2, 0)     : float32(1, 6)\n"
                             "  %4 = ops.reshape(%3, {3, 2})    : float32(3, 2)\n"
                             "  return %4\n"),
                        {simplify_views, remove_dead_code}),
              "reshape");
}

TEST_F(PassTest, the_sum_of_one_row_is_the_row) {
    EXPECT_EQ(ops_after("graph f(%0 x: float32(1, 3)) {\n"
                        "  %1 = ops.sum(%0, {0}, false, nil)  : float32(3)\n"
                        "  return %1\n}\n",
                        {simplify_algebra}),
              "reshape add");
}

// The gradient of a weight that two steps of a loop used, 16 by 32, from 4 samples.
constexpr std::string_view kWeightGradient =
    "graph f(%0 a: float32(4, 16), %1 b: float32(4, 16), %2 c: float32(4, 32), %3 d: float32(4, 32)) {\n"
    "  %4 = ops.transpose(%0, {1, 0})  : float32(16, 4)\n"
    "  %5 = ops.matmul(%4, %2)         : float32(16, 32)\n"
    "  %6 = ops.transpose(%1, {1, 0})  : float32(16, 4)\n"
    "  %7 = ops.matmul(%6, %3)         : float32(16, 32)\n"
    "  %8 = ops.add(%5, %7)            : float32(16, 32)\n";

TEST_F(PassTest, narrow_products_that_are_added_up_are_one) {
    EXPECT_EQ(ops_after(str(kWeightGradient, "  return %8\n}\n"), {join_products, remove_dead_code}),
              "concat transpose concat matmul");
}

TEST_F(PassTest, a_product_that_is_needed_by_itself_is_added_all_the_same) {
    EXPECT_EQ(ops_after(str(kWeightGradient, "  return {%5, %8}\n}\n"), {join_products, remove_dead_code}),
              "transpose matmul concat transpose concat matmul");
}

TEST_F(PassTest, wide_products_stay) {
    EXPECT_EQ(ops_after("graph f(%0 a: float32(4, 64), %1 b: float32(64, 8)) {\n"
                        "  %2 = ops.matmul(%0, %1)  : float32(4, 8)\n"
                        "  %3 = ops.add(%0, %0)     : float32(4, 64)\n"
                        "  %4 = ops.matmul(%3, %1)  : float32(4, 8)\n"
                        "  %5 = ops.add(%2, %4)     : float32(4, 8)\n"
                        "  return %5\n}\n",
                        {join_products}),
              "matmul add matmul add");
}

// Four steps of a loop over x, each by the same weight.
std::string steps(int count) {
    std::string text = "graph f(%0 x: float32(4, 2, 8), %1 w: float32(8, 3)) {\n";
    std::string sum;
    for (int i = 0; i < count; ++i) {
        text += str("  %", 10 + i, " = ops.narrow(%0, 0, ", i, ", 1)     : float32(1, 2, 8)\n");
        text += str("  %", 20 + i, " = ops.reshape(%", 10 + i, ", {2, 8})  : float32(2, 8)\n");
        text += str("  %", 30 + i, " = ops.matmul(%", 20 + i, ", %1)       : float32(2, 3)\n");
        sum += str(i ? ", " : "", "%", 30 + i);
    }
    return text + "  return {" + sum + "}\n}\n";
}

TEST_F(PassTest, products_of_rows_with_one_matrix_are_one) {
    EXPECT_EQ(ops_after(steps(4), {batch_products, remove_dead_code}), "reshape matmul narrow narrow narrow narrow");
}

TEST_F(PassTest, a_weight_that_is_read_across_many_times_is_turned_once) {
    std::string text = "graph f(%0 x: float32(2, 3), %1 w: float32(3, 3), %2 b: float32(3)) {\n";
    for (int i = 0; i < 4; ++i)
        text += str("  %", 10 + i, " = ops.dense(%", i ? 9 + i : 0, ", %1, %2)  : float32(2, 3)\n");
    EXPECT_EQ(ops_after(text + "  return %13\n}\n", {lay_out_weights}),
              "transpose reshape reshape matmul add matmul add matmul add matmul add");
    EXPECT_EQ(ops_after(text + "  return %12\n}\n", {remove_dead_code, lay_out_weights}), "dense dense dense");
}

TEST_F(PassTest, rows_that_nobody_asked_for_are_not_multiplied) {
    EXPECT_EQ(ops_after(steps(2), {batch_products, remove_dead_code}), "narrow reshape matmul narrow reshape matmul");
}

// An activation of which `late` uses %2, what went in, and %3, what came out, after twenty others.
std::string with_activation(std::string_view sizes, std::string_view late) {
    std::string text = str("graph f(%0 x: float32", sizes, ", %1 w: float32(1024, 1024)) {\n");
    auto call = [&](int id, std::string_view what) {
        text += str("  %", id, " = ops.", what, " : float32", sizes, "\n");
    };
    call(2, "matmul(%0, %1)");
    call(3, "gelu_erf(%2)");
    for (int i = 0; i < 20; ++i) call(10 + i, str("matmul(%", i ? 9 + i : 3, ", %1)"));
    return text + std::string(late) + "}\n";
}
std::string twenty_and(std::string_view rest) {
    std::string names = "matmul gelu_erf";
    for (int i = 0; i < 20; ++i) names += " matmul";
    return names + std::string(rest);
}
bool recompute(ir::Graph& graph) { return !recompute_cheap_values(graph).empty(); }

TEST_F(PassTest, what_is_cheap_is_made_again_rather_than_kept) {
    constexpr std::string_view kLate =
        "  %40 = ops.mul(%29, %3) : float32(1024, 1024)\n"
        "  %41 = ops.mul(%40, %2) : float32(1024, 1024)\n"
        "  return %41\n";
    EXPECT_EQ(ops_after(with_activation("(1024, 1024)", kLate), {recompute}), twenty_and(" gelu_erf mul mul"));
    // An exchange is none of it, and does not keep it from being done.
    EXPECT_EQ(ops_after(with_activation("(1024, 1024)",
                                        "  %39 = exchange(%29) : float32(1024, 1024)\n"
                                        "  %40 = ops.mul(%39, %3) : float32(1024, 1024)\n"
                                        "  %41 = ops.mul(%40, %2) : float32(1024, 1024)\n"
                                        "  return %41\n"),
                        {recompute}),
              twenty_and(" exchange gelu_erf mul mul"));
    // What is small stays in a cache.
    constexpr std::string_view kSmall =
        "  %40 = ops.mul(%29, %3) : float32(8, 1024)\n"
        "  %41 = ops.mul(%40, %2) : float32(8, 1024)\n"
        "  return %41\n";
    EXPECT_EQ(ops_after(with_activation("(8, 1024)", kSmall), {recompute}), twenty_and(" mul mul"));
}

TEST_F(PassTest, what_would_need_an_operand_longer_is_kept) {
    constexpr std::string_view kLate =
        "  %40 = ops.mul(%29, %3) : float32(1024, 1024)\n"
        "  return %40\n";
    EXPECT_EQ(ops_after(with_activation("(1024, 1024)", kLate), {recompute}), twenty_and(" mul"));
    constexpr std::string_view kResult =
        "  %40 = ops.mul(%29, %2) : float32(1024, 1024)\n"
        "  return {%40, %3}\n";
    EXPECT_EQ(ops_after(with_activation("(1024, 1024)", kResult), {recompute}), twenty_and(" mul"));
}

TEST_F(PassTest, an_activation_is_made_again_beside_its_derivative) {
    constexpr std::string_view kLate =
        "  %40 = ops.transpose(%3, {1, 0})     : float32(1024, 1024)\n"
        "  %41 = ops.matmul(%40, %29)          : float32(1024, 1024)\n"
        "  %42 = ops.gelu_erf_grad(%29, %2)    : float32(1024, 1024)\n"
        "  %43 = ops.add(%42, %41)             : float32(1024, 1024)\n"
        "  return %43\n";
    EXPECT_EQ(ops_after(with_activation("(1024, 1024)", kLate), {recompute}),
              twenty_and(" gelu_erf gelu_erf_grad transpose matmul add"));
}

TEST_F(PassTest, parts_are_joined_before_they_are_reshaped) {
    constexpr std::string_view kParts =
        "graph f(%0 x: float32(2, 4, 3, 5), %1 y: float32(2, 6, 3, 5)) {\n"
        "  %2 = ops.transpose(%0, {0, 2, 1, 3})  : float32(2, 3, 4, 5)\n"
        "  %3 = ops.transpose(%1, {0, 2, 1, 3})  : float32(2, 3, 6, 5)\n"
        "  %4 = ops.reshape(%2, {2, 3, 20})      : float32(2, 3, 20)\n"
        "  %5 = ops.reshape(%3, {2, 3, 30})      : float32(2, 3, 30)\n"
        "  %6 = ops.concat({%4, %5}, -1)         : float32(2, 3, 50)\n"
        "  return %6\n}\n";
    EXPECT_EQ(ops_after(kParts, {simplify_algebra, remove_dead_code}), "transpose transpose concat reshape");
    constexpr std::string_view kOthers =
        "graph f(%0 x: float32(2, 3, 4, 5), %1 y: float32(2, 3, 5, 4)) {\n"
        "  %2 = ops.reshape(%0, {2, 3, 20})      : float32(2, 3, 20)\n"
        "  %3 = ops.reshape(%1, {2, 3, 20})      : float32(2, 3, 20)\n"
        "  %4 = ops.concat({%2, %3}, 2)          : float32(2, 3, 40)\n"
        "  return %4\n}\n";
    EXPECT_EQ(ops_after(kOthers, {simplify_algebra, remove_dead_code}), "reshape reshape concat");
}

constexpr std::string_view kAttention =
    "graph f(%0 q: float32(2, 3, 40, 8), %1 k: float32(2, 3, 50, 8), %2 v: float32(2, 3, 50, 5)) {\n"
    "  %3 = ops.transpose(%1, {0, 1, 3, 2})  : float32(2, 3, 8, 50)\n"
    "  %4 = ops.matmul(%0, %3)               : float32(2, 3, 40, 50)\n"
    "  %5 = ops.mul(%4, 0.5)                 : float32(2, 3, 40, 50)\n"
    "  %6 = ops.softmax(%5, -1, nil)         : float32(2, 3, 40, 50)\n"
    "  %7 = ops.matmul(%6, %2)               : float32(2, 3, 40, 5)\n";

TEST_F(PassTest, attention_that_is_written_out_is_one_operator) {
    EXPECT_EQ(ops_after(str(kAttention, "  return %7\n}\n"), {fuse_attention, simplify_views, remove_dead_code}),
              "attention");
}

TEST_F(PassTest, weights_of_attention_that_somebody_reads_stay) {
    EXPECT_EQ(ops_after(str(kAttention, "  return {%7, %6}\n}\n"), {fuse_attention, remove_dead_code}),
              "transpose matmul mul softmax matmul");
}

TEST_F(PassTest, composites_without_a_kernel_are_expanded) {
    EXPECT_EQ(ops_after(body("  %2 = ops.mse_loss(%0, %1, \"mean\")  : float32()\n  return %2\n"), {expand_composites}),
              "sub mul mean");
}

}  // namespace
}  // namespace lunaria::graph
