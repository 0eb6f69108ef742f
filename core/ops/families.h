// The families of operators; each is one file core/ops/<family>.cpp.
#pragma once

namespace lunaria {

class Registry;

void add_math_ops(Registry& ops);        // elementwise arithmetic, exponentials, trigonometry, rounding
void add_activation_ops(Registry& ops);  // activation functions
void add_activation_grad_ops(Registry& ops);
void add_compare_ops(Registry& ops);    // comparisons, logic, selection
void add_reduce_ops(Registry& ops);     // reductions and scans
void add_sort_ops(Registry& ops);       // sorting, top-k, search
void add_softmax_ops(Registry& ops);    // softmax and its kin
void add_norm_ops(Registry& ops);       // normalisation
void add_loss_ops(Registry& ops);       // loss functions
void add_shape_ops(Registry& ops);      // reshaping, transposing, broadcasting, views
void add_slice_ops(Registry& ops);      // slices, splits, diagonals
void add_array_ops(Registry& ops);      // concatenation, splitting, tiling, padding
void add_index_ops(Registry& ops);      // gather, masks
void add_scatter_ops(Registry& ops);    // scatter, segments
void add_create_ops(Registry& ops);     // constructors
void add_random_ops(Registry& ops);     // random numbers
void add_linalg_ops(Registry& ops);     // matrix products and linear algebra
void add_conv_ops(Registry& ops);       // convolutions
void add_pool_ops(Registry& ops);       // pooling
void add_attention_ops(Registry& ops);  // attention, embedding, dropout
void add_routing_ops(Registry& ops);
void add_arrangement_ops(Registry& ops);    // blocks, mirrors, grids, dropout of channels
void add_box_ops(Registry& ops);            // bounding boxes
void add_state_ops(Registry& ops);          // assignment, printing, ordering
void add_communication_ops(Registry& ops);  // requests to other ranks
void add_optimizer_ops(Registry& ops);      // steps of optimizers, in place
void add_quantise_ops(Registry& ops);       // rounding to the steps of integer formats

}  // namespace lunaria
