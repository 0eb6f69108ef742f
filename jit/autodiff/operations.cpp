// J of primitives that compute or call: operators on tensors, Lua's own operations, calls, and the transformed forms of
// both.
#include "core/ir/parser.h"
#include "jit/autodiff/rewriter.h"
#include "jit/language.h"
#include "jit/language_rules.h"

namespace lunaria::autodiff {

using ir::Node;

namespace {

std::vector<Value> translated(BlockRewriter& w, std::span<const Value> args) {
    std::vector<Value> made;
    for (const Value& arg : args) made.push_back(w.tr(arg));
    return made;
}

// Emits a primitive that is ordered in the derivative; returns its backpropagator.
Value follow(BlockRewriter& w, const Node& node, const char* ordered, std::vector<Value> args) {
    args.insert(args.begin(), w.with_context({}));
    const Value made = w.emit(ordered, std::move(args));
    w.set(node, w.pick(made, 0));
    return w.pick(made, 1);
}

}  // namespace

// Also for an unused result: a function of the program may have had other effects.
void rules::language_operation(BlockRewriter& w, const Node& node) {
    const lua::Facts& facts = lua::facts(*node.op);
    // Equality with a constant calls no function.
    const bool asks = facts.operation != lua::Operation::equal || (node.args[0].is_node() && node.args[1].is_node());
    if (!asks) w.copy(node);
    if (!asks) return w.plain(node);
    const Value r = follow(w, node, "j_arith", {Value(node.op->name()), Value::list(translated(w, node.args))});
    if (facts.is_comparison()) w.plain(node);
    w.step([&node, r](Backward& b) { b.pull(r, Value::list({b.cotangent(node)}), node.args); });
}

void rules::index(BlockRewriter& w, const Node& node) {
    const Value r = follow(w, node, "j_index", translated(w, node.args));
    const bool always = !w.leads_on(node, node.args[1]);
    w.step([&node, r, always](Backward& b) {
        if (always || b.has(node)) b.pull(r, Value::list({b.cotangent(node)}), node.args);
    });
}

void rules::set_index(BlockRewriter& w, const Node& node) {
    const Value r = follow(w, node, "j_set_index", translated(w, node.args));
    w.step([&node, r](Backward& b) { b.pull_write(r, node.args[0], node.args[1], node.args[2], b.cotangent(node)); });
}

namespace {

// The backward pass of a call; `list` has its arguments, `results` is the node of the list of its results.
void pull_call(Backward& b, const Value& r, const Value& list, const Value& cotangents) {
    if (list.is_list()) return b.pull(r, cotangents, list.items());
    b.add(list, b.emit("pull", {b.saved(r), cotangents}));
}

void called(BlockRewriter& w, const Node& node, const char* ordered) {
    const Value r = follow(w, node, ordered, translated(w, node.args));
    w.step([&node, r](Backward& b) { pull_call(b, r, node.args[1], b.cotangents_of_list(node)); });
}

}  // namespace

void rules::call(BlockRewriter& w, const Node& node) { called(w, node, "j_call"); }
void rules::pull(BlockRewriter& w, const Node& node) { called(w, node, "j_pull"); }

void rules::keep(BlockRewriter& w, const Node& node) {
    w.emit("keep", {w.with_context(node.args[0]), w.tr(node.args[1])});
}

namespace {

// Never destroyed: derivatives refer to it.
const ir::Graph& graph_of(std::string_view text) {
    return *ir::parse(text, {.primitives = &lua::language()}, "autodiff").graph.release();
}

const ir::Graph& checkpoint_back() {
    static const ir::Graph& made =
        graph_of(R"(graph checkpoint(%0 context: ?, %1 f: ?, %2 args: ?, %3 watched: ?, %4 ...: ?) captures 4 variadic {
  %5 = unchanged(%3) : ?
  %6 = j_call({%0}, %1, %2) : ?
  %7 = %6[1] : ?
  %8 = pull(%7, %4) : ?
  return %8
}
)");
    return made;
}

// Calls with a given backpropagator: one that a user wrote, or a repeated call. `f` itself runs as it is.
void given(BlockRewriter& w, const Node& node, bool recompute) {
    const Value &old_args = node.args[2], args = w.tr(old_args), f = w.tr(node.args[0]);
    Value held = w.emit("hold", {args});
    Value watched = w.emit("watch", {w.context(), f, held, Value(recompute)});
    Value results = w.emit("call", {f, held});
    Value name(std::string(recompute ? "checkpoint" : "custom_vjp"));
    results = w.emit("unwritten", {name, args, held, watched, results});
    // What is called again may use followed values that are no arguments, as the parameters of a network.
    const Value from = recompute ? w.emit("list_concat", {args, Value::list({Value(true)})}) : args;
    const Value made = w.emit("follow", {w.context(), from, results});
    w.set(node, made);
    Value captures = recompute ? Value::list({w.context(), w.tr(node.args[1]), held, watched})
                               : Value::list({w.tr(node.args[1]), held, w.emit("hold", {made})});
    Value r = w.emit("closure", {w.function(recompute ? checkpoint_back() : custom_back()), captures});
    w.step([&node, r, old_args](Backward& b) {
        b.add(old_args, b.emit("pull", {b.saved(r), b.cotangents_of_list(node)}));
    });
}

}  // namespace

const ir::Graph& custom_back() {
    static const ir::Graph& made =
        graph_of(R"(graph custom_vjp(%0 back: ?, %1 args: ?, %2 results: ?, %3 ...: ?) captures 3 variadic {
  %4 = list_concat(%2, %3) : ?
  %5 = list_concat(%1, %4) : ?
  %6 = call(%0, %5) : ?
  %7 = given_cotangents(%1, %6) : ?
  return %7
}
)");
    return made;
}

void rules::custom_call(BlockRewriter& w, const Node& node) { given(w, node, false); }
void rules::checkpoint_call(BlockRewriter& w, const Node& node) { given(w, node, true); }

// Ordered primitives of an earlier transformation: one more context, one more backpropagator.
void rules::ordered(BlockRewriter& w, const Node& node) {
    std::vector<Value> args = translated(w, std::span(node.args).subspan(1));
    args.insert(args.begin(), w.with_context(node.args[0]));
    Value made = w.emit(*node.op, std::move(args));
    const size_t order = node.args[0].items().size();
    std::vector<Value> outputs;
    for (size_t i = 0; i <= order; ++i) outputs.push_back(w.pick(made, i));
    w.set_outputs(node, std::move(outputs));
    Value r = w.pick(made, order + 1);
    const lua::Facts& facts = lua::facts(*node.op);
    const bool always = facts.access != lua::Access::reads_field || node.args[2].kind() != Value::Kind::string;
    std::vector<Value> operands(node.args.begin() + 1, node.args.end());
    if (facts.calls) operands = {node.args[2]};
    if (facts.names) operands = node.args[2].items();
    w.step([&w, &node, &facts, r, always, operands](Backward& b) {
        const Node* first = w.first_output(node);
        const bool has = first && b.has(*first);
        if (!has && !always) return;
        if (facts.calls) return pull_call(b, r, operands[0], has ? b.cotangents_of_list(*first) : Value::list({}));
        const Value d = has ? b.cotangent(*first) : Value();
        if (facts.access == lua::Access::writes_field) return b.pull_write(r, operands[0], operands[1], operands[2], d);
        b.pull(r, Value::list({d}), operands);
    });
}

namespace {

// The number of results that a node lists; 0: its result is no list.
size_t count_results(const Node& node) {
    if (node.type.kind == ir::NodeType::Kind::list) return node.type.items.size();
    const size_t named = node.op ? node.op->signature.results.size() : 0;
    return named > 1 ? named : 0;
}

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

void rules::operation(BlockRewriter& w, const Node& node) {
    const size_t results = count_results(node);
    Value made =
        w.emit("j_op", {w.context(), Value(node.op->name()), Value::list(translated(w, node.args)), number(results)});
    w.set(node, w.pick(made, 0));
    Value r = w.pick(made, 1);
    const bool several = results > 0;
    w.step([&node, r, several](Backward& b) {
        if (b.has(node)) b.pull(r, several ? b.cotangents_of_list(node) : Value::list({b.cotangent(node)}), node.args);
    });
}

// An operator within a derivative: a pullback of this order; the inner pullback is a closure like any other.
void rules::operation_again(BlockRewriter& w, const Node& node) {
    const Value args = w.tr(node.args[2]);
    const Value &name = node.args[1], &count = node.args[3];
    Value made = w.emit("j_op", {w.context(), name, args, count});
    Value y = w.pick(made, 0), r = w.pick(made, 1);
    Value inner = w.emit("make_pull", {w.tr(node.args[0]), name, args, y, count});
    std::vector<Value> held;
    for_each_operand(args.items(), [&](const Value& v, int64_t) { held.push_back(v); });
    held.push_back(y);
    Value shadow = w.emit("touch", {w.context(), inner, Value::list(std::move(held)), Value(), Value()});
    w.set_outputs(node, {y, inner});
    const auto results = static_cast<size_t>(count.integer());
    w.step([&w, &node, r, shadow, results](Backward& b) {
        const Node* first = w.first_output(node);
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

void rules::make_pull(BlockRewriter& w, const Node& node) {
    const Value pull = w.copy(node);
    w.plain(node);
    std::vector<Value> held;
    for_each_operand(node.args[2].items(), [&](const Value& v, int64_t) { held.push_back(w.tr(v)); });
    held.push_back(w.tr(node.args[3]));
    Value shadow = w.emit("touch", {w.context(), pull, Value::list(std::move(held)), Value(), Value()});
    const auto results = static_cast<size_t>(node.args[4].integer());
    w.step([&node, shadow, results](Backward& b) {
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

}  // namespace lunaria::autodiff
