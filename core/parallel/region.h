// Regions taken apart: what is left of one without another, and the runs of memory in which its elements lie.
#pragma once

#include <vector>

#include "core/parallel/piece.h"

namespace lunaria::parallel {

// Adds what remains of `all` without `part`, which lies inside, as regions that do not overlap.
void subtract(const Region& all, const Region& part, std::vector<Region>& rest);

// Calls run(offset in a, offset in b, count) for the elements of `area`, in order: offsets count elements of dense
// tensors that hold the regions `a` and `b`, both of which contain the area. Counts are the largest for which the
// elements follow each other in both.
template <class Run>
void each_run(const Region& area, const Region& a, const Region& b, const Run& run) {
    if (elements(area) == 0) return;
    const size_t rank = area.size();
    // The axes from `inner` on are one run.
    size_t inner = rank;
    int64_t count = 1;
    while (inner > 0) {
        --inner;
        count *= area[inner].size();
        if (area[inner] != a[inner] || area[inner] != b[inner]) break;
    }
    const Strides in_a = contiguous_strides(shape_of(a)), in_b = contiguous_strides(shape_of(b));
    auto step = [](const Strides& strides, size_t axis) { return strides[static_cast<int>(axis)]; };
    int64_t at_a = 0, at_b = 0;
    for (size_t axis = 0; axis < rank; ++axis) {
        at_a += (area[axis].begin - a[axis].begin) * step(in_a, axis);
        at_b += (area[axis].begin - b[axis].begin) * step(in_b, axis);
    }
    std::vector<int64_t> index(inner, 0);
    for (;;) {
        run(at_a, at_b, count);
        size_t axis = inner;
        for (; axis > 0; --axis) {
            const size_t k = axis - 1;
            at_a += step(in_a, k);
            at_b += step(in_b, k);
            if (++index[k] < area[k].size()) break;
            at_a -= step(in_a, k) * area[k].size();
            at_b -= step(in_b, k) * area[k].size();
            index[k] = 0;
        }
        if (axis == 0) return;
    }
}

}  // namespace lunaria::parallel
