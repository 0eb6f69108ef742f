// The test device: memory that the host cannot touch, work that is done later, failures that are told later.
#include "backends/separate/device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "backends/cpu/device.h"
#include "core/base/error.h"
#include "core/operator/op.h"
#include "core/run/placement.h"

namespace lunaria {

namespace {

Device& there() { return separate::device(); }

class SeparateTest : public ::testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }
};

Tensor numbers(int64_t count) {
    Tensor t = Tensor::empty(DType::f32, {count});
    for (int64_t i = 0; i < count; ++i) t.data<float>()[i] = static_cast<float>(i) + 0.5f;
    return t;
}

std::atomic<bool> may_go{false};

bool wait_for_host(const KernelCall& call) {
    while (!may_go) std::this_thread::yield();
    call.out[0].data<float>()[0] = call.tensor(0).data<float>()[0] + 1;
    return true;
}
bool fail(const KernelCall&) { throw value_error("add", "it went wrong"); }
bool decline(const KernelCall&) { return false; }
bool fine(const KernelCall&) { return true; }

size_t launch(Kernel kernel, const Tensor& in, std::span<Tensor> out) {
    const std::vector<Value> args{Value(in), Value(in)};
    const Kernel kernels[] = {kernel};
    static std::vector<std::vector<Kernel>> kept;  // as lists of kernels are
    kept.push_back({kernels, kernels + 1});
    KernelCall call{registry().get("add"), args, out, DType::f32};
    return there().launch(kept.back(), 0, call);
}

TEST_F(SeparateTest, elements_come_back_as_they_went) {
    const Tensor t = numbers(1000);
    const Tensor copy = t.to(&there());
    EXPECT_EQ(copy.device(), &there());
    const Tensor back = copy.to_host();
    for (int64_t i = 0; i < t.size(); ++i) ASSERT_EQ(back.data<float>()[i], t.data<float>()[i]);
    EXPECT_EQ(copy.at(7), 7.5);
}

TEST_F(SeparateTest, a_strided_view_of_another_dtype_comes_back_in_its_order) {
    const Tensor t = numbers(6).reshaped({2, 3});
    const Tensor turned = t.to(&there()).view({3, 2}, {1, 3});
    const Tensor back = turned.cast(DType::f64).to_host();
    for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 2; ++j) EXPECT_EQ(back.at(i * 2 + j), t.at(j * 3 + i));
}

TEST_F(SeparateTest, the_host_cannot_touch_the_memory) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    const auto touch = [] {
        const Tensor t = numbers(4).to(&there());
        there().synchronize();
        volatile float* at = t.data<float>();
        std::exit(at[1] > 0 ? 0 : 1);
    };
    EXPECT_DEATH(touch(), "");
}

TEST_F(SeparateTest, a_call_returns_before_the_kernel_has_run) {
    const Tensor in = numbers(1).to(&there());
    Tensor out = Tensor::empty(DType::f32, {1}, &there());
    Tensor first = Tensor::empty(DType::f32, {1}, &there());
    launch(fine, in, {&first, 1});  // the first call of a kind waits
    may_go = false;
    launch(wait_for_host, in, {&out, 1});
    const uint64_t event = there().record();
    EXPECT_LT(there().done_at(event), 0);
    may_go = true;
    EXPECT_EQ(out.at(0), 1.5);
    there().wait(event);
    EXPECT_GT(there().done_at(event), 0);
}

TEST_F(SeparateTest, a_failure_is_told_by_the_next_call_that_waits) {
    const Tensor in = numbers(1).to(&there());
    Tensor out = Tensor::empty(DType::f32, {1}, &there());
    launch(fine, in, {&out, 1});
    launch(fail, in, {&out, 1});
    EXPECT_THROW(there().synchronize(), Error);
    EXPECT_NO_THROW(there().synchronize());
    EXPECT_EQ(in.at(0), 0.5);
}

TEST_F(SeparateTest, a_kernel_that_declines_is_known_at_once_when_the_call_is_new) {
    const Tensor in = numbers(1).cast(DType::i16).to(&there());
    Tensor out = Tensor::empty(DType::i16, {1}, &there());
    const std::vector<Value> args{Value(in), Value(in)};
    const Kernel kernels[] = {decline};
    KernelCall call{registry().get("sub"), args, {&out, 1}, DType::i16};
    EXPECT_EQ(there().launch(kernels, 0, call), 1u);
}

TEST_F(SeparateTest, tensors_on_two_devices_are_refused_and_scalars_go_along) {
    const Tensor here = numbers(3), other = here.to(&there());
    const Op& add = registry().get("add");
    EXPECT_THROW(run(add, {Value(here), Value(other)}), Error);
    const Tensor sum = run(add, {Value(other), Value(Tensor::scalar(DType::f32, 2))}).tensor();
    EXPECT_EQ(sum.device(), &there());
    EXPECT_EQ(sum.at(2), 4.5);
}

TEST_F(SeparateTest, released_memory_is_used_again) {
    const auto live = there().memory().live;
    const void* first = Tensor::empty(DType::f32, {5000}, &there()).raw();
    EXPECT_EQ(there().memory().live, live);
    EXPECT_EQ(Tensor::empty(DType::f32, {5000}, &there()).raw(), first);
    there().empty_cache();
    const Tensor again = Tensor::full(DType::f32, {5000}, 3).to(&there());
    EXPECT_EQ(again.at(4999), 3.0);
}

TEST_F(SeparateTest, what_no_kernel_does_the_host_does_unless_that_is_refused) {
    forget_fallbacks();
    const Tensor x = numbers(3).to(&there());
    const Op& cumsum = registry().get("cumsum");
    std::vector<Value> args{Value(x), Value(int64_t{0})};
    while (args.size() < cumsum.signature.params.size())
        args.push_back(cumsum.signature.params[args.size()].default_value);
    const Tensor sums = run(cumsum, args).tensor();
    EXPECT_EQ(sums.device(), &there());
    EXPECT_EQ(sums.at(2), 4.5);
    ASSERT_EQ(fallbacks().size(), 1u);
    EXPECT_EQ(fallbacks()[0].op, &cumsum);
    allow_fallback(false);
    EXPECT_THROW(run(cumsum, args), Error);
    allow_fallback(true);
    forget_fallbacks();
}

}  // namespace

}  // namespace lunaria
