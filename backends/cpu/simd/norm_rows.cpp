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

template <bool Weight, class T>
void dots_with(const T* dy, const T* x, const T* weight, int64_t n, double mean, double rstd, double* sum,
               double* slope) {
    Pack<T> m = spread(static_cast<T>(mean));
    double total = 0, along = 0;
    for (int64_t block = 0; block < n; block += kBlock) {
        Pack<T> a = Pack<T>(0), b = Pack<T>(0);
        packs<T>(
            n - block < kBlock ? n - block : kBlock, [&](int64_t j, int count) __attribute__((always_inline)) {
                Pack<T> g = take(dy + block + j, count);
                if (Weight) g = g * take(weight + block + j, count);
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
void dots(const T* dy, const T* x, const T* weight, int64_t n, double mean, double rstd, double* sum, double* slope) {
    if (weight)
        dots_with<true>(dy, x, weight, n, mean, rstd, sum, slope);
    else
        dots_with<false>(dy, x, weight, n, mean, rstd, sum, slope);
}

template <class T>
void pull(const T* dy, const T* x, const T* weight, int64_t n, double mean, double rstd, double sum, double slope,
          T* dx, T* dweight, T* dbias) {
    Pack<T> m = spread(static_cast<T>(mean)), s = spread(static_cast<T>(rstd));
    Pack<T> level = spread(static_cast<T>(sum)), along = spread(static_cast<T>(slope));
    packs<T>(
        n, [&](int64_t i, int count) __attribute__((always_inline)) {
            Pack<T> d = take(dy + i, count), g = d, xhat = (take(x + i, count) - m) * s;
            if (weight) g = g * take(weight + i, count);
            put(dx + i, s * (g - level - xhat * along), count);
            if (dweight) put(dweight + i, fma(d, xhat, take(dweight + i, count)), count);
            if (dbias) put(dbias + i, take(dbias + i, count) + d, count);
        });
}

template <class T>
NormLoops<T> loops() {
    NormLoops<T> l;
    l.apply = apply<T>;
    l.apply_scalar = apply_scalar<T>;
    l.apply_columns = apply_columns<T>;
    l.dots = dots<T>;
    l.pull = pull<T>;
    return l;
}

}  // namespace

void fill_norm_loops(RowLoops& l) {
    l.norm_f32 = loops<float>();
    l.norm_f64 = loops<double>();
}

}  // namespace lunaria::cpu::LUNARIA_ISA
