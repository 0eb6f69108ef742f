// Images with boxes, rows of x, y, width, height and perhaps more, which move with the pixels.
#include "core/data/vision/parts.h"

namespace lunaria::vision {

namespace {

struct Boxed {
    Tensor image, boxes;  // boxes: float32
    DType kind;           // of the boxes as they came
};

Boxed boxed(const Row& row, const Arguments& a) {
    if (row.size() != 2)
        throw argument_error(a.where, str("two columns are expected, image and boxes, got ", row.size()));
    const Tensor image = image_of(row[0], a.where);
    if (image.rank() > 3) throw shape_error(a.where, "one image is expected, got a batch");
    if (!row[1].is_tensor() || row[1].tensor().rank() != 2 || row[1].tensor().dim(1) < 4)
        throw shape_error(a.where,
                          str("boxes (number, 4) of x, y, width and height are expected, got ", to_string(row[1])));
    const Tensor boxes = row[1].tensor().cast(DType::f32).copy();
    const Extent e = extent(image);
    for (int64_t i = 0; i < boxes.dim(0); ++i) {
        const float* box = boxes.data<float>() + i * boxes.dim(1);
        const bool inside = box[0] >= 0 && box[1] >= 0 && box[2] > 0 && box[3] > 0 &&
                            box[0] + box[2] <= static_cast<float>(e.width) &&
                            box[1] + box[3] <= static_cast<float>(e.height);
        if (!inside)
            throw value_error(a.where,
                              str("box ", i, " (x ", box[0], ", y ", box[1], ", width ", box[2], ", height ", box[3],
                                  ") is not within the image of ", e.height, " x ", e.width, " pixels"));
    }
    return {image, boxes, row[1].tensor().dtype()};
}

void put(Row& row, const Boxed& b) {
    row[0] = Value(b.image);
    row[1] = Value(b.boxes.cast(b.kind));
}

template <class Change>
void each_box(const Boxed& b, const Change& change) {
    for (int64_t i = 0; i < b.boxes.dim(0); ++i) change(b.boxes.data<float>() + i * b.boxes.dim(1));
}

template <bool horizontal>
void run_flip_boxes(Row& row, const Arguments& a, RowDraws& draws) {
    Boxed b = boxed(row, a);
    if (!draws.chance(a.number(0))) return;
    const Extent e = extent(b.image);
    each_box(b, [&](float* box) {
        if (horizontal)
            box[0] = static_cast<float>(e.width) - box[0] - box[2];
        else
            box[1] = static_cast<float>(e.height) - box[1] - box[3];
    });
    b.image = flip(b.image, horizontal);
    put(row, b);
}

void scale_boxes(const Boxed& b, double across, double down) {
    each_box(b, [&](float* box) {
        for (int i = 0; i < 4; ++i) box[i] = static_cast<float>(box[i] * (i % 2 ? down : across));
    });
}

void resize_boxed(Boxed& b, const Arguments& a, Target t, Inter inter) {
    const Extent e = extent(b.image);
    b.image = resize(a, b.image, t.height, t.width, inter);
    scale_boxes(b, static_cast<double>(t.width) / static_cast<double>(e.width),
                static_cast<double>(t.height) / static_cast<double>(e.height));
}

// height, width, interpolation
void run_resize_boxes(Row& row, const Arguments& a, RowDraws&) {
    Boxed b = boxed(row, a);
    const Extent e = extent(b.image);
    resize_boxed(b, a, target_size(a, e.height, e.width, a.integer(0), a.integer(1)), static_cast<Inter>(a.integer(2)));
    put(row, b);
}

void run_random_resize_boxes(Row& row, const Arguments& a, RowDraws& draws) {
    static constexpr Inter kinds[] = {Inter::nearest, Inter::linear, Inter::cubic, Inter::area};
    Boxed b = boxed(row, a);
    const Extent e = extent(b.image);
    resize_boxed(b, a, target_size(a, e.height, e.width, a.integer(0), a.integer(1)), kinds[draws.below(4)]);
    put(row, b);
}

// Cuts the boxes to the part and drops those outside of it. If none is left, one box without a size stays.
void cut_boxes(Boxed& b, const Part& p) {
    const int64_t width = b.boxes.dim(1);
    std::vector<float> kept;
    each_box(b, [&](float* box) {
        const float left = std::max(box[0], static_cast<float>(p.left)),
                    top = std::max(box[1], static_cast<float>(p.top));
        const float right = std::min(box[0] + box[2], static_cast<float>(p.left + p.width));
        const float bottom = std::min(box[1] + box[3], static_cast<float>(p.top + p.height));
        if (right <= left || bottom <= top) return;
        box[0] = left - static_cast<float>(p.left);
        box[1] = top - static_cast<float>(p.top);
        box[2] = right - left;
        box[3] = bottom - top;
        kept.insert(kept.end(), box, box + width);
    });
    if (kept.empty()) kept.resize(static_cast<size_t>(width), 0.0f);
    b.boxes = Tensor::from<float>(kept, {static_cast<int64_t>(kept.size()) / width, width});
}

void run_random_crop_boxes(Row& row, const Arguments& a, RowDraws& draws) {
    Boxed b = boxed(row, a);
    Padding padding;
    const Part p = random_crop(a, b.image, draws, padding);
    each_box(b, [&](float* box) {
        box[0] += static_cast<float>(padding.left);
        box[1] += static_cast<float>(padding.top);
    });
    cut_boxes(b, p);
    b.image = crop(a, b.image, p.top, p.left, p.height, p.width);
    put(row, b);
}

void run_random_resized_crop_boxes(Row& row, const Arguments& a, RowDraws& draws) {
    Boxed b = boxed(row, a);
    const Extent e = extent(b.image);
    const Part p = random_part(draws, e.height, e.width, part_rule(a, 3));
    cut_boxes(b, p);
    b.image = crop(a, b.image, p.top, p.left, p.height, p.width);
    resize_boxed(b, a, {a.integer(0), a.integer(1)}, static_cast<Inter>(a.integer(2)));
    put(row, b);
}

// the share of boxes whose pixels go through the inner transform
void run_bounding_box_augment(Row& row, const Arguments& a, RowDraws& draws) {
    Boxed b = boxed(row, a);
    b.image = b.image.copy();
    const int64_t count = b.boxes.dim(0);
    auto left = std::max<int64_t>(std::min<int64_t>(count, 1), std::llrint(static_cast<double>(count) * a.number(0)));
    std::vector<int64_t> order;
    for (int64_t i = 0; i < count; ++i) order.push_back(i);
    for (int64_t i = count - 1; i > 0; --i)
        std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(draws.below(i + 1))]);
    for (int64_t k = 0; k < left; ++k) {
        const float* box = b.boxes.data<float>() + order[static_cast<size_t>(k)] * b.boxes.dim(1);
        const auto x = static_cast<int64_t>(box[0]), y = static_cast<int64_t>(box[1]);
        const auto w = static_cast<int64_t>(box[2]), h = static_cast<int64_t>(box[3]);
        if (w < 1 || h < 1) continue;
        Row part{Value(crop(a, b.image, y, x, h, w))};
        a.parts[0]->apply(part, draws);
        const Tensor made = resize(a, image_of(part[0], a.where), h, w, Inter::linear).contiguous();
        const Extent e = extent(b.image);
        if (made.dtype() != b.image.dtype() || extent(made).channels != e.channels)
            throw argument_error(a.where, "the transform must keep dtype and channels of the pixels");
        const size_t pixel = static_cast<size_t>(e.channels) * size_of(made.dtype()),
                     line = static_cast<size_t>(w) * pixel;
        for (int64_t i = 0; i < h; ++i)
            std::copy_n(made.data<char>() + static_cast<size_t>(i) * line, line,
                        b.image.data<char>() + static_cast<size_t>((y + i) * e.width + x) * pixel);
    }
    put(row, b);
}

}  // namespace

}  // namespace lunaria::vision

namespace lunaria::transforms {

std::span<const Entry> box_entries() {
    using namespace vision;
    static const Entry entries[] = {
        {"horizontal_flip_boxes", 1, run_flip_boxes<true>},
        {"vertical_flip_boxes", 1, run_flip_boxes<false>},
        {"resize_boxes", 3, run_resize_boxes},
        {"random_resize_boxes", 2, run_random_resize_boxes},
        {"random_crop_boxes", 11, run_random_crop_boxes},
        {"random_resized_crop_boxes", 8, run_random_resized_crop_boxes},
        {"bounding_box_augment", 1, run_bounding_box_augment},
    };
    return entries;
}

}  // namespace lunaria::transforms
