// The groups in which a view shows a graph: by scopes, as equal parts repair them or as the file has them, by equal
// parts, or none.
#pragma once

#include "core/insight/graph/graph_model.h"

namespace lunaria::insight {

enum class Grouping : uint8_t { scopes, file, parts, none };

struct Tree {
    struct Group {
        std::string name;
        int32_t parent = -1;
        int32_t key = -1;  // of the equal part that it is an instance of
        int32_t instance = -1;
        int32_t depth = 0;
        int32_t operators = 0;  // in it and its groups
    };
    std::vector<Group> groups;      // the first is the whole graph; parents come before their groups
    std::vector<int32_t> group_of;  // of each node of the model

    // From the whole graph, which is left out, to the group.
    std::vector<int32_t> path_to(int32_t group) const;
};

Tree tree_of(const GraphModel& model, Grouping grouping);

}  // namespace lunaria::insight
