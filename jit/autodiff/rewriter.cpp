#include "jit/autodiff/rewriter.h"

#include "core/custom/custom_op.h"
#include "jit/language.h"
#include "jit/vm/machine.h"

namespace lunaria::autodiff {

using ir::Node;
using ir::NodeKind;

namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

Value number(size_t i) { return Value(static_cast<int64_t>(i)); }

}  // namespace

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
    Node* node = target_.add_call(lua::primitive(name), std::move(args), {});
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

void BlockRewriter::copy(const Node& node) {
    std::vector<Value> args;
    for (const Value& arg : node.args) args.push_back(tr(arg));
    Node* made = target_.add_call(*node.op, std::move(args), node.type);
    made->span = node.span;
    made->name = node.name;
    map_[&node] = Value(made);
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
        map_[old] = emit("mark", {context_, shadow, map_[old], Value()});
        last_steps_.push_back([this, old, shadow, at = number(i - hidden)](Backward& b) {
            Value d = b.cotangent(*old);
            if (!d.is_nil()) b.emit("shadow_add", {b.saved(shadow), b.emit("capture_key", {b.saved(self_), at}), d});
        });
    }
}

namespace {

// Operations that may come down to a function of the program though they have no derivative of their own.
bool is_operation(const Node& node) {
    if (!is_one_of(node.op->name(), {"concat", "length", "bit_and", "bit_or", "bit_xor", "bit_not", "shift_left",
                                     "shift_right", "equal", "less", "less_equal"}))
        return false;
    // Nothing is asked about what is equal to a constant.
    return node.op->name() != "equal" || (node.args[0].is_node() && node.args[1].is_node());
}

bool is_comparison(const Node& node) { return is_one_of(node.op->name(), {"equal", "less", "less_equal"}); }

}  // namespace

// Whether the value of a field serves only to call it or to index it further.
bool BlockRewriter::leads_on(const Node& field, const Value& key) {
    if (!scanned_) {
        scanned_ = true;
        auto note = [&](const Node* n) { used_.insert(n); };
        for (const Node* user : block_.body()) {
            const bool through = user->op && is_one_of(user->op->name(), {"call", "index"});
            for (size_t i = through ? 1 : 0; i < user->args.size(); ++i) ir::for_each_node(user->args[i], note);
        }
        ir::for_each_node(block_.result, note);
    }
    return key.kind() == Value::Kind::string && !used_.contains(&field);
}

void BlockRewriter::forward(const Node& node) {
    if (node.kind == NodeKind::item) return item(node);
    const std::string_view name = node.op->name();
    if (!node.op->belongs_to(lua::language()) || name.starts_with("num_")) return operation(node);
    if (is_one_of(name, {"add", "sub", "mul", "div", "mod", "pow", "floor_div", "minus", "index", "set_index", "call",
                         "pull"}) ||
        is_operation(node))
        return dynamic(node);
    if (name == "keep") {
        emit("keep", {with_context(node.args[0]), tr(node.args[1])});
        return;
    }
    if (name == "j_op") return operation_again(node);
    if (name == "make_pull") return pullback(node);
    if (name == "custom_call" || name == "checkpoint_call") return custom(node);
    if (ordered(node) || lists(node) || objects(node) || shadows(node)) return;
    copy(node);
    plain(node);
}

// Lua's own operations: what they do is known when they run.
void BlockRewriter::dynamic(const Node& node) {
    const std::string_view name = node.op->name();
    const Value contexts = with_context({});
    if (name == "index" || name == "set_index") {
        std::vector<Value> args{contexts};
        for (const Value& arg : node.args) args.push_back(tr(arg));
        Value made = emit(name == "index" ? "j_index" : "j_set_index", std::move(args));
        map_[&node] = pick(made, 0);
        Value r = pick(made, 1);
        if (name == "set_index") {
            step([&node, r](Backward& b) {
                b.pull_write(r, node.args[0], node.args[1], node.args[2], b.cotangent(node));
            });
            return;
        }
        const bool always = !leads_on(node, node.args[1]);
        step([&node, r, always](Backward& b) {
            if (always || b.has(node)) b.pull(r, Value::list({b.cotangent(node)}), node.args);
        });
        return;
    }
    if (name == "call" || name == "pull") {
        Value made = emit(name == "call" ? "j_call" : "j_pull", {contexts, tr(node.args[0]), tr(node.args[1])});
        map_[&node] = pick(made, 0);
        Value r = pick(made, 1);
        step([&node, r](Backward& b) {
            if (node.args[1].is_list()) return b.pull(r, b.cotangents_of_list(node), node.args[1].items());
            b.add(node.args[1], b.emit("pull", {b.saved(r), b.cotangents_of_list(node)}));
        });
        return;
    }
    std::vector<Value> operands;
    for (const Value& arg : node.args) operands.push_back(tr(arg));
    Value made = emit("j_arith", {contexts, Value(name), Value::list(std::move(operands))});
    map_[&node] = pick(made, 0);
    Value r = pick(made, 1);
    if (is_comparison(node)) plain(node);
    // Also for a result that nobody uses: a function of the program may have had other effects.
    step([&node, r](Backward& b) { b.pull(r, Value::list({b.cotangent(node)}), node.args); });
}

// Calls whose backpropagator is given: what a user wrote, or the call once more. `f` itself runs as it is.
void BlockRewriter::custom(const Node& node) {
    const bool recompute = node.op->name() == "checkpoint_call";
    const Value &old_args = node.args[2], args = tr(old_args), f = tr(node.args[0]);
    Value held = emit("hold", {args});
    Value watched = emit("watch", {context_, f, held, Value(recompute)});
    Value results = emit("call", {f, held});
    Value name(std::string(recompute ? "checkpoint" : "custom_vjp"));
    results = emit("unwritten", {name, args, held, watched, results});
    map_[&node] = emit("follow", {context_, args, results});
    const vm::OperatorFunction& back = recompute ? vm::checkpoint_back_function() : vm::custom_back_function();
    Value function(target_.add_function(const_cast<ir::Graph&>(back.function->graph)));
    Value captures = recompute ? Value::list({context_, tr(node.args[1]), held, watched})
                               : Value::list({tr(node.args[1]), held, emit("hold", {map_[&node]})});
    Value r = emit("closure", {function, captures});
    step([&node, r, old_args](Backward& b) {
        b.add(old_args, b.emit("pull", {b.saved(r), b.cotangents_of_list(node)}));
    });
}

// The same, transformed before: one more context, one more backpropagator.
bool BlockRewriter::ordered(const Node& node) {
    const std::string_view name = node.op->name();
    if (!is_one_of(name, {"j_arith", "j_index", "j_set_index", "j_call", "j_pull"})) return false;
    std::vector<Value> args{with_context(node.args[0])};
    for (size_t i = 1; i < node.args.size(); ++i) args.push_back(tr(node.args[i]));
    Value made = emit(name, std::move(args));
    const size_t order = node.args[0].items().size();
    auto& outputs = outputs_[&node];
    for (size_t i = 0; i <= order; ++i) outputs.push_back(pick(made, i));
    Value r = pick(made, order + 1);
    const bool several = name == "j_call" || name == "j_pull";
    const bool always = several || name != "j_index" || node.args[2].kind() != Value::Kind::string;
    std::vector<Value> operands(node.args.begin() + 1, node.args.end());
    if (several) operands = {node.args[2]};
    if (name == "j_arith") operands = node.args[2].items();
    const bool writes = name == "j_set_index";
    step([this, &node, r, several, always, writes, operands](Backward& b) {
        auto found = first_output_.find(&node);
        const Node* first = found == first_output_.end() ? nullptr : found->second;
        const bool has = first && b.has(*first);
        if (!has && !always) return;
        if (writes) return b.pull_write(r, operands[0], operands[1], operands[2], has ? b.cotangent(*first) : Value());
        if (!several) return b.pull(r, Value::list({has ? b.cotangent(*first) : Value()}), operands);
        Value cotangents = has ? b.cotangents_of_list(*first) : Value::list({});
        if (operands[0].is_list()) return b.pull(r, cotangents, operands[0].items());
        b.add(operands[0], b.emit("pull", {b.saved(r), cotangents}));
    });
    return true;
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

// How many results a node lists; 0: its result is no list.
size_t count_results(const Node& node) {
    if (node.type.kind == ir::NodeType::Kind::list) return node.type.items.size();
    const size_t named = node.op ? node.op->signature.results.size() : 0;
    return named > 1 ? named : 0;
}

// An operator on tensors, or arithmetic on plain numbers.
void BlockRewriter::operation(const Node& node) {
    std::vector<Value> args;
    for (const Value& arg : node.args) args.push_back(tr(arg));
    const size_t results = count_results(node);
    Value made = emit("j_op", {context_, Value(node.op->name()), Value::list(std::move(args)), number(results)});
    map_[&node] = pick(made, 0);
    Value r = pick(made, 1);
    const bool several = results > 0;
    step([&node, r, several](Backward& b) {
        if (b.has(node)) b.pull(r, several ? b.cotangents_of_list(node) : Value::list({b.cotangent(node)}), node.args);
    });
}

namespace {

// Calls f with every operand that is a node, and its key in the shadow of the pullback.
void for_each_operand(const std::vector<Value>& args, const std::function<void(const Value&, int64_t)>& f) {
    for (size_t i = 0; i < args.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        if (args[i].is_node()) f(args[i], operand_key(at, -1));
        if (args[i].is_list())
            for (size_t m = 0; m < args[i].items().size(); ++m)
                if (args[i].items()[m].is_node()) f(args[i].items()[m], operand_key(at, static_cast<int64_t>(m)));
    }
}

}  // namespace

// The operator within a derivative: its own pullback of this order, and the inner one as the closure that it is.
void BlockRewriter::operation_again(const Node& node) {
    const Value args = tr(node.args[2]);
    const Value &name = node.args[1], &count = node.args[3];
    Value made = emit("j_op", {context_, name, args, count});
    Value y = pick(made, 0), r = pick(made, 1);
    Value inner = emit("make_pull", {tr(node.args[0]), name, args, y, count});
    std::vector<Value> held;
    for_each_operand(args.items(), [&](const Value& v, int64_t) { held.push_back(v); });
    held.push_back(y);
    Value shadow = emit("touch", {context_, inner, Value::list(std::move(held)), Value(), Value()});
    outputs_[&node] = {y, inner};
    const auto results = static_cast<size_t>(count.integer());
    step([this, &node, r, shadow, results](Backward& b) {
        auto found = first_output_.find(&node);
        const Node* first = found == first_output_.end() ? nullptr : found->second;
        Value s = b.saved(shadow);
        auto of_result = [&](const Value& d, size_t j) {
            Value kept = b.emit("shadow_get", {s, Value(-1 - static_cast<int64_t>(j))});
            return d.is_nil() ? kept : b.emit("accumulate", {d, kept});
        };
        std::vector<Value> cotangents;
        if (results == 0) {
            cotangents.push_back(of_result(first ? b.cotangent(*first) : Value(), 0));
        } else {
            Value list = first ? b.cotangents_of_list(*first) : Value::list({});
            for (size_t j = 0; j < results; ++j)
                cotangents.push_back(of_result(list.is_list() ? (j < list.items().size() ? list.items()[j] : Value())
                                                              : b.emit("result", {list, number(j)}),
                                               j));
        }
        b.pull(r, Value::list(std::move(cotangents)), node.args[2].items());
        for_each_operand(node.args[2].items(), [&](const Value& v, int64_t key) {
            b.add(v, b.emit("shadow_get", {s, Value(key)}));
        });
    });
}

void BlockRewriter::pullback(const Node& node) {
    copy(node);
    plain(node);
    std::vector<Value> held;
    for_each_operand(node.args[2].items(), [&](const Value& v, int64_t) { held.push_back(tr(v)); });
    held.push_back(tr(node.args[3]));
    Value shadow = emit("touch", {context_, map_[&node], Value::list(std::move(held)), Value(), Value()});
    const auto results = static_cast<size_t>(node.args[4].integer());
    step([&node, shadow, results](Backward& b) {
        Value s = b.saved(shadow);
        for_each_operand(node.args[2].items(), [&](const Value& v, int64_t key) {
            b.add(v, b.emit("shadow_get", {s, Value(key)}));
        });
        if (!node.args[3].is_node()) return;
        for (size_t j = 0; j < std::max<size_t>(results, 1); ++j) {
            Value d = b.emit("shadow_get", {s, Value(-1 - static_cast<int64_t>(j))});
            results == 0 ? b.add(node.args[3], d) : b.add_item(*node.args[3].node(), j, d);
        }
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
