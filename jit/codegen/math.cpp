#include "jit/codegen/math.h"

#include <limits>
#include <span>

namespace lunaria::codegen {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kHalfPi = 1.57079632679489661923;

// The number for f32 or for f64.
double pick(double single, double twice) { return is_double() ? twice : single; }
int mantissa_bits() { return is_double() ? 52 : 23; }

// Coefficients low order first.
Code poly(Code x, std::span<const double> c) {
    Code y(c.back());
    for (size_t i = c.size() - 1; i-- > 0;) y = y * x + Code(c[i]);
    return y;
}
Code poly(Code x, std::span<const double> single, std::span<const double> twice) {
    return poly(x, is_double() ? twice : single);
}

constexpr double kExpSingle[] = {0.5f, 0.16666576266f, 0.041666556149f, 0.0083631789311f, 0.0013926184037f};
constexpr double kExpDouble[] = {0.5,
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

// NaN stays NaN.
Code at_least(Code x, double limit) { return select(Code(limit) > x, Code(limit), x); }
Code at_most(Code x, double limit) { return select(Code(limit) < x, Code(limit), x); }

// Adding this number rounds a small one to an integer, which is then found in the lowest bits.
Code rounder() { return Code(pick(0x1.8p23, 0x1.8p52)); }
Code round_small(Code x) { return (x + rounder()) - rounder(); }
// 2^n for an integer n of the normal range.
Code power_of_two(Code n) { return float_of(shift_left(bits_of(n + rounder()), mantissa_bits()) + bits_of(Code(1))); }
// x * 2^n for x near 1: in two steps, since 2^n itself need not be a number.
Code scale(Code x, Code n) {
    if (Code direct = scaled(x, n); direct.v) return direct;
    Code half = round_small(n * Code(0.5));
    return x * power_of_two(half) * power_of_two(n - half);
}

// x = n ln 2 + r with |r| <= ln 2 / 2, and exp(r) - 1.
struct ExpParts {
    Code n, em1, shifted;
};
ExpParts exp_parts(Code x) {
    Code shifted = x * Code(1.4426950408889634074) + rounder();
    Code n = shifted - rounder();
    Code r = x - n * Code(pick(0.693359375f, 6.93145751953125e-1)) -
             n * Code(pick(-2.12194440e-4f, 1.42860682030941723212e-6));
    return {n, r + r * r * poly(r, kExpSingle, kExpDouble), shifted};
}
// exp(x) * 2^shift, where only the result may overflow or underflow.
Code exp_shifted(Code x, double shift) {
    ExpParts p = exp_parts(at_most(at_least(x, pick(-105, -746)), pick(90, 711)));
    return scale(Code(1) + p.em1, shift == 0 ? p.n : p.n + Code(shift));
}

// log(m 2^e) = e ln 2 + log(m) with sqrt(1/2) <= m < sqrt(2); f = m - 1.
struct LogParts {
    Code e, f;
};
LogParts log_parts(Code x) {
    Mask tiny = x < Code(pick(0x1p-126, 0x1p-1022));
    x = select(tiny, x * Code(pick(0x1p25, 0x1p54)), x);
    Code root_half = bits_of(Code(0.70710678118654752440));
    Code ix = bits_of(x) + (bits_of(Code(1)) - root_half);
    // The exponent becomes the low bits of 2^23 (2^52).
    double base = pick(0x1p23, 0x1p52);
    Code e = float_of(shift_right(ix, mantissa_bits()) | bits_of(Code(base))) - Code(base + pick(127, 1023));
    Code mantissa = bit_constant((uint64_t{1} << mantissa_bits()) - 1);
    Code m = float_of((ix & mantissa) + root_half);
    return {select(tiny, e - Code(pick(25, 54)), e), m - Code(1)};
}
// log(1 + f) - f.
Code log1p_rest(Code f) {
    constexpr double single[] = {0.3333333433f,  -0.2499998957f, 0.2000001073f,  -0.1666800082f, 0.1428652406f,
                                 -0.1245074347f, 0.1103778332f,  -0.1064619198f, 0.1053086445f,  -0.0620150007f};
    constexpr double twice[] = {0.666666666666667,   0.3999999999989819,  0.28571428626570206, 0.2222221103781659,
                                0.18182896183483085, 0.15331487235865734, 0.14619343453512615};
    if (!is_double()) {
        Code ff = f * f;
        return ff * (f * poly(f, single) - Code(0.5));
    }
    Code s = f / (Code(2) + f), z = s * s, h = Code(0.5) * f * f;
    return s * (h + z * poly(z, twice)) - h;
}
// The value where log is defined and finite; its special values otherwise.
Code log_range(Code x, Code value) {
    Mask regular = (x > Code(0)) & (x < Code(kInfinity));
    Code special = select(x == Code(0), Code(-kInfinity), select(x < Code(0), Code(kNan), x));
    return select(regular, value, special);
}
Code log_regular(Code x, Code tail) {
    LogParts p = log_parts(x);
    Code low = p.e * Code(pick(-2.12194440e-4f, 1.42860682030941723212e-6)) + tail;
    return p.e * Code(pick(0.693359375f, 6.93145751953125e-1)) + (p.f + (log1p_rest(p.f) + low));
}

// Sine and cosine of r = x - n pi / 2.
struct TrigParts {
    Code sin, cos, quadrant;
};
TrigParts trig_parts(Code x) {
    constexpr double sin_poly[] = {-0.16666667163f, 0.0083333319053f, -0.00019840084132f, 2.7249620870e-06f};
    constexpr double cos_poly[] = {0.0416666679084f, -0.00138888880610f, 2.48005981120e-05f, -2.73007032092e-07f};
    Code shifted = x * Code(0.636619772367581f) + rounder();
    Code n = shifted - rounder();
    // pi / 2 in three parts, the first two with few bits so that their products with small integers are exact.
    Code r = ((x - n * Code(1.5703125f)) - n * Code(4.83751296997070312e-4f)) - n * Code(7.54978995489188216e-8f);
    Code z = r * r;
    Code s = r * (Code(1) + z * poly(z, sin_poly));
    Code c = Code(1) - (Code(0.5) * z - z * z * poly(z, cos_poly));
    return {s, c, bits_of(shifted)};
}
Mask outside_trig_range(Code x) { return !(abs(x) <= Code(10000)); }
Code turn(const TrigParts& p, Code quadrant) {
    Code zero = bit_constant(0);
    Mask odd = (quadrant & bit_constant(1)) != zero, negative = (quadrant & bit_constant(2)) != zero;
    Code value = select(odd, p.cos, p.sin);
    return select(negative, -value, value);
}

// atan(t) for 0 <= t <= 1.
Code atan_unit(Code t) {
    constexpr double c[] = {-0.33333334327f, 0.19999949634f, -0.14284004271f, 0.11088261753f,  -0.08931826800f,
                            0.07031914591f,  -0.0489605143f, 0.02630500122f,  -0.00914462935f, 0.00148869189f};
    Code z = t * t;
    return t + t * z * poly(z, c);
}
// For a = |x|: asin(a) if a <= 1/2, else asin(sqrt((1 - a) / 2)), which is (pi / 2 - asin(a)) / 2.
struct AsinParts {
    Mask outer;
    Code p;
};
AsinParts asin_parts(Code a) {
    constexpr double c[] = {0.1666666567f, 0.0750009418f, 0.0445994027f, 0.0311006624f, 0.0171492379f, 0.0336908475f};
    Mask outer = a > Code(0.5);
    Code z = select(outer, (Code(1) - a) * Code(0.5), a * a);
    Code t = select(outer, sqrt(z), a);
    return {outer, t + t * z * poly(z, c)};
}

}  // namespace

Code exp(Code x) { return exp_shifted(x, 0); }

Code exp2(Code x) {
    const double limit = pick(152, 1080);
    x = at_most(at_least(x, -limit), limit);
    Code n = round_small(x), r = (x - n) * Code(0.69314718055994530942);
    return scale(Code(1) + (r + r * r * poly(r, kExpSingle, kExpDouble)), n);
}

// 2^n (e^r - 1) + (2^n - 1), halved on the way because 2^n itself may overflow.
Code expm1(Code x) {
    ExpParts p = exp_parts(at_most(at_least(x, pick(-30, -60)), pick(89.5, 710.5)));
    Code s = power_of_two(p.n - Code(1));
    Code half = s * p.em1 + (s - Code(0.5));
    return select(x == Code(0), x, half + half);
}

Code expm1_negative(Code x) {
    ExpParts p = exp_parts(at_least(x, pick(-30, -60)));
    Code s = float_of(shift_left(bits_of(p.shifted), mantissa_bits()) + bits_of(Code(1)));
    return s * p.em1 + (s - Code(1));
}

Code log(Code x) { return log_range(x, log_regular(x, Code(0))); }
Code log2(Code x) {
    LogParts p = log_parts(x);
    // log2(e) - 1 times the logarithm, so that the larger part of the product is exact.
    Code rest = log1p_rest(p.f), l = p.f + rest;
    return log_range(x, p.e + (l + (l * Code(0.44269504088896340736) + (rest - (l - p.f)))));
}
Code log10(Code x) {
    LogParts p = log_parts(x);
    Code l = (p.f + log1p_rest(p.f)) * Code(0.43429448190325182765);
    return log_range(x, p.e * Code(0.301025390625) + (l + p.e * Code(4.60503898119521373889e-6)));
}
// log(u) with u = 1 + x rounded, and the first-order effect of the rounding: what u lost, over u.
Code log1p(Code x) {
    Code u = Code(1) + x;
    Code lost = select(abs(x) < Code(0.5), x - (u - Code(1)), Code(1) - (u - x));
    Mask plain = (x == Code(0)) | (x == Code(kInfinity));
    return select(plain, x, log_range(u, log_regular(u, lost / u)));
}

Code tanh(Code x) {
    Code t = expm1_negative(Code(-2) * abs(x));
    return copysign(t / (Code(2) + t), x);
}
Code sinh(Code x) {
    Code a = abs(x), t = expm1(a);
    Code small = Code(0.5) * (t + t / (t + Code(1)));
    return copysign(select(a > Code(20), exp_shifted(a, -1), small), x);
}
Code cosh(Code x) {
    Code e = exp_shifted(abs(x), -1);
    return e + Code(0.25) / e;
}
Code asinh(Code x) {
    Code a = abs(x), aa = a * a;
    Mask large = a > Code(1e9);
    Code grown = a + aa / (Code(1) + sqrt(aa + Code(1)));
    // log(2a) = log1p(a - 1) + log 2
    Code l = log1p(select(large, a - Code(1), grown));
    return copysign(select(large, l + Code(0.69314718055994530942), l), x);
}
Code acosh(Code x) {
    Mask large = x > Code(1e9);
    Code t = x - Code(1);
    Code l = log1p(select(large, t, t + sqrt(t * (t + Code(2)))));
    return select(x < Code(1), Code(kNan), select(large, l + Code(0.69314718055994530942), l));
}
Code atanh(Code x) {
    Code a = abs(x);
    return copysign(Code(0.5) * log1p((a + a) / (Code(1) - a)), x);
}

Code sin(Code x) {
    TrigParts p = trig_parts(x);
    return unless_any(outside_trig_range(x), turn(p, p.quadrant), "sinf", x);
}
Code cos(Code x) {
    TrigParts p = trig_parts(x);
    return unless_any(outside_trig_range(x), turn(p, p.quadrant + bit_constant(1)), "cosf", x);
}
Code tan(Code x) {
    TrigParts p = trig_parts(x);
    Mask odd = (p.quadrant & bit_constant(1)) != bit_constant(0);
    return unless_any(outside_trig_range(x), select(odd, -p.cos, p.sin) / select(odd, p.sin, p.cos), "tanf", x);
}

Code atan(Code x) {
    Code a = abs(x);
    Mask inverse = a > Code(1);
    Code p = atan_unit(select(inverse, Code(1) / a, a));
    return copysign(select(inverse, Code(kHalfPi) - p, p), x);
}
Code atan2(Code y, Code x) {
    Code ax = abs(x), ay = abs(y);
    Mask steep = ay > ax;
    Code top = select(steep, ax, ay), bottom = select(steep, ay, ax);
    // 0/0 counts as 0 and inf/inf as 1.
    Code t = select(top == bottom, select(top == Code(0), Code(0), Code(1)), top / bottom);
    Code p = atan_unit(t);
    p = select(steep, Code(kHalfPi) - p, p);
    p = select(copysign(Code(1), x) < Code(0), Code(2 * kHalfPi) - p, p);
    return select((x != x) | (y != y), x + y, copysign(p, y));
}
Code asin(Code x) {
    AsinParts parts = asin_parts(abs(x));
    return copysign(select(parts.outer, Code(kHalfPi) - (parts.p + parts.p), parts.p), x);
}
Code acos(Code x) {
    AsinParts parts = asin_parts(abs(x));
    // pi / 2 in two parts: the result near 0 has more digits than pi / 2 itself.
    Code central = Code(kHalfPi) - (copysign(parts.p, x) + Code(4.37113883e-8));
    Code twice = parts.p + parts.p;
    return select(parts.outer, select(x < Code(0), Code(2 * kHalfPi) - twice, twice), central);
}

Code erf(Code x) {
    // erf(x) / x in x^2 for |x| <= 1, and -log(erfc(x)) for 1 <= x <= 4
    constexpr double inner[] = {1.12837910652f, -0.37612625957f, 0.11283594370f, -0.02685421147f,
                                0.00518908724f, -0.00080168643f, 7.8758749e-05f};
    constexpr double outer[] = {-0.0003201380605f, 1.1302334070f,    0.6318260431f,
                                0.1100800857f,     -0.0264211353f,   0.0047595962f,
                                -0.0005968056503f, 4.605804133e-05f, -1.637151399e-06f};
    Code a = abs(x), z = x * x;
    Code central = x * poly(z, inner);
    Code tail = Code(1) - exp(-poly(at_most(a, 4), outer));
    return select(a > Code(1), copysign(tail, x), select(x != x, x, central));
}
// exp(-x^2) erfcx(x), with erfcx(x) (1 + 2x) a polynomial in (x - 2) / (x + 2); the rounding error of x^2 is put back.
Code erfc(Code x) {
    constexpr double c[] = {1.2769783735f,  -0.0927638113f, -0.1660304666f, 0.1640508324f,
                            -0.0542186461f, -0.0080294162f, 0.0087140324f,  0.0012499135f,
                            -0.0014332903f, -0.0004021877f, 0.0001806156f,  8.53021e-05f};
    Code b = at_most(abs(x), 11);
    // One division for both quotients.
    Code sum = b + Code(2), twice = Code(1) + (b + b), inverse = Code(1) / (sum * twice);
    Code t = (b - Code(2)) * twice * inverse;
    // The upper 12 bits of b and the rest, whose products are exact.
    Code head = float_of(bits_of(b) & bit_constant(0xfffff000u)), rest = b - head;
    Code square = head * head, error = (head + b) * rest;
    ExpParts p = exp_parts(-square);
    // exp(-error): the error is below 2^-11 of the square and so below 1/16 at most, for which a few terms do.
    constexpr double terms[] = {1.0, -1.0, 0.5, -1.0 / 6, 1.0 / 24};
    Code r = scale(Code(1) + p.em1, p.n) * poly(error, terms) * (poly(t, c) * (sum * inverse));
    return select(x < Code(0), Code(2) - r, r);
}
Code normal_cdf(Code x) { return Code(0.5) * erfc(x * Code(-0.70710678118654752440)); }

}  // namespace lunaria::codegen
