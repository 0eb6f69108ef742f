// The rules of vmap, named in the entries of operators: `.batched(batch::along<1>)`. Each makes the call for a batch
// out of the call for one sample; nil where it does not cover the call.
#pragma once

#include "core/operator/op.h"

namespace lunaria::batch {

Value last_axes_of(const BatchCall& c, int least);
Value along_axis(const BatchCall& c, size_t at);
Value reduced(const BatchCall& c, const Types& types, size_t at);

// Operators that broadcast and work element by element.
Value elementwise(const BatchCall& c, const Types& types);
// Operators that work on the last axes only, at least so many, whatever is in front of them.
template <int least = 0>
Value last_axes(const BatchCall& c, const Types&) {
    return last_axes_of(c, least);
}
// The same where only the first operand may differ from sample to sample.
Value of_first(const BatchCall& c, const Types& types);
// Operators along an axis, parameter `at`, whose operands all have the same rank.
template <size_t at>
Value along(const BatchCall& c, const Types&) {
    return along_axis(c, at);
}
// Reductions along axes, parameter `at`: nil stands for all of them.
template <size_t at>
Value reduction(const BatchCall& c, const Types& types) {
    return reduced(c, types, at);
}
// Reductions by one axis: nil means all elements in a row.
Value reduction_by_one(const BatchCall& c, const Types& types);
Value largest(const BatchCall& c, const Types& types);
Value smallest(const BatchCall& c, const Types& types);
// The first axis of every operand is a batch already: both become one.
Value merged(const BatchCall& c, const Types& types);
// The same for the first operand and others that all samples share.
Value shared_weights(const BatchCall& c, const Types& types);

Value reshaped(const BatchCall& c, const Types& types);
Value transposed(const BatchCall& c, const Types& types);
Value axes_swapped(const BatchCall& c, const Types& types);
Value axes_moved(const BatchCall& c, const Types& types);
Value broadcast(const BatchCall& c, const Types& types);
Value joined(const BatchCall& c, const Types& types);
Value sliced(const BatchCall& c, const Types& types);
Value strided_slice(const BatchCall& c, const Types& types);
Value slice_assign(const BatchCall& c, const Types& types);
Value diagonal(const BatchCall& c, const Types& types);

Value matrix_product(const BatchCall& c, const Types& types);
Value dense(const BatchCall& c, const Types& types);
Value solved(const BatchCall& c, const Types& types);
Value convolution(const BatchCall& c, const Types& types);
Value conv_input_grad(const BatchCall& c, const Types& types);
Value conv_weight_grad(const BatchCall& c, const Types& types);

Value gather(const BatchCall& c, const Types& types);
Value segment_sum(const BatchCall& c, const Types& types);
Value one_hot(const BatchCall& c, const Types& types);
Value index_add(const BatchCall& c, const Types& types);

Value layer_norm(const BatchCall& c, const Types& types);
Value layer_norm_grad(const BatchCall& c, const Types& types);

}  // namespace lunaria::batch
