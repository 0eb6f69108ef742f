// The rule of an operator that is made of others: its expansion, and the factors that go through all of it.
#pragma once

#include <memory>
#include <vector>

#include "core/ir/graph.h"
#include "core/parallel/rule.h"

namespace lunaria::parallel {

// Axes that must be cut together have one label. A factor of the rule is a label that no operator of the expansion
// refuses; an axis that some operator needs whole has none.
class CompositeRule final : public Rule {
  public:
    // One call of the expansion and the label of each factor of its rule, -1 where nothing of the operands has it.
    struct Step {
        const ir::Node* node;
        std::unique_ptr<const Rule> rule;
        std::vector<int> labels;
    };

    // Null where the call cannot be expanded before it runs.
    static std::unique_ptr<const CompositeRule> of(const Call& call);

    const ir::Graph& expansion() const { return *graph_; }
    // The values that stand for the arguments of the call in the expansion: nodes, or lists of nodes.
    const std::vector<Value>& parameters() const { return parameters_; }
    const std::vector<Step>& steps() const { return steps_; }
    int label(int factor) const { return labels_[static_cast<size_t>(factor)]; }

  private:
    friend class Labels;
    using Rule::Rule;

    std::unique_ptr<ir::Graph> graph_;
    std::vector<Value> parameters_;
    std::vector<Step> steps_;
    std::vector<int> labels_;  // of each factor
};

}  // namespace lunaria::parallel
