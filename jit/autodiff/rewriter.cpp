#include "jit/autodiff/rewriter.h"

#include "jit/language.h"
#include "jit/language_rules.h"

namespace lunaria::autodiff {

using ir::Node;
using ir::NodeKind;

void BlockRewriter::run(const std::unordered_map<const ir::Graph*, ir::Graph*>& targets, Origin* origin) {
    parameters();
    if (origin) *origin = {&block_, target_.body().size(), {}};
    for (const Node* node : block_.body()) {
        if (ir::goes_on(*node)) continue;
        at_ = node->span;
        forward(*node);
        if (origin) origin->ends.push_back(static_cast<uint32_t>(target_.body().size()));
    }
    finish(targets);
}

void BlockRewriter::step(std::function<void(Backward&)> f) {
    steps_.push_back([this, span = at_, f = std::move(f)](Backward& b) {
        at_ = span;
        f(b);
    });
}

Value BlockRewriter::emit(std::string_view name, std::vector<Value> args) {
    return emit(lua::primitive(name), std::move(args));
}

Value BlockRewriter::emit(const Op& primitive, std::vector<Value> args) {
    Node* node = target_.add_call(primitive, std::move(args), {});
    node->span = at_;
    return Value(node);
}

Value BlockRewriter::pick(const Value& node, size_t i) { return Value(target_.add_item(*node.node(), i)); }

Value BlockRewriter::tr(const Value& old) {
    if (old.is_list()) {
        std::vector<Value> items;
        for (const Value& item : old.items()) items.push_back(tr(item));
        return Value::list(std::move(items));
    }
    if (!old.is_node()) return old;
    const Node& node = *old.node();
    if (node.kind == NodeKind::constant) {
        Value& copy = map_[&node];
        if (copy.is_nil())
            copy = Value(node.function ? target_.add_function(*node.function) : target_.add_constant(node.constant));
        return copy;
    }
    auto found = map_.find(&node);
    if (found == map_.end()) throw state_error("autodiff", str("node %", node.id, " is used before it is computed"));
    return found->second;
}

bool BlockRewriter::is_plain(const Value& old) const {
    return !old.is_node() || old.node()->kind == NodeKind::constant || plain_.contains(old.node());
}

Value BlockRewriter::with_context(const Value& contexts) {
    std::vector<Value> list{context_};
    if (contexts.is_list())
        for (const Value& c : contexts.items()) list.push_back(tr(c));
    return Value::list(std::move(list));
}

Value BlockRewriter::copy(const Node& node) {
    std::vector<Value> args;
    for (const Value& arg : node.args) args.push_back(tr(arg));
    Node* made = target_.add_call(*node.op, std::move(args), node.type);
    made->span = node.span;
    made->name = node.name;
    return map_[&node] = Value(made);
}

void BlockRewriter::parameters() {
    const int order = root_.order - 1;
    auto add = [&](const std::string& name) { return Value(target_.add_parameter(name, {})); };
    context_ = add("context");
    if (!entry_) chain_ = add("back");
    if (entry_ && order == 0) self_ = add("self");
    const size_t hidden = order == 0 ? 0 : static_cast<size_t>(entry_ ? order + 1 : 2 * order);
    for (size_t i = 0; i < block_.parameters().size(); ++i) {
        const Node* old = block_.parameters()[i];
        Node* made = target_.add_parameter(old->name, old->type);
        made->span = old->span;
        map_[old] = Value(made);
        if (i < hidden) plain(*old);
        if (entry_ && order > 0 && i + 1 == hidden) self_ = Value(made);
    }
    if (!entry_) return;
    for (size_t i = hidden; i < hidden + block_.captures; ++i) {
        const Node* old = block_.parameters()[i];
        Value shadow = emit("source", {context_, self_, map_[old]});
        const Value at = number(i - hidden);
        map_[old] = emit("mark", {context_, shadow, map_[old], at});
        last_steps_.push_back([this, old, shadow, at](Backward& b) {
            Value d = b.cotangent(*old);
            if (!d.is_nil()) b.emit("shadow_add", {b.saved(shadow), b.emit("capture_key", {b.saved(self_), at}), d});
        });
    }
}

bool BlockRewriter::leads_on(const Node& field, const Value& key) {
    if (!scanned_) {
        scanned_ = true;
        auto note = [&](const Node* n) { used_.insert(n); };
        static const Op &call = lua::primitive("call"), &index = lua::primitive("index");
        for (const Node* user : block_.body()) {
            const bool through = user->op == &call || user->op == &index;
            for (size_t i = through ? 1 : 0; i < user->args.size(); ++i) ir::for_each_node(user->args[i], note);
        }
        ir::for_each_node(block_.result, note);
    }
    return key.kind() == Value::Kind::string && !used_.contains(&field);
}

void BlockRewriter::forward(const Node& node) {
    if (node.kind == NodeKind::item) return item(node);
    if (!lua::is_primitive(*node.op)) return rules::operation(*this, node);
    if (Rule* const rule = lua::facts(*node.op).derivative) return rule(*this, node);
    copy(node);
    plain(node);
}

void BlockRewriter::item(const Node& node) {
    const Node& source = *node.args[0].node();
    auto found = outputs_.find(&source);
    if (found != outputs_.end()) {
        map_[&node] = found->second.at(node.index);
        if (node.index == 0)
            first_output_[&source] = &node;
        else
            plain(node);
        return;
    }
    map_[&node] = emit("result", {tr(node.args[0]), number(node.index)});
    step([&node, &source](Backward& b) {
        if (b.has(node)) b.add_item(source, node.index, b.cotangent(node));
    });
}

Value BlockRewriter::close(Backward& backward, bool variadic) {
    backward.finish(variadic);
    at_ = {};
    return emit("closure", {Value(target_.add_function(backward.graph())), Value::list(backward.captures())});
}

void BlockRewriter::finish(const std::unordered_map<const ir::Graph*, ir::Graph*>& targets) {
    const Node* last = block_.result.is_node() ? block_.result.node() : nullptr;
    const std::string name = "B " + block_.name;
    auto leave_by = [&](const Node& callee, const std::vector<Value>& args, const char* which, ir::Graph*& to) {
        Backward backward(*this, name + which);
        for (const Value& arg : args) {
            Node* d = backward.parameter("d");
            if (!is_plain(arg)) backward.add(arg, Value(d));
        }
        to = targets.at(callee.function);
        Value k = close(backward, false);
        std::vector<Value> passed{context_, k};
        for (const Value& arg : args) passed.push_back(tr(arg));
        return passed;
    };
    if (last && last->callee && last->callee->function) {
        ir::Graph* to = nullptr;
        std::vector<Value> args = leave_by(*last->callee, last->args, "", to);
        Node* made = target_.add_call(*target_.add_function(*to), std::move(args), {});
        made->span = last->span;
        target_.result = Value(made);
        return;
    }
    if (last && ir::goes_on(*last)) {
        ir::Graph *yes = nullptr, *no = nullptr;
        std::vector<Value> yes_args = leave_by(*last->args[1].node(), last->args[2].items(), ".then", yes);
        std::vector<Value> no_args = leave_by(*last->args[3].node(), last->args[4].items(), ".else", no);
        at_ = last->span;
        target_.result =
            emit("branch", {tr(last->args[0]), Value(target_.add_function(*yes)), Value::list(std::move(yes_args)),
                            Value(target_.add_function(*no)), Value::list(std::move(no_args))});
        return;
    }
    const bool inner = root_.order > 1;
    const Value results = inner ? block_.result.items()[0] : block_.result;
    Backward backward(*this, name);
    const bool variadic = results.is_node();
    if (variadic) {
        backward.add(results, Value(backward.parameter("...")));
    } else if (results.is_list()) {
        for (const Value& v : results.items()) {
            Node* d = backward.parameter("d");
            if (v.is_list() || !is_plain(v)) backward.add(v, Value(d));
        }
    }
    std::vector<Value> outputs{results.is_nil() ? Value::list({}) : tr(results)};
    if (inner)
        for (size_t i = 1; i < block_.result.items().size(); ++i) outputs.push_back(tr(block_.result.items()[i]));
    outputs.push_back(close(backward, variadic));
    target_.result = Value::list(std::move(outputs));
}

}  // namespace lunaria::autodiff
