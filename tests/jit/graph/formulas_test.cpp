// Formulas of elementwise operators: the loops of eager mode and generated code give the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "backends/cpu/device.h"
#include "core/ir/builder.h"
#include "core/loops/kernels.h"
#include "core/ops/sample.h"
#include "jit/graph/executable.h"
#include "jit/graph/fusion.h"
#include "tests/jit/graph/compare.h"
#include "tests/jit/graph/light_device.h"
#include "tests/today.h"

namespace lunaria::graph {
namespace {

using lunaria::testing::are_equal;
using lunaria::testing::loops_of;
using lunaria::testing::run_compiled;
using lunaria::testing::run_eagerly;

constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64,    DType::u8,
                             DType::i8,  DType::i16, DType::u16, DType::u32,  DType::u64, DType::boolean};

// Numbers of everyday size, of every size, and those that are special. No loop's vectors divide the length.
constexpr int64_t kLength = 2 * 1024 + 37;
Tensor numbers_of(DType dtype, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> plain(-6, 6), exponent(-160, 130), unit(-1.2, 1.2);
    const double special[] = {0.0,       -0.0,  HUGE_VAL, -HUGE_VAL, NAN,     1.0,  -1.0,  0.5,    -0.5,
                              2.0,       1e-40, 3e38,     10000.0,   10001.0, -2e4, 1e9,   2e9,    -5.7369,
                              1.4142135, 88.8,  -87.4,    20.0,      -104.0,  1e-7, -1e-9, 65504.0};
    Tensor t = Tensor::empty(dtype, {kLength});
    for (int64_t i = 0; i < kLength; ++i) {
        const uint64_t kind = random() % 8;
        double x = plain(random);
        if (kind == 0) x = std::copysign(std::exp2(exponent(random)), x);
        if (kind == 1) x = special[random() % std::size(special)];
        if (kind < 4 && kind > 1) x = unit(random);
        if (!is_float(dtype)) x = std::floor(std::fabs(x) < 100 ? x : 100);
        if (!has_sign(dtype)) x = std::fabs(x);
        t.set_at(i, dtype == DType::boolean ? x > 2 : std::isnan(x) && !is_float(dtype) ? 0 : x);
    }
    return t;
}

// Of the formulas at all dtypes, how many days' cases there are.
size_t parts() { return lunaria::testing::parts_of_generated(4); }

// Calls f with a graph of each formula of today at each dtype, behind which stands another operator, so that a loop is
// made of both, and its inputs.
template <class F>
void for_each_formula(F&& f) {
    size_t at = 0;
    for (const auto& op : registry().all()) {
        if (!op->is_elementwise) continue;
        for (const DType dtype : kDTypes)
            for (const char* sample : op->samples) {
                if (!lunaria::testing::is_of_today(at++, parts())) continue;
                ir::Graph graph("f");
                ir::GraphBuilder builder(graph);
                std::vector<Value> operands;
                for (const Value& v : sample_args(*op, sample, 5)) {
                    const bool turns = v.is_tensor() && is_float(v.tensor().dtype());
                    const DType t = turns ? dtype : v.is_tensor() ? v.tensor().dtype() : dtype;
                    operands.push_back(v.is_tensor() ? Value(graph.add_parameter("", ir::NodeType::of({t, {kLength}})))
                                                     : v);
                }
                try {
                    const Expr y(builder, builder.emit(*op, operands));
                    const Expr mask(builder,
                                    Value(graph.add_parameter("", ir::NodeType::of({DType::boolean, {kLength}}))));
                    const Expr other(builder, Value(graph.add_parameter("", y.value().node()->type)));
                    graph.result =
                        call("where", {call("logical_or", {mask, call("logical_not", {mask})}), y, other}).value();
                } catch (const Error&) {
                    continue;  // not for this dtype
                }
                std::vector<Tensor> inputs;
                for (const ir::Node* p : graph.parameters())
                    inputs.push_back(numbers_of(p->type.tensor.dtype, 11 + inputs.size()));
                f(graph, inputs, str(op->name(), '(', sample, ") in ", name_of(dtype)),
                  formula_cost(op->name(), element_dtype(*graph.body()[0])));
            }
    }
}

class FormulaTest : public ::testing::Test {
  protected:
    void SetUp() override {
        set_current_device(&lunaria::testing::graph_device());
        if (!can_generate()) GTEST_SKIP() << "no code generator";
    }
};

// The light runtime's float64 is that of libm.
::testing::AssertionResult are_same(std::span<const Tensor> a, std::span<const Tensor> b) {
    const bool by_libm = &lunaria::testing::graph_device() != &cpu::device() && b[0].dtype() == DType::f64;
    return by_libm ? lunaria::testing::are_close(a, b, 1e-8) : are_equal(a, b);
}

TEST_F(FormulaTest, eager_loops_and_generated_code_give_the_same_bits) {
    size_t generated = 0;
    for_each_formula([&](const ir::Graph& graph, const std::vector<Tensor>& inputs, const std::string& name, int cost) {
        std::vector<Tensor> want;
        try {
            want = run_eagerly(graph, inputs);
        } catch (const Error&) {
            return;  // such as a power of an integer
        }
        const auto executable = graph::compile(graph);
        generated += executable->stats().generated;
        // Processors without AVX2 have no conversions of float16.
        const bool converts = std::ranges::any_of(inputs, [](const Tensor& t) { return t.dtype() == DType::f16; });
        EXPECT_TRUE(cost == 0 || converts || executable->stats().generated == 1) << name;
        EXPECT_TRUE(are_same(run_compiled(graph, inputs), want)) << name;
    });
    EXPECT_GT(generated, lunaria::testing::is_whole() ? 800u : 600u / parts());
}

// The elements in another order, bit by bit: complex ones have two parts.
Tensor in_other_company(const Tensor& t) {
    Tensor other = Tensor::empty(t.dtype(), t.shape());
    const size_t size = size_of(t.dtype());
    for (int64_t i = 0; i < kLength; ++i)
        std::memcpy(static_cast<char*>(other.raw()) + i * size,
                    static_cast<const char*>(t.raw()) + (i * 37 + 5) % kLength * size, size);
    return other;
}

// A vector with one lane that takes a slow way does not change the others.
TEST_F(FormulaTest, an_element_has_its_value_in_any_company) {
    for_each_formula([&](const ir::Graph& graph, const std::vector<Tensor>& inputs, const std::string& name, int) {
        std::vector<Tensor> turned;
        for (const Tensor& t : inputs) turned.push_back(in_other_company(t));
        std::vector<Tensor> want, got;
        try {
            want = run_eagerly(graph, inputs);
            got = run_eagerly(graph, turned);
        } catch (const Error&) {
            return;
        }
        EXPECT_TRUE(are_equal(got, std::vector<Tensor>{in_other_company(want[0])})) << name;
    });
}

// A chain of formulas that the loops of eager mode do: what one gives the next one takes, in blocks that no length
// divides, of operands that lie in every way, with a value that stages share and one of a row between them.
TEST_F(FormulaTest, loops_of_eager_mode_take_what_each_other_gives) {
    for (const DType t : {DType::f32, DType::f64, DType::bf16})
        for (const Shape& shape : {Shape{3, 700}, Shape{2, 256}, Shape{5, 257}, Shape{1, 2085}, Shape{40, 17}}) {
            ir::Graph graph("f");
            ir::GraphBuilder builder(graph);
            std::vector<Tensor> inputs;
            auto parameter = [&](const Shape& s) {
                inputs.push_back(lunaria::testing::random_tensor({t, s}, 7 + inputs.size(), 0.1, 2));
                return Expr(builder, Value(graph.add_parameter("", ir::NodeType::of({t, s}))));
            };
            const Expr x = parameter(shape), row = parameter({shape[1]}), one = parameter({1});
            const Expr other = parameter({shape[1], shape[0]}).transpose({1, 0});
            const Expr e = call("exp", {x});
            const Expr h = call("hypot", {e + row, row});
            const Expr p = call("pow", {h * e, 2.5});
            const Expr q = call("fmod", {p + 1, one});
            const Expr most = call("amax", {q, -1, true});
            const Expr r = call("remainder", {call("lgamma", {q}) - most, other}) + e;
            graph.result = builder.list({{r, h, most, call("digamma", {q + x})}}).value();
            const std::string name = str(name_of(t), ' ', shape);
            EXPECT_TRUE(are_same(run_compiled(graph, inputs), run_eagerly(graph, inputs))) << name;
            if (shape[1] >= 256 && t != DType::bf16) {
                EXPECT_EQ(graph::compile(graph)->stats().generated, 1u) << name;
            }
        }
}

// Whatever processor this is: the code for all of them is made, with AVX-512 by its own instructions.
TEST_F(FormulaTest, code_for_every_instruction_set_is_made_of_every_formula) {
    constexpr const char* kTargets[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
    size_t number = 0;
    for_each_formula([&](const ir::Graph& graph, const std::vector<Tensor>&, const std::string& name, int cost) {
        if (cost == 0) return;
        const std::vector<Loop> loops = loops_of(graph);
        EXPECT_EQ(loops.size(), 1u) << name;
        ++number;
        for (const Loop& loop : loops)
            for (size_t k = 0; k < std::size(kTargets); ++k) {
                if (!lunaria::testing::is_of_today(number + k, 3)) continue;
                const auto code = find_code({&loop.program, {}, nullptr}, kTargets[k]);
                EXPECT_FALSE(code.empty()) << name << " for " << kTargets[k];
            }
    });
}

}  // namespace
}  // namespace lunaria::graph
