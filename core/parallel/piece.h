// Pieces of a tensor: intervals of its axes, and how values of which every rank has a part are put together.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string_view>
#include <vector>

#include "core/tensor/shape.h"

namespace lunaria::parallel {

// Positions begin .. end - 1.
struct Interval {
    int64_t begin = 0, end = 0;
    int64_t size() const { return end - begin; }
    bool empty() const { return end <= begin; }
    friend bool operator==(const Interval&, const Interval&) = default;
};
using Region = std::vector<Interval>;  // one interval for each axis

std::ostream& operator<<(std::ostream& out, const Interval& interval);  // 2:4
std::ostream& operator<<(std::ostream& out, const Region& region);      // [2:4, 0:8]

// Piece `part` of `parts` of an axis: pieces of ceil(size / parts), the last ones shorter or empty.
Interval piece_of(int64_t size, int64_t part, int64_t parts);
// Empty where they do not meet.
Interval intersection(const Interval& a, const Interval& b);
Region intersection(const Region& a, const Region& b);
// All elements of a shape.
Region whole(const Shape& shape);
Shape shape_of(const Region& region);
// 0 where an axis is empty; 1 without axes.
int64_t elements(const Region& region);

// How values of which every rank has a part are put together. none: they are complete.
enum class Merge : uint8_t { none, sum, max, min, prod, all, any };
const char* name_of(Merge m);
std::optional<Merge> parse_merge(std::string_view name);

}  // namespace lunaria::parallel
