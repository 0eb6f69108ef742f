// Operators: bounding boxes {x1, y1, x2, y2} and crops of images. All are made of other operators.
#include <array>
#include <cmath>

#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/families.h"
#include "core/ops/matrix.h"

namespace lunaria {

namespace {

void expect_boxes(const Call& c, size_t i) {
    const Shape s = c.shape(i);
    if (s.rank() != 2 || s[1] != 4)
        throw shape_error(c.name(), str(param_name(c, i), " must have shape (n, 4), not ", s));
}

// The four columns of (n, 4) boxes, each of shape (n) or, as rows, (1, n) or (n, 1).
std::array<Expr, 4> corners(const Expr& boxes, const Shape& shape) {
    std::array<Expr, 4> columns;
    for (int i = 0; i < 4; ++i) columns[static_cast<size_t>(i)] = call("narrow", {boxes, 1, i, 1}).reshape(shape);
    return columns;
}

Expr as_boxes(const ExpandCall& c, std::initializer_list<Expr> columns) {
    std::vector<Expr> items;
    for (const Expr& e : columns) items.push_back(e);
    return c.call("stack", {c.builder.list(items), -1});
}

// The length of a side counts the pixels at both ends.
Expr side(const Expr& low, const Expr& high) { return high - low + 1.0; }

Expr area(const std::array<Expr, 4>& b) { return side(b[0], b[2]) * side(b[1], b[3]); }

Expr expand_iou(const ExpandCall& c) {
    for (size_t i : {0, 1}) expect_boxes(c, i);
    const auto anchors = corners(c.in(0), {1, c.shape(0)[0]}), truth = corners(c.in(1), {c.shape(1)[0], 1});
    auto overlap = [&](size_t low, size_t high) {
        Expr length =
            side(c.call("maximum", {anchors[low], truth[low]}), c.call("minimum", {anchors[high], truth[high]}));
        return c.call("maximum", {length, 0.0});
    };
    const Expr common = overlap(0, 2) * overlap(1, 3);
    if (c.string(2) == "iof") return common / area(truth);
    return common / (area(anchors) + area(truth) - common);
}

std::array<double, 4> four(const Call& c, size_t i) {
    std::array<double, 4> numbers{};
    const auto& items = c.args[i].items();
    if (items.size() != 4)
        throw value_error(c.name(), str(param_name(c, i), " must hold 4 numbers, not ", items.size()));
    for (size_t k = 0; k < 4; ++k) numbers[k] = items[k].number();
    return numbers;
}

std::array<double, 4> deviations(const Call& c, size_t i) {
    const auto stds = four(c, i);
    for (double s : stds)
        if (!(s > 0)) throw value_error(c.name(), str(param_name(c, i), " must be positive, not ", s));
    return stds;
}

Expr expand_encode(const ExpandCall& c) {
    for (size_t i : {0, 1}) expect_boxes(c, i);
    expect_same_shape(c, 0, 1);
    const auto means = four(c, 2), stds = deviations(c, 3);
    const Shape rows{c.shape(0)[0]};
    const auto a = corners(c.in(0), rows), t = corners(c.in(1), rows);
    std::array<Expr, 4> deltas;
    for (size_t k : {0, 1}) {
        const Expr size = side(a[k], a[k + 2]);
        deltas[k] = (t[k] + t[k + 2] - a[k] - a[k + 2]) * 0.5 / size;
        deltas[k + 2] = fn("log", side(t[k], t[k + 2]) / size);
    }
    for (size_t k = 0; k < 4; ++k) deltas[k] = (deltas[k] - means[k]) / stds[k];
    return as_boxes(c, {deltas[0], deltas[1], deltas[2], deltas[3]});
}

Expr expand_decode(const ExpandCall& c) {
    for (size_t i : {0, 1}) expect_boxes(c, i);
    expect_same_shape(c, 0, 1);
    const auto limits = c.ints(2);
    if (limits.size() != 2)
        throw value_error(c.name(), str("max_shape must hold the height and the width, not ", limits.size(), " sizes"));
    const auto means = four(c, 3), stds = deviations(c, 4);
    const double clip = c.number(5);
    if (!(clip > 0)) throw value_error(c.name(), str("wh_ratio_clip must be positive, not ", clip));
    const double most = std::abs(std::log(clip));
    const Shape rows{c.shape(0)[0]};
    const auto a = corners(c.in(0), rows), d = corners(c.in(1), rows);
    std::array<Expr, 4> box;
    for (size_t k : {0, 1}) {
        const Expr size = side(a[k], a[k + 2]);
        const Expr ratio = c.call("clamp", {d[k + 2] * stds[k + 2] + means[k + 2], -most, most});
        const Expr half = size * fn("exp", ratio) * 0.5;
        const Expr center = (a[k] + a[k + 2]) * 0.5 + (d[k] * stds[k] + means[k]) * size;
        const double limit = static_cast<double>(limits[1 - k]);
        box[k] = c.call("clamp", {center - half + 0.5, 0.0, limit});
        box[k + 2] = c.call("clamp", {center + half - 0.5, 0.0, limit});
    }
    return as_boxes(c, {box[0], box[1], box[2], box[3]});
}

Expr expand_check_valid(const ExpandCall& c) {
    expect_boxes(c, 0);
    if (c.shape(1) != Shape{3})
        throw shape_error(c.name(), str("img_metas must hold height, width and ratio, not ", c.shape(1)));
    const auto b = corners(c.in(0), {c.shape(0)[0]});
    auto meta = [&](int i) { return c.call("narrow", {c.in(1), 0, i, 1}); };
    auto both = [&](const Expr& x, const Expr& y) { return c.call("logical_and", {x, y}); };
    const Expr low = both(c.call("greater_equal", {b[0], 0.0}), c.call("greater_equal", {b[1], 0.0}));
    auto below = [&](const Expr& x, int i) { return c.call("less_equal", {x, meta(i) * meta(2) - 1.0}); };
    return both(low, both(below(b[2], 1), below(b[3], 0)));
}

// The places of a crop's rows (or columns) in an image of `size` of them: (n, count), between low and high.
Expr crop_places(const ExpandCall& c, const Expr& low, const Expr& high, int64_t size, int64_t count) {
    const double last = static_cast<double>(size - 1);
    if (count == 1) return (low + high) * (0.5 * last);
    const Expr steps = c.call("arange", {0, count, 1, c.dtype}).reshape({1, count});
    return low * last + (high - low) * (last / static_cast<double>(count - 1)) * steps;
}

Expr expand_crop_and_resize(const ExpandCall& c) {
    expect_rank(c, 0, 4);
    expect_boxes(c, 1);
    const Shape image = c.shape(0);
    const int64_t n = c.shape(1)[0];
    if (c.shape(2) != Shape{n})
        throw shape_error(c.name(), str("box_indices is ", c.shape(2), ": there are ", n, " boxes"));
    const auto size = c.ints(3);
    if (size.size() != 2)
        throw value_error(c.name(), str("crop_size must hold the height and the width, not ", size.size(), " sizes"));
    for (int64_t s : size) expect_positive(c, 3, s);
    checked_shape(c.name(), std::array{n, size[0], size[1], image[3]}, size_of(c.dtype));
    // Boxes are {y1, x1, y2, x2}, from 0 to 1.
    const auto b = corners(c.in(1), {n, 1});
    Expr places[2], inside[2];
    for (int k : {0, 1}) {
        const auto at = static_cast<size_t>(k);
        Expr p = crop_places(c, b[at], b[at + 2], image[k + 1], size[at]);
        Shape shape{n, 1, 1};
        shape[k + 1] = size[at];
        p = p.reshape(shape);
        inside[k] = c.call("logical_and", {c.call("greater_equal", {p, 0.0}),
                                           c.call("less_equal", {p, static_cast<double>(image[k + 1] - 1)})});
        places[k] = where(inside[k], p, 0.0);
    }
    const Shape grid{n, size[0], size[1]};
    const Expr sample = c.in(2).reshape({n, 1, 1}).broadcast_to(grid);
    auto pixels = [&](const Expr& y, const Expr& x) {
        Expr at[] = {sample, y.cast(DType::i64).broadcast_to(grid), x.cast(DType::i64).broadcast_to(grid)};
        return c.call("gather_nd", {c.in(0), c.call("stack", {c.builder.list(at), -1})});
    };
    Expr result;
    if (c.string(4) == "nearest") {
        result = pixels(fn("floor", places[0] + 0.5), fn("floor", places[1] + 0.5));
    } else {
        auto deep = [](const Expr& e) {
            Shape s = e.shape();
            s.push_back(1);
            return e.reshape(s);
        };
        const Expr top = fn("floor", places[0]), bottom = fn("ceil", places[0]);
        const Expr left = fn("floor", places[1]), right = fn("ceil", places[1]);
        const Expr dx = deep(places[1] - left), dy = deep(places[0] - top);
        auto row = [&](const Expr& y) {
            const Expr first = pixels(y, left);
            return first + (pixels(y, right) - first) * dx;
        };
        const Expr above = row(top);
        result = above + (row(bottom) - above) * dy;
    }
    Shape mask_shape = grid;
    mask_shape.push_back(1);
    const Expr mask = c.call("logical_and", {inside[0], inside[1]}).reshape(mask_shape);
    return where(mask, result, c.number(5));
}

}  // namespace

void add_box_ops(Registry& ops) {
    ops.add("iou(anchor_boxes: float, gt_boxes: float, mode: \"iou\"|\"iof\" = \"iou\")")
        .doc(
            "Overlap of every box of gt_boxes (the rows of the result) with every one of anchor_boxes (its columns): "
            "the area that both cover by the area that either covers, or with \"iof\" by that of the box of gt_boxes. "
            "Boxes are {x1, y1, x2, y2}; sides count the pixels at both ends.")
        .example("iou(tensor{{0.0, 0.0, 4.0, 4.0}}, tensor{{0.0, 0.0, 2.0, 2.0}})", "tensor{{0.36}}")
        .expand(expand_iou)
        .wide()
        .sample("f32[3,4]:(0,1), f32[2,4]:(2,5)")
        .sample("f32[1,4]:(0,1), f32[4,4]:(2,5), \"iof\"");
    ops.add(
           "bounding_box_encode(anchor_box: float, groundtruth_box: float, means: numbers = {0.0, 0.0, 0.0, 0.0}, "
           "stds: numbers = {1.0, 1.0, 1.0, 1.0})")
        .doc(
            "What moves each anchor onto its box: offsets of the centers by the anchor's sides and logarithms of the "
            "ratios of the sides, less means, by stds.")
        .example("bounding_box_encode(tensor{{0.0, 0.0, 4.0, 4.0}}, tensor{{1.0, 0.0, 5.0, 4.0}})",
                 "tensor{{0.2, 0.0, 0.0, 0.0}}")
        .expand(expand_encode)
        .source("Ren et al., Faster R-CNN (2015)")
        .wide()
        .sample("f32[3,4]:(0,1), f32[3,4]:(0,1)")
        .sample("f32[2,4]:(0,1), f32[2,4]:(0,1), {0.1, 0.2, 0.0, 0.0}, {1.0, 1.0, 0.5, 2.0}");
    ops.add(
           "bounding_box_decode(anchor_box: float, deltas: float, max_shape: ints, means: numbers = {0.0, 0.0, 0.0, "
           "0.0}, stds: numbers = {1.0, 1.0, 1.0, 1.0}, wh_ratio_clip: number = 0.016)")
        .doc(
            "The boxes that bounding_box_encode made deltas of, within an image of max_shape {height, width}. Ratios "
            "of sides stay within wh_ratio_clip and its reciprocal.")
        .example("bounding_box_decode(tensor{{0.0, 0.0, 4.0, 4.0}}, tensor{{0.2, 0.0, 0.0, 0.0}}, {9, 9})",
                 "tensor{{1.0, 0.0, 5.0, 4.0}}")
        .expand(expand_decode)
        .wide()
        .sample("f32[3,4]:(3,5), f32[3,4]:(-0.1,0.1), {20, 30}")
        .sample("f32[2,4]:(3,5), f32[2,4]:(-0.1,0.1), {20, 30}, {0.1, 0.2, 0.0, 0.0}, {1.0, 1.0, 0.5, 2.0}");
    ops.add("check_valid(bboxes: tensor, img_metas: tensor)")
        .doc("Which boxes {x1, y1, x2, y2} lie within an image of img_metas {height, width, ratio}.")
        .example("check_valid(tensor{{0.0, 0.0, 2.0, 2.0}, {0.0, 0.0, 3.0, 3.0}}, tensor{3.0, 3.0, 1.0})",
                 "tensor{true, false}")
        .expand(expand_check_valid)
        .wide()
        .sample("f32[5,4], f32[3]:(0.5,2)")
        .sample("i64[2,4]:(0,4), i64[3]:(1,3)");
    ops.add(
           "crop_and_resize(image: float, boxes: float, box_indices: index, crop_size: ints, method: "
           "\"bilinear\"|\"nearest\" = \"bilinear\", extrapolation_value: number = 0.0)")
        .doc(
            "Cuts boxes {y1, x1, y2, x2}, from 0 to 1, out of the images (n, height, width, channels) that box_indices "
            "names, and resizes them to crop_size; what lies outside an image is extrapolation_value.")
        .example("crop_and_resize(ones({1, 2, 2, 1}), tensor{{0.0, 0.0, 1.0, 1.0}}, tensor{0}, {1, 1})",
                 "tensor{{{{1.0}}}}")
        .expand(expand_crop_and_resize)
        .wide()
        .sample("f32[2,4,5,3], f32[3,4]:(0.1,0.9), i64[3]:(0,2), {3, 2}")
        .sample("f32[1,3,3,1], f32[2,4]:(-0.4,1.4), i64[2]:(0,1), {2, 1}, \"nearest\", -1.0");
}

}  // namespace lunaria
