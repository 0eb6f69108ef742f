// Sums, sums of squares and extrema of rows and of columns.
#include <type_traits>

#include "backends/cpu/simd/fold.h"
#include "backends/cpu/simd/row_loops.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

// Prefetches a page ahead, from the next row if this one is shorter: data from the second cache then comes in half the
// time that the processor's own read-ahead takes, from the last cache a tenth faster, from memory a tenth slower.
template <class T>
[[gnu::always_inline]] inline void fetch_ahead(const T* x) {
    constexpr int64_t kLine = 64 / sizeof(T), kAhead = 4096 / sizeof(T);
    for (int64_t line = 0; line < kSumLanes; line += kLine) __builtin_prefetch(x + kAhead + line);
}

template <bool Far, class T>
double sum_row(const T* x, int64_t n) {
    return sum_blocks(
        n, [x](int64_t i, int64_t count) __attribute__((always_inline)) {
            if constexpr (!Far) fetch_ahead(x + i);
            return Step<T>::load(x + i, count, T(0));
        });
}

// NaN counts as 0.
template <class T, int Parts>
[[gnu::always_inline]] inline Step<T, Parts> numbers_or_zeros(Step<T, Parts> x) {
    for (auto& p : x.part) p = p == p ? p : Vector<T>{};
    return x;
}
template <class T>
double sum_numbers(const T* x, int64_t n) {
    return sum_blocks(
        n, [x](int64_t i, int64_t count)
               __attribute__((always_inline)) { return numbers_or_zeros(Step<T>::load(x + i, count, T(0))); });
}

// Several short rows at a time: the lanes of one are added up while the others are read.
template <bool Far, class T>
void sum_rows(const T* x, int64_t rows, int64_t n, double* totals) {
    constexpr int kRows = kBytes == 16 ? 1 : kBytes == 32 ? 2 : 4, kLeaf = kSumLeaf * kSumLanes;
    constexpr int64_t kShort = 4 * kLeaf;
    int64_t r = 0;
    for (; r + kRows <= rows && n <= kShort && n % kLeaf == 0; r += kRows) {
        const T* p = x + r * n;
        Lanes sum[kRows];
        for (Lanes& s : sum) s = Lanes::of(0);
        for (int64_t i = 0; i < n; i += kLeaf)
            for (int k = 0; k < kRows; ++k) {
                auto at = [&](int64_t step) __attribute__((always_inline)) {
                    return Step<T>::load(p + k * n + i + step * kSumLanes);
                };
                sum[k] = sum[k] + widen((at(0) + at(1)) + (at(2) + at(3)));
            }
        for (int k = 0; k < kRows; ++k) totals[r + k] = sum_lanes(sum[k]);
    }
    for (; r < rows; ++r) totals[r] = sum_row<Far>(x + r * n, n);
}

template <int Parts>
[[gnu::always_inline]] inline void store_first(const Step<double, Parts>& l, double* to, int64_t count) {
    if (count >= l.kCount) return l.store(to);
    alignas(64) double some[l.kCount];
    l.store(some);
    for (int64_t i = 0; i < count; ++i) to[i] = some[i];
}

// Squares of differences in T; if large ones leave its range, all are computed in float64.
template <class S, class T>
[[gnu::always_inline]] inline double squares_in(const T* x, int64_t n, T centre) {
    return sum_blocks(
        n, [ x, centre ](int64_t i, int64_t count) __attribute__((always_inline)) {
            const auto d = WholeStep<T>::load(x + i, count, centre) - spread(centre);
            if constexpr (sizeof(S) == sizeof(T))
                return d * d;
            else
                return widen(d) * widen(d);
        });
}
template <class T>
double square_row(const T* x, int64_t n, double from) {
    const double total = squares_in<T>(x, n, static_cast<T>(from));
    if constexpr (sizeof(T) == sizeof(float))
        if (!(total < __builtin_inf())) return squares_in<double>(x, n, static_cast<T>(from));
    return total;
}

enum class Order { one, two, other };

template <Order O, class T>
struct Power {
    T order;
    // A function of its own: powers are long, and this is used in many places.
    [[gnu::noinline]] static Pack<T> of(Pack<T> x, T order) {
        if (order == T(3)) return abs(x) * (x * x);
        return order == T(0) ? select(x != Pack<T>(0), Pack<T>(1), Pack<T>(0)) : pow(abs(x), spread(order));
    }
    template <int Parts>
    [[gnu::always_inline]] Step<T, Parts> operator()(Step<T, Parts> x, int64_t = 0) const {
        if constexpr (O == Order::two) return x * x;
        if constexpr (O == Order::one)
            for (auto& p : x.part) p = p < 0 ? -p : p;
        if constexpr (O == Order::other) {
            alignas(64) T some[kSumLanes] = {};
            x.store(some);
            for (int k = 0; k < x.kCount; k += Pack<T>::lanes) of(Pack<T>::load(some + k), order).store(some + k);
            x = Step<T, Parts>::load(some);
        }
        return x;
    }
};
// Calls f with the powers of an order.
template <class T, class F>
[[gnu::always_inline]] inline auto with_power(double order, F f) {
    if (order == 1) return f(Power<Order::one, T>{});
    if (order == 2) return f(Power<Order::two, T>{});
    return f(Power<Order::other, T>{static_cast<T>(order)});
}

template <class T>
double sum_powers(const T* x, int64_t n, double order) {
    // A number whose power is 0.
    const T fill = order < 0 ? T(__builtin_inf()) : T(0);
    return with_power<T>(order, [x, n, fill](auto power) {
        return sum_blocks(
            n, [ x, power, fill ](int64_t i, int64_t count)
                   __attribute__((always_inline)) { return power(Step<T>::load(x + i, count, fill)); });
    });
}

// In double, so that a product of many floats stays in range on the way.
template <class T>
double product_row(const T* x, int64_t n) {
    Lanes product = Lanes::of(1);
    for (int64_t i = 0; i < n; i += kSumLanes) product = product * widen(Step<T>::load(x + i, n - i, T(1)));
    return joined(
        product, [](auto a, auto b) __attribute__((always_inline)) { return a * b; });
}

// Mostly whole packs of elements differ from, or are equal to, the ones before. Where they alternate, an element is
// always written and kept where a run starts, so that no branch depends on the data.
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

// Adds value(element of x, column) of the rows to the totals, four by four. Eight rows at a time save visits to the
// totals. Within these, a few packs of one row after the other, which the processor then reads ahead by itself:
// explicit prefetching takes a third longer where the data comes from memory.
template <class T, class Value>
[[gnu::always_inline]] inline void add_columns(const T* x, int64_t rows, int64_t width, int64_t stride, double* totals,
                                               Value value) {
    constexpr int kRows = 8, kSteps = kBytes == 64 ? 4 : 1;
    tiles(
        width, [&](int64_t first, int64_t columns) __attribute__((always_inline)) {
            double* const sums = totals + first;
            int64_t r = 0;
            auto add_some = [&](auto count) __attribute__((always_inline)) {
                const T* p = x + r * stride + first;
                auto at = [&](int k, int64_t j) __attribute__((always_inline)) {
                    return value(Step<T>::load(p + k * stride + j), first + j);
                };
                auto add = [&](auto steps, int64_t j) __attribute__((always_inline)) {
                    Lanes sum[steps];
                    for (int c = 0; c < steps; ++c) sum[c] = Lanes::load(sums + j + c * kSumLanes);
                    for (int k = 0; k + kSumLeaf <= count; k += kSumLeaf)
                        for (int c = 0; c < steps; ++c) {
                            const int64_t column = j + c * kSumLanes;
                            sum[c] = sum[c] + widen((at(k, column) + at(k + 1, column)) +
                                                    (at(k + 2, column) + at(k + 3, column)));
                        }
                    if constexpr (count < kSumLeaf)
                        for (int c = 0; c < steps; ++c) {
                            auto last = at(0, j + c * kSumLanes);
                            if constexpr (count > 1) last = last + at(1, j + c * kSumLanes);
                            if constexpr (count > 2) last = last + at(2, j + c * kSumLanes);
                            sum[c] = sum[c] + widen(last);
                        }
                    for (int c = 0; c < steps; ++c) sum[c].store(sums + j + c * kSumLanes);
                };
                int64_t j = 0;
                for (; j + kSteps * kSumLanes <= columns; j += kSteps * kSumLanes)
                    add(std::integral_constant<int, kSteps>(), j);
                for (; j + kSumLanes <= columns; j += kSumLanes) add(std::integral_constant<int, 1>(), j);
                if (j < columns) {
                    const int64_t rest = columns - j;
                    auto some = [&](int k) __attribute__((always_inline)) {
                        return value(Step<T>::load(p + k * stride + j, rest, T(0)), first + j);
                    };
                    Lanes sum = Lanes::load(sums + j, rest, 0.0);
                    for (int k = 0; k < count; k += kSumLeaf) {
                        auto last = some(k);
                        if (k + 1 < count) last = last + some(k + 1);
                        if (k + 2 < count) last = last + (k + 3 < count ? some(k + 2) + some(k + 3) : some(k + 2));
                        sum = sum + widen(last);
                    }
                    alignas(64) double part[kSumLanes];
                    sum.store(part);
                    for (int64_t i = 0; i < rest; ++i) sums[j + i] = part[i];
                }
                r += count;
            };
            while (r + kRows <= rows) add_some(std::integral_constant<int, kRows>());
            if (r + 4 <= rows) add_some(std::integral_constant<int, 4>());
            if (r + 3 <= rows) return add_some(std::integral_constant<int, 3>());
            if (r + 2 <= rows) return add_some(std::integral_constant<int, 2>());
            if (r < rows) add_some(std::integral_constant<int, 1>());
        });
}

template <class T>
void sum_columns(const T* x, int64_t rows, int64_t width, int64_t stride, double* totals) {
    add_columns(
        x, rows, width, stride, totals, [](Step<T> v, int64_t) __attribute__((always_inline)) { return v; });
}

template <class T>
void sum_number_columns(const T* x, int64_t rows, int64_t width, int64_t stride, double* totals) {
    add_columns(
        x, rows, width, stride, totals,
        [](Step<T> v, int64_t) __attribute__((always_inline)) { return numbers_or_zeros(v); });
}

// Columns that are computed at a time, as rows side by side: two registers of float64 for each of a row's lanes.
template <class T>
using Aside = Step<T, 2>;
inline constexpr int64_t kAside = Aside<double>::kCount;

// What of(k) gives for element k of kAside columns, 0 <= k < n <= kSumLanes, joined in the order of a row.
template <class Of, class Join>
[[gnu::always_inline]] inline Aside<double> some_across(int64_t n, Of of, Join join) {
    Aside<double> lane[kSumLanes];
    for (int64_t l = 0; l < n; ++l) lane[l] = of(l);
    for (int64_t half = kSumLanes / 2; half >= 1; half /= 2)
        for (int64_t l = 0; l < half && l + half < n; ++l)
            for (int k = 0; k < Aside<double>::kParts; ++k)
                lane[l].part[k] = join(lane[l].part[k], lane[l + half].part[k]);
    return lane[0];
}

// The same for N elements: every Step-th one from `first` on, so that few registers are needed at a time.
template <int N, int Step = 1, class Of, class Join>
[[gnu::always_inline]] inline Aside<double> few_across(Of of, Join join, int first = 0) {
    if constexpr (Step == N) {
        return of(first);
    } else {
        Aside<double> a = few_across<N, 2 * Step>(of, join, first);
        const Aside<double> b = few_across<N, 2 * Step>(of, join, first + Step);
        for (int k = 0; k < Aside<double>::kParts; ++k) a.part[k] = join(a.part[k], b.part[k]);
        return a;
    }
}
// Calls f with a power of two up to kSumLanes as a constant; false: n is none.
template <class F>
[[gnu::always_inline]] inline bool with_few(int64_t n, F f) {
    if (n == 2) return f(std::integral_constant<int, 2>()), true;
    if (n == 4) return f(std::integral_constant<int, 4>()), true;
    if (n == 8) return f(std::integral_constant<int, 8>()), true;
    if (n == 16) return f(std::integral_constant<int, 16>()), true;
    return false;
}

// totals[j] = the elements of column j, joined. value(k, j, columns): element k of the columns from j on.
template <class Value, class Join>
[[gnu::always_inline]] inline void join_across(int64_t n, int64_t width, double* totals, Value value, Join join) {
    auto columns = [&](auto across) __attribute__((always_inline)) {
        for (int64_t j = 0; j < width; j += kAside) {
            auto of = [&](int64_t k) __attribute__((always_inline)) { return widen(value(k, j, width - j)); };
            store_first(across(of), totals + j, width - j);
        }
    };
    const bool few = with_few(
        n, [&](auto count) __attribute__((always_inline)) {
            columns([&](auto of) __attribute__((always_inline)) { return few_across<count>(of, join); });
        });
    if (!few) columns([&](auto of) __attribute__((always_inline)) { return some_across(n, of, join); });
}
// Sums begin with 0, so that none is -0.
template <class Value>
[[gnu::always_inline]] inline void add_across(int64_t n, int64_t width, double* totals, Value value) {
    join_across(
        n, width, totals, value, [](auto a, auto b) __attribute__((always_inline)) { return a + b; });
    for (int64_t j = 0; j < width; ++j) totals[j] += 0.0;
}

// Element k of the columns from j on.
template <class T>
struct Across {
    const T* x;
    int64_t stride;
    [[gnu::always_inline]] Aside<T> operator()(int64_t k, int64_t j, int64_t columns) const {
        return Aside<T>::load(x + k * stride + j, columns, T(0));
    }
};

template <class T>
void sum_across(const T* x, int64_t n, int64_t width, int64_t stride, double* totals) {
    add_across(n, width, totals, Across<T>{x, stride});
}

template <class T>
void sum_numbers_across(const T* x, int64_t n, int64_t width, int64_t stride, double* totals) {
    const Across<T> at{x, stride};
    add_across(
        n, width, totals, [at](int64_t k, int64_t j, int64_t columns) __attribute__((always_inline)) {
            return numbers_or_zeros(at(k, j, columns));
        });
}

template <class T>
void squares_across(const T* x, int64_t n, int64_t width, int64_t stride, const double* from, double* totals) {
    for (int64_t j = 0; j < width; j += kAside) {
        const int64_t columns = width - j < kAside ? width - j : kAside;
        alignas(64) T centre[kAside] = {};
        for (int64_t i = 0; i < columns; ++i) centre[i] = static_cast<T>(from[j + i]);
        const Across<T> at{x + j, stride};
        add_across(
            n, columns, totals + j,
            [ at, middle = Aside<T>::load(centre) ](int64_t k, int64_t first, int64_t some)
                __attribute__((always_inline)) {
                    const Aside<T> d = at(k, first, some) - middle;
                    return d * d;
                });
    }
}

template <class T>
void powers_across(const T* x, int64_t n, int64_t width, int64_t stride, double order, double* totals) {
    const Across<T> at{x, stride};
    with_power<T>(order, [=](auto power) {
        add_across(
            n, width, totals, [ at, power ](int64_t k, int64_t j, int64_t columns) __attribute__((always_inline)) {
                return power(at(k, j, columns));
            });
    });
}

template <class T>
void product_across(const T* x, int64_t n, int64_t width, int64_t stride, double* totals) {
    join_across(
        n, width, totals, Across<T>{x, stride}, [](auto a, auto b) __attribute__((always_inline)) { return a * b; });
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

// In float64 where S is double.
template <class S, class T>
void square_columns(const T* x, int64_t rows, int64_t width, int64_t stride, const double* from, double* totals) {
    // The last columns are read as whole steps.
    alignas(64) T centre[kTileColumns + kSumLanes];
    tiles(
        width, [&](int64_t first, int64_t columns) __attribute__((always_inline)) {
            for (int64_t j = 0; j < columns; ++j) centre[j] = static_cast<T>(from[first + j]);
            for (int64_t j = columns; j < columns + kSumLanes; ++j) centre[j] = T(0);
            add_columns(
                x + first, rows, columns, stride,
                totals + first, [&centre](Step<T> v, int64_t j) __attribute__((always_inline)) {
                    const Step<T> d = v - Step<T>::load(centre + j);
                    if constexpr (sizeof(S) == sizeof(T))
                        return d * d;
                    else
                        return widen(d) * widen(d);
                });
        });
}

template <class T>
void power_columns(const T* x, int64_t rows, int64_t width, int64_t stride, double order, double* totals) {
    with_power<T>(order, [=](auto power) { add_columns(x, rows, width, stride, totals, power); });
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

template <class T>
ReduceLoops<T> loops() {
    ReduceLoops<T> l;
    l.sum = sum_row<false, T>;
    l.sum_far = sum_row<true, T>;
    l.sum_rows = sum_rows<false, T>;
    l.sum_rows_far = sum_rows<true, T>;
    l.squares = square_row<T>;
    l.powers = sum_powers<T>;
    l.product = product_row<T>;
    l.sum_numbers = sum_numbers<T>;
    l.sum_number_columns = sum_number_columns<T>;
    l.product_columns = product_columns<T>;
    l.largest = best_row<true, T>;
    l.smallest = best_row<false, T>;
    l.find = find<T>;
    l.first_of_runs = first_of_runs<T>;
    l.sum_columns = sum_columns<T>;
    l.square_columns = square_columns<T, T>;
    l.wide_square_columns = square_columns<double, T>;
    l.power_columns = power_columns<T>;
    l.sum_across = sum_across<T>;
    l.sum_numbers_across = sum_numbers_across<T>;
    l.squares_across = squares_across<T>;
    l.powers_across = powers_across<T>;
    l.product_across = product_across<T>;
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
