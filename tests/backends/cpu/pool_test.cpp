// Windows of two by two have loops of their own: equal elements and NaN must end up where the plain kernel puts them.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backends/cpu/device.h"
#include "core/op.h"

namespace lunaria {
namespace {

TEST(PoolTest, two_by_two_windows_agree_with_the_plain_kernel_on_ties_and_nan) {
    std::mt19937 random(1);
    Tensor x = Tensor::empty(DType::f32, {3, 9, 20});
    const double values[] = {0.0, -0.0, 1.0, 1.0, 2.0, -INFINITY, INFINITY, NAN};
    for (int64_t i = 0; i < x.size(); ++i) x.set_at(i, values[random() % 8]);
    auto pair = [](int64_t n) { return Value::ints(Shape{n, n}); };
    Tensor dout = Tensor::empty(DType::f32, {3, 4, 10});
    for (int64_t i = 0; i < dout.size(); ++i) dout.set_at(i, static_cast<double>(i + 1));
    for (const char* name : {"max_window", "argmax_window", "max_window_grad"}) {
        const Op& op = registry().get(name);
        std::vector<Value> args{Value(x), pair(2), pair(2), pair(0), pair(1), Value(false)};
        if (op.name() == "max_window_grad") args.insert(args.begin(), Value(dout));
        set_current_device(&cpu::plain_device());
        Tensor plain = run(op, args).tensor();
        set_current_device(&cpu::device());
        Tensor fast = run(op, args).tensor();
        ASSERT_EQ(fast.shape(), plain.shape());
        for (int64_t i = 0; i < fast.size(); ++i) {
            if (std::isnan(plain.at(i)))
                EXPECT_TRUE(std::isnan(fast.at(i))) << name << ' ' << i;
            else
                EXPECT_EQ(fast.at(i), plain.at(i)) << name << ' ' << i;
        }
    }
}

}  // namespace
}  // namespace lunaria
