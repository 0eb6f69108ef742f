// Inverse trigonometry, error functions, powers, remainders and gamma functions on vectors of floats: see functions.h.
#pragma once

#include "core/ops/functions.h"

namespace lunaria::formula {

inline constexpr double kHalfPi = 1.57079632679489661923;

// atan(t) for 0 <= t <= 1, of floats.
template <Vector P>
[[gnu::always_inline]] inline P atan_unit(P t) {
    // (atan(t) - t) / t^3 in t^2
    static constexpr float c[] = {-0.33333334327f, 0.19999949634f, -0.14284004271f, 0.11088261753f,  -0.08931826800f,
                                  0.07031914591f,  -0.0489605143f, 0.02630500122f,  -0.00914462935f, 0.00148869189f};
    P z = t * t;
    return fma(t * z, poly(z, c), t);
}
template <Vector P>
[[gnu::always_inline]] inline P atan(P x) {
    if constexpr (!kSingle<P>) {
        return each<::atanf, ::atan>(x);
    } else {
        P a = abs(x);
        auto inverse = a > P(1);
        P p = atan_unit(select(inverse, P(1) / a, a));
        return copysign(select(inverse, P(kHalfPi) - p, p), x);
    }
}
template <Vector P>
[[gnu::always_inline]] inline P atan2(P y, P x) {
    if constexpr (!kSingle<P>) {
        return each<::atan2f, ::atan2>(y, x);
    } else {
        P ax = abs(x), ay = abs(y);
        auto steep = ay > ax;
        P top = select(steep, ax, ay), bottom = select(steep, ay, ax);
        // 0/0 counts as 0 and inf/inf as 1.
        P t = select(top == bottom, select(top == P(0), P(0), P(1)), top / bottom);
        P p = atan_unit(t);
        p = select(steep, P(kHalfPi) - p, p);
        p = select(copysign(P(1), x) < P(0), P(2 * kHalfPi) - p, p);
        return select((x != x) | (y != y), x + y, copysign(p, y));
    }
}
// For a = |x|: asin(a) if a <= 1/2, else asin(sqrt((1 - a) / 2)), which is (pi / 2 - asin(a)) / 2.
template <Vector P>
[[gnu::always_inline]] inline P asin_part(P a) {
    // (asin(t) - t) / t^3 in t^2
    static constexpr float c[] = {0.1666666567f, 0.0750009418f, 0.0445994027f,
                                  0.0311006624f, 0.0171492379f, 0.0336908475f};
    auto outer = a > P(0.5);
    P z = select(outer, (P(1) - a) * P(0.5), a * a);
    P t = select(outer, sqrt(z), a);
    return fma(t * z, poly(z, c), t);
}
template <Vector P>
[[gnu::always_inline]] inline P asin(P x) {
    if constexpr (!kSingle<P>) {
        return each<::asinf, ::asin>(x);
    } else {
        P a = abs(x), p = asin_part(a);
        return copysign(select(a > P(0.5), P(kHalfPi) - (p + p), p), x);
    }
}
template <Vector P>
[[gnu::always_inline]] inline P acos(P x) {
    if constexpr (!kSingle<P>) {
        return each<::acosf, ::acos>(x);
    } else {
        P a = abs(x), p = asin_part(a), twice = p + p;
        // pi / 2 in two parts: the result near 0 has more digits than pi / 2 itself.
        P central = P(kHalfPi) - (copysign(p, x) + P(4.37113883e-8));
        return select(a > P(0.5), select(x < P(0), P(2 * kHalfPi) - twice, twice), central);
    }
}

template <Vector P>
[[gnu::always_inline]] inline P erf(P x) {
    if constexpr (!kSingle<P>) {
        return each<::erff, ::erf>(x);
    } else {
        // erf(x) / x in x^2 for |x| <= 1, and -log(erfc(x)) for 1 <= x <= 4
        static constexpr float inner[] = {1.12837910652f, -0.37612625957f, 0.11283594370f, -0.02685421147f,
                                          0.00518908724f, -0.00080168643f, 7.8758749e-05f};
        static constexpr float outer[] = {-0.0003201380605f, 1.1302334070f,    0.6318260431f,
                                          0.1100800857f,     -0.0264211353f,   0.0047595962f,
                                          -0.0005968056503f, 4.605804133e-05f, -1.637151399e-06f};
        P a = abs(x);
        P central = x * poly(x * x, inner);
        P tail = P(1) - exp(-poly(at_most(a, 4), outer));
        return select(a > P(1), copysign(tail, x), select(x != x, x, central));
    }
}
// exp(-x^2) erfcx(x), with erfcx(x) (1 + 2x) a polynomial in (x - 2) / (x + 2); the rounding error of x^2 is put back.
template <Vector P>
[[gnu::always_inline]] inline P erfc(P x) {
    if constexpr (!kSingle<P>) {
        return each<::erfcf, ::erfc>(x);
    } else {
        static constexpr float c[] = {1.2769783735f,  -0.0927638113f, -0.1660304666f, 0.1640508324f,
                                      -0.0542186461f, -0.0080294162f, 0.0087140324f,  0.0012499135f,
                                      -0.0014332903f, -0.0004021877f, 0.0001806156f,  8.53021e-05f};
        P b = at_most(abs(x), 11);
        // One division for both quotients.
        P sum = b + P(2), twice = P(1) + (b + b), inverse = quotient(P(1), sum * twice);
        P t = (b - P(2)) * twice * inverse;
        P square = b * b, error;
        if (fuses(b)) {
            error = fma(b, b, -square);
        } else {
            // Split into halves of 12 bits, whose products are exact.
            P head = float_of(shift_left(shift_right(bits_of(b), 12), 12)), rest = b - head;
            error = ((head * head - square) + (head + head) * rest) + rest * rest;
        }
        ExpParts<P> e = exp_parts(-square);
        P r = scale(P(1) + e.em1, e.n) * ((P(1) - error) * poly(t, c) * (sum * inverse));
        return select(x < P(0), P(2) - r, r);
    }
}

// The distribution function of the normal distribution. erfc keeps its relative accuracy on the left, where
// 1 + erf(x / sqrt(2)) would cancel to nothing.
template <Vector P>
[[gnu::always_inline]] inline P normal_cdf(P x) {
    auto by_erfc = [x]() __attribute__((always_inline)) { return P(0.5) * erfc(x * P(-0.70710678118654752440)); };
    if constexpr (kSingle<P> && requires { getexp(x); })
        if (has_avx512(x)) {
            // To the right of the table it is 1 to the last digit.
            P upper = upper_tail_from_table(abs(x));
            return replace_where(select(x < P(0), upper, P(1) - upper), !(x > P(-kUpperTailEnd)), by_erfc);
        }
    return by_erfc();
}

// What exponents that people write come to: -2, -1, -0.5, 0.5, 1, 2, 3 and 4.
template <Vector P>
[[gnu::always_inline]] inline auto has_short_power(P y) {
    P a = abs(y);
    return (a == P(1)) | (a == P(2)) | (a == P(0.5)) | (y == P(3)) | (y == P(4));
}
// The root of -0 and of -infinity, as powers go, is a positive one.
template <Vector P>
[[gnu::always_inline]] inline P root_power(P x) {
    return select(x == P(-__builtin_inf()), P(__builtin_inf()), sqrt(x) + P(0));
}
// x^y for these exponents, one for all lanes or many.
template <Vector P>
[[gnu::always_inline]] inline P short_power(P x, P y) {
    P base = replace_where(x, abs(y) == P(0.5), [&] { return root_power(x); });
    // The square of the inverse: the inverse of the square would overflow sooner.
    base = replace_where(base, y < P(0), [&] { return P(1) / base; });
    P square = base * base;
    P r = select(abs(y) == P(2), square, base);
    r = select(y == P(3), square * base, r);
    return select(y == P(4), square * square, r);
}

// The same where all lanes have one exponent and can be looked at: true, and the powers in `r`.
template <Vector P>
[[gnu::always_inline]] inline bool one_short_power(P x, P y, P& r) {
    const auto exponent = first_lane(y);
    if (any(y != P(static_cast<double>(exponent)))) return false;
    if (exponent == 2)
        r = x * x;
    else if (exponent == 3)
        r = x * x * x;
    else if (exponent == 4)
        r = (x * x) * (x * x);
    else if (exponent == 1)
        r = x;
    else if (exponent == 0)
        r = P(1);
    else if (exponent == 0.5)
        r = root_power(x);
    else if (exponent == -1)
        r = P(1) / x;
    else
        return false;
    return true;
}

template <Vector P>
[[gnu::always_inline]] inline P pow(P x, P y) {
    constexpr double inf = __builtin_inf();
    if constexpr (requires { first_lane(y); })
        if (P r; one_short_power(x, y, r)) return r;
    auto is_long = !has_short_power(y);
    return replace_where(short_power(x, y), is_long, [&] {
        if constexpr (!kSingle<P>) {
            return each<::powf, ::pow>(x, y);
        } else {
            // exp(y log |x|) in double precision: the product needs more digits than f32 has.
            P r = in_doubles([](auto base, auto power) { return exp(power * log(base)); }, abs(x), y);
            P half = y * P(0.5);
            auto whole = rint(y) == y;
            auto odd = whole & (rint(half) != half);
            auto negative = copysign(P(1), x) < P(0);
            r = select(negative & odd, -r, r);
            r = select((x < P(0)) & !whole & (x > P(-inf)), P(__builtin_nan("")), r);
            auto one = (y == P(0)) | (x == P(1)) | ((x == P(-1)) & (abs(y) == P(inf)));
            return select(one, P(1), r);
        }
    });
}

// Exact while the quotient fits the mantissa: then a - q b has no rounding error, and q is off by one at most.
template <Vector P>
[[gnu::always_inline]] inline P fmod(P a, P b) {
    auto by_libm = [&] { return each<::fmodf, ::fmod>(a, b); };
    if (!fuses(a)) return by_libm();
    auto easy = (abs(a) < abs(b) * P(kSingle<P> ? 0x1p22 : 0x1p51)) & (abs(b) < P(kSingle<P> ? 0x1p100 : 0x1p1000)) &
                (abs(b) > P(kSingle<P> ? 0x1p-80 : 0x1p-900));
    P q = trunc(a / b);
    P r = fnma(q, b, a), step = copysign(b, a);
    r = select((r < P(0)) != (a < P(0)), select(r == P(0), r, r + step), r);
    r = select(abs(r) >= abs(b), r - step, r);
    return replace_where(copysign(r, a), !easy, by_libm);
}

// The larger is taken out, so that squares neither overflow nor vanish.
template <Vector P>
[[gnu::always_inline]] inline P hypot(P a, P b) {
    if constexpr (!kSingle<P>) {
        return each<::hypotf, ::hypot>(a, b);
    } else {
        constexpr double inf = __builtin_inf();
        P x = abs(a), y = abs(b);
        P top = select(x > y, x, y), low = select(x > y, y, x);
        P ratio = low / top;
        P r = top * sqrt(fma(ratio, ratio, P(1)));
        r = select(top == P(0), top, r);
        r = select((x != x) | (y != y), x + y, r);
        return select((x == P(inf)) | (y == P(inf)), P(inf), r);
    }
}

// log gamma(x) in double precision for x >= 1/2: Stirling's series from 8 on, and below that gamma(x + 8) = x (x + 1)
// ... (x + 7) gamma(x). Near 1 and 2, where it goes through 0, the digits of f32 are left of those of f64.
template <Vector P>
[[gnu::always_inline]] inline P lgamma_right(P x) {
    auto small = x < P(8);
    P y = select(small, x + P(8), x);
    P r = P(1) / y, s = r * r;
    // B(2k) / (2k (2k - 1))
    static constexpr double c[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                   1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};
    P value = fma(y - P(0.5), log(y), P(0.91893853320467274178) - y) + r * poly(s, c);
    return replace_where(value, small, [&] {
        // With z = x (x + 7) the product of the outer factors, the next one (x + 1) (x + 6) is z + 6, and so on.
        P z = x * (x + P(7));
        return value - log(z * (z + P(6)) * ((z + P(10)) * (z + P(12))));
    });
}
// To the left of 1/2 by reflection: gamma(x) gamma(1 - x) = pi / sin(pi x).
template <Vector P>
[[gnu::always_inline]] inline P lgamma_of(P x) {
    constexpr double pi = 3.14159265358979323846;
    auto left = x < P(0.5);
    P r = lgamma_right(select(left, P(1) - x, x));
    return replace_where(r, left, [&] { return log(P(pi) / abs(sin((x - rint(x)) * P(pi)))) - r; });
}
template <Vector P>
[[gnu::always_inline]] inline P lgamma(P x) {
    if constexpr (!kSingle<P>) {
        return each<::lgammaf, libm::lgamma>(x);
    } else {
        P r = in_doubles([](auto wide) { return lgamma_of(wide); }, x);
        r = select((x == P(1)) | (x == P(2)), P(0), r);
        return select(abs(x) == P(__builtin_inf()), P(__builtin_inf()), r);
    }
}

// The bits of numbers of one sign count up with their magnitudes; those of NaN and of equal numbers are not looked at.
template <Vector P>
[[gnu::always_inline]] inline P nextafter(P from, P to) {
    using Bits = decltype(bits_of(from));
    const Bits one(1);
    P next = select((from < to) != (from < P(0)), float_of(bits_of(from) + one), float_of(bits_of(from) - one));
    P moved = select(from == P(0), copysign(float_of(one), to), next);
    return select(from != from, from, select((from == to) | (to != to), to, moved));
}

}  // namespace lunaria::formula
