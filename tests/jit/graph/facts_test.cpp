// The facts in the entries of operators (core/operator/op.h) are true, and compiled programs keep to it.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "backends/cpu/device.h"
#include "core/ir/builder.h"
#include "core/loops/kernels.h"
#include "core/ops/sample.h"
#include "jit/graph/executable.h"
#include "tests/jit/graph/compare.h"

namespace lunaria::graph {
namespace {

using lunaria::testing::are_close;
using lunaria::testing::graph_of;
using lunaria::testing::run_compiled;
using lunaria::testing::run_eagerly;

using Args = std::vector<Value>;

// Operators with an effect are never left out, whatever their operands are.
bool runs_kernels(const Op& op) {
    size_t count = 0;
    op.kernels(*current_device(), count);
    return count > 0 && !op.host_fn && !op.view_fn && op.is_repeatable();
}

Value map_tensors(const Value& v, const std::function<Tensor(const Tensor&)>& f) {
    if (v.is_tensor()) return Value(f(v.tensor()));
    if (!v.is_list()) return v;
    std::vector<Value> items;
    for (const Value& item : v.items()) items.push_back(map_tensors(item, f));
    return Value::list(std::move(items));
}

// The arguments with one tensor full of a number, for all tensors and numbers that kernels may dislike.
std::vector<Args> unusual(const Args& args) {
    std::vector<Args> list;
    const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < args.size(); ++i) {
        if (!args[i].is_tensor()) continue;
        for (double number : {0.0, -1.0, -1000.0, 1000.0, 0.3, nan, infinity}) {
            const Tensor& t = args[i].tensor();
            if (!is_float(t.dtype()) && number != std::floor(number)) continue;
            if (is_integer(t.dtype()) && std::isinf(number)) continue;
            list.push_back(args);
            list.back()[i] = Value(Tensor::full(t.dtype(), t.shape(), number));
        }
    }
    return list;
}

// The sample itself, and the same with integers for floats.
std::vector<Args> by_dtype(const Op& op, const char* sample) {
    std::vector<Args> list{sample_args(op, sample, 3)};
    Args integers = list[0];
    for (Value& v : integers)
        v = map_tensors(v, [](const Tensor& t) { return is_float(t.dtype()) ? t.cast(DType::i32) : t; });
    list.push_back(std::move(integers));
    return list;
}

bool raises(const Op& op, const Args& args) {
    try {
        lunaria::run(op, args);
        return false;
    } catch (const Error&) {
        return true;
    }
}

// Calls f(args) for calls of the operator that raise because of the values of their operands alone.
void for_each_raising(const Op& op, const std::function<void(const Args&)>& f) {
    for (const char* sample : op.samples)
        for (const Args& args : by_dtype(op, sample)) {
            Args sound = args;
            for (Value& v : sound)
                v = map_tensors(v, [](const Tensor& t) {
                    return is_integer(t.dtype()) ? Tensor::full(t.dtype(), t.shape(), 1) : t;
                });
            if (raises(op, args) && raises(op, sound)) continue;
            for (const Args& bad : unusual(args))
                if (raises(op, bad)) f(bad);
        }
}

class FactsTest : public ::testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }
};

TEST_F(FactsTest, an_operator_is_marked_where_its_kernel_raises_by_the_values_of_its_operands) {
    for (const auto& op : registry().all()) {
        if (!runs_kernels(*op)) continue;
        bool any = false;
        for_each_raising(*op, [&](const Args& args) {
            any = true;
            EXPECT_TRUE(op->may_raise(promoted_dtype(*op, args))) << op->name();
        });
        EXPECT_TRUE(any || op->raises_when == Raises::never) << op->name() << " is marked and does not raise";
    }
}

TEST_F(FactsTest, a_call_that_raises_does_so_where_nothing_reads_its_result) {
    for (const auto& op : registry().all()) {
        if (op->host_fn || !op->is_repeatable()) continue;
        bool done = false;
        for_each_raising(*op, [&](const Args& args) {
            if (std::exchange(done, true)) return;
            SCOPED_TRACE(op->name());
            std::vector<Tensor> inputs;
            const auto graph = graph_of(*op, args, inputs);
            inputs.push_back(Tensor::full(DType::f32, {3}, 2));
            ir::GraphBuilder builder(*graph);
            Expr x(builder, Value(graph->add_parameter("", ir::NodeType::of({DType::f32, {3}}))));
            graph->result = (x * x).value();
            EXPECT_THROW(run_compiled(*graph, inputs), Error);
        });
    }
}

TEST_F(FactsTest, kernels_write_into_the_memory_that_is_planned) {
    constexpr DType kDTypes[] = {DType::f64, DType::f16, DType::i32, DType::i64, DType::u8, DType::boolean};
    for (const auto& op : registry().all()) {
        if (!runs_kernels(*op)) continue;
        for (const char* sample : op->samples) {
            const Args args = sample_args(*op, sample, 3);
            std::vector<Args> calls;
            auto add = [&](const std::function<Tensor(const Tensor&)>& f) {
                calls.push_back(args);
                for (Value& v : calls.back()) v = map_tensors(v, f);
            };
            for (DType dtype : kDTypes) add([&](const Tensor& t) { return is_float(t.dtype()) ? t.cast(dtype) : t; });
            add([](const Tensor& t) {
                Shape ones;
                for (int i = 0; i < t.rank(); ++i) ones.push_back(1);
                return Tensor::full(t.dtype(), ones, 1);
            });
            add([](const Tensor& t) { return Tensor::full(t.dtype(), {1}, 1); });
            add([](const Tensor& t) { return Tensor::full(t.dtype(), {}, 1); });
            for (const Args& call : calls) {
                std::vector<Tensor> inputs, want;
                std::unique_ptr<ir::Graph> graph;
                try {
                    graph = graph_of(*op, call, inputs);
                    want = run_eagerly(*graph, inputs);
                } catch (const Error&) {
                    continue;
                }
                SCOPED_TRACE(str(op->name(), "(", sample, ") with ", inputs.empty() ? "" : name_of(inputs[0].dtype()),
                                 inputs.empty() ? Shape() : inputs[0].shape()));
                if (!graph->result.is_node()) continue;
                EXPECT_TRUE(are_close(run_compiled(*graph, inputs, false), want, 1e-3));
            }
        }
    }
}

TEST_F(FactsTest, a_number_beside_tensors_counts_as_it_does_eagerly) {
    for (const auto& op : registry().all()) {
        if (op->host_fn || op->view_fn || !op->is_repeatable() || !op->promotes) continue;
        for (const char* sample : op->samples)
            for (DType dtype : {DType::f64, DType::f16, DType::i32})
                for (double number : {-1e5, 0.3}) {
                    const Args args = sample_args(*op, sample, 3);
                    for (size_t i = 0; i < args.size(); ++i) {
                        const ArgType type = op->signature.params[i].type;
                        if ((type != ArgType::same && type != ArgType::real) || args[i].is_nil()) continue;
                        Args call = args;
                        for (Value& v : call)
                            v = map_tensors(v,
                                            [&](const Tensor& t) { return is_float(t.dtype()) ? t.cast(dtype) : t; });
                        call[i] = Value(number);
                        std::vector<Tensor> inputs, want;
                        std::unique_ptr<ir::Graph> graph;
                        try {
                            graph = graph_of(*op, call, inputs);
                            want = run_eagerly(*graph, inputs);
                        } catch (const Error&) {
                            continue;
                        }
                        SCOPED_TRACE(
                            str(op->name(), "(", sample, ") in ", name_of(dtype), " with argument ", i, " = ", number));
                        const bool half = !want.empty() && is_half(want[0].dtype());
                        if (!graph->result.is_node()) continue;
                        EXPECT_TRUE(
                            are_close(run_compiled(*graph, inputs, op->is_elementwise), want, half ? 1e-2 : 1e-5));
                    }
                }
    }
}

TEST_F(FactsTest, a_number_is_no_half_in_a_loop_of_halves) {
    if (!can_generate()) GTEST_SKIP() << "no code generator";
    for (DType dtype : {DType::f16, DType::bf16}) {
        ir::Graph graph("f");
        ir::GraphBuilder builder(graph);
        const TensorType type{dtype, {4, 8}};
        Expr a(builder, Value(graph.add_parameter("a", ir::NodeType::of(type))));
        Expr m(builder, Value(graph.add_parameter("m", ir::NodeType::of(type))));
        graph.result = call("softmax", {a + m * -1e5}).value();
        const std::vector<Tensor> inputs{Tensor::full(dtype, type.shape, 0.5), Tensor::zeros(dtype, type.shape)};
        EXPECT_TRUE(are_close(run_compiled(graph, inputs), run_eagerly(graph, inputs), 1e-2));
        graph.result = ((a * 65536.0) / 65536.0).value();
        const std::vector<Tensor> small{Tensor::full(dtype, type.shape, 0.25), inputs[1]};
        EXPECT_TRUE(are_close(run_compiled(graph, small), run_eagerly(graph, small), 0));
    }
}

TEST_F(FactsTest, means_of_integers_are_exact_where_the_eager_ones_are) {
    for (DType dtype : {DType::u8, DType::i32, DType::i64}) {
        Tensor x = Tensor::empty(dtype, {3, 20001});
        for (int64_t i = 0; i < x.size(); ++i)
            x.set_at(i, static_cast<double>((dtype == DType::u8 ? 200 : 1000003) + i % 17));
        for (const Value& axis : {Value(), Value(int64_t{1})}) {
            ir::Graph graph("f");
            ir::GraphBuilder builder(graph);
            Expr p(builder, Value(graph.add_parameter("x", ir::NodeType::of(type_of(Value(x))))));
            graph.result = call("mean", {p, axis}).value();
            EXPECT_TRUE(are_close(run_compiled(graph, std::span(&x, 1)), run_eagerly(graph, std::span(&x, 1)), 0))
                << name_of(dtype);
        }
    }
}

}  // namespace
}  // namespace lunaria::graph
