// Images with few channels have loops of their own, with neighbours of a row or channels as lanes: every width, height
// and number of channels at which they change their ways gives what the plain kernel gives.
#include <gtest/gtest.h>

#include <random>

#include "backends/cpu/device.h"
#include "backends/cpu/elementwise.h"
#include "core/operator/op.h"

namespace lunaria {
namespace {

Tensor random_images(const Shape& shape, std::mt19937& random) {
    Tensor t = Tensor::empty(DType::f32, shape);
    std::uniform_real_distribution<double> number(-1, 1);
    for (int64_t i = 0; i < t.size(); ++i) t.set_at(i, number(random));
    return t;
}

TEST(ConvTest, small_images_agree_with_the_plain_kernel_on_every_instruction_set) {
    const cpu::Isa before = cpu::current_isa();
    std::mt19937 random(1);
    for (const cpu::Isa isa : {cpu::Isa::v2, cpu::Isa::avx2, cpu::Isa::avx512}) {
        if (!cpu::isa_available(isa)) continue;
        cpu::set_isa(isa);
        for (const int64_t outputs : {1, 6, 8, 16, 23, 32})
            for (const int64_t width : {8, 9, 14, 33})
                for (const int64_t height : {7, 40})
                    for (const bool biased : {false, true}) {
                        const int64_t inputs = 1 + outputs % 5, batch = 1 + width % 2;
                        std::vector<Value> args{Value(random_images({batch, inputs, height, width}, random)),
                                                Value(random_images({outputs, inputs, 3, 5}, random)),
                                                biased ? Value(random_images({outputs}, random)) : Value(),
                                                Value(int64_t{1}),
                                                Value(std::string("valid")),
                                                Value(int64_t{0}),
                                                Value(int64_t{1}),
                                                Value(int64_t{1})};
                        const Op& op = registry().get("conv2d");
                        set_current_device(&cpu::plain_device());
                        const Tensor plain = run(op, args).tensor();
                        set_current_device(&cpu::device());
                        const Tensor fast = run(op, args).tensor();
                        for (int64_t i = 0; i < fast.size(); ++i)
                            ASSERT_NEAR(fast.at(i), plain.at(i), 1e-5)
                                << name_of(isa) << ", " << inputs << " to " << outputs << " channels, " << height
                                << " by " << width << ", element " << i;
                    }
    }
    cpu::set_isa(before);
}

// Convolutions of f64 and their gradients, in parts and whole; about 1 s.
TEST(ConvTest, wide_numbers_agree_with_the_plain_kernel) {
    std::mt19937 random(2);
    auto numbers = [&](const Shape& shape) { return random_images(shape, random).cast(DType::f64); };
    auto run_on = [](Device& device, const char* op, const std::vector<Value>& args) {
        set_current_device(&device);
        return run(registry().get(op), args).tensor();
    };
    auto compare = [&](const char* op, const std::vector<Value>& args) {
        const Tensor plain = run_on(cpu::plain_device(), op, args), fast = run_on(cpu::device(), op, args);
        ASSERT_EQ(plain.shape(), fast.shape());
        for (int64_t i = 0; i < fast.size(); ++i) ASSERT_NEAR(fast.at(i), plain.at(i), 1e-9) << op << " element " << i;
    };
    struct Case {
        int64_t batch, groups, in, out, side, kernel, stride, padding, dilation;
    };
    for (const Case& c :
         {Case{1, 1, 3, 4, 9, 3, 1, 1, 1}, Case{3, 2, 4, 6, 12, 3, 2, 2, 1}, Case{2, 1, 2, 3, 20, 5, 3, 7, 2},
          Case{2, 4, 4, 4, 7, 3, 1, 0, 2}, Case{1, 1, 9, 2, 30, 9, 1, 4, 1}, Case{1, 1, 4, 2, 100, 6, 2, 3, 1}}) {
        const Tensor x = numbers({c.batch, c.in, c.side, c.side + 1});
        const Tensor w = numbers({c.out, c.in / c.groups, c.kernel, c.kernel}), bias = numbers({c.out});
        const Value stride(c.stride), padding(c.padding), dilation(c.dilation), groups(c.groups);
        const std::vector<Value> args{Value(x), Value(w), Value(bias), stride, Value(std::string("pad")),
                                      padding,  dilation, groups};
        compare("conv2d", args);
        const Tensor dy = numbers(run_on(cpu::device(), "conv2d", args).shape());
        const Value sizes = Value::ints({padding.integer(), padding.integer(), padding.integer(), padding.integer()});
        compare("conv_input_grad", {Value(dy), Value(w), Value::ints({c.batch, c.in, c.side, c.side + 1}), stride,
                                    sizes, dilation, groups});
        compare("conv_weight_grad", {Value(x), Value(dy), Value::ints({c.out, c.in / c.groups, c.kernel, c.kernel}),
                                     stride, sizes, dilation, groups});
    }
    compare("conv1d", {Value(numbers({2, 3, 5000})), Value(numbers({4, 3, 31})), Value(), Value(int64_t{2}),
                       Value(std::string("valid")), Value(int64_t{0}), Value(int64_t{3}), Value(int64_t{1})});
    compare("conv3d", {Value(numbers({2, 2, 5, 6, 7})), Value(numbers({3, 2, 2, 3, 3})), Value(), Value(int64_t{1}),
                       Value(std::string("pad")), Value(int64_t{1}), Value(int64_t{1}), Value(int64_t{1})});
}

}  // namespace
}  // namespace lunaria
