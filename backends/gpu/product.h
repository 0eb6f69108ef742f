// Products of matrices, tile by tile: what matrix products and convolutions share. A block computes a tile of the
// result from strips of both operands that it brings to its own memory; a thread keeps some rows and columns of the
// tile in registers.
#pragma once

#include <functional>
#include <string>

#include "backends/gpu/launcher.h"

namespace lunaria::gpu {

// What the elements are. All numbers are indices; the functions are called once, when the kernel is written.
struct ProductElements {
    // Anything that is the same for all elements of a batch, computed before the others are asked.
    std::function<void(Writer&, Number batch)> begin = nullptr;
    std::function<Number(Number row, Number k)> a;
    std::function<Number(Number k, Number column)> b;
    std::function<void(Number row, Number column, Number value)> store;
};

struct ProductShape {
    int64_t batches = 1, rows = 1, columns = 1, depth = 1;
    DType sum = DType::f32;                            // what it is computed in; elements have it, too
    bool a_along_depth = true, b_along_depth = false;  // which axis of the operand has neighbours in memory
};

// `name` tells apart kernels whose elements are written differently; `words` what these ask for, and `write` asks for
// it. Where there are few tiles and much depth, parts of the depth are added up apart, the sums afterwards.
bool run_product(Launcher& launcher, const std::string& name, const ProductShape& shape, Words words,
                 const std::function<ProductElements(Writer&)>& write);

}  // namespace lunaria::gpu
