// Windows that slide over pictures or planes of up to three axes, with which pools and their gradients go.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lunaria::lite {

// Axes that lack stand in front with size 1.
struct Windows {
    int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
    int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, before[3] = {0, 0, 0}, after[3] = {0, 0, 0};

    static int64_t product(const int64_t (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; }
    int64_t pixels() const { return product(in); }
    int64_t places() const { return product(out); }
    int64_t taps() const { return product(kernel); }
};

// The elements of a window along an axis that lie in the picture: first, last + 1, as numbers of the kernel's.
struct Taps {
    int64_t start = 0, from = 0, to = 0;

    Taps() = default;
    Taps(const Windows& w, int axis, int64_t at) : start(at * w.stride[axis] - w.before[axis]) {
        const int64_t d = w.dilation[axis], size = w.in[axis];
        from = start < 0 ? (-start + d - 1) / d : 0;
        to = start >= size ? 0 : std::min(w.kernel[axis], (size - start + d - 1) / d);
    }
};

// The number by which an average divides: of a window's elements in the picture, or in what it is padded to.
inline int64_t divisor_of(const Windows& w, const Taps (&taps)[3], bool counts_padding) {
    int64_t count = 1;
    for (int axis = 0; axis < 3; ++axis) {
        const Taps& t = taps[axis];
        if (counts_padding) {
            const int64_t end = std::min(t.start + w.kernel[axis] * w.dilation[axis], w.in[axis] + w.after[axis]);
            count *= std::max<int64_t>(0, end - t.start) / w.dilation[axis];
        } else {
            count *= std::max<int64_t>(0, t.to - t.from);
        }
    }
    return count;
}

}  // namespace lunaria::lite
