// Reverse rules as graphs: against finite differences for every operator, and what they save and share.
#include "jit/autodiff/pullback.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "backends/cpu/device.h"
#include "core/ir/printer.h"
#include "core/ir/verifier.h"
#include "core/ops/sample.h"
#include "core/random/random.h"
#include "tests/jit/autodiff/graph_runner.h"

namespace lunaria {
namespace {

using testing::cotangents_of_call;
using testing::GraphRun;
using testing::pullback_inputs;

constexpr uint64_t kAll = ~uint64_t{0};

Value tensor(std::initializer_list<double> values, DType dtype = DType::f64) {
    std::vector<double> list(values);
    return Value(Tensor::from<double>(list, {static_cast<int64_t>(list.size())}).cast(dtype));
}

bool is_differentiable(const Value& v) {
    return v.kind() == Value::Kind::number || (v.is_tensor() && is_float(v.tensor().dtype()));
}

// Random numbers of the shape of a value: the direction of a derivative, the weights of a projection. Nil for what
// cannot be moved.
Value direction(const Value& v, uint64_t& stream) {
    if (v.kind() == Value::Kind::number) return Value(0.5 + 0.25 * static_cast<double>(++stream % 3));
    if (v.is_list()) {
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(direction(item, stream));
        return Value::list(std::move(items));
    }
    if (!is_differentiable(v)) return {};
    Tensor t = Tensor::empty(v.tensor().dtype(), v.tensor().shape());
    for (int64_t i = 0; i < t.size(); ++i) {
        uint64_t mixed = (++stream + static_cast<uint64_t>(i)) * 0x9e3779b97f4a7c15u;
        t.set_at(i, static_cast<double>(mixed >> 40) / static_cast<double>(1 << 23) - 1);
    }
    return Value(t);
}

double inner(const Value& a, const Value& b) {
    if (a.is_nil() || b.is_nil()) return 0;
    double sum = 0;
    if (a.is_list()) {
        for (size_t i = 0; i < a.items().size(); ++i) sum += inner(a.items()[i], b.items()[i]);
        return sum;
    }
    if (a.is_number()) return a.number() * (b.is_number() ? b.number() : b.tensor().at(0));
    if (b.is_number()) return inner(b, a);
    for (int64_t i = 0; i < a.tensor().size(); ++i) sum += a.tensor().at(i) * b.tensor().at(i);
    return sum;
}

Value moved(const Value& v, const Value& by, double t) {
    if (by.is_nil()) return v;
    if (v.is_number()) return Value(v.number() + t * by.number());
    if (v.is_list()) {
        std::vector<Value> items;
        for (size_t i = 0; i < v.items().size(); ++i) items.push_back(moved(v.items()[i], by.items()[i], t));
        return Value::list(std::move(items));
    }
    Tensor x = v.tensor().copy();
    for (int64_t i = 0; i < x.size(); ++i) x.set_at(i, x.at(i) + t * by.tensor().at(i));
    return Value(x);
}

using Function = std::function<Value(std::span<const Value>)>;

// d/dt <f(x + t v), w> at 0 by a central difference with one step of Richardson's extrapolation.
double slope(const Function& f, const std::vector<Value>& x, const std::vector<Value>& v, const Value& w) {
    auto value_at = [&](double t) {
        std::vector<Value> at;
        for (size_t i = 0; i < x.size(); ++i) at.push_back(moved(x[i], v[i], t));
        return inner(w, f(at));
    };
    auto central = [&](double h) { return (value_at(h) - value_at(-h)) / (2 * h); };
    double h = 1e-4;
    return (4 * central(h / 2) - central(h)) / 3;
}

std::vector<Value> directions(std::span<const Value> values, uint64_t stream) {
    std::vector<Value> list;
    for (const Value& v : values) list.push_back(direction(v, stream));
    return list;
}

double projected(std::span<const Value> cotangents, std::span<const Value> v) {
    double sum = 0;
    for (size_t i = 0; i < v.size(); ++i) sum += inner(cotangents[i], v[i]);
    return sum;
}

Value in_f64(const Value& v) {
    if (v.is_tensor()) return is_float(v.tensor().dtype()) ? Value(v.tensor().cast(DType::f64)) : v;
    if (!v.is_list()) return v;
    std::vector<Value> items;
    for (const Value& item : v.items()) items.push_back(in_f64(item));
    return Value::list(std::move(items));
}

std::vector<Value> sample_in_f64(const Op& op, const char* sample) {
    std::vector<Value> args;
    for (const Value& v : sample_args(op, sample, 4)) args.push_back(in_f64(v));
    return args;
}

// Attributes are not moved, though some are numbers; nor are numbers that the operator rounds to f32.
std::vector<Value> operand_directions(const Op& op, std::span<const Value> args, uint64_t stream) {
    std::vector<Value> list = directions(args, stream);
    for (size_t i = 0; i < args.size(); ++i) {
        ArgType type = op.signature.params[i].type;
        bool promoted = type == ArgType::same || type == ArgType::real;
        if (!is_tensor_type(type) || (args[i].is_number() && !promoted)) list[i] = {};
    }
    return list;
}

bool has_cotangents(const Value& v) {
    if (v.is_list())
        for (const Value& item : v.items())
            if (has_cotangents(item)) return true;
    return is_differentiable(v);
}

// Differences see nothing in results that are narrower than f64.
bool is_wide(const Value& v) {
    if (v.is_list()) {
        for (const Value& item : v.items())
            if (!is_wide(item)) return false;
        return true;
    }
    return !v.is_tensor() || !is_float(v.tensor().dtype()) || v.tensor().dtype() == DType::f64;
}

class PullbackTest : public ::testing::TestWithParam<const Op*> {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }
    const Op& op() const { return *GetParam(); }
    bool is_skipped() const { return op().no_grad_reason || op().host_fn || op().writes(); }
    Value run_seeded(std::span<const Value> args) const {
        default_generator().set_state({7, 0});
        return run(op(), args);
    }
};

std::vector<const Op*> all_ops() {
    std::vector<const Op*> ops;
    for (auto& op : registry().all()) ops.push_back(op.get());
    return ops;
}

// What can be moved: the slope by the exponent of a power has no value where the base is negative.
uint64_t active_bits(std::span<const Value> args) {
    uint64_t bits = 0;
    for (size_t i = 0; i < args.size(); ++i) bits |= uint64_t{args[i].kind() != Value::Kind::integer} << i;
    return bits;
}

void check_slope(const Op& op, const std::vector<Value>& args, const Function& f, const std::string& where) {
    Value result = f(args);
    if (!has_cotangents(result) || !is_wide(result)) return;
    uint64_t stream = 100;
    Value w = direction(result, stream);
    auto v = operand_directions(op, args, 300);
    default_generator().set_state({7, 0});
    auto cotangents = cotangents_of_call(op, args, result, w, active_bits(args));
    double want = slope(f, args, v, w), got = projected(cotangents, v);
    EXPECT_NEAR(got, want, 1e-6 * (1 + std::abs(want))) << where;
}

TEST_P(PullbackTest, its_cotangents_agree_with_finite_differences) {
    if (is_skipped()) return;
    for (const char* sample : op().samples) {
        // Its gradient is meant to be that of the soft result.
        if (op().name() == "gumbel_softmax" && std::strstr(sample, "true")) continue;
        check_slope(
            op(), sample_in_f64(op(), sample), [&](std::span<const Value> x) { return run_seeded(x); }, sample);
    }
}

TEST_P(PullbackTest, its_graph_is_sound_and_has_cotangents_of_the_operands_types) {
    if (is_skipped() || autodiff::needs_expansion(op())) return;
    for (const char* sample : op().samples) {
        auto args = sample_args(op(), sample, 4);
        Value result = run_seeded(args);
        auto rule = autodiff::pullback(op(), args, result, kAll);
        ASSERT_NO_THROW(ir::verify(*rule->graph)) << sample << '\n' << ir::print(*rule->graph);
        ASSERT_EQ(rule->saved.size(), rule->saved_item.size());
        const auto& entries = rule->graph->result.items();
        ASSERT_EQ(entries.size(), args.size());
        for (size_t i = 0; i < args.size(); ++i) {
            std::vector<Value> operands = args[i].is_list() ? args[i].items() : std::vector<Value>{args[i]};
            std::vector<Value> given = entries[i].is_list() ? entries[i].items() : std::vector<Value>{entries[i]};
            for (size_t k = 0; k < given.size(); ++k) {
                if (given[k].is_nil()) continue;
                ASSERT_TRUE(given[k].is_node());
                if (!operands[k].is_tensor()) continue;
                EXPECT_EQ(given[k].node()->tensor_type(), type_of(operands[k])) << sample << ", argument " << i;
            }
        }
        // A composite that has a kernel stays whole: the machine expands it where it is differentiated once more.
        for (const ir::Node* node : rule->graph->body())
            EXPECT_FALSE(node->op && autodiff::needs_expansion(*node->op) && !node->op->infer_fn) << node->op->name();
    }
}

// Complex numbers have too few digits for differences.
bool is_complex_inside(const ir::Graph& graph) {
    for (const ir::Node* node : graph.body())
        if (node->type.kind == ir::NodeType::Kind::tensor && is_complex(node->type.tensor.dtype)) return true;
    return false;
}

// The second derivative is the derivative of the rule's graph, whatever its parameters are.
TEST_P(PullbackTest, its_graph_can_be_differentiated_again) {
    if (is_skipped() || autodiff::needs_expansion(op())) return;
    for (const char* sample : op().samples) {
        auto args = sample_in_f64(op(), sample);
        Value result = run_seeded(args);
        if (!has_cotangents(result) || !is_wide(result)) continue;
        auto rule = autodiff::pullback(op(), args, result, active_bits(args));
        if (is_complex_inside(*rule->graph)) continue;
        std::vector<Value> douts;
        uint64_t stream = 500;
        for (const Value& r : result.is_list() ? result.items() : std::vector<Value>{result})
            douts.push_back(direction(r, stream));
        auto inputs = pullback_inputs(rule->saved, rule->saved_item, args, result, douts);
        GraphRun first(*rule->graph, inputs);
        Value w = direction(first.result(), stream);
        // As a function of the operator's arguments and the cotangents: what was saved of the result moves with them.
        auto v = operand_directions(op(), args, 900);
        auto dout_directions = directions(douts, 1300);
        std::vector<Value> all(args), all_directions(v);
        all.insert(all.end(), douts.begin(), douts.end());
        all_directions.insert(all_directions.end(), dout_directions.begin(), dout_directions.end());
        auto again = [&](std::span<const Value> x) {
            auto at = x.first(args.size());
            auto given = pullback_inputs(rule->saved, rule->saved_item, at, run_seeded(at), x.subspan(args.size()));
            return GraphRun(*rule->graph, given).result();
        };
        double want = slope(again, all, all_directions, w);
        auto second = first.backward(w);
        double got = projected(std::span(second).subspan(rule->saved.size()), dout_directions);
        std::vector<Value> results(douts.size());
        for (size_t k = 0; k < rule->saved.size(); ++k) {
            size_t place = static_cast<size_t>(rule->saved[k]);
            if (place >= args.size())
                results[place - args.size()] = second[k];
            else
                got += inner(second[k], rule->saved_item[k] < 0
                                            ? v[place]
                                            : v[place].items()[static_cast<size_t>(rule->saved_item[k])]);
        }
        Value through = result.is_list() ? Value::list(results) : results[0];
        got += projected(cotangents_of_call(op(), args, result, through, active_bits(args)), v);
        EXPECT_NEAR(got, want, 1e-5 * (1 + std::abs(want))) << sample << '\n' << ir::print(*rule->graph);
    }
}

bool nearly_same(const Value& a, const Value& b, double tolerance) {
    if (a.is_list() && b.is_list()) {
        if (a.items().size() != b.items().size()) return false;
        for (size_t i = 0; i < a.items().size(); ++i)
            if (!nearly_same(a.items()[i], b.items()[i], tolerance)) return false;
        return true;
    }
    if (!a.is_tensor() || !b.is_tensor()) return same_value(a, b);
    if (!(type_of(a) == type_of(b))) return false;
    for (int64_t i = 0; i < a.tensor().size(); ++i) {
        const double x = a.tensor().at(i), y = b.tensor().at(i);
        if (!(std::abs(x - y) <= tolerance * (1 + std::abs(y)))) return false;
    }
    return true;
}

TEST_P(PullbackTest, its_expansion_gives_what_the_operator_gives) {
    if (!op().expand_fn || op().host_fn) return;
    for (const char* sample : op().samples)
        for (bool wide : {false, true}) {
            auto args = wide ? sample_in_f64(op(), sample) : sample_args(op(), sample, 4);
            Value want = run_seeded(args);
            auto graph = autodiff::expansion(op(), args);
            ASSERT_NO_THROW(ir::verify(*graph)) << sample << '\n' << ir::print(*graph);
            std::vector<Value> operands;
            for (size_t i = 0; i < args.size(); ++i) {
                if (!is_tensor_type(op().signature.params[i].type)) continue;
                if (args[i].is_list())
                    operands.insert(operands.end(), args[i].items().begin(), args[i].items().end());
                else if (args[i].is_tensor() || args[i].is_number())
                    operands.push_back(args[i]);
            }
            default_generator().set_state({7, 0});
            Value got = GraphRun(*graph, operands).result();
            // A kernel for the whole sums in another order than what it stands for.
            EXPECT_TRUE(op().infer_fn ? nearly_same(got, want, wide ? 1e-10 : 1e-4) : same_value(got, want))
                << sample << ": " << to_string(got) << " against " << to_string(want) << '\n'
                << ir::print(*graph);
            for (const ir::Node* node : graph->body())
                EXPECT_FALSE(node->op && autodiff::needs_expansion(*node->op)) << node->op->name();
        }
}

// A plain number in a tensor's place: its cotangent, and those of the tensors beside it, which must not lose digits.
TEST_P(PullbackTest, plain_numbers_count_as_tensors_without_axes) {
    if (is_skipped()) return;
    for (const char* sample : op().samples) {
        auto args = sample_in_f64(op(), sample);
        for (size_t i = 0; i < args.size(); ++i) {
            ArgType type = op().signature.params[i].type;
            if (!args[i].is_tensor() || (type != ArgType::same && type != ArgType::real)) continue;
            if (args[i].tensor().dtype() != DType::f64 || args[i].tensor().size() == 0) continue;
            auto changed = args;
            changed[i] = Value(args[i].tensor().at(0));
            if (promoted_dtype(op(), changed) != DType::f64) continue;  // no tensor is left beside it
            Value result;
            try {
                result = run_seeded(changed);
            } catch (const Error&) {
                continue;  // the operator wants axes there
            }
            check_slope(
                op(), changed, [&](std::span<const Value> x) { return run_seeded(x); },
                str(sample, " with a number for argument ", i));
        }
    }
}

TEST_P(PullbackTest, asking_for_less_gives_the_same_cotangents) {
    if (is_skipped() || autodiff::needs_expansion(op())) return;
    for (const char* sample : op().samples) {
        auto args = sample_in_f64(op(), sample);
        Value result = run_seeded(args);
        if (!has_cotangents(result)) continue;
        uint64_t stream = 40;
        Value w = direction(result, stream);
        // A number that is not differentiated may be a constant of the graph, which is another way to compute.
        uint64_t tensors = 0;
        for (size_t i = 0; i < args.size(); ++i) tensors |= uint64_t{!args[i].is_number()} << i;
        auto all = cotangents_of_call(op(), args, result, w, tensors);
        for (size_t i = 0; i < args.size(); ++i) {
            if (args[i].is_number()) continue;
            auto one = cotangents_of_call(op(), args, result, w, uint64_t{1} << i);
            for (size_t k = 0; k < args.size(); ++k)
                EXPECT_TRUE(same_value(one[k], k == i ? all[k] : Value()))
                    << sample << ", argument " << k << " of " << i;
        }
        if (!result.is_list()) continue;
        // A cotangent that is not there counts as zero.
        for (size_t j = 0; j < result.items().size(); ++j) {
            if (!is_differentiable(result.items()[j])) continue;
            std::vector<Value> single(result.items().size()), zeros = w.items();
            single[j] = w.items()[j];
            for (size_t k = 0; k < zeros.size(); ++k)
                if (k != j && zeros[k].is_tensor())
                    zeros[k] = Value(Tensor::zeros(zeros[k].tensor().dtype(), zeros[k].tensor().shape()));
            auto v = operand_directions(op(), args, 600);
            double got = projected(cotangents_of_call(op(), args, result, Value::list(single)), v);
            double want = projected(cotangents_of_call(op(), args, result, Value::list(zeros)), v);
            EXPECT_NEAR(got, want, 1e-9 * (1 + std::abs(want))) << sample << ", result " << j;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, PullbackTest, ::testing::ValuesIn(all_ops()),
                         [](const ::testing::TestParamInfo<const Op*>& info) {
                             return std::string(info.param->name());
                         });

class Pullbacks : public ::testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }
    static std::shared_ptr<const autodiff::Pullback> rule(const char* name, const std::vector<Value>& args,
                                                          uint64_t active = kAll) {
        const Op& op = registry().get(name);
        return autodiff::pullback(op, args, run(op, args), active);
    }
    static std::vector<Value> cotangents(const char* name, const std::vector<Value>& args, const Value& dout) {
        const Op& op = registry().get(name);
        return cotangents_of_call(op, args, run(op, args), dout);
    }
};

TEST_F(Pullbacks, save_what_the_rule_uses_and_nothing_else) {
    Value x = tensor({1, 2}), y = tensor({3, 4});
    using Saved = std::vector<int>;
    EXPECT_EQ(rule("add", {x, y})->saved, Saved{});
    EXPECT_EQ(rule("mul", {x, y})->saved, (Saved{0, 1}));
    EXPECT_EQ(rule("mul", {x, y}, 1)->saved, Saved{1});
    EXPECT_EQ(rule("mul", {x, y}, 2)->saved, Saved{0});
    EXPECT_EQ(rule("mul", {x, y}, 0)->saved, Saved{});
    EXPECT_EQ(rule("tanh", {x})->saved, Saved{1});
    EXPECT_EQ(rule("sum", {x, {}, false, {}})->saved, Saved{});
    auto concat = rule("concat", {Value::list({x, y}), 0});
    EXPECT_EQ(concat->saved, Saved{});
    ASSERT_TRUE(concat->graph->result.items()[0].is_list());
    EXPECT_EQ(concat->graph->result.items()[0].items().size(), 2u);
}

TEST_F(Pullbacks, come_back_in_the_dtype_and_shape_of_the_operand) {
    Value half = Value(Tensor::full(DType::f16, {2, 3}, 0.5)), row = Value(Tensor::full(DType::f32, {3}, 2));
    Value dout = Value(Tensor::full(DType::f32, {2, 3}, 1));
    auto mixed = cotangents("mul", {half, row}, dout);
    EXPECT_EQ(mixed[0].tensor().dtype(), DType::f16);
    EXPECT_EQ(mixed[0].tensor().shape(), Shape({2, 3}));
    EXPECT_EQ(mixed[1].tensor().dtype(), DType::f32);
    EXPECT_EQ(mixed[1].tensor().shape(), Shape{3});
    EXPECT_EQ(mixed[1].tensor().at(0), 1);
    Value whole = Value(Tensor::full(DType::i32, {3}, 2));
    auto with_integers = cotangents("mul", {whole, row}, Value(Tensor::full(DType::f32, {3}, 1)));
    EXPECT_TRUE(with_integers[0].is_nil());
    EXPECT_EQ(with_integers[1].tensor().at(0), 2);
}

TEST_F(Pullbacks, take_numbers_as_they_are) {
    // 0.1 has other digits in f32.
    Value x = tensor({1, 2}), dout = tensor({1, 1});
    auto first = cotangents("mul", {x, 0.1}, dout);
    EXPECT_EQ(first[0].tensor().at(0), 0.1);
    EXPECT_EQ(first[1].tensor().rank(), 0);
    EXPECT_EQ(first[1].tensor().at(0), 3);
    auto power = cotangents("pow", {x, 2.1}, dout);
    EXPECT_NEAR(power[0].tensor().at(1), 2.1 * std::pow(2, 1.1), 1e-14);
    EXPECT_EQ(rule("mul", {x, 0.1}), rule("mul", {x, 0.7}));
    EXPECT_NE(rule("mul", {x, 0.1}), rule("mul", {x, 2}));  // an integer may give another dtype
    EXPECT_NE(rule("pow", {x, 2.0}, 1), rule("pow", {x, 3.0}, 1));
    EXPECT_EQ(rule("pow", {x, 2.1}, 1), rule("pow", {x, 3.1}, 1));
    EXPECT_NE(rule("pow", {x, 2.1}, 1), rule("pow", {x, 2.0}, 1));
}

TEST_F(Pullbacks, are_kept_by_operator_types_attributes_and_what_is_asked_for) {
    Value x = tensor({1, 2}), y = tensor({3, 4}), longer = tensor({1, 2, 3}), narrow = tensor({1, 2}, DType::f32);
    auto known = rule("mul", {x, y});
    EXPECT_EQ(known, rule("mul", {y, x}));
    EXPECT_NE(known, rule("mul", {longer, longer}));
    EXPECT_NE(known, rule("mul", {narrow, narrow}));
    EXPECT_NE(known, rule("mul", {x, y}, 1));
    EXPECT_EQ(known, rule("mul", {x, y}, 3));
    EXPECT_EQ(known, rule("mul", {x, y}));
    Value square = Value(Tensor::zeros(DType::f64, {2, 2}));
    EXPECT_NE(rule("sum", {square, Value::ints(Shape{0}), false, {}}),
              rule("sum", {square, Value::ints(Shape{1}), false, {}}));
}

TEST_F(Pullbacks, are_forgotten_when_there_are_too_many) {
    auto first = rule("mul", {tensor({1}), tensor({1})});
    std::weak_ptr<const autodiff::Pullback> kept = first;
    const ir::Graph* graph = first->graph.get();
    for (int64_t n = 2; n < 1000; ++n) {
        Value x(Tensor::zeros(DType::f32, {n}));
        rule("mul", {x, x});
    }
    EXPECT_EQ(graph->parameters().size(), 3u);  // ours stays as long as we hold it
    first.reset();
    EXPECT_TRUE(kept.expired());
}

TEST_F(Pullbacks, of_a_tensor_in_an_attributes_place_follow_its_elements) {
    Value x = tensor({1, 2}), dout3 = tensor({1, 10, 100});
    auto twice_first = cotangents("repeat_interleave", {x, tensor({2, 1}, DType::i64), 0}, dout3);
    auto twice_last = cotangents("repeat_interleave", {x, tensor({1, 2}, DType::i64), 0}, dout3);
    EXPECT_TRUE(same_value(twice_first[0], tensor({11, 100})));
    EXPECT_TRUE(same_value(twice_last[0], tensor({1, 110})));
}

TEST_F(Pullbacks, of_operators_without_gradient_give_nothing) {
    Value x = tensor({3, 1, 2});
    auto constant = rule("stop_gradient", {x});
    EXPECT_TRUE(constant->saved.empty());
    EXPECT_TRUE(constant->graph->result.items()[0].is_nil());
    EXPECT_THROW(rule("float_power", {x, 2}), Error);
    EXPECT_THROW(autodiff::expansion(registry().get("mul"), std::vector<Value>{x, x}), Error);
}

}  // namespace
}  // namespace lunaria
