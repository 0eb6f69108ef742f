// Images as the kernels see them: dense tensors (height, width) or (height, width, channels).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/data/transforms/step.h"

namespace lunaria::vision {

using transforms::Arguments;
using transforms::Row;
using transforms::RowDraws;

// Images with rows of more than 2^31 pixels are refused, so that products of sizes stay within 64 bits.
inline constexpr int64_t kMostPixels = int64_t{1} << 31;

struct Extent {
    int64_t height, width, channels;
    bool flat;  // no axis of channels
    int64_t pitch() const { return width * channels; }
    Shape shape(int64_t h, int64_t w) const { return flat ? Shape{h, w} : Shape{h, w, channels}; }
};

inline Extent extent(const Tensor& t) {
    return t.rank() == 2 ? Extent{t.dim(0), t.dim(1), 1, true} : Extent{t.dim(0), t.dim(1), t.dim(2), false};
}

// The tensor in a value, made dense; throws when it is no image (or batch of images: more axes in front).
Tensor image_of(const Value& value, std::string_view where);
// An image for a result, which may have no pixels: throws value_error for sizes that make no image.
Tensor empty_image(const Arguments& a, const Tensor& like, int64_t height, int64_t width);
// Throws unless the elements are uint8 or float32.
void check_pixels(const Tensor& image, std::string_view where);
// Throws unless there are so many channels.
void check_channels(const Tensor& image, std::string_view where, int64_t channels);

// Replaces each image of the row by kernel(image); images of a batch one after the other.
template <class Kernel>
void each_image(Row& row, const Arguments& a, Kernel kernel);

// The nearest integer, halves to the even one, within the type. The addition of 3 * 2^22 leaves the integer in the low
// bits of the float, which loops do for several pixels at once, unlike lrintf.
template <class T>
inline T rounded(float x) {
    if constexpr (std::is_same_v<T, uint8_t>)
        return static_cast<uint8_t>(std::bit_cast<int32_t>(std::min(std::max(x, 0.0f), 255.0f) + 12582912.0f));
    else
        return static_cast<T>(x);
}

// Calls the kernel with T* and the element count for one of the two types of pixels.
template <class Kernel>
Tensor for_pixels(const Tensor& image, const Kernel& kernel) {
    return image.dtype() == DType::u8 ? kernel(uint8_t{}) : kernel(float{});
}

// The place of each image's elements in a batch.
Tensor batch_item(const Tensor& batch, int64_t item);
Tensor stacked(const Tensor& batch, const std::vector<Tensor>& items);
int64_t batch_items(const Tensor& batch);

template <class Kernel>
void each_image(Row& row, const Arguments& a, Kernel kernel) {
    for (Value& value : row) {
        const Tensor image = image_of(value, a.where);
        if (image.rank() <= 3) {
            value = Value(kernel(image));
            continue;
        }
        std::vector<Tensor> items;
        for (int64_t i = 0; i < batch_items(image); ++i) items.push_back(kernel(batch_item(image, i)));
        value = Value(stacked(image, items));
    }
}

// Kinds of interpolation; the numbers are those of MindSpore's enumeration Inter.
enum class Inter { nearest = 0, antialias = 1, linear = 2, cubic = 3, area = 4, pil_cubic = 5 };

// The rows of the image may lie apart, as those of a part do.
Tensor resize(const Arguments& a, const Tensor& image, int64_t height, int64_t width, Inter inter);
Tensor crop(const Arguments& a, const Tensor& image, int64_t top, int64_t left, int64_t height, int64_t width);

enum class Border { constant, edge, reflect, symmetric };
struct Padding {
    int64_t left, top, right, bottom;
    Border border;
    double fill[3];
};
Tensor pad(const Arguments& a, const Tensor& image, const Padding& padding);
Tensor flip(const Tensor& image, bool horizontal);

// The sampling positions of a warp: x and y of the input for each pixel of the output.
struct Matrix {
    double m[9];  // rows; the last one is 0 0 1 of affine ones
};
Matrix inverse(const Matrix& m, std::string_view where);
Tensor warp(const Arguments& a, const Tensor& image, const Matrix& output_to_input, int64_t height, int64_t width,
            Inter inter, const double* fill);

// Tone.
Tensor equalized(const Tensor& image);
Tensor grey(const Tensor& image, std::string_view where);  // (height, width, 1), same dtype
// x * scale + shift, rounded for bytes.
Tensor scaled(const Tensor& image, float scale, float shift);
// x * share + other * (1 - share)
Tensor blended(const Tensor& image, const Tensor& other, float share);

}  // namespace lunaria::vision
