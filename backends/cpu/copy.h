// Fast copies between tensors of any layout.
#pragma once

#include <bit>

#include "backends/cpu/elementwise.h"
#include "backends/cpu/simd/copy_loops.h"
#include "core/tensor/tensor.h"

namespace lunaria::cpu {

// The loops for the instruction set in use.
const CopyLoops& copy_loops();
template <class T>
TransposeLoop transpose_loop() {
    return copy_loops().transpose[std::countr_zero(sizeof(T))];
}

// See set_fast_copy in core/tensor/tensor.h.
bool fast_copy(const Tensor& source, const Tensor& destination);

}  // namespace lunaria::cpu
