// CPU kernels: matrix products. A call is first reduced to a `Product`: sizes, strides and batches, in which vectors,
// transposed views and broadcast batches are nothing special.
#include <algorithm>
#include <array>
#include <atomic>
#include <complex>
#include <memory>

#include "backends/cpu/bf16_product.h"
#include "backends/cpu/blas.h"
#include "backends/cpu/gemm_tiles.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/scratch.h"
#include "core/base/interrupt.h"
#include "core/loops/small_product.h"
#include "core/operator/op.h"
#include "core/run/prepared.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

struct Product {
    int64_t m = 1, n = 1, k = 1, batches = 1;
    int64_t a_row = 0, a_column = 0, b_row = 0, b_column = 0;
    Shape batch;
    Strides a_batch, b_batch;  // 0 where broadcast

    int64_t offset(const Strides& strides, int64_t index) const {
        int64_t offset = 0;
        for (int i = batch.rank() - 1; i >= 0; --i) {
            offset += index % batch[i] * strides[i];
            index /= batch[i];
        }
        return offset;
    }
};

// The batch axes of one operand within the broadcast batch; one step in memory per axis.
Strides batch_strides(const Tensor& t, const Shape& batch) {
    Strides strides;
    strides.resize(batch.rank(), 0);
    int own = t.rank() - 2, extra = batch.rank() - own;
    for (int i = 0; i < own; ++i)
        if (t.dim(i) != 1) strides[extra + i] = t.strides()[i];
    return strides;
}

Product product_of(const Tensor& a, const Tensor& b, bool b_transposed) {
    Product p;
    int ra = a.rank(), rb = b.rank();
    p.k = a.dim(ra - 1);
    p.a_column = a.strides()[ra - 1];
    if (ra > 1) {
        p.m = a.dim(ra - 2);
        p.a_row = a.strides()[ra - 2];
    }
    if (rb == 1) {
        p.b_row = b.strides()[0];
    } else {
        p.n = b.dim(b_transposed ? rb - 2 : rb - 1);
        p.b_row = b.strides()[b_transposed ? rb - 1 : rb - 2];
        p.b_column = b.strides()[b_transposed ? rb - 2 : rb - 1];
    }
    if (ra <= 2 && rb <= 2) return p;

    Shape a_batch, b_batch;
    for (int i = 0; i + 2 < ra; ++i) a_batch.push_back(a.dim(i));
    for (int i = 0; i + 2 < rb; ++i) b_batch.push_back(b.dim(i));
    p.batch = broadcast("matmul", a_batch, b_batch);
    p.batches = p.batch.size();
    p.a_batch = batch_strides(a, p.batch);
    p.b_batch = batch_strides(b, p.batch);
    if (rb > 2) return p;
    // If all products share the right matrix and the rows of the batch are evenly spaced, they are the rows of one tall
    // matrix.
    int64_t step = p.a_row * p.m;
    for (int i = p.batch.rank() - 1; i >= 0; --i) {
        if (p.batch[i] != 1 && p.a_batch[i] != step) return p;
        step *= p.batch[i];
    }
    p.m *= p.batches;
    p.batches = 1;
    p.batch = {};
    return p;
}

// The type in which integers are summed; they wrap when they are stored.
template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, float>, double,
                                       std::conditional_t<kIsComplex<T>, std::complex<double>,
                                                          std::conditional_t<std::is_integral_v<T>, uint64_t, double>>>;

template <class T>
void plain_product(const Product& p, const Tensor& a, const Tensor& b, const Tensor* bias, const Tensor& out) {
    using Sum = Accumulator<T>;
    T* to = out.data<T>();
    for (int64_t batch = 0; batch < p.batches; ++batch) {
        const T* x = a.data<T>() + p.offset(p.a_batch, batch);
        const T* y = b.data<T>() + p.offset(p.b_batch, batch);
        for (int64_t i = 0; i < p.m; ++i) {
            poll_interrupt();
            for (int64_t j = 0; j < p.n; ++j) {
                Sum sum{};
                if (bias) sum = static_cast<Sum>(bias->data<T>()[bias->rank() ? j * bias->strides()[0] : 0]);
                for (int64_t k = 0; k < p.k; ++k)
                    sum += static_cast<Sum>(x[i * p.a_row + k * p.a_column]) *
                           static_cast<Sum>(y[k * p.b_row + j * p.b_column]);
                // For bools, the product is "and" and the sum is "or".
                if constexpr (std::is_same_v<T, bool>)
                    *to++ = sum != 0;
                else
                    *to++ = static_cast<T>(sum);
            }
        }
    }
}

// The call with operands in f32, whose result is rounded once.
bool widened(const KernelCall& c, bool (*product)(const KernelCall&, bool), bool b_transposed) {
    std::vector<Value> args(c.args.begin(), c.args.end());
    for (Value& v : args)
        if (v.is_tensor()) v = Value(v.tensor().cast(DType::f32));
    Tensor wide = Tensor::empty(DType::f32, c.out[0].shape());
    if (!product({c.op, args, {&wide, 1}, DType::f32}, b_transposed)) return false;
    copy_elements(wide, c.out[0]);
    return true;
}

bool plain(const KernelCall& c, bool b_transposed) {
    if (is_half(c.dtype)) return widened(c, plain, b_transposed);
    const Tensor &a = c.tensor(0), &b = c.tensor(1);
    const Tensor* bias = b_transposed && c.has(2) ? &c.tensor(2) : nullptr;
    Product p = product_of(a, b, b_transposed);
    visit_dtype(c.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16>)
            plain_product<T>(p, a, b, bias, c.out[0]);
    });
    return true;
}

bool plain_matmul(const KernelCall& c) { return plain(c, false); }
bool plain_dense(const KernelCall& c) { return plain(c, true); }

// Products for which choosing a way would take longer than the product. False: a larger product.
template <class T>
bool done_at_once(const MatrixRef<T>& a, const MatrixRef<T>& b, T* c) {
    constexpr int64_t kFewest = 512;
    const GemmLoops<T>& loops = gemm_loops<T>();
    const bool dense = b.column_stride == 1 && (a.column_stride == 1 || a.columns == 1);
    if (dense && is_small_product(a.rows, a.columns, b.columns))
        loops.few(a.rows, b.columns, a.columns, a.data, a.row_stride, b.data, b.row_stride, c);
    else if (a.columns == 0 || a.rows * b.columns * a.columns <= kFewest)
        loops.small(a.rows, b.columns, a.columns, a.data, a.row_stride, a.column_stride, b.data, b.row_stride,
                    b.column_stride, c);
    else
        return false;
    return true;
}

template <class T>
bool multiply(const MatrixRef<T>& a, const MatrixRef<T>& b, T* c) {
    if constexpr (std::is_floating_point_v<T>) {
        return done_at_once(a, b, c) || gemm(a, b, c, T(0));
    } else {
        if (a.columns == 0)
            std::fill_n(c, a.rows * b.columns, T(0));
        else
            own_product(a, b, c, false);
        return true;
    }
}

bool multiply(const MatrixRef<BFloat16>& a, const MatrixRef<BFloat16>& b, float* c) {
    if (a.columns > 0)
        bf16_product(a, b, c, false);
    else
        std::fill_n(c, a.rows * b.columns, 0.0f);
    return true;
}

// A product of complex matrices is one of real numbers: the pairs of a row of a, as they lie, times a matrix that has
// two rows for each of b, (re, im) and (-im, re), give the pairs of a row of the result. The sums are those of the real
// loops, in an order that no number of threads changes.
template <class Part>
bool multiply(const MatrixRef<std::complex<Part>>& a, const MatrixRef<std::complex<Part>>& b, std::complex<Part>* c) {
    constexpr int64_t kFew = 256;
    const int64_t m = a.rows, k = a.columns, n = b.columns;
    std::array<Part, kFew> few;
    Scratch<Part> many, lying;
    Part* turned = few.data();
    if (4 * k * n > kFew) {
        many.resize(static_cast<size_t>(4 * k * n));
        turned = many.data();
    }
    in_ranges(k, kElementsBetweenLooks / std::max<int64_t>(n, 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            Part *const row = turned + 4 * i * n, *const next = row + 2 * n;
            for (int64_t j = 0; j < n; ++j) {
                const std::complex<Part> z = b.data[i * b.row_stride + j * b.column_stride];
                row[2 * j] = z.real(), row[2 * j + 1] = z.imag();
                next[2 * j] = -z.imag(), next[2 * j + 1] = z.real();
            }
        }
    });
    MatrixRef<Part> left{reinterpret_cast<const Part*>(a.data), m, 2 * k, 2 * a.row_stride, 1};
    if (a.column_stride != 1 && k > 1) {
        lying.resize(static_cast<size_t>(2 * m * k));
        auto* to = reinterpret_cast<std::complex<Part>*>(lying.data());
        in_ranges(m, kElementsBetweenLooks / k + 1, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
                for (int64_t j = 0; j < k; ++j) to[i * k + j] = a.data[i * a.row_stride + j * a.column_stride];
        });
        left.data = lying.data();
        left.row_stride = 2 * k;
    }
    return multiply<Part>(left, {turned, 2 * k, 2 * n, 2 * n, 1}, reinterpret_cast<Part*>(c));
}

// A weight of a compiled program packed for the loops, where it is kept from run to run.
template <class T>
const PackedMatrix<T>* kept_packed(const MatrixRef<T>& a, const MatrixRef<T>& b) {
    Prepared* place = prepared_place(b.data);
    if (!place || !is_worth_packing(a, b)) return nullptr;
    const auto* known = place->kept.find<PackedMatrix<T>>(packing());
    if (known) return known;
    return place->kept.keep(packing(), std::make_unique<PackedMatrix<T>>(pack_matrix(a, b)));
}

// The elements of a bias next to each other: copied to `storage` where they are strided.
template <class T>
const T* row_of(const Tensor& bias, int64_t columns, Tensor& storage) {
    if (bias.rank() && bias.strides()[0] == 1) return bias.data<T>();
    storage = Tensor::empty(bias.dtype(), {columns});
    for (int64_t j = 0; j < columns; ++j)
        storage.data<T>()[j] = bias.data<T>()[bias.rank() ? j * bias.strides()[0] : 0];
    return storage.data<T>();
}

// The products of all batches; `one` computes the one at an index.
template <class One>
bool all_batches(const Product& p, One one) {
    if (p.batches == 1) return one(0);
    // Many small matrices are distributed whole, each to one thread; a few big ones are computed in turn, with all
    // threads on each.
    double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    constexpr double kWorthwhile = 65536, kBig = 4e6;
    std::atomic<bool> done = true;
    if (work > kBig) {
        for (int64_t i = 0; i < p.batches; ++i) {
            poll_interrupt();
            if (!one(i)) return false;
        }
        return true;
    }
    parallel_for(p.batches, static_cast<int64_t>(kWorthwhile / (work + 1)) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            if (!one(i)) done = false;
    });
    return done;
}

// The products of all batches into `out`, which is dense.
template <class T, class Sum>
bool multiply_batches(const Product& p, const T* a, const T* b, Sum* out) {
    return all_batches(p, [&](int64_t batch) {
        MatrixRef<T> x{a, p.m, p.k, p.a_row, p.a_column}, y{b, p.k, p.n, p.b_row, p.b_column};
        if (p.batches > 1) {
            x.data += p.offset(p.a_batch, batch);
            y.data += p.offset(p.b_batch, batch);
        }
        return multiply(x, y, out + batch * p.m * p.n);
    });
}

template <class T>
bool fast_product(const Product& p, const Tensor& a, const Tensor& b, const Tensor* bias, bool relu,
                  const Tensor& out) {
    T* to = out.data<T>();
    Tensor storage;
    const Epilogue<T> after{bias ? row_of<T>(*bias, p.n, storage) : nullptr, relu};
    if (p.batches == 1) {
        const MatrixRef<T> x{a.data<T>(), p.m, p.k, p.a_row, p.a_column}, y{b.data<T>(), p.k, p.n, p.b_row, p.b_column};
        if (!done_at_once(x, y, to)) {
            if (const PackedMatrix<T>* packed = kept_packed(x, y)) {
                packed_product(x, *packed, to, after);
                return true;
            }
            if (tile_product(x, y, to, false, after)) return true;
            if (!gemm(x, y, to, T(0))) return false;
        }
    } else if (!multiply_batches(p, a.data<T>(), b.data<T>(), to)) {
        return false;
    }
    if (bias || relu) finish_rows(to, p.m * p.batches, p.n, after);
    return true;
}

template <class T>
bool complex_product(const KernelCall& c, bool b_transposed) {
    const Tensor &a = c.tensor(0), &b = c.tensor(1);
    const Product p = product_of(a, b, b_transposed);
    T* const to = c.out[0].data<T>();
    if (!multiply_batches(p, a.data<T>(), b.data<T>(), to)) return false;
    if (!b_transposed || !c.has(2)) return true;
    Tensor storage;
    const T* bias = row_of<T>(c.tensor(2), p.n, storage);
    for (int64_t i = 0; i < c.out[0].size(); ++i) to[i] += bias[i % p.n];
    return true;
}

// Signed and unsigned integers wrap around alike, and the lower half of a product needs only the lower halves of its
// factors: integers of 8 bits are computed in 16. Products of bools are counted in 32 bits.
bool integer_product(const Tensor& a, const Tensor& b, bool b_transposed, const Tensor* bias, const Tensor& out) {
    const DType own = out.dtype();
    const DType wide = own == DType::boolean ? DType::i32 : size_of(own) == 1 ? DType::i16 : own;
    const Tensor x = a.cast(wide), y = b.cast(wide), added = bias ? bias->cast(wide) : Tensor();
    const Tensor to = wide == own ? out : Tensor::empty(wide, out.shape());
    const Product p = product_of(x, y, b_transposed);
    auto run = [&](auto zero) {
        using T = decltype(zero);
        if (!multiply_batches(p, x.data<T>(), y.data<T>(), to.data<T>())) return false;
        Tensor storage;
        if (bias) finish_rows<T>(to.data<T>(), p.m * p.batches, p.n, {row_of<T>(added, p.n, storage)});
        return true;
    };
    if (!(size_of(wide) == 2 ? run(uint16_t()) : size_of(wide) == 4 ? run(uint32_t()) : run(uint64_t()))) return false;
    if (wide != own) copy_elements(to, out);
    return true;
}

bool fast(const KernelCall& c, bool b_transposed);

// By the processor's products of bfloat16, if it has them.
bool half_product(const KernelCall& c, bool b_transposed, const Tensor* bias) {
    if (c.dtype != DType::bf16 || !has_bf16_products()) return widened(c, fast, b_transposed);
    const Tensor &a = c.tensor(0), &b = c.tensor(1);
    const Product p = product_of(a, b, b_transposed);
    const Tensor sums = Tensor::empty(DType::f32, c.out[0].shape());
    if (!multiply_batches(p, a.data<BFloat16>(), b.data<BFloat16>(), sums.data<float>())) return false;
    Tensor storage;
    if (bias)
        finish_rows<float>(sums.data<float>(), p.m * p.batches, p.n,
                           {row_of<float>(bias->cast(DType::f32), p.n, storage)});
    copy_elements(sums, c.out[0]);
    return true;
}

// Products of two matrices, without the sizes and strides of batches.
template <class T>
bool matrices(const Tensor& a, const Tensor& b, const Tensor& out) {
    return multiply<T>({a.data<T>(), a.dim(0), a.dim(1), a.strides()[0], a.strides()[1]},
                       {b.data<T>(), b.dim(0), b.dim(1), b.strides()[0], b.strides()[1]}, out.data<T>());
}

bool fast(const KernelCall& c, bool b_transposed) {
    if (c.out[0].size() == 0) return true;
    const Tensor &a = c.tensor(0), &b = c.tensor(1);
    const Tensor* bias = b_transposed && c.has(2) ? &c.tensor(2) : nullptr;
    if (is_integer(c.dtype) || c.dtype == DType::boolean) return integer_product(a, b, b_transposed, bias, c.out[0]);
    if (is_half(c.dtype)) return half_product(c, b_transposed, bias);
    if (c.dtype == DType::c64) return complex_product<Complex64>(c, b_transposed);
    if (c.dtype == DType::c128) return complex_product<Complex128>(c, b_transposed);
    if (c.dtype != DType::f32 && c.dtype != DType::f64) return false;
    if (!b_transposed && a.rank() == 2 && b.rank() == 2 && !prepared_place(b.raw()))
        return c.dtype == DType::f32 ? matrices<float>(a, b, c.out[0]) : matrices<double>(a, b, c.out[0]);
    Product p = product_of(a, b, b_transposed);
    return c.dtype == DType::f32 ? fast_product<float>(p, a, b, bias, false, c.out[0])
                                 : fast_product<double>(p, a, b, bias, false, c.out[0]);
}

enum AffineArg : size_t { kBias = 2, kTransposed, kRelu };

bool fast_affine(const KernelCall& c) {
    if (c.dtype != DType::f32 && c.dtype != DType::f64) return false;
    if (c.out[0].size() == 0) return true;
    const Tensor &a = c.tensor(0), &b = c.tensor(1);
    const Tensor* bias = c.has(kBias) ? &c.tensor(kBias) : nullptr;
    const bool relu = c.args[kRelu].boolean();
    const Product p = product_of(a, b, c.args[kTransposed].boolean());
    return c.dtype == DType::f32 ? fast_product<float>(p, a, b, bias, relu, c.out[0])
                                 : fast_product<double>(p, a, b, bias, relu, c.out[0]);
}

template <class T>
void plain_relu(const Tensor& out) {
    T* const to = out.data<T>();
    for (int64_t i = 0; i < out.size(); ++i)
        if (to[i] < T(0)) to[i] = T(0);
}

bool plain_affine(const KernelCall& c) {
    if (c.dtype != DType::f32 && c.dtype != DType::f64) return false;
    const Tensor* bias = c.has(kBias) ? &c.tensor(kBias) : nullptr;
    const Product p = product_of(c.tensor(0), c.tensor(1), c.args[kTransposed].boolean());
    auto run = [&](auto tag) {
        using T = typename decltype(tag)::type;
        plain_product<T>(p, c.tensor(0), c.tensor(1), bias, c.out[0]);
        if (c.args[kRelu].boolean()) plain_relu<T>(c.out[0]);
        return true;
    };
    return c.dtype == DType::f32 ? run(TypeTag<float>{}) : run(TypeTag<double>{});
}

bool fast_matmul(const KernelCall& c) { return fast(c, false); }
bool fast_dense(const KernelCall& c) { return fast(c, true); }

}  // namespace

void add_linalg_kernels(KernelTable& table) {
    for (const char* op : {"matmul", "mm", "bmm", "mv"}) {
        table.plain(op, plain_matmul);
        table.fast(op, fast_matmul);
    }
    table.plain("dense", plain_dense);
    table.fast("dense", fast_dense);
    table.plain("affine", plain_affine);
    table.fast("affine", fast_affine);
}

}  // namespace lunaria::cpu
