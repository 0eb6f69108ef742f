// Direct convolutions of pictures with few channels (PaddedLines in sizes.h). Compiled once for each instruction set.
#include "core/lite/kernels/float_products.h"
#include "core/lite/kernels/rows.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

namespace {

// The lines under the results [y0, y1) of a plane, with zeros where there is no picture.
void copy_lines(const Convolution& c, const PaddedLines& sizes, int64_t plane, int64_t y0, int64_t y1, float* to) {
    const ConvolutionShape& s = c.shape;
    const int64_t pixel = c.x_pixel ? c.x_pixel : s.channels, pixels = sizes.width / s.channels;
    const int64_t before = s.pad[2] < pixels ? s.pad[2] : pixels, room = pixels - before,
                  inside = s.in[2] < room ? s.in[2] : room;
    const int64_t first = y0 * s.stride[1] - s.pad[1], count = (y1 - 1 - y0) * s.stride[1] + sizes.reach;
    for (int64_t i = 0; i < count; ++i, to += sizes.width) {
        const int64_t y = first + i;
        if (y < 0 || y >= s.in[1]) {
            clear(to, sizes.width);
            continue;
        }
        const float* from = c.x + (plane * s.in[1] + y) * s.in[2] * pixel;
        float* at = to + before * s.channels;
        clear(to, before * s.channels);
        if (pixel == s.channels)
            copy(at, from, inside * pixel);
        else
            for (int64_t x = 0; x < inside; ++x) copy(at + x * s.channels, from + x * pixel, s.channels);
        clear(at + inside * s.channels, (room - inside) * s.channels);
    }
}

}  // namespace

void few_channels(const Convolution& c, void* scratch, const Workers& workers) {
    const ConvolutionShape& s = c.shape;
    const PaddedLines sizes(s);
    const int64_t bands = (s.out[1] + sizes.results - 1) / sizes.results,
                  y_pixel = c.y_pixel ? c.y_pixel : s.out_channels;
    const int64_t blocks = (s.out[2] + kRows - 1) / kRows;
    const RowsTask task{s.batch * s.out[0] * s.out[1] * s.out[2],
                        s.out_channels,
                        s.kernel[1] * s.kernel[2] * s.channels,
                        c.weight,
                        c.type,
                        c.y,
                        y_pixel,
                        &c.epilogue};
    each_task(workers, s.batch * s.out[0] * bands, [&](int64_t i, int worker) {
        const int64_t plane = i / bands, y0 = i % bands * sizes.results;
        const int64_t y1 = y0 + sizes.results < s.out[1] ? y0 + sizes.results : s.out[1];
        auto* lines = reinterpret_cast<float*>(static_cast<char*>(scratch) + worker * sizes.bytes);
        copy_lines(c, sizes, plane, y0, y1, lines);
        RowsLoop loop(task, nullptr);
        for (int64_t y = y0; y < y1; ++y)
            for (int64_t b = 0; b < blocks; ++b) {
                const int64_t x0 = s.out[2] * b / blocks, x1 = s.out[2] * (b + 1) / blocks;
                const float* a = lines + (y - y0) * s.stride[1] * sizes.width + x0 * s.stride[2] * s.channels;
                loop.run_segments(a, s.stride[2] * s.channels, (plane * s.out[1] + y) * s.out[2] + x0,
                                  static_cast<int>(x1 - x0), s.kernel[1], s.dilation[1] * sizes.width);
            }
    });
}

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
