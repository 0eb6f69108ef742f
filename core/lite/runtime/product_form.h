// Attributes that products of floats and of integers have in common.
#pragma once

#include "core/lite/kernels/convolution.h"
#include "core/lite/runtime/step.h"

namespace lunaria::lite {

bool read_activation(const StepForm& form, kernels::Activation& activation, float& alpha, float& beta,
                     std::string& fault);
// Everything but the weight; operand 0 is the picture.
bool read_convolution(const StepForm& form, kernels::ConvolutionShape& shape, std::string& fault);

}  // namespace lunaria::lite
