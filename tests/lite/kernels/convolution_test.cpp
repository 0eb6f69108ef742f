#include "core/lite/kernels/convolution.h"

#include "tests/lite/kernels/support.h"

namespace lunaria::lite::kernels {

namespace {

// Channels-last pictures by the definition.
std::vector<double> convolved(const ConvolutionShape& s, const std::vector<float>& x, const std::vector<float>& w) {
    const int64_t depth = s.channels / s.groups, n = s.out_channels / s.groups,
                  taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
    std::vector<double> y(static_cast<size_t>(s.batch * s.out[0] * s.out[1] * s.out[2] * s.out_channels));
    for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
        const int64_t o = i % s.out_channels, pixel = i / s.out_channels, group = o / n;
        const int64_t place[3] = {pixel / s.out[2] / s.out[1] % s.out[0], pixel / s.out[2] % s.out[1],
                                  pixel % s.out[2]};
        const int64_t picture = pixel / s.out[2] / s.out[1] / s.out[0];
        for (int64_t t = 0; t < taps; ++t) {
            const int64_t tap[3] = {t / s.kernel[2] / s.kernel[1], t / s.kernel[2] % s.kernel[1], t % s.kernel[2]};
            int64_t from[3];
            bool inside = true;
            for (int d = 0; d < 3; ++d) {
                if (s.transposed) {
                    const int64_t at = place[d] + s.pad[d] - tap[d] * s.dilation[d];
                    inside = inside && at >= 0 && at % s.stride[d] == 0 && at / s.stride[d] < s.in[d];
                    from[d] = at / s.stride[d];
                } else {
                    from[d] = place[d] * s.stride[d] - s.pad[d] + tap[d] * s.dilation[d];
                    inside = inside && from[d] >= 0 && from[d] < s.in[d];
                }
            }
            if (!inside) continue;
            for (int64_t c = 0; c < depth; ++c) {
                const int64_t channel = group * depth + c;
                const int64_t weight = s.transposed ? (channel * n + o % n) * taps + t : (o * depth + c) * taps + t;
                y[static_cast<size_t>(i)] +=
                    double{x[static_cast<size_t>(
                        (((picture * s.in[0] + from[0]) * s.in[1] + from[1]) * s.in[2] + from[2]) * s.channels +
                        channel)]} *
                    w[static_cast<size_t>(weight)];
            }
        }
    }
    return y;
}

void check_convolution(const ConvolutionShape& s, ConvolutionMethod method, Random& random, double tolerance) {
    const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
    const auto x = random.floats(s.batch * s.in[0] * s.in[1] * s.in[2] * s.channels);
    const auto w = random.weights(s.channels * s.out_channels / s.groups * taps, s.channels / s.groups * taps);
    const int64_t pixels = s.batch * s.out[0] * s.out[1] * s.out[2];
    const RandomEpilogue epilogue(random, pixels, s.out_channels);
    const auto sums = convolved(s, x, w);
    // The pixels may lie between those of another picture, as parts of a concatenation do.
    Convolution c;
    c.shape = s;
    c.method = method;
    c.y_pixel = s.out_channels + random.pick<int64_t>({0, 0, 8});
    c.x_pixel = s.channels + random.pick<int64_t>({0, 0, 4});
    std::vector<float> spread(
        static_cast<size_t>(x.size() / static_cast<size_t>(s.channels) * static_cast<size_t>(c.x_pixel)), NAN);
    for (size_t i = 0; i < x.size(); ++i)
        spread[i / static_cast<size_t>(s.channels) * static_cast<size_t>(c.x_pixel) +
               i % static_cast<size_t>(s.channels)] = x[i];
    c.x = spread.data();
    c.epilogue = epilogue.e;
    for (WeightType type : {WeightType::f32, WeightType::f16}) {
        c.type = type;
        Bytes weight(convolution_weight_bytes(s, method, type));
        ASSERT_TRUE(pack_convolution(s, method, type, w.data(), weight.get()));
        c.weight = weight.get();
        for (Isa isa : instruction_sets())
            for (int workers : {1, 2}) {
                std::vector<float> y(static_cast<size_t>(pixels * c.y_pixel), 55.0f);
                c.y = y.data();
                Bytes scratch(convolution_scratch(c, workers));
                convolution(isa, c, scratch.get(), workers > 1 ? threads(workers) : Workers{});
                Difference d;
                for (int64_t i = 0; i < pixels * c.y_pixel; ++i) {
                    const int64_t pixel = i / c.y_pixel, channel = i % c.y_pixel;
                    if (channel >= s.out_channels)
                        ASSERT_EQ(y[static_cast<size_t>(i)], 55.0f);
                    else
                        d.add(
                            y[static_cast<size_t>(i)],
                            epilogue.end(sums[static_cast<size_t>(pixel * s.out_channels + channel)], pixel, channel));
                }
                ASSERT_LE(d.relative(), type == WeightType::f32 ? tolerance : 4e-3)
                    << name_of(isa) << " workers " << workers << " type " << static_cast<int>(type) << " channels "
                    << s.channels << " to " << s.out_channels << " groups " << s.groups << " in " << s.in[1] << "x"
                    << s.in[2] << " kernel " << s.kernel[0] << s.kernel[1] << s.kernel[2] << " stride " << s.stride[1]
                    << s.stride[2] << " pad " << s.pad[1] << s.pad[2] << (s.transposed ? " transposed" : "")
                    << " activation " << static_cast<int>(c.epilogue.activation);
            }
    }
}

void find_out(ConvolutionShape& s, Random& random) {
    for (int d = 0; d < 3; ++d) {
        const int64_t reach = (s.kernel[d] - 1) * s.dilation[d] + 1;
        if (s.transposed)
            s.out[d] = std::max<int64_t>(
                1, (s.in[d] - 1) * s.stride[d] + reach - 2 * s.pad[d] + random.between(0, s.stride[d] - 1));
        else
            s.out[d] = std::max<int64_t>(1, (s.in[d] + 2 * s.pad[d] - reach) / s.stride[d] + 1);
    }
}

}  // namespace

TEST(LiteConvolutionTest, random_convolutions_agree_with_plain_loops) {
    for (unsigned seed = 0; seed < 80; ++seed) {
        Random random(seed);
        ConvolutionShape s;
        s.batch = random.between(1, 2);
        s.groups = random.pick<int64_t>({1, 1, 1, 2, 3});
        s.channels = s.groups * random.pick<int64_t>({1, 3, 8, 17, 40});
        s.out_channels = s.groups * random.pick<int64_t>({1, 6, 16, 33});
        const int dims = static_cast<int>(random.pick({1, 2, 2, 2, 3}));
        for (int d = 3 - dims; d < 3; ++d) {
            s.in[d] = random.between(3, dims == 3 ? 6 : 14);
            s.kernel[d] = random.between(1, 5);
            s.stride[d] = random.between(1, 3);
            s.dilation[d] = random.pick<int64_t>({1, 1, 2});
            s.pad[d] = random.between(0, 2);
        }
        s.transposed = seed % 4 == 3;
        find_out(s, random);
        check_convolution(s, convolution_method(s, true), random, 3e-6);
    }
}

TEST(LiteConvolutionTest, channels_by_themselves) {
    for (unsigned seed = 0; seed < 40; ++seed) {
        Random random(seed);
        ConvolutionShape s;
        s.batch = random.between(1, 2);
        s.groups = s.channels = s.out_channels = random.pick<int64_t>({2, 8, 16, 23, 48, 300});
        const int64_t kernel = random.pick<int64_t>({2, 3, 3, 5, 7});
        for (int d = 1; d < 3; ++d) {
            s.in[d] = random.between(5, 12);
            s.kernel[d] = kernel;
            s.stride[d] = random.pick<int64_t>({1, 1, 2, 3});
            s.dilation[d] = random.pick<int64_t>({1, 1, 1, 2});
            s.pad[d] = random.between(0, kernel / 2);
        }
        if (seed % 5 == 0) s.kernel[0] = s.in[0] = 2;
        find_out(s, random);
        ASSERT_EQ(convolution_method(s), ConvolutionMethod::depthwise);
        check_convolution(s, ConvolutionMethod::depthwise, random, 2e-6);
    }
}

// The bounds are relative to the largest result; direct sums of this length are within 2e-6.
TEST(LiteConvolutionTest, winograd_is_nearly_as_exact_as_direct_sums) {
    for (unsigned seed = 0; seed < 24; ++seed) {
        Random random(seed);
        ConvolutionShape s;
        s.batch = random.between(1, 2);
        s.channels = random.pick<int64_t>({4, 16, 37, 128});
        s.out_channels = random.pick<int64_t>({5, 16, 64});
        s.kernel[1] = s.kernel[2] = 3;
        s.in[1] = random.between(3, 17);
        s.in[2] = random.between(3, 17);
        s.pad[1] = random.between(0, 1);
        s.pad[2] = random.between(0, 2);
        if (seed % 6 == 0) s.in[0] = 2;
        find_out(s, random);
        check_convolution(s, seed % 2 ? ConvolutionMethod::winograd2 : ConvolutionMethod::winograd4, random, 5e-6);
    }
}

TEST(LiteConvolutionTest, weights_that_a_method_does_not_take_are_refused) {
    ConvolutionShape s;
    s.channels = 16;
    s.out_channels = 16;
    s.in[1] = s.in[2] = s.out[1] = s.out[2] = 8;
    const std::vector<float> w(16 * 16);
    std::vector<float> to(16 * 16 * 40);
    EXPECT_FALSE(pack_convolution(s, ConvolutionMethod::winograd4, WeightType::f32, w.data(), to.data()));
    EXPECT_FALSE(pack_convolution(s, ConvolutionMethod::depthwise, WeightType::f32, w.data(), to.data()));
    EXPECT_FALSE(pack_convolution(s, ConvolutionMethod::direct, WeightType::q8_0, w.data(), to.data()));
}

}  // namespace lunaria::lite::kernels
