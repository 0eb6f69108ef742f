#include "core/ir/mindspore_match.h"

#include <algorithm>

#include "core/ir/mindir_import.h"

namespace lunaria::mindir {

namespace {

// Rules by the primitive that produces their result.
const std::vector<const Rule*>& rules_for(std::string_view primitive) {
    static const std::map<std::string, std::vector<const Rule*>, std::less<>> by_name = [] {
        std::map<std::string, std::vector<const Rule*>, std::less<>> made;
        for (const Rule& rule : rules())
            if (rule.theirs.kind == Term::Kind::call) made[rule.theirs.name].push_back(&rule);
        return made;
    }();
    static const std::vector<const Rule*> none;
    const auto found = by_name.find(primitive);
    return found == by_name.end() ? none : found->second;
}

bool is_constant(const NodeEntry& node) { return node.op_type == "Constant"; }

}  // namespace

bool is_in_rules(std::string_view primitive) {
    static const std::set<std::string, std::less<>> names = [] {
        std::set<std::string, std::less<>> made;
        const auto collect = [&](const auto& self, const Term& t) -> void {
            if (t.kind == Term::Kind::call) made.insert(t.name);
            for (const Term& item : t.items) self(self, item);
        };
        for (const Rule& rule : rules()) collect(collect, rule.theirs);
        return made;
    }();
    return names.contains(primitive);
}

std::optional<Value> constant_of(const NodeEntry& node) {
    const Attribute *value = node.find("value"), *number = node.find("number");
    if (!value) return std::nullopt;
    std::optional<Value> v = value_of(*value);
    const bool single = v && (v->is_number() || (v->is_tensor() && v->tensor().size() == 1));
    if (single && number && number->kind == Kind::float64 && number->numbers.size() == 1) {
        // An integer stays an integer.
        const double exact = number->numbers[0];
        if (v->is_tensor() && is_integer(v->tensor().dtype())) return Value(v->tensor().integer_at(0));
        return Value(exact);
    }
    return v;
}

CallFinder::CallFinder(const Model& model, const GraphEntry& graph) : model_(model) {
    for (const NodeEntry& node : graph.nodes) {
        nodes_.try_emplace(node.output, &node);
        for (const std::string& input : node.inputs) ++uses_[input];
    }
    for (const ValueInfo& output : graph.outputs) ++uses_[output.name];
    // Starts from the last node: nodes that belong to a later call are not calls of their own.
    for (size_t i = graph.nodes.size(); i-- > 0;) {
        const NodeEntry& node = graph.nodes[i];
        if (is_constant(node) || inner_.contains(node.output)) continue;
        const NodeEntry* source = &node;
        if (primitive_of(node).type == "TupleGetItem" && !node.inputs.empty()) {
            const auto whole = nodes_.find(node.inputs[0]);
            if (whole == nodes_.end()) continue;
            source = whole->second;
        }
        const Attribute* named = node.find("op");
        const std::string_view ours = named && named->strings.size() == 1 ? named->strings[0] : std::string_view();
        for (const Rule* rule : rules_for(primitive_of(*source).type)) {
            if (rule->is_nested() ? rule->ours.name != ours : !ours.empty()) continue;
            FoundCall found;
            found.rule = rule;
            std::vector<std::string> inner;
            if (!fits_call(rule->theirs, node, found, inner)) continue;
            if (rule->condition_on_reading) {
                Bindings b;
                for (const auto& [name, operand] : found.variables)
                    b.values[name] = std::holds_alternative<Value>(operand) ? std::get<Value>(operand) : Value();
                if (!rule->condition(b)) continue;
            }
            for (std::string& name : inner) inner_.insert(std::move(name));
            found_.try_emplace(node.output, std::move(found));
            break;
        }
    }
}

const FoundCall* CallFinder::find(const std::string& output) const {
    const auto found = found_.find(output);
    return found == found_.end() ? nullptr : &found->second;
}

CallFinder::Primitive CallFinder::primitive_of(const NodeEntry& node) const {
    if (!node.op_type.starts_with("REF::")) return {};
    const auto found = model_.primitives.find(node.op_type.substr(5));
    if (found == model_.primitives.end()) return {};
    return {found->second.op_type, &found->second};
}

std::optional<Value> CallFinder::constant_at(const std::string& name) const {
    const auto found = nodes_.find(name);
    if (found == nodes_.end() || !is_constant(*found->second)) return std::nullopt;
    return constant_of(*found->second);
}

bool CallFinder::binds(const Term& variable, Operand operand, FoundCall& found) const {
    const auto [place, is_new] = found.variables.try_emplace(variable.name, operand);
    if (is_new) return true;
    if (place->second.index() != operand.index()) return false;
    if (const auto* name = std::get_if<std::string>(&operand)) return *name == std::get<std::string>(place->second);
    return is_same_setting(std::get<Value>(place->second), std::get<Value>(operand));
}

bool CallFinder::fits_value(const Term& term, const Value& value, FoundCall& found) const {
    switch (term.kind) {
        case Term::Kind::anything:
            return true;
        case Term::Kind::literal:
            return is_same_setting(term.value, value);
        case Term::Kind::variable:
            return (!value.is_nil() || term.may_be_nil) && binds(term, value, found);
        case Term::Kind::tuple: {
            if (!value.is_list() || value.items().size() != term.items.size()) return false;
            for (size_t i = 0; i < term.items.size(); ++i)
                if (!fits_value(term.items[i], value.items()[i], found)) return false;
            return true;
        }
        case Term::Kind::tensor: {
            const bool is_scalar = value.is_tensor() && value.tensor().size() == 1 && is_float(value.tensor().dtype());
            if (!value.is_number() && !is_scalar) return false;
            return fits_value(term.items[0], value.is_number() ? value : Value(value.tensor().at(0)), found);
        }
        case Term::Kind::function: {
            if (value.is_tensor()) found.promised.emplace_back(&term, value);
            if (is_told_by_others(term)) return true;
            const std::optional<Taken> taken = taken_back(term, value);
            if (!taken) return false;
            Term variable;
            variable.kind = Term::Kind::variable;
            variable.name = taken->variable;
            return binds(variable, taken->value, found);
        }
        default:
            return false;
    }
}

bool CallFinder::fits(const Term& term, const std::string& name, FoundCall& found,
                      std::vector<std::string>& inner) const {
    if (term.kind == Term::Kind::call) {
        const auto node = nodes_.find(name);
        const auto uses = uses_.find(name);
        if (node == nodes_.end() || is_constant(*node->second) || uses->second != 1) return false;
        inner.push_back(name);
        return fits_call(term, *node->second, found, inner);
    }
    const std::optional<Value> value = constant_at(name);
    // Tensors of the file remain nodes of their own.
    if (term.kind == Term::Kind::variable && !(value && !value->is_tensor())) return binds(term, name, found);
    if (term.kind == Term::Kind::anything) return true;
    return value && fits_value(term, *value, found);
}

bool CallFinder::fits_call(const Term& term, const NodeEntry& node, FoundCall& found,
                           std::vector<std::string>& inner) const {
    const NodeEntry* call = &node;
    if (term.result >= 0) {
        if (primitive_of(node).type != "TupleGetItem" || node.inputs.size() != 2) return false;
        const std::optional<Value> index = constant_at(node.inputs[1]);
        const auto whole = nodes_.find(node.inputs[0]);
        if (!index || index->kind() != Value::Kind::integer || index->integer() != term.result || whole == nodes_.end())
            return false;
        call = whole->second;
        if (uses_.at(call->output) == 1) inner.push_back(call->output);
    }
    const Primitive primitive = primitive_of(*call);
    if (primitive.type != term.name || call->inputs.size() != term.items.size()) return false;
    for (size_t i = 0; i < term.items.size(); ++i)
        if (!fits(term.items[i], call->inputs[i], found, inner)) return false;
    for (const auto& [name, wanted] : term.attributes) {
        const auto there = std::ranges::find(primitive.entry->attributes, name, &Attribute::name);
        if (there == primitive.entry->attributes.end()) {
            if (wanted.kind == Term::Kind::function && is_told_by_others(wanted)) continue;
            return false;
        }
        const std::optional<Value> value = value_of(*there);
        if (!value || !fits_value(wanted, *value, found)) return false;
    }
    return true;
}

}  // namespace lunaria::mindir
