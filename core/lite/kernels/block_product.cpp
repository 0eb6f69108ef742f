// Products with weights in blocks (blocks.h). Compiled once for each instruction set.
//
// Rows of a are rounded to blocks of 8 bits with a float scale. A few rows are multiplied with the weights where they
// are: the sum of a block is an integer, which both scales multiply. For many rows the weights are arranged in panels
// of 16: with VNNI as bytes, for other sets as floats, which are then as fast as integers and take a as it is.
#include "core/lite/kernels/block_rows.h"
#include "core/lite/kernels/integer_products.h"
#include "core/lite/kernels/rows.h"
#if defined(__SSSE3__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace lunaria::lite::kernels::LUNARIA_ISA {

namespace {

#if defined(__AVX512VNNI__)
constexpr bool kDots = true;
constexpr int64_t kFew = 4;
#else
constexpr bool kDots = false;
constexpr int64_t kFew = 8;
#endif

// A row of a.
struct BlockRow {
    BlockRow() = default;
    BlockRow(void* place, int64_t k)
        : numbers(static_cast<int8_t*>(place)),
          more(reinterpret_cast<uint8_t*>(numbers + k)),
          scales(reinterpret_cast<float*>(more + k)) {}
    int8_t* numbers = nullptr;
    uint8_t* more =
        nullptr;  // for panels: the numbers plus 128; for few rows: what the sums of a block begin with, by fours
    float* scales = nullptr;
};

void round_row(const float* x, int64_t k, BlockRow row, int32_t offset, bool for_panels) {
    for (int64_t b = 0; b < k / kBlock; ++b, x += kBlock) {
        Floats most{};
        for (int i = 0; i < kBlock; i += kLanes) {
            const Floats v = load(x + i), a = (Floats)((Words)v & 0x7fffffffu);
            most = choose(a > most, a, most);
        }
        float largest = 0;
        for (int i = 0; i < kLanes; ++i) largest = most[i] > largest ? most[i] : largest;
        const float scale = largest / 127, inverse = largest > 0 ? 127 / largest : 0;
        row.scales[b] = scale;
        int8_t* numbers = row.numbers + b * kBlock;
        for (int i = 0; i < kBlock; i += kLanes) {
            const Floats v = load(x + i) * broadcast(inverse);
            const Ints q = (Ints)(v + broadcast(0x1.8p23f)) - broadcast(static_cast<int32_t>(0x4b400000));
            for (int j = 0; j < kLanes; ++j) numbers[i + j] = static_cast<int8_t>(q[j]);
        }
        if (for_panels) {
            for (int i = 0; i < kBlock; ++i) row.more[b * kBlock + i] = static_cast<uint8_t>(numbers[i] ^ 0x80);
        } else {
            for (int i = 0; i < kBlock / 4; ++i) {
                const int8_t* q = numbers + 4 * i;
                store(row.more + (b * kBlock / 4 + i) * 4, -offset * (q[0] + q[1] + q[2] + q[3]));
            }
        }
    }
}

#if defined(__AVX2__)
typedef float Eight __attribute__((vector_size(32)));
// The sum of a block of unsigned weights, or of signed ones, and the numbers of a, in eight parts.
[[gnu::always_inline]] inline Eight block_sum(WeightType type, const uint8_t* p, const BlockRow& row, int64_t block) {
    const __m256i x = load<__m256i>(row.numbers + block * kBlock), begin = load<__m256i>(row.more + block * kBlock);
    __m256i w;
    if (type == WeightType::q8_0) {
        w = load<__m256i>(p);
#if defined(__AVX512VNNI__)
        w = _mm256_xor_si256(w, _mm256_set1_epi8(static_cast<char>(0x80)));
#else
        // Magnitudes by numbers with the weights' signs: no sum of two overflows.
        const __m256i words = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
        (void)begin;
        return (Eight)_mm256_cvtepi32_ps(_mm256_madd_epi16(words, _mm256_set1_epi16(1)));
#endif
    } else {
        const __m128i bytes = load<__m128i>(p);
        w = _mm256_inserti128_si256(_mm256_castsi128_si256(bytes), _mm_srli_epi16(bytes, 4), 1);
        w = _mm256_and_si256(w, _mm256_set1_epi8(15));
    }
#if defined(__AVX512VNNI__)
    const __m256i sum = _mm256_dpbusd_epi32(begin, w, x);
#else
    const __m256i sum = _mm256_add_epi32(begin, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1)));
#endif
    return (Eight)_mm256_cvtepi32_ps(sum);
}
#if defined(__AVX512BW__)
[[gnu::always_inline]] inline float total(Eight x) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
#endif
#else
typedef Floats Eight;  // in four parts
// Sixteen products of bytes, in four sums.
[[gnu::always_inline]] inline Ints dot_bytes(Bytes16 w, Bytes16 x) {
#if defined(__SSSE3__)
    const __m128i words = _mm_maddubs_epi16(_mm_abs_epi8((__m128i)w), _mm_sign_epi8((__m128i)x, (__m128i)w));
    return (Ints)_mm_madd_epi16(words, _mm_set1_epi16(1));
#elif defined(__aarch64__)
    const int8x16_t a = (int8x16_t)w, b = (int8x16_t)x;
    return (Ints)vpaddlq_s16(vmlal_high_s8(vmull_s8(vget_low_s8(a), vget_low_s8(b)), a, b));
#else
    Ints sum{};
    for (int i = 0; i < 16; ++i) sum[i / 4] += static_cast<int8_t>(w[i]) * static_cast<int8_t>(x[i]);
    return sum;
#endif
}
[[gnu::always_inline]] inline Eight block_sum(WeightType type, const uint8_t* p, const BlockRow& row, int64_t block) {
    const int8_t* x = row.numbers + block * kBlock;
    Bytes16 low = load<Bytes16>(p), high;
    if (type == WeightType::q8_0) {
        high = load<Bytes16>(p + 16);
    } else {
        high = (low >> 4) - 8;
        low = (low & 15) - 8;
    }
    return __builtin_convertvector(dot_bytes(low, load<Bytes16>(x)) + dot_bytes(high, load<Bytes16>(x + 16)), Floats);
}
#endif

#if defined(__AVX2__)
// A single row takes eight blocks of weights at a time: their scales are made in registers, since a vector that is
// loaded from halves that were just stored one by one has to wait for the stores.
constexpr int64_t kAtOnce = 8;

template <int64_t Bytes>
[[gnu::always_inline]] inline Eight eight_scales(const uint8_t* p) {
#if defined(__AVX512BW__)
    if constexpr (Bytes == kBytesQ4) {
        const __m512i at = _mm512_castsi128_si512(_mm_setr_epi16(0, 9, 18, 27, 36, 45, 54, 63));
        return (Eight)_mm256_cvtph_ps(
            _mm512_castsi512_si128(_mm512_permutex2var_epi16(load<__m512i>(p), at, load<__m512i>(p + 64))));
    }
#endif
    __m128i halves = _mm_cvtsi32_si128(load<uint16_t>(p));
    halves = _mm_insert_epi16(halves, load<int16_t>(p + Bytes), 1);
    halves = _mm_insert_epi16(halves, load<int16_t>(p + 2 * Bytes), 2);
    halves = _mm_insert_epi16(halves, load<int16_t>(p + 3 * Bytes), 3);
    halves = _mm_insert_epi16(halves, load<int16_t>(p + 4 * Bytes), 4);
    halves = _mm_insert_epi16(halves, load<int16_t>(p + 5 * Bytes), 5);
    halves = _mm_insert_epi16(halves, load<int16_t>(p + 6 * Bytes), 6);
    halves = _mm_insert_epi16(halves, load<int16_t>(p + 7 * Bytes), 7);
    return (Eight)_mm256_cvtph_ps(halves);
}

// Adds to sums of four: unsigned bytes, of at most 15 without VNNI, times signed ones.
[[gnu::always_inline]] inline __m256i add_fours(__m256i sum, __m256i w, __m256i x) {
#if defined(__AVX512VNNI__)
    return _mm256_dpbusd_epi32(sum, w, x);
#else
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1)));
#endif
}

// Blocks of 4 bits in pairs, whose low halves and high halves are multiplied together: a sum has four parts for each of
// the two. Brings the numbers of the row into the order low, low, high, high, and its beginnings into that of the sums.
void arrange_pairs(BlockRow row, int64_t blocks) {
    for (int64_t b = 0; b + kAtOnce <= blocks; b += kAtOnce)
        for (int64_t i = b; i < b + kAtOnce; i += 2) {
            int8_t* numbers = row.numbers + i * kBlock;
            const __m128i middle = load<__m128i>(numbers + 16);
            store(numbers + 16, load<__m128i>(numbers + 32));
            store(numbers + 32, middle);
            uint8_t* begins = row.more + i * kBlock;
            const __m256i first = load<__m256i>(begins), second = load<__m256i>(begins + 32);
            store(begins, _mm256_add_epi32(_mm256_permute2x128_si256(first, second, 0x20),
                                           _mm256_permute2x128_si256(first, second, 0x31)));
        }
}

template <WeightType Type>
[[gnu::always_inline]] inline void add_blocks(const uint8_t* p, const BlockRow& row, int64_t block, Eight (&sum)[4]) {
    constexpr int64_t kBytesOf = Type == WeightType::q8_0 ? kBytesQ8 : kBytesQ4;
    const Eight scales = eight_scales<kBytesOf>(p) * load<Eight>(row.scales + block);
    if constexpr (Type == WeightType::q8_0) {
        alignas(32) float each[kAtOnce];
        store(each, scales);
#pragma GCC unroll 8
        for (int i = 0; i < kAtOnce; ++i) sum[i % 4] += block_sum(Type, p + i * kBytesOf + 2, row, block + i) * each[i];
        return;
    }
    const __m256i low = _mm256_set1_epi8(15);
#pragma GCC unroll 4
    for (int i = 0; i < kAtOnce; i += 2) {
        const uint8_t* at = p + i * kBytesOf + 2;
        const int8_t* x = row.numbers + (block + i) * kBlock;
        const __m256i w =
            _mm256_inserti128_si256(_mm256_castsi128_si256(load<__m128i>(at)), load<__m128i>(at + kBytesOf), 1);
        __m256i parts = load<__m256i>(row.more + (block + i) * kBlock);
        parts = add_fours(parts, _mm256_and_si256(w, low), load<__m256i>(x));
        parts = add_fours(parts, _mm256_and_si256(_mm256_srli_epi16(w, 4), low), load<__m256i>(x + 32));
        const __m256i places = _mm256_setr_epi32(i, i, i, i, i + 1, i + 1, i + 1, i + 1);
        sum[i / 2 % 2] += (Eight)_mm256_cvtepi32_ps(parts) * (Eight)_mm256_permutevar8x32_ps((__m256)scales, places);
    }
}

template <WeightType Type>
[[gnu::noinline]] void one_row(const Product& p, const BlockRow& row, int64_t n0, int64_t n1, float* c) {
    constexpr int64_t kBytesOf = Type == WeightType::q8_0 ? kBytesQ8 : kBytesQ4;
    const int64_t blocks = p.k / kBlock;
    for (int64_t j = n0; j < n1; ++j) {
        const uint8_t* w = static_cast<const uint8_t*>(p.b) + j * blocks * kBytesOf;
        Eight sum[4] = {};
        int64_t b = 0;
        for (; b + kAtOnce <= blocks; b += kAtOnce) {
            // Across the ends of pages, where the processor's own prefetching stops.
#pragma GCC unroll 5
            for (int64_t line = 0; line * 64 < kAtOnce * kBytesOf; ++line)
                __builtin_prefetch(w + b * kBytesOf + 4096 + line * 64);
            add_blocks<Type>(w + b * kBytesOf, row, b, sum);
        }
        for (; b < blocks; ++b) {
            const float scale = half_to_float(load<uint16_t>(w + b * kBytesOf)) * row.scales[b];
            sum[0] += block_sum(Type, w + b * kBytesOf + 2, row, b) * scale;
        }
        c[j] = total((sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
}
#endif

// Both scales of a block in all parts.
[[gnu::always_inline]] inline Eight block_scale(const uint8_t* p, float scale) {
#if defined(__AVX2__)
    const __m256 half = _mm256_cvtph_ps(_mm_set1_epi16(load<int16_t>(p)));
    return (Eight)half * (scale - Eight{});
#else
    return broadcast(half_to_float(load<uint16_t>(p)) * scale);
#endif
}

template <WeightType Type>
[[gnu::noinline]] void few_rows(const Product& p, const BlockRow* rows, int64_t n0, int64_t n1, int64_t first) {
    constexpr int64_t kBytesOf = Type == WeightType::q8_0 ? kBytesQ8 : kBytesQ4;
    const int64_t blocks = p.k / kBlock, count = p.m - first < kFew ? p.m - first : kFew;
    for (int64_t j = n0; j < n1; ++j) {
        const uint8_t* w = static_cast<const uint8_t*>(p.b) + j * blocks * kBytesOf;
        for (int64_t r = 0; r < count; ++r) {
            const BlockRow row = rows[r];
            const uint8_t* at = w;
            Eight sum[4] = {};
            int64_t b = 0;
            for (; b + 4 <= blocks; b += 4, at += 4 * kBytesOf) {
                __builtin_prefetch(at + 2048);
                __builtin_prefetch(at + 2048 + 64);
#pragma GCC unroll 4
                for (int64_t s = 0; s < 4; ++s)
                    sum[s] += block_sum(Type, at + s * kBytesOf + 2, row, b + s) *
                              block_scale(at + s * kBytesOf, row.scales[b + s]);
            }
            for (; b < blocks; ++b, at += kBytesOf)
                sum[0] += block_sum(Type, at + 2, row, b) * block_scale(at, row.scales[b]);
            p.c[(first + r) * p.c_row + j] = total((sum[0] + sum[1]) + (sum[2] + sum[3]));
        }
    }
}

void finish(const Product& p, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    Epilogue e = p.epilogue;
    if (!e.bias && !e.scale && !e.residual && e.activation == Activation::none) return;
    if (e.bias) e.bias += n0;
    if (e.scale) e.scale += n0;
    if (e.residual) e.residual += m0 * e.residual_row + n0;
    float* c = p.c + m0 * p.c_row + n0;
    apply(e, m1 - m0, n1 - n0, c, p.c_row, c, p.c_row);
}

void multiply_few(const Product& p, const BlockScratch& sizes, char* scratch, int64_t first, const Workers& workers) {
    BlockRow rows[kFew];
    const int64_t count = p.m - first < kFew ? p.m - first : kFew;
    for (int64_t r = 0; r < count; ++r) rows[r] = BlockRow(scratch + r * sizes.row_bytes, p.k);
    const int64_t pieces = is_shared(workers) && p.n * p.k > (1 << 18) ? 4 * workers.workers : 1;
#if defined(__AVX2__)
    if (count == 1) {
        const bool q8 = p.type == WeightType::q8_0;
        if (!q8) arrange_pairs(rows[0], p.k / kBlock);
        each_task(workers, pieces, [&](int64_t i, int) {
            const int64_t n0 = p.n * i / pieces, n1 = p.n * (i + 1) / pieces;
            (q8 ? one_row<WeightType::q8_0> : one_row<WeightType::q4_0>)(p, rows[0], n0, n1, p.c + first * p.c_row);
            finish(p, first, first + 1, n0, n1);
        });
        return;
    }
#endif
    each_task(workers, pieces, [&](int64_t i, int) {
        const int64_t n0 = p.n * i / pieces, n1 = p.n * (i + 1) / pieces;
        if (p.type == WeightType::q8_0)
            few_rows<WeightType::q8_0>(p, rows, n0, n1, first);
        else
            few_rows<WeightType::q4_0>(p, rows, n0, n1, first);
        finish(p, first, first + count, n0, n1);
    });
}

#if defined(__AVX512VNNI__)
// Sixteen rows of weights side by side: words of four bytes, and for each block the scales and what sums begin with,
// since the numbers of a have 128 added.
struct BlockPanel {
    BlockPanel(void* place, int64_t k)
        : words(static_cast<int32_t*>(place)),
          scales(reinterpret_cast<float*>(words + k * kPanel / 4)),
          begins(reinterpret_cast<int32_t*>(scales + k / kBlock * kPanel)) {}
    int32_t* words;
    float* scales;
    int32_t* begins;
};

void arrange(const Product& p, int64_t panel, BlockPanel to) {
    const int64_t blocks = p.k / kBlock, bytes = p.type == WeightType::q8_0 ? kBytesQ8 : kBytesQ4;
    for (int64_t j = 0; j < kPanel; ++j) {
        const int64_t column = panel * kPanel + j;
        const auto* row = static_cast<const uint8_t*>(p.b) + column * blocks * bytes;
        for (int64_t b = 0; b < blocks; ++b, row += bytes) {
            typedef int8_t Signed16 __attribute__((vector_size(16)));
            alignas(64) int8_t q[kBlock] = {};
            float scale = 0;
            if (column < p.n) {
                scale = half_to_float(load<uint16_t>(row));
                const Bytes16 bytes16 = load<Bytes16>(row + 2);
                if (p.type == WeightType::q8_0) {
                    store(q, bytes16);
                    store(q + 16, load<Bytes16>(row + 18));
                } else {
                    store(q, (Signed16)(bytes16 & 15) - 8);
                    store(q + 16, (Signed16)(bytes16 >> 4) - 8);
                }
            }
            const __m256i eight = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), load<__m256i>(q));
            int32_t sums[8], sum = 0;
            store(sums, eight);
            for (int32_t part : sums) sum += part;
            to.scales[b * kPanel + j] = scale;
            to.begins[b * kPanel + j] = -128 * sum;
            for (int i = 0; i < kBlock / 4; ++i) to.words[(b * kBlock / 4 + i) * kPanel + j] = load<int32_t>(q + 4 * i);
        }
    }
}

struct BlockTile {
    const uint8_t* a;  // numbers plus 128
    int64_t a_row;     // bytes
    const float* scales;
    BlockPanel panel;
    int64_t blocks;
    float* c;
    int64_t c_row, columns;
};
template <int Rows>
void block_tile(const BlockTile& t) {
    constexpr int kTriples = (Rows + 2) / 3;
    Floats sums[Rows];
#pragma GCC unroll 12
    for (int r = 0; r < Rows; ++r) sums[r] = Floats{};
    const uint8_t* a[kTriples];
    const uint8_t* d[kTriples];
#pragma GCC unroll 4
    for (int g = 0; g < kTriples; ++g) {
        a[g] = t.a + 3 * g * t.a_row;
        d[g] = reinterpret_cast<const uint8_t*>(t.scales) + 3 * g * t.a_row;
    }
    const int64_t row = t.a_row;
    const int32_t* w = t.panel.words;
    for (int64_t b = 0; b < t.blocks; ++b) {
        __m512i parts[Rows];
        const __m512i begin = load<__m512i>(t.panel.begins + b * kPanel);
#pragma GCC unroll 12
        for (int r = 0; r < Rows; ++r) parts[r] = begin;
#pragma GCC unroll 8
        for (int i = 0; i < kBlock / 4; ++i) {
            const __m512i four = load<__m512i>(w + i * kPanel);
#pragma GCC unroll 12
            for (int r = 0; r < Rows; ++r)
                parts[r] = _mm512_dpbusd_epi32(
                    parts[r], _mm512_set1_epi32(load<int32_t>(a[r / 3] + (r % 3) * row + 4 * i)), four);
        }
        const Floats scales = load(t.panel.scales + b * kPanel);
#pragma GCC unroll 12
        for (int r = 0; r < Rows; ++r)
            sums[r] += (Floats)_mm512_cvtepi32_ps(parts[r]) * scales * broadcast(load<float>(d[r / 3] + (r % 3) * row));
        w += kBlock / 4 * kPanel;
#pragma GCC unroll 4
        for (int g = 0; g < kTriples; ++g) {
            a[g] += kBlock;
            d[g] += 4;
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < Rows; ++r) {
        if (t.columns == kPanel)
            store(t.c + r * t.c_row, sums[r]);
        else
            store_part(t.c + r * t.c_row, sums[r], t.columns);
    }
}

using BlockLoop = void (*)(const BlockTile&);
constexpr BlockLoop kBlockTiles[12] = {block_tile<1>, block_tile<2>,  block_tile<3>,  block_tile<4>,
                                       block_tile<5>, block_tile<6>,  block_tile<7>,  block_tile<8>,
                                       block_tile<9>, block_tile<10>, block_tile<11>, block_tile<12>};

void multiply_panels(const Product& p, const BlockScratch& sizes, char* scratch, int64_t first,
                     const Workers& workers) {
    const int64_t count = p.m - first < sizes.rows ? p.m - first : sizes.rows, tiles = (count + 11) / 12;
    each_task(workers, panels_of(p.n), [&](int64_t i, int worker) {
        const BlockPanel panel(scratch + sizes.rows * sizes.row_bytes + worker * sizes.worker_bytes, p.k);
        arrange(p, i, panel);
        const int64_t rest = p.n - i * kPanel, columns = rest < kPanel ? rest : kPanel;
        for (int64_t b = 0; b < tiles; ++b) {
            const int64_t r0 = count * b / tiles, r1 = count * (b + 1) / tiles;
            const BlockRow row(scratch + r0 * sizes.row_bytes, p.k);
            const BlockTile t{row.more, sizes.row_bytes, row.scales,
                              panel,    sizes.blocks,    p.c + (first + r0) * p.c_row + i * kPanel,
                              p.c_row,  columns};
            kBlockTiles[r1 - r0 - 1](t);
        }
        finish(p, first, first + count, i * kPanel, i * kPanel + columns);
    });
}
#else
void multiply_panels(const Product& p, const BlockScratch& sizes, char* scratch, int64_t, const Workers& workers) {
    const RowsTask task{p.m, p.n, p.k, p.b, p.type, p.c, p.c_row, &p.epilogue};
    const int64_t panels = panels_of(p.n), pieces = is_shared(workers) ? (panels + 7) / 8 : 1;
    each_task(workers, pieces, [&](int64_t i, int worker) {
        auto* gathered = reinterpret_cast<float*>(scratch + sizes.rows * sizes.row_bytes + worker * sizes.worker_bytes);
        const DirectRows direct{p.a, p.a_row};
        RowsLoop(task, gathered + kGatheredBytes / 4)
            .run(0, p.m, panels * i / pieces, panels * (i + 1) / pieces, (p.a_row * 4) % 2048 != 0 ? &direct : nullptr,
                 gathered, [&](int64_t first, int rows, int64_t k, int64_t count, float* to) {
                     for (int r = 0; r < rows; ++r) copy(to + r * kGatheredRow, p.a + (first + r) * p.a_row + k, count);
                 });
    });
}
#endif

}  // namespace

void block_product(const Product& p, void* scratch, const Workers& workers) {
    const BlockScratch sizes(p, is_shared(workers) ? workers.workers : 1);
    auto* place = static_cast<char*>(scratch);
    const bool few = p.m <= kFew;
    if (!few && !kDots) {
        multiply_panels(p, sizes, place, 0, workers);
        return;
    }
    const int32_t offset = p.type == WeightType::q4_0 ? 8 : 128;
    for (int64_t first = 0; first < p.m; first += sizes.rows) {
        const int64_t count = p.m - first < sizes.rows ? p.m - first : sizes.rows;
        each_task(workers, count, [&](int64_t r, int) {
            round_row(p.a + (first + r) * p.a_row, p.k, BlockRow(place + r * sizes.row_bytes, p.k), offset, !few);
        });
        if (few)
            multiply_few(p, sizes, place, first, workers);
        else
            multiply_panels(p, sizes, place, first, workers);
    }
}

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
