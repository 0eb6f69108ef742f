// CPU kernels: distances between all rows of two matrices, and the sums over pairs in their derivatives. The fast ones
// transpose the operand whose rows run along the result's last axis, so that neighbours are computed together; beside
// the result this takes memory for the operands only.
#include <algorithm>
#include <cmath>
#include <memory>

#include "backends/cpu/copy.h"
#include "backends/cpu/elementwise.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/scratch.h"
#include "backends/cpu/simd/distance_loops.h"
#include "core/base/interrupt.h"
#include "core/operator/op.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

// The begins of one operand's matrices, for each matrix of the result.
class Matrices {
  public:
    Matrices(const Tensor& t, const Shape& out) : size_(t.rank() < 2 ? 0 : t.dim(t.rank() - 2) * t.shape().back()) {
        const int extra = out.rank() - t.rank();
        int64_t step = size_;
        strides_.resize(out.rank() - 2, 0);
        for (int axis = t.rank() - 3; axis >= 0; --axis) {
            strides_[axis + extra] = t.dim(axis) == 1 ? 0 : step;
            step *= t.dim(axis);
        }
        for (int axis = 0; axis + 2 < out.rank(); ++axis) sizes_.push_back(out[axis]);
    }
    int64_t offset(int64_t matrix) const {
        int64_t at = 0;
        for (int axis = sizes_.rank(); axis-- > 0; matrix /= sizes_[axis]) at += matrix % sizes_[axis] * strides_[axis];
        return at;
    }

  private:
    int64_t size_;
    Shape sizes_;
    Strides strides_;
};

int64_t matrices_in(const Tensor& out) {
    int64_t count = 1;
    for (int axis = 0; axis + 2 < out.rank(); ++axis) count *= out.dim(axis);
    return count;
}

double power_of(double d, double power) {
    const double size = std::abs(d);
    if (std::isinf(power)) return size >= 1 ? 1 : 0;
    if (power == 0) return 1;
    return size == 0 ? 0 : std::pow(size, power);
}

double signed_power(double d, double power, bool odd) {
    const double raised = d == 0 && odd ? 0 : power_of(d, power);
    return odd && d < 0 ? -raised : raised;
}

double distance(const double* a, const double* b, int64_t depth, double power) {
    double most = 0, sum = 0;
    for (int64_t k = 0; k < depth; ++k) {
        const double d = std::abs(a[k] - b[k]);
        if (std::isnan(d)) return d;
        most = std::max(most, d);
        sum += d != 0;
    }
    if (power == 0) return sum;
    if (std::isinf(power) || most == 0 || std::isinf(most)) return most;
    sum = 0;
    for (int64_t k = 0; k < depth; ++k) sum += power_of((a[k] - b[k]) / most, power);
    return most * std::pow(sum, 1 / power);
}

bool cdist(const KernelCall& c) {
    const Tensor a = c.tensor(0).cast(DType::f64), b = c.tensor(1).cast(DType::f64);
    Tensor& out = c.out[0];
    const Matrices of_a(a, out.shape()), of_b(b, out.shape());
    const int64_t rows = out.dim(out.rank() - 2), columns = out.shape().back(), depth = a.shape().back();
    for_elements(out.size(), [&](int64_t i) {
        const int64_t matrix = i / (rows * columns), row = i / columns % rows, column = i % columns;
        out.set_at(i, distance(a.data<double>() + of_a.offset(matrix) + row * depth,
                               b.data<double>() + of_b.offset(matrix) + column * depth, depth, c.args[2].number()));
    });
    return true;
}

// The operands of pair_sums and pair_products, which sum over different axes.
struct Operands {
    Operands(const KernelCall& c, DType dtype) : power(c.args[5].number()), odd(c.args[6].boolean()) {
        for (size_t i = 0; i < 5; ++i) {
            given[i] = c.has(i);
            if (!given[i]) continue;
            tensors[i] = c.tensor(i).cast(dtype);
            offsets[i] = std::make_unique<Matrices>(tensors[i], c.out[0].shape());
        }
        first = tensors[0].dim(tensors[0].rank() - 2);
        second = tensors[1].dim(tensors[1].rank() - 2);
        depth = tensors[0].shape().back();
    }
    template <class T>
    const T* matrix(size_t i, int64_t at) const {
        return given[i] ? tensors[i].data<T>() + offsets[i]->offset(at) : nullptr;
    }
    enum { kFirst, kSecond, kLeft, kRight, kScale };
    Tensor tensors[5];
    bool given[5];
    std::unique_ptr<Matrices> offsets[5];
    int64_t first, second, depth;
    double power;
    bool odd;
};

// Products: out[i, j] = sum over k of left[i, k] right[j, k] f; sums: out[i, k] = sum over j of left[i, j] right[j, k]
// f.
template <bool Products>
bool pairs(const KernelCall& c) {
    const Operands o(c, DType::f64);
    Tensor& out = c.out[0];
    Tensor wide = Tensor::zeros(DType::f64, out.shape());
    for (int64_t m = 0; m < matrices_in(out); ++m) {
        const double *a = o.matrix<double>(0, m), *b = o.matrix<double>(1, m), *left = o.matrix<double>(2, m),
                     *right = o.matrix<double>(3, m), *scale = o.matrix<double>(4, m);
        double* to = wide.data<double>() + m * (out.size() / matrices_in(out));
        for_elements(o.first * o.second, [&](int64_t at) {
            const int64_t i = at / o.second, j = at % o.second;
            for (int64_t k = 0; k < o.depth; ++k) {
                const double d = (a[i * o.depth + k] - b[j * o.depth + k]) / (scale ? scale[at] : 1);
                const double l = !left ? 1 : Products ? left[i * o.depth + k] : left[at];
                const double term = l * (right ? right[j * o.depth + k] : 1) * signed_power(d, o.power, o.odd);
                (Products ? to[at] : to[i * o.depth + k]) += term;
            }
        });
    }
    copy_elements(wide, out);
    return true;
}

const DistanceTable& distance_table() {
    switch (current_isa()) {
        case Isa::avx512:
            return avx512::distance_table;
        case Isa::avx2:
            return avx2::distance_table;
        default:
            return v2::distance_table;
    }
}

template <class T>
const DistanceLoops<T>& distance_loops() {
    if constexpr (sizeof(T) == 4)
        return distance_table().f32;
    else
        return distance_table().f64;
}

template <class T>
Scratch<T> turned(const T* from, int64_t rows, int64_t columns) {
    Scratch<T> to(static_cast<size_t>(rows * columns));
    constexpr int64_t kTile = 32;
    for_elements((rows + kTile - 1) / kTile, [&](int64_t tile) {
        const int64_t end = std::min(rows, (tile + 1) * kTile);
        for (int64_t j = 0; j < columns; ++j)
            for (int64_t i = tile * kTile; i < end; ++i) to[static_cast<size_t>(j * rows + i)] = from[i * columns + j];
    });
    return to;
}

// Splits the rows into parts that are worth a thread, and notices interrupts between them.
template <class F>
void for_pairs(int64_t rows, int64_t work, F f) {
    parallel_for(rows, std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(work, 1)), 1, f);
}

template <class T>
void distances_fast(const KernelCall& c) {
    const Tensor &a = c.tensor(0), &b = c.tensor(1);
    Tensor& out = c.out[0];
    const Matrices of_a(a, out.shape()), of_b(b, out.shape());
    const int64_t rows = out.dim(out.rank() - 2), columns = out.shape().back(), depth = a.shape().back();
    for (int64_t m = 0; m < matrices_in(out); ++m) {
        const Scratch<T> second = turned(b.data<T>() + of_b.offset(m), columns, depth);
        const DistanceRows<T> all{a.data<T>() + of_a.offset(m),
                                  second.data(),
                                  out.data<T>() + m * rows * columns,
                                  depth,
                                  depth,
                                  columns,
                                  c.args[2].number()};
        for_pairs(rows, depth * columns,
                  [&](int64_t begin, int64_t end) { distance_loops<T>().distances(all, begin, end); });
    }
}

template <class T, bool Products>
void pairs_fast(const KernelCall& c) {
    const Operands o(c, c.out[0].dtype());
    Tensor& out = c.out[0];
    const int64_t n = o.first, m = o.second, depth = o.depth, count = matrices_in(out);
    // Ones in place of omitted operands.
    const Scratch<T> ones = [&] {
        Scratch<T> list(static_cast<size_t>(std::max({n, m, depth, int64_t{1}})));
        std::fill(list.begin(), list.end(), T(1));
        return list;
    }();
    for (int64_t at = 0; at < count; ++at) {
        const T *a = o.matrix<T>(0, at), *b = o.matrix<T>(1, at), *left = o.matrix<T>(2, at),
                *right = o.matrix<T>(3, at), *scale = o.matrix<T>(4, at);
        Scratch<T> inverse(static_cast<size_t>(scale ? n * m : 0));
        for (size_t i = 0; i < inverse.size(); ++i) inverse[i] = std::isinf(o.power) ? scale[i] : T(1) / scale[i];
        PairSum<T> sum{};
        sum.power = o.power;
        sum.odd = o.odd;
        sum.s = {ones.data(), 0, 0};
        sum.a = sum.scale = {ones.data(), 0, 0};
        if constexpr (Products) {
            // u: rows of the first; v: rows of the second; w: their elements.
            const Scratch<T> second = turned(b, m, depth);
            const Scratch<T> right_turned = right ? turned(right, m, depth) : Scratch<T>();
            sum.p = {a, depth, 1};
            sum.b = {second.data(), 0, m};
            if (left) sum.s = {left, depth, 1};
            if (right) sum.a = {right_turned.data(), 0, m};
            if (scale) sum.scale = {inverse.data(), m, 0};
            sum.out = out.data<T>() + at * n * m;
            sum.out_step = sum.count = m;
            sum.depth = depth;
            for_pairs(n, depth * m,
                      [&](int64_t begin, int64_t end) { distance_loops<T>().pair_sums(sum, begin, end); });
        } else {
            // u: elements; v: rows of the first; w: rows of the second. The difference is reversed.
            const Scratch<T> first = turned(a, n, depth);
            const Scratch<T> left_turned = left ? turned(left, n, m) : Scratch<T>();
            const Scratch<T> scale_turned = scale ? turned(inverse.data(), n, m) : Scratch<T>();
            Scratch<T> result(static_cast<size_t>(n * depth));
            sum.p = {b, 1, depth};
            sum.b = {first.data(), n, 0};
            if (right) sum.s = {right, 1, depth};
            if (left) sum.a = {left_turned.data(), 0, n};
            if (scale) sum.scale = {scale_turned.data(), 0, n};
            sum.out = result.data();
            sum.out_step = sum.count = n;
            sum.depth = m;
            for_pairs(depth, m * n,
                      [&](int64_t begin, int64_t end) { distance_loops<T>().pair_sums(sum, begin, end); });
            const T sign = o.odd ? T(-1) : T(1);
            T* to = out.data<T>() + at * n * depth;
            for (int64_t i = 0; i < n; ++i)
                for (int64_t k = 0; k < depth; ++k) to[i * depth + k] = sign * result[static_cast<size_t>(k * n + i)];
        }
    }
}

bool cdist_fast(const KernelCall& c) {
    const DType dtype = c.out[0].dtype();
    if (dtype == DType::f32) distances_fast<float>(c);
    if (dtype == DType::f64) distances_fast<double>(c);
    return dtype == DType::f32 || dtype == DType::f64;
}

template <bool Products>
bool pairs_fast(const KernelCall& c) {
    const DType dtype = c.out[0].dtype();
    if (dtype == DType::f32) pairs_fast<float, Products>(c);
    if (dtype == DType::f64) pairs_fast<double, Products>(c);
    return dtype == DType::f32 || dtype == DType::f64;
}

}  // namespace

void add_distance_kernels(KernelTable& table) {
    table.fast("cdist", cdist_fast);
    table.plain("cdist", cdist);
    table.fast("pair_products", pairs_fast<true>);
    table.plain("pair_products", pairs<true>);
    table.fast("pair_sums", pairs_fast<false>);
    table.plain("pair_sums", pairs<false>);
}

}  // namespace lunaria::cpu
