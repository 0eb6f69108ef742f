// The graph runtime by itself: fused chains against the same written by hand, the overhead of a call, and what
// compiling a training step costs with cold and warm caches. Rounds take turns; a row shows the fastest of each.
//
// usage: graph_runtime [THREADS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "backends/cpu/device.h"
#include "bench/fused_reference.h"
#include "core/ir/builder.h"
#include "core/loops/kernels.h"
#include "core/threads/threads.h"
#include "jit/graph/executable.h"

using namespace lunaria;

namespace {

double seconds(const std::function<void()>& run, int n) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < n; ++i) run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / n;
}

// The fastest round of each contestant.
std::vector<double> compete(const std::vector<std::function<void()>>& runs, int rounds, int n) {
    std::vector<double> best(runs.size(), 1e9);
    for (int round = 0; round < rounds; ++round)
        for (size_t i = 0; i < runs.size(); ++i) best[i] = std::min(best[i], seconds(runs[i], n));
    return best;
}

using Make = std::function<Value(ir::GraphBuilder&, std::vector<Expr>&)>;

std::unique_ptr<ir::Graph> graph_with(const std::vector<TensorType>& types, const Make& make) {
    auto graph = std::make_unique<ir::Graph>("bench");
    ir::GraphBuilder builder(*graph);
    std::vector<Expr> x;
    for (const TensorType& t : types) x.emplace_back(builder, Value(graph->add_parameter("", ir::NodeType::of(t))));
    graph->result = make(builder, x);
    return graph;
}

void chain(int64_t count) {
    auto graph = graph_with({{DType::f32, {count}}}, [](auto&, auto& x) {
        return (call("tanh", {x[0] * 1.5 + 0.25}) * call("sigmoid", {x[0]}) + x[0]).value();
    });
    auto executable = graph::compile(*graph);
    std::vector<Tensor> inputs{Tensor::empty(DType::f32, {count})}, outputs(1);
    for (int64_t i = 0; i < count; ++i) inputs[0].data<float>()[i] = static_cast<float>(i % 4001) / 1000 - 2;
    Tensor by_hand = Tensor::zeros(DType::f32, {count});
    const float* x = inputs[0].data<float>();
    float* y = by_hand.data<float>();
    const int n = static_cast<int>(std::max<int64_t>(1, 4'000'000 / count));
    auto best =
        compete({[&] { executable->run(inputs, outputs); }, [&] { fused::chain(x, y, count, 1.5f, 0.25f, false); },
                 [&] { fused::chain(x, y, count, 1.5f, 0.25f, true); }},
                25, n);
    const double reference = std::min(best[1], best[2]);
    std::printf("chain of %-9lld generated %10.1f us   by hand %10.1f us (around the cache %10.1f us)   ratio %.2f\n",
                static_cast<long long>(count), best[0] * 1e6, best[1] * 1e6, best[2] * 1e6, reference / best[0]);
}

void overhead() {
    auto graph =
        graph_with({{DType::f32, {4}}, {DType::f32, {4}}}, [](auto&, auto& x) { return (x[0] * 2.0 + x[1]).value(); });
    auto executable = graph::compile(*graph);
    std::vector<Tensor> inputs{Tensor::zeros(DType::f32, {4}), Tensor::zeros(DType::f32, {4})}, outputs(1);
    auto best = compete({[&] { executable->run(inputs, outputs); }}, 20, 20000);
    std::printf("a run of a tiny graph: %.0f ns\n", best[0] * 1e9);
}

// 784-512-512-10 with cross-entropy and Adam-like updates.
std::unique_ptr<ir::Graph> training_step() {
    const DType f = DType::f32;
    return graph_with({{f, {32, 784}},
                       {f, {32, 10}},
                       {f, {512, 784}},
                       {f, {512}},
                       {f, {512, 512}},
                       {f, {512}},
                       {f, {10, 512}},
                       {f, {10}}},
                      [](auto& b, auto& x) {
                          auto layer = [](const Expr& in, const Expr& w, const Expr& bias) {
                              return call("matmul", {in, w.transpose({1, 0})}) + bias;
                          };
                          Expr h1 = call("relu", {layer(x[0], x[2], x[3])}), h2 = call("relu", {layer(h1, x[4], x[5])});
                          Expr logits = layer(h2, x[6], x[7]), log = call("log_softmax", {logits, -1});
                          Expr loss = -call("mean", {call("sum", {log * x[1], -1})});
                          Expr d = (call("exp", {log}) - x[1]) / 32.0;
                          auto weight_gradient = [](const Expr& dy, const Expr& in) {
                              return call("matmul", {dy.transpose({1, 0}), in});
                          };
                          Expr d2 = call("relu_grad", {call("matmul", {d, x[6]}), h2});
                          Expr d1 = call("relu_grad", {call("matmul", {d2, x[4]}), h1});
                          Expr gradients[] = {weight_gradient(d1, x[0]), d1.sum({0}),
                                              weight_gradient(d2, h1),   d2.sum({0}),
                                              weight_gradient(d, h2),    d.sum({0})};
                          std::vector<Expr> results{loss};
                          for (size_t i = 0; i < 6; ++i) results.push_back(x[i + 2] - gradients[i] * 0.01);
                          return b.list(results).value();
                      });
}

void compile_times() {
    char folder[] = "/tmp/lunaria-bench-XXXXXX";
    if (!mkdtemp(folder)) return;
    setenv("XDG_CACHE_HOME", folder, 1);
    auto graph = training_step();
    graph::CompileOptions options;
    for (size_t i = 0; i < 6; ++i) options.donations.push_back({i + 2, i + 1});
    graph::forget_kernels();
    const double cold = seconds([&] { graph::compile(*graph, options); }, 1);
    graph::forget_kernels();
    const double disk = seconds([&] { graph::compile(*graph, options); }, 1);
    const double warm = seconds([&] { graph::compile(*graph, options); }, 1);
    auto executable = graph::compile(*graph, options);
    std::filesystem::remove_all(folder);
    std::printf("compiling an MLP's training step: %.1f ms, from disk %.1f ms, in the process %.1f ms\n", cold * 1e3,
                disk * 1e3, warm * 1e3);
    std::vector<Tensor> inputs, outputs(7);
    for (const ir::Node* p : graph->parameters())
        inputs.push_back(Tensor::full(p->type.tensor.dtype, p->type.tensor.shape, 0.01));
    auto plain = graph::compile(*graph, {.donations = options.donations, .generate = false});
    auto best = compete({[&] { executable->run(inputs, outputs); }, [&] { plain->run(inputs, outputs); }}, 15, 10);
    std::printf("a training step: %.0f us, without generated kernels %.0f us\n%s", best[0] * 1e6, best[1] * 1e6,
                executable->describe().c_str());
}

}  // namespace

int main(int count, char** words) {
    set_current_device(&cpu::device());
    if (count > 1) set_num_threads(std::atoi(words[1]));
    std::printf("%d threads\n", num_threads());
    compile_times();
    overhead();
    for (int64_t n : {int64_t{16} << 10, int64_t{4} << 20, int64_t{16} << 20}) chain(n);
}
