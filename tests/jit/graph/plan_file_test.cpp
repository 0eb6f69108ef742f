// A plan that was written and read runs as the one that was made of the graph; a damaged file is an error.
#include "jit/graph/plan_file.h"

#include <gtest/gtest.h>

#include <random>

#include "backends/cpu/device.h"
#include "core/io/stream.h"
#include "core/ir/builder.h"
#include "core/loops/kernels.h"
#include "core/random/random.h"
#include "tests/jit/graph/compare.h"

namespace lunaria::graph {
namespace {

using lunaria::testing::are_equal;
using lunaria::testing::random_tensor;

struct Case {
    const char* name;
    std::unique_ptr<ir::Graph> graph;
    CompileOptions options{};
};

template <class Make>
Case graph_with(const char* name, std::initializer_list<TensorType> types, Make make) {
    auto graph = std::make_unique<ir::Graph>(name);
    ir::GraphBuilder builder(*graph);
    std::vector<Expr> x;
    for (const TensorType& t : types) x.emplace_back(builder, Value(graph->add_parameter("", ir::NodeType::of(t))));
    graph->result = make(builder, x);
    return {name, std::move(graph)};
}

// Loops over elements, rows and points; kernels with lists of operands, several results and attributes of all kinds;
// eager steps, copies, views, constants, random numbers, donations.
std::vector<Case> cases() {
    static constexpr int64_t kRows[] = {2, 0, 1};
    using B = ir::GraphBuilder;
    using X = std::vector<Expr>;
    std::vector<Case> list;
    list.push_back(graph_with("elements", {{DType::f32, {7, 33}}, {DType::f32, {33}}}, [](B&, X& x) {
        return call("where", {call("greater", {x[0], 0.25}), call("tanh", {x[0] * x[1]}), x[0] - 1.5}).value();
    }));
    list.push_back(graph_with("rows", {{DType::f32, {9, 70}}}, [](B& b, X& x) {
        const Expr y = call("softmax", {x[0], -1});
        return b.list({{y, call("amax", {y, -1, true}), call("mean", {x[0], -1})}}).value();
    }));
    list.push_back(graph_with("points", {{DType::f32, {6, 300}}}, [](B&, X& x) {
        return call("sum", {x[0], 0}).value();
    }));
    list.push_back(
        graph_with("halves", {{DType::bf16, {3, 40}}}, [](B&, X& x) { return (call("exp", {x[0]}) * x[0]).value(); }));
    list.push_back(graph_with("integers", {{DType::i32, {90}}, {DType::i32, {90}}}, [](B& b, X& x) {
        const Expr less = call("less", {x[0], x[1]}), both = call("bitwise_and", {x[0] * x[0], x[1]});
        return b.list({{both + x[0], call("logical_and", {less, call("not_equal", {x[0], 1})})}}).value();
    }));
    list.push_back(graph_with("loops of operators", {{DType::f32, {700}}}, [](B&, X& x) {
        return (call("pow", {call("abs", {x[0]}) + 1.0, x[0]}) + call("lgamma", {x[0]}) * x[0]).value();
    }));
    list.push_back(graph_with("sums", {{DType::f32, {300, 24}}, {DType::f32, {24}}}, [](B& b, X& x) {
        const Expr y = call("tanh", {x[0] + x[1]});
        return b.list({{y, call("sum", {y * x[0], 0}), call("std", {y, -1})}}).value();
    }));
    list.push_back(graph_with("product", {{DType::f32, {64, 8}}, {DType::f32, {8, 16}}}, [](B&, X& x) {
        return call("sigmoid", {call("matmul", {x[0], x[1]}) * 2.0}).value();
    }));
    list.push_back(graph_with("network", {{DType::f32, {4, 6}}}, [](B& b, X& x) {
        const Expr w = b.constant(random_tensor({DType::f32, {5, 6}}, 3)),
                   v = b.constant(random_tensor({DType::f32, {5}}, 4));
        return call("relu", {call("dense", {x[0], w, v})}).value();
    }));
    list.push_back(graph_with("kernels", {{DType::f32, {4, 6}}}, [](B& b, X& x) {
        const Expr both[] = {x[0], call("sin", {x[0]})};
        const Expr joined = call("concat", {b.list(both), 1});
        const Expr sorted = call("sort", {joined, 1})[0];
        return b
            .list({{sorted, call("matmul", {x[0], x[0].transpose({1, 0})}),
                    call("index_select", {x[0], 0, b.constant(Tensor::from<int64_t>(kRows, {3}))})}})
            .value();
    }));
    list.push_back(graph_with("copies", {{DType::f64, {3, 4, 5}}}, [](B& b, X& x) {
        const Expr t = x[0].transpose({2, 0, 1});
        return b.list({{t.reshape({15, 4}), call("narrow", {t, 0, 1, 2})}}).value();
    }));
    list.push_back(graph_with("random", {{DType::f32, {40}}}, [](B&, X& x) {
        return (call("dropout", {x[0], 0.5, true}) + call("exp", {x[0]})).value();
    }));
    list.push_back(graph_with("update", {{DType::f32, {50}}, {DType::f32, {50}}}, [](B& b, X& x) {
        return b.list({{x[0] - x[1] * 0.1, call("sum", {x[1]})}}).value();
    }));
    list.back().options.donations = {{0, 0}};
    for (Case& c : list) c.options.keeps_sources = true;
    return list;
}

std::vector<Tensor> inputs_for(const ir::Graph& graph) {
    std::vector<Tensor> inputs;
    for (const ir::Node* p : graph.parameters()) inputs.push_back(random_tensor(p->type.tensor, 5 + inputs.size()));
    return inputs;
}

std::vector<Tensor> results_of(const Executable& executable, const ir::Graph& graph) {
    default_generator().set_seed(7);
    std::vector<Tensor> outputs(executable.output_count());
    executable.run(inputs_for(graph), outputs);
    for (Tensor& t : outputs) t = t.copy();
    return outputs;
}

std::string file_of(const Case& c, std::vector<Tensor>& constants) {
    return write_plan(plan_of(*c.graph, c.options), constants);
}

Plan read(const std::string& bytes, std::span<const Tensor> constants) {
    return read_plan(*memory_source("p.plan", bytes), constants);
}

std::string with_checksum(std::string bytes) {
    const size_t at = bytes.find('\n') + 1;
    const uint32_t sum = crc32_of(std::string_view(bytes).substr(at + 4));
    for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(sum >> (8 * i));
    return bytes;
}

class PlanFile : public ::testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }
};

TEST_F(PlanFile, plans_give_the_same_bits_when_they_were_written_and_read) {
    size_t loops = 0, kernels = 0, constants_read = 0;
    for (const Case& c : cases()) {
        SCOPED_TRACE(c.name);
        std::vector<Tensor> constants;
        const std::string bytes = file_of(c, constants);
        const auto made = compile(*c.graph, c.options), got = executable_of(read(bytes, constants));
        EXPECT_EQ(got->describe(), made->describe());
        EXPECT_TRUE(are_equal(results_of(*got, *c.graph), results_of(*made, *c.graph)));
        loops += got->stats().generated;
        kernels += got->stats().steps - got->stats().generated;
        constants_read += constants.size();
        // What was read can be written again.
        std::vector<Tensor> again;
        EXPECT_EQ(write_plan(read(bytes, constants), again), bytes);
    }
    EXPECT_TRUE(!can_generate() || loops >= 6) << loops;
    EXPECT_GE(kernels, 5u);
    EXPECT_GE(constants_read, 2u);
}

TEST_F(PlanFile, a_file_that_is_cut_off_or_changed_is_an_error) {
    for (const Case& c : cases()) {
        std::vector<Tensor> constants;
        const std::string bytes = file_of(c, constants);
        for (size_t n = 0; n < bytes.size(); n += 1 + n / 9)
            EXPECT_THROW(read(bytes.substr(0, n), constants), Error) << n;
        std::string changed = bytes;
        changed[bytes.size() / 2] ^= 1;
        EXPECT_THROW(read(changed, constants), Error);
        EXPECT_THROW(read(with_checksum(bytes + '\0'), constants), Error);
        std::vector<Tensor> others;
        for (const Tensor& t : constants) others.push_back(Tensor::zeros(t.dtype(), {t.size() + 1}));
        if (!constants.empty()) {
            EXPECT_THROW(read(bytes, others), Error);
            EXPECT_THROW(read(bytes, {}), Error);
        }
    }
}

// Whatever the bytes say behind a right checksum: an error, or a plan that stays in its memory.
TEST_F(PlanFile, no_content_makes_a_run_leave_its_memory) {
    std::mt19937_64 random(11);
    size_t refused = 0, run = 0;
    for (const Case& c : cases()) {
        std::vector<Tensor> constants;
        const std::string bytes = file_of(c, constants);
        const size_t start = bytes.find('\n') + 5;
        for (int turn = 0; turn < 25; ++turn) {
            std::string changed = bytes;
            for (uint64_t n = 1 + random() % 2; n > 0; --n) {
                char& byte = changed[start + random() % (bytes.size() - start)];
                byte = random() % 2 ? static_cast<char>(random()) : static_cast<char>(byte + (random() % 2 ? 2 : -2));
            }
            SCOPED_TRACE(str(c.name, " ", turn));
            try {
                const auto executable = executable_of(read(with_checksum(changed), constants));
                ++run;
                std::vector<Tensor> outputs(executable->output_count());
                executable->run(inputs_for(*c.graph), outputs);
            } catch (const Error&) {
                ++refused;
            }
        }
    }
    EXPECT_GT(refused, 120u);
    EXPECT_GT(run, 20u);
}

TEST_F(PlanFile, plans_without_sources_are_not_written) {
    if (!can_generate()) GTEST_SKIP() << "no code generator";
    const Case c = std::move(cases().front());
    std::vector<Tensor> constants;
    EXPECT_THROW(write_plan(plan_of(*c.graph, {}), constants), Error);
}

}  // namespace
}  // namespace lunaria::graph
