// Windows that slide over spatial axes, for convolution, pooling and unfold. Up to three spatial axes, always kept as
// three, the missing ones in front with size 1; so one loop nest serves all.
#pragma once

#include <algorithm>
#include <array>

#include "core/operator/op.h"

namespace lunaria {

// A product of sizes, at most 2^60: more than any memory holds, and sums of a few still fit.
inline int64_t capped_product(int64_t a, int64_t b) {
    constexpr int64_t kMost = int64_t{1} << 60;
    int64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) || product > kMost ? kMost : product;
}

struct Window {
    static constexpr int kAxes = 3;
    using Sizes = std::array<int64_t, kAxes>;

    int axes = 2;  // the real number of axes
    Sizes in{1, 1, 1}, kernel{1, 1, 1}, out{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1};
    Sizes before{0, 0, 0}, after{0, 0, 0};  // padding

    int first() const { return kAxes - axes; }
    // Extent of the dilated kernel.
    int64_t reach(int axis) const {
        auto i = static_cast<size_t>(axis);
        return capped_product(dilation[i], kernel[i] - 1) + 1;
    }
    int64_t in_size() const { return product(in); }
    int64_t out_size() const { return product(out); }
    int64_t kernel_size() const { return product(kernel); }
    static int64_t product(const Sizes& s) { return capped_product(capped_product(s[0], s[1]), s[2]); }
    // Appends `sizes` of the real axes.
    void append(Shape& shape, const Sizes& sizes) const {
        for (int i = first(); i < kAxes; ++i) shape.push_back(sizes[static_cast<size_t>(i)]);
    }
    // Padding as an attribute: before, after for each real axis.
    Shape padding() const {
        Shape list;
        for (auto i = static_cast<size_t>(first()); i < kAxes; ++i) {
            list.push_back(before[i]);
            list.push_back(after[i]);
        }
        return list;
    }
    Shape attribute(const Sizes& sizes) const {
        Shape list;
        append(list, sizes);
        return list;
    }
};

// The kernel positions k for which start + k * dilation lies in [0, size).
struct KernelRange {
    int64_t begin, end;
    KernelRange(int64_t start, int64_t kernel, int64_t dilation, int64_t size)
        : begin(start < 0 ? (-start + dilation - 1) / dilation : 0),
          end(start >= size ? 0 : std::min(kernel, (size - start + dilation - 1) / dilation)) {}
};

// Attribute i, one number for all axes or one per axis, into the last `axes` places; at least `least`.
Window::Sizes window_sizes(const Call& c, size_t i, int axes, int64_t least);
// Attribute i as padding: one number, one per axis, or before and after for each axis.
void window_padding(const Call& c, size_t i, Window& w);
// The spatial sizes of argument i: those of its last `axes` axes.
Window::Sizes spatial_sizes(const Shape& shape, int axes);
// Computes `out` from the other members; with ceil_mode the last window may hang over the end as long as it starts
// inside. Throws when the kernel is larger than the padded input.
void set_window_output(const Call& c, Window& w, bool ceil_mode);
// The type of a result whose sizes come from attributes: refuses sizes that no memory can hold.
Types checked_type(const Call& c, DType dtype, const Shape& shape);

}  // namespace lunaria
