// Sums, products and extrema of rows and columns of integers, and tests for 0. Integers may be combined in any order
// with the same result, so that the compiler vectorises these loops, except where it does not see how.
#include <type_traits>

#include "backends/cpu/simd/fold.h"
#include "backends/cpu/simd/row_loops.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

// The sum of of(x[i]) over whole blocks of Lanes elements: in totals of a narrow type, which are added up before they
// can overflow. `i` becomes the end of the last block.
template <class Narrow, int64_t Lanes, int64_t Steps, class T, class Of>
[[gnu::always_inline]] inline uint64_t narrow_sum(const T* x, int64_t n, int64_t& i, Of of) {
    uint64_t total = 0;
    while (i + Lanes <= n) {
        Narrow part[Lanes] = {};
        for (int64_t step = 0; step < Steps && i + Lanes <= n; ++step, i += Lanes)
            for (int64_t j = 0; j < Lanes; ++j) part[j] = static_cast<Narrow>(part[j] + of(x[i + j]));
        for (Narrow p : part) total += static_cast<uint64_t>(static_cast<int64_t>(p));
    }
    return total;
}

template <class T>
int64_t sum_row(const T* x, int64_t n) {
    uint64_t total = 0;
    int64_t i = 0;
    if constexpr (sizeof(T) == 1) {
        using Wide = std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>;
        total = narrow_sum<Wide, 64, 128>(x, n, i, [](T v) { return v; });
    }
    for (; i < n; ++i) total += static_cast<uint64_t>(static_cast<int64_t>(x[i]));
    return static_cast<int64_t>(total);
}

// Many products at a time: a multiplication waits long for the one before.
template <class T>
int64_t product_row(const T* x, int64_t n) {
    constexpr int64_t kLanes = 64;
    uint64_t part[kLanes], total = 1;
    for (uint64_t& p : part) p = 1;
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (int64_t j = 0; j < kLanes; ++j) part[j] *= static_cast<uint64_t>(static_cast<int64_t>(x[i + j]));
    for (uint64_t p : part) total *= p;
    for (; i < n; ++i) total *= static_cast<uint64_t>(static_cast<int64_t>(x[i]));
    return static_cast<int64_t>(total);
}

// Calls f(part of the first of some rows, their number, first column, columns) for all rows, tile by tile. The number
// is a constant, 4 or 1: for rows one by one, visits to the results would take most of the time.
template <class T, class F>
[[gnu::always_inline]] inline void rows_of_tiles(const T* x, int64_t rows, int64_t width, int64_t stride, F f) {
    tiles(
        width, [&](int64_t first, int64_t columns) __attribute__((always_inline)) {
            int64_t r = 0;
            for (; r + 4 <= rows; r += 4) f(x + r * stride + first, std::integral_constant<int, 4>(), first, columns);
            for (; r < rows; ++r) f(x + r * stride + first, std::integral_constant<int, 1>(), first, columns);
        });
}

template <bool Product, class T>
void total_columns(const T* x, int64_t rows, int64_t width, int64_t stride, int64_t* totals) {
    // A type that holds the sum of four.
    using Sum = std::conditional_t<sizeof(T) == 1, int16_t, std::conditional_t<sizeof(T) == 2, int32_t, uint64_t>>;
    using Part = std::conditional_t<Product, uint64_t, Sum>;
    // Several narrow rows that follow one another are as one.
    constexpr int64_t kNarrow = 64;
    if (const int64_t beside = kNarrow / width; stride == width && beside > 1 && rows >= 4 * beside) {
        int64_t wide[kNarrow];
        const int64_t whole = rows / beside, columns = beside * width;
        for (int64_t& w : wide) w = Product ? 1 : 0;
        total_columns<Product>(x, whole, columns, columns, wide);
        total_columns<Product>(wide, beside, width, width, totals);
        x += whole * columns;
        rows -= whole * beside;
    }
    rows_of_tiles(
        x, rows, width,
        stride, [&](const T* p, auto some, int64_t first, int64_t columns) __attribute__((always_inline)) {
            auto* t = reinterpret_cast<uint64_t*>(totals + first);
            for (int64_t j = 0; j < columns; ++j) {
                Part part = static_cast<Part>(static_cast<int64_t>(p[j]));
                for (int k = 1; k < some; ++k) {
                    const auto value = static_cast<Part>(static_cast<int64_t>(p[k * stride + j]));
                    part = static_cast<Part>(Product ? part * value : part + value);
                }
                const auto wide = static_cast<uint64_t>(static_cast<int64_t>(part));
                t[j] = Product ? t[j] * wide : t[j] + wide;
            }
        });
}

template <bool Largest, class T>
void best_columns(const T* x, int64_t rows, int64_t width, int64_t stride, T* best) {
    rows_of_tiles(
        x, rows, width,
        stride, [&](const T* p, auto some, int64_t first, int64_t columns) __attribute__((always_inline)) {
            T* b = best + first;
            for (int64_t j = 0; j < columns; ++j) {
                T most = b[j];
                for (int k = 0; k < some; ++k) {
                    const T value = p[k * stride + j];
                    most = (Largest ? value > most : value < most) ? value : most;
                }
                b[j] = most;
            }
        });
}

template <class T>
int64_t count_row(const T* x, int64_t n) {
    int64_t i = 0;
    // Counts as wide as the elements.
    using Count = std::make_unsigned_t<BitsOf<T>>;
    const uint64_t total = narrow_sum<Count, 256 / sizeof(T), 255>(x, n, i, [](T v) { return v != T(0); });
    auto count = static_cast<int64_t>(total);
    for (; i < n; ++i) count += x[i] != T(0);
    return count;
}

template <bool All, class T>
void truth_columns(const T* x, int64_t rows, int64_t width, int64_t stride, uint8_t* result) {
    rows_of_tiles(
        x, rows, width,
        stride, [&](const T* p, auto some, int64_t first, int64_t columns) __attribute__((always_inline)) {
            uint8_t* to = result + first;
            for (int64_t j = 0; j < columns; ++j) {
                uint8_t truth = to[j];
                for (int k = 0; k < some; ++k) {
                    const uint8_t here = p[k * stride + j] != T(0);
                    truth = static_cast<uint8_t>(All ? truth & here : truth | here);
                }
                to[j] = truth;
            }
        });
}

template <class T>
TruthLoops<T> truth_loops() {
    return {count_row<T>, truth_columns<true, T>, truth_columns<false, T>};
}

template <class T>
IntegerRows<T> rows() {
    return {{sum_row<T>, product_row<T>, best_row<true, T>, best_row<false, T>, find<T>, total_columns<false, T>,
             total_columns<true, T>, best_columns<true, T>, best_columns<false, T>, first_best_columns<true, T>,
             first_best_columns<false, T>},
            truth_loops<T>()};
}

}  // namespace

void fill_integer_loops(RowLoops& l) {
    l.u8 = rows<uint8_t>();
    l.i8 = rows<int8_t>();
    l.i16 = rows<int16_t>();
    l.i32 = rows<int32_t>();
    l.i64 = rows<int64_t>();
    l.truth_f32 = truth_loops<float>();
    l.truth_f64 = truth_loops<double>();
}

}  // namespace lunaria::cpu::LUNARIA_ISA
