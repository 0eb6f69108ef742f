// CPU kernels: special functions, number by number in f64. Series and fractions end where their terms no longer count,
// and none is longer than the bounds below, whatever the operands.
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "backends/cpu/kernel_table.h"
#include "core/interrupt.h"
#include "core/op.h"
#include "core/threads.h"
#include "core/visit.h"

namespace lunaria::cpu {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPi = 3.14159265358979323846;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// A number and its derivative by one operand.
struct Dual {
    double value, slope = 0;
};
Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
Dual operator*(Dual a, Dual b) { return {a.value * b.value, a.slope * b.value + a.value * b.slope}; }
Dual operator/(Dual a, Dual b) { return {a.value / b.value, (a.slope - a.value / b.value * b.slope) / b.value}; }

// base^-s.
Dual inverse_power(double base, Dual s) {
    const double p = std::pow(base, -s.value);
    return {p, -std::log(base) * p * s.slope};
}

// Euler's and Maclaurin's sum: some terms one by one, the rest as an integral with corrections by Bernoulli numbers.
// For s > 1 and q > 0.
Dual zeta_right(Dual s, double q) {
    constexpr int kTerms = 12;
    constexpr std::array<double, 9> kBernoulli{1.0 / 6,       -1.0 / 30, 1.0 / 42,      -1.0 / 30,    5.0 / 66,
                                               -691.0 / 2730, 7.0 / 6,   -3617.0 / 510, 43867.0 / 798};
    Dual sum{0};
    for (int k = 0; k < kTerms; ++k) sum = sum + inverse_power(q + k, s);
    const double end = q + kTerms;
    Dual power = inverse_power(end, s);
    sum = sum + power * Dual{end} / (s + Dual{-1}) + power * Dual{0.5};
    // s (s + 1) … (s + 2j) / (2j + 2)! B_(2j+2) / end^(s + 2j + 1)
    Dual factor = s * power * Dual{1 / end} * Dual{0.5};
    for (size_t j = 0; j < kBernoulli.size(); ++j) {
        sum = sum + factor * Dual{kBernoulli[j]};
        const auto at = static_cast<double>(2 * j + 1);
        factor = factor * (s + Dual{at}) * (s + Dual{at + 1}) * Dual{1 / ((at + 2) * (at + 3) * end * end)};
    }
    return sum;
}

Dual zeta(Dual s, double q) {
    if (std::isnan(s.value) || std::isnan(q)) return {kNan, kNan};
    if (s.value == 1) return {kInfinity, kNan};
    if (s.value < 1) return {kNan, kNan};
    if (std::isinf(s.value)) return {q > 1 ? 0.0 : q == 1 ? 1.0 : q > 0 ? kInfinity : kNan, 0};
    if (q <= 0 && q == std::floor(q)) return {kInfinity, kNan};
    if (q > 0) return q == kInfinity ? Dual{0} : zeta_right(s, q);
    // Of negative bases only whole powers exist. Their terms come one by one, up to some distance from 0.
    if (s.value != std::floor(s.value) || s.slope != 0 || q < -1e6) return {kNan, kNan};
    double left = 0;
    for (; q < 0; ++q) left += std::pow(q, -s.value);
    return Dual{left} + zeta_right(s, q);
}

double digamma(double x) {
    double sum = 0;
    for (; x < 12; ++x) sum -= 1 / x;
    const double z = 1 / (x * x);
    return sum + std::log(x) - 0.5 / x - z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z / 132))));
}

// x^a e^-x / gamma(a + 1), also where its factors leave the range of numbers.
double gamma_weight(double a, double x) {
    if (a < 30) return std::exp(a * std::log(x) - x - std::lgamma(a + 1));
    // By Stirling's series, as the logarithms of large gamma functions would lose digits: a (log(1 + d) - d).
    const double d = (x - a) / a;
    double exponent;
    if (std::abs(d) < 0.1) {
        double term = d, sum = 0;
        for (int k = 2; k < 30; ++k) {
            term *= -d;
            sum += term / k;
        }
        exponent = a * sum;
    } else {
        exponent = a * (std::log1p(d) - d);
    }
    const double z = 1 / (a * a);
    const double stirling = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z / 1680))) / a;
    return std::exp(exponent - stirling) / std::sqrt(2 * kPi * a);
}

constexpr double kLargeShape = 1e5;
constexpr int kLongestSeries = 20000;

// Temme's uniform expansion for large a: P(a, x), and Q where `upper`.
double temme(double a, double x, bool upper) {
    const double d = (x - a) / a;
    const double half = std::abs(d) < 1e-3 ? d * d * (0.5 - d * (1.0 / 3 - d * (0.25 - d / 5))) : d - std::log1p(d);
    const double eta = std::copysign(std::sqrt(2 * half), d);
    // 1 / d - 1 / eta, by its series near 0.
    const double c0 =
        std::abs(eta) < 1e-2 ? -1.0 / 3 + eta * (1.0 / 12 + eta * (-2.0 / 135 + eta / 864)) : 1 / d - 1 / eta;
    const double rest = std::exp(-a * half) / std::sqrt(2 * kPi * a) * (c0 - 1 / (540 * a));
    const double tail = 0.5 * std::erfc((upper ? eta : -eta) * std::sqrt(a / 2));
    return upper ? tail + rest : tail - rest;
}

double igamma_by_series(double a, double x) {
    double term = 1, sum = 1;
    for (int n = 1; n < kLongestSeries && term > sum * kEpsilon; ++n) {
        term *= x / (a + n);
        sum += term;
    }
    return sum * gamma_weight(a, x);
}

// Lentz' evaluation of Legendre's continued fraction for Q(a, x).
double igammac_by_fraction(double a, double x) {
    constexpr double kTiny = 1e-300;
    double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
    for (int n = 1; n < kLongestSeries; ++n) {
        const double an = -n * (n - a);
        b += 2;
        d = an * d + b;
        if (std::abs(d) < kTiny) d = kTiny;
        c = b + an / c;
        if (std::abs(c) < kTiny) c = kTiny;
        d = 1 / d;
        const double step = d * c;
        h *= step;
        if (std::abs(step - 1) < kEpsilon) break;
    }
    return h * gamma_weight(a, x) * a;
}

// P(a, x), or Q(a, x) where `upper`.
double incomplete_gamma(double a, double x, bool upper) {
    if (std::isnan(a) || std::isnan(x) || a < 0 || x < 0 || (a == 0 && x == 0)) return kNan;
    if (a == 0 || (x == kInfinity && a < kInfinity)) return upper ? 0 : 1;
    if (x == 0 || (a == kInfinity && x < kInfinity)) return upper ? 1 : 0;
    if (a == kInfinity) return kNan;
    if (a > kLargeShape) return temme(a, x, upper);
    if (x <= 1 || x < a) {
        const double p = igamma_by_series(a, x);
        return upper ? 1 - p : p;
    }
    const double q = igammac_by_fraction(a, x);
    return upper ? q : 1 - q;
}

// The derivative of P(a, x) by a: that of the series, term by term.
double igamma_slope(double a, double x) {
    if (std::isnan(a) || std::isnan(x) || a <= 0 || x < 0 || std::isinf(a)) return kNan;
    if (x == 0 || x == kInfinity) return 0;
    if (a > kLargeShape) {
        const double h = std::sqrt(a) * 1e-4;
        return (temme(a + h, x, false) - temme(a - h, x, false)) / (2 * h);
    }
    // Far behind the bulk there is nothing left that depends on a.
    if (x > a + 60 + 12 * std::sqrt(a)) return 0;
    const double common = std::log(x) - digamma(a + 1);
    double term = 1, harmonic = 0, sum = common;
    for (int n = 1; n < kLongestSeries; ++n) {
        term *= x / (a + n);
        harmonic += 1 / (a + n);
        const double part = term * (common - harmonic);
        sum += part;
        if (n > x - a && std::abs(part) <= std::abs(sum) * kEpsilon) break;
    }
    return sum * gamma_weight(a, x);
}

// Hankel's expansion of I (sign -1) and K (sign 1) of a large x, but for its exponential and root.
double hankel(int order, double x, double sign) {
    double term = 1, sum = 1;
    for (int k = 1; k < 40; ++k) {
        const double odd = 2 * k - 1;
        const double next = term * sign * (4.0 * order * order - odd * odd) / (8 * k * x);
        if (std::abs(next) >= std::abs(term) || next == 0) break;
        term = next;
        sum += term;
    }
    return sum;
}

constexpr double kFar = 35;  // from here on Hankel's expansion is exact in f64

template <int order, bool scaled>
double bessel_i(double x) {
    const double size = std::abs(x);
    if (std::isnan(x)) return x;
    double value;
    if (size > kFar) {
        value = std::isinf(x) ? (scaled ? 0 : kInfinity) : hankel(order, size, -1) / std::sqrt(2 * kPi * size);
        // In two halves, so that e^x may overflow only where the result does.
        if (!scaled && !std::isinf(x)) value = value * std::exp(size / 2) * std::exp(size / 2);
    } else {
        value = std::cyl_bessel_i(order, size) * (scaled ? std::exp(-size) : 1);
    }
    return order == 1 && x < 0 ? -value : value;
}

template <int order, bool scaled>
double bessel_k(double x) {
    if (std::isnan(x) || x < 0) return kNan;
    if (x == 0) return kInfinity;
    if (std::isinf(x)) return 0;
    if (x > kFar) return hankel(order, x, 1) * std::sqrt(kPi / (2 * x)) * (scaled ? 1 : std::exp(-x));
    return std::cyl_bessel_k(order, x) * (scaled ? std::exp(x) : 1);
}

// Elements are taken as f64; 64 of them cost as much as starting a thread is worth.
constexpr int64_t kGrain = 256;

double element(const Tensor& t, int64_t i) {
    return t.dtype() == DType::f32 ? static_cast<double>(t.data<float>()[i]) : t.data<double>()[i];
}

void store(const Tensor& t, int64_t i, double x) {
    if (t.dtype() == DType::f32)
        t.data<float>()[i] = static_cast<float>(x);
    else
        t.data<double>()[i] = x;
}

template <class F>
void for_each(const Tensor& out, F f) {
    parallel_for(out.size(), kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            if (i % kGrain == 0) poll_interrupt();
            store(out, i, f(i));
        }
    });
}

// The kernel of a function, a lambda without captures.
template <class F>
Kernel of_one(F) {
    static_assert(std::is_empty_v<F>);
    return [](const KernelCall& c) {
        if (is_complex(c.dtype)) return false;
        const Tensor& x = c.tensor(0);
        for_each(c.out[0], [&](int64_t i) { return F{}(element(x, i)); });
        return true;
    };
}

// Where the elements of a dense operand are that meet those of the broadcast result.
class Met {
  public:
    Met(const Tensor& t, const Shape& out) : whole_(t.shape() == out) {
        const int extra = out.rank() - t.rank();
        int64_t step = 1;
        strides_.resize(out.rank(), 0);
        for (int axis = t.rank(); axis-- > 0;) {
            strides_[axis + extra] = t.dim(axis) == 1 ? 0 : step;
            step *= t.dim(axis);
        }
        sizes_ = out;
    }
    int64_t operator()(int64_t i) const {
        if (whole_) return i;
        int64_t at = 0;
        for (int axis = sizes_.rank(); axis-- > 0; i /= sizes_[axis]) at += i % sizes_[axis] * strides_[axis];
        return at;
    }

  private:
    bool whole_;
    Shape sizes_;
    Strides strides_;
};

template <class F>
Kernel of_two(F) {
    static_assert(std::is_empty_v<F>);
    return [](const KernelCall& c) {
        if (is_complex(c.dtype)) return false;
        const Tensor &a = c.tensor(0), &b = c.tensor(1);
        const Met first(a, c.out[0].shape()), second(b, c.out[0].shape());
        for_each(c.out[0], [&](int64_t i) { return F{}(element(a, first(i)), element(b, second(i))); });
        return true;
    };
}

}  // namespace

void add_special_kernels(KernelTable& table) {
    // The C library's own.
    table.plain("bessel_j0", of_one([](double x) { return ::j0(x); }));
    table.plain("bessel_j1", of_one([](double x) { return ::j1(x); }));
    table.plain("bessel_y0", of_one([](double x) { return x < 0 ? kNan : ::y0(x); }));
    table.plain("bessel_y1", of_one([](double x) { return x < 0 ? kNan : ::y1(x); }));
    table.plain("bessel_i0", of_one([](double x) { return bessel_i<0, false>(x); }));
    table.plain("bessel_i1", of_one([](double x) { return bessel_i<1, false>(x); }));
    table.plain("bessel_i0e", of_one([](double x) { return bessel_i<0, true>(x); }));
    table.plain("bessel_i1e", of_one([](double x) { return bessel_i<1, true>(x); }));
    table.plain("bessel_k0", of_one([](double x) { return bessel_k<0, false>(x); }));
    table.plain("bessel_k1", of_one([](double x) { return bessel_k<1, false>(x); }));
    table.plain("bessel_k0e", of_one([](double x) { return bessel_k<0, true>(x); }));
    table.plain("bessel_k1e", of_one([](double x) { return bessel_k<1, true>(x); }));
    table.plain("igamma", of_two([](double a, double x) { return incomplete_gamma(a, x, false); }));
    table.plain("igammac", of_two([](double a, double x) { return incomplete_gamma(a, x, true); }));
    table.plain("igamma_slope", of_two([](double a, double x) { return igamma_slope(a, x); }));
    table.plain("zeta", of_two([](double s, double q) { return zeta({s}, q).value; }));
    table.plain("zeta_slope", of_two([](double s, double q) { return zeta({s, 1}, q).slope; }));
}

}  // namespace lunaria::cpu
