// Sizes of up to eight axes, by value.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

namespace lunaria {

inline constexpr int kMaxRank = 8;
// A size that is known only when the program runs (inference of graphs).
inline constexpr int64_t kUnknownDim = -1;

class Shape {
  public:
    Shape() = default;
    Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
    // Throws when there are more than kMaxRank axes. Sizes are taken as they are; see checked_shape for users' input.
    explicit Shape(std::span<const int64_t> dims);

    int rank() const { return rank_; }
    int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
    int64_t& operator[](int axis) { return dims_[static_cast<size_t>(axis)]; }
    int64_t back() const { return dims_[static_cast<size_t>(rank_ - 1)]; }
    const int64_t* begin() const { return dims_.data(); }
    const int64_t* end() const { return dims_.data() + rank_; }
    std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }

    // Number of elements; 1 for rank 0. Meaningless while an axis is unknown. Unsigned, because the partial products of
    // an empty shape may overflow, which the axis of size 0 makes good.
    int64_t size() const {
        uint64_t n = 1;
        for (int i = 0; i < rank_; ++i) n *= static_cast<uint64_t>(dims_[static_cast<size_t>(i)]);
        return static_cast<int64_t>(n);
    }
    bool known() const {
        for (int64_t d : *this)
            if (d < 0) return false;
        return true;
    }
    void push_back(int64_t dim);         // throws past kMaxRank
    void insert(int axis, int64_t dim);  // before `axis`; throws past kMaxRank
    void erase(int axis);
    void resize(int rank, int64_t fill = 1) {
        for (int i = rank_; i < rank; ++i) dims_[static_cast<size_t>(i)] = fill;
        rank_ = static_cast<uint8_t>(rank);
    }

    friend bool operator==(const Shape& a, const Shape& b) {
        if (a.rank_ != b.rank_) return false;
        for (int i = 0; i < a.rank_; ++i)
            if (a[i] != b[i]) return false;
        return true;
    }

  private:
    std::array<int64_t, kMaxRank> dims_{};
    uint8_t rank_ = 0;
};

// Distance between neighbours along each axis, in elements.
using Strides = Shape;

std::ostream& operator<<(std::ostream& out, const Shape& shape);  // (2, 3)

// Strides of a dense row-major tensor.
Strides contiguous_strides(const Shape& shape);

// The shape that a user asked for: refuses negative sizes, more than eight axes and an element count whose bytes
// (times `element_size`) overflow 63 bits.
Shape checked_shape(std::string_view where, std::span<const int64_t> dims, size_t element_size = 8);

// The axis counted from 0 that `axis` (negative: from the end) means in a tensor of `rank` axes; throws index_error.
int normal_axis(std::string_view where, int64_t axis, int rank, std::string_view argument = "axis");

// Same for a list; throws on repeated axes. An empty list stays empty.
Shape normal_axes(std::string_view where, std::span<const int64_t> axes, int rank, std::string_view argument = "axis");

// Numpy's broadcasting of two shapes; throws shape_error that shows both.
Shape broadcast(std::string_view where, const Shape& a, const Shape& b);

}  // namespace lunaria
