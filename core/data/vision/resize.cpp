// Resizing. Each axis is a list of taps: the pixels of the input that make one pixel of the output, and their weights.
// Rows are resized first, when they are needed, and then mixed.
//
// The rules are those of OpenCV (centres of pixels lie at halves; nothing is smoothed before an image gets smaller), so
// that a network sees what MindSpore shows it; antialias and pil_cubic are those of Pillow, whose filters grow with the
// factor by which an image gets smaller.
#ifdef __SSSE3__
#include <tmmintrin.h>  // SSSE3
#endif

#include <cstring>

#include "core/base/interrupt.h"
#include "core/data/vision/image.h"

namespace lunaria::vision {

namespace {

struct Taps {
    int64_t count = 0;  // of each output
    std::vector<int32_t> from;
    std::vector<float> weights;
};

void add_taps(Taps& taps, int64_t size, int64_t first, const std::vector<double>& weights) {
    for (size_t k = 0; k < weights.size(); ++k) {
        taps.from.push_back(static_cast<int32_t>(std::clamp<int64_t>(first + static_cast<int64_t>(k), 0, size - 1)));
        taps.weights.push_back(static_cast<float>(weights[k]));
    }
}

// The cubic function of Keys with this parameter.
double cubic(double x, double p) {
    x = std::abs(x);
    if (x < 1) return ((p + 2) * x - (p + 3)) * x * x + 1;
    if (x < 2) return ((p * x - 5 * p) * x + 8 * p) * x - 4 * p;
    return 0;
}

double lanczos(double x) {
    if (x == 0) return 1;
    if (std::abs(x) >= 3) return 0;
    const double t = x * M_PI;
    return 3 * std::sin(t) * std::sin(t / 3) / (t * t);
}

Taps nearest_taps(int64_t in, int64_t out) {
    Taps taps{1, {}, {}};
    const double scale = static_cast<double>(in) / static_cast<double>(out);
    for (int64_t i = 0; i < out; ++i)
        add_taps(taps, in, std::min(static_cast<int64_t>(std::floor(static_cast<double>(i) * scale)), in - 1), {1.0});
    return taps;
}

Taps linear_taps(int64_t in, int64_t out) {
    Taps taps{2, {}, {}};
    const double scale = static_cast<double>(in) / static_cast<double>(out);
    for (int64_t i = 0; i < out; ++i) {
        const auto at = static_cast<float>((static_cast<double>(i) + 0.5) * scale - 0.5);
        auto first = static_cast<int64_t>(std::floor(at));
        double share = at - static_cast<float>(first);
        if (first < 0) first = 0, share = 0;
        if (first >= in - 1) first = in - 1, share = 0;
        add_taps(taps, in, first, {1 - share, share});
    }
    return taps;
}

Taps cubic_taps(int64_t in, int64_t out) {
    Taps taps{4, {}, {}};
    const double scale = static_cast<double>(in) / static_cast<double>(out);
    for (int64_t i = 0; i < out; ++i) {
        const auto at = static_cast<float>((static_cast<double>(i) + 0.5) * scale - 0.5);
        const auto first = static_cast<int64_t>(std::floor(at));
        const double t = at - static_cast<float>(first);
        add_taps(taps, in, first - 1, {cubic(1 + t, -0.75), cubic(t, -0.75), cubic(1 - t, -0.75), cubic(2 - t, -0.75)});
    }
    return taps;
}

// The mean over the pixels that the output pixel covers; where the image gets larger, pixels with soft edges.
Taps area_taps(int64_t in, int64_t out) {
    const double scale = static_cast<double>(in) / static_cast<double>(out);
    if (scale < 1) {
        Taps taps{2, {}, {}};
        for (int64_t i = 0; i < out; ++i) {
            auto first = static_cast<int64_t>(std::floor(static_cast<double>(i) * scale));
            double share = static_cast<double>(i + 1) - static_cast<double>(first + 1) / scale;
            share = share <= 0 ? 0 : share - std::floor(share);
            if (first >= in - 1) first = in - 1, share = 0;
            add_taps(taps, in, first, {1 - share, share});
        }
        return taps;
    }
    Taps taps{static_cast<int64_t>(std::ceil(scale)) + 1, {}, {}};
    for (int64_t i = 0; i < out; ++i) {
        const double begin = static_cast<double>(i) * scale, end = std::min(begin + scale, static_cast<double>(in));
        const auto first = static_cast<int64_t>(std::floor(begin));
        std::vector<double> weights(static_cast<size_t>(taps.count));
        for (size_t k = 0; k < weights.size(); ++k) {
            const double left = static_cast<double>(first) + static_cast<double>(k);
            weights[k] = std::max(0.0, std::min(left + 1, end) - std::max(left, begin)) / (end - begin);
        }
        add_taps(taps, in, first, weights);
    }
    return taps;
}

// Pillow: a filter of this half width over the input, wider where the image gets smaller.
template <class Filter>
Taps filter_taps(int64_t in, int64_t out, double radius, const Filter& filter) {
    const double scale = static_cast<double>(in) / static_cast<double>(out), wide = std::max(scale, 1.0);
    const double support = radius * wide;
    Taps taps{static_cast<int64_t>(std::ceil(support)) * 2 + 1, {}, {}};
    for (int64_t i = 0; i < out; ++i) {
        const double centre = (static_cast<double>(i) + 0.5) * scale;
        const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(centre - support + 0.5));
        const int64_t end = std::min(in, static_cast<int64_t>(centre + support + 0.5));
        std::vector<double> weights(static_cast<size_t>(taps.count));
        double sum = 0;
        for (int64_t k = first; k < end; ++k)
            sum += weights[static_cast<size_t>(k - first)] = filter((static_cast<double>(k) - centre + 0.5) / wide);
        for (double& w : weights) w = sum == 0 ? 0 : w / sum;
        add_taps(taps, in, first, weights);
    }
    return taps;
}

Taps taps_of(int64_t in, int64_t out, Inter inter) {
    switch (inter) {
        case Inter::nearest:
            return nearest_taps(in, out);
        case Inter::linear:
            return linear_taps(in, out);
        case Inter::cubic:
            return cubic_taps(in, out);
        case Inter::area:
            return area_taps(in, out);
        case Inter::pil_cubic:
            return filter_taps(in, out, 2, [](double x) { return cubic(x, -0.5); });
        case Inter::antialias:
            return filter_taps(in, out, 3, lanczos);
    }
    return {};
}

template <class T>
void widen(const T* from, float* to, const Taps& taps, int64_t width, int64_t channels) {
    const int32_t* at = taps.from.data();
    const float* weights = taps.weights.data();
    for (int64_t x = 0; x < width; ++x, at += taps.count, weights += taps.count)
        for (int64_t c = 0; c < channels; ++c) {
            float sum = 0;
            for (int64_t k = 0; k < taps.count; ++k) sum += weights[k] * static_cast<float>(from[at[k] * channels + c]);
            to[x * channels + c] = sum;
        }
}

// Rows of the input that were resized, by their numbers: as many as one row of the output needs.
template <class Element>
class WideRows {
  public:
    WideRows(int64_t count, int64_t pitch) : pitch_(pitch), numbers_(static_cast<size_t>(count), -1) {
        rows_.resize(static_cast<size_t>(count * pitch));
    }
    template <class Make>
    const Element* row(int32_t number, const Make& make) {
        const size_t slot = static_cast<size_t>(number) % numbers_.size();
        Element* to = rows_.data() + static_cast<int64_t>(slot) * pitch_;
        if (numbers_[slot] != number) make(to);
        numbers_[slot] = number;
        return to;
    }

  private:
    int64_t pitch_;
    std::vector<int32_t> numbers_;
    std::vector<Element> rows_;
};

template <class T>
void resize_any(const Tensor& image, const Tensor& out, const Taps& columns, const Taps& lines, bool rounds) {
    const Extent e = extent(image), o = extent(out);
    WideRows<float> wide(lines.count, o.pitch());
    std::vector<float> sum(static_cast<size_t>(o.pitch()));
    for (int64_t y = 0; y < o.height; ++y) {
        poll_interrupt();
        std::fill(sum.begin(), sum.end(), 0.0f);
        for (int64_t k = 0; k < lines.count; ++k) {
            const size_t at = static_cast<size_t>(y * lines.count + k);
            const float weight = lines.weights[at];
            if (weight == 0) continue;
            const float* row = wide.row(lines.from[at], [&](float* to) {
                widen(image.data<T>() + lines.from[at] * e.pitch(), to, columns, o.width, o.channels);
                if (rounds)
                    for (int64_t i = 0; i < o.pitch(); ++i) to[i] = static_cast<float>(rounded<T>(to[i]));
            });
            for (int64_t i = 0; i < o.pitch(); ++i) sum[static_cast<size_t>(i)] += weight * row[i];
        }
        T* to = out.data<T>() + y * o.pitch();
        for (int64_t i = 0; i < o.pitch(); ++i) to[i] = rounded<T>(sum[static_cast<size_t>(i)]);
    }
}

// Weights with 11 fractional bits, as OpenCV has them for bytes.
std::vector<int16_t> short_weights(const Taps& taps) {
    std::vector<int16_t> list;
    for (float w : taps.weights) list.push_back(static_cast<int16_t>(std::lrintf(w * 2048)));
    return list;
}

// The source pixels and the weights for a row. A resized value is kept in 16 bits, without its last four, as in OpenCV.
template <int channels>
class Columns {
  public:
    // For rows of `width` pixels.
    Columns(const Taps& taps, int64_t width) : from_(taps.from), weights_(short_weights(taps)) {
        count_ = static_cast<int64_t>(from_.size()) / 2;
#ifdef __SSSE3__
        if constexpr (channels == 3) plan(width);
#else
        (void)width;
#endif
    }
    void widen(const uint8_t* from, int16_t* to) const {
        make(from, to, 0, first_);
#ifdef __SSSE3__
        if constexpr (channels == 3) make_fours(from, to);
#endif
        make(from, to, last_, count_);
    }

  private:
    void make(const uint8_t* from, int16_t* to, int64_t begin, int64_t end) const {
        const int32_t* at = from_.data();
        const int16_t* weights = weights_.data();
        for (int64_t x = begin; x < end; ++x) {
            const uint8_t *left = from + at[2 * x] * channels, *right = from + at[2 * x + 1] * channels;
            for (int c = 0; c < channels; ++c)
                to[x * channels + c] =
                    static_cast<int16_t>((left[c] * weights[2 * x] + right[c] * weights[2 * x + 1]) >> 4);
        }
    }
#ifdef __SSSE3__
    // Pixels of three bytes are made in groups of four where the right neighbours are next to the left ones and 8 bytes
    // can be read: at the edges both neighbours may be the same.
    void plan(int64_t width) {
        while (first_ < count_ && from_[at(first_) + 1] == from_[at(first_)]) ++first_;
        last_ = first_;
        while (last_ < count_ && from_[at(last_) + 1] == from_[at(last_)] + 1 &&
               3 * int64_t{from_[at(last_)]} + 8 <= 3 * width)
            ++last_;
        last_ -= (last_ - first_) % 4;
        for (int64_t x = first_; x < last_; ++x) {
            offsets_.push_back(3 * from_[at(x)]);
            for (int c = 0; c < 3; ++c) {
                pairs_.push_back(weights_[at(x)]);
                pairs_.push_back(weights_[at(x) + 1]);
            }
        }
    }
    static size_t at(int64_t x) { return 2 * static_cast<size_t>(x); }
    void make_fours(const uint8_t* from, int16_t* to) const {
        // Left and right of each colour as 16 bits beside each other: red 0, green 0, blue 0, red 1; green 1, ...
        const __m128i order0 = _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, 8, -1, 11, -1);
        const __m128i order1 = _mm_setr_epi8(1, -1, 4, -1, 2, -1, 5, -1, 8, -1, 11, -1, 9, -1, 12, -1);
        const __m128i order2 = _mm_setr_epi8(2, -1, 5, -1, 8, -1, 11, -1, 9, -1, 12, -1, 10, -1, 13, -1);
        const int32_t* offset = offsets_.data();
        const auto* weights = reinterpret_cast<const __m128i*>(pairs_.data());
        const auto pixel = [&](int i) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + offset[i])); };
        const auto sum = [&](__m128i bytes, __m128i order, int i) {
            return _mm_srai_epi32(_mm_madd_epi16(_mm_shuffle_epi8(bytes, order), _mm_loadu_si128(weights + i)), 4);
        };
        for (int64_t x = first_; x < last_; x += 4, offset += 4, weights += 3) {
            const __m128i p0 = pixel(0), p1 = pixel(1), p2 = pixel(2), p3 = pixel(3);
            const __m128i a = sum(_mm_unpacklo_epi64(p0, p1), order0, 0);
            const __m128i b = sum(_mm_unpacklo_epi64(p1, p2), order1, 1);
            const __m128i c = sum(_mm_unpacklo_epi64(p2, p3), order2, 2);
            _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 3 * x), _mm_packs_epi32(a, b));
            _mm_storel_epi64(reinterpret_cast<__m128i*>(to + 3 * x + 8), _mm_packs_epi32(c, c));
        }
    }
    std::vector<int32_t> offsets_;  // of the left neighbours, in bytes
    std::vector<int16_t> pairs_;    // the weights of left and right, once for each colour
#endif
    std::vector<int32_t> from_;
    std::vector<int16_t> weights_;
    int64_t count_ = 0, first_ = 0, last_ = 0;
};

void mix_rows(const int16_t* upper, const int16_t* lower, int16_t above, int16_t below, uint8_t* to, int64_t count) {
    int64_t i = 0;
#ifdef __SSSE3__
    const __m128i a = _mm_set1_epi16(above), b = _mm_set1_epi16(below), half = _mm_set1_epi16(2);
    const auto eight = [&](int64_t at) {
        const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(upper + at));
        const __m128i y = _mm_loadu_si128(reinterpret_cast<const __m128i*>(lower + at));
        return _mm_srai_epi16(_mm_add_epi16(_mm_add_epi16(_mm_mulhi_epi16(x, a), _mm_mulhi_epi16(y, b)), half), 2);
    };
    for (; i + 16 <= count; i += 16)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm_packus_epi16(eight(i), eight(i + 8)));
#endif
    for (; i < count; ++i)
        to[i] = static_cast<uint8_t>((((above * upper[i]) >> 16) + ((below * lower[i]) >> 16) + 2) >> 2);
}

template <int channels>
void resize_linear_bytes(const Tensor& image, const Tensor& out, const Taps& columns, const Taps& lines) {
    const Extent o = extent(out);
    const int64_t pitch = image.strides()[0];
    const Columns<channels> across(columns, image.dim(1));
    const std::vector<int16_t> down = short_weights(lines);
    WideRows<int16_t> wide(2, o.pitch());
    for (int64_t y = 0; y < o.height; ++y) {
        poll_interrupt();
        const int16_t* rows[2];
        for (size_t k = 0; k < 2; ++k) {
            const int32_t number = lines.from[static_cast<size_t>(2 * y) + k];
            rows[k] = wide.row(number, [&](int16_t* to) { across.widen(image.data<uint8_t>() + number * pitch, to); });
        }
        mix_rows(rows[0], rows[1], down[static_cast<size_t>(2 * y)], down[static_cast<size_t>(2 * y) + 1],
                 out.data<uint8_t>() + y * o.pitch(), o.pitch());
    }
}

template <class T>
void pick(const Tensor& image, const Tensor& out, const Taps& columns, const Taps& lines) {
    const Extent e = extent(image), o = extent(out);
    for (int64_t y = 0; y < o.height; ++y) {
        const T* from = image.data<T>() + lines.from[static_cast<size_t>(y)] * e.pitch();
        T* to = out.data<T>() + y * o.pitch();
        for (int64_t x = 0; x < o.width; ++x)
            for (int64_t c = 0; c < e.channels; ++c)
                to[x * e.channels + c] = from[columns.from[static_cast<size_t>(x)] * e.channels + c];
    }
}

}  // namespace

Tensor resize(const Arguments& a, const Tensor& image, int64_t height, int64_t width, Inter inter) {
    const Extent e = extent(image);
    if (e.height == height && e.width == width) return image.contiguous();
    if (image.dtype() != DType::u8 && image.dtype() != DType::f32) {
        if (is_complex(image.dtype())) check_pixels(image, a.where);
        return resize(a, image.cast(DType::f32), height, width, inter).cast(image.dtype());
    }
    const Tensor out = empty_image(a, image, height, width);
    // OpenCV interpolates where one axis gets larger, whatever the other axis does.
    const bool soft = inter == Inter::area && (e.height < height || e.width < width);
    const auto taps = [&](int64_t from, int64_t to) {
        return soft && from >= to && from != to ? area_taps(from, to) : taps_of(from, to, inter);
    };
    const Taps columns = taps(e.width, width), lines = taps(e.height, height);
    if (inter == Inter::linear && image.dtype() == DType::u8 && (e.channels == 3 || e.channels == 1)) {
        (e.channels == 3 ? resize_linear_bytes<3> : resize_linear_bytes<1>)(image, out, columns, lines);
        return out;
    }
    if (!image.is_contiguous()) return resize(a, image.contiguous(), height, width, inter);
    if (inter == Inter::nearest) {
        for_pixels(image, [&](auto kind) {
            pick<decltype(kind)>(image, out, columns, lines);
            return out;
        });
        return out;
    }
    const bool rounds = inter == Inter::pil_cubic || inter == Inter::antialias;
    return for_pixels(image, [&](auto kind) {
        resize_any<decltype(kind)>(image, out, columns, lines, rounds);
        return out;
    });
}

}  // namespace lunaria::vision
