// Convolutions and their two gradients by cuDNN, on tensor cores where the dtype is theirs.
#pragma once

#include "backends/gpu/launcher.h"
#include "core/ops/conv.h"

namespace lunaria::gpu {

enum class ConvolutionKind { forward, input_grad, weight_grad };

// All tensors are dense. first, second: what the kind reads, in the order of its operator; bias: 0 is none.
struct LibraryConvolution {
    ConvolutionKind kind = ConvolutionKind::forward;
    Convolution geometry;
    DType dtype = DType::f32;
    Address first = 0, second = 0, out = 0, bias = 0;
};

// False where the library is not there, or does not do it.
bool run_library_convolution(Launcher& launcher, const LibraryConvolution& convolution);

}  // namespace lunaria::gpu
