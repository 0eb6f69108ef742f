// What a device does for compiled graphs (jit/graph/): it runs their generated loops over its own memory. All else that
// a graph needs of a device is what operators need: memory, copies, kernels, an order of work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/dtype.h"

namespace lunaria::graph {

// Code of a loop program (jit/graph/loop.h). Pointers are those of the operands' first elements. `sizes` holds the
// outer sizes, then `inner`, then for each operand its strides along the outer axes (in elements) and, if its step is
// wide, along the row. Rows row_begin .. row_end are done, of each row elements column_begin .. column_end (all of it
// where has_rows). `scratch`: memory of this thread.
using LoopFunction = void (*)(void* const* pointers, const int64_t* sizes, int64_t row_begin, int64_t row_end,
                              int64_t column_begin, int64_t column_end, void* scratch);

// A loop with everything that it takes.
struct LoopLaunch {
    LoopFunction function = nullptr;
    std::vector<void*> pointers;  // of the device
    std::vector<int64_t> sizes;
    int64_t rows = 1, inner = 1;
    int64_t part = 1;    // elements that are worth a thread
    size_t scratch = 0;  // bytes
    bool has_rows = false, has_sums = false;
    // Of a loop whose sums are one row each: how many groups the rows are shared out in, which are added up on their
    // own first, and the operands that are sums. As many for every number of threads: results are the same bits.
    int64_t row_groups = 1;
    struct Sum {
        size_t operand = 0;
        DType dtype = DType::f32;
    };
    std::vector<Sum> sums{};
};

class Backend {
  public:
    virtual ~Backend() = default;
    // Runs the loop, behind everything that the device was asked for before.
    virtual void launch(const LoopLaunch& loop) = 0;
};

}  // namespace lunaria::graph
