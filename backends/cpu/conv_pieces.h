// A convolution of seconds in parts that are convolutions themselves, between which an interrupt can be noticed: some
// images, some rows of an image, some channels. Parts reach into the arrays of the whole.
#pragma once

#include <vector>

#include "backends/cpu/dnn.h"

namespace lunaria::cpu {

struct ConvPiece {
    Convolution conv;
    // The offset of the piece in the whole.
    int64_t image = 0, in_channel = 0, out_channel = 0;
    Window::Sizes in{0, 0, 0}, out{0, 0, 0};
};

double products_of(const Convolution& c);

// Together the pieces are `whole`: they compute each output once (forward), each input once (input_grad), or each
// product once (weight_grad, where pieces of the same channels follow each other and add up). At most `most` products
// each, as far as possible, in as few geometries as possible, since each geometry is a primitive of oneDNN.
std::vector<ConvPiece> conv_pieces(ConvKind kind, const Convolution& whole, double most);

// The offset of the piece in an array of images with so many channels and planes, with the channels last or not.
int64_t start_of(int64_t image, int64_t channel, const Window::Sizes& at, int64_t channels, const Window::Sizes& plane,
                 bool last);

}  // namespace lunaria::cpu
