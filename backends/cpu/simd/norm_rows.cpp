// Normalisation of rows and columns with given statistics, and its gradients.
#include "backends/cpu/simd/fold.h"
#include "backends/cpu/simd/row_loops.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

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
            if (Weight) v = alone(v * take(weight + i, count));
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
    const Step<T> centre = Step<T>::of(static_cast<T>(mean));
    *sum = sum_blocks(
        n, [=](int64_t i, int64_t count) __attribute__((always_inline)) { return Step<T>::load(dy + i, count, T(0)); });
    *slope = rstd * sum_blocks(
                        n, [=](int64_t i, int64_t count) __attribute__((always_inline)) {
                            return Step<T>::load(dy + i, count, T(0)) * (Step<T>::load(x + i, count, T(0)) - centre);
                        });
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

// Several rows at a time: the sums across the lanes of one row are computed while those of the others are accumulated,
// and the weight's gradient is read and written once for all.
template <int Rows, bool Weight, class T>
[[gnu::always_inline]] inline void pull_group(const T* dy, const T* x, const T* weight, int64_t n, double eps, T* dx,
                                              double* dweight, double* dbias) {
    const double count = static_cast<double>(n);
    double mean[Rows], squares[Rows] = {}, sum[Rows] = {}, slope[Rows] = {};
    for (int r = 0; r < Rows; ++r)
        mean[r] =
            sum_blocks(
                n, [=](int64_t i, int64_t left)
                       __attribute__((always_inline)) { return widen(Step<T>::load(x + r * n + i, left, T(0))); }) /
            count;
    for (int64_t block = 0; block < n; block += kSumBlock) {
        const int64_t end = n - block < kSumBlock ? n : block + kSumBlock;
        Lanes a[Rows], b[Rows], c[Rows];
        for (int r = 0; r < Rows; ++r) a[r] = b[r] = c[r] = Lanes::of(0);
        auto step = [&](int64_t i, int64_t left) __attribute__((always_inline)) {
            const Lanes w = Weight ? widen(Step<T>::load(weight + i, left, T(0))) : Lanes::of(1);
            for (int r = 0; r < Rows; ++r) {
                Lanes g = widen(Step<T>::load(dy + r * n + i, left, T(0)));
                Lanes d = widen(Step<T>::load(x + r * n + i, left, T(0))) - Lanes::of(mean[r]);
                if (left < kSumLanes) d = d.first(left);
                if (Weight) g = g * w;
                a[r] = a[r] + d * d;
                b[r] = b[r] + g;
                c[r] = c[r] + g * d;
            }
        };
        int64_t i = block;
        for (; i + kSumLanes <= end; i += kSumLanes) step(i, kSumLanes);
        if (i < end) step(i, end - i);
        for (int r = 0; r < Rows; ++r) {
            squares[r] += sum_lanes(a[r]);
            sum[r] += sum_lanes(b[r]);
            slope[r] += sum_lanes(c[r]);
        }
    }
    Pack<T> centre[Rows], scale[Rows], level[Rows], along[Rows];
    for (int r = 0; r < Rows; ++r) {
        const double rstd = 1 / __builtin_sqrt(squares[r] / count + eps);
        centre[r] = spread(static_cast<T>(mean[r]));
        scale[r] = spread(static_cast<T>(rstd));
        level[r] = spread(static_cast<T>(sum[r] / count));
        along[r] = spread(static_cast<T>(slope[r] * rstd / count));
    }
    packs<T>(
        n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
            const Pack<T> w = Weight ? take(weight + i, lanes) : Pack<T>(1);
            for (int r = 0; r < Rows; ++r) {
                Pack<T> g = take(dy + r * n + i, lanes), xhat = (take(x + r * n + i, lanes) - centre[r]) * scale[r];
                if (Weight) g = g * w;
                put(dx + r * n + i, scale[r] * (g - level[r] - xhat * along[r]), lanes);
            }
        });
    auto add = [&](int64_t i, int64_t left) __attribute__((always_inline)) {
        alignas(64) double of_weight[kSumLanes], of_bias[kSumLanes];
        for (int k = 0; k < kSumLanes; ++k) {
            of_weight[k] = k < left ? dweight[i + k] : 0.0;
            of_bias[k] = k < left ? dbias[i + k] : 0.0;
        }
        Lanes p = Lanes::load(of_weight), q = Lanes::load(of_bias);
        for (int r = 0; r < Rows; ++r) {
            const Lanes d = widen(Step<T>::load(dy + r * n + i, left, T(0)));
            const Lanes from = widen(Step<T>::load(x + r * n + i, left, T(0))) - Lanes::of(mean[r]);
            p = p + d * (from * Lanes::of(static_cast<double>(scale[r].v[0])));
            q = q + d;
        }
        p.store(of_weight);
        q.store(of_bias);
        for (int k = 0; k < kSumLanes && k < left; ++k) {
            dweight[i + k] = of_weight[k];
            dbias[i + k] = of_bias[k];
        }
    };
    for (int64_t i = 0; i < n; i += kSumLanes) add(i, n - i < kSumLanes ? n - i : kSumLanes);
}

template <bool Weight, class T>
void pull_rows_with(const T* dy, const T* x, const T* weight, int64_t rows, int64_t n, double eps, T* dx,
                    double* dweight, double* dbias) {
    constexpr int group = kBytes == 64 ? 4 : 1;
    int64_t r = 0;
    for (; r + group <= rows; r += group)
        pull_group<group, Weight>(dy + r * n, x + r * n, weight, n, eps, dx + r * n, dweight, dbias);
    for (; r < rows; ++r) pull_group<1, Weight>(dy + r * n, x + r * n, weight, n, eps, dx + r * n, dweight, dbias);
}

template <class T>
void pull_rows(const T* dy, const T* x, const T* weight, int64_t rows, int64_t n, double eps, T* dx, double* dweight,
               double* dbias) {
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
