// Transforms that mix the images of a batch with each other, and their labels alike.
#include "core/base/interrupt.h"
#include "core/data/vision/image.h"

namespace lunaria::vision {

namespace {

// Marsaglia and Tsang (2000); a shape below 1 by a power of a uniform number.
double gamma_draw(RowDraws& draws, double shape) {
    if (shape < 1) {
        const double u = draws.unit();
        return gamma_draw(draws, shape + 1) * std::pow(u, 1 / shape);
    }
    const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    for (;;) {
        const double x = draws.normal(), v = std::pow(1 + c * x, 3);
        if (v <= 0) continue;
        if (std::log(draws.unit()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
    }
}

double beta_draw(RowDraws& draws, double alpha) {
    const double x = gamma_draw(draws, alpha), y = gamma_draw(draws, alpha);
    return x + y > 0 ? x / (x + y) : 0.5;
}

std::vector<int64_t> any_order(int64_t count, RowDraws& draws) {
    std::vector<int64_t> order(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) order[static_cast<size_t>(i)] = i;
    for (int64_t i = count - 1; i > 0; --i)
        std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(draws.below(i + 1))]);
    return order;
}

struct Batch {
    Tensor images, labels;
    int64_t count;
};

Batch batch_of(const Row& row, const Arguments& a) {
    if (row.size() != 2)
        throw argument_error(a.where, str("two columns are expected, images and labels, got ", row.size()));
    if (!row[0].is_tensor() || row[0].tensor().rank() != 4)
        throw shape_error(
            a.where, str("a batch of images (number, height, width, channels) is expected, got ", to_string(row[0])))
            .hint("it is applied after batch");
    if (!row[1].is_tensor() || row[1].tensor().rank() < 2 || row[1].tensor().dim(0) != row[0].tensor().dim(0))
        throw shape_error(a.where, str("labels (number, classes) of ", row[0].tensor().dim(0),
                                       " images are expected, got ", to_string(row[1])))
            .hint("OneHot makes them of numbers of classes");
    if (row[0].tensor().size() == 0) throw shape_error(a.where, "the batch has no pixels");
    check_pixels(row[0].tensor(), a.where);
    return {row[0].tensor().contiguous(), row[1].tensor().cast(DType::f32).contiguous(), row[0].tensor().dim(0)};
}

// share[i] of each item i plus 1 - share[i] of the item order[i].
Tensor mixed(const Tensor& all, const std::vector<int64_t>& order, const std::vector<double>& share) {
    const Tensor out = Tensor::empty(all.dtype(), all.shape());
    const int64_t count = all.dim(0), size = all.size() / count;
    return for_pixels(all, [&](auto kind) {
        using T = decltype(kind);
        for (int64_t i = 0; i < count; ++i) {
            poll_interrupt();
            const auto s = static_cast<float>(share[static_cast<size_t>(i)]);
            const T *own = all.data<T>() + i * size, *other = all.data<T>() + order[static_cast<size_t>(i)] * size;
            T* to = out.data<T>() + i * size;
            for (int64_t k = 0; k < size; ++k)
                to[k] = rounded<T>(s * static_cast<float>(own[k]) + (1 - s) * static_cast<float>(other[k]));
        }
        return out;
    });
}

// alpha: one share for the batch; the images are mixed with the batch in random order
void run_mix_up_batch(Row& row, const Arguments& a, RowDraws& draws) {
    const Batch b = batch_of(row, a);
    const std::vector<double> share(static_cast<size_t>(b.count), beta_draw(draws, a.number(0)));
    const std::vector<int64_t> order = any_order(b.count, draws);
    row[0] = Value(mixed(b.images, order, share));
    row[1] = Value(mixed(b.labels, order, share));
}

// batch size, alpha, whether each image is mixed with the next one, otherwise with a random one; a share for each image
void run_mix_up(Row& row, const Arguments& a, RowDraws& draws) {
    const Batch b = batch_of(row, a);
    if (b.count != a.integer(0))
        throw shape_error(a.where, str("batch_size is ", a.integer(0), ", but the batch has ", b.count, " images"));
    std::vector<double> share;
    std::vector<int64_t> order;
    for (int64_t i = 0; i < b.count; ++i) {
        share.push_back(beta_draw(draws, a.number(1)));
        order.push_back((i + 1) % b.count);
    }
    if (!a.flag(2)) order = any_order(b.count, draws);
    row[0] = Value(mixed(b.images.cast(DType::f32), order, share));
    row[1] = Value(mixed(b.labels, order, share));
}

// planes, alpha, probability: a rectangle of each image comes from another one
void run_cut_mix_batch(Row& row, const Arguments& a, RowDraws& draws) {
    const Batch b = batch_of(row, a);
    const bool planes = a.flag(0);
    const int64_t height = b.images.dim(planes ? 2 : 1), width = b.images.dim(planes ? 3 : 2);
    const int64_t channels = b.images.dim(planes ? 1 : 3);
    const std::vector<int64_t> order = any_order(b.count, draws);
    std::vector<double> share(static_cast<size_t>(b.count), 1.0);
    const Tensor out = b.images.copy();
    const size_t element = size_of(out.dtype());
    for (int64_t i = 0; i < b.count; ++i) {
        if (!draws.chance(a.number(2))) continue;
        const double side = std::sqrt(1 - beta_draw(draws, a.number(1)));
        const auto h = static_cast<int64_t>(static_cast<double>(height) * side);
        const auto w = static_cast<int64_t>(static_cast<double>(width) * side);
        const int64_t cy = draws.below(height), cx = draws.below(width);
        const int64_t top = std::max<int64_t>(cy - h / 2, 0), bottom = std::min(cy + h / 2, height);
        const int64_t left = std::max<int64_t>(cx - w / 2, 0), right = std::min(cx + w / 2, width);
        const auto copy = [&](int64_t offset, int64_t count) {
            const int64_t size = b.images.size() / b.count;
            std::copy_n(
                b.images.data<char>() + static_cast<size_t>(order[static_cast<size_t>(i)] * size + offset) * element,
                static_cast<size_t>(count) * element,
                out.data<char>() + static_cast<size_t>(i * size + offset) * element);
        };
        for (int64_t y = top; y < bottom && left < right; ++y) {
            if (!planes) {
                copy((y * width + left) * channels, (right - left) * channels);
                continue;
            }
            for (int64_t c = 0; c < channels; ++c) copy((c * height + y) * width + left, right - left);
        }
        const double part = static_cast<double>((bottom - top) * (right - left)) / static_cast<double>(height * width);
        share[static_cast<size_t>(i)] = 1 - part;
    }
    row[0] = Value(out);
    row[1] = Value(mixed(b.labels, order, share));
}

}  // namespace

}  // namespace lunaria::vision

namespace lunaria::transforms {

std::span<const Entry> batch_entries() {
    using namespace vision;
    static const Entry entries[] = {
        {"mix_up_batch", 1, run_mix_up_batch},
        {"mix_up", 3, run_mix_up},
        {"cut_mix_batch", 3, run_cut_mix_batch},
    };
    return entries;
}

}  // namespace lunaria::transforms
