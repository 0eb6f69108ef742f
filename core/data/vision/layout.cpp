// The places of pixels, and their numbering: crops, borders, mirrors, axes, scaling to floats.
#ifdef __SSSE3__
#include <tmmintrin.h>
#endif

#include <cstring>

#include "core/data/place_in_batch.h"
#include "core/data/vision/image.h"
#include "core/operator/infer.h"

namespace lunaria::vision {

Tensor crop(const Arguments& a, const Tensor& image, int64_t top, int64_t left, int64_t height, int64_t width) {
    const Extent e = extent(image);
    if (top < 0 || left < 0 || height <= 0 || width <= 0 || height > e.height || width > e.width ||
        top > e.height - height || left > e.width - width)
        throw value_error(a.where, str("the part of ", height, " x ", width, " pixels at (", top, ", ", left,
                                       ") is not within the image, which has ", e.height, " x ", e.width));
    const Tensor out = Tensor::empty(image.dtype(), e.shape(height, width));
    const size_t pixel = static_cast<size_t>(e.channels) * size_of(image.dtype());
    const char* from = image.data<char>() + static_cast<size_t>(top * e.width + left) * pixel;
    char* to = out.data<char>();
    for (int64_t y = 0; y < height; ++y) {
        std::memcpy(to, from, static_cast<size_t>(width) * pixel);
        to += static_cast<size_t>(width) * pixel;
        from += static_cast<size_t>(e.width) * pixel;
    }
    return out;
}

namespace {

// The column or row of the image for position `at` of a bordered image whose image part has `size` of them; -1: none.
int64_t mirrored(int64_t at, int64_t size, Border border) {
    if (at >= 0 && at < size) return at;
    switch (border) {
        case Border::constant:
            return -1;
        case Border::edge:
            return at < 0 ? 0 : size - 1;
        case Border::reflect: {
            if (size == 1) return 0;
            const int64_t period = 2 * size - 2, r = ((at % period) + period) % period;
            return r < size ? r : period - r;
        }
        case Border::symmetric: {
            const int64_t period = 2 * size, r = ((at % period) + period) % period;
            return r < size ? r : period - 1 - r;
        }
    }
    return -1;
}

// A value as the bytes of an element.
size_t element_bytes(DType dtype, double value, char* to) {
    const Tensor one = Tensor::scalar(dtype, value);
    std::memcpy(to, one.raw(), size_of(dtype));
    return size_of(dtype);
}

// One pixel of this colour.
std::vector<char> pixel_of(const Tensor& image, const double* fill) {
    const Extent e = extent(image);
    std::vector<char> pixel(static_cast<size_t>(e.channels) * size_of(image.dtype()));
    char* to = pixel.data();
    // Zero is zero bytes in every dtype.
    for (int64_t c = 0; c < e.channels; ++c) {
        const double value = fill[c < 3 ? c : 2];
        to += value == 0 ? size_of(image.dtype()) : element_bytes(image.dtype(), value, to);
    }
    return pixel;
}

void paint(char* row, int64_t count, const std::vector<char>& pixel) {
    if (pixel.size() == 1) {
        std::memset(row, pixel[0], static_cast<size_t>(count));
        return;
    }
    for (int64_t x = 0; x < count; ++x, row += pixel.size()) std::memcpy(row, pixel.data(), pixel.size());
}

}  // namespace

Tensor pad(const Arguments& a, const Tensor& image, const Padding& p) {
    const Extent e = extent(image);
    if (p.left < 0 || p.right < 0 || p.top < 0 || p.bottom < 0)
        throw value_error(a.where, "the padding must not be negative");
    const Tensor out = empty_image(a, image, e.height + p.top + p.bottom, e.width + p.left + p.right);
    const Extent o = extent(out);
    const size_t size = static_cast<size_t>(e.channels) * size_of(image.dtype());
    const std::vector<char> fill = pixel_of(image, p.fill);
    char* to = out.data<char>();
    for (int64_t y = 0; y < o.height; ++y, to += static_cast<size_t>(o.width) * size) {
        const int64_t source = mirrored(y - p.top, e.height, p.border);
        if (source < 0) {
            paint(to, o.width, fill);
            continue;
        }
        const char* from = image.data<char>() + static_cast<size_t>(source * e.width) * size;
        std::memcpy(to + static_cast<size_t>(p.left) * size, from, static_cast<size_t>(e.width) * size);
        const auto side = [&](int64_t begin, int64_t end) {
            if (p.border == Border::constant) return paint(to + static_cast<size_t>(begin) * size, end - begin, fill);
            for (int64_t x = begin; x < end; ++x) {
                const int64_t column = mirrored(x - p.left, e.width, p.border);
                std::memcpy(to + static_cast<size_t>(x) * size, from + static_cast<size_t>(column) * size, size);
            }
        };
        side(0, p.left);
        side(p.left + e.width, o.width);
    }
    return out;
}

namespace {

// Reverses the bytes of each pixel of three bytes.
void mirror_pixels(const char* from, char* to, int64_t width) {
    int64_t x = 0;
#ifdef __SSSE3__
    // Handles five pixels at once. It reads one byte before them and writes one byte past the result, which the next
    // step overwrites.
    const __m128i order = _mm_setr_epi8(13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3, 0);
    for (; 3 * (width - x) >= 19; x += 5) {
        const char* source = from + 3 * (width - x) - 16;
        const __m128i pixels = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 3 * x), _mm_shuffle_epi8(pixels, order));
    }
#endif
    for (; x < width; ++x) std::memcpy(to + 3 * x, from + 3 * (width - 1 - x), 3);
}

}  // namespace

Tensor flip(const Tensor& image, bool horizontal) {
    const Extent e = extent(image);
    const Tensor out = Tensor::empty(image.dtype(), image.shape());
    const size_t pixel = static_cast<size_t>(e.channels) * size_of(image.dtype());
    const size_t row = static_cast<size_t>(e.width) * pixel;
    for (int64_t y = 0; y < e.height; ++y) {
        char* to = out.data<char>() + static_cast<size_t>(y) * row;
        const char* from = image.data<char>() + static_cast<size_t>(horizontal ? y : e.height - 1 - y) * row;
        if (!horizontal) {
            std::memcpy(to, from, row);
        } else if (pixel == 3) {
            mirror_pixels(from, to, e.width);
        } else {
            for (int64_t x = 0; x < e.width; ++x)
                std::memcpy(to + static_cast<size_t>(x) * pixel, from + static_cast<size_t>(e.width - 1 - x) * pixel,
                            pixel);
        }
    }
    return out;
}

namespace {

// Planes of channels; an image without an axis of channels gets one.
template <class In, class Out, class Change>
Tensor planes(const Tensor& image, const Change& change) {
    const Extent e = extent(image);
    const Tensor out = data::result_tensor(dtype_of<Out>(), {e.channels, e.height, e.width});
    const int64_t count = e.height * e.width;
    const In* from = image.data<In>();
    Out* to = out.data<Out>();
    if (e.channels == 3) {
        Out *r = to, *g = to + count, *b = to + 2 * count;
        for (int64_t i = 0; i < count; ++i) {
            r[i] = change(from[3 * i], 0);
            g[i] = change(from[3 * i + 1], 1);
            b[i] = change(from[3 * i + 2], 2);
        }
        return out;
    }
    for (int64_t c = 0; c < e.channels; ++c)
        for (int64_t i = 0; i < count; ++i)
            to[c * count + i] = change(from[i * e.channels + c], static_cast<size_t>(c));
    return out;
}

Tensor as_planes(const Tensor& image) {
    return visit_dtype(image.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_same_v<T, bool>)
            return planes<uint8_t, uint8_t>(image, [](uint8_t x, size_t) { return x; });
        else
            return planes<T, T>(image, [](T x, size_t) { return x; });
    });
}

void run_hwc2chw(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) {
        const Tensor out = as_planes(image);
        if (image.dtype() != DType::boolean) return out;
        const Tensor truth = Tensor::empty(DType::boolean, out.shape());
        std::memcpy(truth.raw(), out.raw(), out.nbytes());
        return truth;
    });
}

void run_crop(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) {
        return crop(a, image, a.integer(0), a.integer(1), a.integer(2), a.integer(3));
    });
}

// Parts outside of the image are filled with zeros.
Tensor center_crop(const Arguments& a, const Tensor& image, int64_t height, int64_t width) {
    const Extent e = extent(image);
    if (height <= e.height && width <= e.width)
        return crop(a, image, (e.height - height) / 2, (e.width - width) / 2, height, width);
    const int64_t down = std::max<int64_t>(height - e.height, 0), right = std::max<int64_t>(width - e.width, 0);
    const int64_t top = (down + 1) / 2, left = (right + 1) / 2;
    const Tensor wide = pad(a, image, {left, top, right - left, down - top, Border::constant, {0, 0, 0}});
    const Extent w = extent(wide);
    return crop(a, wide, (w.height - height) / 2, (w.width - width) / 2, height, width);
}

void run_center_crop(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) { return center_crop(a, image, a.integer(0), a.integer(1)); });
}

template <bool horizontal>
void run_flip(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) { return flip(image, horizontal); });
}

template <bool horizontal>
void run_random_flip(Row& row, const Arguments& a, RowDraws& draws) {
    if (draws.chance(a.number(0))) run_flip<horizontal>(row, a, draws);
}

Padding padding_of(const Arguments& a) {
    return {a.integer(0),
            a.integer(1),
            a.integer(2),
            a.integer(3),
            static_cast<Border>(a.integer(4)),
            {a.number(5), a.number(6), a.number(7)}};
}

void run_pad(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) { return pad(a, image, padding_of(a)); });
}

// height, width, top, left (negative: in the middle), border, fill
void run_pad_to_size(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) {
        const Extent e = extent(image);
        const int64_t down = a.integer(0) - e.height, right = a.integer(1) - e.width;
        const int64_t top = a.integer(2) < 0 ? down / 2 : a.integer(2);
        const int64_t left = a.integer(3) < 0 ? right / 2 : a.integer(3);
        if (down < 0 || right < 0 || top > down || left > right)
            throw value_error(
                a.where, str("size (", a.integer(0), ", ", a.integer(1), ") has no place for an image of ", e.height,
                             " x ", e.width, " pixels at this offset"));
        return pad(a, image,
                   {left,
                    top,
                    right - left,
                    down - top,
                    static_cast<Border>(a.integer(4)),
                    {a.number(5), a.number(6), a.number(7)}});
    });
}

// Paints a rectangle, which may stick out.
void paint_part(const Tensor& image, int64_t top, int64_t left, int64_t height, int64_t width,
                const std::vector<char>& pixel) {
    const Extent e = extent(image);
    const int64_t bottom = std::min(e.height, top + height), right = std::min(e.width, left + width);
    top = std::max<int64_t>(top, 0);
    left = std::max<int64_t>(left, 0);
    for (int64_t y = top; y < bottom && left < right; ++y)
        paint(image.data<char>() + static_cast<size_t>(y * e.width + left) * pixel.size(), right - left, pixel);
}

void run_erase(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) {
        const Tensor out = image.copy();
        const double fill[3] = {a.number(4), a.number(5), a.number(6)};
        paint_part(out, a.integer(0), a.integer(1), a.integer(2), a.integer(3), pixel_of(image, fill));
        return out;
    });
}

// A tensor of planes seen as rows of pixels, and back.
Tensor pixels_of_planes(const Tensor& t, const Arguments& a) {
    if (t.rank() != 3) throw shape_error(a.where, "an image (channels, height, width) is expected");
    const Tensor turned =
        t.view({t.dim(1), t.dim(2), t.dim(0)}, Strides{t.strides()[1], t.strides()[2], t.strides()[0]});
    return turned.contiguous();
}

Tensor planes_of_pixels(const Tensor& t) {
    return t.view({t.dim(2), t.dim(0), t.dim(1)}, Strides{t.strides()[2], t.strides()[0], t.strides()[1]}).contiguous();
}

// length, patches, is_hwc
void run_cut_out(Row& row, const Arguments& a, RowDraws& draws) {
    each_image(row, a, [&](const Tensor& given) {
        const bool hwc = a.flag(2);
        const Tensor image = hwc ? given.copy() : pixels_of_planes(given, a);
        const Extent e = extent(image);
        const int64_t length = a.integer(0);
        if (length > e.height || length > e.width)
            throw value_error(a.where,
                              str("length ", length, " is larger than the image of ", e.height, " x ", e.width));
        const double black[3] = {0, 0, 0};
        const std::vector<char> pixel = pixel_of(image, black);
        for (int64_t i = 0; i < a.integer(1); ++i) {
            const int64_t top = draws.below(e.height - length + 1), left = draws.below(e.width - length + 1);
            paint_part(image, top, left, length, length, pixel);
        }
        return hwc ? image : planes_of_pixels(image);
    });
}

// probability, scale low, scale high, ratio low, ratio high, attempts, random colours, value r, g, b. Images are
// (channels, height, width), as ToTensor gives them.
void run_random_erasing(Row& row, const Arguments& a, RowDraws& draws) {
    if (!draws.chance(a.number(0))) return;
    each_image(row, a, [&](const Tensor& given) {
        Tensor image = pixels_of_planes(given, a);
        const Extent e = extent(image);
        for (int64_t i = 0; i < a.integer(5); ++i) {
            const double area = static_cast<double>(e.height * e.width) * draws.between(a.number(1), a.number(2));
            const double ratio = std::exp(draws.between(std::log(a.number(3)), std::log(a.number(4))));
            const auto h = static_cast<int64_t>(std::lround(std::sqrt(area * ratio)));
            const auto w = static_cast<int64_t>(std::lround(std::sqrt(area / ratio)));
            if (h >= e.height || w >= e.width || h <= 0 || w <= 0) continue;
            const int64_t top = draws.below(e.height - h + 1), left = draws.below(e.width - w + 1);
            const double fill[3] = {a.number(7), a.number(8), a.number(9)};
            if (!a.flag(6)) {
                paint_part(image, top, left, h, w, pixel_of(image, fill));
            } else {
                for (int64_t y = top; y < top + h; ++y)
                    for (int64_t x = left * e.channels; x < (left + w) * e.channels; ++x)
                        image.set_at(y * e.pitch() + x, draws.normal());
            }
            break;
        }
        return planes_of_pixels(image);
    });
}

// Factors and offsets by channel: x becomes x * factor + offset.
struct Affine {
    std::vector<float> factor, offset;
};

// is_hwc, then mean and deviation of each channel
Affine normalisation(const Arguments& a, size_t first) {
    Affine n;
    const size_t channels = (a.numbers.size() - first) / 2;
    for (size_t c = 0; c < channels; ++c) {
        const double mean = a.number(first + c), deviation = a.number(first + channels + c);
        n.factor.push_back(static_cast<float>(1 / deviation));
        n.offset.push_back(static_cast<float>(-mean / deviation));
    }
    return n;
}

template <class T>
void normalise_pixels(const T* from, float* to, int64_t pixels, int64_t channels, const Affine& n) {
    if (channels == 1) {
        const float factor = n.factor[0], offset = n.offset[0];
        for (int64_t i = 0; i < pixels; ++i) to[i] = static_cast<float>(from[i]) * factor + offset;
        return;
    }
    if (channels == 3) {
        const float f0 = n.factor[0], f1 = n.factor[1], f2 = n.factor[2];
        const float o0 = n.offset[0], o1 = n.offset[1], o2 = n.offset[2];
        for (int64_t i = 0; i < 3 * pixels; i += 3) {
            to[i] = static_cast<float>(from[i]) * f0 + o0;
            to[i + 1] = static_cast<float>(from[i + 1]) * f1 + o1;
            to[i + 2] = static_cast<float>(from[i + 2]) * f2 + o2;
        }
        return;
    }
    for (int64_t i = 0; i < pixels; ++i)
        for (int64_t c = 0; c < channels; ++c)
            to[i * channels + c] = static_cast<float>(from[i * channels + c]) * n.factor[static_cast<size_t>(c)] +
                                   n.offset[static_cast<size_t>(c)];
}

Affine for_channels(const Arguments& a, Affine n, int64_t channels) {
    if (n.factor.size() == 1) {
        n.factor.resize(static_cast<size_t>(channels), n.factor[0]);
        n.offset.resize(static_cast<size_t>(channels), n.offset[0]);
    }
    if (static_cast<int64_t>(n.factor.size()) != channels)
        throw value_error(a.where,
                          str("mean has ", n.factor.size(), " numbers for an image of ", channels, " channels"))
            .hint("is_hwc = false is for images (channels, height, width)");
    return n;
}

Tensor plain_pixels(const Tensor& image) {
    return image.dtype() == DType::u8 || image.dtype() == DType::f32 ? image : image.cast(DType::f32);
}

Tensor normalised(const Arguments& a, const Tensor& given) {
    const Tensor image = plain_pixels(given);
    const Tensor out = data::result_tensor(DType::f32, image.shape());
    const bool hwc = a.flag(0);
    const int64_t channels = image.rank() == 2 ? 1 : image.dim(hwc ? 2 : 0);
    const Affine n = for_channels(a, normalisation(a, 1), channels);
    for_pixels(image, [&](auto kind) {
        using T = decltype(kind);
        const T* from = image.data<T>();
        float* to = out.data<float>();
        if (hwc) {
            normalise_pixels(from, to, image.size() / channels, channels, n);
            return out;
        }
        const int64_t plane = image.size() / channels;
        for (int64_t c = 0; c < channels; ++c)
            normalise_pixels(from + c * plane, to + c * plane, plane, 1,
                             {{n.factor[static_cast<size_t>(c)]}, {n.offset[static_cast<size_t>(c)]}});
        return out;
    });
    return out;
}

void run_normalize(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) { return normalised(a, image); });
}

// Bytes of three channels as normalised planes.
void normalise_into_planes(const uint8_t* from, float* to, int64_t count, const Affine& n) {
    int64_t i = 0;
#ifdef __SSSE3__
    __m128 factor[3], offset[3];
    __m128i order[3];
    for (int c = 0; c < 3; ++c) {
        const auto at = static_cast<char>(c);
        order[c] = _mm_setr_epi8(at, -1, -1, -1, static_cast<char>(at + 3), -1, -1, -1, static_cast<char>(at + 6), -1,
                                 -1, -1, static_cast<char>(at + 9), -1, -1, -1);
        factor[c] = _mm_set1_ps(n.factor[static_cast<size_t>(c)]);
        offset[c] = _mm_set1_ps(n.offset[static_cast<size_t>(c)]);
    }
    // Takes four pixels of the 16 bytes that are read.
    for (; 3 * (count - i) >= 16; i += 4) {
        const __m128i pixels = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 3 * i));
        for (int c = 0; c < 3; ++c) {
            const __m128 x = _mm_cvtepi32_ps(_mm_shuffle_epi8(pixels, order[c]));
            _mm_storeu_ps(to + c * count + i, _mm_add_ps(_mm_mul_ps(x, factor[c]), offset[c]));
        }
    }
#endif
    for (int64_t k = i; k < count; ++k)
        for (int64_t c = 0; c < 3; ++c)
            to[c * count + k] = static_cast<float>(from[3 * k + c]) * n.factor[static_cast<size_t>(c)] +
                                n.offset[static_cast<size_t>(c)];
}

// Normalize and HWC2CHW in one pass.
void run_normalize_planes(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& given) {
        const Tensor image = plain_pixels(given);
        const Extent e = extent(image);
        const Affine n = for_channels(a, normalisation(a, 1), e.channels);
        if (e.channels == 1)
            return for_pixels(image, [&](auto kind) {
                const Tensor out = data::result_tensor(DType::f32, {1, e.height, e.width});
                normalise_pixels(image.data<decltype(kind)>(), out.data<float>(), image.size(), 1, n);
                return out;
            });
        if (image.dtype() == DType::u8 && e.channels == 3) {
            const Tensor out = data::result_tensor(DType::f32, {3, image.dim(0), image.dim(1)});
            normalise_into_planes(image.data<uint8_t>(), out.data<float>(), image.dim(0) * image.dim(1), n);
            return out;
        }
        const auto change = [&](auto x, size_t c) { return static_cast<float>(x) * n.factor[c] + n.offset[c]; };
        return image.dtype() == DType::u8 ? planes<uint8_t, float>(image, change) : planes<float, float>(image, change);
    });
}

// float16, is_hwc, ...: a channel of zeros is added at the end.
void run_normalize_pad(Row& row, const Arguments& a, RowDraws&) {
    Arguments plain{a.where, {a.numbers.begin() + 1, a.numbers.end()}, {}, {}, {}, {}, {}};
    each_image(row, a, [&](const Tensor& image) {
        const bool hwc = a.flag(1);
        Tensor flat = normalised(plain, image);
        if (flat.rank() == 2)
            flat = flat.reshaped(hwc ? Shape{flat.dim(0), flat.dim(1), 1} : Shape{1, flat.dim(0), flat.dim(1)});
        Shape shape = flat.shape();
        ++shape[hwc ? 2 : 0];
        const Tensor out = Tensor::zeros(DType::f32, shape);
        copy_elements(flat, out.view(flat.shape(), out.strides()));
        return a.flag(0) ? out.cast(DType::f16) : out;
    });
}

void run_rescale(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& given) {
        const Tensor image = plain_pixels(given), out = Tensor::empty(DType::f32, image.shape());
        return for_pixels(image, [&](auto kind) {
            using T = decltype(kind);
            const float scale = static_cast<float>(a.number(0)), shift = static_cast<float>(a.number(1));
            const T* from = image.data<T>();
            float* to = out.data<float>();
            for (int64_t i = 0, n = image.size(); i < n; ++i) to[i] = static_cast<float>(from[i]) * scale + shift;
            return out;
        });
    });
}

// Planes of floats, bytes as 0 .. 1.
void run_to_tensor(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& given) {
        const Tensor image = plain_pixels(given);
        const Tensor out =
            image.dtype() == DType::u8
                ? planes<uint8_t, float>(image, [](uint8_t x, size_t) { return static_cast<float>(x) / 255.0f; })
                : planes<float, float>(image, [](float x, size_t) { return x; });
        return a.texts.empty() ? out : out.cast(*parse_dtype(a.texts[0]));
    });
}

template <int count>
size_t copies(const Arguments& a, size_t inputs) {
    if (inputs != 1) throw argument_error(a.where, str("one image is expected, got ", inputs, " columns"));
    return count;
}

void five_crops(Row& row, const Arguments& a, const Tensor& image) {
    const Extent e = extent(image);
    const int64_t h = a.integer(0), w = a.integer(1);
    if (h > e.height || w > e.width)
        throw value_error(a.where,
                          str("size (", h, ", ", w, ") is larger than the image of ", e.height, " x ", e.width));
    row.emplace_back(crop(a, image, 0, 0, h, w));
    row.emplace_back(crop(a, image, 0, e.width - w, h, w));
    row.emplace_back(crop(a, image, e.height - h, 0, h, w));
    row.emplace_back(crop(a, image, e.height - h, e.width - w, h, w));
    row.emplace_back(center_crop(a, image, h, w));
}

Tensor only_image(const Row& row, const Arguments& a) {
    copies<1>(a, row.size());
    const Tensor image = image_of(row[0], a.where);
    if (image.rank() > 3) throw shape_error(a.where, "one image is expected, got a batch");
    return image;
}

void run_five_crop(Row& row, const Arguments& a, RowDraws&) {
    const Tensor image = only_image(row, a);
    row.clear();
    five_crops(row, a, image);
}

// height, width, vertical
void run_ten_crop(Row& row, const Arguments& a, RowDraws&) {
    const Tensor image = only_image(row, a);
    row.clear();
    five_crops(row, a, image);
    five_crops(row, a, flip(image, !a.flag(2)));
}

// rows, columns, drop, fill
void run_slice_patches(Row& row, const Arguments& a, RowDraws&) {
    Tensor image = only_image(row, a);
    const Extent e = extent(image);
    const int64_t rows = a.integer(0), columns = a.integer(1);
    if (rows > e.height || columns > e.width)
        throw value_error(a.where, str("an image of ", e.height, " x ", e.width, " pixels has no ", rows, " x ",
                                       columns, " patches"));
    const int64_t down = (rows - e.height % rows) % rows, right = (columns - e.width % columns) % columns;
    if (!a.flag(2) && (down || right))
        image = pad(a, image, {0, 0, right, down, Border::constant, {a.number(3), a.number(3), a.number(3)}});
    const int64_t h = extent(image).height / rows, w = extent(image).width / columns;
    row.clear();
    for (int64_t y = 0; y < rows; ++y)
        for (int64_t x = 0; x < columns; ++x) row.emplace_back(crop(a, image, y * h, x * w, h, w));
}

size_t patches(const Arguments& a, size_t inputs) {
    copies<1>(a, inputs);
    return static_cast<size_t>(a.integer(0) * a.integer(1));
}

// Subtracts the mean from a row of width * height * channels numbers and multiplies the row by the matrix.
void run_linear(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) {
        const Tensor matrix = a.tensors[0].cast(DType::f64).contiguous(),
                     mean = a.tensors[1].cast(DType::f64).contiguous();
        const int64_t n = image.size();
        if (matrix.rank() != 2 || matrix.dim(0) != n || matrix.dim(1) != n || mean.size() != n)
            throw shape_error(a.where, str("the image has ", n, " numbers: the matrix must be (", n, ", ", n,
                                           ") and the mean have ", n, ", got ", matrix.shape(), " and ", mean.shape()));
        const Tensor x = image.cast(DType::f64).contiguous(), out = Tensor::zeros(DType::f64, image.shape());
        for (int64_t i = 0; i < n; ++i) {
            const double centred = x.data<double>()[i] - mean.data<double>()[i];
            const double* weights = matrix.data<double>() + i * n;
            for (int64_t j = 0; j < n; ++j) out.data<double>()[j] += centred * weights[j];
        }
        return out.cast(is_float(image.dtype()) ? image.dtype() : DType::f32);
    });
}

}  // namespace

}  // namespace lunaria::vision

namespace lunaria::transforms {

std::span<const Entry> layout_entries() {
    using namespace vision;
    static const Entry entries[] = {
        {"hwc2chw", 0, run_hwc2chw},
        {"crop", 4, run_crop},
        {"center_crop", 2, run_center_crop},
        {"horizontal_flip", 0, run_flip<true>},
        {"vertical_flip", 0, run_flip<false>},
        {"random_horizontal_flip", 1, run_random_flip<true>},
        {"random_vertical_flip", 1, run_random_flip<false>},
        {"pad", 8, run_pad},
        {"pad_to_size", 8, run_pad_to_size},
        {"erase", 7, run_erase},
        {"cut_out", 3, run_cut_out},
        {"random_erasing", 10, run_random_erasing},
        {"normalize", 3, run_normalize},
        {"normalize_planes", 3, run_normalize_planes},
        {"normalize_pad", 4, run_normalize_pad},
        {"rescale", 2, run_rescale},
        {"to_tensor", 0, run_to_tensor},
        {"five_crop", 2, run_five_crop, 0, copies<5>},
        {"ten_crop", 3, run_ten_crop, 0, copies<10>},
        {"slice_patches", 4, run_slice_patches, 0, patches},
        {"linear_transformation", 0, run_linear, 2},
    };
    return entries;
}

}  // namespace lunaria::transforms
