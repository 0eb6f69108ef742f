// Words of Philox (core/random/random.h) as numbers, over any machine type: for loops of vectors and for kernels of
// devices. They give the same bits everywhere, as long as no product and sum are fused.
//
// A machine M has types Word (32 bits), Float (f32) and Mask, and: to_float(word) of the word as a signed integer,
// bits(float), from_bits(word), shift_left, shift_right and arithmetic_shift(word, count), negative(word) as a signed
// integer, select(mask, a, b), sqrt(float), and constants by word(n) and number(x). Words have + - & ^.
#pragma once

#include <cstdint>

namespace lunaria::formula {

// ln((w + 1) / 2^32), as e ln 2 + ln(1 + x). Above 1/2 the distance from 1 is known exactly as a number of steps of
// 2^-32, so the logarithm is accurate however close to 0 it is.
template <class M>
[[gnu::always_inline]] inline typename M::Float log_of_word(typename M::Word w) {
    using Float = typename M::Float;
    using Word = typename M::Word;
    auto number = [](double x) { return M::number(x); };
    const Float small = M::to_float(w & M::word(0x7fffffffu)) + number(1.0);
    // The mantissa in [sqrt(1/2), sqrt(2)).
    const Word shifted = M::bits(small) - M::word(0x3f3504f3u);
    const Float whole = M::to_float(M::arithmetic_shift(shifted, 23)) - number(32.0);
    const Float m = M::from_bits((shifted & M::word(0x7fffffu)) + M::word(0x3f3504f3u)) - number(1.0);
    const Float gap = M::to_float((w ^ M::word(0xffffffffu)) & M::word(0x7fffffffu)) * number(-0x1p-32);
    const auto upper = M::negative(w);
    const Float x = M::select(upper, gap, m), e = M::select(upper, number(0.0), whole);
    // ln(1 + x) = 2 atanh(s), |s| <= 1/3.
    const Float s = x / (number(2.0) + x), t = s * s;
    Float p = number(1.0f / 15);
    p = p * t + number(1.0f / 13);
    p = p * t + number(1.0f / 11);
    p = p * t + number(1.0f / 9);
    p = p * t + number(1.0f / 7);
    p = p * t + number(1.0f / 5);
    p = p * t + number(1.0f / 3);
    const Float log1p = number(2.0) * s + number(2.0) * s * (t * p);
    // ln 2 in two parts: the first times e is exact.
    return e * number(0.693359375f) + (e * number(-2.12194440e-4f) + log1p);
}

// cos and sin of 2 pi w / 2^32. The quadrant and the rest come from the integer, exactly.
template <class M>
[[gnu::always_inline]] inline void circle(typename M::Word w, typename M::Float& cosine, typename M::Float& sine) {
    using Float = typename M::Float;
    using Word = typename M::Word;
    auto number = [](double x) { return M::number(x); };
    const Word quadrant = M::shift_right(w + M::word(0x20000000u), 30);
    const Float r = M::to_float(w - M::shift_left(quadrant, 30)) * number(1.46291807926715968e-9f);  // 2 pi / 2^32
    const Float t = r * r;
    const Float s =
        r + r * t * (number(-1.6666654611e-1f) + t * (number(8.3321608736e-3f) + t * number(-1.9515295891e-4f)));
    const Float c =
        number(1.0) - number(0.5) * t +
        t * t *
            (number(4.166664568298827e-2f) + t * (number(-1.388731625493765e-3f) + t * number(2.443315711809948e-5f)));
    const auto odd = M::negative(M::shift_left(quadrant, 31));
    const Float x = M::select(odd, s, c), y = M::select(odd, c, s);
    cosine = M::from_bits(M::bits(x) ^ M::shift_left((quadrant + M::word(1)) & M::word(2), 30));
    sine = M::from_bits(M::bits(y) ^ M::shift_left(quadrant & M::word(2), 30));
}

// Two numbers of the normal distribution, by Box and Muller: 32 bits in the radius reach 6.6 standard deviations.
template <class M>
[[gnu::always_inline]] inline void normal_pair(typename M::Word u, typename M::Word v, typename M::Float& first,
                                               typename M::Float& second) {
    const typename M::Float radius = M::sqrt(M::number(-2.0) * log_of_word<M>(u));
    typename M::Float c, s;
    circle<M>(v, c, s);
    first = radius * c;
    second = radius * s;
}

// The ten rounds of Philox; `multiply(a, constant, high, low)` gives both halves of a product of words.
template <class M, class Multiply>
[[gnu::always_inline]] inline void philox_rounds(typename M::Word (&c)[4], typename M::Word k0, typename M::Word k1,
                                                 Multiply multiply) {
    using Word = typename M::Word;
    for (int round = 0; round < 10; ++round) {
        Word high0, low0, high1, low1;
        multiply(c[0], 0xD2511F53u, high0, low0);
        multiply(c[2], 0xCD9E8D57u, high1, low1);
        const Word n0 = high1 ^ c[1] ^ k0, n2 = high0 ^ c[3] ^ k1;
        c[0] = n0, c[1] = low1, c[2] = n2, c[3] = low0;
        k0 = k0 + M::word(0x9E3779B9u);
        k1 = k1 + M::word(0xBB67AE85u);
    }
}

}  // namespace lunaria::formula
