// Products of matrices by cuBLASLt, on tensor cores for dtypes that these support.
#pragma once

#include <cstdint>

#include "backends/gpu/launcher.h"

namespace lunaria::gpu {

// out[rows, columns] = a[rows, depth] b[depth, columns] + bias[columns], for each of a batch. Steps count elements; out
// is dense.
struct MatrixProduct {
    DType dtype = DType::f32;
    int64_t batches = 1, rows = 1, columns = 1, depth = 1;
    struct Operand {
        Address address = 0;
        int64_t row = 0, column = 0, batch = 0;  // steps
    };
    Operand a{}, b{};
    Address out = 0, bias = 0;  // 0: none
};

// False where the library is missing, or does not support the call.
bool run_library_product(Launcher& launcher, const MatrixProduct& product);

}  // namespace lunaria::gpu
