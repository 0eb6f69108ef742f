// Steps that only training needs: gradients of convolutions and pools, planes before pixels (batch, channels, [depth,
// [height,]] width), labels, and dropout.
#include <cmath>
#include <cstring>

#include "core/lite/kernels/product.h"
#include "core/lite/runtime/elements.h"
#include "core/lite/runtime/windows.h"
#include "core/random/random.h"

namespace lunaria::lite {

namespace {

constexpr int64_t kMost = 1 << 24;

// One number for all axes, or one for each.
bool read_sizes(const std::vector<int64_t>& list, int axes, int64_t least, int64_t (&to)[3]) {
    if (list.size() != 1 && static_cast<int>(list.size()) != axes) return false;
    for (int i = 0; i < axes; ++i) {
        const int64_t n = list.size() == 1 ? list[0] : list[static_cast<size_t>(i)];
        if (n < least || n > kMost) return false;
        to[3 - axes + i] = n;
    }
    return true;
}

// One number for all axes, one for each, or those before and after each.
bool read_padding(const std::vector<int64_t>& list, int axes, Windows& w) {
    if (static_cast<int>(list.size()) != 2 * axes || axes == 0) {
        const bool good = read_sizes(list, axes, 0, w.before);
        std::copy(std::begin(w.before), std::end(w.before), w.after);
        return good;
    }
    for (int i = 0; i < axes; ++i) {
        w.before[3 - axes + i] = list[static_cast<size_t>(2 * i)];
        w.after[3 - axes + i] = list[static_cast<size_t>(2 * i + 1)];
    }
    const auto fits = [](int64_t n) { return n >= 0 && n <= kMost; };
    return std::all_of(w.before, w.before + 3, fits) && std::all_of(w.after, w.after + 3, fits);
}

// The last axes of a shape.
bool read_planes(const std::vector<int64_t>& shape, int axes, int64_t (&to)[3]) {
    if (static_cast<int>(shape.size()) < axes) return false;
    for (int i = 0; i < axes; ++i) {
        to[3 - axes + i] = shape[shape.size() - static_cast<size_t>(axes) + static_cast<size_t>(i)];
        if (to[3 - axes + i] < 0 || to[3 - axes + i] > kMost) return false;
    }
    return true;
}

// Kernel, stride, padding and dilation, by the names of the operators. A missing stride is the kernel's size.
bool read_windows(const StepForm& form, int axes, Windows& w) {
    const std::vector<int64_t> stride = form.integers("stride"), dilation = form.integers("dilation");
    const bool steps = stride.empty() ? (std::copy(std::begin(w.kernel), std::end(w.kernel), w.stride), true)
                                      : read_sizes(stride, axes, 1, w.stride);
    return steps && (dilation.empty() || read_sizes(dilation, axes, 1, w.dilation)) &&
           read_padding(form.integers("padding"), axes, w);
}

// Calls f(place, tap, pixel) for all pairs of a window's place and a pixel under it.
template <class F>
void for_each_tap(const Windows& w, F&& f) {
    int64_t place = 0;
    for (int64_t z = 0; z < w.out[0]; ++z)
        for (int64_t y = 0; y < w.out[1]; ++y) {
            const Taps a(w, 0, z), b(w, 1, y);
            for (int64_t x = 0; x < w.out[2]; ++x, ++place) {
                const Taps c(w, 2, x);
                for (int64_t i = a.from; i < a.to; ++i)
                    for (int64_t j = b.from; j < b.to; ++j) {
                        const int64_t row = ((a.start + i * w.dilation[0]) * w.in[1] + b.start + j * w.dilation[1]);
                        const int64_t tap = (i * w.kernel[1] + j) * w.kernel[2];
                        for (int64_t k = c.from; k < c.to; ++k)
                            f(place, tap + k, row * w.in[2] + c.start + k * w.dilation[2]);
                    }
            }
        }
}

struct ConvolutionGradient {
    Windows w;
    int64_t batch = 0, channels = 0, out_channels = 0, groups = 1;

    int64_t inner() const { return channels / groups; }  // of a group
    int64_t outer() const { return out_channels / groups; }
    int64_t column() const { return inner() * w.taps(); }  // of a group's columns: rows of the matrix of windows
};

// `picture`, `weight`, `result`: shapes of the convolution's operands.
bool read_convolution_gradient(const StepForm& form, const std::vector<int64_t>& picture,
                               const std::vector<int64_t>& weight, const std::vector<int64_t>& result,
                               ConvolutionGradient& c, std::string& fault) {
    const auto axes = static_cast<int>(picture.size()) - 2;
    bool good = axes >= 1 && axes <= 3 && weight.size() == picture.size() && result.size() == picture.size() &&
                read_planes(picture, axes, c.w.in) && read_planes(weight, axes, c.w.kernel) &&
                read_planes(result, axes, c.w.out) && read_windows(form, axes, c.w);
    if (good) {
        c.batch = picture[0];
        c.channels = picture[1];
        c.out_channels = weight[0];
        c.groups = form.integer("groups", 1);
        good = c.groups >= 1 && c.channels % c.groups == 0 && c.out_channels % c.groups == 0 &&
               weight[1] == c.inner() && result[0] == c.batch && result[1] == c.out_channels;
        int64_t room = 1;
        for (const int64_t n : {c.column(), c.w.places()}) good = good && !__builtin_mul_overflow(room, n, &room);
    }
    for (const Operand& o : form.in) good = good && o.dtype == DType::f32;
    return fits(good && form.out[0].dtype == DType::f32, fault);
}

// The windows of a group of planes as a matrix: (channel, tap) x place.
void to_columns(const ConvolutionGradient& c, const float* planes, float* columns) {
    const int64_t places = c.w.places(), taps = c.w.taps();
    std::fill_n(columns, c.column() * places, 0.0F);
    for (int64_t channel = 0; channel < c.inner(); ++channel) {
        const float* const plane = planes + channel * c.w.pixels();
        float* const rows = columns + channel * taps * places;
        for_each_tap(c.w,
                     [&](int64_t place, int64_t tap, int64_t pixel) { rows[tap * places + place] = plane[pixel]; });
    }
}
void add_columns(const ConvolutionGradient& c, const float* columns, float* planes) {
    const int64_t places = c.w.places(), taps = c.w.taps();
    for (int64_t channel = 0; channel < c.inner(); ++channel) {
        float* const plane = planes + channel * c.w.pixels();
        const float* const rows = columns + channel * taps * places;
        for_each_tap(c.w,
                     [&](int64_t place, int64_t tap, int64_t pixel) { plane[pixel] += rows[tap * places + place]; });
    }
}

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Of a group and sample: sums over places of result x columns. The sums of samples are added in their order.
std::unique_ptr<Work> prepare_weight_gradient(const StepForm& form, std::string& fault) {
    ConvolutionGradient c;
    if (!has_operands(form, 2, 1, fault) ||
        !read_convolution_gradient(form, form.in[0].shape, form.out[0].shape, form.in[1].shape, c, fault))
        return nullptr;
    kernels::BatchedProduct p;
    p.m = c.outer();
    p.n = c.column();
    p.k = c.w.places();
    p.a_row = p.k;
    p.b_row = 1;
    p.b_column = p.k;
    p.c_row = p.n;
    const int64_t columns = aligned(p.n * p.k * 4), sums = aligned(p.m * p.n * 4);
    return work(
        [=, isa = form.isa](const Call& call) {
            auto* const to = reinterpret_cast<float*>(call.out[0]);
            auto* const matrix = reinterpret_cast<float*>(call.scratch);
            auto* const one = reinterpret_cast<float*>(call.scratch + columns);
            std::fill_n(to, c.out_channels * c.column(), 0.0F);
            for (int64_t i = 0; i < c.batch * c.groups; ++i) {
                const int64_t sample = i / c.groups, group = i % c.groups;
                to_columns(c,
                           reinterpret_cast<const float*>(call.in[0]) +
                               (sample * c.channels + group * c.inner()) * c.w.pixels(),
                           matrix);
                kernels::BatchedProduct now = p;
                now.a =
                    reinterpret_cast<const float*>(call.in[1]) + (sample * c.out_channels + group * c.outer()) * p.k;
                now.b = matrix;
                now.c = one;
                kernels::batched_product(isa, now, call.scratch + columns + sums, call.workers);
                float* const mine = to + group * p.m * p.n;
                for (int64_t j = 0; j < p.m * p.n; ++j) mine[j] += one[j];
            }
        },
        columns + sums + kernels::batched_product_scratch(p, form.workers));
}

std::unique_ptr<Work> prepare_input_gradient(const StepForm& form, std::string& fault) {
    ConvolutionGradient c;
    if (!has_operands(form, 2, 1, fault) ||
        !read_convolution_gradient(form, form.out[0].shape, form.in[1].shape, form.in[0].shape, c, fault))
        return nullptr;
    kernels::BatchedProduct p;
    p.m = c.column();
    p.n = c.w.places();
    p.k = c.outer();
    p.a_row = 1;
    p.a_column = p.m;
    p.b_row = p.n;
    p.c_row = p.n;
    const int64_t columns = aligned(p.m * p.n * 4);
    return work(
        [=, isa = form.isa](const Call& call) {
            auto* const to = reinterpret_cast<float*>(call.out[0]);
            auto* const matrix = reinterpret_cast<float*>(call.scratch);
            std::fill_n(to, c.batch * c.channels * c.w.pixels(), 0.0F);
            for (int64_t i = 0; i < c.batch * c.groups; ++i) {
                const int64_t sample = i / c.groups, group = i % c.groups;
                kernels::BatchedProduct now = p;
                now.a = reinterpret_cast<const float*>(call.in[1]) + group * p.m * p.k;
                now.b =
                    reinterpret_cast<const float*>(call.in[0]) + (sample * c.out_channels + group * c.outer()) * p.n;
                now.c = matrix;
                kernels::batched_product(isa, now, call.scratch + columns, call.workers);
                add_columns(c, matrix, to + (sample * c.channels + group * c.inner()) * c.w.pixels());
            }
        },
        columns + kernels::batched_product_scratch(p, form.workers));
}

// Each result's share goes to the first of the largest elements of its window, or to its last NaN.
std::unique_ptr<Work> prepare_max_gradient(const StepForm& form, std::string& fault) {
    Windows w;
    if (!has_operands(form, 2, 1, fault)) return nullptr;
    const Operand &dout = form.in[0], &x = form.in[1];
    const auto axes = static_cast<int>(form.integers("kernel_size").size());
    const bool good = axes >= 1 && axes <= 3 && read_sizes(form.integers("kernel_size"), axes, 1, w.kernel) &&
                      read_planes(x.shape, axes, w.in) && read_planes(dout.shape, axes, w.out) &&
                      read_windows(form, axes, w) && x.dtype == DType::f32 && dout.dtype == DType::f32 &&
                      form.out[0].shape == x.shape && form.out[0].dtype == DType::f32 && w.pixels() > 0 &&
                      x.size() / w.pixels() == dout.size() / std::max<int64_t>(w.places(), 1);
    if (!fits(good, fault)) return nullptr;
    return work([w, planes = x.size() / w.pixels()](const Call& call) {
        share(call.workers, planes, std::max<int64_t>(1, 8192 / w.pixels()), [&](int64_t begin, int64_t end, int) {
            for (int64_t plane = begin; plane < end; ++plane) {
                const float* const from = reinterpret_cast<const float*>(call.in[1]) + plane * w.pixels();
                const float* const shares = reinterpret_cast<const float*>(call.in[0]) + plane * w.places();
                float* const to = reinterpret_cast<float*>(call.out[0]) + plane * w.pixels();
                std::fill_n(to, w.pixels(), 0.0F);
                int64_t present = -1, best = 0;
                for_each_tap(w, [&](int64_t place, int64_t, int64_t pixel) {
                    if (place != present) {
                        if (present >= 0) to[best] += shares[present];
                        present = place;
                        best = pixel;
                    } else if (from[pixel] > from[best] || std::isnan(from[pixel])) {
                        best = pixel;
                    }
                });
                if (present >= 0) to[best] += shares[present];
            }
        });
    });
}

// The number by which the average at a place divides; no window of the average lies outside.
int64_t divisor_at(const Windows& w, int64_t place, bool counts_padding) {
    const Taps taps[3] = {
        {w, 0, place / (w.out[1] * w.out[2])}, {w, 1, place / w.out[2] % w.out[1]}, {w, 2, place % w.out[2]}};
    return std::max<int64_t>(divisor_of(w, taps, counts_padding), 1);
}

std::unique_ptr<Work> prepare_average_gradient(const StepForm& form, std::string& fault) {
    Windows w;
    if (!has_operands(form, 1, 1, fault)) return nullptr;
    const Operand &dout = form.in[0], &y = form.out[0];
    const auto axes = static_cast<int>(form.integers("input_size").size());
    const bool good = axes >= 1 && axes <= 3 && read_sizes(form.integers("kernel_size"), axes, 1, w.kernel) &&
                      read_planes(y.shape, axes, w.in) && read_planes(dout.shape, axes, w.out) &&
                      read_windows(form, axes, w) && dout.dtype == DType::f32 && y.dtype == DType::f32 &&
                      w.pixels() > 0 && y.size() / w.pixels() == dout.size() / std::max<int64_t>(w.places(), 1);
    if (!fits(good, fault)) return nullptr;
    const bool counts = form.integer("count_include_pad", 1) != 0;
    return work([w, counts, fixed = form.integer("divisor_override"),
                 planes = y.size() / w.pixels()](const Call& call) {
        share(call.workers, planes, std::max<int64_t>(1, 8192 / w.pixels()), [&](int64_t begin, int64_t end, int) {
            for (int64_t plane = begin; plane < end; ++plane) {
                const float* const shares = reinterpret_cast<const float*>(call.in[0]) + plane * w.places();
                float* const to = reinterpret_cast<float*>(call.out[0]) + plane * w.pixels();
                std::fill_n(to, w.pixels(), 0.0F);
                int64_t present = -1;
                float each = 0;
                for_each_tap(w, [&](int64_t place, int64_t, int64_t pixel) {
                    if (place != present) {
                        present = place;
                        each = shares[place] / static_cast<float>(fixed != 0 ? fixed : divisor_at(w, place, counts));
                    }
                    to[pixel] += each;
                });
            }
        });
    });
}

// Labels that do not count are 0, and the second result says which ones count.
std::unique_ptr<Work> prepare_labels(const StepForm& form, std::string& fault) {
    if (!has_operands(form, 1, 2, fault)) return nullptr;
    const Operand& labels = form.in[0];
    const int64_t count = labels.size();
    const bool good = is_index(labels.dtype) && form.out[0].dtype == DType::i64 &&
                      form.out[1].dtype == DType::boolean && form.out[0].size() == count && form.out[1].size() == count;
    if (!fits(good, fault)) return nullptr;
    return work([count, dtype = labels.dtype, classes = form.integer("classes"), ignores = form.has("ignore_index"),
                 ignored = form.integer("ignore_index")](const Call& call) {
        for (int64_t i = 0; i < count; ++i) {
            const int64_t label = index_at(call.in[0], dtype, i);
            const bool counts = !ignores || label != ignored;
            if (counts && (label < 0 || label >= classes)) return call.fail("a label is out of range");
            reinterpret_cast<int64_t*>(call.out[0])[i] = counts ? label : 0;
            call.out[1][i] = counts;
        }
    });
}

// Elements are kept where a word of 32 bits is not below the threshold; each run has other words.
std::unique_ptr<Work> prepare_dropout(const StepForm& form, std::string& fault) {
    if (!fits(form.in.size() == 1 && form.out.size() == 2 && form.in[0].is_dense() && form.out[0].is_there() &&
                  form.in[0].dtype == DType::f32 && form.out[0].dtype == DType::f32 &&
                  form.out[0].size() == form.in[0].size(),
              fault) ||
        !fits(
            !form.out[1].is_there() || (form.out[1].dtype == DType::boolean && form.out[1].size() == form.in[0].size()),
            fault))
        return nullptr;
    const double p = form.number("p", 0.5);
    if (!fits(p >= 0 && p <= 1, fault, "its probability is not from 0 to 1")) return nullptr;
    const auto number = static_cast<uint64_t>(&form.step - form.model.steps.data());
    const uint64_t key = form.has("seed") ? static_cast<uint64_t>(form.integer("seed")) : number;
    const auto runs = std::make_shared<std::atomic<uint64_t>>(0);
    return work([=, count = form.in[0].size()](const Call& call) {
        const uint64_t run = runs->fetch_add(1), threshold = static_cast<uint64_t>(p * 0x1p32);
        const float factor = p < 1 ? static_cast<float>(1 / (1 - p)) : 0.0F;
        share(call.workers, (count + 3) / 4, 4096, [&](int64_t begin, int64_t end, int) {
            for (int64_t block = begin; block < end; ++block) {
                const auto words = philox(key, static_cast<uint64_t>(block), run);
                for (int64_t i = block * 4; i < std::min(count, block * 4 + 4); ++i) {
                    const bool stays = words[static_cast<size_t>(i % 4)] >= threshold;
                    const float x = reinterpret_cast<const float*>(call.in[0])[i];
                    reinterpret_cast<float*>(call.out[0])[i] = stays ? x * factor : 0.0F;
                    if (call.out[1]) call.out[1][i] = stays;
                }
            }
        });
    });
}

constexpr StepKind kKinds[] = {
    {"conv_weight_grad", prepare_weight_gradient}, {"conv_input_grad", prepare_input_gradient},
    {"max_window_grad", prepare_max_gradient},     {"avg_pool_grad", prepare_average_gradient},
    {"dropout_with_mask", prepare_dropout},        {"valid_labels", prepare_labels}};

}  // namespace

std::span<const StepKind> training_kinds() { return kKinds; }

}  // namespace lunaria::lite
