// CPU kernels: special functions, number by number in f64. Series end where their terms no longer count, and none is
// longer than the bounds below, whatever the operands.
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "backends/cpu/incomplete.h"
#include "backends/cpu/kernel_table.h"
#include "core/base/interrupt.h"
#include "core/base/visit.h"
#include "core/operator/op.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr long double kPiLong = 3.14159265358979323846264338328L;

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
    const double end = q + kTerms;
    Dual power = inverse_power(end, s);
    Dual sum = power * Dual{end} / (s + Dual{-1}) + power * Dual{0.5};
    // s (s + 1) … (s + 2j) / (2j + 2)! B_(2j+2) / end^(s + 2j + 1)
    Dual factor = s * power * Dual{1 / end} * Dual{0.5};
    for (size_t j = 0; j < kBernoulli.size(); ++j) {
        sum = sum + factor * Dual{kBernoulli[j]};
        const auto at = static_cast<double>(2 * j + 1);
        factor = factor * (s + Dual{at}) * (s + Dual{at + 1}) * Dual{1 / ((at + 2) * (at + 3) * end * end)};
    }
    // The largest term comes last, so that the roundings of the others are small beside it.
    for (int k = kTerms; k-- > 0;) sum = sum + inverse_power(q + k, s);
    return sum;
}

Dual zeta(Dual s, double q) {
    if (std::isnan(s.value) || std::isnan(q)) return {kNan, kNan};
    if (s.value == 1) return {kInfinity, kNan};
    if (s.value < 1) return {kNan, kNan};
    if (std::isinf(s.value)) return {q > 1 ? 0.0 : q == 1 ? 1.0 : q > 0 ? kInfinity : kNan, 0};
    if (q <= 0 && q == std::floor(q)) return {kInfinity, kNan};
    if (q > 0) return q == kInfinity ? Dual{0} : zeta_right(s, q);
    // Negative bases have only whole powers. Their terms are added one by one, up to some distance from 0.
    if (s.value != std::floor(s.value) || s.slope != 0 || q < -1e6) return {kNan, kNan};
    double left = 0;
    for (; q < 0; ++q) left += std::pow(q, -s.value);
    return Dual{left} + zeta_right(s, q);
}

// From here on computed in Real: for f64 in long double, since dozens of roundings would add up to more than the last
// digit, and for f32 in double.

// Hankel's expansion of I (sign -1) and K (sign 1) for a large x, without its exponential and root.
template <class Real>
Real hankel(int order, Real x, Real sign) {
    Real term = 1, sum = 1;
    for (int k = 1; k < 40; ++k) {
        const Real odd = 2 * k - 1, next = term * sign * (4 * order * order - odd * odd) / (8 * k * x);
        if (std::abs(next) >= std::abs(term) || next == 0) break;
        term = next;
        sum += term;
    }
    return sum;
}

constexpr double kFar = 24;  // from here on Hankel's expansion is exact in f64

// The power series of I, all of whose terms are positive.
template <class Real>
Real bessel_i_series(int order, Real x) {
    const Real quarter = x * x / 4;
    Real term = order == 1 ? x / 2 : 1, sum = term;
    for (int k = 1; k < 200 && term > sum * Real(1e-19); ++k) {
        term *= quarter / (k * (k + order));
        sum += term;
    }
    return sum;
}

template <class Real>
double bessel_i(int order, bool scaled, double x) {
    const Real size = std::abs(x);
    if (std::isnan(x)) return x;
    Real value;
    if (size > kFar) {
        if (std::isinf(x)) return scaled ? 0 : order == 1 ? x : kInfinity;
        value = hankel<Real>(order, size, -1) / std::sqrt(2 * Real(kPiLong) * size);
        // In two halves, so that e^x overflows only where the result does.
        if (!scaled) value = value * std::exp(size / 2) * std::exp(size / 2);
    } else {
        value = bessel_i_series(order, size) * (scaled ? std::exp(-size) : 1);
    }
    return static_cast<double>(order == 1 && x < 0 ? -value : value);
}

template <class Real>
double bessel_k(int order, bool scaled, double x) {
    if (std::isnan(x) || x < 0) return kNan;
    if (x == 0) return kInfinity;
    if (std::isinf(x)) return 0;
    const Real at = x;
    if (x > kFar)
        return static_cast<double>(hankel<Real>(order, at, 1) * std::sqrt(Real(kPiLong) / (2 * at)) *
                                   (scaled ? 1 : std::exp(-at)));
    return static_cast<double>(std::cyl_bessel_k(Real(order), at) * (scaled ? std::exp(at) : 1));
}

// Elements are computed as f64; this many are worth starting a thread.
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

// The elements of a dense operand that meet those of the broadcast result.
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

// F: from f64, with as much precision as an f32 needs for f32.
template <auto F>
Kernel of_one() {
    return [](const KernelCall& c) {
        if (is_complex(c.dtype)) return false;
        const Tensor& x = c.tensor(0);
        const bool twice = x.dtype() == DType::f64;
        for_each(c.out[0], [&](int64_t i) { return F(element(x, i), twice); });
        return true;
    };
}
template <int Order, bool Scaled>
constexpr auto kBesselI = [](double x, bool twice) {
    return twice ? bessel_i<long double>(Order, Scaled, x) : bessel_i<double>(Order, Scaled, x);
};
template <int Order, bool Scaled>
constexpr auto kBesselK = [](double x, bool twice) {
    return twice ? bessel_k<long double>(Order, Scaled, x) : bessel_k<double>(Order, Scaled, x);
};

// f gets the elements of the first `Tensors` arguments, then the attributes of the call.
template <size_t Tensors, class F>
Kernel of_several(F) {
    static_assert(std::is_empty_v<F>);
    return [](const KernelCall& c) {
        if (is_complex(c.dtype)) return false;
        std::vector<Met> met;
        for (size_t k = 0; k < Tensors; ++k) met.emplace_back(c.tensor(k), c.out[0].shape());
        for_each(c.out[0], [&](int64_t i) {
            std::array<double, Tensors> v;
            for (size_t k = 0; k < Tensors; ++k) v[k] = element(c.tensor(k), met[k](i));
            return F{}(v, c);
        });
        return true;
    };
}
template <class F>
Kernel of_two(F) {
    static_assert(std::is_empty_v<F>);
    return of_several<2>([](const std::array<double, 2>& v, const KernelCall&) { return F{}(v[0], v[1]); });
}

}  // namespace

void add_special_kernels(KernelTable& table) {
    // Functions of the C library.
    table.plain("bessel_j0", of_one([](double x) { return ::j0(x); }));
    table.plain("bessel_j1", of_one([](double x) { return ::j1(x); }));
    table.plain("bessel_y0", of_one([](double x) { return x < 0 ? kNan : ::y0(x); }));
    table.plain("bessel_y1", of_one([](double x) { return x < 0 ? kNan : ::y1(x); }));
    table.plain("bessel_i0", of_one<kBesselI<0, false>>());
    table.plain("bessel_i0e", of_one<kBesselI<0, true>>());
    table.plain("bessel_i1", of_one<kBesselI<1, false>>());
    table.plain("bessel_i1e", of_one<kBesselI<1, true>>());
    table.plain("bessel_k0", of_one<kBesselK<0, false>>());
    table.plain("bessel_k0e", of_one<kBesselK<0, true>>());
    table.plain("bessel_k1", of_one<kBesselK<1, false>>());
    table.plain("bessel_k1e", of_one<kBesselK<1, true>>());
    table.plain("tgamma", of_one([](double x) { return std::tgamma(x); }));
    table.plain("betaln", of_two([](double a, double b) { return log_beta(a, b); }));
    using Two = std::array<double, 2>;
    using Three = std::array<double, 3>;
    table.plain("igamma", of_several<2>([](const Two& v, const KernelCall& c) {
                    return incomplete_gamma(v[0], v[1], false, c.out[0].dtype() == DType::f32);
                }));
    table.plain("igammac", of_several<2>([](const Two& v, const KernelCall& c) {
                    return incomplete_gamma(v[0], v[1], true, c.out[0].dtype() == DType::f32);
                }));
    table.plain("log_igamma", of_several<2>([](const Two& v, const KernelCall& c) {
                    return log_incomplete_gamma(v[0], v[1], c.args[2].boolean());
                }));
    table.plain("log_igamma_slope", of_several<2>([](const Two& v, const KernelCall& c) {
                    return log_incomplete_gamma_slope(v[0], v[1], c.args[2].boolean());
                }));
    table.plain("betainc", of_several<3>([](const Three& v, const KernelCall& c) {
                    return incomplete_beta(v[0], v[1], v[2], c.args[3].boolean());
                }));
    table.plain("log_betainc", of_several<3>([](const Three& v, const KernelCall& c) {
                    return log_incomplete_beta(v[0], v[1], v[2], c.args[3].boolean());
                }));
    table.plain("log_betainc_slope", of_several<3>([](const Three& v, const KernelCall& c) {
                    return log_incomplete_beta_slope(v[0], v[1], v[2], c.args[3].boolean(), c.args[4].integer() == 1);
                }));
    table.plain("zeta", of_two([](double s, double q) { return zeta({s}, q).value; }));
    table.plain("zeta_slope", of_two([](double s, double q) { return zeta({s, 1}, q).slope; }));
}

}  // namespace lunaria::cpu
