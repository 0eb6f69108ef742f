// Convolutions of 8-bit integers, each channel by itself. Compiled once for each instruction set.
//
// The lines of the picture under the kernel lie in scratch with the zeros around them, as unsigned bytes and with
// channels in whole vectors. A lane is a channel: the bytes of two or four pixels below one another make its word,
// which is multiplied by a word of as many weights.
#include "core/lite/kernels/integer_end.h"
#include "core/lite/kernels/integer_products.h"
#include "core/lite/kernels/rows.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

namespace {

struct DepthwiseTask {
    const uint8_t* const* lines;  // one for each row of the kernel, at its left tap
    int64_t pixel, step;          // bytes from a pixel to the next, and from a tap to the next
    const int32_t* weight;        // [column of the kernel][group of rows][channel]
    int64_t channels;             // in whole vectors of 16
    const IntegerEnd* end;
    uint8_t* y;
    int64_t y_pixel;
    const uint8_t* residual;
    int64_t residual_pixel;
};

template <int Height>
[[gnu::always_inline]] inline Ints column_word(const uint8_t* const* lines, int first, int64_t at) {
    Ints x = load_bytes(lines[first] + at);
#pragma GCC unroll 4
    for (int i = 1; i < kTogether; ++i)
        if (first + i < Height) x |= load_bytes(lines[first + i] + at) << (i * (32 / kTogether));
    return x;
}

template <int Height, int Width, int Stride, int Side>
void depthwise_group(const DepthwiseTask& task) {
    const DepthwiseTask t = task;  // results could be anywhere, also in the argument
    constexpr int kGroups = (Height + kTogether - 1) / kTogether, kSteps = (Side - 1) * Stride + Width;
    const uint8_t* lines[Height];
    for (int i = 0; i < Height; ++i) lines[i] = t.lines[i];
    for (int64_t c = 0; c < t.channels; c += kPanel) {
        Sums sums[Side];
#pragma GCC unroll 4
        for (int v = 0; v < kColumns; ++v) {
            Ints sum[Side];
#pragma GCC unroll 8
            for (int i = 0; i < Side; ++i) sum[i] = Ints{};
            const int64_t at = c + v * kLanes;
#pragma GCC unroll 3
            for (int g = 0; g < kGroups; ++g) {
                Ints w[Width];
#pragma GCC unroll 8
                for (int kx = 0; kx < Width; ++kx) w[kx] = load<Ints>(t.weight + (kx * kGroups + g) * t.channels + at);
#pragma GCC unroll 16
                for (int j = 0; j < kSteps; ++j) {
                    const Ints x = column_word<Height>(lines, g * kTogether, j * t.pixel + at);
#pragma GCC unroll 8
                    for (int i = 0; i < Side; ++i)
                        if (j - i * Stride >= 0 && j - i * Stride < Width) sum[i] = dot(sum[i], x, w[j - i * Stride]);
                }
            }
#pragma GCC unroll 8
            for (int i = 0; i < Side; ++i) sums[i].v[v] = sum[i];
        }
        if (t.end->is_plain(c, t.residual)) {
            const IntegerEnd::Plain plain = t.end->plain(c);
#pragma GCC unroll 8
            for (int i = 0; i < Side; ++i) IntegerEnd::finish(plain, sums[i], t.y + i * t.y_pixel + c);
            continue;
        }
        for (int i = 0; i < Side; ++i)
            t.end->finish(c, sums[i], t.y + i * t.y_pixel, t.residual ? t.residual + i * t.residual_pixel : nullptr);
    }
}

// Any kernel, one result.
void depthwise_single(const DepthwiseTask& t, int64_t height, int64_t width) {
    const int64_t groups = (height + kTogether - 1) / kTogether;
    for (int64_t c = 0; c < t.channels; c += kPanel) {
        Sums sums;
        for (int v = 0; v < kColumns; ++v) {
            const int64_t at = c + v * kLanes;
            Ints sum{};
            for (int64_t kx = 0; kx < width; ++kx)
                for (int64_t g = 0; g < groups; ++g) {
                    Ints x{};
                    for (int64_t i = 0; i < kTogether && g * kTogether + i < height; ++i)
                        x |= load_bytes(t.lines[g * kTogether + i] + kx * t.step + at)
                             << static_cast<int>(i * (32 / kTogether));
                    sum = dot(sum, x, load<Ints>(t.weight + (kx * groups + g) * t.channels + at));
                }
            sums.v[v] = sum;
        }
        t.end->finish(c, sums, t.y, t.residual);
    }
}

using GroupLoop = void (*)(const DepthwiseTask&);
struct Loops {
    GroupLoop loop = nullptr;
    int side = 1;
};
Loops loops_of(const ConvolutionShape& s) {
    if (s.dilation[1] != 1 || s.dilation[2] != 1) return {};
    const int64_t h = s.kernel[1], w = s.kernel[2], stride = s.stride[2];
    if (h == 3 && w == 3 && stride == 1) return {depthwise_group<3, 3, 1, 4>, 4};
    if (h == 3 && w == 3 && stride == 2) return {depthwise_group<3, 3, 2, 4>, 4};
#if defined(__AVX2__)
    if (h == 5 && w == 5 && stride == 1) return {depthwise_group<5, 5, 1, 4>, 4};
    if (h == 5 && w == 5 && stride == 2) return {depthwise_group<5, 5, 2, 4>, 4};
#endif
    return {};
}

constexpr int kMostHeight = 16;

class Lines {
  public:
    Lines(const IntegerConvolution& c, const IntegerLines& sizes, uint8_t* scratch)
        : c_(c),
          s_(c.shape),
          sizes_(sizes),
          lines_(scratch),
          zero_(static_cast<uint8_t>(c.x_zero + offset_of(c.type))) {
        pixel_ = c.x_pixel ? c.x_pixel : s_.channels;
        first_pixel_ = s_.pad[2] * sizes.channels;
    }
    void begin(int64_t picture, int64_t y) {
        picture_ = picture;
        next_ = y * s_.stride[1];
    }
    // Lines from y * stride - pad on, for each row of the kernel.
    void read(int64_t y, const uint8_t** rows) {
        const int64_t first = y * s_.stride[1];
        if (next_ < first) next_ = first;
        for (; next_ < first + sizes_.height; ++next_) fill_line(next_ - s_.pad[1], slot(next_));
        for (int64_t k = 0; k < s_.kernel[1]; ++k) rows[k] = slot(first + k * s_.dilation[1]);
    }

  private:
    uint8_t* slot(int64_t line) const { return lines_ + line % sizes_.height * sizes_.line_bytes; }
    void fill_line(int64_t y, uint8_t* to) const {
        if (y < 0 || y >= s_.in[1]) {
            fill(to, sizes_.line_bytes, zero_);
            return;
        }
        const uint8_t flip = flip_of(c_.type);
        const auto* from = static_cast<const uint8_t*>(c_.x) + (picture_ * s_.in[1] + y) * s_.in[2] * pixel_;
        const int64_t room = sizes_.width - s_.pad[2], pixels = s_.in[2] < room ? s_.in[2] : room;
        fill(to, first_pixel_ < sizes_.line_bytes ? first_pixel_ : sizes_.line_bytes, zero_);
        if (pixels <= 0) return;
        uint8_t* at = to + first_pixel_;
        if (pixel_ == sizes_.channels) {
            for (int64_t i = 0; i < pixels * pixel_; i += 16) store(at + i, load<Bytes16>(from + i) ^ flip);
        } else {
            for (int64_t p = 0; p < pixels; ++p, from += pixel_) {
                uint8_t* pixel = at + p * sizes_.channels;
                int64_t i = 0;
                for (; i + 16 <= s_.channels; i += 16) store(pixel + i, load<Bytes16>(from + i) ^ flip);
                for (; i < s_.channels; ++i) pixel[i] = static_cast<uint8_t>(from[i] ^ flip);
                for (; i < sizes_.channels; ++i) pixel[i] = 0;
            }
        }
        fill(at + pixels * sizes_.channels, (room - pixels) * sizes_.channels, zero_);
    }

    const IntegerConvolution& c_;
    const ConvolutionShape& s_;
    const IntegerLines& sizes_;
    uint8_t* lines_;
    uint8_t zero_;
    int64_t pixel_, first_pixel_, picture_ = 0, next_ = 0;
};

// Words of the weights: [column of the kernel][group of rows][channel].
void make_words(const ConvolutionShape& s, const uint8_t* from, int64_t channels, int32_t* to) {
    const int64_t groups = (s.kernel[1] + kTogether - 1) / kTogether;
    for (int64_t x = 0; x < s.kernel[2]; ++x)
        for (int64_t g = 0; g < groups; ++g, to += channels)
            for (int64_t c = 0; c < channels; c += kLanes) {
                Ints word{};
                for (int64_t i = 0; i < kTogether && g * kTogether + i < s.kernel[1]; ++i) {
                    Ints w = load_bytes(from + ((g * kTogether + i) * s.kernel[2] + x) * channels + c);
                    if (kTogether == 2) w = ((w ^ 0x80) - 0x80) & 0xffff;
                    word |= w << static_cast<int>(i * (32 / kTogether));
                }
                store(to + c, word);
            }
}

void block_of(const IntegerConvolution& c, uint8_t* scratch, int64_t picture, int64_t y0, int64_t y1) {
    const ConvolutionShape& s = c.shape;
    const IntegerLines sizes(s);
    auto* words = reinterpret_cast<int32_t*>(scratch + round_up(sizes.height * sizes.line_bytes, 64));
    const int64_t count = s.kernel[2] * sizes.pairs * sizes.channels;
    const auto* packed = static_cast<const uint8_t*>(c.weight);
    make_words(s, packed, sizes.channels, words);
    IntegerEnd end(c.epilogue, s.channels, words + count);
    end.prepare(reinterpret_cast<const int32_t*>(packed + taps_of(s) * sizes.channels), c.x_zero + offset_of(c.type));
    Lines lines(c, sizes, scratch);
    lines.begin(picture, y0);
    const Loops loops = loops_of(s);
    const int64_t y_pixel = c.y_pixel ? c.y_pixel : s.channels, element = c.epilogue.to_float ? 4 : 1;
    const uint8_t* rows[kMostHeight];
    const uint8_t* at[kMostHeight];
    DepthwiseTask t{at,
                    sizes.channels,
                    sizes.channels * s.dilation[2],
                    words,
                    sizes.channels,
                    &end,
                    nullptr,
                    y_pixel * element,
                    nullptr,
                    c.epilogue.residual_row};
    for (int64_t y = y0; y < y1; ++y) {
        lines.read(y, rows);
        for (int64_t x = 0; x < s.out[2];) {
            for (int64_t k = 0; k < s.kernel[1]; ++k) at[k] = rows[k] + x * s.stride[2] * sizes.channels;
            const int64_t result = (picture * s.out[1] + y) * s.out[2] + x;
            t.y = static_cast<uint8_t*>(c.y) + result * y_pixel * element;
            if (c.epilogue.residual)
                t.residual = static_cast<const uint8_t*>(c.epilogue.residual) + result * c.epilogue.residual_row;
            if (loops.loop && x + loops.side <= s.out[2]) {
                loops.loop(t);
                x += loops.side;
            } else {
                depthwise_single(t, s.kernel[1], s.kernel[2]);
                ++x;
            }
        }
    }
    const IntegerEpilogue& e = c.epilogue;
    if (!e.to_float || (!e.float_bias && e.activation == Activation::none)) return;
    Epilogue f;
    f.bias = e.float_bias;
    f.activation = e.activation;
    f.alpha = e.alpha;
    f.beta = e.beta;
    float* y = static_cast<float*>(c.y) + (picture * s.out[1] + y0) * s.out[2] * y_pixel;
    apply(f, (y1 - y0) * s.out[2], s.channels, y, y_pixel, y, y_pixel);
}

}  // namespace

void integer_depthwise(const IntegerConvolution& c, void* scratch, const Workers& workers) {
    const ConvolutionShape& s = c.shape;
    const int64_t bytes = round_up(IntegerLines(s).bytes, 64);
    int64_t blocks = 1;
    if (is_shared(workers) && s.batch < 2 * workers.workers) {
        blocks = (2 * workers.workers + s.batch - 1) / s.batch;
        if (blocks > (s.out[1] + 3) / 4) blocks = (s.out[1] + 3) / 4;
    }
    each_task(workers, s.batch * blocks, [&](int64_t i, int worker) {
        const int64_t block = i % blocks;
        block_of(c, static_cast<uint8_t*>(scratch) + worker * bytes, i / blocks, s.out[1] * block / blocks,
                 s.out[1] * (block + 1) / blocks);
    });
}

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
