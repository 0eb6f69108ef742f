// Sums, sums of squares and extrema of rows and of columns.
#include <type_traits>

#include "backends/cpu/simd/fold.h"
#include "backends/cpu/simd/row_loops.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

// Elements that one set of accumulators takes before it is added up in double.
constexpr int64_t kBlock = 16384;
// Rows that the accumulators of a tile take before they are added up.
constexpr int64_t kTileRows = 512;

template <bool Far, class T>
double sum_row(const T* x, int64_t n) {
    double total = 0;
    for (int64_t i = 0; i < n; i += kBlock) {
        auto add = [](Pack<T> a, Pack<T> p) __attribute__((always_inline)) { return a + p; };
        total += sum_lanes(fold<Far>(x + i, n - i < kBlock ? n - i : kBlock, Pack<T>(0), T(0), add, add));
    }
    return total;
}

// NaN counts as 0.
template <class T>
[[gnu::always_inline]] inline Pack<T> number_or_zero(Pack<T> x) {
    return select(x == x, x, Pack<T>(0));
}
template <class T>
double sum_numbers(const T* x, int64_t n) {
    double total = 0;
    for (int64_t i = 0; i < n; i += kBlock) {
        auto add = [](Pack<T> a, Pack<T> p) __attribute__((always_inline)) { return a + number_or_zero(p); };
        auto join = [](Pack<T> a, Pack<T> b) __attribute__((always_inline)) { return a + b; };
        total += sum_lanes(fold(x + i, n - i < kBlock ? n - i : kBlock, Pack<T>(0), T(0), add, join));
    }
    return total;
}

// Short rows two at a time: adding up the lanes of one takes place while the other is read.
template <bool Far, class T>
void sum_rows(const T* x, int64_t rows, int64_t n, double* totals) {
    constexpr int lanes = Pack<T>::lanes;
    constexpr int64_t kShort = 16 * lanes;
    int64_t r = 0;
    for (; r + 2 <= rows && n <= kShort && n % lanes == 0; r += 2) {
        const T *p = x + r * n, *q = p + n;
        Pack<T> a(0), b(0), c(0), d(0);
        int64_t i = 0;
        for (; i + 2 * lanes <= n; i += 2 * lanes) {
            a = a + Pack<T>::load(p + i);
            b = b + Pack<T>::load(p + i + lanes);
            c = c + Pack<T>::load(q + i);
            d = d + Pack<T>::load(q + i + lanes);
        }
        if (i < n) {
            a = a + Pack<T>::load(p + i);
            c = c + Pack<T>::load(q + i);
        }
        totals[r] = sum_lanes(a + b);
        totals[r + 1] = sum_lanes(c + d);
    }
    for (; r < rows; ++r) totals[r] = sum_row<Far>(x + r * n, n);
}

template <class T>
double square_row(const T* x, int64_t n, double from) {
    double total = 0;
    T centre = static_cast<T>(from);
    Pack<T> c = spread(centre);
    for (int64_t i = 0; i < n; i += kBlock) {
        auto add = [](Pack<T> a, Pack<T> p) __attribute__((always_inline)) { return a + p; };
        auto step = [c](Pack<T> a, Pack<T> p) __attribute__((always_inline)) { return fma(p - c, p - c, a); };
        total += sum_lanes(fold(x + i, n - i < kBlock ? n - i : kBlock, Pack<T>(0), centre, step, add));
    }
    return total;
}

template <class T>
struct Power {
    T order;
    // A function of its own: powers are long, and this stands in many places.
    [[gnu::noinline]] static Pack<T> of(Pack<T> x, T order) {
        return order == T(0) ? select(x != Pack<T>(0), Pack<T>(1), Pack<T>(0)) : pow(abs(x), spread(order));
    }
    [[gnu::always_inline]] Pack<T> operator()(Pack<T> x, int64_t = 0) const { return of(x, order); }
    [[gnu::always_inline]] T operator()(T x, int64_t = 0) const { return of(spread(x), order).v[0]; }
};
template <class T>
double sum_powers(const T* x, int64_t n, double order) {
    const Power<T> power{static_cast<T>(order)};
    // What has the power 0.
    const T fill = order < 0 ? T(__builtin_inf()) : T(0);
    double total = 0;
    for (int64_t i = 0; i < n; i += kBlock) {
        auto add = [](Pack<T> a, Pack<T> p) __attribute__((always_inline)) { return a + p; };
        auto step = [power](Pack<T> a, Pack<T> p) __attribute__((always_inline)) { return a + power(p); };
        total += sum_lanes(fold(x + i, n - i < kBlock ? n - i : kBlock, Pack<T>(0), fill, step, add));
    }
    return total;
}

// In double, so that a product of many floats does not leave their range on the way.
double product_row(const float* x, int64_t n) {
    constexpr int lanes = Pack<float>::lanes;
    Pack<double> a = Pack<double>(1), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
        Doubles x0 = widen(Pack<float>::load(x + i)), x1 = widen(Pack<float>::load(x + i + lanes));
        a = a * x0.low;
        b = b * x0.high;
        c = c * x1.low;
        d = d * x1.high;
    }
    for (; i < n; i += lanes) {
        int64_t rest = n - i;
        Doubles last = widen(load_filled(x + i, rest < lanes ? static_cast<int>(rest) : lanes, 1.0f));
        a = a * last.low;
        b = b * last.high;
    }
    alignas(kBytes) double part[Pack<double>::lanes];
    ((a * b) * (c * d)).store(part);
    double product = 1;
    for (double p : part) product *= p;
    return product;
}
double product_row(const double* x, int64_t n) {
    auto times = [](Pack<double> a, Pack<double> p) __attribute__((always_inline)) { return a * p; };
    alignas(kBytes) double part[Pack<double>::lanes];
    fold(x, n, Pack<double>(1), 1.0, times, times).store(part);
    double product = 1;
    for (double p : part) product *= p;
    return product;
}

// Mostly elements differ from the ones before, or are equal to them, by whole packs. Where they do so by turns, an
// element is written always and kept where a run starts: data decide no branch.
template <class T>
int64_t first_of_runs(const T* x, int64_t n, T* out) {
    constexpr int lanes = Pack<T>::lanes;
    if (n == 0) return 0;
    out[0] = x[0];
    int64_t runs = 1, i = 1;
    auto one_by_one = [&](int64_t end) __attribute__((always_inline)) {
        for (; i < end; ++i) {
            const T a = x[i], b = x[i - 1];
            out[runs] = a;
            runs += ((a != b) & ((a == a) | (b == b))) ? 1 : 0;
        }
    };
    while (i + lanes <= n) {
        const Pack<T> a = Pack<T>::load(x + i), b = Pack<T>::load(x + i - 1);
        const Mask<T> starts = (a != b) & ((a == a) | (b == b));
        if (!any(!starts)) {
            a.store(out + runs);
            runs += lanes;
        } else if (any(starts)) {
            one_by_one(i + lanes);
            continue;
        }
        i += lanes;
    }
    one_by_one(n);
    return runs;
}

// Adds value(x, column) of the rows to the totals. Eight rows are added to each other first: that many fewer visits of
// the accumulators, and a shorter chain of roundings. A few packs of one row after the other, which the processor then
// reads ahead by itself: asking for what comes next takes a third longer where it comes from memory.
template <class T, class Value>
[[gnu::always_inline]] inline void add_columns(const T* x, int64_t rows, int64_t width, int64_t stride, double* totals,
                                               Value value) {
    constexpr int lanes = Pack<T>::lanes, kRows = 8, kPacks = 4;
    // The accumulators lie where x lies within a page: a processor that compares the lower bits of addresses only would
    // else take loads of x for loads of what was just stored to an accumulator a little further on.
    constexpr int64_t kPage = 4096;
    alignas(64) char space[kPage + kTileColumns * sizeof(T)];
    T* const part = reinterpret_cast<T*>(space + (reinterpret_cast<uintptr_t>(x) - reinterpret_cast<uintptr_t>(space)) %
                                                     kPage / 64 * 64);
    tiles(
        width, [&](int64_t first, int64_t columns) __attribute__((always_inline)) {
            for (int64_t block = 0; block < rows; block += kTileRows) {
                int64_t end = rows - block < kTileRows ? rows : block + kTileRows;
                for (int64_t j = 0; j < columns; ++j) part[j] = T(0);
                int64_t r = block;
                auto add_some = [&](auto count) __attribute__((always_inline)) {
                    const T* p = x + r * stride + first;
                    auto at = [&](int k, int64_t j) __attribute__((always_inline)) {
                        return value(Pack<T>::load(p + k * stride + j), first + j);
                    };
                    int64_t j = 0;
                    for (; j + kPacks * lanes <= columns; j += kPacks * lanes) {
                        Pack<T> sum[kPacks];
                        for (int c = 0; c < kPacks; ++c) sum[c] = at(0, j + c * lanes);
                        for (int k = 1; k < count; ++k)
                            for (int c = 0; c < kPacks; ++c) sum[c] = sum[c] + at(k, j + c * lanes);
                        for (int c = 0; c < kPacks; ++c) {
                            T* const to = part + j + c * lanes;
                            (Pack<T>::load(to) + sum[c]).store(to);
                        }
                    }
                    for (; j + lanes <= columns; j += lanes) {
                        Pack<T> sum = at(0, j);
                        for (int k = 1; k < count; ++k) sum = sum + at(k, j);
                        (Pack<T>::load(part + j) + sum).store(part + j);
                    }
                    for (; j < columns; ++j)
                        for (int k = 0; k < count; ++k) part[j] += value(p[k * stride + j], first + j);
                    r += count;
                };
                while (r + kRows <= end) add_some(std::integral_constant<int, kRows>());
                if (r + 4 <= end) add_some(std::integral_constant<int, 4>());
                while (r < end) add_some(std::integral_constant<int, 1>());
                for (int64_t j = 0; j < columns; ++j) totals[first + j] += static_cast<double>(part[j]);
            }
        });
}

template <class T>
void sum_columns(const T* x, int64_t rows, int64_t width, int64_t stride, double* totals) {
    add_columns(
        x, rows, width, stride, totals, [](auto v, int64_t) __attribute__((always_inline)) { return v; });
}

template <class T>
void sum_number_columns(const T* x, int64_t rows, int64_t width, int64_t stride, double* totals) {
    struct Number {
        [[gnu::always_inline]] Pack<T> operator()(Pack<T> v, int64_t) const { return number_or_zero(v); }
        [[gnu::always_inline]] T operator()(T v, int64_t) const { return v == v ? v : T(0); }
    };
    add_columns(x, rows, width, stride, totals, Number{});
}

template <class T>
void product_columns(const T* x, int64_t rows, int64_t width, int64_t stride, double* totals) {
    tiles(width, [&](int64_t first, int64_t columns) {
        double* t = totals + first;
        for (int64_t r = 0; r < rows; ++r) {
            const T* p = x + r * stride + first;
            for (int64_t j = 0; j < columns; ++j) t[j] *= static_cast<double>(p[j]);
        }
    });
}

template <class T>
void square_columns(const T* x, int64_t rows, int64_t width, int64_t stride, const double* from, double* totals) {
    alignas(64) T centre[kTileColumns];
    tiles(
        width, [&](int64_t first, int64_t columns) __attribute__((always_inline)) {
            for (int64_t j = 0; j < columns; ++j) centre[j] = static_cast<T>(from[first + j]);
            struct Square {
                const T* centre;
                [[gnu::always_inline]] Pack<T> operator()(Pack<T> v, int64_t j) const {
                    Pack<T> d = v - Pack<T>::load(centre + j);
                    return d * d;
                }
                [[gnu::always_inline]] T operator()(T v, int64_t j) const { return (v - centre[j]) * (v - centre[j]); }
            };
            add_columns(x + first, rows, columns, stride, totals + first, Square{centre});
        });
}

template <class T>
void power_columns(const T* x, int64_t rows, int64_t width, int64_t stride, double order, double* totals) {
    add_columns(x, rows, width, stride, totals, Power<T>{static_cast<T>(order)});
}

template <bool Largest, class T>
void best_columns(const T* x, int64_t rows, int64_t width, int64_t stride, T* best) {
    constexpr int lanes = Pack<T>::lanes;
    tiles(
        width, [&](int64_t first, int64_t columns) __attribute__((always_inline)) {
            T* b = best + first;
            for (int64_t r = 0; r < rows;) {
                const T* p = x + r * stride + first;
                bool four = r + 4 <= rows;
                int64_t j = 0;
                for (; j + lanes <= columns; j += lanes) {
                    Pack<T> v = better<Largest>(Pack<T>::load(b + j), Pack<T>::load(p + j));
                    if (four)
                        for (int k = 1; k < 4; ++k) v = better<Largest>(v, Pack<T>::load(p + k * stride + j));
                    v.store(b + j);
                }
                for (; j < columns; ++j)
                    for (int k = 0; k < (four ? 4 : 1); ++k) {
                        T v = p[k * stride + j];
                        if ((Largest ? v > b[j] : v < b[j]) || v != v) b[j] = v;
                    }
                r += four ? 4 : 1;
            }
        });
}

// A later element only replaces an earlier one when it is really better, or the first NaN.
template <bool Largest, class T>
void first_best_columns(const T* x, int64_t rows, int64_t width, int64_t stride, int64_t row, T* best, int64_t* at) {
    constexpr int lanes = Pack<T>::lanes;
    using Place = BitsOf<T>;
    alignas(64) Place place[kTileColumns];
    tiles(
        width, [&](int64_t first, int64_t columns) __attribute__((always_inline)) {
            T* b = best + first;
            // Places relative to the first row, in integers as wide as T: -1 where the earlier best still holds.
            for (int64_t j = 0; j < columns; ++j) place[j] = -1;
            for (int64_t r = 0; r < rows; ++r) {
                const T* p = x + r * stride + first;
                Pack<Place> here = spread(static_cast<Place>(r));
                int64_t j = 0;
                for (; j + lanes <= columns; j += lanes) {
                    Pack<T> v = Pack<T>::load(p + j), old = Pack<T>::load(b + j);
                    Mask<T> wins = (Largest ? v > old : v < old) | ((v != v) & (old == old));
                    select(wins, v, old).store(b + j);
                    select(Mask<Place>(wins.v), here, Pack<Place>::load(place + j)).store(place + j);
                }
                for (; j < columns; ++j)
                    if ((Largest ? p[j] > b[j] : p[j] < b[j]) || (p[j] != p[j] && b[j] == b[j])) {
                        b[j] = p[j];
                        place[j] = static_cast<Place>(r);
                    }
            }
            for (int64_t j = 0; j < columns; ++j)
                if (place[j] >= 0) at[first + j] = row + place[j];
        });
}

template <class T>
ReduceLoops<T> loops() {
    ReduceLoops<T> l;
    l.sum = sum_row<false, T>;
    l.sum_far = sum_row<true, T>;
    l.sum_rows = sum_rows<false, T>;
    l.sum_rows_far = sum_rows<true, T>;
    l.squares = square_row<T>;
    l.powers = sum_powers<T>;
    l.product = product_row;
    l.sum_numbers = sum_numbers<T>;
    l.sum_number_columns = sum_number_columns<T>;
    l.product_columns = product_columns<T>;
    l.largest = best_row<true, T>;
    l.smallest = best_row<false, T>;
    l.find = find<T>;
    l.first_of_runs = first_of_runs<T>;
    l.sum_columns = sum_columns<T>;
    l.square_columns = square_columns<T>;
    l.power_columns = power_columns<T>;
    l.largest_columns = best_columns<true, T>;
    l.smallest_columns = best_columns<false, T>;
    l.first_largest_columns = first_best_columns<true, T>;
    l.first_smallest_columns = first_best_columns<false, T>;
    return l;
}

}  // namespace

void fill_reduce_loops(RowLoops& l) {
    l.reduce_f32 = loops<float>();
    l.reduce_f64 = loops<double>();
}

}  // namespace lunaria::cpu::LUNARIA_ISA
