// A mesh: ranks in a grid whose axes have names. Layouts of tensors (layout.h) speak of its axes.
//
// A *position* counts the places of the grid in row-major order; the *rank* at a position is the number of a process.
// They are equal unless the mesh is made of other ranks, such as one stage of a pipeline.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lunaria::parallel {

inline constexpr int kMaxMeshAxes = 16;
inline constexpr int64_t kMaxRanks = int64_t{1} << 20;

using AxisSet = uint32_t;  // a bit for each axis of a mesh
constexpr AxisSet axis_bit(int axis) { return AxisSet{1} << axis; }
constexpr bool has_axis(AxisSet set, int axis) { return (set >> axis & 1) != 0; }

class Mesh {
  public:
    // The mesh with these axes, major to minor. `ranks`: the rank at each position; without them 0, 1, 2 ... Equal
    // meshes are one object, which lasts to the end of the process. Throws for sizes below 1, names that are no words
    // or occur twice, ranks that occur twice or are too few or too many.
    static const Mesh& of(std::string_view where, std::span<const int64_t> sizes, std::span<const std::string> names,
                          std::span<const int> ranks = {});
    // As text() gives it, without ranks: "dp=4, tp=2".
    static const Mesh& parse(std::string_view where, std::string_view text);

    Mesh(const Mesh&) = delete;
    Mesh& operator=(const Mesh&) = delete;

    int axes() const { return static_cast<int>(sizes_.size()); }
    const std::string& name(int axis) const { return names_[static_cast<size_t>(axis)]; }
    int64_t size(int axis) const { return sizes_[static_cast<size_t>(axis)]; }
    std::span<const int64_t> sizes() const { return sizes_; }
    std::span<const std::string> names() const { return names_; }
    AxisSet all_axes() const { return axis_bit(axes()) - 1; }
    // The product of the sizes of some axes.
    int64_t size_of(AxisSet axes) const;
    int find(std::string_view name) const;                          // -1: no such axis
    int axis(std::string_view where, std::string_view name) const;  // throws for no such axis
    std::string names_of(AxisSet axes) const;                       // dp.tp

    // The number of ranks.
    int64_t count() const { return count_; }
    int rank(int64_t position) const {
        return ranks_.empty() ? static_cast<int>(position) : ranks_[static_cast<size_t>(position)];
    }
    int64_t position(int rank) const;  // -1: not of this mesh
    // Whether the ranks are 0, 1, 2 ...
    bool is_plain() const { return ranks_.empty(); }
    int64_t coordinate(int64_t position, int axis) const {
        return position / strides_[static_cast<size_t>(axis)] % size(axis);
    }
    // The distance of neighbours along an axis, in positions.
    int64_t stride(int axis) const { return strides_[static_cast<size_t>(axis)]; }
    // The positions that differ from this one at most along `axes`, in ascending order, so that all of them get the
    // same list.
    std::vector<int64_t> group(int64_t position, AxisSet axes) const;
    // The place of a position in its group.
    int64_t place_in_group(int64_t position, AxisSet axes) const;

    std::string text() const;  // dp=4, tp=2

  private:
    Mesh() = default;
    std::vector<int64_t> sizes_, strides_;
    std::vector<std::string> names_;
    std::vector<int> ranks_;  // empty: 0, 1, 2 ...
    int64_t count_ = 1;
};

}  // namespace lunaria::parallel
