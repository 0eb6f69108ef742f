// Softmax, its logarithm and logsumexp, and their gradients, of rows and of columns.
// Three passes over a row, which is in the first-level cache for all but the first: largest element, exponentials and
// their sum, scaling. Exponentials are taken relative to the largest element, so none overflows.
#include "backends/cpu/simd/fold.h"
#include "backends/cpu/simd/row_loops.h"

extern "C" {
double exp(double) noexcept;
double log(double) noexcept;
}

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

constexpr int64_t kBlock = 16384;

// out(position, pack) sees every pack of the row; the last one is filled up with `fill` and may be cut off by
// store_row.
template <class T>
[[gnu::always_inline]] inline void store_row(T* y, Pack<T> p, int64_t rest) {
    if (rest >= Pack<T>::lanes)
        p.store(y);
    else
        store_part(y, p, static_cast<int>(rest));
}

template <class T>
[[gnu::always_inline]] inline Pack<T> load_row(const T* x, int64_t rest, T fill) {
    return rest >= Pack<T>::lanes ? Pack<T>::load(x) : load_filled(x, static_cast<int>(rest), fill);
}

// exp(x) for x <= 0. What would be subnormal is 0: beside the largest element's 1 it counts for nothing, and processors
// take a hundred times as long for it, which every key that a mask hides would cost.
template <class T>
[[gnu::always_inline]] inline Pack<T> exp_of_difference(Pack<T> x) {
    constexpr double least = sizeof(T) == 4 ? -87 : -708;
    return select(x < Pack<T>(least), Pack<T>(0), exp(at_least(x, least)));
}

// The sum of exp(x - largest). The exponentials are written to y, or y is fetched into the cache, whichever: it will be
// written soon, and the fetch goes on while exponentials are computed.
template <bool Store, class T>
[[gnu::always_inline]] inline double exp_row(const T* x, T* y, int64_t n, T largest) {
    constexpr int lanes = Pack<T>::lanes;
    Pack<T> shift = spread(largest);
    double total = 0;
    for (int64_t block = 0; block < n; block += kBlock) {
        int64_t end = n - block < kBlock ? n : block + kBlock;
        Pack<T> a = Pack<T>(0), b = Pack<T>(0);
        int64_t i = block;
        for (; i + 2 * lanes <= end; i += 2 * lanes) {
            Pack<T> e = exp_of_difference(Pack<T>::load(x + i) - shift);
            Pack<T> f = exp_of_difference(Pack<T>::load(x + i + lanes) - shift);
            if (Store) {
                e.store(y + i);
                f.store(y + i + lanes);
            } else if (y) {
                __builtin_prefetch(y + i, 1);
                __builtin_prefetch(y + i + lanes, 1);
            }
            a = a + e;
            b = b + f;
        }
        for (; i < end; i += lanes) {
            Pack<T> e = exp_of_difference(load_row(x + i, end - i, -static_cast<T>(__builtin_inf())) - shift);
            if (Store) store_row(y + i, e, end - i);
            a = a + e;
        }
        total += sum_lanes(a + b);
    }
    return total;
}

template <class T>
void softmax(const T* x, T* y, int64_t n) {
    constexpr int lanes = Pack<T>::lanes;
    T largest = best_of<true>(x, n);
    double sum = exp_row<true>(x, y, n, largest);
    Pack<T> scale = spread(static_cast<T>(1 / sum));
    for (int64_t i = 0; i < n; i += lanes) store_row(y + i, load_row(y + i, n - i, T(0)) * scale, n - i);
}

template <class T>
void log_softmax(const T* x, T* y, int64_t n) {
    constexpr int lanes = Pack<T>::lanes;
    T largest = best_of<true>(x, n);
    Pack<T> shift = spread(largest), lost = spread(static_cast<T>(::log(exp_row<false>(x, y, n, largest))));
    for (int64_t i = 0; i < n; i += lanes) store_row(y + i, load_row(x + i, n - i, T(0)) - shift - lost, n - i);
}

template <class T>
double logsumexp(const T* x, int64_t n) {
    T largest = best_of<true>(x, n);
    // inf, -inf and NaN are themselves the result; inf - inf would be NaN.
    if (!(largest - largest == T(0))) return static_cast<double>(largest);
    return static_cast<double>(largest) + ::log(exp_row<false>(x, static_cast<T*>(nullptr), n, largest));
}

template <bool Log, class T>
void grad_row(const T* dout, const T* y, T* dx, int64_t n) {
    constexpr int lanes = Pack<T>::lanes;
    double total = 0;
    for (int64_t block = 0; block < n; block += kBlock) {
        int64_t end = n - block < kBlock ? n : block + kBlock;
        Pack<T> a = Pack<T>(0);
        for (int64_t i = block; i < end; i += lanes) {
            Pack<T> d = load_row(dout + i, end - i, T(0));
            a = Log ? a + d : fma(d, load_row(y + i, end - i, T(0)), a);
        }
        total += sum_lanes(a);
    }
    Pack<T> sum = spread(static_cast<T>(total));
    for (int64_t i = 0; i < n; i += lanes) {
        Pack<T> d = load_row(dout + i, n - i, T(0)), p = load_row(y + i, n - i, T(0));
        store_row(dx + i, Log ? d - exp(p) * sum : p * (d - sum), n - i);
    }
}

enum class Kind { softmax, logarithm, sum };

// Columns in groups of packs: all rows of a group for the largest, again for the sum, again for the result.
template <Kind K, int Packs, class T>
[[gnu::always_inline]] inline void column_group(const T* x, T* y, int64_t rows, int64_t stride, int64_t rest) {
    constexpr int lanes = Pack<T>::lanes;
    Pack<T> largest[Packs], sum[Packs];
    auto load = [&](int64_t r, int k) __attribute__((always_inline)) {
        return load_row(x + r * stride + k * lanes, rest - k * lanes, T(0));
    };
    for (int k = 0; k < Packs; ++k) {
        largest[k] = load(0, k);
        sum[k] = Pack<T>(0);
    }
    for (int64_t r = 1; r < rows; ++r)
        for (int k = 0; k < Packs; ++k) largest[k] = better<true>(largest[k], load(r, k));
    Pack<T> shift[Packs];
    for (int k = 0; k < Packs; ++k) {
        // With a largest of inf or -inf logsumexp is that; shifting by it would give NaN.
        Mask<T> finite = (largest[k] - largest[k]) == Pack<T>(0);
        shift[k] = K == Kind::sum ? select(finite, largest[k], Pack<T>(0)) : largest[k];
    }
    for (int64_t r = 0; r < rows; ++r)
        for (int k = 0; k < Packs; ++k) {
            Pack<T> e = exp_of_difference(load(r, k) - shift[k]);
            if (K == Kind::softmax) store_row(y + r * stride + k * lanes, e, rest - k * lanes);
            sum[k] = sum[k] + e;
        }
    for (int k = 0; k < Packs; ++k) {
        if (K == Kind::softmax) sum[k] = Pack<T>(1) / sum[k];
        if (K == Kind::logarithm) sum[k] = log(sum[k]);
        if (K == Kind::sum) {
            Mask<T> finite = (largest[k] - largest[k]) == Pack<T>(0);
            store_row(y + k * lanes, select(finite, largest[k] + log(sum[k]), largest[k]), rest - k * lanes);
        }
    }
    if (K == Kind::sum) return;
    for (int64_t r = 0; r < rows; ++r)
        for (int k = 0; k < Packs; ++k) {
            T* out = y + r * stride + k * lanes;
            int64_t left = rest - k * lanes;
            if (K == Kind::softmax)
                store_row(out, load_row(out, left, T(0)) * sum[k], left);
            else
                store_row(out, load(r, k) - shift[k] - sum[k], left);
        }
}

template <Kind K, class T>
void columns(const T* x, T* y, int64_t rows, int64_t width, int64_t stride) {
    constexpr int lanes = Pack<T>::lanes, group = 4;
    int64_t j = 0;
    for (; j + group * lanes <= width; j += group * lanes)
        column_group<K, group>(x + j, y + j, rows, stride, group * lanes);
    for (; j < width; j += lanes) column_group<K, 1>(x + j, y + j, rows, stride, width - j);
}

template <bool Log, int Packs, class T>
[[gnu::always_inline]] inline void grad_group(const T* dout, const T* y, T* dx, int64_t rows, int64_t stride,
                                              int64_t rest) {
    constexpr int lanes = Pack<T>::lanes;
    auto load = [&](const T* x, int64_t r, int k) __attribute__((always_inline)) {
        return load_row(x + r * stride + k * lanes, rest - k * lanes, T(0));
    };
    Pack<T> sum[Packs];
    for (int k = 0; k < Packs; ++k) sum[k] = Pack<T>(0);
    for (int64_t r = 0; r < rows; ++r)
        for (int k = 0; k < Packs; ++k) {
            Pack<T> d = load(dout, r, k);
            sum[k] = Log ? sum[k] + d : fma(d, load(y, r, k), sum[k]);
        }
    for (int64_t r = 0; r < rows; ++r)
        for (int k = 0; k < Packs; ++k) {
            Pack<T> d = load(dout, r, k), p = load(y, r, k);
            store_row(dx + r * stride + k * lanes, Log ? d - exp(p) * sum[k] : p * (d - sum[k]), rest - k * lanes);
        }
}

template <bool Log, class T>
void grad_columns(const T* dout, const T* y, T* dx, int64_t rows, int64_t width, int64_t stride) {
    constexpr int lanes = Pack<T>::lanes, group = 4;
    int64_t j = 0;
    for (; j + group * lanes <= width; j += group * lanes)
        grad_group<Log, group>(dout + j, y + j, dx + j, rows, stride, group * lanes);
    for (; j < width; j += lanes) grad_group<Log, 1>(dout + j, y + j, dx + j, rows, stride, width - j);
}

// A vector of queries. Scores are scaled wherever they are read: stored, they would only be read back.
template <class T>
void attend_vector(T* scores, int64_t keys, int64_t width, Pack<T> scale, int64_t seen, T* most, T* sum, T* keep) {
    constexpr int lanes = Pack<T>::lanes;
    const Pack<T> nothing = spread(-static_cast<T>(__builtin_inf()));
    auto clamped = [keys](int64_t n) { return n < 0 ? 0 : n < keys ? n : keys; };
    // Keys that all of these queries see, and those that some do.
    const int64_t all = clamped(seen), any = clamped(seen + lanes - 1);
    T place[lanes];
    for (int i = 0; i < lanes; ++i) place[i] = static_cast<T>(i);
    const Pack<T> lane = Pack<T>::load(place);
    auto score = [&](int64_t r) __attribute__((always_inline)) { return Pack<T>::load(scores + r * width) * scale; };
    auto seen_score = [&](int64_t r) __attribute__((always_inline)) {
        return select(lane > spread(static_cast<T>(r - seen)), score(r), nothing);
    };
    // NaN need not be found here: its exponential is NaN.
    auto larger = [](Pack<T> a, Pack<T> b) __attribute__((always_inline)) { return select(b > a, b, a); };
    const Pack<T> before = Pack<T>::load(most);
    Pack<T> best[4] = {before, before, before, before};
    int64_t r = 0;
    for (; r + 4 <= all; r += 4)
        for (int k = 0; k < 4; ++k) best[k] = larger(best[k], score(r + k));
    for (; r < all; ++r) best[0] = larger(best[0], score(r));
    for (; r < any; ++r) best[0] = larger(best[0], seen_score(r));
    const Pack<T> now = larger(larger(best[0], best[1]), larger(best[2], best[3]));
    // Queries that see nothing yet: -inf less -inf would be NaN.
    const Pack<T> shift = select(now == nothing, Pack<T>(0), now);
    Pack<T> total[2] = {Pack<T>(0), Pack<T>(0)};
    for (r = 0; r + 2 <= all; r += 2)
        for (int k = 0; k < 2; ++k) {
            const Pack<T> e = exp_of_difference(score(r + k) - shift);
            e.store(scores + (r + k) * width);
            total[k] = total[k] + e;
        }
    for (; r < any; ++r) {
        const Pack<T> e = exp_of_difference(seen_score(r) - shift);
        e.store(scores + r * width);
        total[0] = total[0] + e;
    }
    for (; r < keys; ++r) Pack<T>(0).store(scores + r * width);
    const Pack<T> kept = exp_of_difference(before - shift);
    kept.store(keep);
    now.store(most);
    fma(Pack<T>::load(sum), kept, total[0] + total[1]).store(sum);
}

template <class T>
void attend(T* scores, int64_t keys, int64_t width, double scale, int64_t seen, T* most, T* sum, T* keep) {
    constexpr int lanes = Pack<T>::lanes;
    for (int64_t j = 0; j < width; j += lanes)
        attend_vector(scores + j, keys, width, Pack<T>(scale), seen + j, most + j, sum + j, keep + j);
}

template <class T>
void scale_columns(T* x, int64_t rows, int64_t width, const T* factor) {
    constexpr int lanes = Pack<T>::lanes;
    for (int64_t j = 0; j < width; j += lanes) {
        const Pack<T> f = Pack<T>::load(factor + j);
        for (int64_t r = 0; r < rows; ++r) (Pack<T>::load(x + r * width + j) * f).store(x + r * width + j);
    }
}

template <class T>
SoftmaxLoops<T> loops() {
    SoftmaxLoops<T> l;
    l.softmax = softmax<T>;
    l.log_softmax = log_softmax<T>;
    l.logsumexp = logsumexp<T>;
    l.softmax_grad = grad_row<false, T>;
    l.log_softmax_grad = grad_row<true, T>;
    l.softmax_columns = columns<Kind::softmax, T>;
    l.log_softmax_columns = columns<Kind::logarithm, T>;
    l.logsumexp_columns = columns<Kind::sum, T>;
    l.softmax_grad_columns = grad_columns<false, T>;
    l.log_softmax_grad_columns = grad_columns<true, T>;
    l.attend = attend<T>;
    l.scale_columns = scale_columns<T>;
    return l;
}

}  // namespace

void fill_softmax_loops(RowLoops& l) {
    l.softmax_f32 = loops<float>();
    l.softmax_f64 = loops<double>();
}

}  // namespace lunaria::cpu::LUNARIA_ISA
