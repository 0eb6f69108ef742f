#include "jit/codegen/math.h"

namespace lunaria::codegen {

// The last product of normal_cdf is rounded by itself, as in the loops of eager mode.
// clang-format off
Code exp(Code x) { return vector_math::exp(x); }
Code exp2(Code x) { return vector_math::exp2(x); }
Code expm1(Code x) { return vector_math::expm1(x); }
Code expm1_negative(Code x) { return vector_math::expm1_negative(x); }
Code log(Code x) { return vector_math::log(x); }
Code log2(Code x) { return vector_math::log2(x); }
Code log10(Code x) { return vector_math::log10(x); }
Code log1p(Code x) { return vector_math::log1p(x); }
Code sinh(Code x) { return vector_math::sinh(x); }
Code cosh(Code x) { return vector_math::cosh(x); }
Code tanh(Code x) { return vector_math::tanh(x); }
Code asinh(Code x) { return vector_math::asinh(x); }
Code acosh(Code x) { return vector_math::acosh(x); }
Code atanh(Code x) { return vector_math::atanh(x); }
Code sin(Code x) { return vector_math::sin(x); }
Code cos(Code x) { return vector_math::cos(x); }
Code tan(Code x) { return vector_math::tan(x); }
Code asin(Code x) { return vector_math::asin(x); }
Code acos(Code x) { return vector_math::acos(x); }
Code atan(Code x) { return vector_math::atan(x); }
Code erf(Code x) { return vector_math::erf(x); }
Code erfc(Code x) { return vector_math::erfc(x); }
Code normal_cdf(Code x) { return alone(vector_math::normal_cdf(x)); }
Code atan2(Code y, Code x) { return vector_math::atan2(y, x); }
// clang-format on

}  // namespace lunaria::codegen
