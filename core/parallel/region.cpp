#include "core/parallel/region.h"

namespace lunaria::parallel {

void subtract(const Region& all, const Region& part, std::vector<Region>& rest) {
    // Along each axis, what lies before and after the part goes; the next axes cut only what lies beside it.
    Region left = all;
    for (size_t axis = 0; axis < all.size(); ++axis) {
        for (const Interval side : {Interval{left[axis].begin, part[axis].begin}, {part[axis].end, left[axis].end}}) {
            if (side.empty()) continue;
            rest.push_back(left);
            rest.back()[axis] = side;
        }
        left[axis] = part[axis];
    }
}

}  // namespace lunaria::parallel
