#include "tests/jit/graph/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <unordered_map>
#include <unordered_set>

#include "core/ir/builder.h"
#include "jit/graph/executable.h"
#include "jit/graph/flat.h"
#include "jit/graph/passes.h"

namespace lunaria::testing {

namespace {

using Environment = std::unordered_map<const ir::Node*, Value>;

Value substitute(const Value& v, const Environment& environment) {
    if (v.is_node()) return v.node()->kind == ir::NodeKind::constant ? v.node()->constant : environment.at(v.node());
    if (!v.is_list()) return v;
    std::vector<Value> items;
    for (const Value& item : v.items()) items.push_back(substitute(item, environment));
    return Value::list(std::move(items));
}

}  // namespace

std::vector<Tensor> run_eagerly(const ir::Graph& graph, std::span<const Tensor> inputs) {
    Environment environment;
    for (size_t i = 0; i < inputs.size(); ++i) environment[graph.parameters()[i]] = Value(inputs[i]);
    for (const ir::Node* node : graph.body()) {
        if (node->kind == ir::NodeKind::item) {
            environment[node] = environment.at(node->args[0].node()).items().at(node->index);
            continue;
        }
        std::vector<Value> args;
        for (const Value& arg : node->args) args.push_back(substitute(arg, environment));
        environment[node] = lunaria::run(*node->op, args);
    }
    Value result = substitute(graph.result, environment);
    std::vector<Tensor> outputs;
    if (result.is_tensor()) return {result.tensor()};
    for (const Value& item : result.items()) outputs.push_back(item.tensor());
    return outputs;
}

std::vector<Tensor> run_compiled(const ir::Graph& graph, std::span<const Tensor> inputs, bool generate) {
    auto executable = graph::compile(graph, {.donations = {}, .generate = generate});
    std::vector<Tensor> outputs(executable->output_count());
    executable->run(inputs, outputs);
    return outputs;
}

::testing::AssertionResult are_close(std::span<const Tensor> a, std::span<const Tensor> b, double tolerance) {
    if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " results instead of " << b.size();
    for (size_t k = 0; k < a.size(); ++k) {
        if (a[k].dtype() != b[k].dtype() || !(a[k].shape() == b[k].shape()))
            return ::testing::AssertionFailure() << "result " << k << " is " << name_of(a[k].dtype()) << a[k].shape()
                                                 << " instead of " << name_of(b[k].dtype()) << b[k].shape();
        for (int64_t i = 0; i < a[k].size(); ++i) {
            double x = a[k].at(i), y = b[k].at(i);
            if (x == y || (std::isnan(x) && std::isnan(y))) continue;
            if (!(std::fabs(x - y) <= tolerance * std::max(1.0, std::fabs(y))))
                return ::testing::AssertionFailure()
                       << "result " << k << " element " << i << ": " << x << " against " << y;
        }
    }
    return ::testing::AssertionSuccess();
}

::testing::AssertionResult are_equal(std::span<const Tensor> a, std::span<const Tensor> b) {
    if (auto close = are_close(a, b, 0.0); !close) return close;
    for (size_t k = 0; k < a.size(); ++k) {
        const Tensor x = a[k].contiguous(), y = b[k].contiguous();
        const size_t bytes = size_of(x.dtype());
        for (int64_t i = 0; i < x.size(); ++i) {
            const size_t at = static_cast<size_t>(i) * bytes;
            if (std::memcmp(x.data<char>() + at, y.data<char>() + at, bytes) == 0 || std::isnan(x.at(i))) continue;
            return ::testing::AssertionFailure() << "result " << k << " element " << i << ": the sign of " << x.at(i);
        }
    }
    return ::testing::AssertionSuccess();
}

Tensor random_tensor(const TensorType& type, uint64_t seed, double low, double high) {
    std::mt19937_64 engine(seed);
    std::uniform_real_distribution<double> numbers(low, high);
    Tensor t = Tensor::empty(type.dtype, type.shape);
    for (int64_t i = 0; i < t.size(); ++i) {
        double x = numbers(engine);
        t.set_at(i, type.dtype == DType::boolean ? x > (low + high) / 2 : is_integer(type.dtype) ? std::floor(x) : x);
    }
    return t;
}

std::unique_ptr<ir::Graph> graph_of(const Op& op, std::span<const Value> args, std::vector<Tensor>& inputs) {
    auto graph = std::make_unique<ir::Graph>(std::string(op.name()));
    ir::GraphBuilder builder(*graph);
    std::function<Value(const Value&)> as_parameter = [&](const Value& v) -> Value {
        if (v.is_tensor()) {
            inputs.push_back(v.tensor());
            return Value(graph->add_parameter("", ir::NodeType::of(type_of(v))));
        }
        if (!v.is_list()) return v;
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(as_parameter(item));
        return Value::list(std::move(items));
    };
    std::vector<Value> operands;
    for (const Value& v : args) operands.push_back(as_parameter(v));
    graph->result = builder.emit(op, operands);
    return graph;
}

std::vector<graph::Loop> loops_of(const ir::Graph& graph) {
    using namespace lunaria::graph;
    FlatGraph flat = flatten(graph);
    run_passes(*flat.graph);
    const Arrangements arrangements(*flat.graph);
    const std::vector<Piece> pieces = cut(*flat.graph, arrangements, flat.again, {}, true);
    std::vector<Loop> loops;
    for (const Piece& piece : pieces) {
        if (!piece.generated) continue;
        std::unordered_set<const ir::Node*> read;
        auto note = [&](const ir::Node* n) {
            const Arrangement* a = arrangements.find(n);
            read.insert(a ? a->root : n);
        };
        ir::for_each_node(flat.graph->result, note);
        for (const ir::Node* node : flat.graph->body())
            if (std::ranges::find(piece.nodes, node) == piece.nodes.end())
                for (const Value& arg : node->args) ir::for_each_node(arg, note);
        auto loop = build_loop(piece, arrangements, [&](const ir::Node* n) { return read.contains(n); });
        if (loop) loops.push_back(std::move(*loop));
    }
    return loops;
}

}  // namespace lunaria::testing
