// Nodes of MindSpore's files, one by one, as calls of our operators.
#pragma once

#include <functional>
#include <memory>

#include "core/ir/builder.h"
#include "core/ir/mindspore_match.h"

namespace lunaria::mindir {

// Whether graphs of the file branch to one of two others.
bool has_control_flow(const Model& model);

class NodeTranslator {
  public:
    // The translated value of a name in the file.
    using Named = std::function<Value(const std::string&)>;

    NodeTranslator(const Model& model, const std::string& file, ir::Graph& graph)
        : model_(model), file_(file), builder_(graph) {}

    [[noreturn]] void fail(std::string_view what) const;
    // Throws an error that names all unknown operators at once, except those in `others`.
    void refuse_unknown_operators(std::span<const std::string_view> others = {}) const;
    // The operator's name; none for constants and for calls of graphs.
    std::string_view operator_of(const NodeEntry& node) const;
    // Calls are written into this graph from here on.
    void write_to(ir::Graph& graph) { builder_ = ir::GraphBuilder(graph); }

    // Whether the node serves only a later node of the graph, with which it is translated.
    bool is_inner(const GraphEntry& g, const NodeEntry& node) { return calls_of(g).is_inner(node.output); }
    Value translate(const GraphEntry& g, const NodeEntry& node, const Named& named);

    ir::NodeType type_of(const ValueInfo& input) const;
    // The graph's parameters, as named constants of another graph.
    std::vector<std::pair<std::string, ir::Node*>> weights_of(const GraphEntry& g, ir::Graph& graph) const;

  private:
    const CallFinder& calls_of(const GraphEntry& g);
    Value found_call(const NodeEntry& node, const FoundCall& found, const Named& named);
    ir::Span span_of(const std::string& text);

    const Model& model_;
    const std::string& file_;
    ir::GraphBuilder builder_;
    std::unordered_map<const GraphEntry*, std::unique_ptr<CallFinder>> calls_of_;
    std::unordered_map<std::string, std::shared_ptr<const std::string>> chunks_;
};

}  // namespace lunaria::mindir
