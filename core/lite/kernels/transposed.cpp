// Transposed convolutions of floats: each phase of the result (phases.h) is a product of its own, whose rows are
// gathered from the pixels that its taps reach. Compiled once for each instruction set.
#include "core/lite/kernels/float_products.h"
#include "core/lite/kernels/phases.h"
#include "core/lite/kernels/rows.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

namespace {

struct Line {
    int64_t picture, z, y;
};

class TransposedLine {
  public:
    TransposedLine(const Convolution& c, const Line& line, const Phase& z, const Phase& y, const Phase& x,
                   int64_t group, int64_t ox)
        : s_(c.shape), line_(line), z_(z), y_(y), phase_(x), depth_(s_.channels / s_.groups), ox_(ox) {
        pixel_ = c.x_pixel ? c.x_pixel : s_.channels;
        x_ = c.x + group * depth_;
    }
    // Rows are results a stride apart, columns (tap, channel).
    void gather(int64_t first, int rows, int64_t k, int64_t count, float* to) const {
        for (int r = 0; r < rows; ++r) row(ox_ + (first + r) * phase_.stride, k, count, to + r * kGatheredRow);
    }

  private:
    // The pixel that reaches o by this tap, or -1.
    int64_t source(int axis, int64_t o, int64_t tap) const {
        const int64_t at = o + s_.pad[axis] - tap * s_.dilation[axis];
        if (at < 0 || at % s_.stride[axis] != 0 || at / s_.stride[axis] >= s_.in[axis]) return -1;
        return at / s_.stride[axis];
    }
    void row(int64_t o, int64_t k, int64_t count, float* to) const {
        for (const int64_t end = k + count; k < end;) {
            const int64_t tap = k / depth_, channel = k % depth_;
            const int64_t n = depth_ - channel < end - k ? depth_ - channel : end - k;
            const int64_t tx = tap % phase_.count, ty = tap / phase_.count % y_.count,
                          tz = tap / phase_.count / y_.count;
            const int64_t iz = source(0, line_.z, z_.tap(tz)), iy = source(1, line_.y, y_.tap(ty));
            const int64_t ix = source(2, o, phase_.tap(tx));
            if (iz < 0 || iy < 0 || ix < 0)
                clear(to, n);
            else
                copy(to, x_ + (((line_.picture * s_.in[0] + iz) * s_.in[1] + iy) * s_.in[2] + ix) * pixel_ + channel,
                     n);
            to += n;
            k += n;
        }
    }

    const ConvolutionShape& s_;
    Line line_;
    const Phase &z_, &y_, &phase_;
    int64_t depth_, ox_, pixel_;
    const float* x_;
};

// The results of one line and one phase.
void line_of_phase(const Convolution& c, const Line& line, int64_t group, int64_t ox, float* gathered, float* widened) {
    const ConvolutionShape& s = c.shape;
    const int64_t at[3] = {(line.z + s.pad[0]) % s.stride[0], (line.y + s.pad[1]) % s.stride[1],
                           (ox + s.pad[2]) % s.stride[2]};
    const Phase pz(s, 0, at[0]), py(s, 1, at[1]), px(s, 2, at[2]);
    const int64_t depth = s.channels / s.groups, n = s.out_channels / s.groups, panels = panels_of(n);
    // Weights of the phases before this one.
    int64_t taps = 0;
    for (int64_t z = 0; z <= at[0]; ++z)
        for (int64_t y = 0; y < (z < at[0] ? s.stride[1] : at[1] + 1); ++y)
            for (int64_t x = 0; x < (z < at[0] || y < at[1] ? s.stride[2] : at[2]); ++x)
                taps += Phase(s, 0, z).count * Phase(s, 1, y).count * Phase(s, 2, x).count;
    const int64_t all = s.kernel[0] * s.kernel[1] * s.kernel[2];
    const int64_t y_pixel = c.y_pixel ? c.y_pixel : s.out_channels, m = (s.out[2] - ox + s.stride[2] - 1) / s.stride[2];
    const int64_t first = ((line.picture * s.out[0] + line.z) * s.out[1] + line.y) * s.out[2] + ox;
    Epilogue e = c.epilogue;
    if (e.bias) e.bias += group * n;
    if (e.scale) e.scale += group * n;
    if (e.residual) e.residual += first * e.residual_row + group * n;
    e.residual_row *= s.stride[2];
    float* y = c.y + first * y_pixel + group * n;
    const int64_t y_row = y_pixel * s.stride[2], k = pz.count * py.count * px.count * depth;
    if (k == 0) {
        // A result in place of its residual is read before it is overwritten.
        alignas(64) float zeros[64] = {};
        for (int64_t j = 0; j < n; j += 64) {
            Epilogue part = e;
            if (part.bias) part.bias += j;
            if (part.scale) part.scale += j;
            if (part.residual) part.residual += j;
            apply(part, m, n - j < 64 ? n - j : 64, zeros, 0, y + j, y_row);
        }
        return;
    }
    const int64_t element = c.type == WeightType::f32 ? 4 : 2;
    const char* weight = static_cast<const char*>(c.weight) + (group * all + taps) * depth * panels * kPanel * element;
    const RowsTask task{m, n, k, weight, c.type, y, y_row, &e};
    const TransposedLine rows(c, line, pz, py, px, group, ox);
    RowsLoop(task, widened)
        .run(0, m, 0, panels, nullptr, gathered,
             [&](int64_t f, int r, int64_t at_k, int64_t count, float* to) { rows.gather(f, r, at_k, count, to); });
}

}  // namespace

void transposed(const Convolution& c, void* scratch, const Workers& workers) {
    const ConvolutionShape& s = c.shape;
    each_task(workers, s.batch * s.out[0] * s.out[1], [&](int64_t i, int worker) {
        const Line line{i / (s.out[0] * s.out[1]), i / s.out[1] % s.out[0], i % s.out[1]};
        auto* gathered = reinterpret_cast<float*>(static_cast<char*>(scratch) + worker * rows_bytes(c.type));
        for (int64_t group = 0; group < s.groups; ++group)
            for (int64_t ox = 0; ox < s.stride[2] && ox < s.out[2]; ++ox)
                line_of_phase(c, line, group, ox, gathered, gathered + kGatheredBytes / 4);
    });
}

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
