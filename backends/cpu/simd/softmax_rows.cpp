// Softmax, its logarithm and logsumexp, and their gradients, of rows and of columns.
// Three passes over a row, which is in the first-level cache for all but the first: largest element, exponentials and
// their sum, scaling. Exponentials are taken relative to the largest element, so none overflows. Sums are made in the
// order of core/loops/sum_order.h.
#include "backends/cpu/simd/fold.h"
#include "backends/cpu/simd/row_loops.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

template <class T>
[[gnu::always_inline]] inline void store_row(T* y, Pack<T> p, int64_t rest) {
    if (rest >= Pack<T>::lanes)
        p.store(y);
    else
        store_part(y, p, static_cast<int>(rest));
}

// exp(x) for x <= 0. Results that would be subnormal are 0: beside the largest element's 1 they do not count, and
// processors take a hundred times as long for them, which every hidden key of a mask would cost.
template <class T>
[[gnu::always_inline]] inline Pack<T> exp_of_difference(Pack<T> x) {
    constexpr double least = sizeof(T) == 4 ? -87 : -708;
    return select(x < Pack<T>(least), Pack<T>(0), vector_math::exp_within(at_least(x, least), 0));
}

// The sum of exp(x - largest). The exponentials are written to y, or y is only fetched into the cache, since it will be
// written soon and the fetch overlaps with the exponentials.
template <bool Store, class T>
[[gnu::always_inline]] inline double exp_row(const T* x, T* y, int64_t n, T largest) {
    constexpr int lanes = Pack<T>::lanes;
    const Pack<T> shift = spread(largest);
    const T nothing = -static_cast<T>(__builtin_inf());
    return sum_blocks(
        n, [=](int64_t i, int64_t count) __attribute__((always_inline)) {
            WholeStep<T> sum = WholeStep<T>::load(x + i, count, nothing);
            for (int k = 0; k < kSumLanes / lanes; ++k) {
                const int64_t at = i + k * lanes, left = count - k * lanes;
                Pack<T>& e = sum.part[k];
                e = exp_of_difference(e - shift);
                if (Store) {
                    if (left > 0) store_row(y + at, e, left);
                } else if (y) {
                    __builtin_prefetch(y + at, 1);
                }
            }
            return sum;
        });
}

[[gnu::always_inline]] inline double log_of(double x) { return log(spread(x)).v[0]; }

template <class T>
void softmax(const T* x, T* y, int64_t n) {
    constexpr int lanes = Pack<T>::lanes;
    T largest = best_of<true>(x, n);
    double sum = exp_row<true>(x, y, n, largest);
    Pack<T> scale = spread(static_cast<T>(1 / sum));
    for (int64_t i = 0; i < n; i += lanes) store_row(y + i, load_rest(y + i, n - i, T(0)) * scale, n - i);
}

template <class T>
void log_softmax(const T* x, T* y, int64_t n) {
    constexpr int lanes = Pack<T>::lanes;
    T largest = best_of<true>(x, n);
    Pack<T> shift = spread(largest), lost = spread(static_cast<T>(log_of(exp_row<false>(x, y, n, largest))));
    for (int64_t i = 0; i < n; i += lanes) store_row(y + i, load_rest(x + i, n - i, T(0)) - shift - lost, n - i);
}

template <class T>
double logsumexp(const T* x, int64_t n) {
    T largest = best_of<true>(x, n);
    // inf, -inf and NaN are themselves the result; inf - inf would be NaN.
    if (!(largest - largest == T(0))) return static_cast<double>(largest);
    return static_cast<double>(largest) + log_of(exp_row<false>(x, static_cast<T*>(nullptr), n, largest));
}

template <bool Log, class T>
void grad_row(const T* dout, const T* y, T* dx, int64_t n) {
    constexpr int lanes = Pack<T>::lanes;
    const double total = sum_blocks(
        n, [=](int64_t i, int64_t count) __attribute__((always_inline)) {
            const Step<T> d = Step<T>::load(dout + i, count, T(0));
            return Log ? d : d * Step<T>::load(y + i, count, T(0));
        });
    Pack<T> sum = spread(static_cast<T>(total));
    for (int64_t i = 0; i < n; i += lanes) {
        Pack<T> d = load_rest(dout + i, n - i, T(0)), p = load_rest(y + i, n - i, T(0));
        store_row(dx + i, Log ? d - alone(exp(p) * sum) : p * (d - sum), n - i);
    }
}

enum class Kind { softmax, logarithm, sum };

// Sums of as many neighbouring columns as a pack has.
template <class T>
struct ColumnSums {
    static constexpr int kParts = static_cast<int>(sizeof(double) / sizeof(T));
    Pack<double> part[kParts];

    [[gnu::always_inline]] static ColumnSums of(Pack<T> x) {
        ColumnSums s;
        if constexpr (kParts == 2) {
            const Doubles d = widen(x);
            s.part[0] = d.low;
            s.part[1] = d.high;
        } else {
            s.part[0] = x;
        }
        return s;
    }
    [[gnu::always_inline]] friend ColumnSums operator+(ColumnSums a, ColumnSums b) {
        for (int i = 0; i < kParts; ++i) a.part[i] = a.part[i] + b.part[i];
        return a;
    }
    template <class F>
    [[gnu::always_inline]] Pack<T> rounded(F f) const {
        if constexpr (kParts == 2)
            return narrow({f(part[0]), f(part[1])});
        else
            return f(part[0]);
    }
};

// sum[k] = the sum over the rows of value(row, k): packs of T, or ColumnSums.
template <int Packs, class T, class Value>
[[gnu::always_inline]] inline void sum_column_group(int64_t rows, int64_t stride, ColumnSums<T>* sum, Value value) {
    using Sums = ColumnSums<T>;
    const int64_t lanes = lanes_of_sum(stride);
    const Sums zero = Sums::of(Pack<T>(0));
    for (int k = 0; k < Packs; ++k) sum[k] = zero;
    for (int64_t block = 0; block < rows; block += kSumRows * lanes) {
        const int64_t end = rows - block < kSumRows * lanes ? rows : block + kSumRows * lanes;
        // Rows from r on; the last group may have fewer than four.
        auto leaf = [&](int64_t r, int64_t distance, int k) __attribute__((always_inline)) {
            auto first = value(r, k);
            if (r + distance < end) first = first + value(r + distance, k);
            if (r + 2 * distance < end) {
                auto second = value(r + 2 * distance, k);
                if (r + 3 * distance < end) second = second + value(r + 3 * distance, k);
                first = first + second;
            }
            return Sums::of(first);
        };
        if (lanes == 1) {
            Sums part[Packs];
            for (int k = 0; k < Packs; ++k) part[k] = zero;
            int64_t r = block;
            for (; r + kSumLeaf <= end; r += kSumLeaf)
                for (int k = 0; k < Packs; ++k) {
                    const auto first = value(r, k), second = value(r + 1, k), third = value(r + 2, k);
                    part[k] = part[k] + Sums::of((first + second) + (third + value(r + 3, k)));
                }
            if (r < end)
                for (int k = 0; k < Packs; ++k) part[k] = part[k] + leaf(r, 1, k);
            for (int k = 0; k < Packs; ++k) sum[k] = sum[k] + part[k];
            continue;
        }
        for (int k = 0; k < Packs; ++k) {
            Sums part[kSumLanes];
            for (int64_t lane = 0; lane < lanes; ++lane) {
                part[lane] = zero;
                for (int64_t r = block + lane; r < end; r += kSumLeaf * lanes)
                    part[lane] = part[lane] + leaf(r, lanes, k);
            }
            join_lanes(part, lanes, 1, [](Sums a, Sums b) { return a + b; });
            sum[k] = sum[k] + part[0];
        }
    }
}

// Columns in groups of packs: all rows of a group for the largest, again for the sum, again for the result.
template <Kind K, int Packs, class T>
[[gnu::always_inline]] inline void column_group(const T* x, T* y, int64_t rows, int64_t stride, int64_t rest) {
    constexpr int lanes = Pack<T>::lanes;
    Pack<T> largest[Packs], sum[Packs];
    auto load = [&](int64_t r, int k) __attribute__((always_inline)) {
        return load_rest(x + r * stride + k * lanes, rest - k * lanes, T(0));
    };
    for (int k = 0; k < Packs; ++k) largest[k] = load(0, k);
    for (int64_t r = 1; r < rows; ++r)
        for (int k = 0; k < Packs; ++k) largest[k] = better<true>(largest[k], load(r, k));
    Pack<T> shift[Packs];
    for (int k = 0; k < Packs; ++k) {
        // If the largest is inf or -inf, logsumexp is that; shifting by it would give NaN.
        Mask<T> finite = (largest[k] - largest[k]) == Pack<T>(0);
        shift[k] = K == Kind::sum ? select(finite, largest[k], Pack<T>(0)) : largest[k];
    }
    ColumnSums<T> total[Packs];
    sum_column_group<Packs>(
        rows, stride, total, [&](int64_t r, int k) __attribute__((always_inline)) {
            Pack<T> e = exp_of_difference(load(r, k) - shift[k]);
            if (K == Kind::softmax) store_row(y + r * stride + k * lanes, e, rest - k * lanes);
            return e;
        });
    for (int k = 0; k < Packs; ++k) {
        if (K == Kind::softmax) sum[k] = total[k].rounded([](Pack<double> s) { return Pack<double>(1) / s; });
        if (K == Kind::logarithm) sum[k] = total[k].rounded([](Pack<double> s) { return log(s); });
        if (K == Kind::sum) {
            for (Pack<double>& s : total[k].part) s = log(s);
            const ColumnSums<T> whole = ColumnSums<T>::of(largest[k]) + total[k];
            Mask<T> finite = (largest[k] - largest[k]) == Pack<T>(0);
            store_row(y + k * lanes, select(finite, whole.rounded([](Pack<double> s) { return s; }), largest[k]),
                      rest - k * lanes);
        }
    }
    if (K == Kind::sum) return;
    for (int64_t r = 0; r < rows; ++r)
        for (int k = 0; k < Packs; ++k) {
            T* out = y + r * stride + k * lanes;
            int64_t left = rest - k * lanes;
            if (K == Kind::softmax)
                store_row(out, load_rest(out, left, T(0)) * sum[k], left);
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
        return load_rest(x + r * stride + k * lanes, rest - k * lanes, T(0));
    };
    ColumnSums<T> total[Packs];
    sum_column_group<Packs>(
        rows, stride, total, [&](int64_t r, int k) __attribute__((always_inline)) {
            const Pack<T> d = load(dout, r, k);
            if constexpr (Log)
                return d;
            else
                return alone(d * load(y, r, k));
        });
    Pack<T> sum[Packs];
    for (int k = 0; k < Packs; ++k) sum[k] = total[k].rounded([](Pack<double> s) { return s; });
    for (int64_t r = 0; r < rows; ++r)
        for (int k = 0; k < Packs; ++k) {
            Pack<T> d = load(dout, r, k), p = load(y, r, k);
            store_row(dx + r * stride + k * lanes, Log ? d - alone(exp(p) * sum[k]) : p * (d - sum[k]),
                      rest - k * lanes);
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

// A vector of queries. Scores are scaled whenever they are read, which is cheaper than storing them scaled.
template <class T>
void attend_vector(T* scores, int64_t keys, int64_t width, Pack<T> scale, int64_t seen, T* most, T* sum, T* keep) {
    constexpr int lanes = Pack<T>::lanes;
    const Pack<T> nothing = spread(-static_cast<T>(__builtin_inf()));
    auto clamped = [keys](int64_t n) { return n < 0 ? 0 : n < keys ? n : keys; };
    // The number of keys that all of these queries see, and that some see.
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
    // For queries that see nothing yet, -inf minus -inf would be NaN.
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
void exponentials_across(const T* x, T* y, int64_t n, int64_t width) {
    constexpr int lanes = Pack<T>::lanes;
    for (int64_t j = 0; j < width; j += lanes) {
        Pack<T> largest = Pack<T>::load(x + j);
        for (int64_t k = 1; k < n; ++k) largest = better<true>(largest, Pack<T>::load(x + k * width + j));
        for (int64_t k = 0; k < n; ++k)
            exp_of_difference(Pack<T>::load(x + k * width + j) - largest).store(y + k * width + j);
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
    l.exponentials_across = exponentials_across<T>;
    return l;
}

}  // namespace

void fill_softmax_loops(RowLoops& l) {
    l.softmax_f32 = loops<float>();
    l.softmax_f64 = loops<double>();
}

}  // namespace lunaria::cpu::LUNARIA_ISA
