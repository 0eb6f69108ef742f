// Differences between two graphs. Operators are matched by structure: first those whose whole surroundings are equal,
// then those equal in all that they depend on or all that depends on them, then by name, then along the edges of what
// is matched. Numbers and the order in files do not matter.
#pragma once

#include <string>
#include <vector>

#include "core/insight/graph/graph_model.h"

namespace lunaria::insight {

struct GraphDifference {
    struct Change {
        int32_t before, after;  // nodes of the two graphs
        struct Value {
            std::string name, before, after;  // of an attribute, "type", "result" or "inputs"
        };
        std::vector<Value> values;
    };
    std::vector<int32_t> removed, added;  // operators of the first graph, of the second
    std::vector<Change> changed;
    std::vector<int32_t> match;  // for each operator of the first graph, the one of the second; -1: removed
};

GraphDifference difference_of(const GraphModel& before, const GraphModel& after);

}  // namespace lunaria::insight
