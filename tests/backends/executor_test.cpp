// Operators called by several threads at once.
#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <thread>

#include "backends/cpu/device.h"
#include "core/ops/sample.h"
#include "core/random/random.h"
#include "core/run/consume.h"

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
        if (!op.is_repeatable() || op.host_fn) continue;
        for (const char* sample : op.samples)
            tasks.push_back(
                {str(op.name(), ": ", sample), [&op, args = sample_args(op, sample, 9)] { return run(op, args); }});
    }
    expect_same_at_once(tasks);
}

TEST_F(Executor, consuming_the_operands_gives_what_keeping_them_gives) {
    int checked = 0;
    for (auto& entry : registry().all()) {
        const Op& op = *entry;
        if (!op.is_elementwise) continue;
        ++checked;
        for (const char* sample : op.samples) {
            std::vector<Value> args = sample_args(op, sample, 9), kept = args, owned;
            for (const Value& v : args) owned.push_back(v.is_tensor() ? Value(v.tensor().copy()) : v);
            const Value expected = run(op, args);
            EXPECT_TRUE(same_value(run_consuming(op, args), expected)) << op.name() << ": " << sample;
            for (size_t i = 0; i < args.size(); ++i)
                EXPECT_TRUE(same_value(kept[i], owned[i])) << "shared operands stay";
            EXPECT_TRUE(same_value(run_consuming(op, owned), expected)) << op.name() << ": " << sample;
        }
    }
    EXPECT_GT(checked, 50);
}

TEST_F(Executor, only_an_operand_that_nobody_else_has_gives_its_memory) {
    const Op& add = registry().get("add");
    Tensor a = Tensor::full(DType::f32, {3, 4}, 1), b = Tensor::full(DType::f32, {4}, 2);
    const void *of_a = a.raw(), *of_b = b.raw();
    std::vector<Value> args{Value(a), Value(std::move(b)), Value(1)};
    args.resize(add.signature.params.size(), Value(1));
    Value shared = run_consuming(add, args);
    EXPECT_NE(shared.tensor().raw(), of_a);
    EXPECT_NE(shared.tensor().raw(), of_b) << "too small";
    a = Tensor();
    Value sole = run_consuming(add, args);
    EXPECT_EQ(sole.tensor().raw(), of_a);
    EXPECT_EQ(sole.tensor().at(11), 3);
    std::vector<Value> parameter{sole, Value(1.0)};
    parameter.resize(add.signature.params.size(), Value(1));
    sole = Value();
    args.clear();
    const_cast<Tensor&>(parameter[0].tensor()).set_parameter({"p", true});
    EXPECT_NE(run_consuming(add, parameter).tensor().raw(), of_a) << "parameters stay";
}

Tensor noise(const Shape& shape) {
    Tensor t = Tensor::empty(DType::f32, shape);
    for (int64_t i = 0; i < t.size(); ++i)
        t.data<float>()[i] = static_cast<float>(philox(4, static_cast<uint64_t>(i), 0)[0]) * 0x1p-31f - 1;
    return t;
}

TEST_F(Executor, operands_in_many_parts_are_consumed_as_well) {
    const Op& gelu = registry().get("gelu_erf");
    Tensor x = noise({1000003});
    std::vector<Value> args{Value(x.copy())};
    EXPECT_TRUE(same_value(run_consuming(gelu, args), run(gelu, {Value(x)})));
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
