// The place of a value's elements within the memory of another value: views of views reduce to one arrangement of a
// kernel's result, so that they cost nothing when the program runs.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/ir/graph.h"

namespace lunaria::graph {

struct Arrangement {
    const ir::Node* root = nullptr;  // a node that is not a view, with dense elements
    TensorType type;
    Strides strides;
    int64_t offset = 0;  // in elements

    bool is_dense() const;
    // All elements of the root in their order: only the shape may differ.
    bool covers_root() const;
};

// The arrangements of a graph's values. A view keeps its elements when its origin is assigned to, so that views of
// variables that the graph writes to are roots. A node that would have to copy (a reshape of a transposed tensor), that
// has an effect, or whose size only the kernel knows is a root and not a view.
class Arrangements {
  public:
    explicit Arrangements(const ir::Graph& graph);
    // For a node that is one tensor of known size; nullptr for others.
    const Arrangement* find(const ir::Node* node) const;
    bool is_view(const ir::Node* node) const;  // has another root; also for a node with several such results

  private:
    void find_written(const ir::Graph& graph);
    void add_root(const ir::Node& node);
    class Zeros;
    bool add_view(const ir::Node& node, Zeros& zeros);
    std::unordered_map<const ir::Node*, Arrangement> known_;
    std::unordered_map<const ir::Node*, std::vector<Arrangement>> lists_;
    std::unordered_set<const ir::Node*> written_;
};

}  // namespace lunaria::graph
