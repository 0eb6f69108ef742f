// The promises of every operator's entry, tested from the entry itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>

#include "backends/cpu/device.h"
#include "core/ir/builder.h"
#include "core/ir/printer.h"
#include "core/ir/verifier.h"
#include "core/ops/sample.h"
#include "core/random/random.h"
#include "tests/backends/graph_tools.h"
#include "tests/today.h"

namespace lunaria {
namespace {

using testing::evaluate;
using testing::gradient;

std::vector<const Op*> all_ops() {
    std::vector<const Op*> ops;
    for (auto& op : registry().all()) ops.push_back(op.get());
    return ops;
}

class OpTest : public ::testing::TestWithParam<const Op*> {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }
    const Op& op() const { return *GetParam(); }
};

std::vector<Tensor> tensors_of(const Value& v) {
    if (v.is_tensor()) return {v.tensor()};
    std::vector<Tensor> all;
    if (v.is_list())
        for (const Value& item : v.items())
            for (const Tensor& t : tensors_of(item)) all.push_back(t);
    return all;
}

// Replaces every tensor in a value.
Value map_tensors(const Value& v, const std::function<Tensor(const Tensor&)>& f) {
    if (v.is_tensor()) return Value(f(v.tensor()));
    if (!v.is_list()) return v;
    std::vector<Value> items;
    for (const Value& item : v.items()) items.push_back(map_tensors(item, f));
    return Value::list(std::move(items));
}

std::vector<Value> map_args(const std::vector<Value>& args, const std::function<Tensor(const Tensor&)>& f) {
    std::vector<Value> mapped;
    for (const Value& v : args) mapped.push_back(map_tensors(v, f));
    return mapped;
}

std::string describe(const Tensor& t) {
    std::string text = str(name_of(t.dtype()), t.shape(), " {");
    for (int64_t i = 0; i < std::min<int64_t>(t.size(), 12); ++i) text += str(i ? ", " : "", t.at(i));
    return text + "}";
}

void expect_close(const Value& got, const Value& want, double tolerance, const std::string& where) {
    auto a = tensors_of(got), b = tensors_of(want);
    ASSERT_EQ(a.size(), b.size()) << where;
    for (size_t k = 0; k < a.size(); ++k) {
        ASSERT_EQ(a[k].dtype(), b[k].dtype()) << where;
        ASSERT_EQ(a[k].shape(), b[k].shape()) << where;
        for (int64_t i = 0; i < a[k].size(); ++i) {
            double x = a[k].at(i), y = b[k].at(i);
            if (std::isnan(x) && std::isnan(y)) continue;
            if (x == y) continue;
            ASSERT_LE(std::abs(x - y), tolerance * (1 + std::abs(y)))
                << where << " element " << i << ": " << describe(a[k]) << " against " << describe(b[k]);
        }
    }
}

Value run_seeded(const Op& op, const std::vector<Value>& args) {
    default_generator().set_state({7, 0});
    return run(op, args);
}

TEST_P(OpTest, its_entry_is_complete) {
    std::string_view doc = op().doc_text;
    ASSERT_GT(doc.size(), 10u) << "no doc";
    EXPECT_TRUE(std::isupper(doc[0]) || !std::isalpha(doc[0])) << doc;
    EXPECT_EQ(doc.back(), '.') << doc;
    // What only makes sense with another rank has none.
    EXPECT_FALSE(op().samples.empty() && op().declared_effect() != Effect::ordered) << "no sample";
    EXPECT_FALSE(op().examples.empty() && op().is_repeatable()) << "no example";
    EXPECT_TRUE(op().grad_fn || op().no_grad_reason || op().expand_fn || op().host_fn)
        << "neither a gradient nor a reason why there is none";
    EXPECT_TRUE(op().infer_fn || op().expand_fn || op().host_fn) << "no inference rule";
}

TEST_P(OpTest, results_have_the_inferred_types) {
    if (op().host_fn) return;
    for (const char* sample : op().samples) {
        auto args = sample_args(op(), sample, 1);
        Value result = run_seeded(op(), args);
        ir::Graph graph("f");
        ir::GraphBuilder builder(graph);
        graph.result = builder.emit(op(), args);
        ASSERT_NO_THROW(ir::verify(graph)) << ir::print(graph);
        auto actual = tensors_of(result);
        std::vector<ir::NodeType> types;
        const ir::NodeType& type = graph.result.is_node()   ? graph.result.node()->type
                                   : graph.result.is_list() ? ir::NodeType()
                                                            : ir::NodeType();
        if (type.kind == ir::NodeType::Kind::tensor)
            types = {type};
        else
            types = type.items;
        ASSERT_EQ(types.size(), actual.size()) << sample;
        for (size_t i = 0; i < types.size(); ++i) {
            EXPECT_EQ(types[i].tensor.dtype, actual[i].dtype()) << sample;
            ASSERT_EQ(types[i].tensor.shape.rank(), actual[i].rank()) << sample;
            for (int axis = 0; axis < actual[i].rank(); ++axis) {
                int64_t dim = types[i].tensor.shape[axis];
                EXPECT_TRUE(dim == kUnknownDim || dim == actual[i].dim(axis))
                    << sample << ": axis " << axis << " inferred " << dim;
            }
        }
        if (op().is_repeatable()) expect_close(evaluate(graph, {}), result, 0, sample);
    }
}

TEST_P(OpTest, fast_kernels_agree_with_the_plain_one) {
    if (op().host_fn || (op().expand_fn && !op().infer_fn) || op().view_fn) return;
    for (const char* sample : op().samples) {
        for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
            bool converted = dtype == DType::f32;
            auto args = map_args(sample_args(op(), sample, 2), [&](const Tensor& t) {
                converted |= t.dtype() == DType::f32;
                return t.dtype() == DType::f32 ? t.cast(dtype) : t;
            });
            if (!converted) continue;  // nothing of that dtype takes part
            set_current_device(&cpu::plain_device());
            Value plain = run_seeded(op(), args);
            set_current_device(&cpu::device());
            Value fast = run_seeded(op(), args);
            double tolerance = dtype == DType::f64   ? 1e-10
                               : dtype == DType::f32 ? 2e-5
                               : dtype == DType::f16 ? 4e-3
                                                     : 3e-2;
            expect_close(fast, plain, tolerance, str(sample, " in ", name_of(dtype)));
        }
    }
}

// The same elements behind strides that are not dense: axes reversed in memory, every second element used.
Tensor strided_copy(const Tensor& t) {
    Shape stored;
    for (int axis = t.rank() - 1; axis >= 0; --axis) stored.push_back(t.dim(axis) * 2);
    if (t.rank() == 0) return t;
    Tensor store = Tensor::zeros(t.dtype(), stored);
    Strides strides;
    for (int axis = 0; axis < t.rank(); ++axis) strides.push_back(store.strides()[t.rank() - 1 - axis] * 2);
    Tensor view = store.view(t.shape(), strides, 0);
    size_t width = size_of(t.dtype());
    Tensor dense = t.contiguous();
    std::array<int64_t, kMaxRank> index{};
    for (int64_t i = 0; i < t.size(); ++i) {
        int64_t offset = 0;
        for (int axis = 0; axis < t.rank(); ++axis) offset += index[static_cast<size_t>(axis)] * strides[axis];
        std::memcpy(static_cast<char*>(view.raw()) + static_cast<size_t>(offset) * width,
                    static_cast<char*>(dense.raw()) + static_cast<size_t>(i) * width, width);
        for (int axis = t.rank() - 1; axis >= 0; --axis) {
            if (++index[static_cast<size_t>(axis)] < t.dim(axis)) break;
            index[static_cast<size_t>(axis)] = 0;
        }
    }
    return view;
}

TEST_P(OpTest, strided_views_give_what_dense_tensors_give) {
    if (op().host_fn || op().writes()) return;
    for (const char* sample : op().samples) {
        auto args = sample_args(op(), sample, 3);
        expect_close(run_seeded(op(), map_args(args, strided_copy)), run_seeded(op(), args), 2e-5, sample);
    }
}

Tensor direction(const Shape& shape, uint64_t stream) {
    Tensor t = Tensor::empty(DType::f64, shape);
    for (int64_t i = 0; i < t.size(); ++i)
        t.set_at(i, 2.0 * philox(stream, static_cast<uint64_t>(i), 5)[0] * 0x1p-32 - 1.0);
    return t;
}

// Builds f(x…) = sum over results of <result, w> for the call, with float tensors and tensors in lists as parameters.
struct Projection {
    ir::Graph graph{"f"};
    std::vector<Value> inputs;
    std::vector<size_t> parameters;

    Projection(const Op& op, const std::vector<Value>& args) {
        ir::GraphBuilder builder(graph);
        std::vector<Value> operands;
        for (const Value& v : args) operands.push_back(operand(v));
        Value result = builder.emit(op, operands);
        Expr total;
        uint64_t stream = 100;
        auto add = [&](const Expr& e) {
            if (!is_float(e.dtype())) return;
            // Where the size is only known when the graph runs, the square of the result will do.
            Expr w = e.shape().known() ? builder.constant(Value(direction(e.shape(), ++stream))) : e;
            Shape all;
            for (int axis = 0; axis < e.rank(); ++axis) all.push_back(axis);
            Expr term = (e * w).sum(all);
            total = total ? total + term : term;
        };
        Expr e(builder, result);
        if (!differences_can_see(result)) return;
        if (result.is_node() && result.node()->type.kind == ir::NodeType::Kind::tensor)
            add(e);
        else if (result.is_node())
            for (size_t i = 0; i < result.node()->type.items.size(); ++i) add(e[i]);
        graph.result = total ? total.value() : Value();
    }
    // Results narrower than f64 are too coarse for differences, and a size known only at run time fits no fixed
    // weights.
    static bool differences_can_see(const Value& result) {
        if (!result.is_node()) return false;
        const ir::NodeType& type = result.node()->type;
        std::vector<ir::NodeType> types = type.kind == ir::NodeType::Kind::tensor ? std::vector{type} : type.items;
        for (const ir::NodeType& t : types)
            if (!t.tensor.shape.known() || (is_float(t.tensor.dtype) && t.tensor.dtype != DType::f64)) return false;
        return true;
    }
    Value operand(const Value& v) {
        if (v.is_tensor() && is_float(v.tensor().dtype())) {
            parameters.push_back(inputs.size());
            inputs.push_back(v);
            return Value(graph.add_parameter(str("x", inputs.size()), ir::NodeType::of(type_of(v))));
        }
        if (!v.is_list()) return v;
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(operand(item));
        return Value::list(std::move(items));
    }
};

// d/dt f(x + t v) at 0, by a central difference with one step of Richardson's extrapolation.
double slope(const ir::Graph& f, const std::vector<Value>& inputs, const std::vector<Tensor>& v) {
    auto value_at = [&](double t) {
        std::vector<Value> moved;
        for (size_t i = 0; i < inputs.size(); ++i) {
            Tensor x = inputs[i].tensor().copy();
            for (int64_t k = 0; k < x.size(); ++k) x.set_at(k, x.at(k) + t * v[i].at(k));
            moved.emplace_back(std::move(x));
        }
        return evaluate(f, moved).tensor().at(0);
    };
    auto central = [&](double h) { return (value_at(h) - value_at(-h)) / (2 * h); };
    double h = 1e-4;
    return (4 * central(h / 2) - central(h)) / 3;
}

double inner(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i)
        for (int64_t k = 0; k < a[i].size(); ++k) sum += a[i].at(k) * b[i].at(k);
    return sum;
}

std::vector<Tensor> directions(const std::vector<Value>& inputs, uint64_t stream) {
    std::vector<Tensor> list;
    for (const Value& v : inputs) list.push_back(direction(v.tensor().shape(), stream++));
    return list;
}

// Both orders of the gradient of a call of float64 operands, where it has one. A result without elements to be computed
// from may be NaN: then the shapes are all that can be right.
void expect_right_gradients(const Op& op, const std::vector<Value>& args, const std::string& sample,
                            bool may_be_nan = false) {
    Projection f(op, args);
    if (f.parameters.empty() || f.graph.result.is_nil()) return;
    auto first = gradient(f.graph, f.parameters);
    ASSERT_NO_THROW(ir::verify(*first)) << sample << '\n' << ir::print(*first);
    auto v = directions(f.inputs, 300);
    auto grads = tensors_of(evaluate(*first, f.inputs));
    for (size_t i = 0; i < grads.size(); ++i) ASSERT_EQ(grads[i].shape(), f.inputs[i].tensor().shape()) << sample;
    double want = slope(f.graph, f.inputs, v), got = inner(grads, v);
    if (may_be_nan && std::isnan(want)) return;
    EXPECT_NEAR(got, want, 1e-6 * (1 + std::abs(want))) << sample << '\n' << ir::print(*first);

    // h(x) = <grad f(x), u>, whose gradient is the Hessian times u.
    auto u = directions(f.inputs, 700);
    ir::GraphBuilder builder(*first);
    Expr total;
    std::vector<Value> list = first->result.items();
    for (size_t i = 0; i < list.size(); ++i) {
        Expr g(builder, list[i]);
        Shape all;
        for (int axis = 0; axis < g.rank(); ++axis) all.push_back(axis);
        Expr term = (g * builder.constant(Value(u[i]))).sum(all);
        total = total ? total + term : term;
    }
    first->result = total.value();
    auto second = gradient(*first, f.parameters);
    ASSERT_NO_THROW(ir::verify(*second)) << sample << '\n' << ir::print(*second);
    want = slope(*first, f.inputs, v);
    got = inner(tensors_of(evaluate(*second, f.inputs)), v);
    EXPECT_NEAR(got, want, 1e-5 * (1 + std::abs(want))) << "second order of " << sample << '\n' << ir::print(*second);
}

std::vector<Value> in_double(const std::vector<Value>& args) {
    return map_args(args, [](const Tensor& t) { return is_float(t.dtype()) ? t.cast(DType::f64) : t; });
}

bool has_gradient(const Op& op) { return !op.no_grad_reason && !op.host_fn && op.is_repeatable(); }

TEST_P(OpTest, gradients_agree_with_finite_differences_twice_over) {
    if (!has_gradient(op())) return;
    for (const char* sample : op().samples)
        expect_right_gradients(op(), in_double(sample_args(op(), sample, 4)), sample);
}

// The call with no elements along the axes of `size` elements, of all operands or of one alone, and where an attribute
// is a shape with that size, of that as well.
std::vector<Value> without(const Op& op, const std::vector<Value>& args, int64_t size, std::optional<size_t> only,
                           bool of_attributes) {
    std::vector<Value> changed;
    for (size_t i = 0; i < args.size(); ++i) {
        const bool is_shape = of_attributes && op.signature.params[i].type == ArgType::shape && args[i].is_list();
        if (is_shape) {
            std::vector<Value> sizes;
            for (const Value& v : args[i].items())
                sizes.push_back(v.is_number() && v.integer() == size ? Value(int64_t{0}) : v);
            changed.push_back(Value::list(std::move(sizes)));
            continue;
        }
        changed.push_back(only && *only != i ? args[i] : map_tensors(args[i], [&](const Tensor& t) {
            Shape shape = t.shape();
            for (int axis = 0; axis < shape.rank(); ++axis)
                if (shape[axis] == size) shape[axis] = 0;
            return shape.size() == t.size() ? t : Tensor::zeros(t.dtype(), shape);
        }));
    }
    return changed;
}

// Whatever a call without elements gives has gradients, too: there are many such calls, of a quarter of the operators a
// day.
TEST_P(OpTest, gradients_of_calls_without_elements_are_right) {
    const std::string_view name = op().name();
    const size_t number = std::accumulate(name.begin(), name.end(), size_t{0});
    if (!has_gradient(op()) || !testing::is_of_today(number, 4)) return;
    auto check = [&](const std::vector<Value>& args, const std::string& what) {
        try {
            run_seeded(op(), args);
        } catch (const Error&) {
            return;  // the operator refuses such operands
        }
        try {
            expect_right_gradients(op(), args, what, true);
        } catch (const Error& e) {
            ADD_FAILURE() << what << ": " << e.what();
        }
    };
    for (const char* sample : op().samples) {
        const auto args = in_double(sample_args(op(), sample, 4));
        std::set<int64_t> sizes;
        for (const Value& v : args)
            for (const Tensor& t : tensors_of(v)) sizes.insert(t.shape().begin(), t.shape().end());
        for (int64_t size : sizes) {
            const std::string what = str(sample, " without the axes of size ", size);
            check(without(op(), args, size, {}, false), what);
            check(without(op(), args, size, {}, true), what + " and in shapes");
            for (size_t i = 0; i < args.size(); ++i)
                if (!tensors_of(args[i]).empty())
                    check(without(op(), args, size, i, false), str(what, " of argument ", i));
        }
    }
}

Value with_numbers(const Tensor& like, double x) {
    return Value(Tensor::full(like.dtype(), {1}, is_float(like.dtype()) ? x : 1));
}

// The derivative of an elementwise operator by operand `at` where that is x and the others are `other`.
double derivative_at(const Op& op, std::vector<Value> args, size_t at, double x, double other) {
    for (size_t i = 0; i < args.size(); ++i)
        if (args[i].is_tensor()) args[i] = with_numbers(args[i].tensor(), i == at ? x : other);
    ir::Graph graph("f");
    ir::GraphBuilder builder(graph);
    const Value input = args[at];
    args[at] = Value(graph.add_parameter("x", ir::NodeType::of(type_of(input))));
    graph.result = Expr(builder, builder.emit(op, args)).sum({0}).value();
    const size_t parameters[] = {0};
    return tensors_of(evaluate(*gradient(graph, parameters), std::vector{input}))[0].at(0);
}

// Where the derivative has a limit, that is what it is at infinity. What is infinity times 0 in the operator itself
// (silu at minus infinity) is NaN in its derivative as well, as in PyTorch and MindSpore.
TEST_P(OpTest, gradients_at_infinity_are_their_limits) {
    if (!has_gradient(op()) || !op().is_elementwise) return;
    for (const char* sample : op().samples) {
        const auto args = in_double(sample_args(op(), sample, 4));
        for (size_t at = 0; at < args.size(); ++at) {
            if (!args[at].is_tensor() || !is_float(args[at].tensor().dtype())) continue;
            for (double sign : {-1.0, 1.0})
                for (double other : {-2.5, -1.0, 0.0, 0.75, 3.0}) {
                    auto slope_at = [&](double x) { return derivative_at(op(), args, at, sign * x, other); };
                    const double limit = slope_at(1e140), near = slope_at(1e130), got = slope_at(HUGE_VAL);
                    if (!std::isfinite(limit) || std::abs(limit - near) > 1e-9 * (1 + std::abs(limit))) continue;
                    auto value_at = [&](double x) {
                        auto ends = args;
                        for (size_t i = 0; i < ends.size(); ++i)
                            if (ends[i].is_tensor())
                                ends[i] = with_numbers(ends[i].tensor(), i == at ? sign * x : other);
                        return run(op(), ends).tensor().at(0);
                    };
                    // NaN, or no limit of the values themselves (nan_to_num).
                    const double end = value_at(HUGE_VAL);
                    if (std::isnan(end) || (std::isfinite(end) && std::abs(end - value_at(1e140)) > 1e-9)) continue;
                    EXPECT_NEAR(got, limit, 1e-9)
                        << "argument " << at << " at " << sign * HUGE_VAL << ", others " << other << ", in " << sample;
                }
        }
    }
}

// Either a result or an Error with a message; anything else is a bug.
template <class F>
void names_itself(const Op& op, const std::string& what, F f) {
    try {
        f();
    } catch (const Error& e) {
        EXPECT_GT(std::strlen(e.what()), 5u) << what;
        // Not after an operator which it is made of.
        const bool is_of_memory = e.kind() == ErrorKind::memory;
        EXPECT_TRUE(is_of_memory || e.where() == op.name()) << op.name() << ' ' << what << ": " << e.what();
    }
}

void survives(const Op& op, const std::vector<Value>& args, const std::string& what) {
    names_itself(op, what, [&] { run_seeded(op, args); });
    // The same of tensors of which only the types are known.
    ir::Graph graph("f");
    std::vector<Value> nodes;
    for (const Value& v : args)
        nodes.push_back(v.is_tensor() ? Value(graph.add_parameter("x", ir::NodeType::of(type_of(v)))) : v);
    names_itself(op, what, [&] { ir::GraphBuilder(graph).emit(op, nodes); });
}

TEST_P(OpTest, a_result_is_a_tensor_of_its_own_unless_the_entry_gives_the_operand) {
    auto copies = [](const std::vector<Tensor>& list) {
        std::vector<Value> all;
        for (const Tensor& t : list) all.emplace_back(t.copy());
        return Value::list(std::move(all));
    };
    auto overwrite = [](std::vector<Tensor> list, double value) {
        for (Tensor& t : list) t.assign("test", Tensor::full(t.dtype(), {}, value));
    };
    for (const char* sample : op().samples) {
        const auto args = sample_args(op(), sample, 6);
        const std::vector<Tensor> given = tensors_of(Value::list(args)), results = tensors_of(run(op(), args));
        for (size_t i = 0; i < results.size(); ++i) {
            for (const Tensor& t : given)
                EXPECT_EQ(results[i].same_body(t), op().returns_operand && t.same_body(given[0])) << sample;
            for (size_t k = 0; k < i; ++k) EXPECT_FALSE(results[i].same_body(results[k])) << sample;
        }
        if (op().writes()) continue;
        const Value operands = copies(given);
        overwrite(results, 1);
        EXPECT_TRUE(same_value(copies(given), operands)) << sample << ": a write into a result shows in an operand";
        const std::vector<Tensor> others = tensors_of(run(op(), args));
        const Value before = copies(others);
        overwrite(given, 0);
        EXPECT_TRUE(same_value(copies(others), before)) << sample << ": a write into an operand shows in a result";
    }
}

TEST_P(OpTest, unfit_tensors_end_in_a_result_or_a_clear_error) {
    if (op().writes()) return;
    for (const char* sample : op().samples) {
        auto args = sample_args(op(), sample, 5);
        for (size_t i = 0; i < args.size(); ++i) {
            if (!args[i].is_tensor()) continue;
            DType dtype = args[i].tensor().dtype();
            for (Shape shape : {Shape{}, Shape{0}, Shape{3}, Shape{0, 4}, Shape{2, 0, 3}, Shape{1, 1, 1, 1, 1, 1, 1, 1},
                                Shape{5, 1, 7}}) {
                auto changed = args;
                changed[i] = Value(Tensor::zeros(dtype, shape));
                survives(op(), changed, str(sample, " with argument ", i, " of shape ", shape));
            }
            for (DType other : {DType::boolean, DType::u8, DType::i64, DType::f16, DType::f64, DType::c64}) {
                auto changed = args;
                changed[i] = Value(Tensor::zeros(other, args[i].tensor().shape()));
                survives(op(), changed, str(sample, " with argument ", i, " of dtype ", name_of(other)));
            }
            if (is_integer(dtype))
                for (double extreme : {-1.0, 1e7, -9.2e18, 9.2e18}) {
                    auto changed = args;
                    changed[i] = Value(Tensor::full(dtype, args[i].tensor().shape(), extreme));
                    survives(op(), changed, str(sample, " with argument ", i, " full of ", extreme));
                }
        }
        for (size_t i = 0; i < args.size(); ++i) {
            if (!args[i].is_number()) continue;
            for (int64_t extreme : {int64_t{-1}, int64_t{0}, int64_t{-9}, int64_t{9}, int64_t{1} << 40,
                                    std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
                auto changed = args;
                changed[i] =
                    args[i].kind() == Value::Kind::integer ? Value(extreme) : Value(static_cast<double>(extreme));
                survives(op(), changed, str(sample, " with argument ", i, " = ", extreme));
            }
        }
    }
}

TEST_P(OpTest, a_wrong_kind_of_argument_names_the_parameter) {
    const auto& params = op().signature.params;
    for (const char* sample : op().samples) {
        auto args = sample_args(op(), sample, 6);
        for (size_t i = 0; i < args.size(); ++i) {
            if (!is_tensor_type(params[i].type)) continue;
            auto changed = args;
            changed[i] = Value("text");
            try {
                run_seeded(op(), changed);
                ADD_FAILURE() << "accepted a string for " << params[i].name;
            } catch (const Error& e) {
                EXPECT_NE(std::string(e.what()).find(params[i].name), std::string::npos) << e.what();
                EXPECT_EQ(e.where(), op().name());
            }
        }
    }
}

TEST_P(OpTest, random_numbers_repeat_with_the_seed) {
    if (!op().draws()) return;
    for (const char* sample : op().samples) {
        auto args = sample_args(op(), sample, 8);
        expect_close(run_seeded(op(), args), run_seeded(op(), args), 0, sample);
    }
}

INSTANTIATE_TEST_SUITE_P(All, OpTest, ::testing::ValuesIn(all_ops()),
                         [](const ::testing::TestParamInfo<const Op*>& info) {
                             return std::string(info.param->name());
                         });

}  // namespace
}  // namespace lunaria
