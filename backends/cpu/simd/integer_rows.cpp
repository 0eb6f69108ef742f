// Sums, products and extrema of rows and columns of integers, and which numbers are 0. Integers are joined in any order
// with one result, so that these loops are left to the compiler but for what it does not see.
#include "backends/cpu/simd/fold.h"
#include "backends/cpu/simd/row_loops.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

// A tile of columns whose totals stay in the first-level cache.
constexpr int64_t kTile = 1024;

template <class F>
[[gnu::always_inline]] inline void tiles(int64_t width, F f) {
    for (int64_t j = 0; j < width; j += kTile) f(j, width - j < kTile ? width - j : kTile);
}

template <class T>
int64_t sum_row(const T* x, int64_t n) {
    uint64_t total = 0;
    int64_t i = 0;
    if constexpr (sizeof(T) == 1) {
        // In 16 bits as long as they hold it.
        using Wide = std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>;
        constexpr int64_t kLanes = 64, kSteps = 128;
        for (; i + kLanes <= n;) {
            Wide part[kLanes] = {};
            for (int64_t step = 0; step < kSteps && i + kLanes <= n; ++step, i += kLanes)
                for (int64_t j = 0; j < kLanes; ++j) part[j] = static_cast<Wide>(part[j] + x[i + j]);
            for (Wide p : part) total += static_cast<uint64_t>(static_cast<int64_t>(p));
        }
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

template <bool Largest, class T>
T best_row(const T* x, int64_t n) {
    return best_of<Largest>(x, n);
}

template <class T>
int64_t find(const T* x, int64_t n, T value) {
    constexpr int lanes = Pack<T>::lanes;
    const Pack<T> wanted = spread(value);
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
        if (any(Pack<T>::load(x + i) == wanted)) break;
    while (i + 1 < n && x[i] != value) ++i;
    return i;
}

template <bool Product, class T>
void total_columns(const T* x, int64_t rows, int64_t width, int64_t stride, int64_t* totals) {
    tiles(width, [&](int64_t first, int64_t columns) {
        auto* t = reinterpret_cast<uint64_t*>(totals + first);
        for (int64_t r = 0; r < rows; ++r) {
            const T* p = x + r * stride + first;
            for (int64_t j = 0; j < columns; ++j) {
                const auto value = static_cast<uint64_t>(static_cast<int64_t>(p[j]));
                t[j] = Product ? t[j] * value : t[j] + value;
            }
        }
    });
}

template <bool Largest, class T>
void best_columns(const T* x, int64_t rows, int64_t width, int64_t stride, T* best) {
    tiles(width, [&](int64_t first, int64_t columns) {
        T* b = best + first;
        for (int64_t r = 0; r < rows; ++r) {
            const T* p = x + r * stride + first;
            for (int64_t j = 0; j < columns; ++j) b[j] = (Largest ? p[j] > b[j] : p[j] < b[j]) ? p[j] : b[j];
        }
    });
}

template <class T>
int64_t count_row(const T* x, int64_t n) {
    // Counts as wide as the elements, added up before they are full.
    using Count = std::make_unsigned_t<BitsOf<T>>;
    constexpr int64_t kLanes = 256 / sizeof(T), kSteps = 255;
    int64_t total = 0, i = 0;
    while (i + kLanes <= n) {
        Count part[kLanes] = {};
        for (int64_t step = 0; step < kSteps && i + kLanes <= n; ++step, i += kLanes)
            for (int64_t j = 0; j < kLanes; ++j) part[j] = static_cast<Count>(part[j] + (x[i + j] != T(0)));
        for (Count p : part) total += static_cast<int64_t>(p);
    }
    for (; i < n; ++i) total += x[i] != T(0);
    return total;
}

template <bool All, class T>
void truth_columns(const T* x, int64_t rows, int64_t width, int64_t stride, uint8_t* result) {
    tiles(width, [&](int64_t first, int64_t columns) {
        uint8_t* to = result + first;
        for (int64_t r = 0; r < rows; ++r) {
            const T* p = x + r * stride + first;
            for (int64_t j = 0; j < columns; ++j) {
                const uint8_t truth = p[j] != T(0);
                to[j] = static_cast<uint8_t>(All ? to[j] & truth : to[j] | truth);
            }
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
             total_columns<true, T>, best_columns<true, T>, best_columns<false, T>},
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
