// Operators called by several threads at once.
#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <thread>

#include "backends/cpu/device.h"
#include "core/ops/sample.h"
#include "core/random.h"

namespace lunaria {
namespace {

struct Task {
    std::string name;
    std::function<Value()> run;
};

// Each task, done by four threads at once, gives what it gives alone.
void expect_same_at_once(const std::vector<Task>& tasks) {
    std::vector<Value> alone;
    for (const Task& task : tasks) alone.push_back(task.run());
    // As at the very first call: the kernels that were asked for last are those of another device.
    for (auto& op : registry().all()) {
        size_t count = 0;
        op->kernels(cpu::plain_device(), count);
    }
    std::vector<std::vector<Value>> together(4);
    {
        std::barrier start(static_cast<std::ptrdiff_t>(together.size()));
        std::vector<std::jthread> threads;
        for (auto& mine : together)
            threads.emplace_back([&] {
                for (const Task& task : tasks) {
                    start.arrive_and_wait();
                    mine.push_back(task.run());
                }
            });
    }
    for (auto& mine : together)
        for (size_t i = 0; i < tasks.size(); ++i) EXPECT_TRUE(same_value(mine[i], alone[i])) << tasks[i].name;
}

class Executor : public testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }
};

TEST_F(Executor, several_threads_may_call_any_operator_at_once) {
    std::vector<Task> tasks;
    for (auto& entry : registry().all()) {
        const Op& op = *entry;
        if (op.side_effect != Effect::none || op.host_fn) continue;
        for (const char* sample : op.samples)
            tasks.push_back(
                {str(op.name(), ": ", sample), [&op, args = sample_args(op, sample, 9)] { return run(op, args); }});
    }
    expect_same_at_once(tasks);
}

Tensor noise(const Shape& shape) {
    Tensor t = Tensor::empty(DType::f32, shape);
    for (int64_t i = 0; i < t.size(); ++i)
        t.data<float>()[i] = static_cast<float>(philox(4, static_cast<uint64_t>(i), 0)[0]) * 0x1p-31f - 1;
    return t;
}

// Enough work for the pool, for OpenBLAS and for oneDNN.
TEST_F(Executor, several_threads_may_share_the_pool) {
    Tensor x = noise({512, 1024}), w = noise({1024, 64}), images = noise({8, 16, 32, 32}),
           filters = noise({16, 16, 3, 3});
    auto task = [](const char* op, std::vector<Arg> args) -> Task {
        return {op, [op, args] { return eager_builder().call_args(op, args).value(); }};
    };
    expect_same_at_once({task("exp", {x}), task("sum", {x}), task("sum", {x, 0}), task("softmax", {x}),
                         task("transpose", {x}), task("matmul", {x, w}), task("conv2d", {images, filters})});
}

}  // namespace
}  // namespace lunaria
