// Names that tell graphs apart, and the graphs that a graph refers to: for the forms in which graphs are written (text,
// MindIR).
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"

namespace lunaria::ir {

struct Labels {
    explicit Labels(const Graph& graph);

    // The graph, then the graphs that it refers to and that no other graph here contains, in the order of the first
    // reference.
    std::vector<const Graph*> whole;
    // The graph's name as text, name#2 for the second of that name, counted in the order of the list below.
    std::unordered_map<const Graph*, std::string> of;
    // Of all graphs of `whole`, each before its inner ones. A graph that occurs twice has a label for each.
    std::vector<std::string> in_order;

  private:
    void gather(const Graph& graph);
    void label(const Graph& graph);
    void references(const Graph& graph);
    std::unordered_map<std::string, int> names_;
};

}  // namespace lunaria::ir
