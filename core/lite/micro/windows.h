// Loops over the results of convolutions and pools and over the window of each. Pictures are channels-last.
#pragma once

#include "core/lite/kernels/convolution.h"
#include "core/lite/micro/program.h"

namespace lunaria::lite::micro {

// The attributes kernel, stride, dilation, pad, and the sizes of x and y.
kernels::ConvolutionShape window_shape(const StepForm& form, const Operand& x, const Operand& y);

// The same of a convolution, with the attributes groups and transposed.
kernels::ConvolutionShape convolution_shape(const StepForm& form, const Operand& x, const Operand& y);

// Opens the loops over batch and pixels of the result. Variables: n, oz, oy, ox.
void open_pixels(Lines& to, const kernels::ConvolutionShape& s);

// The result of a convolution, before its pixels are averaged where they are (pooled.h).
Operand convolution_result(const StepForm& form);
// The loops over pixels and channels of a convolution's result; the variable of channels is o.
void open_convolution(const StepForm& form, Lines& to, const kernels::ConvolutionShape& s);
void close_convolution(const StepForm& form, Lines& to, const kernels::ConvolutionShape& s);
// Opens the loops over the taps of the window that lie in the picture; the rest of a loop's body is skipped by
// `continue`.
void open_taps(Lines& to, const kernels::ConvolutionShape& s);
// Indices of the first channel of the pixel of the picture below the current tap, of the current result, and the number
// of the current tap times `factor`.
Index picture_pixel(const kernels::ConvolutionShape& s);
Index result_pixel(const kernels::ConvolutionShape& s);
void add_tap(Index& index, const kernels::ConvolutionShape& s, int64_t factor);

// Opens the loops over the numbers whose products a result of a convolution sums up, and gives their indices in the
// picture and in convolution_array() (weights.h).
struct FactorIndices {
    std::string picture, weight;
};
FactorIndices open_factors(Lines& to, const kernels::ConvolutionShape& s);

// Whether all taps of all results lie in the picture.
bool is_inside(const kernels::ConvolutionShape& s);

}  // namespace lunaria::lite::micro
