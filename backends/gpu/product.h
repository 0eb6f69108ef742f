// Products of matrices, tile by tile, for matrix products and convolutions. A block computes a tile of the result from
// strips of both operands that it copies into its own memory; a thread keeps some rows and columns of the tile in
// registers.
#pragma once

#include <functional>
#include <string>

#include "backends/gpu/launcher.h"

namespace lunaria::gpu {

// The elements of the operands and the result. All numbers are indices; the functions are called once, when the kernel
// is written.
struct ProductElements {
    // Computes values that are the same for all elements of a batch, before the other functions are called.
    std::function<void(Writer&, Number batch)> begin = nullptr;
    std::function<Number(Number row, Number k)> a;
    std::function<Number(Number k, Number column)> b;
    std::function<void(Number row, Number column, Number value)> store;
};

struct ProductShape {
    int64_t batches = 1, rows = 1, columns = 1, depth = 1;
    DType sum = DType::f32;                            // of the computation, and of the elements that the functions
                                                       // return
    bool a_along_depth = true, b_along_depth = false;  // which axis of the operand has adjacent elements in memory
};

// `name` identifies the way in which elements are written; `words` are the arguments that `write` asks for. Where there
// are few tiles and much depth, parts of the depth are summed separately, and the partial sums afterwards.
bool run_product(Launcher& launcher, const std::string& name, const ProductShape& shape, Words words,
                 const std::function<ProductElements(Writer&)>& write);

}  // namespace lunaria::gpu
