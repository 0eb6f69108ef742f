#include "core/lite/kernels/integer.h"

#include <cstring>

#include "tests/lite/kernels/support.h"

namespace lunaria::lite::kernels {

namespace {

// integer.h, step by step; every operation is rounded by itself.
int round_end(const IntegerEpilogue& e, int64_t sum, int64_t row, int64_t column) {
    const auto s = static_cast<int32_t>(sum + (e.bias ? e.bias[column] : 0));
    volatile float f = static_cast<float>(s);
    f = f * e.multiplier[column];
    if (e.residual) {
        const int64_t at = row * e.residual_row + column;
        const int r = e.type == IntegerType::s8 ? static_cast<const int8_t*>(e.residual)[at]
                                                : static_cast<const uint8_t*>(e.residual)[at];
        volatile float g = static_cast<float>(r - e.residual_zero);
        g = g * e.residual_multiplier;
        f = f + g;
    }
    const float limited =
        std::fmin(std::fmax(f, static_cast<float>(e.low - e.zero)), static_cast<float>(e.high - e.zero));
    const int q = static_cast<int>(std::nearbyint(limited)) + e.zero;
    if (!e.table) return q;
    if (e.type == IntegerType::s8) return static_cast<const int8_t*>(e.table)[q + 128];
    return static_cast<const uint8_t*>(e.table)[q];
}

struct RandomEnd {
    RandomEnd(Random& random, int64_t rows, int64_t n, double largest)
        : residual(random.integers<uint8_t>(rows * n, 0, 255)) {
        bias = random.integers<int32_t>(n, -2000, 2000);
        for (int64_t j = 0; j < n; ++j)
            multiplier.push_back(
                static_cast<float>(100 / largest * (0.5 + static_cast<double>(random.between(0, 100)) / 100)));
        table = random.integers<uint8_t>(256, 0, 255);
        e.multiplier = multiplier.data();
        if (random.between(0, 1)) e.bias = bias.data();
        e.type = random.pick({IntegerType::s8, IntegerType::u8});
        const int least = e.type == IntegerType::s8 ? -128 : 0;
        e.zero = static_cast<int32_t>(random.between(least, least + 255));
        e.low = random.between(0, 1) ? e.zero : least;
        e.high = least + 255;
        if (random.between(0, 1)) {
            e.residual = residual.data();
            e.residual_row = n;
            e.residual_zero = static_cast<int32_t>(random.between(least, least + 255));
            e.residual_multiplier = 0.7f;
        }
        if (random.between(0, 3) == 0) e.table = table.data();
    }
    std::vector<uint8_t> residual, table;
    std::vector<int32_t> bias;
    std::vector<float> multiplier;
    IntegerEpilogue e;
};

int number(IntegerType type, uint8_t byte) { return type == IntegerType::s8 ? static_cast<int8_t>(byte) : byte; }

}  // namespace

TEST(LiteIntegerTest, products_are_exact_and_the_same_for_every_instruction_set) {
    for (unsigned seed = 0; seed < 100; ++seed) {
        Random random(seed);
        IntegerProduct p;
        p.m = random.pick<int64_t>({1, 2, 4, 5, 13, 30});
        p.n = random.pick<int64_t>({1, 10, 16, 33, 100});
        p.k = random.pick<int64_t>({1, 3, 4, 27, 64, 500, 1500});
        p.type = random.pick({IntegerType::s8, IntegerType::u8});
        p.a_zero = static_cast<int32_t>(p.type == IntegerType::s8 ? random.between(-128, 127) : random.between(0, 255));
        p.a_row = p.k + random.pick<int64_t>({0, 3});
        // Numbers at both ends of their ranges, whose products would overflow 16 bits.
        const bool extreme = seed % 4 == 0;
        const auto a =
            extreme ? std::vector<uint8_t>(static_cast<size_t>(p.m * p.a_row), p.type == IntegerType::s8 ? 0x80 : 0xff)
                    : random.integers<uint8_t>(p.m * p.a_row, 0, 255);
        const int most = seed % 3 == 0 ? 64 : 127;  // reduced range
        const auto b = extreme ? std::vector<int8_t>(static_cast<size_t>(p.k * p.n), seed % 8 ? -128 : 64)
                               : random.integers<int8_t>(p.k * p.n, -most, most);
        const RandomEnd end(random, p.m, p.n, 10000 * std::sqrt(static_cast<double>(p.k)));
        p.epilogue = end.e;
        Bytes weight(integer_weight_bytes(p.k, p.n));
        pack_integer_weight(p.k, p.n, b.data(), p.n, 1, weight.get());
        p.a = a.data();
        p.b = weight.get();
        p.c_row = p.n;
        for (Isa isa : instruction_sets())
            for (int workers : {1, 2}) {
                std::vector<uint8_t> c(static_cast<size_t>(p.m * p.n));
                p.c = c.data();
                Bytes scratch(integer_product_scratch(p, workers));
                integer_product(isa, p, scratch.get(), workers > 1 ? threads(workers) : Workers{});
                for (int64_t i = 0; i < p.m; ++i)
                    for (int64_t j = 0; j < p.n; ++j) {
                        int64_t sum = 0;
                        for (int64_t k = 0; k < p.k; ++k)
                            sum += (number(p.type, a[static_cast<size_t>(i * p.a_row + k)]) - p.a_zero) *
                                   b[static_cast<size_t>(k * p.n + j)];
                        ASSERT_EQ(number(p.epilogue.type, c[static_cast<size_t>(i * p.n + j)]),
                                  round_end(p.epilogue, sum, i, j))
                            << "seed " << seed << " " << name_of(isa) << " m " << p.m << " n " << p.n << " k " << p.k
                            << " at " << i << ", " << j;
                    }
            }
    }
}

TEST(LiteIntegerTest, float_results_have_a_bias_and_an_activation) {
    Random random(3);
    const auto a = random.integers<uint8_t>(7 * 50, 0, 255);
    const auto b = random.integers<int8_t>(50 * 21, -127, 127);
    const auto bias = random.floats(21), multiplier = std::vector<float>(21, 1e-4f);
    Bytes weight(integer_weight_bytes(50, 21));
    pack_integer_weight(50, 21, b.data(), 21, 1, weight.get());
    for (Isa isa : instruction_sets()) {
        std::vector<float> c(7 * 21);
        IntegerProduct p;
        p.m = 7;
        p.n = 21;
        p.k = 50;
        p.a = a.data();
        p.a_row = 50;
        p.type = IntegerType::u8;
        p.a_zero = 100;
        p.b = weight.get();
        p.c = c.data();
        p.c_row = 21;
        p.epilogue.to_float = true;
        p.epilogue.multiplier = multiplier.data();
        p.epilogue.float_bias = bias.data();
        p.epilogue.activation = Activation::sigmoid;
        Bytes scratch(integer_product_scratch(p, 1));
        integer_product(isa, p, scratch.get());
        for (size_t i = 0; i < 7; ++i)
            for (size_t j = 0; j < 21; ++j) {
                int sum = 0;
                for (size_t k = 0; k < 50; ++k) sum += (a[i * 50 + k] - 100) * b[k * 21 + j];
                EXPECT_NEAR(c[i * 21 + j], 1 / (1 + std::exp(-(sum * 1e-4 + bias[j]))), 1e-6);
            }
    }
}

TEST(LiteIntegerTest, convolutions_are_exact_and_the_same_for_every_instruction_set) {
    for (unsigned seed = 0; seed < 60; ++seed) {
        Random random(seed);
        ConvolutionShape s;
        s.batch = random.between(1, 2);
        const bool depthwise = seed % 2 == 0;
        s.groups = depthwise ? random.pick<int64_t>({2, 16, 19, 48}) : random.pick<int64_t>({1, 1, 2});
        s.channels = depthwise ? s.groups : s.groups * random.pick<int64_t>({1, 3, 16, 20});
        s.out_channels = depthwise ? s.groups : s.groups * random.pick<int64_t>({1, 16, 25});
        const int64_t kernel = random.pick<int64_t>({1, 3, 3, 5, 6});
        for (int d = 1; d < 3; ++d) {
            s.in[d] = random.between(6, 12);
            s.kernel[d] = kernel;
            s.stride[d] = random.pick<int64_t>({1, 1, 2, 3});
            s.dilation[d] = random.pick<int64_t>({1, 1, 1, 2});
            s.pad[d] = random.between(0, kernel / 2);
        }
        for (int d = 0; d < 3; ++d)
            s.out[d] = std::max<int64_t>(
                1, (s.in[d] + 2 * s.pad[d] - (s.kernel[d] - 1) * s.dilation[d] - 1) / s.stride[d] + 1);
        const int64_t taps = kernel * kernel, depth = s.channels / s.groups, n = s.out_channels / s.groups;
        const int64_t pixels = s.batch * s.out[1] * s.out[2];
        IntegerConvolution c;
        c.shape = s;
        c.type = random.pick({IntegerType::s8, IntegerType::u8});
        c.x_zero = static_cast<int32_t>(c.type == IntegerType::s8 ? random.between(-128, 127) : random.between(0, 255));
        c.x_pixel = s.channels + random.pick<int64_t>({0, 5});
        const auto x = random.integers<uint8_t>(s.batch * s.in[1] * s.in[2] * c.x_pixel, 0, 255);
        const int most = seed % 3 == 0 ? 64 : 127;  // reduced range
        const auto w = random.integers<int8_t>(s.out_channels * depth * taps, -most, most);
        const RandomEnd end(random, pixels, s.out_channels, 10000 * std::sqrt(static_cast<double>(taps * depth)));
        c.epilogue = end.e;
        Bytes weight(integer_convolution_weight_bytes(s));
        ASSERT_TRUE(pack_integer_convolution(s, w.data(), weight.get()));
        c.x = x.data();
        c.weight = weight.get();
        for (Isa isa : instruction_sets())
            for (int workers : {1, 2}) {
                std::vector<uint8_t> y(static_cast<size_t>(pixels * s.out_channels));
                c.y = y.data();
                Bytes scratch(integer_convolution_scratch(c, workers));
                integer_convolution(isa, c, scratch.get(), workers > 1 ? threads(workers) : Workers{});
                for (int64_t i = 0; i < pixels * s.out_channels; ++i) {
                    const int64_t o = i % s.out_channels, pixel = i / s.out_channels, ox = pixel % s.out[2],
                                  oy = pixel / s.out[2] % s.out[1];
                    const int64_t picture = pixel / s.out[2] / s.out[1];
                    int64_t sum = 0;
                    for (int64_t t = 0; t < taps; ++t) {
                        const int64_t iy = oy * s.stride[1] - s.pad[1] + t / kernel * s.dilation[1];
                        const int64_t ix = ox * s.stride[2] - s.pad[2] + t % kernel * s.dilation[2];
                        if (iy < 0 || iy >= s.in[1] || ix < 0 || ix >= s.in[2]) continue;
                        for (int64_t d = 0; d < depth; ++d) {
                            const int64_t at =
                                ((picture * s.in[1] + iy) * s.in[2] + ix) * c.x_pixel + o / n * depth + d;
                            sum += (number(c.type, x[static_cast<size_t>(at)]) - c.x_zero) *
                                   w[static_cast<size_t>((o * depth + d) * taps + t)];
                        }
                    }
                    ASSERT_EQ(number(c.epilogue.type, y[static_cast<size_t>(i)]), round_end(c.epilogue, sum, pixel, o))
                        << "seed " << seed << " " << name_of(isa) << " channels " << s.channels << " groups "
                        << s.groups << " kernel " << kernel << " stride " << s.stride[1] << s.stride[2] << " at " << i;
                }
            }
    }
}

TEST(LiteIntegerTest, rounding_to_integers_and_back) {
    Random random(5);
    auto x = random.floats(1003);
    x[0] = NAN;
    x[1] = INFINITY;
    x[2] = -INFINITY;
    x[3] = 0.5f * 0.05f;
    for (Isa isa : instruction_sets())
        for (IntegerType type : {IntegerType::s8, IntegerType::u8}) {
            const int zero = type == IntegerType::s8 ? -7 : 120, least = type == IntegerType::s8 ? -128 : 0;
            std::vector<uint8_t> q(x.size());
            std::vector<float> back(x.size());
            quantize(isa, static_cast<int64_t>(x.size()), x.data(), 0.05f, zero, type, q.data());
            dequantize(isa, static_cast<int64_t>(x.size()), q.data(), 0.05f, zero, type, back.data());
            const float inverse = 1 / 0.05f;
            for (size_t i = 0; i < x.size(); ++i) {
                const float f = std::isnan(x[i]) ? 0
                                                 : std::fmin(std::fmax(x[i] * inverse, float(least - zero)),
                                                             float(least + 255 - zero));
                const int expected = static_cast<int>(std::nearbyint(f)) + zero;
                ASSERT_EQ(number(type, q[i]), expected) << name_of(isa) << " " << x[i];
                ASSERT_EQ(back[i], 0.05f * static_cast<float>(expected - zero));
            }
        }
}

TEST(LiteIntegerTest, sums_of_integers_have_one_rounding) {
    Random random(6);
    const auto a = random.integers<uint8_t>(777, 0, 255), b = random.integers<uint8_t>(777, 0, 255);
    for (IntegerType type : {IntegerType::s8, IntegerType::u8}) {
        const int least = type == IntegerType::s8 ? -128 : 0;
        IntegerSum s;
        s.count = 777;
        s.a = a.data();
        s.b = b.data();
        s.type = type;
        s.a_zero = least + 100;
        s.b_zero = least + 3;
        s.zero = least + 50;
        s.low = s.zero;
        s.high = least + 255;
        s.a_multiplier = 0.77f;
        s.b_multiplier = 0.31f;
        for (Isa isa : instruction_sets()) {
            std::vector<uint8_t> y(777);
            s.y = y.data();
            integer_sum(isa, s);
            for (size_t i = 0; i < 777; ++i) {
                volatile float f = static_cast<float>(number(type, a[i]) - s.a_zero),
                               g = static_cast<float>(number(type, b[i]) - s.b_zero);
                f = f * s.a_multiplier;
                g = g * s.b_multiplier;
                f = f + g;
                const float limited = std::fmin(std::fmax(f, 0.0f), static_cast<float>(s.high - s.zero));
                ASSERT_EQ(number(type, y[i]), static_cast<int>(std::nearbyint(limited)) + s.zero)
                    << name_of(isa) << " " << i;
            }
        }
    }
}

}  // namespace lunaria::lite::kernels
