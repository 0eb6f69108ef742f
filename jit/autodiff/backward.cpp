#include <algorithm>
#include <cctype>

#include "jit/autodiff/rewriter.h"
#include "jit/language.h"

namespace lunaria::autodiff {

namespace {

// Whether a key can only be the name of a field or method, no part of a tensor.
bool is_name(const Value& key) {
    if (key.kind() != Value::Kind::string || key.string().empty() || key.string() == "None") return false;
    const std::string& text = key.string();
    auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    return std::all_of(text.begin(), text.end(), fits) && !std::isdigit(static_cast<unsigned char>(text[0]));
}

}  // namespace

Backward::Backward(BlockRewriter& forward, std::string name)
    : forward_(forward), graph_(forward.root_.add_inner(std::move(name))) {
    graph_.span = forward.block_.span;
}

ir::Node* Backward::parameter(std::string name) {
    own_parameters_.push_back(graph_.add_parameter(std::move(name), {}));
    return own_parameters_.back();
}

Value Backward::saved(const Value& v) {
    if (v.is_list()) {
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(saved(item));
        return Value::list(std::move(items));
    }
    if (!v.is_node() || v.node()->kind == ir::NodeKind::constant) return v;
    auto [found, fresh] = saved_.try_emplace(v.node());
    if (fresh) {
        captures_.push_back(v);
        capture_parameters_.push_back(graph_.add_parameter(v.node()->name, v.node()->type));
        found->second = Value(capture_parameters_.back());
    }
    return found->second;
}

Value Backward::emit(std::string_view name, std::vector<Value> args) {
    ir::Node* node = graph_.add_call(lua::primitive(name), std::move(args), {});
    node->span = forward_.at_;
    return Value(node);
}

void Backward::add(const Value& old, const Value& cotangent) {
    if (cotangent.is_nil()) return;
    if (old.is_list()) {
        for (size_t i = 0; i < old.items().size(); ++i) {
            const Value& item = old.items()[i];
            if (!item.is_node() && !item.is_list()) continue;
            add(item, cotangent.is_list() ? cotangent.items()[i]
                                          : emit("result", {cotangent, Value(static_cast<int64_t>(i))}));
        }
        return;
    }
    if (!old.is_node()) return;
    const ir::Node& node = *old.node();
    if (node.kind == ir::NodeKind::constant || forward_.plain_.contains(&node)) return;
    Value& sum = whole_[&node];
    sum = sum.is_nil() ? cotangent : emit("accumulate", {sum, cotangent});
}

void Backward::add_item(const ir::Node& list, size_t i, const Value& cotangent) {
    if (cotangent.is_nil()) return;
    Value& sum = items_[&list][i];
    sum = sum.is_nil() ? cotangent : emit("accumulate", {sum, cotangent});
}

Value Backward::whole(const ir::Node& old) const {
    auto found = whole_.find(&old);
    return found == whole_.end() ? Value() : found->second;
}

Value Backward::cotangent(const ir::Node& old) {
    if (!items_.contains(&old)) return whole(old);
    Value list = cotangents_of_list(old);
    return list.is_list() ? emit("spread", {list, Value()}) : list;
}

Value Backward::cotangents_of_list(const ir::Node& old) {
    Value whole = this->whole(old);
    auto found = items_.find(&old);
    if (found == items_.end()) return whole.is_nil() ? Value::list({}) : whole;
    std::vector<Value> items(found->second.rbegin()->first + 1);
    for (auto& [i, v] : found->second) items[i] = v;
    if (whole.is_nil()) return Value::list(std::move(items));
    return emit("accumulate", {whole, emit("spread", {Value::list(std::move(items)), Value()})});
}

void Backward::pull(const Value& r, Value cotangents, std::span<const Value> operands) {
    Value results = emit("pull", {saved(r), std::move(cotangents)});
    for (size_t i = 0; i < operands.size(); ++i) {
        const Value& old = operands[i];
        if (old.is_node() && (old.node()->kind == ir::NodeKind::constant || forward_.plain_.contains(old.node())))
            continue;
        bool takes = old.is_node();
        ir::for_each_node(old, [&](ir::Node*) { takes = true; });
        if (takes) add(old, emit("result", {results, Value(static_cast<int64_t>(i))}));
    }
}

void Backward::pull_write(const Value& r, const Value& object, const Value& key, const Value& value,
                          const Value& error) {
    Value results =
        emit("pull", {saved(r), Value::list(error.is_nil() ? std::vector<Value>{} : std::vector<Value>{error})});
    // For a tensor: the cotangent of its content before it was first overwritten.
    if (!is_name(key)) add(object, emit("result", {results, Value(0)}));
    if (!forward_.is_plain(key)) add(key, emit("result", {results, Value(1)}));
    if (!forward_.is_plain(value)) add(value, emit("result", {results, Value(2)}));
}

void Backward::finish(bool variadic) {
    for (size_t i = forward_.steps_.size(); i-- > 0;) forward_.steps_[i](*this);
    for (auto& step : forward_.last_steps_) step(*this);
    forward_.at_ = {};
    std::vector<Value> results;
    const auto& parameters = forward_.block_.parameters();
    if (forward_.entry_) {
        const int order = forward_.root_.order - 1;
        const size_t hidden = (order > 0 ? static_cast<size_t>(order) + 1 : 0) + forward_.root_.captures;
        const bool open = forward_.root_.variadic;
        for (size_t i = hidden; i + open < parameters.size(); ++i) results.push_back(cotangent(*parameters[i]));
        if (open)
            graph_.result = emit("spread", {Value::list(std::move(results)), cotangents_of_list(*parameters.back())});
        else
            graph_.result = Value::list(std::move(results));
    } else {
        for (const ir::Node* p : parameters) results.push_back(cotangent(*p));
        graph_.result = emit("pull", {saved(forward_.chain_), Value::list(std::move(results))});
    }
    std::vector<ir::Node*> order = capture_parameters_;
    order.insert(order.end(), own_parameters_.begin(), own_parameters_.end());
    graph_.reorder_parameters(std::move(order));
    graph_.captures = capture_parameters_.size();
    graph_.variadic = variadic;
}

}  // namespace lunaria::autodiff
