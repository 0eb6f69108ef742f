// Memory of temporaries that programs take turns with.
#include "jit/graph/arena.h"

#include <gtest/gtest.h>

#include "backends/cpu/device.h"
#include "core/ir/builder.h"
#include "core/memory/memory.h"
#include "jit/graph/executable.h"
#include "tests/jit/graph/compare.h"

namespace lunaria::graph {
namespace {

using lunaria::testing::are_equal;
using lunaria::testing::random_tensor;

class ArenaTest : public ::testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }

    // Two products, the first of which is a temporary.
    struct Program {
        explicit Program(int64_t n, bool borrows = false) : graph("f") {
            ir::GraphBuilder builder(graph);
            const TensorType type{DType::f32, {n, n}};
            const Expr x(builder, Value(graph.add_parameter("", ir::NodeType::of(type))));
            const Expr first = call("matmul", {x, x});
            graph.result = builder.list({{call("matmul", {first, x}), call("sum", {first})}}).value();
            inputs.push_back(random_tensor(type, static_cast<uint64_t>(n)));
            CompileOptions options;
            if (borrows) options.borrowed = {0};
            executable = compile(graph, options);
        }
        std::vector<Tensor> run(const std::function<void(const std::vector<Tensor>&)>& last = {}) {
            std::vector<Tensor> outputs(2);
            executable->run(inputs, outputs, [&] {
                if (last) last(outputs);
            });
            return outputs;
        }
        ir::Graph graph;
        std::vector<Tensor> inputs;
        std::unique_ptr<Executable> executable;
    };
};

TEST_F(ArenaTest, many_programs_need_the_memory_of_the_largest) {
    constexpr int64_t kLargest = 300;
    std::vector<std::unique_ptr<Program>> programs;
    for (int64_t n = kLargest; n > kLargest - 20; --n) programs.push_back(std::make_unique<Program>(n));
    for (auto& program : programs) program->run();
    int64_t inputs = 0;
    for (const auto& program : programs) inputs += program->inputs[0].size() * 4;
    const int64_t before = memory_stats().live_bytes;
    programs.clear();
    // What went with the programs: their inputs, and one arena.
    EXPECT_LT(before - memory_stats().live_bytes - inputs, 3 * kLargest * kLargest * 4);
}

TEST_F(ArenaTest, a_program_that_runs_within_another_leaves_its_temporaries_alone) {
    Program outer(64, true), inner(63);
    const std::vector<Tensor> wanted_inner = inner.run(), wanted = Program(64).run();
    Tensor kept;
    outer.run([&](const std::vector<Tensor>& outputs) {
        EXPECT_TRUE(are_equal(inner.run(), wanted_inner));
        outer.run();
        kept = outputs[0].copy();
    });
    EXPECT_TRUE(are_equal(std::vector<Tensor>{kept}, std::vector<Tensor>{wanted[0]}));
    EXPECT_TRUE(are_equal(inner.run(), wanted_inner));
}

TEST_F(ArenaTest, a_small_program_keeps_no_large_arena) {
    ArenaShare large(64 << 20, nullptr);
    char* const at = large.data();
    large.give_back();
    ArenaShare small(1 << 20, nullptr), similar(60 << 20, nullptr);
    EXPECT_NE(small.data(), at);
    EXPECT_EQ(similar.data(), at);
    EXPECT_FALSE(large.reserve());
    similar.give_back();
    EXPECT_TRUE(large.reserve());
}

}  // namespace
}  // namespace lunaria::graph
