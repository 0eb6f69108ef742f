// The pixels under the kernel of a convolution, gathered as rows of a product. Compiled once for each instruction set.
#pragma once

#include "core/lite/kernels/vector.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

// Rows of a direct convolution: the pixels under the kernel at each place of the result, as (tap, channel).
template <class T>
class Pixels {
  public:
    // `zero` stands for pixels outside the picture.
    Pixels(const ConvolutionShape& s, const T* x, int64_t pixel, int64_t group, T zero)
        : s_(s), depth_(s.channels / s.groups), pixel_(pixel), x_(x + group * depth_), zero_(zero) {
        // Neighbours along a row of the kernel are neighbours in memory.
        in_line_ = s_.dilation[2] == 1 && pixel_ == depth_;
        line_ = s_.kernel[2] * depth_;
    }

    void gather(int64_t first, int rows, int64_t k, int64_t count, T* to, int64_t to_row) const {
        int64_t x = first % s_.out[2], rest = first / s_.out[2];
        int64_t y = rest % s_.out[1];
        rest /= s_.out[1];
        int64_t z = rest % s_.out[0], picture = rest / s_.out[0];
        const Start start{k / line_ / s_.kernel[1], k / line_ % s_.kernel[1], k % line_};
        for (int r = 0; r < rows; ++r) {
            row(picture, z, y, x, start, count, to + r * to_row);
            if (++x < s_.out[2]) continue;
            x = 0;
            if (++y < s_.out[1]) continue;
            y = 0;
            if (++z < s_.out[0]) continue;
            z = 0;
            ++picture;
        }
    }

  private:
    struct Start {
        int64_t kz, ky, at;  // a row of the kernel and the place in it
    };
    void row(int64_t picture, int64_t z, int64_t y, int64_t x, Start start, int64_t count, T* to) const {
        const int64_t ix = x * s_.stride[2] - s_.pad[2];
        for (; count > 0; start.at = 0) {
            const int64_t part = line_ - start.at < count ? line_ - start.at : count;
            const int64_t iz = z * s_.stride[0] - s_.pad[0] + start.kz * s_.dilation[0];
            const int64_t iy = y * s_.stride[1] - s_.pad[1] + start.ky * s_.dilation[1];
            if (iz < 0 || iz >= s_.in[0] || iy < 0 || iy >= s_.in[1]) {
                fill(to, part, zero_);
            } else {
                const int64_t first = ((picture * s_.in[0] + iz) * s_.in[1] + iy) * s_.in[2];
                if (in_line_)
                    whole(first, ix, start.at, part, to);
                else
                    taps(first, ix, start.at, part, to);
            }
            count -= part;
            to += part;
            if (++start.ky < s_.kernel[1]) continue;
            start.ky = 0;
            ++start.kz;
        }
    }
    // `part` numbers from place `at` of the kernel's row at pixel ix on.
    void whole(int64_t first, int64_t ix, int64_t at, int64_t part, T* to) const {
        const int64_t begin = ix * depth_ + at, limit = s_.in[2] * depth_;
        if (begin >= 0 && begin + part <= limit) {
            copy(to, x_ + first * depth_ + begin, part);
            return;
        }
        int64_t before = begin < 0 ? -begin : 0;
        before = before < part ? before : part;
        int64_t inside = limit - (begin + before);
        inside = inside < 0 ? 0 : inside < part - before ? inside : part - before;
        fill(to, before, zero_);
        copy(to + before, x_ + first * depth_ + begin + before, inside);
        fill(to + before + inside, part - before - inside, zero_);
    }
    void taps(int64_t first, int64_t ix, int64_t at, int64_t part, T* to) const {
        while (part > 0) {
            const int64_t tap = at / depth_, channel = at % depth_;
            const int64_t n = depth_ - channel < part ? depth_ - channel : part, i = ix + tap * s_.dilation[2];
            if (i < 0 || i >= s_.in[2])
                fill(to, n, zero_);
            else
                copy(to, x_ + (first + i) * pixel_ + channel, n);
            to += n;
            at += n;
            part -= n;
        }
    }

    const ConvolutionShape& s_;
    int64_t depth_, pixel_, line_;
    const T* x_;
    T zero_;
    bool in_line_;
};

// Each result has one pixel, in the same order.
[[gnu::always_inline]] inline bool is_product(const ConvolutionShape& s) {
    for (int d = 0; d < 3; ++d)
        if (s.kernel[d] != 1 || s.stride[d] != 1 || s.pad[d] != 0 || s.in[d] != s.out[d]) return false;
    return true;
}

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
