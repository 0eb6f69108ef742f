// Words of Philox (core/random/random.h) by pairs as numbers of f64, for processors: plain arithmetic without branches,
// so that loops of it have vectors and give the bits of a lone number, as long as no product and sum are fused.
#pragma once

#include <cstdint>

namespace lunaria::formula {

// (bits >> 11) / 2^53, a number in [0, 1) of 53 bits.
[[gnu::always_inline]] inline double unit_of(uint64_t bits) {
    // Two halves in the mantissas of 2^84 and 2^52: vectors of 64-bit integers have no conversion of their own.
    const uint64_t n = bits >> 11;
    const double high = __builtin_bit_cast(double, (n >> 32) | 0x4530000000000000u);
    const double low = __builtin_bit_cast(double, (n & 0xffffffffu) | 0x4330000000000000u);
    return ((high - 0x1p84) + (low - 0x1p52)) * 0x1p-53;
}

// ln(u) for u in [2^-53, 1], as e ln 2 + ln(m) with m in [sqrt(1/2), sqrt(2)) and ln(m) = 2 atanh((m - 1) / (m + 1)).
[[gnu::always_inline]] inline double log_of_unit(double u) {
    constexpr uint64_t kRoot = 0x3fe6a09e667f3bcdu, kMantissa = 0xfffffffffffffu;
    constexpr uint64_t kLowered = kRoot - (uint64_t{64} << 52);  // keeps the exponent above zero
    const uint64_t shifted = __builtin_bit_cast(uint64_t, u) - kLowered;
    const double e = __builtin_bit_cast(double, (shifted >> 52) | 0x4330000000000000u) - (0x1p52 + 64);
    const double f = __builtin_bit_cast(double, (shifted & kMantissa) + kRoot) - 1.0;
    const double s = f / (2.0 + f), t = s * s;  // |s| < 0.172
    double p = 1.0 / 21;
    p = p * t + 1.0 / 19;
    p = p * t + 1.0 / 17;
    p = p * t + 1.0 / 15;
    p = p * t + 1.0 / 13;
    p = p * t + 1.0 / 11;
    p = p * t + 1.0 / 9;
    p = p * t + 1.0 / 7;
    p = p * t + 1.0 / 5;
    p = p * t + 1.0 / 3;
    // ln 2 in two parts: the first times e is exact.
    return e * 0x1.62e42fefa3800p-1 + (e * 0x1.ef35793c76730p-45 + (2.0 * s + 2.0 * s * (t * p)));
}

// cos and sin of 2 pi v for v in [0, 1): the quarter turns are taken off exactly, the rest is at most pi / 4.
[[gnu::always_inline]] inline void circle_of_unit(double v, double& cosine, double& sine) {
    const double quarter = __builtin_floor(4.0 * v + 0.5);
    const double x = (v - 0.25 * quarter) * 6.283185307179586, t = x * x;
    double s = -1.0 / 1307674368000;
    s = s * t + 1.0 / 6227020800;
    s = s * t - 1.0 / 39916800;
    s = s * t + 1.0 / 362880;
    s = s * t - 1.0 / 5040;
    s = s * t + 1.0 / 120;
    s = s * t - 1.0 / 6;
    s = x + x * (t * s);
    double c = 1.0 / 20922789888000;
    c = c * t - 1.0 / 87178291200;
    c = c * t + 1.0 / 479001600;
    c = c * t - 1.0 / 3628800;
    c = c * t + 1.0 / 40320;
    c = c * t - 1.0 / 720;
    c = c * t + 1.0 / 24;
    c = 1.0 - 0.5 * t + t * (t * c);
    const bool odd = quarter == 1.0 || quarter == 3.0;
    const double along = odd ? s : c, across = odd ? c : s;
    cosine = quarter == 1.0 || quarter == 2.0 ? -along : along;
    sine = quarter == 2.0 || quarter == 3.0 ? -across : across;
}

// ln(((bits >> 11) + 1) / 2^53), never of 0.
[[gnu::always_inline]] inline double log_of_bits(uint64_t bits) { return log_of_unit(unit_of(bits) + 0x1p-53); }

// Two numbers of the normal distribution, by Box and Muller: 53 bits in the radius reach 8.5 standard deviations.
[[gnu::always_inline]] inline void normal_pair(uint64_t u, uint64_t v, double& first, double& second) {
    const double radius = __builtin_sqrt(-2.0 * log_of_bits(u));
    double c, s;
    circle_of_unit(unit_of(v), c, s);
    first = radius * c;
    second = radius * s;
}

}  // namespace lunaria::formula
