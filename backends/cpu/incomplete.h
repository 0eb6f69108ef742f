// The incomplete gamma and beta functions and the beta function, in f64: both sides, each also as a logarithm, which is
// finite where the value itself underflows to 0 or rounds to 1, and the slopes of the logarithms by a parameter.
#pragma once

namespace lunaria::cpu {

// log |B(a, b)|.
double log_beta(double a, double b);

// P(a, x), or Q(a, x) = 1 - P(a, x) where `upper`. NaN where a < 0, x < 0 or both are 0. single: the digits of f32 are
// enough.
double incomplete_gamma(double a, double x, bool upper, bool single);
double log_incomplete_gamma(double a, double x, bool upper);
double log_incomplete_gamma_slope(double a, double x, bool upper);  // by a

// I_x(a, b), or 1 - I_x(a, b) where `upper`. NaN where a or b is not positive or x not in [0, 1].
double incomplete_beta(double a, double b, double x, bool upper);
double log_incomplete_beta(double a, double b, double x, bool upper);
double log_incomplete_beta_slope(double a, double b, double x, bool upper, bool by_b);

}  // namespace lunaria::cpu
