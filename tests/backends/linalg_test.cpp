#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "backends/cpu/device.h"
#include "core/operator/op.h"
#include "core/random/random.h"
#include "core/threads/threads.h"

namespace lunaria {
namespace {

class Linalg : public ::testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }

    static Tensor random(const Shape& shape, uint64_t stream, DType dtype = DType::f32) {
        Tensor t = Tensor::empty(dtype, shape);
        for (int64_t i = 0; i < t.size(); ++i)
            t.set_at(i, 2.0 * philox(stream, static_cast<uint64_t>(i), 3)[0] * 0x1p-32 - 1.0);
        return t;
    }
    static Value call(std::string_view op, std::initializer_list<Arg> args) {
        return eager_builder().call(op, args).value();
    }
    static Tensor matmul(const Tensor& a, const Tensor& b) { return call("matmul", {a, b}).tensor(); }
    static Tensor transposed(const Tensor& t) {
        return t.view({t.dim(1), t.dim(0)}, Strides{t.strides()[1], t.strides()[0]});
    }
    static void expect_near(const Tensor& got, const Tensor& want, double tolerance) {
        ASSERT_EQ(got.shape(), want.shape());
        for (int64_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got.at(i), want.at(i), tolerance) << "element " << i;
    }
    // The same product by the plain kernel, in f64.
    static Tensor judge(const Tensor& a, const Tensor& b) {
        set_current_device(&cpu::plain_device());
        Tensor out = matmul(a.cast(DType::f64), b.cast(DType::f64));
        set_current_device(&cpu::device());
        return out;
    }
};

TEST_F(Linalg, products_of_all_sizes_and_layouts_agree_with_the_plain_kernel) {
    for (int64_t m : {1, 2, 5, 16, 33})
        for (int64_t k : {1, 3, 8, 65})
            for (int64_t n : {1, 4, 7, 40}) {
                Tensor a = random({m, k}, 1), b = random({k, n}, 2);
                Tensor at = transposed(random({k, m}, 3)), bt = transposed(random({n, k}, 4));
                // Neither rows nor columns are dense.
                Tensor wide = random({m, 2 * k}, 5).view({m, k}, Strides{2 * k, 2});
                // Every row the same, and rows in reverse.
                Tensor same = random({k}, 6).view({m, k}, Strides{0, 1});
                Tensor reversed = b.view({k, n}, Strides{-n, 1}, (k - 1) * n);
                for (const Tensor& x : {a, at, wide, same})
                    for (const Tensor& y : {b, bt, reversed}) expect_near(matmul(x, y), judge(x, y), 1e-5);
            }
}

TEST_F(Linalg, vectors_times_small_and_large_matrices_agree_with_the_plain_kernel) {
    // Below and above a million multiplications.
    for (int64_t k : {300, 1100}) {
        int64_t n = 1000;
        Tensor row = random({1, k}, 1), every_second = random({1, 2 * k}, 2).view({1, k}, Strides{2 * k, 2});
        Tensor b = random({k, n}, 3), bt = transposed(random({n, k}, 4));
        for (const Tensor& x : {row, every_second})
            for (const Tensor& y : {b, bt}) {
                expect_near(matmul(x, y), judge(x, y), 1e-4);
                expect_near(matmul(transposed(y), transposed(x)), judge(transposed(y), transposed(x)), 1e-4);
            }
    }
}

TEST_F(Linalg, what_follows_a_product_is_done_to_all_of_it) {
    // Few rows, few columns, deeper than a step, a left side beyond a core's cache, and more work than the loops do.
    struct Size {
        int64_t m, k, n;
    };
    for (const Size& s : {Size{1, 300, 70},
                          {2, 33, 5},
                          {3, 7, 16},
                          {30, 900, 75},
                          {40, 48, 130},
                          {2100, 400, 33},
                          {1030, 1000, 2000}}) {
        Tensor a = random({s.m, s.k}, 1), w = random({s.n, s.k}, 2), bias = random({s.n}, 3);
        a.set_at(s.k - 1, std::numeric_limits<double>::quiet_NaN());
        for (const Tensor& right : {w, transposed(w).contiguous()})
            for (const bool relu : {false, true}) {
                const bool turned = right.same_body(w);
                const Tensor y = call("affine", {a, right, bias, turned, relu}).tensor();
                Tensor want = matmul(a, transposed(w));
                for (int64_t i = 0; i < want.size(); ++i) {
                    const double x = want.at(i) + bias.at(i % s.n);
                    want.set_at(i, relu && x < 0 ? 0 : x);
                }
                for (int64_t i = 0; i < want.size(); ++i)
                    ASSERT_TRUE(std::abs(y.at(i) - want.at(i)) < 1e-3 || (std::isnan(y.at(i)) && i < s.n))
                        << s.m << 'x' << s.k << 'x' << s.n << ", element " << i << ": " << y.at(i) << ' ' << want.at(i);
                EXPECT_TRUE(std::isnan(y.at(0)));
            }
    }
}

// More than is done without a look at interrupts: judged by elements from everywhere.
TEST_F(Linalg, large_products_are_cut_into_blocks_without_a_gap) {
    struct Size {
        int64_t m, k, n;
        DType dtype;
    };
    const int threads = num_threads();
    set_num_threads(1);
    for (const Size& s : {Size{1700, 1700, 1700, DType::f32}, {1300, 1300, 1400, DType::f64}}) {
        Tensor a = random({s.m, s.k}, 1, s.dtype), b = random({s.k, s.n}, 2, s.dtype);
        for (const Tensor& right : {b, transposed(transposed(b).contiguous())}) {
            const Tensor c = matmul(a, right);
            for (int64_t i = 0; i < 500; ++i) {
                const int64_t row = i * 7919 % s.m, column = i * 104729 % s.n;
                double sum = 0;
                for (int64_t j = 0; j < s.k; ++j) sum += a.at(row * s.k + j) * b.at(j * s.n + column);
                ASSERT_NEAR(c.at(row * s.n + column), sum, s.dtype == DType::f32 ? 1e-3 : 1e-10)
                    << "row " << row << ", column " << column;
            }
        }
    }
    set_num_threads(threads);
}

TEST_F(Linalg, an_empty_inner_axis_gives_zeros) {
    Tensor out = matmul(Tensor::zeros(DType::f32, {3, 0}), Tensor::zeros(DType::f32, {0, 2}));
    expect_near(out, Tensor::zeros(DType::f32, {3, 2}), 0);
    Tensor dense = call("dense", {Tensor::zeros(DType::f32, {2, 0}), Tensor::zeros(DType::f32, {3, 0}),
                                  Tensor::full(DType::f32, {3}, 5)})
                       .tensor();
    expect_near(dense, Tensor::full(DType::f32, {2, 3}, 5), 0);
}

TEST_F(Linalg, integers_multiply_exactly_and_wrap) {
    Tensor big = Tensor::full(DType::i64, {1, 1}, 0);
    big.data<int64_t>()[0] = (int64_t{1} << 53) + 1;
    EXPECT_EQ(matmul(big, Tensor::full(DType::i64, {1, 1}, 1)).integer_at(0), (int64_t{1} << 53) + 1);
    Tensor bytes = Tensor::full(DType::u8, {1, 2}, 200);
    EXPECT_EQ(matmul(bytes, transposed(bytes)).integer_at(0), (2 * 200 * 200) % 256);
    Tensor yes = Tensor::full(DType::boolean, {2, 2}, 1);
    EXPECT_EQ(matmul(yes, yes).at(3), 1.0);
    EXPECT_EQ(matmul(Tensor::full(DType::i32, {2, 2}, 1), Tensor::full(DType::f32, {2, 2}, 0.5)).dtype(), DType::f32);
}

TEST_F(Linalg, nan_and_infinity_are_not_lost_in_a_product) {
    for (int64_t n : {2, 4, 24, 80}) {
        Tensor a = Tensor::zeros(DType::f32, {n, n}), b = Tensor::zeros(DType::f32, {n, n});
        b.set_at(0, std::nan(""));
        b.set_at(1, INFINITY);
        Tensor out = matmul(a, b);
        EXPECT_TRUE(std::isnan(out.at(0))) << n;
        EXPECT_TRUE(std::isnan(out.at(1))) << n;
    }
}

// The definition: for each value of all labels the product of the operands' elements, added to the result's element.
Tensor sum_of_products(const std::string& equation, const std::vector<Tensor>& operands) {
    std::vector<std::string> terms(1);
    for (char c : equation.substr(0, equation.find('-')))
        if (c == ',')
            terms.emplace_back();
        else
            terms.back() += c;
    terms.push_back(equation.substr(equation.find('>') + 1));
    std::string labels;
    std::map<char, int64_t> sizes, index;
    for (size_t i = 0; i < operands.size(); ++i)
        for (size_t k = 0; k < terms[i].size(); ++k)
            if (sizes.emplace(terms[i][k], operands[i].dim(static_cast<int>(k))).second) labels += terms[i][k];
    Shape shape;
    for (char c : terms.back()) shape.push_back(sizes[c]);
    Tensor result = Tensor::zeros(DType::f64, shape);
    auto place = [&](const std::string& term) {
        int64_t at = 0;
        for (char c : term) at = at * sizes[c] + index[c];
        return at;
    };
    for (bool more = true; more;) {
        double product = 1;
        for (size_t i = 0; i < operands.size(); ++i) product *= operands[i].at(place(terms[i]));
        result.set_at(place(terms.back()), result.at(place(terms.back())) + product);
        more = false;
        for (char c : labels) {
            more = ++index[c] < sizes[c];
            if (more) break;
            index[c] = 0;
        }
    }
    return result;
}

TEST_F(Linalg, einsum_gives_the_sum_of_products_in_whatever_order_it_multiplies) {
    for (const char* equation : {"ab,bc,cd,de->ae", "abc,bd,cd,ae->de", "ab,ab,b->a", "a,b,c->", "aab,bc,c->a",
                                 "ab,c,bc,a->cb", "ab,bc,cd,de,ef,fg,gh,hi,ia->", "ij,jk,kl,lm,mn,no,op,pq,qr->ri"}) {
        std::vector<Tensor> operands;
        std::vector<Value> values;
        Shape shape;
        for (const char* c = equation; *c != '>'; ++c) {
            if (*c != ',' && *c != '-') {
                shape.push_back(1 + *c % 3);
                continue;
            }
            operands.push_back(random(shape, 20 + operands.size(), DType::f64));
            values.emplace_back(operands.back());
            shape = {};
        }
        expect_near(call("einsum", {equation, Value::list(values)}).tensor(), sum_of_products(equation, operands),
                    1e-10);
    }
}

TEST_F(Linalg, messages_show_both_shapes) {
    try {
        matmul(Tensor::zeros(DType::f32, {32, 784}), Tensor::zeros(DType::f32, {512, 10}));
        FAIL();
    } catch (const Error& e) {
        std::string text = e.what();
        EXPECT_NE(
            text.find("a is (32, 784) and b is (512, 10): the last axis of a (784) must equal the first axis of b "
                      "(512)"),
            std::string::npos)
            << text;
        EXPECT_NE(text.find("hint: transpose"), std::string::npos);
    }
}

TEST_F(Linalg, decompositions_multiply_back) {
    for (Shape shape : {Shape{5, 3}, Shape{3, 5}, Shape{4, 4}, Shape{1, 3}}) {
        Tensor a = random(shape, 9, DType::f64);
        for (const char* mode : {"reduced", "complete"}) {
            Value qr = call("qr", {a, mode});
            const Tensor &q = qr.items()[0].tensor(), &r = qr.items()[1].tensor();
            expect_near(matmul(q, r), a, 1e-12);
            Tensor one = matmul(transposed(q), q);
            for (int64_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one.at(i), i % (one.dim(0) + 1) == 0, 1e-12);
        }
        Value svd = call("svd", {a});
        const Tensor &s = svd.items()[0].tensor(), &u = svd.items()[1].tensor(), &v = svd.items()[2].tensor();
        Tensor us = u.copy();
        for (int64_t i = 0; i < us.size(); ++i) us.set_at(i, us.at(i) * s.at(i % s.size()));
        expect_near(matmul(us, transposed(v)), a, 1e-12);
        Tensor p = call("pinv", {a}).tensor();
        expect_near(matmul(matmul(a, p), a), a, 1e-12);
    }
    Tensor a = random({4, 4}, 10, DType::f64);
    Tensor inverse = call("inverse", {a}).tensor();
    Tensor eye = matmul(a, inverse);
    for (int64_t i = 0; i < 16; ++i) EXPECT_NEAR(eye.at(i), i % 5 == 0, 1e-10);
    Tensor spd = matmul(a, transposed(a));
    Tensor l = call("cholesky", {spd}).tensor();
    expect_near(matmul(l, transposed(l)), spd, 1e-12);
    EXPECT_EQ(l.at(1), 0.0);
}

TEST_F(Linalg, complex_eigenvalues_come_with_their_vectors) {
    Tensor turn = Tensor::from<double>(std::vector<double>{0, -1, 1, 0}, {2, 2});
    Value both = call("eig", {turn});
    auto* w = both.items()[0].tensor().data<Complex128>();
    auto* v = both.items()[1].tensor().data<Complex128>();
    for (int j = 0; j < 2; ++j) {
        EXPECT_NEAR(std::abs(w[j].imag()), 1, 1e-6);
        // The first row of turn · v is -v[1].
        EXPECT_NEAR(std::abs(-v[2 + j] - w[j] * v[j]), 0, 1e-6);
    }
}

TEST_F(Linalg, a_singular_matrix_is_an_error_and_never_zeros) {
    Tensor exact = Tensor::from<float>(std::vector<float>{1, 2, 2, 4}, {2, 2});
    // Rounding leaves a tiny pivot in this one.
    Tensor hidden = Tensor::from<float>(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3});
    for (const Tensor& a : {exact, hidden, Tensor::zeros(DType::f32, {2, 2})}) {
        EXPECT_THROW(call("inverse", {a}), Error);
        EXPECT_THROW(call("matrix_solve", {a, a}), Error);
    }
    EXPECT_EQ(call("det", {exact}).tensor().at(0), 0.0);
    // The determinant is differentiable there: its derivative is the matrix of cofactors.
    Tensor cofactors = call("cofactor", {exact}).tensor();
    expect_near(cofactors, Tensor::from<float>(std::vector<float>{4, -2, -2, 1}, {2, 2}), 1e-5);
    EXPECT_THROW(call("cholesky", {Tensor::from<float>(std::vector<float>{1, 2, 2, 1}, {2, 2})}), Error);
    EXPECT_THROW(call("svd", {Tensor::full(DType::f32, {2, 2}, std::nan(""))}), Error);
}

}  // namespace
}  // namespace lunaria
