#include "core/insight/graph_draft.h"

#include "core/base/error.h"

namespace lunaria::insight {

size_t GraphDraft::enter() {
    scopes_.push_back({current_, {}});
    return std::exchange(current_, scopes_.size() - 1);
}

OperatorNode& GraphDraft::add(std::string name, std::vector<Input> inputs) {
    OperatorNode& node = graph_.nodes.emplace_back();
    int& count = names_[name];
    if (++count > 1) {
        std::string other;
        while (names_.contains(other = str(name, '#', count))) ++count;
        names_[other] = 1;
        name = std::move(other);
    }
    node.name = std::move(name);
    inputs_.push_back({current_, std::move(inputs)});
    return node;
}

void GraphDraft::gives(const std::string& value) {
    scopes_[current_].values.emplace(value,
                                     OperatorNode::Input{static_cast<int32_t>(graph_.nodes.size()) - 1, false, -1});
}

void GraphDraft::is_given(GivenValue value) {
    const auto index = static_cast<int32_t>(graph_.values.size());
    if (scopes_[current_].values.emplace(value.name, OperatorNode::Input{-1, false, index}).second)
        graph_.values.push_back(std::move(value));
}

OperatorGraph GraphDraft::finished() && {
    for (size_t i = 0; i < inputs_.size(); ++i) {
        graph_.nodes[i].inputs.reserve(inputs_[i].list.size());
        for (const Input& input : inputs_[i].list) {
            OperatorNode::Input source = source_of(input.name, inputs_[i].scope);
            if (source.node == static_cast<int32_t>(i)) source.node = -1;
            source.is_control = input.is_control;
            graph_.nodes[i].inputs.push_back(source);
        }
    }
    return std::move(graph_);
}

OperatorNode::Input GraphDraft::source_of(const std::string& name, size_t scope) const {
    for (;; scope = scopes_[scope].outer) {
        if (const auto found = scopes_[scope].values.find(name); found != scopes_[scope].values.end())
            return found->second;
        if (scope == 0) return {};
    }
}

}  // namespace lunaria::insight
