// Sizes of scratch.
#include "core/lite/kernels/integer_sizes.h"
#include "core/lite/kernels/winograd.h"

namespace lunaria::lite::kernels {

namespace {

// Two places for the same worker's data must not share a line of the cache.
int64_t for_all(int workers, int64_t bytes) { return (workers > 1 ? workers : 1) * round_up(bytes, 64); }

}  // namespace

int64_t product_scratch(const Product& p, int workers) {
    if (!is_blocks(p.type)) return for_all(workers, rows_bytes(p.type));
    return BlockScratch(p, workers).bytes;
}

int64_t batched_product_scratch(const BatchedProduct& p, int workers) {
    return for_all(workers, kGatheredBytes + p.k * panels_of(p.n) * kPanel * 4);
}

int64_t convolution_scratch(const Convolution& c, int workers) {
    switch (c.method) {
        case ConvolutionMethod::depthwise:
            return c.type == WeightType::f32 ? 0 : round_up(taps_of(c.shape) * c.shape.channels, 16) * 4;
        case ConvolutionMethod::winograd2:
        case ConvolutionMethod::winograd4:
            return for_all(workers, WinogradSizes(c.shape, c.method, workers).worker_bytes + rows_bytes(c.type));
        case ConvolutionMethod::direct:
            break;
    }
    const PaddedLines lines(c.shape);
    return for_all(workers, lines.fits && c.type == WeightType::f32 ? lines.bytes : rows_bytes(c.type));
}

int64_t integer_product_scratch(const IntegerProduct& p, int workers) {
    return for_all(workers, IntegerScratch(p.n, p.k).bytes);
}

int64_t integer_convolution_scratch(const IntegerConvolution& c, int workers) {
    const ConvolutionShape& s = c.shape;
    if (is_integer_depthwise(s)) return for_all(workers, IntegerLines(s).bytes);
    return for_all(workers, IntegerScratch(s.out_channels / s.groups, taps_of(s) * (s.channels / s.groups)).bytes);
}

}  // namespace lunaria::lite::kernels
