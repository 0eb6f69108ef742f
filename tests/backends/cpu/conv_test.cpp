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

}  // namespace
}  // namespace lunaria
