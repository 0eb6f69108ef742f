// Levels of brightness by tables, sharpness and blur.
#include <array>

#include "core/base/interrupt.h"
#include "core/data/vision/image.h"

namespace lunaria::vision {

namespace {

using Table = std::array<uint8_t, 256>;
using Counts = std::array<int64_t, 256>;

void check_bytes(const Tensor& image, std::string_view where) {
    if (image.dtype() != DType::u8)
        throw dtype_error(where, str("the image must be uint8, got ", name_of(image.dtype())))
            .hint("TypeCast converts it");
}

Table same_levels() {
    Table table;
    for (size_t i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i);
    return table;
}

// Maps each channel by a table made from its levels.
template <class Make>
Tensor by_levels(const Tensor& image, const Make& make) {
    const Extent e = extent(image);
    const Tensor out = Tensor::empty(DType::u8, image.shape());
    const uint8_t* from = image.data<uint8_t>();
    for (int64_t c = 0; c < e.channels; ++c) {
        Counts counts{};
        for (int64_t i = c; i < image.size(); i += e.channels) ++counts[from[i]];
        const Table table = make(counts);
        for (int64_t i = c; i < image.size(); i += e.channels) out.data<uint8_t>()[i] = table[from[i]];
    }
    return out;
}

template <class Change>
Tensor by_table(const Tensor& image, const Change& change) {
    Table table;
    for (int i = 0; i < 256; ++i) table[static_cast<size_t>(i)] = change(i);
    const Tensor out = Tensor::empty(DType::u8, image.shape());
    for (int64_t i = 0, n = image.size(); i < n; ++i) out.data<uint8_t>()[i] = table[image.data<uint8_t>()[i]];
    return out;
}

// As OpenCV counts: the darkest level becomes 0.
Table equal_levels(const Counts& counts) {
    int64_t sum = 0;
    for (int64_t n : counts) sum += n;
    size_t first = 0;
    while (counts[first] == 0) ++first;
    Table table = same_levels();
    if (counts[first] == sum) return table;
    const float scale = 255.0f / static_cast<float>(sum - counts[first]);
    int64_t below = 0;
    table[first] = 0;
    for (size_t i = first + 1; i < 256; ++i) {
        below += counts[i];
        table[i] = rounded<uint8_t>(static_cast<float>(below) * scale);
    }
    return table;
}

// Removes `share` percent of the pixels from one end.
void cut(Counts& counts, int64_t pixels, double share, bool dark) {
    auto left = static_cast<int64_t>(static_cast<double>(pixels) * share / 100);
    for (size_t i = 0; i < 256 && left > 0; ++i) {
        int64_t& n = counts[dark ? i : 255 - i];
        const int64_t taken = std::min(n, left);
        n -= taken;
        left -= taken;
    }
}

Table stretched(Counts counts, const Arguments& a, size_t first) {
    for (size_t i = first + 1; i < a.numbers.size(); ++i) counts[static_cast<size_t>(a.integer(i))] = 0;
    int64_t pixels = 0;
    for (int64_t n : counts) pixels += n;
    cut(counts, pixels, a.number(first), true);
    cut(counts, pixels, a.number(first), false);
    int low = 0, high = 255;
    while (low < 255 && counts[static_cast<size_t>(low)] == 0) ++low;
    while (high > 0 && counts[static_cast<size_t>(high)] == 0) --high;
    Table table = same_levels();
    if (high <= low) return table;
    const float scale = 255.0f / static_cast<float>(high - low), offset = static_cast<float>(-low) * scale;
    for (int i = 0; i < 256; ++i)
        table[static_cast<size_t>(i)] =
            static_cast<uint8_t>(std::clamp(static_cast<int>(static_cast<float>(i) * scale + offset), 0, 255));
    return table;
}

// cutoff, then levels that do not count
Tensor auto_contrast(const Arguments& a, const Tensor& image, size_t first) {
    check_bytes(image, a.where);
    return by_levels(image, [&](const Counts& counts) { return stretched(counts, a, first); });
}

Tensor posterized(const Arguments& a, const Tensor& image, int64_t bits) {
    check_bytes(image, a.where);
    const int mask = 255 & ~((1 << (8 - bits)) - 1);
    return by_table(image, [&](int x) { return static_cast<uint8_t>(x & mask); });
}

Tensor solarized(const Arguments& a, const Tensor& image, double low, double high) {
    check_bytes(image, a.where);
    return by_table(image, [&](int x) { return static_cast<uint8_t>(x >= low && x <= high ? 255 - x : x); });
}

// Away from the mean of the neighbours; pixels at the edge stay.
Tensor sharpened(const Arguments& a, const Tensor& image, double degree) {
    check_pixels(image, a.where);
    const Extent e = extent(image);
    const Tensor soft = image.copy();
    for_pixels(image, [&](auto kind) {
        using T = decltype(kind);
        const T* from = image.data<T>();
        const int64_t p = e.pitch(), c = e.channels;
        for (int64_t y = 1; y + 1 < e.height; ++y)
            for (int64_t x = c; x < p - c; ++x) {
                const T* at = from + y * p + x;
                float sum = 4 * static_cast<float>(at[0]);
                for (int64_t dy = -p; dy <= p; dy += p)
                    sum += static_cast<float>(at[dy - c]) + static_cast<float>(at[dy]) + static_cast<float>(at[dy + c]);
                soft.data<T>()[y * p + x] = rounded<T>(sum / 13);
            }
        return soft;
    });
    return blended(image, soft, static_cast<float>(degree));
}

void run_equalize(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) {
        check_bytes(image, a.where);
        return equalized(image);
    });
}

void run_auto_contrast(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) { return auto_contrast(a, image, 0); });
}

void run_posterize(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) { return posterized(a, image, a.integer(0)); });
}

void run_random_posterize(Row& row, const Arguments& a, RowDraws& draws) {
    const int64_t bits = a.integer(0) + draws.below(a.integer(1) - a.integer(0) + 1);
    each_image(row, a, [&](const Tensor& image) { return posterized(a, image, bits); });
}

void run_solarize(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) { return solarized(a, image, a.number(0), a.number(1)); });
}

void run_random_solarize(Row& row, const Arguments& a, RowDraws& draws) {
    const int64_t span = a.integer(1) - a.integer(0) + 1;
    const int64_t one = a.integer(0) + draws.below(span), two = a.integer(0) + draws.below(span);
    each_image(row, a, [&](const Tensor& image) {
        return solarized(a, image, static_cast<double>(std::min(one, two)),
                         one == two ? 255.0 : static_cast<double>(std::max(one, two)));
    });
}

void run_sharpness(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) { return sharpened(a, image, a.number(0)); });
}

void run_random_sharpness(Row& row, const Arguments& a, RowDraws& draws) {
    const double degree = draws.between(a.number(0), a.number(1));
    each_image(row, a, [&](const Tensor& image) { return sharpened(a, image, degree); });
}

std::vector<float> bell(int64_t size, double sigma) {
    std::vector<double> weights;
    double sum = 0;
    for (int64_t i = 0; i < size; ++i) {
        const double x = static_cast<double>(i) - static_cast<double>(size - 1) / 2;
        weights.push_back(std::exp(-x * x / (2 * sigma * sigma)));
        sum += weights.back();
    }
    std::vector<float> list;
    for (double w : weights) list.push_back(static_cast<float>(w / sum));
    return list;
}

int64_t inside(int64_t at, int64_t size) {
    if (size == 1) return 0;
    const int64_t period = 2 * size - 2, r = ((at % period) + period) % period;
    return r < size ? r : period - r;
}

// width and height of the window, deviations in x and y; the image is mirrored at its edges
void run_gaussian_blur(Row& row, const Arguments& a, RowDraws&) {
    const std::vector<float> across = bell(a.integer(0), a.number(2)), down = bell(a.integer(1), a.number(3));
    const int64_t half_x = a.integer(0) / 2, half_y = a.integer(1) / 2;
    each_image(row, a, [&](const Tensor& image) {
        check_pixels(image, a.where);
        const Extent e = extent(image);
        const int64_t p = e.pitch();
        std::vector<float> wide(static_cast<size_t>(image.size())), sum(static_cast<size_t>(p));
        const Tensor out = Tensor::empty(image.dtype(), image.shape());
        return for_pixels(image, [&](auto kind) {
            using T = decltype(kind);
            for (int64_t y = 0; y < e.height; ++y) {
                poll_interrupt();
                const T* from = image.data<T>() + y * p;
                float* to = wide.data() + y * p;
                for (int64_t k = -half_x; k <= half_x; ++k) {
                    const float w = across[static_cast<size_t>(k + half_x)];
                    for (int64_t x = 0; x < e.width; ++x) {
                        const T* at = from + inside(x + k, e.width) * e.channels;
                        for (int64_t c = 0; c < e.channels; ++c)
                            to[x * e.channels + c] += w * static_cast<float>(at[c]);
                    }
                }
            }
            for (int64_t y = 0; y < e.height; ++y) {
                poll_interrupt();
                std::fill(sum.begin(), sum.end(), 0.0f);
                for (int64_t k = -half_y; k <= half_y; ++k) {
                    const float w = down[static_cast<size_t>(k + half_y)];
                    const float* from = wide.data() + inside(y + k, e.height) * p;
                    for (int64_t x = 0; x < p; ++x) sum[static_cast<size_t>(x)] += w * from[x];
                }
                for (int64_t x = 0; x < p; ++x) out.data<T>()[y * p + x] = rounded<T>(sum[static_cast<size_t>(x)]);
            }
            return out;
        });
    });
}

}  // namespace

Tensor equalized(const Tensor& image) { return by_levels(image, equal_levels); }

}  // namespace lunaria::vision

namespace lunaria::transforms {

std::span<const Entry> tone_entries() {
    using namespace vision;
    static const Entry entries[] = {
        {"equalize", 0, run_equalize},           {"auto_contrast", 1, run_auto_contrast},
        {"posterize", 1, run_posterize},         {"random_posterize", 2, run_random_posterize},
        {"solarize", 2, run_solarize},           {"random_solarize", 2, run_random_solarize},
        {"sharpness", 1, run_sharpness},         {"random_sharpness", 2, run_random_sharpness},
        {"gaussian_blur", 4, run_gaussian_blur},
    };
    return entries;
}

}  // namespace lunaria::transforms
