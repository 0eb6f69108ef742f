// Transforms that choose a part or a size at random, and transforms that resize images.
#include "core/data/vision/image.h"
#include "core/data/vision/parts.h"

namespace lunaria::vision {

Part random_part(RowDraws& draws, int64_t height, int64_t width, const PartRule& rule) {
    const double area = static_cast<double>(height) * static_cast<double>(width);
    for (int64_t i = 0; i < rule.attempts; ++i) {
        const double wanted = area * draws.between(rule.least, rule.most);
        const double ratio = std::exp(draws.between(std::log(rule.narrow), std::log(rule.broad)));
        const auto w = static_cast<int64_t>(std::lround(std::sqrt(wanted * ratio)));
        const auto h = static_cast<int64_t>(std::lround(std::sqrt(wanted / ratio)));
        if (w > 0 && h > 0 && w <= width && h <= height)
            return {draws.below(height - h + 1), draws.below(width - w + 1), h, w};
    }
    // The largest part in the middle that the ratios allow.
    const double ratio = static_cast<double>(width) / static_cast<double>(height);
    int64_t h = height, w = width;
    if (ratio < rule.narrow)
        h = static_cast<int64_t>(std::lround(static_cast<double>(w) / rule.narrow));
    else if (ratio > rule.broad)
        w = static_cast<int64_t>(std::lround(static_cast<double>(h) * rule.broad));
    h = std::clamp<int64_t>(h, 1, height);
    w = std::clamp<int64_t>(w, 1, width);
    return {(height - h) / 2, (width - w) / 2, h, w};
}

PartRule part_rule(const Arguments& a, size_t first) {
    return {a.number(first), a.number(first + 1), a.number(first + 2), a.number(first + 3), a.integer(first + 4)};
}

Target target_size(const Arguments& a, int64_t height, int64_t width, int64_t h, int64_t w) {
    if (w > 0) return {h, w};
    // A single number is the new length of the shorter side; the other side keeps the ratio.
    const int64_t size = h;
    const double longest = static_cast<double>(std::max(height, width)) / static_cast<double>(std::min(height, width));
    if (longest * static_cast<double>(size) > 1e9) throw value_error(a.where, str("size ", size, " is too large"));
    return height < width ? Target{size, width * size / height} : Target{height * size / width, size};
}

namespace {

// height, width (0: the shorter side), interpolation
void run_resize(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) {
        const Extent e = extent(image);
        const Target t = target_size(a, e.height, e.width, a.integer(0), a.integer(1));
        return resize(a, image, t.height, t.width, static_cast<Inter>(a.integer(2)));
    });
}

void run_random_resize(Row& row, const Arguments& a, RowDraws& draws) {
    static constexpr Inter kinds[] = {Inter::nearest, Inter::linear, Inter::cubic, Inter::area};
    const Inter kind = kinds[draws.below(4)];
    each_image(row, a, [&](const Tensor& image) {
        const Extent e = extent(image);
        const Target t = target_size(a, e.height, e.width, a.integer(0), a.integer(1));
        return resize(a, image, t.height, t.width, kind);
    });
}

// top, left, height, width, new height, new width, interpolation
void run_resized_crop(Row& row, const Arguments& a, RowDraws&) {
    each_image(row, a, [&](const Tensor& image) {
        const Tensor part = crop(a, image, a.integer(0), a.integer(1), a.integer(2), a.integer(3));
        const Target t = target_size(a, a.integer(2), a.integer(3), a.integer(4), a.integer(5));
        return resize(a, part, t.height, t.width, static_cast<Inter>(a.integer(6)));
    });
}

// height, width, interpolation, rule of the part. All images of a row get the same part.
void run_random_resized_crop(Row& row, const Arguments& a, RowDraws& draws) {
    const RowDraws before = draws;
    each_image(row, a, [&](const Tensor& image) {
        draws = before;
        const Extent e = extent(image);
        const Part p = random_part(draws, e.height, e.width, part_rule(a, 3));
        return resize(a, crop(a, image, p.top, p.left, p.height, p.width), a.integer(0), a.integer(1),
                      static_cast<Inter>(a.integer(2)));
    });
}

}  // namespace

// height, width, left, top, right, bottom, border, fill, pad if needed
Part random_crop(const Arguments& a, Tensor& image, RowDraws& draws, Padding& padding) {
    padding = {a.integer(2),
               a.integer(3),
               a.integer(4),
               a.integer(5),
               static_cast<Border>(a.integer(6)),
               {a.number(7), a.number(8), a.number(9)}};
    const int64_t height = a.integer(0), width = a.integer(1);
    if (a.flag(10)) {
        const Extent e = extent(image);
        const int64_t down = height - e.height - padding.top - padding.bottom;
        const int64_t right = width - e.width - padding.left - padding.right;
        if (down > 0) padding.top += down, padding.bottom += down;
        if (right > 0) padding.left += right, padding.right += right;
    }
    if (padding.left + padding.top + padding.right + padding.bottom > 0) image = pad(a, image, padding);
    const Extent e = extent(image);
    if (height > e.height || width > e.width)
        throw value_error(a.where, str("size (", height, ", ", width, ") is larger than the image of ", e.height, " x ",
                                       e.width, " pixels"))
            .hint("pad_if_needed = true makes smaller images larger");
    return {draws.below(e.height - height + 1), draws.below(e.width - width + 1), height, width};
}

namespace {

void run_random_crop(Row& row, const Arguments& a, RowDraws& draws) {
    const RowDraws before = draws;
    each_image(row, a, [&](const Tensor& given) {
        draws = before;
        Tensor image = given;
        Padding padding;
        const Part p = random_crop(a, image, draws, padding);
        return crop(a, image, p.top, p.left, p.height, p.width);
    });
}

}  // namespace

}  // namespace lunaria::vision

namespace lunaria::transforms {

std::span<const Entry> crop_entries() {
    using namespace vision;
    static const Entry entries[] = {
        {"resize", 3, run_resize},
        {"random_resize", 2, run_random_resize},
        {"resized_crop", 7, run_resized_crop},
        {"random_resized_crop", 8, run_random_resized_crop},
        {"random_crop", 11, run_random_crop},
    };
    return entries;
}

}  // namespace lunaria::transforms
