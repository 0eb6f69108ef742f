// Every size at which the loops change their ways, in every layout and for every instruction set.
#include "backends/cpu/gemm_tiles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "backends/cpu/device.h"
#include "backends/cpu/elementwise.h"
#include "core/operator/op.h"
#include "core/random/random.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {
namespace {

template <class T>
class Matrix {
  public:
    // Rows and columns `gap` elements apart, or, transposed, the other way round.
    Matrix(int64_t rows, int64_t columns, bool transposed, int64_t gap, std::mt19937& random) {
        const int64_t inner = transposed ? rows : columns, outer = transposed ? columns : rows;
        elements_.resize(static_cast<size_t>(outer * (inner + 3) * gap));
        std::uniform_real_distribution<T> number(-1, 1);
        for (T& x : elements_) x = number(random);
        ref = {elements_.data(), rows, columns, (inner + 3) * gap, gap};
        if (transposed) std::swap(ref.row_stride, ref.column_stride);
    }
    T at(int64_t i, int64_t j) const { return ref.data[i * ref.row_stride + j * ref.column_stride]; }

    MatrixRef<T> ref;

  private:
    std::vector<T> elements_;
};

// Of our own loops where they take it, or of whatever takes it in their place.
enum class Of { our_loops, any };

template <class T>
void expect_exact(int64_t m, int64_t k, int64_t n, bool a_transposed, bool b_transposed, int64_t gap,
                  Of of = Of::our_loops) {
    std::mt19937 random(7);
    Matrix<T> a(m, k, a_transposed, gap, random), b(k, n, b_transposed, gap, random);
    constexpr T kGuard = 12345;
    for (const bool add : {false, true}) {
        std::vector<T> c(static_cast<size_t>(m * n) + 64, kGuard);
        for (int64_t i = 0; i < m * n; ++i) c[static_cast<size_t>(i)] = add ? T(i % 5) : T(NAN);
        if (of == Of::any)
            ASSERT_TRUE(gemm(a.ref, b.ref, c.data(), T(add)));
        else if (!tile_product(a.ref, b.ref, c.data(), add))
            return;
        for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
                double sum = add ? static_cast<double>((i * n + j) % 5) : 0;
                for (int64_t x = 0; x < k; ++x)
                    sum += static_cast<double>(a.at(i, x)) * static_cast<double>(b.at(x, j));
                ASSERT_NEAR(c[static_cast<size_t>(i * n + j)], sum, sizeof(T) == 4 ? 2e-4 : 1e-11)
                    << name_of(current_isa()) << ' ' << m << 'x' << k << 'x' << n << " at " << i << ", " << j
                    << (a_transposed ? " a transposed" : "") << (b_transposed ? " b transposed" : "") << " gap " << gap
                    << (add ? " added" : "");
            }
        for (size_t i = static_cast<size_t>(m * n); i < c.size(); ++i) ASSERT_EQ(c[i], kGuard) << "behind the end";
    }
}

TEST(GemmTilesTest, products_of_all_sizes_and_layouts_are_exact_on_every_instruction_set) {
    const Isa before = current_isa();
    for (const Isa isa : {Isa::v2, Isa::avx2, Isa::avx512}) {
        if (!isa_available(isa)) continue;
        set_isa(isa);
        for (const int64_t m : {1, 2, 3, 7, 13, 24, 31})
            for (const int64_t k : {1, 5, 33, 300})
                for (const int64_t n : {2, 7, 16, 31, 64, 65, 150}) {
                    expect_exact<float>(m, k, n, false, false, 1);
                    expect_exact<float>(m, k, n, true, true, 1);
                    expect_exact<double>(m, k, n, false, true, 1);
                    expect_exact<double>(m, k, n, true, false, 1);
                    if (k < 300) expect_exact<float>(m, k, n, false, false, 2);
                }
    }
    set_isa(before);
}

// A bias in every row and relu or neither, with the right side as it lies and packed.
template <class T>
void expect_finished(int64_t m, int64_t k, int64_t n) {
    std::mt19937 random(11);
    Matrix<T> a(m, k, false, 1, random), b(k, n, true, 1, random);
    std::vector<T> bias(static_cast<size_t>(n));
    for (int64_t j = 0; j < n; ++j) bias[static_cast<size_t>(j)] = T(j % 7);
    const PackedMatrix<T> packed = pack_matrix(a.ref, b.ref);
    for (const bool is_packed : {false, true})
        for (const bool finished : {false, true}) {
            std::vector<T> c(static_cast<size_t>(m * n) + 64, T(NAN));
            const Epilogue<T> after{finished ? bias.data() : nullptr, finished};
            if (is_packed)
                packed_product(a.ref, packed, c.data(), after);
            else if (!tile_product(a.ref, b.ref, c.data(), false, after))
                continue;
            for (int64_t i = 0; i < m; ++i)
                for (int64_t j = 0; j < n; ++j) {
                    double sum = finished ? static_cast<double>(j % 7) : 0;
                    for (int64_t x = 0; x < k; ++x)
                        sum += static_cast<double>(a.at(i, x)) * static_cast<double>(b.at(x, j));
                    if (finished) sum = std::max(sum, 0.0);
                    ASSERT_NEAR(c[static_cast<size_t>(i * n + j)], sum, sizeof(T) == 4 ? 2e-4 : 1e-11)
                        << name_of(current_isa()) << ' ' << m << 'x' << k << 'x' << n << " at " << i << ", " << j
                        << (is_packed ? " packed" : "") << (finished ? " finished" : "");
                }
            for (size_t i = static_cast<size_t>(m * n); i < c.size(); ++i) ASSERT_TRUE(std::isnan(c[i]));
        }
}

TEST(GemmTilesTest, products_with_packed_matrices_a_bias_and_relu_are_exact) {
    const Isa before = current_isa();
    for (const Isa isa : {Isa::v2, Isa::avx2, Isa::avx512}) {
        if (!isa_available(isa)) continue;
        set_isa(isa);
        for (const int64_t m : {1, 2, 3, 13, 50})
            for (const int64_t k : {1, 33, 500})
                for (const int64_t n : {2, 10, 31, 64, 84, 150, 300}) {
                    expect_finished<float>(m, k, n);
                    expect_finished<double>(m, k, n);
                }
        expect_finished<float>(460, 800, 70);
    }
    set_isa(before);
}

TEST(GemmTilesTest, large_matrices_that_lie_across_are_exact) {
    const Isa before = current_isa();
    for (const Isa isa : {Isa::v2, Isa::avx2, Isa::avx512}) {
        if (!isa_available(isa)) continue;
        set_isa(isa);
        expect_exact<float>(515, 700, 40, true, false, 1);
        expect_exact<float>(1000, 390, 21, true, true, 1);
        expect_exact<double>(437, 400, 33, true, false, 1);
    }
    set_isa(before);
}

TEST(GemmTilesTest, work_for_several_threads_is_cut_without_a_gap) {
    const int threads = num_threads();
    for (const int n : {1, 2, 3, 5}) {
        set_num_threads(n);
        expect_exact<float>(1, 700, 900, false, false, 1);
        expect_exact<float>(70, 200, 600, false, false, 1);
        expect_exact<float>(400, 200, 70, false, true, 1);
        expect_exact<float>(333, 129, 15, false, false, 1);
        expect_exact<float>(16, 512, 128, false, false, 1);
        expect_exact<float>(20, 256, 100, false, false, 1);
        // One row and the rows of a matrix.
        expect_exact<float>(1, 784, 512, false, true, 1, Of::any);
        expect_exact<float>(1, 300, 1001, false, true, 1, Of::any);
        expect_exact<double>(1, 700, 333, false, true, 1, Of::any);
    }
    set_num_threads(threads);
}

TEST(GemmTilesTest, a_packed_matrix_is_read_from_either_end_by_any_number_of_threads_to_the_same_bits) {
    const int threads = num_threads();
    for (const int64_t rows : {1, 2}) {
        std::mt19937 random(3);
        Matrix<float> a(rows, 400, false, 1, random), b(400, 1001, true, 1, random);
        const PackedMatrix<float> packed = pack_matrix(a.ref, b.ref);
        std::vector<float> first;
        const bool way = packed.turn();
        for (const int n : {1, 2, 3, 5, 40})
            for (int turn = 0; turn < 2; ++turn) {
                set_num_threads(n);
                std::vector<float> c(static_cast<size_t>(rows * 1001) + 64, NAN);
                packed_product(a.ref, packed, c.data(), {});
                for (size_t i = static_cast<size_t>(rows * 1001); i < c.size(); ++i) ASSERT_TRUE(std::isnan(c[i]));
                c.resize(static_cast<size_t>(rows * 1001));
                if (first.empty()) first = c;
                ASSERT_EQ(c, first) << n << " threads";
            }
        EXPECT_NE(packed.turn(), way) << "eleven turns";
    }
    set_num_threads(threads);
}

TEST(GemmTilesTest, what_is_too_large_for_a_cache_is_taken_part_by_part) {
    const int threads = num_threads();
    set_num_threads(1);
    expect_exact<float>(901, 400, 530, false, false, 1);
    expect_exact<float>(901, 400, 530, true, false, 1);
    expect_exact<double>(460, 390, 270, false, true, 1);
    set_num_threads(threads);
}

// The sums of a product depend on sizes and strides alone: whether b is packed, how it is cut into steps, a bias that
// comes with it and the number of threads change no bit.
template <class T>
void expect_same_bits(int64_t m, int64_t k, int64_t n, bool b_transposed) {
    std::mt19937 random(17);
    Matrix<T> a(m, k, false, 1, random), b(k, n, b_transposed, 1, random);
    if (!is_worth_packing(a.ref, b.ref)) return;
    const PackedMatrix<T> packed = pack_matrix(a.ref, b.ref);
    std::vector<T> bias(static_cast<size_t>(n)), want(static_cast<size_t>(m * n)), c = want;
    for (int64_t j = 0; j < n; ++j) bias[static_cast<size_t>(j)] = T(1) / T(j + 3);
    ASSERT_TRUE(tile_product(a.ref, b.ref, want.data(), false));
    packed_product(a.ref, packed, c.data(), {});
    ASSERT_EQ(c, want) << m << 'x' << k << 'x' << n << (b_transposed ? " transposed" : "");
    for (size_t i = 0; i < want.size(); ++i) want[i] = std::max(want[i] + bias[i % static_cast<size_t>(n)], T(0));
    packed_product(a.ref, packed, c.data(), {bias.data(), true});
    ASSERT_EQ(c, want) << m << 'x' << k << 'x' << n << (b_transposed ? " transposed" : "") << ", finished";
    ASSERT_TRUE(tile_product(a.ref, b.ref, c.data(), false, {bias.data(), true}));
    ASSERT_EQ(c, want) << m << 'x' << k << 'x' << n << (b_transposed ? " transposed" : "") << ", not packed";
}

TEST(GemmTilesTest, packed_and_other_matrices_give_the_same_bits_on_every_instruction_set) {
    const Isa before = current_isa();
    for (const Isa isa : {Isa::v2, Isa::avx2, Isa::avx512}) {
        if (!isa_available(isa)) continue;
        set_isa(isa);
        for (const int64_t m : {1, 2, 3, 11, 12, 70})
            for (const int64_t k : {1, 7, 100, 1000})
                for (const int64_t n : {2, 16, 33, 150, 700})
                    for (const bool transposed : {false, true}) {
                        expect_same_bits<float>(m, k, n, transposed);
                        expect_same_bits<double>(m, k, n, transposed);
                    }
    }
    set_isa(before);
}

// Integers wrap around: every bit is the same as in sums of one's own.
template <class T>
void expect_wrapped(int64_t m, int64_t k, int64_t n, bool a_across, bool b_across) {
    std::mt19937_64 random(5);
    std::vector<T> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n)), c(static_cast<size_t>(m * n) + 64);
    for (T& x : a) x = static_cast<T>(random());
    for (T& x : b) x = static_cast<T>(random());
    MatrixRef<T> x{a.data(), m, k, k, 1}, y{b.data(), k, n, n, 1};
    if (a_across) x = MatrixRef<T>{a.data(), k, m, m, 1}.transposed();
    if (b_across) y = MatrixRef<T>{b.data(), n, k, k, 1}.transposed();
    for (const bool add : {false, true}) {
        std::fill(c.begin(), c.end(), T(7));
        own_product(x, y, c.data(), add);
        for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
                uint64_t sum = add ? 7 : 0;
                for (int64_t l = 0; l < k; ++l)
                    sum += static_cast<uint64_t>(x.data[i * x.row_stride + l * x.column_stride]) *
                           static_cast<uint64_t>(y.data[l * y.row_stride + j * y.column_stride]);
                ASSERT_EQ(c[static_cast<size_t>(i * n + j)], static_cast<T>(sum))
                    << name_of(current_isa()) << ' ' << m << 'x' << k << 'x' << n << " at " << i << ", " << j
                    << (a_across ? " a across" : "") << (b_across ? " b across" : "") << (add ? " added" : "");
            }
        for (size_t i = static_cast<size_t>(m * n); i < c.size(); ++i) ASSERT_EQ(c[i], T(7)) << "behind the end";
    }
}

TEST(GemmTilesTest, products_of_integers_wrap_around_on_every_instruction_set) {
    const Isa before = current_isa();
    for (const Isa isa : {Isa::v2, Isa::avx2, Isa::avx512}) {
        if (!isa_available(isa)) continue;
        set_isa(isa);
        for (const int64_t m : {1, 2, 5, 25})
            for (const int64_t k : {1, 33, 400})
                for (const int64_t n : {1, 7, 65, 150})
                    for (const bool a_across : {false, true})
                        for (const bool b_across : {false, true}) {
                            expect_wrapped<uint16_t>(m, k, n, a_across, b_across);
                            expect_wrapped<uint32_t>(m, k, n, a_across, b_across);
                            if (k < 400) expect_wrapped<uint64_t>(m, k, n, a_across, b_across);
                        }
        expect_wrapped<uint32_t>(515, 700, 40, true, false);
    }
    set_isa(before);
}

// The operator in every integer dtype and in halves, on views and batches, against the plain kernel.
TEST(GemmTilesTest, matmul_of_every_dtype_equals_the_plain_kernel) {
    const Isa before = current_isa();
    const Op &matmul = registry().get("matmul"), &dense = registry().get("dense");
    auto filled = [](DType dtype, const Shape& shape, uint64_t key) {
        Tensor t = Tensor::empty(DType::i64, shape);
        for (int64_t i = 0; i < t.size(); ++i)
            t.data<int64_t>()[i] = static_cast<int64_t>(philox(key, static_cast<uint64_t>(i), 3)[0] % 255) - 127;
        return dtype == DType::boolean ? t.cast(DType::i8).cast(dtype) : t.cast(dtype);
    };
    for (const Isa isa : {Isa::v2, Isa::avx2, Isa::avx512}) {
        if (!isa_available(isa)) continue;
        set_isa(isa);
        for (const DType dtype :
             {DType::boolean, DType::u8, DType::i8, DType::i16, DType::i32, DType::i64, DType::f16, DType::bf16}) {
            auto expect_same = [&](const Op& op, std::initializer_list<Value> args, const std::string& what) {
                set_current_device(&plain_device());
                const Tensor want = run(op, args).tensor();
                set_current_device(&device());
                const Tensor got = run(op, args).tensor();
                ASSERT_EQ(got.dtype(), want.dtype());
                ASSERT_TRUE(got.shape() == want.shape());
                // These sums are exact in floats, so that they are rounded only once.
                ASSERT_EQ(std::memcmp(got.raw(), want.raw(), got.nbytes()), 0)
                    << name_of(isa) << ' ' << name_of(dtype) << ' ' << what;
            };
            for (const int64_t k : {0, 1, 2, 7, 64, 301}) {
                const Tensor a = filled(dtype, {9, k}, 1), b = filled(dtype, {k, 13}, 2), w = filled(dtype, {13, k}, 3);
                const std::string what = str("k = ", k);
                expect_same(matmul, {Value(a), Value(b)}, what);
                expect_same(matmul, {Value(a), Value(w.view({k, 13}, {1, k}))}, what + ", b across");
                expect_same(matmul, {Value(w.view({k, 13}, {1, k})), Value(w)}, what + ", a across");
                expect_same(dense, {Value(a), Value(w), Value(filled(dtype, {13}, 4))}, what + ", dense");
                const Tensor many = filled(dtype, {3, 1, 5, k}, 5), others = filled(dtype, {2, k, 4}, 6);
                expect_same(matmul, {Value(many), Value(others)}, what + ", batches");
                if (k == 0) continue;
                expect_same(matmul, {Value(a), Value(filled(dtype, {k}, 7))}, what + ", a vector");
                // An odd start, and every other column.
                const Tensor wide = filled(dtype, {30, 2 * k + 1}, 8);
                expect_same(matmul, {Value(wide.view({30, k}, {2 * k + 1, 2}, 1)), Value(b)}, what + ", every other");
                expect_same(matmul, {Value(wide.view({30, k}, {2 * k + 1, 1}, 1)), Value(b)}, what + ", an odd start");
            }
        }
    }
    set_isa(before);
    set_current_device(&device());
}

}  // namespace
}  // namespace lunaria::cpu
