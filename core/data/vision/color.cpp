// Colours: brightness, contrast, saturation, hue, grey images, orders of channels.
#include <array>
#include <numeric>

#include "core/data/vision/image.h"

namespace lunaria::vision {

Tensor scaled(const Tensor& image, float scale, float shift) {
    const Tensor out = Tensor::empty(image.dtype(), image.shape());
    return for_pixels(image, [&](auto kind) {
        using T = decltype(kind);
        const T* from = image.data<T>();
        T* to = out.data<T>();
        for (int64_t i = 0, n = image.size(); i < n; ++i)
            to[i] = rounded<T>(static_cast<float>(from[i]) * scale + shift);
        return out;
    });
}

Tensor blended(const Tensor& image, const Tensor& other, float share) {
    const Tensor out = Tensor::empty(image.dtype(), image.shape());
    return for_pixels(image, [&](auto kind) {
        using T = decltype(kind);
        const T *a = image.data<T>(), *b = other.data<T>();
        T* to = out.data<T>();
        for (int64_t i = 0, n = image.size(); i < n; ++i)
            to[i] = rounded<T>(static_cast<float>(a[i]) * share + static_cast<float>(b[i]) * (1 - share));
        return out;
    });
}

namespace {

struct GreyWeights {
    int32_t red, green, blue;
    int bits;
};
constexpr GreyWeights kOpenCv{9798, 19235, 3735, 15};
constexpr GreyWeights kPillow{19595, 38470, 7471, 16};

Tensor grey_of(const Tensor& image, std::string_view where, GreyWeights w) {
    check_pixels(image, where);
    check_channels(image, where, 3);
    const Tensor out = Tensor::empty(image.dtype(), {image.dim(0), image.dim(1), 1});
    const int64_t n = out.size();
    if (image.dtype() == DType::f32) {
        const float* from = image.data<float>();
        for (int64_t i = 0; i < n; ++i)
            out.data<float>()[i] = 0.299f * from[3 * i] + 0.587f * from[3 * i + 1] + 0.114f * from[3 * i + 2];
        return out;
    }
    const uint8_t* from = image.data<uint8_t>();
    uint8_t* to = out.data<uint8_t>();
    for (int64_t i = 0; i < n; ++i)
        to[i] = static_cast<uint8_t>(
            (from[3 * i] * w.red + from[3 * i + 1] * w.green + from[3 * i + 2] * w.blue + (1 << (w.bits - 1))) >>
            w.bits);
    return out;
}

// The same plane for each of so many channels.
Tensor repeated(const Tensor& plane, int64_t channels) {
    const Tensor wide = plane.view({plane.dim(0), plane.dim(1), channels}, Strides{plane.dim(1), 1, 0});
    return wide.contiguous();
}

Tensor brightness(const Arguments& a, const Tensor& image, double factor) {
    check_pixels(image, a.where);
    return scaled(image, static_cast<float>(factor), 0);
}

Tensor contrast(const Arguments& a, const Tensor& image, double factor) {
    const Tensor plane = grey(image, a.where);
    double sum = 0;
    for_pixels(plane, [&](auto kind) {
        using T = decltype(kind);
        for (int64_t i = 0; i < plane.size(); ++i) sum += static_cast<double>(plane.data<T>()[i]);
        return plane;
    });
    const double mean = sum / static_cast<double>(plane.size());
    const double level = image.dtype() == DType::u8 ? std::floor(mean + 0.5) : mean;
    return scaled(image, static_cast<float>(factor), static_cast<float>(level * (1 - factor)));
}

Tensor saturation(const Arguments& a, const Tensor& image, double factor) {
    return blended(image, repeated(grey(image, a.where), 3), static_cast<float>(factor));
}

struct Hsv {
    float h, s, v;
};

void rgb_of(const Hsv& x, float scale, float* rgb) {
    float h = x.h * scale;
    const int sector = static_cast<int>(std::floor(h));
    h -= static_cast<float>(sector);
    const float tab[4] = {x.v, x.v * (1 - x.s), x.v * (1 - x.s * h), x.v * (1 - x.s * (1 - h))};
    static constexpr uint8_t kRed[] = {0, 2, 1, 1, 3, 0}, kGreen[] = {3, 0, 0, 2, 1, 1}, kBlue[] = {1, 1, 3, 0, 0, 2};
    const int at = ((sector % 6) + 6) % 6;
    rgb[0] = tab[kRed[at]];
    rgb[1] = tab[kGreen[at]];
    rgb[2] = tab[kBlue[at]];
}

// Conversion of bytes as OpenCV does it: a full turn of the hue is 256, and 255 on the way back.
Tensor hue(const Arguments& a, const Tensor& image, double factor) {
    if (image.dtype() != DType::u8)
        throw dtype_error(a.where, str("the image must be uint8, got ", name_of(image.dtype())));
    check_channels(image, a.where, 3);
    const int turn = static_cast<int>(factor * 255) & 255;
    std::array<int, 256> by_value{}, by_range{};
    for (int i = 1; i < 256; ++i) {
        by_value[static_cast<size_t>(i)] = static_cast<int>(std::lrint((255 << 12) / (1.0 * i)));
        by_range[static_cast<size_t>(i)] = static_cast<int>(std::lrint((256 << 12) / (6.0 * i)));
    }
    const Tensor out = Tensor::empty(DType::u8, image.shape());
    const uint8_t* from = image.data<uint8_t>();
    uint8_t* to = out.data<uint8_t>();
    for (int64_t i = 0; i < image.size(); i += 3) {
        const int r = from[i], g = from[i + 1], b = from[i + 2];
        const int v = std::max({r, g, b}), range = v - std::min({r, g, b});
        const int s = (range * by_value[static_cast<size_t>(v)] + (1 << 11)) >> 12;
        int h = v == r ? g - b : v == g ? b - r + 2 * range : r - g + 4 * range;
        h = (h * by_range[static_cast<size_t>(range)] + (1 << 11)) >> 12;
        if (h < 0) h += 256;
        h = (std::min(h, 255) + turn) & 255;
        float rgb[3];
        rgb_of({static_cast<float>(h), static_cast<float>(s) * (1 / 255.0f), static_cast<float>(v) * (1 / 255.0f)},
               6.0f / 255.0f, rgb);
        for (int c = 0; c < 3; ++c) to[i + c] = rounded<uint8_t>(rgb[c] * 255.0f);
    }
    return out;
}

using Adjust = Tensor (*)(const Arguments& a, const Tensor& image, double factor);

template <Adjust adjust>
void run_adjust(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) { return adjust(a, image, a.number(0)); });
}

// Four ranges; the order of the changes is random too. A range of 1 .. 1, or 0 .. 0 for the hue, changes nothing.
void run_random_color_adjust(Row& row, const Arguments& a, RowDraws& draws) {
    static constexpr Adjust kAdjust[] = {brightness, contrast, saturation, hue};
    size_t order[] = {0, 1, 2, 3};
    for (int64_t i = 3; i > 0; --i) std::swap(order[i], order[draws.below(i + 1)]);
    double factors[4];
    for (size_t i = 0; i < 4; ++i) factors[i] = draws.between(a.number(2 * i), a.number(2 * i + 1));
    each_image(row, a, [&](const Tensor& given) {
        check_pixels(given, a.where);
        Tensor image = given;
        for (size_t at : order) {
            const double same = at == 3 ? 0 : 1;
            if (a.number(2 * at) != same || a.number(2 * at + 1) != same) image = kAdjust[at](a, image, factors[at]);
        }
        return image;
    });
}

void run_random_color(Row& row, const Arguments& a, RowDraws& draws) {
    const double degree = draws.between(a.number(0), a.number(1));
    each_image(row, a, [&](const Tensor& image) { return saturation(a, image, degree); });
}

// gamma, gain
void run_gamma(Row& row, const Arguments& a, RowDraws&) {
    const double gamma = a.number(0), gain = a.number(1);
    each_image(row, a, [&](const Tensor& image) {
        check_pixels(image, a.where);
        const Tensor out = Tensor::empty(image.dtype(), image.shape());
        if (image.dtype() == DType::f32) {
            for (int64_t i = 0; i < image.size(); ++i)
                out.data<float>()[i] = static_cast<float>(gain * std::pow(image.data<float>()[i], gamma));
            return out;
        }
        uint8_t table[256];
        for (int i = 0; i < 256; ++i)
            table[i] = static_cast<uint8_t>(std::clamp(gain * 255.999 * std::pow(i / 255.0, gamma), 0.0, 255.0));
        for (int64_t i = 0; i < image.size(); ++i) out.data<uint8_t>()[i] = table[image.data<uint8_t>()[i]];
        return out;
    });
}

// channels of the result; 1: without an axis of channels
void run_grayscale(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) {
        const Tensor plane = grey_of(image, a.where, kPillow);
        return a.integer(0) == 1 ? plane.reshaped({plane.dim(0), plane.dim(1)}) : repeated(plane, 3);
    });
}

void run_random_grayscale(Row& row, const Arguments& a, RowDraws& draws) {
    if (!draws.chance(a.number(0))) return;
    each_image(row, a, [&](const Tensor& image) {
        return extent(image).channels == 1 ? image : repeated(grey_of(image, a.where, kPillow), 3);
    });
}

// Shares of the main directions in which the colours of photographs vary (Krizhevsky et al. 2012).
void run_random_lighting(Row& row, const Arguments& a, RowDraws& draws) {
    static constexpr double kSize[3] = {55.46, 4.794, 1.148};
    static constexpr double kDirection[3][3] = {
        {-0.5675, 0.7192, 0.4009}, {-0.5808, -0.0045, -0.8140}, {-0.5836, -0.6948, 0.4203}};
    float shift[3] = {0, 0, 0};
    for (int i = 0; i < 3; ++i) {
        const double share = draws.normal() * a.number(0) * kSize[i];
        for (int c = 0; c < 3; ++c) shift[c] += static_cast<float>(share * kDirection[c][i]);
    }
    each_image(row, a, [&](const Tensor& image) {
        check_pixels(image, a.where);
        check_channels(image, a.where, 3);
        const Tensor out = Tensor::empty(image.dtype(), image.shape());
        return for_pixels(image, [&](auto kind) {
            using T = decltype(kind);
            for (int64_t i = 0; i < image.size(); ++i)
                out.data<T>()[i] = rounded<T>(static_cast<float>(image.data<T>()[i]) + shift[i % 3]);
            return out;
        });
    });
}

void run_invert(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) {
        check_pixels(image, a.where);
        return scaled(image, -1, 255);
    });
}

// The input's channel for each channel of the output: 3 is an alpha of 255, 4 the grey of red, green and blue.
struct Conversion {
    int64_t from, to;
    int at[4];
    bool blue_first;  // of the input, for the grey
};
constexpr Conversion kConversions[] = {
    {3, 4, {0, 1, 2, 3}, true},   // BGR2BGRA
    {4, 3, {0, 1, 2, 0}, true},   // BGRA2BGR
    {3, 4, {2, 1, 0, 3}, true},   // BGR2RGBA
    {4, 3, {2, 1, 0, 0}, false},  // RGBA2BGR
    {3, 3, {2, 1, 0, 0}, true},   // BGR2RGB
    {4, 4, {2, 1, 0, 5}, true},   // BGRA2RGBA
    {3, 1, {4, 0, 0, 0}, true},   // BGR2GRAY
    {3, 1, {4, 0, 0, 0}, false},  // RGB2GRAY
    {1, 3, {0, 0, 0, 0}, false},  // GRAY2BGR
    {1, 4, {0, 0, 0, 3}, false},  // GRAY2BGRA
    {4, 1, {4, 0, 0, 0}, true},   // BGRA2GRAY
    {4, 1, {4, 0, 0, 0}, false},  // RGBA2GRAY
};

void run_convert_color(Row& row, const Arguments& a, RowDraws&) {
    const Conversion& k = kConversions[a.integer(0)];
    each_image(row, a, [&](const Tensor& image) {
        check_pixels(image, a.where);
        check_channels(image, a.where, k.from);
        const int64_t pixels = image.dim(0) * image.dim(1);
        const Tensor out = Tensor::empty(
            image.dtype(), k.to == 1 ? Shape{image.dim(0), image.dim(1)} : Shape{image.dim(0), image.dim(1), k.to});
        return for_pixels(image, [&](auto kind) {
            using T = decltype(kind);
            const T* from = image.data<T>();
            T* to = out.data<T>();
            const T full = std::is_same_v<T, uint8_t> ? T(255) : T(1);
            for (int64_t i = 0; i < pixels; ++i, from += k.from)
                for (int64_t c = 0; c < k.to; ++c) {
                    const int at = k.at[c];
                    if (at == 3)
                        *to++ = full;
                    else if (at == 5)
                        *to++ = from[3];
                    else if (at < 3)
                        *to++ = from[at];
                    else if constexpr (std::is_same_v<T, uint8_t>)
                        *to++ = static_cast<T>((from[k.blue_first ? 2 : 0] * kOpenCv.red + from[1] * kOpenCv.green +
                                                from[k.blue_first ? 0 : 2] * kOpenCv.blue + (1 << 14)) >>
                                               15);
                    else
                        *to++ = 0.299f * from[k.blue_first ? 2 : 0] + 0.587f * from[1] +
                                0.114f * from[k.blue_first ? 0 : 2];
                }
            return out;
        });
    });
}

void hsv_of(const float* rgb, float* hsv) {
    const float v = std::max({rgb[0], rgb[1], rgb[2]}), range = v - std::min({rgb[0], rgb[1], rgb[2]});
    float h = 0;
    if (range > 0) {
        if (v == rgb[0])
            h = (rgb[1] - rgb[2]) / range;
        else if (v == rgb[1])
            h = 2 + (rgb[2] - rgb[0]) / range;
        else
            h = 4 + (rgb[0] - rgb[1]) / range;
        h /= 6;
        h -= std::floor(h);
    }
    hsv[0] = h;
    hsv[1] = v > 0 ? range / v : 0;
    hsv[2] = v;
}

void rgb_of_unit(const float* hsv, float* rgb) { rgb_of({hsv[0], hsv[1], hsv[2]}, 6, rgb); }

// is_hwc: else planes
template <void (*change)(const float*, float*)>
void run_hsv(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& given) {
        if (!is_float(given.dtype()))
            throw dtype_error(a.where, str("the image must be of floats in [0, 1], got ", name_of(given.dtype())));
        const bool hwc = a.flag(0);
        if (given.rank() != 3 || given.dim(hwc ? 2 : 0) != 3)
            throw shape_error(a.where, str("an image ", hwc ? "(height, width, 3)" : "(3, height, width)",
                                           " is expected, got one of shape ", given.shape()));
        const Tensor image = given.cast(DType::f32).contiguous(), out = Tensor::empty(DType::f32, given.shape());
        const int64_t pixels = image.size() / 3, step = hwc ? 3 : 1, apart = hwc ? 1 : pixels;
        for (int64_t i = 0; i < pixels; ++i) {
            const float* from = image.data<float>() + i * step;
            const float in[3] = {from[0], from[apart], from[2 * apart]};
            float made[3];
            change(in, made);
            for (int64_t c = 0; c < 3; ++c) out.data<float>()[i * step + c * apart] = made[c];
        }
        return out.cast(given.dtype());
    });
}

}  // namespace

Tensor grey(const Tensor& image, std::string_view where) { return grey_of(image, where, kOpenCv); }

}  // namespace lunaria::vision

namespace lunaria::transforms {

std::span<const Entry> color_entries() {
    using namespace vision;
    static const Entry entries[] = {
        {"brightness", 1, run_adjust<brightness>},
        {"contrast", 1, run_adjust<contrast>},
        {"saturation", 1, run_adjust<saturation>},
        {"hue", 1, run_adjust<hue>},
        {"random_color_adjust", 8, run_random_color_adjust},
        {"random_color", 2, run_random_color},
        {"gamma", 2, run_gamma},
        {"grayscale", 1, run_grayscale},
        {"random_grayscale", 1, run_random_grayscale},
        {"random_lighting", 1, run_random_lighting},
        {"invert", 0, run_invert},
        {"convert_color", 1, run_convert_color},
        {"rgb_to_hsv", 1, run_hsv<hsv_of>},
        {"hsv_to_rgb", 1, run_hsv<rgb_of_unit>},
    };
    return entries;
}

}  // namespace lunaria::transforms
