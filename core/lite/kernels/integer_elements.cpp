// Rounding to integers, back, and sums of integers. Compiled once for each instruction set, without fused
// multiplications and additions, so that all sets give the same bits.
#include "core/lite/kernels/integer_end.h"
#include "core/lite/kernels/integer_products.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

namespace {

// Sixteen at a time; the last ones by way of whole vectors.
template <class F>
[[gnu::always_inline]] inline void by_sixteen(int64_t count, F f) {
    int64_t i = 0;
    for (; i + kPanel <= count; i += kPanel) f(i, kPanel);
    if (i < count) f(i, count - i);
}
[[gnu::always_inline]] inline void put(uint8_t* to, Bytes16 bytes, int64_t count) {
    if (count == kPanel)
        store(to, bytes);
    else
        for (int64_t i = 0; i < count; ++i) to[i] = bytes[i];
}
// As unsigned bytes.
[[gnu::always_inline]] inline void take(const void* from, int64_t at, int64_t count, uint8_t flip, uint8_t* to) {
    const uint8_t* p = static_cast<const uint8_t*>(from) + at;
    Bytes16 bytes{};
    if (count == kPanel)
        bytes = load<Bytes16>(p);
    else
        for (int64_t i = 0; i < count; ++i) bytes[i] = p[i];
    store(to, bytes ^ flip);
}

}  // namespace

void quantize(int64_t count, const float* x, float scale, int32_t zero, IntegerType type, void* q) {
    const int32_t least = type == IntegerType::s8 ? -128 : 0;
    const Floats inverse = broadcast(1 / scale), low = broadcast(static_cast<float>(least - zero)),
                 high = broadcast(static_cast<float>(least + 255 - zero));
    const Ints offset = broadcast(zero - (type == IntegerType::s8 ? 0 : 128));
    const uint8_t flip = type == IntegerType::u8 ? 0x80 : 0;
    by_sixteen(
        count, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
            Sums sums;
#pragma GCC unroll 4
            for (int v = 0; v < kColumns; ++v) {
                const int64_t rest = n - v * kLanes;
                Floats f = rest >= kLanes ? load(x + i + v * kLanes)
                           : rest > 0     ? load_part(x + i + v * kLanes, rest)
                                          : Floats{};
                f *= inverse;
                f = choose(f == f, smaller(larger(f, low), high), Floats{});
                sums.v[v] = nearest(f) + offset;
            }
            put(static_cast<uint8_t*>(q) + i, narrow(sums) ^ flip, n);
        });
}

void dequantize(int64_t count, const void* q, float scale, int32_t zero, IntegerType type, float* x) {
    const Ints offset = broadcast(zero + offset_of(type));
    const Floats factor = broadcast(scale);
    by_sixteen(
        count, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
            alignas(16) uint8_t bytes[16];
            take(q, i, n, flip_of(type), bytes);
#pragma GCC unroll 4
            for (int v = 0; v < kColumns; ++v) {
                const Floats f = to_floats(load_bytes(bytes + v * kLanes) - offset) * factor;
                const int64_t rest = n - v * kLanes;
                if (rest >= kLanes)
                    store(x + i + v * kLanes, f);
                else if (rest > 0)
                    store_part(x + i + v * kLanes, f, rest);
            }
        });
}

void integer_sum(const IntegerSum& s) {
    const uint8_t flip = flip_of(s.type), back = s.type == IntegerType::u8 ? 0x80 : 0;
    const int32_t offset = offset_of(s.type);
    const Ints a_zero = broadcast(s.a_zero + offset), b_zero = broadcast(s.b_zero + offset);
    const Ints zero = broadcast(s.type == IntegerType::u8 ? s.zero - 128 : s.zero);
    const Floats low = broadcast(static_cast<float>(s.low - s.zero)),
                 high = broadcast(static_cast<float>(s.high - s.zero));
    const Floats a_factor = broadcast(s.a_multiplier), b_factor = broadcast(s.b_multiplier);
    by_sixteen(
        s.count, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
            alignas(16) uint8_t a[16], b[16];
            take(s.a, i, n, flip, a);
            take(s.b, i, n, flip, b);
            Sums sums;
#pragma GCC unroll 4
            for (int v = 0; v < kColumns; ++v) {
                const Floats first = to_floats(load_bytes(a + v * kLanes) - a_zero) * a_factor;
                const Floats f = first + to_floats(load_bytes(b + v * kLanes) - b_zero) * b_factor;
                sums.v[v] = nearest(smaller(larger(f, low), high)) + zero;
            }
            put(static_cast<uint8_t*>(s.y) + i, narrow(sums) ^ back, n);
        });
}

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
