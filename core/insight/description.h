// The properties of substructures beyond their nodes, and the files that are written of them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/insight/substructures.h"

namespace lunaria::insight {

struct Description {
    std::string label;  // of the scope that the instances have in common; without scopes, of their operators
    // Inputs that come from other operators, as a place of the order and a place among its inputs; and the places whose
    // results others use: of any instance.
    std::vector<std::pair<int32_t, int32_t>> inputs;
    std::vector<int32_t> outputs;
    struct Difference {
        int32_t place;
        std::string attribute;            // or "result": dtype and shape
        std::vector<std::string> values;  // of each instance; empty where it has none
    };
    std::vector<Difference> differences;  // in what instances are not equal
};

// The scope of most of the nodes with these scopes, level by level. Not of all: files give some operators the scope of
// another block.
std::string common_scope(const std::vector<std::string_view>& scopes);

std::vector<Description> describe(const OperatorGraph& graph, const std::vector<Substructure>& found);

// {"1": [[[node ...], [[from, to] ...]] ...], ...}: the instances of each key, each with its nodes and its edges.
std::string json_of(const OperatorGraph& graph, const std::vector<Substructure>& found);

}  // namespace lunaria::insight
