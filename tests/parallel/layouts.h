// Layouts for tests: all of a mesh, and pieces of random integers laid out on it.
#pragma once

#include <string>
#include <vector>

#include "core/parallel/redistribution.h"

namespace lunaria::parallel {

// A mesh with the axes x, y, z ...
const Mesh& mesh_of(const std::vector<int64_t>& sizes);

// Every layout of a tensor with `rank` axes: each mesh axis cuts one of its axes, at each place of its list, or none.
std::vector<const Distribution*> complete_layouts(const Mesh& mesh, int rank);
// As well as those: each mesh axis may be one along which values are incomplete.
std::vector<const Distribution*> all_layouts(const Mesh& mesh, int rank, Merge merge = Merge::sum);

// A tensor of small integers and its pieces; where the layout is partial, each rank has another term.
struct Laid {
    Tensor whole;
    std::vector<Tensor> pieces;
};
Laid random_pieces(const Distribution& layout, const Shape& shape, DType dtype, uint32_t seed);

// Nothing where the pieces, put together, are the whole, and ranks with the same part have the same values.
std::string difference(const Distribution& layout, const Tensor& whole, const std::vector<Tensor>& pieces);

}  // namespace lunaria::parallel
