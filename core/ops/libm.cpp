#include "core/ops/libm.h"

#include "core/ops/divisors.h"

namespace lunaria::libm {

namespace {

// The address of an overloaded function.
template <class F>
const void* at(F* f) {
    return reinterpret_cast<const void*>(f);
}
using Float = float(float);
using Floats = float(float, float);
using Double = double(double);
using Doubles = double(double, double);

}  // namespace

double lgamma(double x) {
    int sign;
    return ::lgamma_r(x, &sign);
}

std::span<const Function> functions() {
    static const Function list[] = {
        {"sinf", at<Float>(::sinf)},
        {"cosf", at<Float>(::cosf)},
        {"tanf", at<Float>(::tanf)},
        {"fmodf", at<Floats>(::fmodf)},
        {"sin", at<Double>(::sin)},
        {"cos", at<Double>(::cos)},
        {"tan", at<Double>(::tan)},
        {"asin", at<Double>(::asin)},
        {"acos", at<Double>(::acos)},
        {"atan", at<Double>(::atan)},
        {"erf", at<Double>(::erf)},
        {"erfc", at<Double>(::erfc)},
        {"log_gamma", at<Double>(lgamma)},
        {"atan2", at<Doubles>(::atan2)},
        {"pow", at<Doubles>(::pow)},
        {"fmod", at<Doubles>(::fmod)},
        {"hypot", at<Doubles>(::hypot)},
        {"greatest_common_divisor", at(greatest_common_divisor)},
        {"least_common_multiple", at(least_common_multiple)},
    };
    return list;
}

}  // namespace lunaria::libm
