// The side that is not close to 1 is computed as a scale (a power and an exponential) times a factor (a series or a
// fraction of terms that do not cancel); the other side is 1 minus that. Series and fractions end where their terms no
// longer count, and none is longer than the bound below, whatever the operands.
#include "backends/cpu/incomplete.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/ops/formulas_special.h"

namespace lunaria::cpu {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPi = 3.14159265358979323846;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr int kLongest = 50000;
// From here on Stirling's series is exact to the last digit.
constexpr double kStirling = 12;

// A number and its derivative by a parameter.
struct Dual {
    double value, slope = 0;
    Dual(double v, double s = 0) : value(v), slope(s) {}
};
Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.slope - b.slope}; }
Dual operator*(Dual a, Dual b) { return {a.value * b.value, a.slope * b.value + a.value * b.slope}; }
Dual operator/(Dual a, Dual b) { return {a.value / b.value, (a.slope - a.value / b.value * b.slope) / b.value}; }
Dual log(Dual a) { return {std::log(a.value), a.slope / a.value}; }
// Whether a factor is 1, also for parameters near which a fraction ends although its slope does not.
bool is_one(double x) { return std::abs(x - 1) <= kEpsilon; }
bool is_one(Dual x) { return is_one(x.value) && std::abs(x.slope) <= kEpsilon; }
double value_of(double x) { return x; }
double value_of(Dual x) { return x.value; }

double lgamma(double x) {
    int sign = 0;
    return ::lgamma_r(x, &sign);
}

// log(1 + d) - d. `ratio` is 1 + d with digits that d may have lost.
double log1p_rest(double d, double ratio) {
    if (d < -0.5) return std::log(ratio) - d;
    if (d > 0.1 || d < -0.1) return std::log1p(d) - d;
    double term = d, sum = 0;
    for (int k = 2; k < 20; ++k) {
        term *= -d;
        sum += term / k;
    }
    return sum;
}
// log gamma(x) minus (x - 1/2) log x - x + log(2 pi) / 2, for x from kStirling on.
double stirling(double x) {
    const double z = 1 / (x * x);
    return (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188 - z * 691.0 / 360360))))) /
           x;
}
// log gamma(1 + a) for 0 <= a <= 1.
double lgamma1p(double a) {
    if (a > 0.5) return lgamma(1 + a);
    // zeta(k) - 1 for k = 2, 3 …: log gamma(1 + a) + log(1 + a) = a (1 - gamma) + the sum of (-a)^k (zeta(k) - 1) / k.
    constexpr std::array<double, 24> rest{
        0.6449340668482264,    0.2020569031595943,     0.08232323371113819,   0.03692775514336993,
        0.01734306198444914,   0.008349277381922827,   0.00407735619794434,   0.0020083928260822143,
        0.0009945751278180853, 0.0004941886041194645,  0.0002460865533080483, 0.00012271334757848915,
        6.124813505870483e-05, 3.058823630702049e-05,  1.528225940865187e-05, 7.637197637899763e-06,
        3.81729326499984e-06,  1.908212716553939e-06,  9.539620338727962e-07, 4.769329867878064e-07,
        2.38450502727733e-07,  1.1921992596531106e-07, 5.960818905125948e-08, 2.980350351465228e-08};
    double sum = 0;
    for (size_t k = rest.size(); k-- > 0;) sum = sum * -a + rest[k] / static_cast<double>(k + 2);
    return a * (0.42278433509846713939 + a * sum) - std::log1p(a);
}

double log1m_exp(double x) { return x > -0.6931 ? std::log(-std::expm1(x)) : std::log1p(-std::exp(x)); }

// scale * factor, for the upper side or the lower one; the scale is a number or a logarithm, as wanted.
template <class N>
struct Side {
    N log_scale;
    double scale;
    N factor;
    bool upper;
};

template <class N>
double log_of(const Side<N>& side, bool upper) {
    const double own = value_of(side.log_scale) + std::log(value_of(side.factor));
    return side.upper == upper ? own : log1m_exp(std::min(own, 0.0));
}
double share_of(const Side<double>& side, bool upper) {
    const double own = side.scale * side.factor;
    return side.upper == upper ? own : 1 - own;
}
double slope_of(const Side<Dual>& side, bool upper) {
    const double own = (side.log_scale + log(side.factor)).slope;
    if (side.upper == upper || own == 0) return own;
    return -std::exp(log_of(side, side.upper) - log_of(side, upper)) * own;
}

// log(x^a e^-x / gamma(a + 1))
double log_weight(double a, double x) {
    if (a < kStirling) return a * std::log(x) - x - (a <= 1 ? lgamma1p(a) : lgamma(a + 1));
    return a * log1p_rest((x - a) / a, x / a) - stirling(a) - 0.5 * std::log(2 * kPi * a);
}
Dual log_weight(Dual a, double x) {
    return {log_weight(a.value, x), a.slope * (std::log(x) - formula::digamma(a.value + 1))};
}
// The same without the logarithm: the exponential of a large one loses digits.
double weight(double a, double x) {
    if (a < 100 && x < 600 && x > 1e-3) return std::pow(x, a) * std::exp(-x) / std::tgamma(a + 1);
    return std::exp(log_weight(a, x));
}

template <class N>
N lower_series(N a, double x) {
    N term = 1, sum = 1;
    for (int n = 1; n < kLongest; ++n) {
        const N ratio = N(x) / (a + N(n));
        term = term * ratio;
        sum = sum + term;
        // The remaining terms are less than a geometric series.
        if (value_of(term) <= value_of(sum) * kEpsilon * (1 - value_of(ratio))) break;
    }
    return sum;
}
// Lentz' evaluation of Legendre's continued fraction for Q(a, x), without the weight.
template <class N>
N upper_fraction(N a, double x) {
    constexpr double tiny = 1e-300;
    N b = N(x + 1) - a, c = N(1 / tiny), d = N(1) / b, h = d;
    for (int n = 1; n < kLongest; ++n) {
        const N an = (a - N(n)) * N(n);
        b = b + N(2);
        d = an * d + b;
        if (std::abs(value_of(d)) < tiny) d = N(tiny);
        c = b + an / c;
        if (std::abs(value_of(c)) < tiny) c = N(tiny);
        d = N(1) / d;
        const N step = d * c;
        h = h * step;
        if (is_one(step)) break;
    }
    return h * a;
}

// Temme's uniform expansion for a large a and an x that is not far from it.
constexpr double kLargeShape = 1e5;
bool is_uniform(double a, double x) { return a > kLargeShape && std::abs(x - a) < 0.1 * a; }
Side<double> temme(double a, double x, bool upper) {
    const double d = (x - a) / a, half = -log1p_rest(d, x / a), eta = std::copysign(std::sqrt(2 * half), d);
    // 1 / d - 1 / eta and 1 / eta^3 - 1 / d^3 - 1 / d^2 - 1 / (12 d), by their series near 0.
    const double c0 = std::abs(eta) < 1e-2
                          ? -1.0 / 3 + eta * (1.0 / 12 + eta * (-2.0 / 135 + eta * (1.0 / 864 + eta / 2835)))
                          : 1 / d - 1 / eta;
    const double c1 = -1.0 / 540 - eta * (1.0 / 288 - eta * (25.0 / 12096 - eta * (223.0 / 1555200)));
    const double rest = (c0 + c1 / a) / std::sqrt(2 * kPi * a), y = eta * std::sqrt(a / 2);
    const double factor = 0.5 * formula::erfcx(upper ? y : -y) + (upper ? rest : -rest);
    return {-a * half, std::exp(-a * half), factor, upper};
}

enum class Scale : uint8_t { single, number, logarithm };  // single: to the digits of f32
template <class N>
Side<N> gamma_side(N a, double x, Scale as) {
    const double shape = value_of(a);
    const bool upper = x >= shape && x > 1;
    const N factor = upper ? upper_fraction(a, x) : lower_series(a, x);
    if (as == Scale::number) return {N(0), weight(shape, x), factor, upper};
    const N logarithm = log_weight(a, x);
    return {logarithm, as == Scale::single ? std::exp(value_of(logarithm)) : 0, factor, upper};
}

// Q(a, x) where neither a nor x is above 1: there P may be close to 1.
bool is_small(double a, double x) { return a <= 1 && x <= 1; }
double small_upper(double a, double x) {
    const double exponent = a * std::log(x) - lgamma1p(a);
    double power = 1, sum = 0;
    for (int n = 1; n < 30; ++n) {
        power *= -x / n;
        sum += power / (a + n);
    }
    return -std::expm1(exponent) - std::exp(exponent) * a * sum;
}

// The ends of both functions and arguments outside of their range; false: an ordinary point.
bool gamma_end(double a, double x, bool upper, double& share) {
    if (std::isnan(a) || std::isnan(x) || a < 0 || x < 0 || (a == 0 && x == 0) || (std::isinf(a) && std::isinf(x)))
        share = kNan;
    else if (a == 0 || x == kInfinity)
        share = upper ? 0 : 1;
    else if (x == 0 || a == kInfinity)
        share = upper ? 1 : 0;
    else
        return false;
    return true;
}

// log(x^a y^b / (a B(a, b))) with y = 1 - x.
double log_weight(double a, double b, double x, double y) {
    if (a < kStirling || b < kStirling)
        return a * std::log(x) + b * (x < 0.5 ? std::log1p(-x) : std::log(y)) - std::log(a) - log_beta(a, b);
    const double off = x * b - a * y;
    const double sum = a + b;
    return a * log1p_rest(off / a, x * (sum / a)) + b * log1p_rest(-off / b, y * (sum / b)) - stirling(a) -
           stirling(b) + stirling(sum) + 0.5 * std::log(b / (2 * kPi * a * sum));
}
Dual log_weight(Dual a, Dual b, double x, double y) {
    const double sum = formula::digamma(a.value + b.value);
    const double by_a = std::log(x) - formula::digamma(a.value) + sum - 1 / a.value;
    const double by_b = (x < 0.5 ? std::log1p(-x) : std::log(y)) - formula::digamma(b.value) + sum;
    return {log_weight(a.value, b.value, x, y), by_a * a.slope + by_b * b.slope};
}
// Lentz' evaluation of the continued fraction of I_x(a, b), without the weight.
template <class N>
N beta_fraction(N a, N b, double x) {
    constexpr double tiny = 1e-300;
    const N sum = a + b;
    auto away = [](N v) { return std::abs(value_of(v)) < tiny ? N(tiny) : v; };
    N c = 1, d = N(1) / away(N(1) - sum * N(x) / (a + N(1))), h = d;
    for (int m = 1; m < kLongest; ++m) {
        const N at = a + N(2 * m);
        const N even = N(m * x) * (b - N(m)) / ((at - N(1)) * at);
        d = N(1) / away(N(1) + even * d);
        c = away(N(1) + even / c);
        h = h * d * c;
        const N odd = N(-x) * (a + N(m)) * (sum + N(m)) / (at * (at + N(1)));
        d = N(1) / away(N(1) + odd * d);
        c = away(N(1) + odd / c);
        const N step = d * c;
        h = h * step;
        if (is_one(step)) break;
    }
    return h;
}
template <class N>
Side<N> beta_side(N a, N b, double x) {
    const double p = value_of(a), q = value_of(b), y = 1 - x;
    if (x <= (p + 1) / (p + q + 2)) {
        const N scale = log_weight(a, b, x, y);
        return {scale, std::exp(value_of(scale)), beta_fraction(a, b, x), false};
    }
    const N scale = log_weight(b, a, y, x);
    return {scale, std::exp(value_of(scale)), beta_fraction(b, a, y), true};
}
bool beta_end(double a, double b, double x, bool upper, double& share) {
    if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1) || std::isinf(a) || std::isinf(b))
        share = kNan;
    else if (x == 0 || x == 1)
        share = (x == 0) == upper ? 1 : 0;
    else
        return false;
    return true;
}

}  // namespace

double log_beta(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return kNan;
    const double p = std::min(a, b), q = std::max(a, b);
    if (p == 0) return q == kInfinity ? kNan : kInfinity;
    if (p < 0) return lgamma(p) + lgamma(q) - lgamma(p + q);
    if (q == kInfinity) return -kInfinity;
    if (q < kStirling) return lgamma(p) + lgamma(q) - lgamma(p + q);
    // log gamma(q) - log gamma(p + q), with the common parts cancelled.
    if (p < kStirling)
        return lgamma(p) + p - p * std::log(q) - (p + q - 0.5) * std::log1p(p / q) + stirling(q) - stirling(p + q);
    return 0.5 * std::log(2 * kPi / q) + (p - 0.5) * std::log(p / (p + q)) - q * std::log1p(p / q) + stirling(p) +
           stirling(q) - stirling(p + q);
}

double incomplete_gamma(double a, double x, bool upper, bool single) {
    double share = 0;
    if (gamma_end(a, x, upper, share)) return share;
    if (is_uniform(a, x)) return share_of(temme(a, x, x >= a), upper);
    if (upper && is_small(a, x)) return small_upper(a, x);
    return share_of(gamma_side(a, x, single ? Scale::single : Scale::number), upper);
}

double log_incomplete_gamma(double a, double x, bool upper) {
    double share = 0;
    if (gamma_end(a, x, upper, share)) return std::log(share);
    if (is_uniform(a, x)) return log_of(temme(a, x, x >= a), upper);
    const Side<double> side = gamma_side(a, x, Scale::logarithm);
    if (is_small(a, x) && log_of(side, false) > -0.7)
        return upper ? std::log(small_upper(a, x)) : std::log1p(-small_upper(a, x));
    return log_of(side, upper);
}

double log_incomplete_gamma_slope(double a, double x, bool upper) {
    double share = 0;
    if (gamma_end(a, x, upper, share))
        return std::isnan(share) || a == 0 ? kNan : share == 1 ? 0 : upper ? kInfinity : -kInfinity;
    if (is_uniform(a, x)) {
        // A difference quotient, over a step that the small standard deviation requires.
        const double h = std::sqrt(a) * 1e-4;
        auto at = [&](double shape) { return log_of(temme(shape, x, upper), upper); };
        return (at(a + h) - at(a - h)) / (2 * h);
    }
    const Side<Dual> side = gamma_side(Dual(a, 1), x, Scale::logarithm);
    if (!upper || !is_small(a, x)) return slope_of(side, upper);
    return -std::exp(log_of(side, false)) / small_upper(a, x) * slope_of(side, false);
}

double incomplete_beta(double a, double b, double x, bool upper) {
    double share = 0;
    return beta_end(a, b, x, upper, share) ? share : share_of(beta_side(a, b, x), upper);
}

double log_incomplete_beta(double a, double b, double x, bool upper) {
    double share = 0;
    return beta_end(a, b, x, upper, share) ? std::log(share) : log_of(beta_side(a, b, x), upper);
}

double log_incomplete_beta_slope(double a, double b, double x, bool upper, bool by_b) {
    double share = 0;
    if (beta_end(a, b, x, upper, share)) {
        if (share != 0) return share == 1 ? 0 : kNan;
        // The share goes to 0 like a power of the distance from this end, with one of the parameters as exponent.
        return by_b == upper ? -kInfinity : formula::digamma(a + b) - formula::digamma(by_b ? b : a);
    }
    return slope_of(beta_side(Dual(a, by_b ? 0 : 1), Dual(b, by_b ? 1 : 0), x), upper);
}

}  // namespace lunaria::cpu
