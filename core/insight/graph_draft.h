// An operator graph while it is read: inputs are names until all nodes are there. Graphs inside of graphs (functions,
// bodies of loops) are parts of the one graph; their values are known by name inside of them only.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/insight/operator_graph.h"
#include "core/io/protobuf.h"

namespace lunaria::insight {

class GraphDraft {
  public:
    struct Input {
        std::string name;
        bool is_control = false;
    };

    // Goes into a graph inside of the current one, whose names come first from here on; and back.
    size_t enter();
    void leave(size_t outer) { current_ = outer; }

    // The next node. Names that files give twice are made different by a number.
    OperatorNode& add(std::string name, std::vector<Input> inputs);
    // The value that others name so is the last node's. The first node of a name has it.
    void gives(const std::string& value);
    // The value that others name so comes from no node.
    void is_given(GivenValue value);

    OperatorGraph finished() &&;

  private:
    struct Scope {
        size_t outer;
        std::unordered_map<std::string, OperatorNode::Input> values;
    };
    struct Inputs {
        size_t scope;
        std::vector<Input> list;
    };

    OperatorNode::Input source_of(const std::string& name, size_t scope) const;

    OperatorGraph graph_;
    std::vector<Inputs> inputs_;
    std::vector<Scope> scopes_{{0, {}}};
    size_t current_ = 0;
    std::unordered_map<std::string, int> names_;
};

// MindSpore's GraphProto (anf_ir), as its .pb files and its event files have it.
OperatorGraph read_anf_graph(ProtoReader graph);
// TensorBoard's GraphDef.
OperatorGraph read_graph_def(ProtoReader graph);

}  // namespace lunaria::insight
