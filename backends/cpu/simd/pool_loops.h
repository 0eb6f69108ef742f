// Loops of max pooling along rows, where neighbours are neighbours in memory. One table for each instruction set; NaN
// counts as larger than everything.
#pragma once

#include <cstdint>

namespace lunaria::cpu {

template <class T>
struct PoolLoopsOf {
    // out[i] = the larger one of out[i] and in[i * stride].
    void (*raise)(T* out, const T* in, int64_t count, int64_t stride);
    // out[i] = the largest of the elements i of all rows, of which there is at least one.
    void (*largest_of_rows)(const T* const* rows, int64_t row_count, int64_t count, T* out);
    // out[i] = the largest of in[i * stride + k * dilation] for k = 0 .. kernel - 1.
    void (*largest_along)(const T* in, int64_t kernel, int64_t dilation, int64_t stride, int64_t count, T* out);
    // A plane of `rows` by `count` windows of two by two elements each, side by side from the first element of rows of
    // `width` on. out[i] = the largest of each window.
    void (*largest_of_four)(const T* plane, int64_t width, int64_t rows, int64_t count, T* out);
    // `out` gets dout[i] at the place of the largest element of each window, the first of equals or the last NaN, and 0
    // elsewhere in the windows; elements outside of them stay.
    void (*place_of_four)(const T* plane, const T* dout, int64_t width, int64_t rows, int64_t count, T* out);
    // For windows that begin at each element: dout[i] is added at the place of the largest element.
    void (*add_at_four)(const T* plane, const T* dout, int64_t width, int64_t rows, int64_t count, T* out);
};

struct PoolLoops {
    PoolLoopsOf<float> f32;
    PoolLoopsOf<double> f64;
};

// For the instruction set in use.
const PoolLoops& current_pool_loops();

namespace v2 {
extern const PoolLoops pool_loops;
}
namespace avx2 {
extern const PoolLoops pool_loops;
}
namespace avx512 {
extern const PoolLoops pool_loops;
}

}  // namespace lunaria::cpu
