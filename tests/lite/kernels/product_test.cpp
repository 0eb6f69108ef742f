#include "core/lite/kernels/product.h"

#include "core/lite/kernels/halves.h"
#include "tests/lite/kernels/support.h"

namespace lunaria::lite::kernels {

namespace {

float rounded(WeightType type, float x) {
    if (type == WeightType::f16) return from_f16(to_f16(x));
    if (type == WeightType::bf16) return std::bit_cast<float>(static_cast<uint32_t>(to_bf16(x)) << 16);
    return x;
}

void check_product(unsigned seed) {
    Random random(seed);
    Product p;
    p.m = random.pick<int64_t>({1, 2, 3, 4, 5, 7, 12, 13, 25, 40});
    p.n = random.pick<int64_t>({1, 3, 10, 16, 17, 31, 48, 100, 500});
    p.k = random.pick<int64_t>({1, 2, 5, 16, 63, 256, 257, 600, 1100});
    p.type = random.pick({WeightType::f32, WeightType::f32, WeightType::f16, WeightType::bf16});
    const bool transposed = random.between(0, 3) == 0;
    const int64_t pad = random.pick<int64_t>({0, 0, 3});
    p.a_row = transposed ? 1 : p.k + pad;
    p.a_column = transposed ? p.m + pad : 1;
    const auto a = random.floats((p.m + pad) * (p.k + pad));
    const auto b = random.weights(p.k * p.n, p.k);
    p.a = a.data();
    Bytes weight(weight_bytes(p.type, p.k, p.n));
    // As the rows of a layer's (out, in), or as they stand.
    const bool by_rows = random.between(0, 1) != 0;
    pack_weight(p.type, p.k, p.n, b.data(), by_rows ? p.n : 1, by_rows ? 1 : p.k, weight.get());
    p.b = weight.get();
    p.c_row = p.n + random.pick<int64_t>({0, 5});
    const RandomEpilogue epilogue(random, p.m, p.n);
    p.epilogue = epilogue.e;
    std::vector<double> expected(static_cast<size_t>(p.m * p.n));
    for (int64_t i = 0; i < p.m; ++i)
        for (int64_t j = 0; j < p.n; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < p.k; ++k)
                sum += double{a[static_cast<size_t>(i * p.a_row + k * p.a_column)]} *
                       rounded(p.type, b[static_cast<size_t>(by_rows ? k * p.n + j : j * p.k + k)]);
            expected[static_cast<size_t>(i * p.n + j)] = epilogue.end(sum, i, j);
        }
    for (Isa isa : instruction_sets())
        for (int workers : {1, 3}) {
            std::vector<float> c(static_cast<size_t>(p.m * p.c_row), 77.0f);
            p.c = c.data();
            Bytes scratch(product_scratch(p, workers));
            product(isa, p, scratch.get(), workers > 1 ? threads(workers) : Workers{});
            Difference d;
            for (int64_t i = 0; i < p.m; ++i) {
                for (int64_t j = 0; j < p.n; ++j)
                    d.add(c[static_cast<size_t>(i * p.c_row + j)], expected[static_cast<size_t>(i * p.n + j)]);
                for (int64_t j = p.n; j < p.c_row; ++j) ASSERT_EQ(c[static_cast<size_t>(i * p.c_row + j)], 77.0f);
            }
            ASSERT_LE(d.relative(), 3e-6)
                << "seed " << seed << " " << name_of(isa) << " m " << p.m << " n " << p.n << " k " << p.k << " type "
                << static_cast<int>(p.type) << " activation " << static_cast<int>(p.epilogue.activation);
        }
}

}  // namespace

TEST(LiteProductTest, random_products_agree_with_plain_loops) {
    for (unsigned seed = 0; seed < 150; ++seed) check_product(seed);
}

TEST(LiteProductTest, products_of_two_matrices_of_any_strides) {
    for (unsigned seed = 0; seed < 60; ++seed) {
        Random random(seed);
        BatchedProduct p;
        p.batch = random.between(1, 3);
        p.m = random.pick<int64_t>({1, 4, 17, 30});
        p.n = random.pick<int64_t>({1, 8, 16, 33, 64});
        p.k = random.pick<int64_t>({1, 7, 64, 300});
        const bool ta = random.between(0, 1) != 0, tb = random.between(0, 1) != 0;
        p.a_row = ta ? 1 : p.k;
        p.a_column = ta ? p.m : 1;
        p.b_row = tb ? 1 : p.n;
        p.b_column = tb ? p.k : 1;
        p.a_batch = p.m * p.k;
        p.b_batch = random.between(0, 1) ? p.k * p.n : 0;
        p.c_row = p.n;
        p.c_batch = p.m * p.n;
        p.factor = random.pick({1.0f, 0.125f});
        if (seed % 2) p.epilogue.activation = Activation::tanh;
        const auto a = random.floats(p.batch * p.a_batch), b = random.weights(p.batch * p.k * p.n, p.k);
        p.a = a.data();
        p.b = b.data();
        for (Isa isa : instruction_sets()) {
            std::vector<float> c(static_cast<size_t>(p.batch * p.c_batch));
            p.c = c.data();
            Bytes scratch(batched_product_scratch(p, 2));
            batched_product(isa, p, scratch.get(), seed % 3 ? Workers{} : threads(2));
            Difference d;
            for (int64_t i = 0; i < p.batch * p.m * p.n; ++i) {
                const int64_t batch = i / (p.m * p.n), row = i / p.n % p.m, column = i % p.n;
                double sum = 0;
                for (int64_t k = 0; k < p.k; ++k)
                    sum += double{a[static_cast<size_t>(batch * p.a_batch + row * p.a_row + k * p.a_column)]} *
                           b[static_cast<size_t>(batch * p.b_batch + k * p.b_row + column * p.b_column)];
                sum *= p.factor;
                d.add(c[static_cast<size_t>(i)], seed % 2 ? std::tanh(sum) : sum);
            }
            ASSERT_LE(d.relative(), 3e-6) << "seed " << seed << " " << name_of(isa);
        }
    }
}

TEST(LiteProductTest, a_residual_may_be_the_result_itself) {
    Random random(1);
    for (int64_t k : {10, 700}) {
        const auto a = random.floats(20 * k), b = random.floats(k * 40), before = random.floats(20 * 40);
        Bytes weight(weight_bytes(WeightType::f32, k, 40));
        pack_weight(WeightType::f32, k, 40, b.data(), 40, 1, weight.get());
        for (Isa isa : instruction_sets()) {
            auto c = before;
            Product p;
            p.m = 20;
            p.n = 40;
            p.k = k;
            p.a = a.data();
            p.a_row = k;
            p.b = weight.get();
            p.c = c.data();
            p.c_row = 40;
            p.epilogue.residual = c.data();
            p.epilogue.residual_row = 40;
            p.epilogue.activation = Activation::relu;
            Bytes scratch(product_scratch(p, 1));
            product(isa, p, scratch.get());
            Difference d;
            for (int64_t i = 0; i < 20; ++i)
                for (int64_t j = 0; j < 40; ++j) {
                    double sum = before[static_cast<size_t>(i * 40 + j)];
                    for (int64_t e = 0; e < k; ++e)
                        sum += double{a[static_cast<size_t>(i * k + e)]} * b[static_cast<size_t>(e * 40 + j)];
                    d.add(c[static_cast<size_t>(i * 40 + j)], std::fmax(sum, 0));
                }
            EXPECT_LE(d.relative(), 2e-6);
        }
    }
}

TEST(LiteProductTest, not_a_number_stays_one_and_activations_keep_their_limits) {
    const std::vector<float> x{NAN, -INFINITY, INFINITY, -0.0f, 1e-30f, 100, -100, 3, -3};
    for (Isa isa : instruction_sets())
        for (int a = 0; a < 14; ++a) {
            Epilogue e;
            e.activation = static_cast<Activation>(a);
            e.alpha = -1;
            e.beta = 2;
            std::vector<float> y(x.size());
            apply_epilogue(isa, e, 1, static_cast<int64_t>(x.size()), x.data(), 9, y.data(), 9);
            EXPECT_TRUE(std::isnan(y[0])) << name_of(isa) << " " << a;
            for (size_t i = 5; i < x.size(); ++i)
                EXPECT_NEAR(y[i], activate(e, x[i]), 1e-5 * std::fmax(1, std::fabs(x[i])));
        }
}

TEST(LiteProductTest, transposition_of_every_element_size) {
    Random random(2);
    for (int bytes : {1, 2, 4}) {
        const auto from = random.integers<uint8_t>(2 * 19 * 35 * bytes, 0, 255);
        std::vector<uint8_t> to(from.size());
        transpose(best_isa(), bytes, 2, 19, 35, from.data(), to.data(), threads(2));
        for (int64_t b = 0; b < 2; ++b)
            for (int64_t i = 0; i < 19; ++i)
                for (int64_t j = 0; j < 35 * bytes; ++j)
                    ASSERT_EQ(to[static_cast<size_t>(((b * 35 + j / bytes) * 19 + i) * bytes + j % bytes)],
                              from[static_cast<size_t>((b * 19 + i) * 35 * bytes + j)]);
    }
}

}  // namespace lunaria::lite::kernels
