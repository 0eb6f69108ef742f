// Philox with one block in each 64-bit lane, and the functions that turn words into numbers. This file is compiled
// without contraction to fused multiply-adds, so that every instruction set gives the same bits.
#include "backends/cpu/simd/random_loops.h"

#include "core/random/formulas_random.h"
#include "core/random/formulas_wide.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 8;
#elif defined(__AVX2__)
constexpr int kLanes = 4;
#else
constexpr int kLanes = 2;
#endif
typedef uint64_t Words __attribute__((vector_size(kLanes * 8)));
typedef uint32_t Halves __attribute__((vector_size(kLanes * 4)));

// Product of the lower halves of the lanes.
inline Words multiply(Words a, Words b) {
#if defined(__AVX512F__)
    return (Words)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (Words)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#else
    return (Words)_mm_mul_epu32((__m128i)a, (__m128i)b);
#endif
}

constexpr int64_t kBatch = 128;  // blocks

struct Batch {
    alignas(64) uint32_t word[4][kBatch];
};

// Words of `count` blocks from the first on, in whole vectors.
void fill(Batch& batch, uint64_t key, uint64_t counter, uint64_t first, int64_t count) {
    Words zero = {}, steps;
    for (int i = 0; i < kLanes; ++i) steps[i] = static_cast<uint64_t>(i);
    Words m0 = zero + 0xD2511F53u, m1 = zero + 0xCD9E8D57u;
    for (int64_t block = 0; block < count; block += kLanes) {
        Words position = steps + (first + static_cast<uint64_t>(block));
        // The upper halves of the lanes hold undefined bits, which products ignore and the end cuts off.
        Words c0 = position, c1 = position >> 32;
        Words c2 = zero + (counter & 0xffffffffu), c3 = zero + (counter >> 32);
        uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
        for (int round = 0; round < 10; ++round) {
            Words p0 = multiply(c0, m0), p1 = multiply(c2, m1);
            c0 = (p1 >> 32) ^ c1 ^ (zero + k0);
            c2 = (p0 >> 32) ^ c3 ^ (zero + k1);
            c1 = p1;
            c3 = p0;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        const Words c[4] = {c0, c1, c2, c3};
        for (int k = 0; k < 4; ++k) {
            Halves low = __builtin_convertvector(c[k], Halves);
            __builtin_memcpy(&batch.word[k][block], &low, sizeof low);
        }
    }
}

struct Machine {
    using Word = uint32_t;
    using Float = float;
    static Word word(uint32_t n) { return n; }
    static Float number(double x) { return static_cast<float>(x); }
    static Float to_float(Word w) { return static_cast<float>(static_cast<int32_t>(w)); }
    static Float from_bits(Word w) {
        float x;
        __builtin_memcpy(&x, &w, 4);
        return x;
    }
    static Word bits(Float x) {
        uint32_t w;
        __builtin_memcpy(&w, &x, 4);
        return w;
    }
    static Word shift_left(Word w, int count) { return w << count; }
    static Word shift_right(Word w, int count) { return w >> count; }
    static Word arithmetic_shift(Word w, int count) { return static_cast<Word>(static_cast<int32_t>(w) >> count); }
    static bool negative(Word w) { return static_cast<int32_t>(w) < 0; }
    static Float select(bool condition, Float a, Float b) { return condition ? a : b; }
    static Float sqrt(Float x) { return __builtin_sqrtf(x); }
};

void normal_pairs(const uint32_t* u, const uint32_t* v, float* first, float* second, int64_t count) {
    for (int64_t i = 0; i < count; ++i) formula::normal_pair<Machine>(u[i], v[i], first[i], second[i]);
}

// Element 4 b + k of the result is element b of column k.
void interleave(const float (*column)[kBatch], float* out, int64_t blocks) {
    for (int64_t i = 0; i < blocks; ++i) {
        out[4 * i] = column[0][i];
        out[4 * i + 1] = column[1][i];
        out[4 * i + 2] = column[2][i];
        out[4 * i + 3] = column[3][i];
    }
}

// Calls use(words, number of the first block among those wanted, count) for batches of blocks.
template <class F>
void in_batches(uint64_t key, uint64_t counter, uint64_t first, int64_t blocks, F use) {
    Batch batch;
    for (int64_t done = 0; done < blocks; done += kBatch) {
        const int64_t count = blocks - done < kBatch ? blocks - done : kBatch;
        fill(batch, key, counter, first + static_cast<uint64_t>(done), count);
        use(batch, done, count);
    }
}

// The 64 bits of two words of each block.
void join(const uint32_t* high, const uint32_t* low, uint64_t* bits, int64_t count) {
    for (int64_t i = 0; i < count; ++i) bits[i] = static_cast<uint64_t>(high[i]) << 32 | low[i];
}

void pairs(const double* first, const double* second, double* out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        out[2 * i] = first[i];
        out[2 * i + 1] = second[i];
    }
}

}  // namespace

void uniform_blocks(float* out, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks) {
    alignas(64) float column[4][kBatch];
    in_batches(key, counter, first, blocks, [&](const Batch& batch, int64_t done, int64_t count) {
        for (int k = 0; k < 4; ++k)
            for (int64_t i = 0; i < count; ++i)
                column[k][i] = static_cast<float>(static_cast<int32_t>(batch.word[k][i] >> 8)) * 0x1p-24f;
        interleave(column, out + 4 * done, count);
    });
}

void normal_blocks(float* out, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks) {
    alignas(64) float column[4][kBatch];
    in_batches(key, counter, first, blocks, [&](const Batch& batch, int64_t done, int64_t count) {
        normal_pairs(batch.word[0], batch.word[1], column[0], column[1], count);
        normal_pairs(batch.word[2], batch.word[3], column[2], column[3], count);
        interleave(column, out + 4 * done, count);
    });
}

void dropout_blocks(const float* x, float* out, uint8_t* mask, uint64_t key, uint64_t counter, uint64_t first,
                    int64_t blocks, uint32_t limit, float keep) {
    alignas(64) uint32_t words[4 * kBatch];
    in_batches(key, counter, first, blocks, [&](const Batch& batch, int64_t done, int64_t some) {
        for (int64_t i = 0; i < some; ++i)
            for (int k = 0; k < 4; ++k) words[4 * i + k] = batch.word[k][i];
        const int64_t count = 4 * some;
        const float* from = x + 4 * done;
        float* to = out + 4 * done;
        uint8_t* kept = mask + 4 * done;
        for (int64_t i = 0; i < count; ++i) to[i] = words[i] >= limit ? from[i] / keep : 0.0f;
        for (int64_t i = 0; i < count; ++i) kept[i] = words[i] >= limit;
    });
}

void uniform_f64_blocks(double* out, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks) {
    alignas(64) uint64_t bits[2][kBatch];
    alignas(64) double column[2][kBatch];
    in_batches(key, counter, first, blocks, [&](const Batch& batch, int64_t done, int64_t count) {
        for (int k = 0; k < 2; ++k) {
            join(batch.word[2 * k], batch.word[2 * k + 1], bits[k], count);
            for (int64_t i = 0; i < count; ++i) column[k][i] = formula::unit_of(bits[k][i]);
        }
        pairs(column[0], column[1], out + 2 * done, count);
    });
}

void normal_f64_blocks(double* out, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks) {
    alignas(64) uint64_t bits[2][kBatch];
    alignas(64) double column[2][kBatch];
    in_batches(key, counter, first, blocks, [&](const Batch& batch, int64_t done, int64_t count) {
        for (int k = 0; k < 2; ++k) join(batch.word[2 * k], batch.word[2 * k + 1], bits[k], count);
        for (int64_t i = 0; i < count; ++i) formula::normal_pair(bits[0][i], bits[1][i], column[0][i], column[1][i]);
        pairs(column[0], column[1], out + 2 * done, count);
    });
}

void laplace_blocks(float* out, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks) {
    alignas(64) uint64_t bits[kBatch];
    alignas(64) double magnitude[kBatch];
    in_batches(key, counter, first, blocks, [&](const Batch& batch, int64_t done, int64_t count) {
        join(batch.word[0], batch.word[1], bits, count);
        for (int64_t i = 0; i < count; ++i) magnitude[i] = -formula::log_of_bits(bits[i]);
        for (int64_t i = 0; i < count; ++i) {
            const auto x = static_cast<float>(magnitude[i]);
            out[done + i] = static_cast<int32_t>(batch.word[2][i]) < 0 ? x : -x;
        }
    });
}

void random_bits(uint64_t* out, int64_t stride, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks) {
    in_batches(key, counter, first, blocks, [&](const Batch& batch, int64_t done, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
            uint64_t* const to = out + (done + i) * stride;
            to[0] = static_cast<uint64_t>(batch.word[0][i]) << 32 | batch.word[1][i];
            to[1] = static_cast<uint64_t>(batch.word[2][i]) << 32 | batch.word[3][i];
        }
    });
}

}  // namespace lunaria::cpu::LUNARIA_ISA
