// CPU kernels: softmax and its kin for f32 and f64, by the loops over rows and columns.
#include "backends/cpu/reduce.h"
#include "backends/cpu/reduce_pattern.h"
#include "backends/cpu/row_loops.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

// The cost of an exponential in additions.
constexpr int64_t kCost = 4;

// Calls row(offset) for rows along the last axis, columns(offset, width) for the lines of another one.
template <class Row, class Columns>
void each_line(const AxisView& v, Row row, Columns columns) {
    if (v.inner == 1) {
        parallel_for(v.outer, worthwhile_rows(v.n, kCost), [&](int64_t begin, int64_t end) {
            for (int64_t o = begin; o < end; ++o) row(o * v.n);
        });
        return;
    }
    // Parts of at most kWidth columns, over all outer blocks.
    constexpr int64_t kWidth = 256;
    int64_t tiles = (v.inner + kWidth - 1) / kWidth;
    parallel_for(v.outer * tiles, worthwhile_rows(v.n * std::min(kWidth, v.inner), kCost),
                 [&](int64_t begin, int64_t end) {
                     for (int64_t t = begin; t < end; ++t) {
                         int64_t first = t % tiles * kWidth;
                         columns(t / tiles * v.n * v.inner + first, std::min(kWidth, v.inner - first));
                     }
                 });
}

// Short rows are laid side by side; their sums are made in the order of a row's.
template <class T>
bool softmax_of_short_rows(const AxisView& v, const T* x, T* y) {
    if (v.inner != 1) return false;
    Pattern p(v.n);
    p.outer = v.outer;
    return over_short_rows(p, x, T(0), [&, back = transpose_loop<T>()](int64_t first, int64_t rows, const T* tile) {
        alignas(64) T e[kShortRow * kRowsAside];
        double totals[kRowsAside];
        T scale[kRowsAside] = {};
        const int64_t filled = filled_row(v.n);
        softmax_loops<T>().exponentials_across(tile, e, v.n, kRowsAside);
        std::fill(e + v.n * kRowsAside, e + filled * kRowsAside, T(0));
        reduce_loops<T>().sum_across(e, filled, rows, kRowsAside, totals);
        for (int64_t r = 0; r < rows; ++r) scale[r] = static_cast<T>(1 / totals[r]);
        softmax_loops<T>().scale_columns(e, v.n, kRowsAside, scale);
        back(e, kRowsAside, y + first * v.n, v.n, v.n, rows, false);
    });
}

template <bool logarithm>
bool softmax_fast(const KernelCall& c) {
    if (c.tensor(0).dtype() != c.out[0].dtype()) return false;
    return with_real(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        AxisView v = axis_view(c, 1);
        if (v.n == 0 || v.lines() == 0) return true;
        const SoftmaxLoops<T>& loops = softmax_loops<T>();
        auto row = logarithm ? loops.log_softmax : loops.softmax;
        auto columns = logarithm ? loops.log_softmax_columns : loops.softmax_columns;
        const T* x = c.tensor(0).data<T>();
        T* y = c.out[0].data<T>();
        if (!logarithm && softmax_of_short_rows(v, x, y)) return true;
        each_line(
            v, [&](int64_t at) { row(x + at, y + at, v.n); },
            [&](int64_t at, int64_t width) { columns(x + at, y + at, v.n, width, v.inner); });
        return true;
    });
}

template <bool logarithm>
bool softmax_grad_fast(const KernelCall& c) {
    return with_real(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        AxisView v = axis_view(c, 2);
        if (v.n == 0 || v.lines() == 0) return true;
        const SoftmaxLoops<T>& loops = softmax_loops<T>();
        auto row = logarithm ? loops.log_softmax_grad : loops.softmax_grad;
        auto columns = logarithm ? loops.log_softmax_grad_columns : loops.softmax_grad_columns;
        const T *d = c.tensor(0).data<T>(), *y = c.tensor(1).data<T>();
        T* dx = c.out[0].data<T>();
        each_line(
            v, [&](int64_t at) { row(d + at, y + at, dx + at, v.n); },
            [&](int64_t at, int64_t width) { columns(d + at, y + at, dx + at, v.n, width, v.inner); });
        return true;
    });
}

bool logsumexp_fast(const KernelCall& c) {
    return with_real(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        ReduceLayout layout = reduce_layout(c);
        if (layout.reduced.rank() != 1 || layout.count == 0 || layout.outputs == 0) return false;
        Shape view{1, layout.count, layout.reduced_strides[0]};
        view[0] = layout.outputs / view[2];
        AxisView v(view, 1);
        const SoftmaxLoops<T>& loops = softmax_loops<T>();
        const T* x = c.tensor(0).data<T>();
        T* y = c.out[0].data<T>();
        each_line(
            v, [&](int64_t at) { y[at / v.n] = static_cast<T>(loops.logsumexp(x + at, v.n)); },
            [&](int64_t at, int64_t width) {
                int64_t block = v.n * v.inner;
                loops.logsumexp_columns(x + at, y + at / block * v.inner + at % block, v.n, width, v.inner);
            });
        return true;
    });
}

}  // namespace

void add_fast_softmax_kernels(KernelTable& table) {
    table.fast("softmax", softmax_fast<false>);
    table.fast("log_softmax", softmax_fast<true>);
    table.fast("softmax_grad", softmax_grad_fast<false>);
    table.fast("log_softmax_grad", softmax_grad_fast<true>);
    table.fast("logsumexp", logsumexp_fast);
}

}  // namespace lunaria::cpu
