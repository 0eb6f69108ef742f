// Convolutions and their two gradients by cuDNN, on tensor cores for dtypes that these support.
#pragma once

#include "backends/gpu/launcher.h"
#include "core/ops/conv.h"

namespace lunaria::gpu {

enum class ConvolutionKind { forward, input_grad, weight_grad };

// All tensors are dense. first, second: the operands of the kind, in the order of its operator; bias: 0 means none.
struct LibraryConvolution {
    ConvolutionKind kind = ConvolutionKind::forward;
    Convolution geometry;
    DType dtype = DType::f32;
    Address first = 0, second = 0, out = 0, bias = 0;
};

// False where the library is missing, or does not support the call.
bool run_library_convolution(Launcher& launcher, const LibraryConvolution& convolution);

}  // namespace lunaria::gpu
