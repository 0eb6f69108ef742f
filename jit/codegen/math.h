// The mathematical functions of core/ops/vector_math.h as Code, found by argument-dependent lookup from the formulas.
// Functions without a mark serve f32 and f64, the others f32 only.
#pragma once

#include "jit/codegen/code.h"

namespace lunaria::codegen {

Code exp(Code x);
Code exp2(Code x);
Code expm1(Code x);
Code expm1_negative(Code x);
Code log(Code x);
Code log2(Code x);
Code log10(Code x);
Code log1p(Code x);
Code sinh(Code x);
Code cosh(Code x);
Code tanh(Code x);
Code asinh(Code x);
Code acosh(Code x);
Code atanh(Code x);
Code sin(Code x);            // f32
Code cos(Code x);            // f32
Code tan(Code x);            // f32
Code asin(Code x);           // f32
Code acos(Code x);           // f32
Code atan(Code x);           // f32
Code atan2(Code y, Code x);  // f32
Code erf(Code x);            // f32
Code erfc(Code x);           // f32
Code normal_cdf(Code x);     // f32

}  // namespace lunaria::codegen
