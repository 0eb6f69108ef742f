// Sine, cosine and tangent of floats of any size, for processors without a libm.
#pragma once

#include <string_view>

#include "jit/codegen/emission.h"

namespace lunaria::codegen {

// sinf, cosf or tanf of one f32, as a call of a function that is added to the module. For every float the error is at
// most half a unit in the last place and some thousandths; NaN for infinities.
llvm::Value* far_angle(Emission& emission, std::string_view function, llvm::Value* x);

}  // namespace lunaria::codegen
