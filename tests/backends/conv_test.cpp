#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "backends/cpu/device.h"
#include "core/operator/op.h"
#include "core/random/random.h"
#include "core/threads/threads.h"

namespace lunaria {
namespace {

Tensor random(const Shape& shape, uint64_t stream) {
    Tensor t = Tensor::empty(DType::f32, shape);
    for (int64_t i = 0; i < t.size(); ++i)
        t.set_at(i, 2.0 * philox(stream, static_cast<uint64_t>(i), 3)[0] * 0x1p-32 - 1.0);
    return t;
}

Value apply(std::string_view op, std::initializer_list<Arg> args) { return eager_builder().call(op, args).value(); }

class Windows : public ::testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }

    // Runs on both devices and compares.
    static Tensor agreed(std::string_view op, std::initializer_list<Arg> args, double tolerance) {
        set_current_device(&cpu::plain_device());
        Tensor plain = apply(op, args).tensor();
        set_current_device(&cpu::device());
        Tensor fast = apply(op, args).tensor();
        EXPECT_EQ(fast.shape(), plain.shape());
        for (int64_t i = 0; i < plain.size(); ++i) {
            double x = fast.at(i), y = plain.at(i);
            if (x == y || (std::isnan(x) && std::isnan(y))) continue;
            EXPECT_NEAR(x, y, tolerance * (1 + std::abs(y))) << op << " element " << i;
            if (std::abs(x - y) > tolerance * (1 + std::abs(y))) break;
        }
        return fast;
    }
};

TEST_F(Windows, convolutions_and_their_gradients_agree_with_the_plain_kernels) {
    struct Case {
        int64_t batch, in, out, groups, height, width, kernel_height, kernel_width, stride, dilation;
        Shape padding;
    };
    const Case cases[] = {
        {2, 1, 6, 1, 28, 28, 5, 5, 1, 1, {0, 0, 0, 0}},  {1, 6, 16, 1, 14, 14, 5, 5, 1, 1, {0, 0, 0, 0}},
        {2, 16, 32, 1, 15, 9, 3, 3, 1, 1, {1, 1, 1, 1}}, {1, 64, 64, 1, 7, 7, 3, 3, 2, 1, {1, 1, 1, 1}},
        {2, 3, 8, 1, 20, 20, 7, 7, 2, 1, {3, 3, 3, 3}},  {2, 32, 48, 1, 6, 5, 1, 1, 1, 1, {0, 0, 0, 0}},
        {2, 32, 48, 1, 7, 5, 1, 1, 2, 1, {0, 0, 0, 0}},  {1, 8, 8, 8, 10, 10, 3, 3, 1, 1, {1, 1, 1, 1}},
        {2, 8, 12, 4, 9, 11, 3, 2, 1, 2, {2, 1, 0, 2}},  {1, 5, 7, 1, 6, 6, 3, 3, 3, 1, {0, 2, 1, 0}},
        {1, 3, 2, 1, 4, 4, 4, 4, 1, 1, {0, 0, 0, 0}},    {3, 17, 19, 1, 5, 6, 2, 3, 1, 1, {1, 0, 2, 0}},
    };
    for (const Case& s : cases) {
        Tensor x = random({s.batch, s.in, s.height, s.width}, 1);
        Tensor w = random({s.out, s.in / s.groups, s.kernel_height, s.kernel_width}, 2), bias = random({s.out}, 3);
        for (int repeat = 0; repeat < 2; ++repeat) {  // the second time from the cache of primitives
            Tensor y = agreed("conv2d", {x, w, bias, s.stride, "pad", s.padding, s.dilation, s.groups}, 1e-5);
            agreed("conv2d", {x, w, Value(), s.stride, "pad", s.padding, s.dilation, s.groups}, 1e-5);
            agreed("conv_input_grad", {y, w, x.shape(), s.stride, s.padding, s.dilation, s.groups}, 1e-4);
            agreed("conv_weight_grad", {x, y, w.shape(), s.stride, s.padding, s.dilation, s.groups}, 1e-4);
        }
    }
}

TEST_F(Windows, batches_cut_into_parts_agree_with_the_plain_kernels_for_any_number_of_threads) {
    const int before = num_threads();
    // One image, parts of one image, parts of several, and a part for each thread or a few too many.
    for (const int threads : {1, 2, 3})
        for (const int64_t batch : {1, 2, 3, 4, 7, 12}) {
            set_num_threads(threads);
            Tensor x = random({batch, 16, 30, 31}, 1), w = random({24, 16, 3, 3}, 2), bias = random({24}, 3);
            Tensor y = agreed("conv2d", {x, w, bias, 1, "pad", 1, 1, 1}, 1e-5);
            agreed("conv_input_grad", {y, w, x.shape(), 1, 1, 1, 1}, 1e-4);
            Tensor wide = random({batch, 32, 72, 72}, 4), points = random({8, 32, 1, 1}, 5);
            agreed("conv2d", {wide, points, Value(), 1, "valid", 0, 1, 1}, 1e-5);
        }
    // Images of more than a megabyte.
    for (const int64_t side : {96, 97}) {
        set_num_threads(2);
        Tensor x = random({3, 2, side, side}, 6), w = random({40, 2, 3, 3}, 7);
        agreed("conv2d", {x, w, Value(), 1, "same", 0, 1, 1}, 1e-5);
    }
    set_num_threads(before);
}

TEST_F(Windows, kernels_of_one_pixel_with_a_stride_agree_with_the_plain_kernels) {
    const int before = num_threads();
    struct Case {
        std::string_view op;
        Shape image, kernel, stride, none;
    };
    // Strides that end at the last pixel and before it, that differ, and that are one along some axes.
    const Case cases[] = {{"conv1d", {9}, {1}, {4}, {0}},
                          {"conv2d", {8, 8}, {1, 1}, {2, 2}, {0, 0}},
                          {"conv2d", {7, 10}, {1, 1}, {3, 1}, {0, 0}},
                          {"conv2d", {5, 6}, {1, 1}, {1, 4}, {0, 0}},
                          {"conv3d", {3, 4, 5}, {1, 1, 1}, {2, 1, 3}, {0, 0, 0}}};
    for (const int threads : {1, 2, 3})
        for (const int64_t batch : {1, 2, 5})
            for (const DType dtype : {DType::f32, DType::f64})
                for (const Case& s : cases) {
                    set_num_threads(threads);
                    Shape image{batch, 17}, kernel{24, 17};
                    for (int64_t n : s.image) image.push_back(n);
                    for (int64_t n : s.kernel) kernel.push_back(n);
                    const Tensor x = random(image, 1).cast(dtype), w = random(kernel, 2).cast(dtype),
                                 bias = random({24}, 3).cast(dtype);
                    const Tensor y = agreed(s.op, {x, w, bias, s.stride, "valid", 0, 1, 1}, 1e-5);
                    agreed(s.op, {x, w, Value(), s.stride, "valid", 0, 1, 1}, 1e-5);
                    Shape padding = s.none;
                    for (int64_t n : s.none) padding.push_back(n);
                    agreed("conv_input_grad", {y, w, image, s.stride, padding, s.kernel, 1}, 1e-4);
                    agreed("conv_weight_grad", {x, y, kernel, s.stride, padding, s.kernel, 1}, 1e-4);
                }
    set_num_threads(before);
}

TEST_F(Windows, threads_of_the_user_convolve_at_the_same_time) {
    Tensor x = random({4, 16, 40, 40}, 1), w = random({32, 16, 3, 3}, 2);
    auto convolve = [&] { return apply("conv2d", {x, w, Value(), 1, "same", 0, 1, 1}).tensor(); };
    const Tensor alone = convolve();
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 5; ++i) {
                const Tensor y = convolve();
                if (std::memcmp(y.raw(), alone.raw(), y.nbytes()) != 0) ++wrong;
            }
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
}

TEST_F(Windows, an_empty_batch_convolves_to_an_empty_batch) {
    Tensor y = apply("conv2d", {Tensor::zeros(DType::f32, {0, 3, 8, 8}), random({4, 3, 3, 3}, 1)}).tensor();
    EXPECT_EQ(y.shape(), (Shape{0, 4, 6, 6}));
    Tensor dw =
        apply("conv_weight_grad", {Tensor::zeros(DType::f32, {0, 3, 8, 8}), y, Shape{4, 3, 3, 3}, 1, 0, 1, 1}).tensor();
    for (int64_t i = 0; i < dw.size(); ++i) ASSERT_EQ(dw.at(i), 0.0);
}

TEST_F(Windows, wrong_geometry_is_refused_with_the_sizes) {
    Tensor x = random({1, 3, 8, 8}, 1), w = random({4, 3, 3, 3}, 2);
    auto message = [&](std::string_view op, std::initializer_list<Arg> args) -> std::string {
        try {
            apply(op, args);
        } catch (const Error& e) {
            return e.what();
        }
        return "no error";
    };
    EXPECT_NE(message("conv2d", {x, random({4, 3, 9, 9}, 2)}).find("kernel is larger"), std::string::npos);
    EXPECT_NE(message("conv2d", {x, random({4, 2, 3, 3}, 2)}).find("3 channels"), std::string::npos);
    EXPECT_NE(message("conv2d", {x, w, Value(), 0}).find("stride must be positive"), std::string::npos);
    EXPECT_NE(message("conv2d", {x, w, Value(), 1, "pad", -5}).find("padding"), std::string::npos);
    EXPECT_NE(message("conv2d", {x, w, Value(), 1, "valid", 1}).find("pad_mode"), std::string::npos);
    EXPECT_NE(message("max_pool2d", {x, 0}).find("kernel_size must be positive"), std::string::npos);
    EXPECT_NE(message("max_pool2d", {x, 2, 2, 2}).find("half of the kernel"), std::string::npos);
    EXPECT_NE(message("max_pool2d", {random({1, 1, 1, 1}, 1), 2, 1, 1, 2}).find("nothing but padding"),
              std::string::npos);
    Tensor at = Tensor::full(DType::i64, {1, 1, 1, 1}, 9999);
    EXPECT_NE(message("max_unpool2d", {random({1, 1, 1, 1}, 1), at, 2}).find("index 9999 is out of range"),
              std::string::npos);
}

// Rows shorter than a register, of whole registers and a rest, of several of them; channels and rows left over.
TEST_F(Windows, images_with_few_channels_agree_with_the_plain_kernel) {
    for (int64_t width : {7, 14, 20, 32, 37, 70})
        for (int64_t channels : {1, 3, 6})
            for (int64_t outputs : {1, 6, 13, 16}) {
                Tensor x = random({2, channels, 9, width}, 1), w = random({outputs, channels, 3, 5}, 2);
                agreed("conv2d", {x, w, random({outputs}, 3), 1, "valid"}, 1e-5);
                agreed("conv2d", {x, w, Value(), 1, "valid"}, 1e-5);
            }
}

TEST_F(Windows, pooling_lets_nan_through_and_knows_minus_infinity) {
    Tensor x = random({1, 1, 6, 6}, 1);
    x.set_at(7, std::nan(""));
    for (int64_t stride : {1, 2, 3}) {
        Tensor y = agreed("max_pool2d", {x, 2, stride}, 0);
        EXPECT_EQ(std::isnan(y.at(0)), true) << stride;
    }
    Tensor low = Tensor::full(DType::f32, {1, 1, 4, 4}, -INFINITY);
    EXPECT_EQ(agreed("max_pool2d", {low, 2}, 0).at(0), -INFINITY);
    Tensor bytes = Tensor::full(DType::i8, {1, 4}, -128);
    EXPECT_EQ(agreed("max_pool1d", {bytes.reshaped({1, 1, 4}), 2}, 0).integer_at(0), -128);
}

TEST_F(Windows, pooling_agrees_with_the_plain_kernels) {
    Tensor x = random({2, 3, 11, 9}, 1);
    for (int64_t kernel : {1, 2, 3, 5})
        for (int64_t stride : {1, 2, 3})
            for (bool ceil_mode : {false, true}) {
                int64_t padding = kernel / 2;
                Tensor y = agreed("avg_pool2d", {x, kernel, stride, padding, ceil_mode, false}, 1e-5);
                agreed("avg_pool2d", {x, kernel, stride, padding, ceil_mode, true}, 1e-5);
                agreed("avg_pool_grad", {y, Shape{11, 9}, kernel, stride, padding, ceil_mode, false, 0}, 1e-5);
                Tensor most = agreed("max_pool2d", {x, kernel, stride, padding, 1, false, ceil_mode}, 0);
                agreed("max_window_grad",
                       {random(most.shape(), 2), x, Shape{kernel, kernel}, Shape{stride, stride},
                        Shape{padding, padding, padding, padding}, Shape{1, 1}, ceil_mode},
                       1e-6);
                agreed("argmax_window", {x, Shape{kernel, kernel}, stride, padding, Shape{1, 1}, ceil_mode}, 0);
            }
}

// Neither overflows nor walks through a window of which nearly all is padding.
TEST_F(Windows, kernels_may_be_far_larger_than_the_input) {
    constexpr int64_t kHuge = int64_t{1} << 40;
    Tensor x = random({1, 1, 3, 4}, 1);
    double largest = -INFINITY;
    for (int64_t i = 0; i < x.size(); ++i) largest = std::max(largest, x.at(i));
    EXPECT_EQ(agreed("max_pool2d", {x, kHuge, 1, kHuge / 2}, 0).at(0), largest);
    EXPECT_NEAR(agreed("avg_pool2d", {x, kHuge, kHuge, kHuge / 2}, 1e-20).at(0), 0, 1e-20);
    EXPECT_THROW(apply("unfold", {x, kHuge, kHuge, kHuge, 1}), Error);
    EXPECT_THROW(apply("fold", {random({1, 4, 1}, 1), kHuge, kHuge, 1, kHuge, 1}), Error);
    EXPECT_THROW(apply("conv2d", {x, x, Value(), 1, "valid", 0, 1, INT64_MAX}), Error);
}

TEST_F(Windows, unpooling_undoes_pooling_at_the_maxima) {
    Tensor x = random({2, 2, 4, 6}, 5);
    Value both = apply("max_pool2d", {x, 2, Value(), 0, 1, true});
    Tensor back = apply("max_unpool2d", {both.items()[0].tensor(), both.items()[1].tensor(), 2}).tensor();
    ASSERT_EQ(back.shape(), x.shape());
    int kept = 0;
    for (int64_t i = 0; i < x.size(); ++i) {
        if (back.at(i) == 0) continue;
        EXPECT_EQ(back.at(i), x.at(i));
        ++kept;
    }
    EXPECT_EQ(kept, 2 * 2 * 2 * 3);
}

}  // namespace
}  // namespace lunaria
