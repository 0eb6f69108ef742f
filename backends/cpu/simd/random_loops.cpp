// Philox with one block in each 64-bit lane, and the functions that turn words into numbers. This file is compiled
// without contraction to fused multiply-adds, so that every instruction set gives the same bits.
#include "backends/cpu/simd/random_loops.h"

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
        // The upper halves of the lanes hold rubbish, which products ignore and the end cuts off.
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

inline float select(bool condition, float a, float b) { return condition ? a : b; }

inline float from_bits(uint32_t u) {
    float x;
    __builtin_memcpy(&x, &u, 4);
    return x;
}
inline uint32_t bits_of(float x) {
    uint32_t u;
    __builtin_memcpy(&u, &x, 4);
    return u;
}

// ln((w + 1) / 2^32), as e ln 2 + ln(1 + x). Above 1/2 the distance from 1 is known exactly as a number of steps of
// 2^-32, so the logarithm is accurate however close to 0 it is.
inline float log_of_word(uint32_t w) {
    float small = static_cast<float>(static_cast<int32_t>(w & 0x7fffffffu)) + 1.0f;
    uint32_t bits = bits_of(small);
    // The mantissa in [sqrt(1/2), sqrt(2)).
    uint32_t shifted = bits - 0x3f3504f3u;
    float e = static_cast<float>(static_cast<int32_t>(shifted) >> 23) - 32.0f;
    float m = from_bits((shifted & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    float gap = static_cast<float>(static_cast<int32_t>(~w & 0x7fffffffu)) * -0x1p-32f;
    bool upper = static_cast<int32_t>(w) < 0;
    float x = select(upper, gap, m);
    e = select(upper, 0.0f, e);
    // ln(1 + x) = 2 atanh(s), |s| <= 1/3.
    float s = x / (2.0f + x), t = s * s;
    float p = 1.0f / 15;
    p = p * t + 1.0f / 13;
    p = p * t + 1.0f / 11;
    p = p * t + 1.0f / 9;
    p = p * t + 1.0f / 7;
    p = p * t + 1.0f / 5;
    p = p * t + 1.0f / 3;
    float log1p = 2.0f * s + 2.0f * s * (t * p);
    // ln 2 in two parts: the first times e is exact.
    return e * 0.693359375f + (e * -2.12194440e-4f + log1p);
}

// cos and sin of 2 pi w / 2^32. The quadrant and the rest come from the integer, exactly.
inline void circle(uint32_t w, float& cosine, float& sine) {
    uint32_t quadrant = (w + 0x20000000u) >> 30;
    float r = static_cast<float>(static_cast<int32_t>(w - (quadrant << 30))) * 1.46291807926715968e-9f;  // 2 pi / 2^32
    float t = r * r;
    float s = r + r * t * (-1.6666654611e-1f + t * (8.3321608736e-3f + t * -1.9515295891e-4f));
    float c =
        1.0f - 0.5f * t + t * t * (4.166664568298827e-2f + t * (-1.388731625493765e-3f + t * 2.443315711809948e-5f));
    bool odd = (quadrant & 1) != 0;
    float x = select(odd, s, c), y = select(odd, c, s);
    cosine = from_bits(bits_of(x) ^ (((quadrant + 1) & 2) << 30));
    sine = from_bits(bits_of(y) ^ ((quadrant & 2) << 30));
}

void normal_pairs(const uint32_t* u, const uint32_t* v, float* first, float* second) {
    for (int64_t i = 0; i < kBatch; ++i) {
        float radius = __builtin_sqrtf(-2.0f * log_of_word(u[i])), c, s;
        circle(v[i], c, s);
        first[i] = radius * c;
        second[i] = radius * s;
    }
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
