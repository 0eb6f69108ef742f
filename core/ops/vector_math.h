// Mathematical functions on vectors of numbers, written once: `N` is a register of the loops of backends/cpu/simd
// (Pack) or code that is being generated (jit/codegen's Code), so that both do the same operations in the same order
// and give the same bits.
//
// f32 is done by polynomials after a range reduction, within about 2 units in the last place (4 for acosh and its
// like), beside zeros, too; exp, log, sin, cos, tanh and what is made of them also in f64. Special values (infinities,
// NaN, signed zeros, subnormal arguments and results) agree with libm. Coefficients are Chebyshev fits of the function
// named beside them, low order first. The value of a lane does not depend on the other lanes.
//
// A type of vectors has, found by argument-dependent lookup: comparisons and arithmetic, select, abs, copysign, sqrt,
// at_least, at_most (NaN stays NaN), bits_of and float_of with +, -, &, |, << and >> on what lies between (bits_like
// makes such bits), any_bit, and
//   is_double    whether the lanes are f64; f32 otherwise
//   is_fused     whether fma rounds once, in one instruction
//   alone        a product that is not fused with a sum: compilers differ in which of two products they fuse, and
//                whether they fuse one with other uses
//   scales       whether scaled(x, n) gives x 2^n for any whole n
//   has_tables   whether poly_from_table is there: it replaces an exponential and a division where registers hold a
//                table, which takes AVX2; without it, each lookup would be a gather from memory
//   where_rare   the value of a function in the lanes of a mask that is seldom set at all; a value in the others
//   by_libm      the lanes of x under a function of libm
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/ops/vector_tables.h"

namespace lunaria::vector_math {

template <class N>
concept Vector = requires(N x) {
    bits_of(x);
};

// Functions of libm that compute rare lanes.
enum class Libm : uint8_t { sin, cos, tan };

inline constexpr double kHalfPi = 1.57079632679489661923;
inline constexpr double kInfinity = __builtin_inf(), kNan = __builtin_nan("");

// Coefficients low order first.
template <Vector N, size_t K, size_t I = 0>
[[gnu::always_inline]] inline N poly(N x, const double (&c)[K]) {
    if constexpr (I + 1 == K)
        return N(c[I]);
    else
        return poly<N, K, I + 1>(x, c) * x + N(c[I]);
}
// a b + c, rounded once where the processor can.
template <Vector N>
[[gnu::always_inline]] inline N plus_product(N c, N a, N b) {
    if (is_fused(a)) return fma(a, b, c);
    return a * b + c;
}
template <Vector N>
[[gnu::always_inline]] inline double pick(N x, double single, double twice) {
    return is_double(x) ? twice : single;
}
template <Vector N>
[[gnu::always_inline]] inline int mantissa_bits(N x) {
    return is_double(x) ? 52 : 23;
}

// Adding this number rounds a small one to an integer, which is then found in the lowest bits.
template <Vector N>
[[gnu::always_inline]] inline N rounder(N x) {
    return N(pick(x, 0x1.8p23, 0x1.8p52));
}
template <Vector N>
[[gnu::always_inline]] inline N round_small(N x) {
    return (x + rounder(x)) - rounder(x);
}
// 2^n for an integer n of the normal range.
template <Vector N>
[[gnu::always_inline]] inline N power_of_two(N n) {
    return float_of((bits_of(n + rounder(n)) << mantissa_bits(n)) + bits_of(N(1)));
}
// x * 2^n for x near 1 and any integer n: in two steps, since 2^n itself need not be a number.
template <Vector N>
[[gnu::always_inline]] inline N scale(N x, N n) {
    if (scales(x)) return scaled(x, n);
    N half = round_small(n * N(0.5));
    return x * power_of_two(half) * power_of_two(n - half);
}

// e and m with x = m 2^e and sqrt(1/2) <= m < sqrt(2), for a positive normal x.
template <class N>
struct Split {
    N e, m;
};
template <Vector N>
[[gnu::always_inline]] inline Split<N> split_exponent(N x) {
    const auto root_half = bits_of(N(0.70710678118654752440));
    const auto ix = bits_of(x) + (bits_of(N(1)) - root_half);
    // The exponent becomes the low bits of 2^23 (2^52).
    const double base = pick(x, 0x1p23, 0x1p52);
    N e = float_of((ix >> mantissa_bits(x)) | bits_of(N(base))) - N(base + pick(x, 127, 1023));
    const auto mantissa = bits_like(x, (uint64_t{1} << mantissa_bits(x)) - 1);
    return {e, float_of((ix & mantissa) + root_half)};
}

// x = n ln 2 + r with |r| <= ln 2 / 2, and exp(r) - 1; n in the lowest bits of `shifted`.
template <class N>
struct ExpParts {
    N n, em1, shifted;
};
// (exp(r) - 1 - r) / r^2
template <Vector N>
[[gnu::always_inline]] inline N exp_poly(N r) {
    constexpr double single[] = {0.5f, 0.16666576266f, 0.041666556149f, 0.0083631789311f, 0.0013926184037f};
    constexpr double twice[] = {0.5,
                                0.1666666666666667,
                                0.04166666666666667,
                                0.008333333333326136,
                                0.0013888888888883748,
                                0.00019841269874820627,
                                2.4801587325547743e-05,
                                2.7557255400206422e-06,
                                2.75572736431103e-07,
                                2.5105217004720745e-08,
                                2.0914686968086876e-09};
    if (is_double(r)) return poly(r, twice);
    return poly(r, single);
}
template <Vector N>
[[gnu::always_inline]] inline ExpParts<N> exp_parts(N x) {
    N shifted = x * N(1.4426950408889634074) + rounder(x);
    N n = shifted - rounder(x);
    N r = x - n * N(pick(x, 0.693359375f, 6.93145751953125e-1)) -
          n * N(pick(x, -2.12194440e-4f, 1.42860682030941723212e-6));
    return {n, r + r * r * exp_poly(r), shifted};
}

// exp(x) * 2^shift, where neither exponent is far beyond its range.
template <Vector N>
[[gnu::always_inline]] inline N exp_within(N x, double shift) {
    ExpParts<N> p = exp_parts(x);
    return scale(N(1) + p.em1, shift == 0 ? p.n : p.n + N(shift));
}
// exp(x) * 2^shift, where only the result may overflow or underflow.
template <Vector N>
[[gnu::always_inline]] inline N exp_shifted(N x, double shift) {
    return exp_within(at_most(at_least(x, pick(x, -105, -746)), pick(x, 90, 711)), shift);
}
template <Vector N>
[[gnu::always_inline]] inline N exp(N x) {
    return exp_shifted(x, 0);
}

template <Vector N>
[[gnu::always_inline]] inline N exp2(N x) {
    const double limit = pick(x, 152, 1080);
    x = at_most(at_least(x, -limit), limit);
    N n = round_small(x), r = alone((x - n) * N(0.69314718055994530942));
    return scale(N(1) + (r + r * r * exp_poly(r)), n);
}

// 2^n (e^r - 1) + (2^n - 1), halved on the way because 2^n itself may overflow. From the upper bounds on the result is
// infinite, while half of 2^n is still finite: infinity times a negative e^r - 1 would be no number.
template <Vector N>
[[gnu::always_inline]] inline N expm1(N x) {
    ExpParts<N> p = exp_parts(at_most(at_least(x, pick(x, -30, -60)), pick(x, 88.9, 709.9)));
    N s = power_of_two(p.n - N(1));
    N half = s * p.em1 + (s - N(0.5));
    return select(x == N(0), x, half + half);
}

// 2^n, where it is a normal number.
template <Vector N>
[[gnu::always_inline]] inline N power_of_two(const ExpParts<N>& p) {
    return float_of((bits_of(p.shifted) << mantissa_bits(p.shifted)) + bits_of(N(1)));
}
// expm1 for x <= 0, up to the sign of a zero; any number elsewhere.
template <Vector N>
[[gnu::always_inline]] inline N expm1_negative(N x) {
    ExpParts<N> p = exp_parts(at_least(x, pick(x, -30, -60)));
    N s = power_of_two(p);
    return s * p.em1 + (s - N(1));
}

// log(m 2^e) = e ln 2 + log(m) with sqrt(1/2) <= m < sqrt(2).
template <class N>
struct LogParts {
    N e, f;  // exponent and m - 1
};
template <Vector N>
[[gnu::always_inline]] inline LogParts<N> log_parts(N x) {
    const auto tiny = x < N(pick(x, 0x1p-126, 0x1p-1022));
    Split<N> split = split_exponent(select(tiny, x * N(pick(x, 0x1p25, 0x1p54)), x));
    return {select(tiny, split.e - N(pick(x, 25, 54)), split.e), split.m - N(1)};
}
// log(1 + f) - f for sqrt(1/2) <= 1 + f < sqrt(2).
template <Vector N>
[[gnu::always_inline]] inline N log1p_rest(N f) {
    // (log(1 + f) - f + f^2 / 2) / f^3
    constexpr double single[] = {0.3333333433f,  -0.2499998957f, 0.2000001073f,  -0.1666800082f, 0.1428652406f,
                                 -0.1245074347f, 0.1103778332f,  -0.1064619198f, 0.1053086445f,  -0.0620150007f};
    // (2 atanh(s) / s - 2) / s^2 in s^2, with s = f / (2 + f)
    constexpr double twice[] = {0.666666666666667,   0.3999999999989819,  0.28571428626570206, 0.2222221103781659,
                                0.18182896183483085, 0.15331487235865734, 0.14619343453512615};
    if (is_double(f)) {
        N s = f / (N(2) + f), z = s * s, h = N(0.5) * f * f;
        return plus_product(-h, s, plus_product(h, z, poly(z, twice)));
    }
    N ff = f * f;
    return ff * (f * poly(f, single) - N(0.5));
}
// The value where log is defined and finite; its special values otherwise.
template <Vector N>
[[gnu::always_inline]] inline N log_range(N x, N value) {
    const auto regular = (x > N(0)) & (x < N(kInfinity));
    N special = select(x == N(0), N(-kInfinity), select(x < N(0), N(kNan), x));
    return select(regular, value, special);
}
template <Vector N>
[[gnu::always_inline]] inline N log_regular(N x, N tail) {
    LogParts<N> p = log_parts(x);
    N low = p.e * N(pick(x, -2.12194440e-4f, 1.42860682030941723212e-6)) + tail;
    return p.e * N(pick(x, 0.693359375f, 6.93145751953125e-1)) + (p.f + (log1p_rest(p.f) + low));
}
template <Vector N>
[[gnu::always_inline]] inline N log(N x) {
    return log_range(x, log_regular(x, N(0)));
}
template <Vector N>
[[gnu::always_inline]] inline N log2(N x) {
    LogParts<N> p = log_parts(x);
    // log2(e) - 1 times the logarithm, so that the larger part of the product is exact.
    N rest = alone(log1p_rest(p.f)), l = p.f + rest;
    return log_range(x, p.e + (l + (l * N(0.44269504088896340736) + (rest - (l - p.f)))));
}
template <Vector N>
[[gnu::always_inline]] inline N log10(N x) {
    LogParts<N> p = log_parts(x);
    N l = (p.f + log1p_rest(p.f)) * N(0.43429448190325182765);
    return log_range(x, p.e * N(0.301025390625) + plus_product(l, p.e, N(4.60503898119521373889e-6)));
}
// log(u) with u = 1 + x rounded, and the first-order effect of the rounding: what u lost, over u.
template <Vector N>
[[gnu::always_inline]] inline N log1p(N x) {
    N u = N(1) + x;
    N lost = select(abs(x) < N(0.5), x - (u - N(1)), N(1) - (u - x));
    const auto plain = (x == N(0)) | (x == N(kInfinity));
    return select(plain, x, log_range(u, log_regular(u, lost / u)));
}

// sin(r), cos(r) and, in the lowest bits, the quadrant for x = quadrant * pi / 2 + r.
template <class N>
struct TrigParts {
    N sin, cos, quadrant;
};
// x - n pi / 2, with full relative accuracy however close x is to a multiple: the steps that cancel have no rounding
// error.
template <Vector N>
[[gnu::always_inline]] inline N off_quadrants(N x, N n) {
    if (is_fused(x)) {
        // -0 stays -0: where n is 0 each product must be -0, as those of positive parts with 0 - n are.
        const N m = N(0) - n;
        N r = fma(n, N(-pick(x, 0x1.921fb6p+0, 0x1.921fb54442d18p+0)), x);
        r = is_double(x) ? fma(n, N(-0x1.1a62633145c07p-54), r) : fma(m, N(-0x1.777a5cp-25), r);
        return fma(m, N(-pick(x, 0x1.ee59dap-50, 0x1.f1976b8p-110)), r);
    }
    // Parts with few bits, whose products with any quadrant number in range are exact.
    N r = (x - n * N(pick(x, 0x1.92p+0, 0x1.921fb544p+0))) - n * N(pick(x, 0x1.fb4p-12, 0x1.0b4611a6p-34));
    r = r - n * N(pick(x, 0x1.444p-24, 0x1.3198a2ep-69));
    return r - n * N(pick(x, 0x1.68c234p-39, 0x1.b839a252p-104));
}
template <Vector N>
[[gnu::always_inline]] inline TrigParts<N> trig_parts(N x) {
    // (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4 in r^2
    constexpr double sin_single[] = {-0.16666667163f, 0.0083333319053f, -0.00019840084132f, 2.7249620870e-06f};
    constexpr double cos_single[] = {0.0416666679084f, -0.00138888880610f, 2.48005981120e-05f, -2.73007032092e-07f};
    constexpr double sin_twice[] = {-0.16666666666666666,  0.008333333333333331,  -0.0001984126984126504,
                                    2.755731921932058e-06, -2.50521062259944e-08, 1.6058530596645953e-10,
                                    -7.586636882825159e-13};
    constexpr double cos_twice[] = {0.041666666666666664,   -0.0013888888888888887, 2.4801587301584632e-05,
                                    -2.755731922139249e-07, 2.0876755787492604e-09, -1.1470460319209511e-11,
                                    4.745838412531023e-14};
    N shifted = x * N(0.636619772367581343076) + rounder(x);
    N n = shifted - rounder(x);
    N r = off_quadrants(x, n);
    N z = r * r, s = z, c = z;
    if (is_double(x)) {
        s = poly(z, sin_twice);
        c = poly(z, cos_twice);
    } else {
        s = poly(z, sin_single);
        c = poly(z, cos_single);
    }
    return {r * (N(1) + z * s), N(1) - plus_product(N(0.5) * z, -(z * z), c), shifted};
}
template <Vector N>
[[gnu::always_inline]] inline auto outside_trig_range(N x) {
    return !(abs(x) <= N(pick(x, 10000, 1e6)));
}
// `more`: quadrants.
template <Vector N>
[[gnu::always_inline]] inline N turn(const TrigParts<N>& p, uint64_t more) {
    const auto quadrant = bits_of(p.quadrant) + bits_like(p.sin, more);
    N value = select(any_bit(p.sin, quadrant & bits_like(p.sin, 1)), p.cos, p.sin);
    return select(any_bit(p.sin, quadrant & bits_like(p.sin, 2)), -value, value);
}
template <Vector N>
[[gnu::always_inline]] inline N sin(N x) {
    return where_rare(outside_trig_range(x), turn(trig_parts(x), 0), [&] { return by_libm(Libm::sin, x); });
}
template <Vector N>
[[gnu::always_inline]] inline N cos(N x) {
    return where_rare(outside_trig_range(x), turn(trig_parts(x), 1), [&] { return by_libm(Libm::cos, x); });
}
template <Vector N>
[[gnu::always_inline]] inline N tan(N x) {
    TrigParts<N> p = trig_parts(x);
    const auto odd = any_bit(x, bits_of(p.quadrant) & bits_like(x, 1));
    N value = select(odd, -p.cos, p.sin) / select(odd, p.sin, p.cos);
    return where_rare(outside_trig_range(x), value, [&] { return by_libm(Libm::tan, x); });
}

template <Vector N>
[[gnu::always_inline]] inline N tanh(N x) {
    // Beyond the table it is 1 to the last digit.
    if (has_tables(x)) return copysign(poly_from_table(at_most(abs(x), 31.4 * kTanhWidth), kTanhWidth, kTanh), x);
    // With t = e^(-2|x|) - 1 the value is -t / (2 + t); where that is close to 1 its distance from 1, 2 (1 + t) / (2 +
    // t), so that the errors of t and of the quotient are small beside the value.
    const auto near_one = abs(x) > N(1);
    ExpParts<N> p = exp_parts(at_least(N(-2) * abs(x), pick(x, -30, -60)));
    N s = power_of_two(p), t = s * p.em1 + (s - N(1));
    N q = select(near_one, N(2) * (s * p.em1 + s), t) / (N(2) + t);
    return copysign(select(near_one, N(1) - q, q), x);
}
template <Vector N>
[[gnu::always_inline]] inline N sinh(N x) {
    N a = abs(x), t = expm1(a);
    N small = N(0.5) * (t + t / (t + N(1)));
    return copysign(select(a > N(20), exp_shifted(a, -1), small), x);
}
template <Vector N>
[[gnu::always_inline]] inline N cosh(N x) {
    N e = exp_shifted(abs(x), -1);
    return e + N(0.25) / e;
}
template <Vector N>
[[gnu::always_inline]] inline N asinh(N x) {
    N a = abs(x), aa = alone(a * a);
    const auto large = a > N(1e9);
    N grown = a + aa / (N(1) + sqrt(aa + N(1)));
    // log(2a) = log1p(a - 1) + log 2
    N l = log1p(select(large, a - N(1), grown));
    return copysign(select(large, l + N(0.69314718055994530942), l), x);
}
template <Vector N>
[[gnu::always_inline]] inline N acosh(N x) {
    const auto large = x > N(1e9);
    N t = x - N(1);
    N l = log1p(select(large, t, t + sqrt(t * (t + N(2)))));
    return select(x < N(1), N(kNan), select(large, l + N(0.69314718055994530942), l));
}
template <Vector N>
[[gnu::always_inline]] inline N atanh(N x) {
    N a = abs(x);
    return copysign(N(0.5) * log1p((a + a) / (N(1) - a)), x);
}

// From here on for f32.

// atan(t) for 0 <= t <= 1.
template <Vector N>
[[gnu::always_inline]] inline N atan_unit(N t) {
    // (atan(t) - t) / t^3 in t^2
    constexpr double c[] = {-0.33333334327f, 0.19999949634f, -0.14284004271f, 0.11088261753f,  -0.08931826800f,
                            0.07031914591f,  -0.0489605143f, 0.02630500122f,  -0.00914462935f, 0.00148869189f};
    N z = t * t;
    return t + t * z * poly(z, c);
}
template <Vector N>
[[gnu::always_inline]] inline N atan(N x) {
    N a = abs(x);
    const auto inverse = a > N(1);
    N p = atan_unit(select(inverse, N(1) / a, a));
    return copysign(select(inverse, N(kHalfPi) - p, p), x);
}
template <Vector N>
[[gnu::always_inline]] inline N atan2(N y, N x) {
    N ax = abs(x), ay = abs(y);
    const auto steep = ay > ax;
    N top = select(steep, ax, ay), bottom = select(steep, ay, ax);
    // 0/0 counts as 0 and inf/inf as 1.
    N t = select(top == bottom, select(top == N(0), N(0), N(1)), top / bottom);
    N p = atan_unit(t);
    p = select(steep, N(kHalfPi) - p, p);
    p = select(copysign(N(1), x) < N(0), N(2 * kHalfPi) - p, p);
    return select((x != x) | (y != y), x + y, copysign(p, y));
}
// For a = |x|: asin(a) if a <= 1/2, else asin(sqrt((1 - a) / 2)), which is (pi / 2 - asin(a)) / 2.
template <Vector N>
[[gnu::always_inline]] inline N asin_part(N a) {
    // (asin(t) - t) / t^3 in t^2
    constexpr double c[] = {0.1666666567f, 0.0750009418f, 0.0445994027f, 0.0311006624f, 0.0171492379f, 0.0336908475f};
    const auto outer = a > N(0.5);
    N z = select(outer, (N(1) - a) * N(0.5), a * a);
    N t = select(outer, sqrt(z), a);
    return t + t * z * poly(z, c);
}
template <Vector N>
[[gnu::always_inline]] inline N asin(N x) {
    N a = abs(x), p = asin_part(a);
    return copysign(select(a > N(0.5), N(kHalfPi) - (p + p), p), x);
}
template <Vector N>
[[gnu::always_inline]] inline N acos(N x) {
    N a = abs(x), p = asin_part(a);
    // pi / 2 in two parts: the result near 0 has more digits than pi / 2 itself.
    N central = N(kHalfPi) - (copysign(p, x) + N(4.37113883e-8));
    N twice = p + p;
    return select(a > N(0.5), select(x < N(0), N(2 * kHalfPi) - twice, twice), central);
}

template <Vector N>
[[gnu::always_inline]] inline N erf(N x) {
    // erf(x) / x in x^2 for |x| <= 1, and -log(erfc(x)) for 1 <= x <= 4
    constexpr double inner[] = {1.12837910652f, -0.37612625957f, 0.11283594370f, -0.02685421147f,
                                0.00518908724f, -0.00080168643f, 7.8758749e-05f};
    constexpr double outer[] = {-0.0003201380605f, 1.1302334070f,    0.6318260431f,
                                0.1100800857f,     -0.0264211353f,   0.0047595962f,
                                -0.0005968056503f, 4.605804133e-05f, -1.637151399e-06f};
    N a = abs(x), z = x * x;
    N central = x * poly(z, inner);
    N tail = N(1) - exp(-poly(at_most(a, 4), outer));
    return select(a > N(1), copysign(tail, x), select(x != x, x, central));
}
// The rounding error of `square` as b b.
template <Vector N>
[[gnu::always_inline]] inline N square_error(N b, N square) {
    if (is_fused(b)) return fma(b, b, -square);
    // Split into halves of 12 bits, whose products are exact.
    N head = float_of(bits_of(b) & bits_like(b, 0xfffff000u)), rest = b - head;
    return ((head * head - square) + (head + head) * rest) + rest * rest;
}
// exp(-x^2) erfcx(x), with erfcx(x) (1 + 2x) a polynomial in (x - 2) / (x + 2); the rounding error of x^2 is put back.
template <Vector N>
[[gnu::always_inline]] inline N erfc(N x) {
    constexpr double c[] = {1.2769783735f,  -0.0927638113f, -0.1660304666f, 0.1640508324f,
                            -0.0542186461f, -0.0080294162f, 0.0087140324f,  0.0012499135f,
                            -0.0014332903f, -0.0004021877f, 0.0001806156f,  8.53021e-05f};
    N b = at_most(abs(x), 11);
    // One division for both quotients.
    N sum = b + N(2), twice = N(1) + (b + b), inverse = N(1) / (sum * twice);
    N t = (b - N(2)) * twice * inverse;
    N square = alone(b * b), error = square_error(b, square);
    ExpParts<N> p = exp_parts(-square);
    N r = alone(scale(N(1) + p.em1, p.n) * ((N(1) - error) * poly(t, c) * (sum * inverse)));
    return select(x < N(0), N(2) - r, r);
}

// exp(x^2) erfc(x) for x >= 0, by the same kind of polynomial, whose range has no end.
template <Vector N>
[[gnu::always_inline]] inline N erfcx_right(N x) {
    constexpr double c[] = {1.276978381,     -0.09276382252,  -0.1660303835,    0.1640511269,    -0.05422026662,
                            -0.008032344882, 0.00872460764,   0.001263291062,   -0.001464070911, -0.0004343878976,
                            0.0002215715506, 0.0001245434182, -2.025598963e-05, -1.882275685e-05};
    return poly(N(1) - N(4) / (x + N(2)), c) / (N(1) + (x + x));
}
// For any x: to the left of 0 it is 2 exp(x^2) minus the value at -x.
template <Vector N>
[[gnu::always_inline]] inline N erfcx(N x) {
    // exp(10^2) is infinite.
    N a = abs(x), b = at_most(a, 10), square = alone(b * b);
    N power = exp(square) * (N(1) + square_error(b, square)), r = erfcx_right(a);
    return select(x < N(0), N(2) * power - r, r);
}
// exp(-x^2 / 2), where the rounding error of the square would be multiplied.
template <Vector N>
[[gnu::always_inline]] inline N gauss(N x) {
    N b = at_most(abs(x), 20), square = alone(b * b);
    return exp(N(-0.5) * square) * (N(1) - N(0.5) * square_error(b, square));
}

// The distribution function of the normal distribution. erfc keeps its relative accuracy on the left, where
// 1 + erf(x / sqrt(2)) would cancel to nothing.
template <Vector N>
[[gnu::always_inline]] inline N normal_cdf(N x) {
    if (!has_tables(x)) return N(0.5) * erfc(x * N(-0.70710678118654752440));
    // To the right of the table it is 1 to the last digit.
    constexpr double end = 31.4 * kUpperTailWidth;
    N upper = poly_from_table(at_most(abs(x), end), kUpperTailWidth, kUpperTail);
    return where_rare(!(x > N(-end)), select(x < N(0), upper, N(1) - upper),
                      [&] { return N(0.5) * erfc(x * N(-0.70710678118654752440)); });
}

}  // namespace lunaria::vector_math
