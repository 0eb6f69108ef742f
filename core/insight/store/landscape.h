// MindSpore's record of a loss landscape: the loss on a grid in a plane of the parameters' space, and the way of the
// training in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lunaria::insight {

struct Landscape {
    struct Points {
        std::vector<double> x, y, z;
        std::vector<int64_t> z_shape;
    };
    Points grid, path, convergence;
    std::vector<int64_t> intervals;  // steps or epochs of the path's points
    std::string decomposition, unit;
    int64_t steps_per_epoch = 0;
};

// The landscape in the message of a value (Summary.Value).
Landscape read_landscape(std::string_view value);

}  // namespace lunaria::insight
