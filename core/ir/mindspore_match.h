// Groups of nodes in MindSpore's files that are one call of ours, by the rules in mindspore_rules.h.
#pragma once

#include <set>
#include <unordered_map>
#include <variant>

#include "core/ir/mindir_model.h"
#include "core/ir/mindspore_rules.h"

namespace lunaria::mindir {

// The binding of a variable: the name of a node's output, or a value given in the file.
using Operand = std::variant<std::string, Value>;

struct FoundCall {
    const Rule* rule = nullptr;
    std::map<std::string, Operand, std::less<>> variables;
    // Tensors of the file that must equal the results of functions in the rule.
    std::vector<std::pair<const Term*, Value>> promised;
};

// The calls of a graph, by the output of the node that gives their result.
class CallFinder {
  public:
    CallFinder(const Model& model, const GraphEntry& graph);

    // The call whose result is this output; null: no rule fits.
    const FoundCall* find(const std::string& output) const;
    // Whether the node is used only inside calls that were found.
    bool is_inner(const std::string& output) const { return inner_.contains(output); }

  private:
    struct Primitive {
        std::string_view type;
        const PrimitiveEntry* entry;
    };
    Primitive primitive_of(const NodeEntry& node) const;
    std::optional<Value> constant_at(const std::string& name) const;
    bool fits(const Term& term, const std::string& name, FoundCall& found, std::vector<std::string>& inner) const;
    bool fits_value(const Term& term, const Value& value, FoundCall& found) const;
    bool fits_call(const Term& term, const NodeEntry& node, FoundCall& found, std::vector<std::string>& inner) const;
    bool binds(const Term& variable, Operand operand, FoundCall& found) const;

    const Model& model_;
    std::unordered_map<std::string_view, const NodeEntry*> nodes_;
    std::unordered_map<std::string_view, int> uses_;
    std::unordered_map<std::string_view, FoundCall> found_;
    std::set<std::string, std::less<>> inner_;
};

// Whether any rule contains the primitive.
bool is_in_rules(std::string_view primitive);
// The value of a constant node, as exactly as the file has it.
std::optional<Value> constant_of(const NodeEntry& node);

}  // namespace lunaria::mindir
