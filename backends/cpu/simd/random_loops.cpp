// Philox with one block in each 64-bit lane, and the functions that turn words into numbers. This file is compiled
// without contraction to fused multiply-adds, so that every instruction set gives the same bits.
#include "backends/cpu/simd/random_loops.h"

#include "core/random/formulas_random.h"

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

// Words of blocks first .. first + kBatch - 1.
void fill(Batch& batch, uint64_t key, uint64_t counter, uint64_t first) {
    Words zero = {}, steps;
    for (int i = 0; i < kLanes; ++i) steps[i] = static_cast<uint64_t>(i);
    Words m0 = zero + 0xD2511F53u, m1 = zero + 0xCD9E8D57u;
    for (int64_t block = 0; block < kBatch; block += kLanes) {
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

void normal_pairs(const uint32_t* u, const uint32_t* v, float* first, float* second) {
    for (int64_t i = 0; i < kBatch; ++i) formula::normal_pair<Machine>(u[i], v[i], first[i], second[i]);
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

}  // namespace

void uniform_blocks(float* out, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks) {
    Batch batch;
    alignas(64) float column[4][kBatch];
    for (int64_t done = 0; done < blocks; done += kBatch) {
        fill(batch, key, counter, first + static_cast<uint64_t>(done));
        for (int k = 0; k < 4; ++k)
            for (int64_t i = 0; i < kBatch; ++i)
                column[k][i] = static_cast<float>(static_cast<int32_t>(batch.word[k][i] >> 8)) * 0x1p-24f;
        interleave(column, out + 4 * done, blocks - done < kBatch ? blocks - done : kBatch);
    }
}

void normal_blocks(float* out, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks) {
    Batch batch;
    alignas(64) float column[4][kBatch];
    for (int64_t done = 0; done < blocks; done += kBatch) {
        fill(batch, key, counter, first + static_cast<uint64_t>(done));
        normal_pairs(batch.word[0], batch.word[1], column[0], column[1]);
        normal_pairs(batch.word[2], batch.word[3], column[2], column[3]);
        interleave(column, out + 4 * done, blocks - done < kBatch ? blocks - done : kBatch);
    }
}

void dropout_blocks(const float* x, float* out, uint8_t* mask, uint64_t key, uint64_t counter, uint64_t first,
                    int64_t blocks, uint32_t limit, float keep) {
    Batch batch;
    alignas(64) uint32_t words[4 * kBatch];
    for (int64_t done = 0; done < blocks; done += kBatch) {
        fill(batch, key, counter, first + static_cast<uint64_t>(done));
        for (int64_t i = 0; i < kBatch; ++i)
            for (int k = 0; k < 4; ++k) words[4 * i + k] = batch.word[k][i];
        int64_t count = 4 * (blocks - done < kBatch ? blocks - done : kBatch);
        const float* from = x + 4 * done;
        float* to = out + 4 * done;
        uint8_t* kept = mask + 4 * done;
        for (int64_t i = 0; i < count; ++i) to[i] = words[i] >= limit ? from[i] / keep : 0.0f;
        for (int64_t i = 0; i < count; ++i) kept[i] = words[i] >= limit;
    }
}

}  // namespace lunaria::cpu::LUNARIA_ISA
