// Published formulas of the memory that training takes, for checks and first guesses. Plans count the tensors of the
// program itself (strategies.h).
#pragma once

#include <cstdint>

namespace lunaria::parallel {

// Bytes for each parameter: the weight that is computed with, its gradient, and what the optimizer keeps: for Adam in
// mixed precision a float32 weight and two moments.
struct StateBytes {
    double weight = 2, gradient = 2, optimizer = 12;
};

// What the ranks of a group divide among them: level 1 the optimizer's states, 2 the gradients too, 3 the weights too.
// Bytes of one rank.
double sharded_state_bytes(double parameters, int64_t ranks, int level, const StateBytes& bytes = {});

// Activations of one layer of a transformer in float16 that the backward pass needs (Korthikanti and others, 2022), for
// one micro-batch: heads and hidden parts of products cut `tensor` times, the rest of the layer too with
// `cuts_sequence`, and with `remakes_attention` without the scores, which are computed once more.
struct TransformerLayer {
    double sequence = 0, batch = 0, hidden = 0, heads = 0;
};
double activation_bytes(const TransformerLayer& layer, int64_t tensor = 1, bool cuts_sequence = false,
                        bool remakes_attention = false);

}  // namespace lunaria::parallel
