// Laid-out tensors: tensors of the mesh device, whose elements lie in pieces on the ranks of a mesh. A program sees
// their global shape. The pieces that this process holds, one in each of several processes and those of all ranks where
// ranks are simulated, are ordinary tensors in host memory.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/parallel/layout.h"
#include "core/tensor/tensor.h"

namespace lunaria {
class Op;
}

namespace lunaria::parallel {

class Rule;
struct Move;
struct Plan;

// The content of a laid-out tensor: a value, whose pieces are shared as tensors are.
struct Laid {
    // Null: the whole tensor, which is the same on every rank of any mesh; it has one piece.
    const Distribution* layout = nullptr;
    DType dtype = DType::f32;
    Shape shape;  // of the whole tensor
    std::vector<Tensor> pieces;

    int64_t bytes() const { return shape.size() * static_cast<int64_t>(size_of(dtype)); }
};

// The only device of laid-out tensors.
Device& mesh_device();
inline bool is_laid_out(const Tensor& t) { return t.device() == &mesh_device(); }

// The content of a tensor of the mesh device or, as the whole tensor, of one in host memory.
Laid content(const Tensor& t);
Tensor tensor_of(Laid content);
// Gives a tensor of the mesh device another content of the same dtype and shape.
void replace_content(const Tensor& t, Laid content);
// The layout of the tensor, or of the tensor of which it is a view; null: it is whole.
const Distribution* layout_of(const Tensor& t);

// The number of a layout, from 1 on, as the operator lay_out takes it; the layout with a number for a tensor of this
// shape. Throws where there is none, or it does not fit.
int64_t number_of(const Distribution& layout);
const Distribution& layout_numbered(int64_t number, const Shape& shape);

// Whether the tensor of the mesh device is no view of another one.
bool is_whole(const Tensor& t);

// The positions of a mesh whose pieces this process holds, in the order of Laid::pieces: all of them where ranks are
// simulated.
std::vector<int64_t> held_positions(const Mesh& mesh);

// The reason why a tensor moves, for reports: an operator needs its operand so, or the program asks for it.
struct Cause {
    const Op* op = nullptr;
    std::string_view why;
    const Rule* rule = nullptr;  // which needs its operand number `operand` so
    size_t operand = 0;
};

// The same tensor in another layout. Without a layout it needs no communication.
Laid in_layout(const Laid& x, const Distribution& to, const Cause& cause = {});
// The same by a plan that is known already, and its movement (traffic.h).
Laid carry_out(const Laid& x, const Plan& plan, const Move& move, const Cause& cause);
// For each position held here the part of the tensor that it needs, which is no piece of a layout: one with a halo, a
// shifted or flipped one. `needed`: of all positions of the mesh. The tensor is complete.
std::vector<Tensor> parts_of(const Laid& x, std::span<const Region> needed, const Cause& cause);
// Whether positions of the mesh are other processes.
bool has_other_ranks();
// The whole tensor, in host memory.
Tensor whole(const Laid& x, const Cause& cause = {});

}  // namespace lunaria::parallel
