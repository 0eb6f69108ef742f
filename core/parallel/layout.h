// The layout of a tensor on a mesh: for each axis of the tensor the mesh axes along which it is cut, major to minor,
// and the mesh axes along which it is *partial*, which means that every rank holds one term of a sum (or a maximum ...)
// of all. Along all other mesh axes it is *replicated*. Layouts do not know the tensor's sizes.
//
// Pieces need not be equal: see piece_of. An axis that is cut along several mesh axes is cut along the first one, then
// each piece along the next.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/parallel/mesh.h"
#include "core/parallel/piece.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace lunaria {

class Distribution {
  public:
    using Cuts = std::vector<std::vector<int>>;  // for each axis of the tensor: mesh axes, major to minor

    // Equal layouts are one object, which lasts to the end of the process. `merge` is Merge::none exactly where nothing
    // is partial. Throws where a mesh axis is named twice.
    static const Distribution* of(const parallel::Mesh& mesh, const Cuts& cuts, parallel::AxisSet partial = 0,
                                  parallel::Merge merge = parallel::Merge::none);
    static const Distribution* replicated(const parallel::Mesh& mesh, int rank);
    // Reads what text() gives: "[8@dp, 4@tp] +tp". A dtype in front is skipped. Sizes that the text does not tell are
    // kUnknownDim.
    static std::pair<const Distribution*, Shape> parse(std::string_view where, const parallel::Mesh& mesh,
                                                       std::string_view text);

    Distribution(const Distribution&) = delete;
    Distribution& operator=(const Distribution&) = delete;

    const parallel::Mesh& mesh() const { return *mesh_; }
    int rank() const { return static_cast<int>(cuts_.size()); }  // the number of axes of the tensor
    std::span<const int> cuts(int axis) const { return cuts_[static_cast<size_t>(axis)]; }
    const Cuts& cuts() const { return cuts_; }
    parallel::AxisSet partial() const { return partial_; }
    parallel::Merge merge() const { return merge_; }
    parallel::AxisSet cut_axes() const { return cut_axes_; }
    parallel::AxisSet replicated_axes() const { return mesh_->all_axes() & ~(cut_axes_ | partial_); }
    bool is_replicated() const { return !cut_axes_ && !partial_; }
    // The number of pieces of an axis of the tensor.
    int64_t parts(int axis) const;

    // The same layout with one thing changed.
    const Distribution* with_cut(int axis, std::vector<int> mesh_axes) const;
    const Distribution* with_partial(parallel::AxisSet partial, parallel::Merge merge) const;
    const Distribution* complete() const { return with_partial(0, parallel::Merge::none); }

    // The part of an axis of this size that a position holds.
    parallel::Interval interval(int axis, int64_t size, int64_t position) const;
    // The part of a tensor that a position holds. Those of positions that differ along replicated axes are equal.
    parallel::Region piece(const Shape& shape, int64_t position) const;
    Shape piece_shape(const Shape& shape, int64_t position) const;
    // Position 0 has it.
    Shape largest_piece(const Shape& shape) const { return piece_shape(shape, 0); }
    // Whether all pieces of a tensor of this shape have the same size.
    bool is_even(const Shape& shape) const;

    std::string text() const;                                 // [@dp, *, @tp.sp] +pp
    std::string text(const Shape& shape) const;               // [8@dp, 3, 4@tp.sp] +pp
    std::string text(DType dtype, const Shape& shape) const;  // Float32[8@dp, 4@tp] max sp

  private:
    Distribution() = default;
    std::string text_of(const Shape* shape) const;
    const parallel::Mesh* mesh_ = nullptr;
    Cuts cuts_;
    parallel::AxisSet cut_axes_ = 0, partial_ = 0;
    parallel::Merge merge_ = parallel::Merge::none;
};

}  // namespace lunaria
