// CPU kernels: convolutions and their two gradients.
#include "core/ops/conv.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "backends/cpu/blas.h"
#include "backends/cpu/conv_columns.h"
#include "backends/cpu/conv_pieces.h"
#include "backends/cpu/dnn.h"
#include "backends/cpu/elementwise.h"
#include "backends/cpu/gemm_tiles.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/simd/conv_loops.h"
#include "core/base/interrupt.h"
#include "core/base/visit.h"
#include "core/run/prepared.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

Convolution read_geometry(ConvKind kind, const KernelCall& c) {
    Call call(c.op, c.args, c.dtype);
    return kind == ConvKind::forward      ? convolution_of(call)
           : kind == ConvKind::input_grad ? convolution_of_input_grad(call)
                                          : convolution_of_weight_grad(call);
}

// The same; for a call that is a step of a compiled program it is read only once.
const Convolution& geometry(ConvKind kind, const KernelCall& c, Convolution& own) {
    static constexpr char kOwner = 0;
    return recall(c, &kOwner, own, [&] { return read_geometry(kind, c); });
}

// Calls f(input element, weight element, output element) for every product that a convolution adds up.
template <class F>
void for_each_product(const Convolution& c, F f) {
    const Window& w = c.window;
    int64_t group_in = c.in_channels / c.groups, group_out = c.out_channels / c.groups;
    constexpr unsigned kTurn = 4096;
    unsigned turn = 0;
    int64_t out_index = 0;
    for (int64_t n = 0; n < c.batch; ++n)
        for (int64_t o = 0; o < c.out_channels; ++o) {
            int64_t first_channel = n * c.in_channels + o / group_out * group_in;
            for (int64_t z = 0; z < w.out[0]; ++z)
                for (int64_t y = 0; y < w.out[1]; ++y)
                    for (int64_t x = 0; x < w.out[2]; ++x, ++out_index)
                        for (int64_t ch = 0; ch < group_in; ++ch) {
                            if (++turn % kTurn == 0) poll_interrupt();
                            for (int64_t kz = 0; kz < w.kernel[0]; ++kz) {
                                int64_t iz = z * w.stride[0] + kz * w.dilation[0] - w.before[0];
                                if (iz < 0 || iz >= w.in[0]) continue;
                                for (int64_t ky = 0; ky < w.kernel[1]; ++ky) {
                                    int64_t iy = y * w.stride[1] + ky * w.dilation[1] - w.before[1];
                                    if (iy < 0 || iy >= w.in[1]) continue;
                                    for (int64_t kx = 0; kx < w.kernel[2]; ++kx) {
                                        int64_t ix = x * w.stride[2] + kx * w.dilation[2] - w.before[2];
                                        if (ix < 0 || ix >= w.in[2]) continue;
                                        int64_t in = ((first_channel + ch) * w.in[0] + iz) * w.in[1] + iy;
                                        int64_t weight = ((o * group_in + ch) * w.kernel[0] + kz) * w.kernel[1] + ky;
                                        f(in * w.in[2] + ix, weight * w.kernel[2] + kx, out_index);
                                    }
                                }
                            }
                        }
        }
}

// Sums are kept in double and rounded once.
template <class T>
void plain_convolution(ConvKind kind, const Convolution& conv, const KernelCall& c) {
    const Tensor& result = c.out[0];
    std::vector<double> sums(static_cast<size_t>(result.size()));
    const T *first = c.tensor(0).data<T>(), *second = c.tensor(1).data<T>();
    auto add = [&sums](int64_t at, T a, T b) {
        sums[static_cast<size_t>(at)] += static_cast<double>(a) * static_cast<double>(b);
    };
    if (kind == ConvKind::forward) {
        if (c.has(2)) {
            const T* bias = c.tensor(2).data<T>();
            int64_t plane = conv.window.out_size();
            for (int64_t i = 0; i < result.size(); ++i)
                sums[static_cast<size_t>(i)] = static_cast<double>(bias[i / plane % conv.out_channels]);
        }
        for_each_product(conv, [&](int64_t x, int64_t w, int64_t y) { add(y, first[x], second[w]); });
    } else if (kind == ConvKind::input_grad) {
        for_each_product(conv, [&](int64_t x, int64_t w, int64_t y) { add(x, first[y], second[w]); });
    } else {
        for_each_product(conv, [&](int64_t x, int64_t w, int64_t y) { add(w, first[x], second[y]); });
    }
    std::transform(sums.begin(), sums.end(), result.data<T>(), [](double s) { return static_cast<T>(s); });
}

template <ConvKind kind, bool relu = false>
bool plain(const KernelCall& c) {
    if (c.dtype != DType::f32 && c.dtype != DType::f64) return false;
    Convolution conv = read_geometry(kind, c);
    auto run = [&](auto tag) {
        using T = typename decltype(tag)::type;
        plain_convolution<T>(kind, conv, c);
        const std::span<T> result(c.out[0].data<T>(), static_cast<size_t>(relu ? c.out[0].size() : 0));
        for (T& y : result)
            if (y < T(0)) y = T(0);
    };
    c.dtype == DType::f32 ? run(TypeTag<float>{}) : run(TypeTag<double>{});
    return true;
}

constexpr Window::Sizes kOnes{1, 1, 1}, kNone{0, 0, 0};

bool is_pointwise(const Convolution& c) {
    const Window& w = c.window;
    return w.kernel == kOnes && w.before == kNone && w.after == kNone && c.groups == 1;
}

template <ConvKind kind, bool relu = false>
bool dnn(const KernelCall& c) {
    if (c.dtype != DType::f32) return false;
    Convolution own;
    const Convolution& conv = geometry(kind, c, own);
    // oneDNN refuses sizes of zero, which the plain kernel handles.
    if (c.tensor(0).size() == 0 || c.tensor(1).size() == 0 || c.out[0].size() == 0) return false;
    // A large image is divided among threads as one product of matrices that are views of it; oneDNN would copy its
    // rows.
    const double image = products_of(conv) / static_cast<double>(conv.batch);
    if (kind == ConvKind::forward && image > kMostProducts * num_threads() && is_pointwise(conv)) return false;
    float *first = c.tensor(0).data<float>(), *second = c.tensor(1).data<float>(), *result = c.out[0].data<float>();
    // A result with a planned place in memory stays there.
    Tensor* replaceable = c.out[0].is_sole_owner() ? &c.out[0] : nullptr;
    if (kind == ConvKind::weight_grad) return dnn_convolve(kind, conv, first, result, nullptr, second, replaceable);
    const float* bias = kind == ConvKind::forward && c.has(2) ? c.tensor(2).data<float>() : nullptr;
    return kind == ConvKind::forward
               ? dnn_convolve(kind, conv, first, second, bias, result, nullptr, kMostProducts, relu)
               : dnn_convolve(kind, conv, result, second, nullptr, first, replaceable);
}

constexpr int64_t kImage = 0, kRow = 1, kColumn = 2, kChannel = 3;

// A view of a tensor with the channels last that has the channels first.
Tensor channels_in_front(const Tensor& t) {
    const Strides& s = t.strides();
    return t.view({t.dim(kImage), t.dim(kChannel), t.dim(kRow), t.dim(kColumn)},
                  {s[kImage], s[kChannel], s[kRow], s[kColumn]});
}

// A call with the channels last by way of one with the channels in front: convolve(geometry, call).
template <class F>
bool by_way_of_front(const KernelCall& c, F convolve) {
    const Convolution conv = convolution_of_last(Call(c.op, c.args, c.dtype));
    std::vector<Value> args(c.args.begin(), c.args.end());
    args[0] = Value(channels_in_front(c.tensor(0)).contiguous());
    for (size_t i : {1, 2})
        if (c.has(i)) args[i] = Value(c.tensor(i).contiguous());
    Tensor front = Tensor::empty(c.dtype, conv.output_shape());
    if (!convolve(conv, KernelCall{c.op, args, std::span(&front, 1), c.dtype})) return false;
    copy_elements(front, channels_in_front(c.out[0]));
    return true;
}

bool plain_last(const KernelCall& c) {
    if (c.dtype != DType::f32 && c.dtype != DType::f64) return false;
    return by_way_of_front(c, [](const Convolution& conv, const KernelCall& front) {
        front.dtype == DType::f32 ? plain_convolution<float>(ConvKind::forward, conv, front)
                                  : plain_convolution<double>(ConvKind::forward, conv, front);
        return true;
    });
}

bool has_elements(const KernelCall& c) {
    return c.tensor(0).size() > 0 && c.tensor(1).size() > 0 && c.out[0].size() > 0;
}

// By products of matrices: f64, for which oneDNN has no kernels.
bool by_columns(ConvKind kind, const Convolution& conv, const KernelCall& c, bool relu) {
    double *first = c.tensor(0).data<double>(), *second = c.tensor(1).data<double>(), *out = c.out[0].data<double>();
    const double* bias = kind == ConvKind::forward && c.has(2) ? c.tensor(2).data<double>() : nullptr;
    const bool done = kind == ConvKind::forward      ? convolve_columns(kind, conv, first, second, bias, out)
                      : kind == ConvKind::input_grad ? convolve_columns(kind, conv, out, second, bias, first)
                                                     : convolve_columns(kind, conv, first, out, bias, second);
    if (done && relu) cut_negatives(out, c.out[0].size());
    return done;
}

template <ConvKind kind, bool relu = false>
bool columns(const KernelCall& c) {
    if (c.dtype != DType::f64 || !has_elements(c)) return false;
    Convolution own;
    return by_columns(kind, geometry(kind, c, own), c, relu);
}

bool columns_last(const KernelCall& c) {
    if (c.dtype != DType::f64 || !has_elements(c)) return false;
    return by_way_of_front(c, [](const Convolution& conv, const KernelCall& front) {
        return by_columns(ConvKind::forward, conv, front, false);
    });
}

// Reads x in its memory order, whether the channels really are last or x is a view of a tensor with the channels first.
bool dnn_last(const KernelCall& c) {
    if (c.dtype != DType::f32) return false;
    static constexpr char kOwner = 0;
    Convolution own;
    Convolution conv = recall(c, &kOwner, own, [&] { return convolution_of_last(Call(c.op, c.args, c.dtype)); });
    if (c.tensor(0).size() == 0 || c.tensor(1).size() == 0 || c.out[0].size() == 0) return false;
    const Tensor front = channels_in_front(c.tensor(0));
    const bool lies_front = !c.tensor(0).is_contiguous() && front.is_contiguous();
    const Tensor x = lies_front ? front : c.tensor(0).contiguous(), weight = c.tensor(1).contiguous();
    const Tensor bias = c.has(2) ? c.tensor(2).contiguous() : Tensor();
    const ConvLayout layout = lies_front ? ConvLayout::front_to_last : ConvLayout::last;
    return dnn_convolve_last(layout, conv, x.data<float>(), weight.data<float>(), bias ? bias.data<float>() : nullptr,
                             c.out[0].data<float>());
}

// A 1x1 convolution is a product of matrices for each image, over the pixels that it reads, in the layout of the
// tensors. With a stride oneDNN computes the same, but first generates machine code for each kind of product, which
// takes as long as a hundred products. Without a stride the forward products here serve f64 only, since oneDNN divides
// those of f32 better among threads.
// Calls f(pixel of the input, pixel of the output) for the first pixels of each row.
template <class F>
void for_each_row(const Window& w, F f) {
    for (int64_t z = 0; z < w.out[0]; ++z)
        for (int64_t y = 0; y < w.out[1]; ++y)
            f((z * w.stride[0] * w.in[1] + y * w.stride[1]) * w.in[2], (z * w.out[1] + y) * w.out[2]);
}

// Copies the pixels of an image that a stride reads, for all channels.
template <class T>
void pick_pixels(const Convolution& c, const T* image, T* picked) {
    const Window& w = c.window;
    for (int64_t channel = 0; channel < c.in_channels; ++channel, image += w.in_size(), picked += w.out_size())
        for_each_row(w, [&](int64_t in, int64_t out) {
            for (int64_t x = 0; x < w.out[2]; ++x) picked[out + x] = image[in + x * w.stride[2]];
        });
}
// The reverse of pick_pixels; pixels between become zero.
template <class T>
void put_pixels(const Convolution& c, const T* picked, T* image) {
    const Window& w = c.window;
    std::fill_n(image, c.in_channels * w.in_size(), T(0));
    for (int64_t channel = 0; channel < c.in_channels; ++channel, image += w.in_size(), picked += w.out_size())
        for_each_row(w, [&](int64_t in, int64_t out) {
            for (int64_t x = 0; x < w.out[2]; ++x) image[in + x * w.stride[2]] = picked[out + x];
        });
}

// One image; `sums` tells whether the product is added to the weights.
template <class T, ConvKind kind>
bool multiply_pixels(const Convolution& c, T* image, T* w, const T* bias, T* y, bool sums) {
    const int64_t pixels = c.window.out_size(), ci = c.in_channels, co = c.out_channels;
    const bool picks = c.window.stride != kOnes;
    const Tensor picked = picks ? Tensor::empty(dtype_of<T>(), {ci, pixels}) : Tensor();
    T* const x = picks ? picked.data<T>() : image;
    const MatrixRef<T> weight{w, co, ci, ci, 1}, xm{x, ci, pixels, pixels, 1}, ym{y, co, pixels, pixels, 1};
    if (kind != ConvKind::input_grad && picks) pick_pixels(c, image, x);
    if constexpr (kind == ConvKind::forward) {
        for (int64_t o = 0; bias && o < co; ++o) std::fill_n(y + o * pixels, pixels, bias[o]);
        return gemm(weight, xm, y, bias ? T(1) : T(0));
    } else if constexpr (kind == ConvKind::input_grad) {
        if (!gemm(weight.transposed(), ym, x, T(0))) return false;
        if (picks) put_pixels(c, x, image);
        return true;
    } else {
        return gemm(ym, xm.transposed(), w, sums ? T(1) : T(0));
    }
}

// All images. If there is an image for each thread, the threads share the images, otherwise each product.
template <class T, ConvKind kind>
bool multiply_images(const Convolution& c, T* x, T* w, const T* bias, T* y, bool relu) {
    const int64_t x_step = c.in_channels * c.window.in_size(), y_step = c.out_channels * c.window.out_size();
    // Counted in products: the least work that is worth a thread, and the most between two checks for interrupts.
    constexpr int64_t kWorthwhile = 1 << 20, kTurn = 1 << 30;
    const int64_t products = std::max<int64_t>(y_step * c.in_channels, 1);
    const bool together = kind == ConvKind::weight_grad || c.batch < num_threads();
    const int64_t turn = together ? 1 : std::clamp<int64_t>(kTurn / products, num_threads(), c.batch);
    std::atomic<bool> done = true;
    for (int64_t n = 0; n < c.batch; n += turn) {
        if (n) safe_point();
        auto multiply = [&](int64_t begin, int64_t end) {
            for (int64_t i = n + begin; i < n + end; ++i) {
                if (!multiply_pixels<T, kind>(c, x + i * x_step, w, bias, y + i * y_step, n > 0)) done = false;
                if (relu) cut_negatives(y + i * y_step, y_step);
            }
        };
        const int64_t count = std::min(turn, c.batch - n);
        count > 1 ? parallel_for(count, kWorthwhile / products + 1, multiply) : multiply(0, count);
        if (!done) return false;
    }
    return true;
}

// The kernel of 1x1 convolutions, with a stride or without one.
template <ConvKind kind, bool strided, bool relu = false>
bool pointwise(const KernelCall& c) {
    if (c.dtype != DType::f32 && c.dtype != DType::f64) return false;
    Convolution own;
    const Convolution& conv = geometry(kind, c, own);
    if (!is_pointwise(conv) || strided != (conv.window.stride != kOnes)) return false;
    if (c.tensor(0).size() == 0 || c.tensor(1).size() == 0) return false;
    auto run = [&](auto tag) {
        using T = typename decltype(tag)::type;
        T *first = c.tensor(0).data<T>(), *second = c.tensor(1).data<T>(), *result = c.out[0].data<T>();
        const T* bias = kind == ConvKind::forward && c.has(2) ? c.tensor(2).data<T>() : nullptr;
        if constexpr (kind == ConvKind::forward)
            return multiply_images<T, kind>(conv, first, second, bias, result, relu);
        if constexpr (kind == ConvKind::input_grad)
            return multiply_images<T, kind>(conv, result, second, bias, first, false);
        return multiply_images<T, kind>(conv, first, result, bias, second, false);
    };
    return c.dtype == DType::f32 ? run(TypeTag<float>{}) : run(TypeTag<double>{});
}

const ConvLoops& conv_loops() {
    const Isa isa = current_isa();
    return isa == Isa::avx512 ? avx512::conv_loops : isa == Isa::avx2 ? avx2::conv_loops : v2::conv_loops;
}

constexpr int64_t kMostTaps = 256, kWidest = 256;

// The part of the registers that is filled when `count` neighbours are the lanes.
double filled(int64_t count) {
    const int64_t lanes = conv_loops().lanes;
    return static_cast<double>(count) / static_cast<double>((count + lanes - 1) / lanes * lanes);
}

// Few channels leave most of a register empty in oneDNN's layouts, and bringing a small image into such a layout takes
// longer than the convolution.
bool is_small(const Convolution& c) {
    const Window& w = c.window;
    const bool plain = w.axes == 2 && w.stride == kOnes && w.dilation == kOnes && w.before == kNone &&
                       w.after == kNone && c.groups == 1;
    if (!plain || products_of(c) > kMostProducts * static_cast<double>(c.batch) || c.in_channels > 8 ||
        c.in_channels * w.kernel_size() > kMostTaps || c.out_channels > kMostLaneChannels)
        return false;
    const int64_t width = w.out[2];
    if (width < conv_loops().narrowest || width > kWidest) return false;
    // Half empty registers are acceptable only where there is little work.
    constexpr int64_t kLittle = 1 << 20;
    constexpr double kFull = 0.8;
    return filled(width) >= kFull || filled(c.out_channels) >= kFull || products_of(c) <= kLittle;
}

// The weights with the channels as lanes. Weights of a compiled program are kept in that order until a write to them;
// other weights are reordered in each call.
class LaneWeights {
  public:
    LaneWeights(const SmallConv& c, const float* weight) {
        // Vectors of another instruction set have another width.
        const ConvLoops* const loops = &conv_loops();
        Prepared* place = prepared_place(weight);
        const Kept* kept = place ? place->kept.find<Kept>(loops) : nullptr;
        if (!kept) {
            Kept& to = place ? *place->kept.keep(loops, std::make_unique<Kept>()) : own_;
            loops->pack_channels(c, weight, to.elements);
            kept = &to;
        }
        data_ = kept->elements;
    }
    LaneWeights(const LaneWeights&) = delete;
    const float* data() const { return data_; }

  private:
    struct Kept {
        alignas(64) float elements[kMostTaps * kMostLaneChannels];
    };
    Kept own_;
    const float* data_ = nullptr;
};

template <bool relu = false>
bool convolve_small(const KernelCall& c) {
    if (c.dtype != DType::f32) return false;
    Convolution own;
    const Convolution& conv = geometry(ConvKind::forward, c, own);
    if (!is_small(conv) || c.tensor(0).size() == 0 || c.tensor(1).size() == 0 || c.out[0].size() == 0) return false;
    const Window& w = conv.window;
    const SmallConv small{conv.in_channels, w.in[1],  w.in[2],     conv.out_channels,
                          w.out[1],         w.out[2], w.kernel[1], w.kernel[2]};
    const float *x = c.tensor(0).data<float>(), *weight = c.tensor(1).data<float>();
    const float* bias = c.has(2) ? c.tensor(2).data<float>() : nullptr;
    float* y = c.out[0].data<float>();
    const int64_t in_step = conv.in_channels * w.in_size(), out_step = conv.out_channels * w.out_size();
    // Counted in products, of which a register takes many at a time.
    constexpr int64_t kWorthwhile = 1 << 19;
    const int64_t work = out_step * conv.in_channels * w.kernel_size();
    auto images = [&](auto* convolve, const float* weights) {
        parallel_for(conv.batch, kWorthwhile / std::max<int64_t>(work, 1) + 1, [&](int64_t begin, int64_t end) {
            for (int64_t n = begin; n < end; ++n) {
                convolve(small, x + n * in_step, weights, bias, y + n * out_step);
                if (relu) cut_negatives(y + n * out_step, out_step);
            }
        });
    };
    // With channels as lanes the result has to be reordered into the image's order, which costs a few percent.
    constexpr double kMargin = 1.1;
    if (filled(conv.out_channels) > kMargin * filled(w.out[2]))
        images(conv_loops().channels_f32, LaneWeights(small, weight).data());
    else
        images(conv_loops().small_f32, weight);
    return true;
}

}  // namespace

void add_conv_kernels(KernelTable& table) {
    table.fast("conv2d", convolve_small<>);
    for (const char* op : {"conv1d", "conv2d", "conv3d"}) {
        table.plain(op, plain<ConvKind::forward>);
        table.fast(op, pointwise<ConvKind::forward, true>);
        table.fast(op, dnn<ConvKind::forward>);
        table.fast(op, pointwise<ConvKind::forward, false>);
        table.fast(op, columns<ConvKind::forward>);
    }
    table.plain("conv2d_relu", plain<ConvKind::forward, true>);
    table.fast("conv2d_relu", convolve_small<true>);
    table.fast("conv2d_relu", pointwise<ConvKind::forward, true, true>);
    table.fast("conv2d_relu", dnn<ConvKind::forward, true>);
    table.fast("conv2d_relu", pointwise<ConvKind::forward, false, true>);
    table.fast("conv2d_relu", columns<ConvKind::forward, true>);
    table.fast("conv2d_last", dnn_last);
    table.fast("conv2d_last", columns_last);
    table.plain("conv2d_last", plain_last);
    table.plain("conv_input_grad", plain<ConvKind::input_grad>);
    table.fast("conv_input_grad", pointwise<ConvKind::input_grad, true>);
    table.fast("conv_input_grad", pointwise<ConvKind::input_grad, false>);
    table.fast("conv_input_grad", dnn<ConvKind::input_grad>);
    table.fast("conv_input_grad", columns<ConvKind::input_grad>);
    table.plain("conv_weight_grad", plain<ConvKind::weight_grad>);
    table.fast("conv_weight_grad", pointwise<ConvKind::weight_grad, true>);
    table.fast("conv_weight_grad", pointwise<ConvKind::weight_grad, false>);
    table.fast("conv_weight_grad", dnn<ConvKind::weight_grad>);
    table.fast("conv_weight_grad", columns<ConvKind::weight_grad>);
}

}  // namespace lunaria::cpu
