// Products of matrices by outer products: the sums of a few rows times a few vectors of columns stay in registers while
// k runs; each step of k loads vectors of b and multiplies them by single elements of a. So rows of b and c must be
// dense, and a may have any layout.
#include "backends/cpu/simd/gemm_loops.h"

#include <array>
#include <utility>

#include "backends/cpu/simd/dot_tiles.h"
#include "backends/cpu/simd/pack.h"
#include "backends/cpu/simd/transpose.h"
#include "core/loops/small_product.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

// The number of vectors in a panel, and in the wider one for one or two rows, which would not fill the registers
// otherwise.
#if defined(__AVX512BW__)
constexpr int kPanel = 4, kWide = 8;
// The most rows for 1 to 4 vectors: at least 12 sums in flight if there are enough rows, and some registers left.
constexpr int kMostRows[] = {12, 12, 8, 6};
#else
constexpr int kPanel = 2, kWide = 4;
constexpr int kMostRows[] = {8, 6};
#endif
constexpr int kWideRows = 2;
// Just enough to hide the latency of an addition, so that the parts of b that are read together are small.
constexpr int kStrip = 4;

// The element type in packs of T: pairs are moved as whole words.
template <class T>
using Held = std::conditional_t<std::is_same_v<T, Bf16Pair>, uint32_t, T>;
template <class T>
using Vector = typename Pack<Held<T>>::V;
template <class T>
using SumVector = typename Pack<SumOf<T>>::V;

template <class T>
struct Operands {
    int64_t k;
    const T* a;
    int64_t a_row, a_column;
    const T* b;
    int64_t b_row;
    SumOf<T>* c;
    int64_t c_row;
    int last;  // number of columns in the last vector
    Onto onto;
    const SumOf<T>* bias;
};

// sum + x * y.
template <class T>
[[gnu::always_inline]] static inline void add_product(SumVector<T>& sum, const Vector<T>& x, const Vector<T>& y) {
    if constexpr (std::is_same_v<T, Bf16Pair>) {
#if defined(__AVX512BW__)
        // As text, since the file's instruction set lacks it; these loops are only called on processors that have it.
        asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(y), "v"(x));
#endif
    } else {
        sum += x * y;
    }
}

template <class T>
[[gnu::always_inline]] static inline const Held<T>* held(const T* p) {
    return reinterpret_cast<const Held<T>*>(p);
}

// Continues the sums of a product that has been begun.
template <class T, int Rows, int Vectors>
[[gnu::always_inline]] static inline void begin_tile(const Operands<T>& o, SumVector<T> (&sum)[Rows][Vectors]) {
    using P = Pack<SumOf<T>>;
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
        const SumOf<T>* from = o.c + r * o.c_row;
#pragma GCC unroll 16
        for (int v = 0; v + 1 < Vectors; ++v) sum[r][v] = P::load(from + v * P::lanes).v;
        sum[r][Vectors - 1] = load_part(from + (Vectors - 1) * P::lanes, o.last).v;
    }
}

// Puts the sums of a tile into c for the rare cases. One loop for tiles of all shapes: the code for each shape would be
// as long as all else here.
template <class T>
[[gnu::noinline]] static void store_rest(const Operands<T>& o, const SumVector<T>* sums, int rows, int vectors) {
    using P = Pack<SumOf<T>>;
    for (int r = 0; r < rows; ++r)
        for (int v = 0; v < vectors; ++v) {
            const int count = v + 1 < vectors ? P::lanes : o.last;
            SumOf<T>* to = o.c + r * o.c_row + v * P::lanes;
            P all = P(*sums++);
            if (o.onto == Onto::added) all = all + load_part(to, count);
            if (o.bias) all = all + load_part(o.bias + v * P::lanes, count);
            store_part(to, all, count);
        }
}

// Part: the last vector of a row is not whole in c. The cases are apart, since tests between the stores take as long as
// three or four iterations of the loop over k.
template <bool Part, class T, int Rows, int Vectors>
[[gnu::always_inline]] static inline void store_all(const Operands<T>& o, const SumVector<T> (&sum)[Rows][Vectors]) {
    using P = Pack<SumOf<T>>;
    const int last = o.last;
    SumOf<T>* c = o.c;
    const int64_t c_row = o.c_row;
    const auto load = [&](const SumOf<T>* p, int v) __attribute__((always_inline)) {
        return Part && v + 1 == Vectors ? load_part(p, last) : P::load(p);
    };
    // Stores f(sum, place in c, vector of the row).
    const auto store = [&](auto f) __attribute__((always_inline)) {
#pragma GCC unroll 16
        for (int r = 0; r < Rows; ++r, c += c_row)
#pragma GCC unroll 16
            for (int v = 0; v < Vectors; ++v) {
                const P x = f(P(sum[r][v]), c + v * P::lanes, v);
                if (Part && v + 1 == Vectors)
                    store_part(c + v * P::lanes, x, last);
                else
                    x.store(c + v * P::lanes);
            }
    };
    if (o.onto == Onto::added) {
        store([&](P x, const SumOf<T>* to, int v) __attribute__((always_inline)) { return x + load(to, v); });
    } else if (o.bias) {
        P bias[Vectors];
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) bias[v] = load(o.bias + v * P::lanes, v);
        store([&](P x, const SumOf<T>*, int v) __attribute__((always_inline)) { return x + bias[v]; });
    } else {
        store([](P x, const SumOf<T>*, int) __attribute__((always_inline)) { return x; });
    }
}

template <class T, int Rows, int Vectors>
[[gnu::always_inline]] static inline void store_tile(const Operands<T>& o, const SumVector<T> (&sum)[Rows][Vectors]) {
    // The first lanes of a vector are stored by one instruction, which with AVX-512 is as fast as an ordinary one.
    constexpr bool kHasMasks = kBytes == 64 || (kBytes == 32 && sizeof(SumOf<T>) >= 4);
    if (o.onto != Onto::added || !o.bias) {
        if constexpr (kBytes == 64) return store_all<true>(o, sum);
        if (o.last == Pack<SumOf<T>>::lanes) return store_all<false>(o, sum);
        if constexpr (kHasMasks) return store_all<true>(o, sum);
    }
    SumVector<T> rest[Rows][Vectors];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) rest[r][v] = sum[r][v];
    store_rest<T>(o, rest[0], Rows, Vectors);
}

template <class T, int Rows, int Vectors>
static void tile(const Operands<T>& o) {
    using P = Pack<SumOf<T>>;
    SumVector<T> sum[Rows][Vectors];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) sum[r][v] = SumVector<T>{};
    if (o.onto == Onto::begun) begin_tile<T, Rows, Vectors>(o, sum);
        // c is seldom in the nearest cache: it is fetched while k runs.
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) __builtin_prefetch(o.c + r * o.c_row + v * P::lanes, 1);
    const T *a = o.a, *b = o.b;
    const int64_t a_row = o.a_row, a_column = o.a_column, b_row = o.b_row;
    auto step = [&]() __attribute__((always_inline)) {
        Vector<T> y[Vectors];
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) y[v] = Pack<Held<T>>::load(held(b + v * P::lanes)).v;
#pragma GCC unroll 16
        for (int r = 0; r < Rows; ++r) {
            const Vector<T> x = *held(a + r * a_row) - Vector<T>{};
#pragma GCC unroll 16
            for (int v = 0; v < Vectors; ++v) add_product<T>(sum[r][v], x, y[v]);
        }
        a += a_column;
        b += b_row;
    };
    // Unrolled where registers are full, where the time is spent: the end of a loop of few iterations is predicted.
    if constexpr (Rows * Vectors >= 20) {
#pragma GCC unroll 2
        for (int64_t k = o.k; k > 0; --k) step();
    } else if constexpr (Vectors > kPanel) {
#pragma GCC unroll 4
        for (int64_t k = o.k; k > 0; --k) step();
    } else {
        for (int64_t k = o.k; k > 0; --k) step();
    }
    store_tile<T, Rows, Vectors>(o, sum);
}

template <class T>
using Tile = void (*)(const Operands<T>&);

template <class T, int Vectors, int... Rows>
constexpr std::array<Tile<T>, 12> tiles_of(std::integer_sequence<int, Rows...>) {
    return {tile<T, Rows + 1, Vectors>...};
}

// The tile for 1, 2, … rows, by the number of vectors.
template <class T, int... V>
constexpr std::array<std::array<Tile<T>, 12>, kWide> all_tiles(std::integer_sequence<int, V...>) {
    return {tiles_of<T, V + 1>(
        std::make_integer_sequence<int, (V < kPanel ? kMostRows[V < kPanel ? V : 0] : kWideRows)>())...};
}
template <class T>
constexpr auto kTiles = all_tiles<T>(std::make_integer_sequence<int, kWide>());

template <class T>
static void multiply(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_column, const T* b,
                     int64_t b_row, SumOf<T>* c, int64_t c_row, Onto onto, const SumOf<T>* bias) {
    constexpr int64_t kLanes = Pack<SumOf<T>>::lanes;
    const int64_t width = (m <= kWideRows ? kWide : kPanel) * kLanes;
    for (int64_t j = 0; j < n; j += width) {
        const int64_t columns = n - j < width ? n - j : width;
        const int64_t vectors = (columns + kLanes - 1) / kLanes;
        const int64_t most = vectors <= kPanel ? kMostRows[vectors - 1] : kWideRows;
        // Tiles of nearly equal height: one with a single row has too few sums to hide the latency of an addition.
        const int64_t tiles = (m + most - 1) / most;
        const int last = static_cast<int>(columns - (vectors - 1) * kLanes);
        Operands<T> o{k, a, a_row, a_column, b + j, b_row, c + j, c_row, last, onto, bias ? bias + j : nullptr};
        const int64_t least = m / tiles, taller = m % tiles;
        for (int64_t i = 0; i < tiles; ++i) {
            const int64_t rows = least + (i < taller);
            kTiles<T>[vectors - 1][rows - 1](o);
            o.a += rows * a_row;
            o.c += rows * c_row;
        }
    }
}

template <class T>
static void pack(const T* b, int64_t row, int64_t column, int64_t k, int64_t n, T* packed) {
    constexpr int64_t kLanes = Pack<T>::lanes;
    const int64_t width = (n + kLanes - 1) / kLanes * kLanes, whole = n / kLanes * kLanes;
    if (column == 1) {
        for (int64_t i = 0; i < k; ++i, b += row, packed += width) {
            for (int64_t j = 0; j < whole; j += kLanes) Pack<T>::load(b + j).store(packed + j);
            if (whole < n) load_part(b + whole, static_cast<int>(n - whole)).store(packed + whole);
        }
        return;
    }
    if (row == 1) {
        transpose<T>(b, column, packed, width, n, k, false);
    } else {
        for (int64_t i = 0; i < k; ++i)
            for (int64_t j = 0; j < n; ++j) packed[i * width + j] = b[i * row + j * column];
    }
    for (int64_t i = 0; n < width && i < k; ++i)
        for (int64_t j = n; j < width; ++j) packed[i * width + j] = 0;
}

template <class T>
static void finish(T* c, int64_t m, int64_t n, int64_t row, const T* bias, bool relu) {
    using P = Pack<T>;
    auto rows = [&](auto of) __attribute__((always_inline)) {
        for (int64_t i = 0; i < m; ++i, c += row) {
            int64_t j = 0;
            for (; j + P::lanes <= n; j += P::lanes) of(P::load(c + j), [&] { return P::load(bias + j); }).store(c + j);
            const int rest = static_cast<int>(n - j);
            if (rest) store_part(c + j, of(load_part(c + j, rest), [&] { return load_part(bias + j, rest); }), rest);
        }
    };
    // NaN stays.
    auto cut = [](P x) { return P(x.v < typename P::V{} ? typename P::V{} : x.v); };
    if (bias && relu)
        rows([&](P x, auto add) { return cut(x + add()); });
    else if (bias)
        rows([](P x, auto add) { return x + add(); });
    else if (relu)
        rows([&](P x, auto) { return cut(x); });
}

// In the order and with the roundings of a tile.
template <class T>
static void small(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_column, const T* b,
                  int64_t b_row, int64_t b_column, T* c) {
    constexpr int kTogether = 4;
    for (int64_t i = 0; i < m; ++i, a += a_row, c += n) {
        int64_t j = 0;
        if (b_column == 1)
            for (; j + kTogether <= n; j += kTogether) {
                T sum[kTogether] = {};
                const T *x = a, *y = b + j;
                for (int64_t l = 0; l < k; ++l, x += a_column, y += b_row)
                    for (int s = 0; s < kTogether; ++s) sum[s] += *x * y[s];
                for (int s = 0; s < kTogether; ++s) c[j + s] = sum[s];
            }
        for (; j < n; ++j) {
            T sum = 0;
            const T *x = a, *y = b + j * b_column;
            for (int64_t l = 0; l < k; ++l, x += a_column, y += b_row) sum += *x * *y;
            c[j] = sum;
        }
    }
}

// See core/loops/small_product.h. The columns after the last whole vector are a vector of their own.
template <class T, int Rows>
static void few_columns(int64_t k, const T* a, int64_t a_row, const T* b, int64_t b_row, T* c, int64_t c_row, auto load,
                        auto store) {
    using V = typename Pack<T>::V;
    V sum[Rows][kProductSums] = {};
    int64_t i = 0;
    auto add = [&](int which) __attribute__((always_inline)) {
        const V y = load(b).v;
#pragma GCC unroll 2
        for (int r = 0; r < Rows; ++r) sum[r][which] += (a[i + r * a_row] - V{}) * y;
        b += b_row;
        ++i;
    };
    while (i + kProductSums <= k)
#pragma GCC unroll 4
        for (int s = 0; s < kProductSums; ++s) add(s);
#pragma GCC unroll 4
    for (int s = 0; s < kProductSums - 1; ++s)
        if (i < k) add(s);
#pragma GCC unroll 2
    for (int r = 0; r < Rows; ++r) store(c + r * c_row, Pack<T>((sum[r][0] + sum[r][1]) + (sum[r][2] + sum[r][3])));
}

template <class T, int Rows>
static void few_rows(int64_t n, int64_t k, const T* a, int64_t a_row, const T* b, int64_t b_row, T* c) {
    using P = Pack<T>;
    int64_t j = 0;
    for (; j + P::lanes <= n; j += P::lanes)
        few_columns<T, Rows>(
            k, a, a_row, b + j, b_row, c + j, n, [](const T* p) { return P::load(p); }, [](T* p, P x) { x.store(p); });
    if (const int rest = static_cast<int>(n - j))
        few_columns<T, Rows>(
            k, a, a_row, b + j, b_row, c + j, n, [rest](const T* p) { return load_part(p, rest); },
            [rest](T* p, P x) { store_part(p, x, rest); });
}

template <class T>
static void few(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, const T* b, int64_t b_row, T* c) {
    m == 1 ? few_rows<T, 1>(n, k, a, a_row, b, b_row, c) : few_rows<T, 2>(n, k, a, a_row, b, b_row, c);
}

template <class T>
constexpr GemmLoops<T> loops_of() {
    GemmLoops<T> loops{Pack<T>::lanes, kPanel * Pack<T>::lanes, kStrip * Pack<T>::lanes, multiply<T>, pack<T>,
                       finish<T>};
    if constexpr (std::is_floating_point_v<T>) {
        loops.dots = dots<T>;
        loops.small = small<T>;
        loops.few = few<T>;
    }
    return loops;
}
template <class T>
constexpr GemmLoops<T> kLoops = loops_of<T>();

#if defined(__AVX512BW__)
static void pack_pairs(const Bf16Pair* b, int64_t row, int64_t column, int64_t k, int64_t n, Bf16Pair* packed) {
    pack<uint32_t>(held(b), row, column, k, n, reinterpret_cast<uint32_t*>(packed));
}
constexpr GemmLoops<Bf16Pair> kPairLoops{kLoops<float>.lanes, kLoops<float>.panel, kLoops<float>.strip,
                                         multiply<Bf16Pair>,  pack_pairs,          finish<float>};
#else
constexpr GemmLoops<Bf16Pair> kPairLoops{};
#endif

static void pair(const void* one, const void* other, Bf16Pair* to, int64_t count) {
    auto *first = static_cast<const uint16_t*>(one), *second = static_cast<const uint16_t*>(other);
    auto* words = reinterpret_cast<uint32_t*>(to);
    if (second)
        for (int64_t i = 0; i < count; ++i) words[i] = first[i] | static_cast<uint32_t>(second[i]) << 16;
    else
        for (int64_t i = 0; i < count; ++i) words[i] = first[i];
}

}  // namespace

const GemmTable gemm_table{
    kLoops<float>, kLoops<double>, kLoops<uint16_t>, kLoops<uint32_t>, kLoops<uint64_t>, kPairLoops, pair};

}  // namespace lunaria::cpu::LUNARIA_ISA
