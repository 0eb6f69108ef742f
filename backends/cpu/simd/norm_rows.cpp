// Normalising rows and columns with given statistics, and the gradients of that.
#include "backends/cpu/simd/fold.h"
#include "backends/cpu/simd/row_loops.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

constexpr int64_t kBlock = 16384;

// Calls f(position, lanes in use) for the packs of a row.
template <class T, class F>
[[gnu::always_inline]] inline void packs(int64_t n, F f) {
    constexpr int lanes = Pack<T>::lanes;
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) f(i, lanes);
    if (i < n) f(i, static_cast<int>(n - i));
}

template <class T>
[[gnu::always_inline]] inline Pack<T> take(const T* x, int count) {
    return count == Pack<T>::lanes ? Pack<T>::load(x) : load_part(x, count);
}
template <class T>
[[gnu::always_inline]] inline void put(T* y, Pack<T> p, int count) {
    if (count == Pack<T>::lanes)
        p.store(y);
    else
        store_part(y, p, count);
}

template <bool Weight, bool Bias, class T>
void apply_with(const T* x, T* y, int64_t n, double mean, double scale, const T* weight, const T* bias) {
    Pack<T> m = spread(static_cast<T>(mean)), s = spread(static_cast<T>(scale));
    packs<T>(
        n, [&](int64_t i, int count) __attribute__((always_inline)) {
            Pack<T> v = (take(x + i, count) - m) * s;
            if (Weight) v = v * take(weight + i, count);
            if (Bias) v = v + take(bias + i, count);
            put(y + i, v, count);
        });
}

template <class T>
void apply(const T* x, T* y, int64_t n, double mean, double scale, const T* weight, const T* bias) {
    if (weight && bias)
        apply_with<true, true>(x, y, n, mean, scale, weight, bias);
    else if (weight)
        apply_with<true, false>(x, y, n, mean, scale, weight, bias);
    else if (bias)
        apply_with<false, true>(x, y, n, mean, scale, weight, bias);
    else
        apply_with<false, false>(x, y, n, mean, scale, weight, bias);
}

template <class T>
void apply_scalar(const T* x, T* y, int64_t n, double mean, double scale, double shift) {
    Pack<T> m = spread(static_cast<T>(mean)), s = spread(static_cast<T>(scale)), t = spread(static_cast<T>(shift));
    packs<T>(
        n, [&](int64_t i, int count)
               __attribute__((always_inline)) { put(y + i, fma(take(x + i, count) - m, s, t), count); });
}

template <class T>
void apply_columns(const T* x, T* y, int64_t rows, int64_t width, const T* mean, const T* scale, const T* shift) {
    for (int64_t r = 0; r < rows; ++r, x += width, y += width)
        packs<T>(
            width, [&](int64_t i, int count) __attribute__((always_inline)) {
                put(y + i,
                    fma(take(x + i, count) - take(mean + i, count), take(scale + i, count), take(shift + i, count)),
                    count);
            });
}

template <class T>
void dots(const T* dy, const T* x, int64_t n, double mean, double rstd, double* sum, double* slope) {
    Pack<T> m = spread(static_cast<T>(mean));
    double total = 0, along = 0;
    for (int64_t block = 0; block < n; block += kBlock) {
        Pack<T> a = Pack<T>(0), b = Pack<T>(0);
        packs<T>(
            n - block < kBlock ? n - block : kBlock, [&](int64_t j, int count) __attribute__((always_inline)) {
                Pack<T> g = take(dy + block + j, count);
                a = a + g;
                b = fma(g, take(x + block + j, count) - m, b);
            });
        total += sum_lanes(a);
        along += sum_lanes(b);
    }
    *sum = total;
    *slope = along * rstd;
}

template <class T>
void pull(const T* dy, const T* x, int64_t n, double mean, double rstd, double sum, double slope, T* dx) {
    Pack<T> m = spread(static_cast<T>(mean)), s = spread(static_cast<T>(rstd));
    Pack<T> level = spread(static_cast<T>(sum)), along = spread(static_cast<T>(slope));
    packs<T>(
        n, [&](int64_t i, int count) __attribute__((always_inline)) {
            Pack<T> xhat = (take(x + i, count) - m) * s;
            put(dx + i, s * (take(dy + i, count) - level - xhat * along), count);
        });
}

// Several rows at a time: the sums across the vectors of one are waited for while those of the others are made, and
// the weight's gradient is read and written once for all.
template <int Rows, bool Weight, class T>
[[gnu::always_inline]] inline void pull_group(const T* dy, const T* x, const T* weight, int64_t n, double eps, T* dx,
                                              T* dweight, T* dbias) {
    const double count = static_cast<double>(n);
    double total[Rows] = {}, squares[Rows] = {}, sum[Rows] = {}, slope[Rows] = {};
    for (int64_t block = 0; block < n; block += kBlock) {
        Pack<T> a[Rows];
        for (Pack<T>& p : a) p = Pack<T>(0);
        packs<T>(
            n - block < kBlock ? n - block : kBlock, [&](int64_t j, int lanes) __attribute__((always_inline)) {
                for (int r = 0; r < Rows; ++r) a[r] = a[r] + take(x + r * n + block + j, lanes);
            });
        for (int r = 0; r < Rows; ++r) total[r] += sum_lanes(a[r]);
    }
    Pack<T> mean[Rows];
    for (int r = 0; r < Rows; ++r) mean[r] = spread(static_cast<T>(total[r] / count));
    for (int64_t block = 0; block < n; block += kBlock) {
        Pack<T> a[Rows], b[Rows], c[Rows];
        for (int r = 0; r < Rows; ++r) a[r] = b[r] = c[r] = Pack<T>(0);
        packs<T>(
            n - block < kBlock ? n - block : kBlock, [&](int64_t j, int lanes) __attribute__((always_inline)) {
                const Pack<T> w = Weight ? take(weight + block + j, lanes) : Pack<T>(1);
                for (int r = 0; r < Rows; ++r) {
                    Pack<T> g = take(dy + r * n + block + j, lanes);
                    const T* at = x + r * n + block + j;
                    // Lanes behind the end are no differences.
                    const Pack<T> d =
                        (lanes == Pack<T>::lanes ? Pack<T>::load(at) : load_filled(at, lanes, mean[r].v[0])) - mean[r];
                    if (Weight) g = g * w;
                    a[r] = fma(d, d, a[r]);
                    b[r] = b[r] + g;
                    c[r] = fma(g, d, c[r]);
                }
            });
        for (int r = 0; r < Rows; ++r) {
            squares[r] += sum_lanes(a[r]);
            sum[r] += sum_lanes(b[r]);
            slope[r] += sum_lanes(c[r]);
        }
    }
    Pack<T> scale[Rows], level[Rows], along[Rows];
    for (int r = 0; r < Rows; ++r) {
        const double rstd = 1 / __builtin_sqrt(squares[r] / count + eps);
        scale[r] = spread(static_cast<T>(rstd));
        level[r] = spread(static_cast<T>(sum[r] / count));
        along[r] = spread(static_cast<T>(slope[r] * rstd / count));
    }
    packs<T>(
        n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
            const Pack<T> w = Weight ? take(weight + i, lanes) : Pack<T>(1);
            Pack<T> of_weight = take(dweight + i, lanes), of_bias = take(dbias + i, lanes);
            for (int r = 0; r < Rows; ++r) {
                Pack<T> d = take(dy + r * n + i, lanes), g = d,
                        xhat = (take(x + r * n + i, lanes) - mean[r]) * scale[r];
                if (Weight) g = g * w;
                put(dx + r * n + i, scale[r] * (g - level[r] - xhat * along[r]), lanes);
                of_weight = fma(d, xhat, of_weight);
                of_bias = of_bias + d;
            }
            put(dweight + i, of_weight, lanes);
            put(dbias + i, of_bias, lanes);
        });
}

template <bool Weight, class T>
void pull_rows_with(const T* dy, const T* x, const T* weight, int64_t rows, int64_t n, double eps, T* dx, T* dweight,
                    T* dbias) {
    constexpr int group = kBytes == 64 ? 4 : 2;
    int64_t r = 0;
    for (; r + group <= rows; r += group)
        pull_group<group, Weight>(dy + r * n, x + r * n, weight, n, eps, dx + r * n, dweight, dbias);
    for (; r < rows; ++r) pull_group<1, Weight>(dy + r * n, x + r * n, weight, n, eps, dx + r * n, dweight, dbias);
}

template <class T>
void pull_rows(const T* dy, const T* x, const T* weight, int64_t rows, int64_t n, double eps, T* dx, T* dweight,
               T* dbias) {
    if (weight)
        pull_rows_with<true>(dy, x, weight, rows, n, eps, dx, dweight, dbias);
    else
        pull_rows_with<false>(dy, x, weight, rows, n, eps, dx, dweight, dbias);
}

template <class T>
NormLoops<T> loops() {
    NormLoops<T> l;
    l.apply = apply<T>;
    l.apply_scalar = apply_scalar<T>;
    l.apply_columns = apply_columns<T>;
    l.dots = dots<T>;
    l.pull = pull<T>;
    l.pull_rows = pull_rows<T>;
    return l;
}

}  // namespace

void fill_norm_loops(RowLoops& l) {
    l.norm_f32 = loops<float>();
    l.norm_f64 = loops<double>();
}

}  // namespace lunaria::cpu::LUNARIA_ISA
