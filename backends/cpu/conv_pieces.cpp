#include "backends/cpu/conv_pieces.h"

#include <algorithm>
#include <utility>

namespace lunaria::cpu {

namespace {

// Channels are cut in multiples of this: oneDNN computes blocks of them.
constexpr int64_t kChannels = 64;

// The number of `count` items in a piece, evenly distributed.
int64_t together(int64_t count, double work, double most) {
    const auto fit = static_cast<int64_t>(most / (work / static_cast<double>(count)));
    const int64_t at_most = std::clamp<int64_t>(fit, 1, count - 1);
    const int64_t pieces = (count + at_most - 1) / at_most;
    return (count + pieces - 1) / pieces;
}

class Cutter {
  public:
    Cutter(ConvKind kind, double most) : kind_(kind), most_(most) {}

    std::vector<ConvPiece> take() { return std::move(pieces_); }

    // `axis`: the first one that is still to be cut.
    void cut(const ConvPiece& piece, double work, int axis) {
        const Convolution& c = piece.conv;
        if (work <= most_) return pieces_.push_back(piece);
        const int64_t channels = kind_ == ConvKind::input_grad ? c.in_channels : c.out_channels;
        const bool has_channels = c.groups == 1 && channels > kChannels;
        // An operand that is not cut is read by every piece.
        const auto weights = static_cast<double>(c.in_channels / c.groups * c.out_channels * c.window.kernel_size());
        const auto images =
            static_cast<double>(c.batch * (c.in_channels * c.window.in_size() + c.out_channels * c.window.out_size()));
        if (has_channels && weights > images) return cut_channels(piece, channels, work, axis);
        if (c.batch > 1) return cut_batch(piece, work, axis);
        for (; axis < Window::kAxes; ++axis)
            if (can_cut(c.window, axis)) return cut_rows(piece, axis, work);
        if (has_channels) return cut_channels(piece, channels, work, axis);
        pieces_.push_back(piece);
    }

  private:
    void cut_batch(const ConvPiece& whole, double work, int axis) {
        const int64_t images = whole.conv.batch, step = together(images, work, most_);
        for (int64_t from = 0; from < images; from += step) {
            ConvPiece piece = whole;
            piece.image += from;
            piece.conv.batch = std::min(step, images - from);
            cut(piece, share(work, piece.conv.batch, images), axis);
        }
    }

    void cut_channels(const ConvPiece& whole, int64_t channels, double work, int axis) {
        const int64_t blocks = (channels + kChannels - 1) / kChannels;
        const int64_t step = together(blocks, work, most_) * kChannels;
        for (int64_t from = 0; from < channels; from += step) {
            ConvPiece piece = whole;
            const int64_t count = std::min(step, channels - from);
            if (kind_ == ConvKind::input_grad) {
                piece.in_channel += from;
                piece.conv.in_channels = count;
            } else {
                piece.out_channel += from;
                piece.conv.out_channels = count;
            }
            cut(piece, share(work, count, channels), axis);
        }
    }

    // Only where every window overlaps the input, so that every piece does.
    static bool can_cut(const Window& w, int axis) {
        const auto i = static_cast<size_t>(axis);
        return w.out[i] > 1 && w.before[i] < w.reach(axis) && w.after[i] < w.reach(axis);
    }

    void cut_rows(const ConvPiece& whole, int axis, double work) {
        const auto i = static_cast<size_t>(axis);
        const Window& w = whole.conv.window;
        const int64_t step = together(w.out[i], work, most_), stride = w.stride[i], reach = w.reach(axis);
        int64_t done = 0;  // of the input, for its gradient
        for (int64_t from = 0; from < w.out[i]; from += step) {
            ConvPiece piece = whole;
            Window& part = piece.conv.window;
            const int64_t to = std::min(from + step, w.out[i]);
            int64_t first_out = from, first_in = std::max<int64_t>(0, from * stride - w.before[i]);
            int64_t last_in = std::min(w.in[i], (to - 1) * stride + reach - w.before[i]);
            if (kind_ == ConvKind::input_grad) {
                // The rows at which these windows begin, and all windows that overlap one of them.
                first_in = done;
                last_in = to == w.out[i] ? w.in[i] : to * stride - w.before[i];
                if (last_in <= first_in) continue;
                done = last_in;
                const int64_t unseen = first_in + w.before[i] - reach;
                first_out = unseen < 0 ? 0 : unseen / stride + 1;
            }
            part.in[i] = last_in - first_in;
            part.out[i] = to - first_out;
            part.before[i] = first_in + w.before[i] - first_out * stride;
            part.after[i] = std::max<int64_t>(0, (part.out[i] - 1) * stride + reach - part.in[i] - part.before[i]);
            piece.in[i] += first_in;
            piece.out[i] += first_out;
            cut(piece, share(work, to - from, w.out[i]), axis + 1);
        }
    }

    static double share(double work, int64_t some, int64_t all) {
        return work * static_cast<double>(some) / static_cast<double>(all);
    }

    ConvKind kind_;
    double most_;
    std::vector<ConvPiece> pieces_;
};

}  // namespace

double products_of(const Convolution& c) {
    return static_cast<double>(c.batch * c.out_channels * c.window.out_size()) *
           static_cast<double>(c.window.kernel_size()) * static_cast<double>(c.in_channels / c.groups);
}

std::vector<ConvPiece> conv_pieces(ConvKind kind, const Convolution& whole, double most) {
    Cutter cutter(kind, most);
    ConvPiece all;
    all.conv = whole;
    cutter.cut(all, products_of(whole), whole.window.first());
    return cutter.take();
}

int64_t start_of(int64_t image, int64_t channel, const Window::Sizes& at, int64_t channels, const Window::Sizes& plane,
                 bool last) {
    const int64_t pixel = (at[0] * plane[1] + at[1]) * plane[2] + at[2], pixels = plane[0] * plane[1] * plane[2];
    return last ? (image * pixels + pixel) * channels + channel : (image * channels + channel) * pixels + pixel;
}

}  // namespace lunaria::cpu
