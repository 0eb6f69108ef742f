// Gradients of every operator as compiled graphs: that is what training runs, and where kernels are joined most.
#include <gtest/gtest.h>

#include "backends/cpu/device.h"
#include "core/ir/builder.h"
#include "core/ops/sample.h"
#include "core/random/random.h"
#include "jit/graph/executable.h"
#include "tests/backends/graph_tools.h"
#include "tests/jit/graph/compare.h"

namespace lunaria::graph {
namespace {

bool has_lists(std::span<const Value> args) {
    for (const Value& v : args)
        if (v.is_list() && !v.items().empty() && v.items()[0].is_tensor()) return true;
    return false;
}

// A scalar that every element of the operator's first result has its own influence on; null where that is no float.
std::unique_ptr<ir::Graph> scalar_of(const Op& op, std::span<const Value> args, std::vector<Tensor>& inputs) {
    auto graph = lunaria::testing::graph_of(op, args, inputs);
    if (!graph->result.is_node()) return nullptr;
    ir::GraphBuilder builder(*graph);
    Expr y(builder, graph->result);
    if (graph->result.node()->type.kind == ir::NodeType::Kind::list) {
        if (graph->result.node()->type.items.empty()) return nullptr;
        y = Expr(builder, builder.item(graph->result, 0));
    }
    if (!is_float(y.dtype()) || !y.shape().known()) return nullptr;
    graph->result = call("sum", {call("sin", {y * 0.7}) * call("cos", {y})}).value();
    return graph;
}

TEST(GradientGraphTest, the_gradient_of_every_operator_is_that_of_eager_mode) {
    set_current_device(&cpu::device());
    size_t compared = 0;
    for (const auto& op : registry().all()) {
        if (op->host_fn || op->writes()) continue;
        for (const char* sample : op->samples) {
            for (DType dtype : {DType::f32, DType::f64}) {
                std::vector<Value> args = sample_args(*op, sample, 3);
                if (dtype == DType::f64 && has_lists(args)) continue;
                for (Value& v : args)
                    if (v.is_tensor() && v.tensor().dtype() == DType::f32) v = Value(v.tensor().cast(dtype));
                std::vector<Tensor> inputs;
                std::unique_ptr<ir::Graph> gradient;
                DType rounded = dtype;  // complex numbers are of f32 everywhere
                try {
                    auto graph = scalar_of(*op, args, inputs);
                    if (!graph) continue;
                    rounded = type_of(graph->result).dtype;
                    std::vector<size_t> floats;
                    for (size_t i = 0; i < inputs.size(); ++i)
                        if (is_float(inputs[i].dtype())) floats.push_back(i);
                    gradient = lunaria::testing::gradient(*graph, floats);
                } catch (const Error&) {
                    continue;  // it has none
                }
                default_generator().set_state({7, 0});
                auto want = lunaria::testing::run_eagerly(*gradient, inputs);
                default_generator().set_state({7, 0});
                auto got = lunaria::testing::run_compiled(*gradient, inputs);
                EXPECT_TRUE(lunaria::testing::are_close(got, want, rounded == DType::f64 ? 1e-9 : 3e-4))
                    << op->name() << '(' << sample << ") in " << name_of(dtype);
                ++compared;
            }
        }
    }
    EXPECT_GT(compared, 1000u);
}

}  // namespace
}  // namespace lunaria::graph
