// Windows of two by two have loops of their own: equal elements and NaN must end up where the plain kernel puts them.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backends/cpu/device.h"
#include "backends/cpu/elementwise.h"
#include "core/operator/op.h"

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

TEST(PoolTest, windows_along_a_line_agree_with_the_plain_kernel_on_every_instruction_set) {
    std::mt19937 random(3);
    const double values[] = {0.0, -0.0, 1.0, -1.0, 2.0, -INFINITY, INFINITY, -7.0};
    const cpu::Isa before = cpu::current_isa();
    const Op& op = registry().get("max_window");
    auto one = [](int64_t n) { return Value::ints(Shape{n}); };
    for (const DType dtype : {DType::f32, DType::f64, DType::i32})
        for (const int64_t size : {1, 4, 31, 65, 200})
            for (const int64_t kernel : {1, 2, 3, 4, 5, 9})
                for (const int64_t stride : {1, 2, 3})
                    for (const int64_t dilation : {1, 2})
                        for (const int64_t padding : {int64_t{0}, kernel / 2}) {
                            // Of padding alone there is no largest.
                            if (size < dilation || size + 2 * padding < (kernel - 1) * dilation + 1) continue;
                            Tensor x = Tensor::empty(dtype, {2, 3, size});
                            for (int64_t i = 0; i < x.size(); ++i)
                                x.set_at(i, dtype == DType::i32  ? static_cast<double>(random() % 100) - 50
                                            : random() % 53 == 0 ? NAN
                                                                 : values[random() % 8]);
                            const std::vector<Value> args{Value(x),     one(kernel),   one(stride),
                                                          one(padding), one(dilation), Value(kernel == 4)};
                            set_current_device(&cpu::plain_device());
                            const Tensor plain = run(op, args).tensor();
                            set_current_device(&cpu::device());
                            for (cpu::Isa isa : {cpu::Isa::v2, cpu::Isa::avx2, cpu::Isa::avx512}) {
                                if (!cpu::isa_available(isa)) continue;
                                cpu::set_isa(isa);
                                const Tensor fast = run(op, args).tensor();
                                for (int64_t i = 0; i < fast.size(); ++i)
                                    ASSERT_TRUE(fast.at(i) == plain.at(i) ||
                                                (std::isnan(fast.at(i)) && std::isnan(plain.at(i))))
                                        << name_of(dtype) << ' ' << size << " by " << kernel << " stride " << stride
                                        << " dilation " << dilation << " padding " << padding << " at " << i;
                            }
                        }
    cpu::set_isa(before);
}

TEST(PoolTest, windows_of_channels_agree_with_the_plain_kernel_on_nan) {
    std::mt19937 random(2);
    const double values[] = {0.0, 1.0, 2.0, -3.0, -INFINITY, 5.0, INFINITY, -1.0};
    for (const double special : {4.0, static_cast<double>(NAN)}) {
        Tensor x = Tensor::empty(DType::f32, {2, 5, 7, 203});
        for (int64_t i = 0; i < x.size(); ++i) x.set_at(i, random() % 97 == 0 ? special : values[random() % 8]);
        auto pair = [](int64_t n) { return Value::ints(Shape{n, n}); };
        const Op& op = registry().get("max_window_last");
        const std::vector<Value> args{Value(x), pair(3), pair(2), pair(1), pair(1), Value(false)};
        set_current_device(&cpu::plain_device());
        const Tensor plain = run(op, args).tensor();
        set_current_device(&cpu::device());
        const Tensor fast = run(op, args).tensor();
        ASSERT_EQ(fast.shape(), plain.shape());
        for (int64_t i = 0; i < fast.size(); ++i)
            ASSERT_TRUE(fast.at(i) == plain.at(i) || (std::isnan(fast.at(i)) && std::isnan(plain.at(i)))) << i;
    }
}

}  // namespace
}  // namespace lunaria
