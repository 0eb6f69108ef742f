// Generated code and the operators' own loops give the same bits: for every formula, dtype and length, whatever the
// instruction set (the environment variable LUNARIA_ISA chooses one). Only the sign and the payload of a NaN are open.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <sstream>

#include "backends/cpu/device.h"
#include "backends/cpu/elementwise.h"
#include "core/ir/builder.h"
#include "core/ops/formula_lists.h"
#include "core/ops/sample.h"
#include "jit/graph/executable.h"
#include "jit/graph/kernels.h"
#include "jit/graph/loop.h"
#include "jit/graph/machine_code.h"
#include "tests/jit/graph/compare.h"

namespace lunaria::graph {
namespace {

constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32,
                             DType::i64, DType::u8,  DType::i8,  DType::i16,  DType::boolean};

// Where functions change their behaviour: zeros, ends of ranges, subnormal numbers, limits of range reductions.
std::vector<double> special_values(DType t) {
    if (t == DType::boolean) return {0, 1};
    if (!is_float(t)) {
        return visit_dtype(t, [](auto tag) -> std::vector<double> {
            using T = typename decltype(tag)::type;
            if constexpr (std::is_integral_v<T>) {
                using Limits = std::numeric_limits<T>;
                return {0, 1, 2, 3, 5, 6, 7, 63, 100, static_cast<double>(Limits::min()),
                        // Not the largest integer of 64 bits, which no double holds.
                        static_cast<double>(sizeof(T) == 8 ? T{1} << 62 : Limits::max()),
                        std::is_signed_v<T> ? -1.0 : 1.0, std::is_signed_v<T> ? -100.0 : 100.0};
            }
            return {};
        });
    }
    const double inf = HUGE_VAL;
    std::vector<double> values = {0.0,  inf,  std::nan(""), 1,    0.5,  2,     3,    4,     6,       1.5,  2.5,  1e-3,
                                  1e-7, 1e-9, 0.99999994,   20.5, 31.4, 88.72, 89.5, 103.9, 12345.7, 1e10, 3e20, 1e30};
    if (t == DType::f64)
        values.insert(values.end(), {4.9e-324, 2.2e-308, 1.7e308, 709.8, 745.2, 1e-200, 1e300, 1e6, 2e6});
    else if (t == DType::f16)
        values.insert(values.end(), {6e-8, 6.1e-5, 65504, 12.0, 9.97});
    else
        values.insert(values.end(), {1e-45, 1e-40, 1.17549435e-38, 3.4e38, 2e38, 1e-30, 0x1p-100, 10000, 10001});
    const size_t count = values.size();
    for (size_t i = 0; i < count; ++i) values.push_back(-values[i]);
    return values;
}

// Element i of operand `which` of `count`: pairs of special values first, each with each, then random numbers of small
// magnitude and random bits in turn.
Tensor operand(DType t, const Shape& shape, int which, uint64_t seed) {
    const std::vector<double> special = special_values(t);
    const auto n = static_cast<int64_t>(special.size());
    Tensor x = Tensor::empty(t, shape);
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> small(-5, 5);
    auto* bytes = static_cast<char*>(x.raw());
    for (int64_t i = 0; i < x.size(); ++i) {
        const uint64_t bits = random();
        if (i < n * n)
            x.set_at(i, special[static_cast<size_t>(which == 0 ? i % n : which == 1 ? i / n : (i * 7 + which) % n)]);
        else if (t == DType::boolean)
            x.set_at(i, static_cast<double>(bits & 1));
        else if (is_float(t) && i % 3)
            x.set_at(i, small(random));
        else
            std::memcpy(bytes + static_cast<size_t>(i) * size_of(t), &bits, size_of(t));
    }
    return x;
}

bool is_nan_at(const Tensor& t, int64_t i) { return is_float(t.dtype()) && std::isnan(t.at(i)); }

::testing::AssertionResult same_bits(const Tensor& got, const Tensor& want, std::span<const Tensor> inputs) {
    if (got.dtype() != want.dtype() || !(got.shape() == want.shape()))
        return ::testing::AssertionFailure()
               << name_of(got.dtype()) << got.shape() << " instead of " << name_of(want.dtype()) << want.shape();
    const auto *a = static_cast<const char*>(got.raw()), *b = static_cast<const char*>(want.raw());
    const size_t size = size_of(got.dtype());
    for (int64_t i = 0; i < got.size(); ++i) {
        const size_t at = static_cast<size_t>(i) * size;
        if (std::memcmp(a + at, b + at, size) == 0 || (is_nan_at(got, i) && is_nan_at(want, i))) continue;
        std::ostringstream text;
        text.precision(17);
        text << "element " << i << ": " << got.at(i) << " instead of " << want.at(i) << " for";
        for (const Tensor& x : inputs) text << ' ' << x.at(i);
        return ::testing::AssertionFailure() << text.str();
    }
    return ::testing::AssertionSuccess();
}

class FormulaBitsTest : public ::testing::Test {
  protected:
    void SetUp() override {
        set_current_device(&cpu::device());
        if (!can_generate()) GTEST_SKIP() << "no code generator";
    }

    static constexpr int64_t kLengths[] = {1, 6, 61, 7003};

    // The graph of an operator on `args`, whose tensors become parameters of `dtype`; null where it has no such dtype.
    // A selection behind it makes two operators, which are one generated kernel: one alone is run by its own loop.
    static std::unique_ptr<ir::Graph> graph_for(const Op& op, std::span<const Value> args, DType dtype,
                                                int64_t length) {
        auto graph = std::make_unique<ir::Graph>("f");
        ir::GraphBuilder builder(*graph);
        std::vector<Value> operands;
        for (const Value& v : args) {
            if (!v.is_tensor()) {
                operands.push_back(v);
                continue;
            }
            const DType t = v.tensor().dtype() == DType::boolean ? DType::boolean : dtype;
            operands.emplace_back(graph->add_parameter("", ir::NodeType::of({t, {length}})));
        }
        try {
            Expr y(builder, builder.emit(op, operands));
            const TensorType result = y.value().node()->type.tensor;
            Expr mask(builder, Value(graph->add_parameter("", ir::NodeType::of({DType::boolean, {length}}))));
            Expr other(builder, Value(graph->add_parameter("", ir::NodeType::of({result.dtype, {length}}))));
            graph->result = call("where", {mask, y, other}).value();
        } catch (const Error&) {
            return nullptr;
        }
        return graph;
    }
    static std::vector<Tensor> inputs_of(const ir::Graph& graph) {
        std::vector<Tensor> inputs;
        for (const ir::Node* p : graph.parameters())
            inputs.push_back(operand(p->type.tensor.dtype, p->type.tensor.shape, static_cast<int>(inputs.size()),
                                     inputs.size() + 1));
        return inputs;
    }
    static void expect_same_bits(const ir::Graph& graph, const std::string& what) {
        const std::vector<Tensor> inputs = inputs_of(graph);
        const std::vector<Tensor> want = lunaria::testing::run_eagerly(graph, inputs);
        const auto executable = compile(graph);
        EXPECT_EQ(executable->stats().generated, executable->stats().steps) << what << '\n' << executable->describe();
        std::vector<Tensor> got(executable->output_count());
        executable->run(inputs, got);
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], want[i], inputs)) << what;
    }
};

// Graphs run these by their own kernels: operands that are missing or attributes, bools of operators that take any
// dtype. Numbers beside halves are rounded to halves there before they are used, here they are not.
bool is_fused_as(const Op& op, std::span<const Value> args, DType dtype) {
    const std::string_view name = op.name();
    const bool has_number = std::ranges::any_of(args, [](const Value& v) { return v.is_number(); });
    const bool misses = std::ranges::any_of(args, [](const Value& v) { return v.is_nil(); });
    return !(is_half(dtype) && has_number) && !(name == "nan_to_num" && misses) && name != "isclose" &&
           !name.starts_with("logical_");
}

TEST_F(FormulaBitsTest, every_formula_gives_the_bits_of_its_loop) {
    size_t tried = 0;
    for (const auto& op : registry().all()) {
        if (!op->is_elementwise) continue;
        for (DType dtype : kDTypes) {
            if (formula_cost(op->name(), dtype) == 0) continue;
            for (const char* sample : op->samples) {
                const std::vector<Value> args = sample_args(*op, sample, 5);
                if (!is_fused_as(*op, args, dtype)) continue;
                for (int64_t length : kLengths) {
                    auto graph = graph_for(*op, args, dtype, length);
                    if (!graph) continue;
                    expect_same_bits(*graph, str(op->name(), '(', sample, ") in ", name_of(dtype), " of ", length));
                    ++tried;
                }
            }
        }
    }
    EXPECT_GT(tried, 2000u);
}

TEST_F(FormulaBitsTest, chains_of_operators_round_after_each_of_them) {
    const auto graph_with = [](DType t, auto make) {
        auto graph = std::make_unique<ir::Graph>("f");
        ir::GraphBuilder builder(*graph);
        std::vector<Expr> x;
        for (int i = 0; i < 3; ++i)
            x.emplace_back(builder, Value(graph->add_parameter("", ir::NodeType::of({t, {7003}}))));
        graph->result = make(x).value();
        return graph;
    };
    for (DType t : {DType::f32, DType::f64, DType::bf16}) {
        const std::string in = str(" in ", name_of(t));
        expect_same_bits(*graph_with(t, [](auto& x) { return x[0] * x[1] + x[2]; }), "a b + c" + in);
        expect_same_bits(*graph_with(t, [](auto& x) { return x[2] - x[0] * x[1]; }), "c - a b" + in);
        expect_same_bits(*graph_with(t, [](auto& x) { return call("square", {x[0]}) + x[1] * x[2]; }),
                         "a a + b c" + in);
        expect_same_bits(
            *graph_with(t, [](auto& x) { return call("tanh", {x[0] * x[1] + x[2]}) * call("sigmoid", {x[0]}) + x[0]; }),
            "tanh(a b + c) sigmoid(a) + a" + in);
        expect_same_bits(*graph_with(t,
                                     [](auto& x) {
                                         return call("exp", {call("sin", {x[0] * x[1]})}) /
                                                (call("sqrt", {call("abs", {x[2]})}) + x[1]);
                                     }),
                         "exp(sin(a b)) / (sqrt |c| + b)" + in);
    }
}

// Every formula has generated code for every element type that it has a loop for, but where it has to look at its
// operands first.
template <class... F>
void expect_generated(DType t, formula::Formulas<F...>) {
    for (std::string_view name : {F::name...}) EXPECT_GT(formula_cost(name, t), 0) << name << " in " << name_of(t);
}
TEST_F(FormulaBitsTest, every_formula_can_be_generated) {
    for (DType t : {DType::f32, DType::f64, DType::f16, DType::bf16}) expect_generated(t, formula::FloatFormulas{});
    for (DType t : {DType::u8, DType::i8, DType::i16, DType::i32, DType::i64})
        expect_generated(t, formula::IntegerFormulas{});
    expect_generated(DType::boolean, formula::Logic{});
    for (const auto& op : registry().all()) {
        if (!op->is_elementwise) continue;
        const cpu::OpLoops& loops = cpu::loops_of(*op);
        for (DType t : kDTypes) {
            if (!loops.by_dtype[static_cast<size_t>(t)].loop || (is_integer(t) && (loops.divides || loops.raises)))
                continue;
            EXPECT_GT(formula_cost(op->name(), t), 0) << op->name() << " in " << name_of(t);
        }
    }
}

// Also those that this processor does not have: the code is written, assembled and linked, but not run.
TEST_F(FormulaBitsTest, every_formula_is_generated_for_every_instruction_set) {
    for (const auto& op : registry().all()) {
        if (!op->is_elementwise) continue;
        for (DType t : {DType::f32, DType::f64, DType::i32, DType::u8}) {
            const cpu::OpLoops::Entry& entry = cpu::loops_of(*op).by_dtype[static_cast<size_t>(t)];
            if (!entry.loop || entry.mask >= 0 || formula_cost(op->name(), t) == 0) continue;
            using Kind = LoopInstruction::Kind;
            // Of halves: between 16-bit and 32-bit lanes, and of doubles beside floats, vectors are narrower.
            for (DType stored : {t, t == DType::f32 ? DType::f16 : t, t == DType::f32 ? DType::f64 : t}) {
                LoopProgram program;
                LoopInstruction formula{
                    .kind = Kind::formula, .dtype = entry.boolean ? DType::boolean : t, .operand = t};
                formula.name = std::string(op->name());
                for (int i = 0; i < entry.operands; ++i) {
                    program.operands.push_back({stored});
                    const auto at = static_cast<uint16_t>(program.code.size());
                    program.code.push_back({.kind = Kind::load, .dtype = stored, .index = static_cast<uint16_t>(i)});
                    program.code.push_back({.kind = Kind::cast, .dtype = t, .operand = stored, .args = {at}});
                    formula.args.push_back(static_cast<uint16_t>(at + 1));
                }
                const auto result = static_cast<uint16_t>(program.code.size());
                program.operands.push_back({formula.dtype, LoopOperand::Step::dense, true});
                program.code.push_back(formula);
                program.code.push_back({.kind = Kind::store,
                                        .dtype = formula.dtype,
                                        .index = static_cast<uint16_t>(entry.operands),
                                        .args = {result}});
                for (const char* target : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
                    const std::string object = generate_object(program, target);
                    EXPECT_NE(load_machine_code(object), nullptr)
                        << op->name() << " in " << name_of(t) << " for " << target;
                }
            }
        }
    }
}

}  // namespace
}  // namespace lunaria::graph
