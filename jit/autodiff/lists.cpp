// J of primitives that pass values on unchanged.
#include "jit/autodiff/rewriter.h"
#include "jit/language_rules.h"

namespace lunaria::autodiff {

using ir::Node;

namespace {

// The cotangents of a list node, as a list of the program.
Value as_list(Backward& b, const Node& node) {
    const Value d = b.cotangents_of_list(node);
    return d.is_list() ? b.emit("spread", {d, Value()}) : d;
}

// Copies the node; `back`, if given, carries its cotangent to the operands.
template <class Back>
void moved(BlockRewriter& w, const Node& node, Back back) {
    w.copy(node);
    w.step([&node, back](Backward& b) {
        if (b.has(node)) back(b);
    });
}

// Operand i is the list from which the result is a part; `back` is the primitive that rebuilds it.
void list_part(BlockRewriter& w, const Node& node, size_t list, size_t i, const char* back) {
    moved(w, node, [&node, list, back, i = w.tr(node.args[i])](Backward& b) {
        const Value d = as_list(b, node), at = b.saved(i);
        b.add(node.args[list], b.emit(back, list == 0 ? std::vector{at, d} : std::vector{d, at}));
    });
}

}  // namespace

void rules::result(BlockRewriter& w, const Node& node) {
    moved(w, node, [&node, at = w.tr(node.args[1])](Backward& b) {
        const Value &list = node.args[0], &i = node.args[1];
        if (!list.is_node()) return;
        if (i.kind() == Value::Kind::integer)
            b.add_item(*list.node(), static_cast<size_t>(i.integer()), b.cotangent(node));
        else
            b.add(list, b.emit("list_at", {b.saved(at), b.cotangent(node)}));
    });
}

void rules::results_from(BlockRewriter& w, const Node& node) { list_part(w, node, 0, 1, "list_shift"); }
void rules::list_shift(BlockRewriter& w, const Node& node) { list_part(w, node, 1, 0, "results_from"); }
void rules::list_at(BlockRewriter& w, const Node& node) { list_part(w, node, 1, 0, "result"); }

void rules::spread(BlockRewriter& w, const Node& node) {
    moved(w, node, [&w, &node](Backward& b) {
        Value d = as_list(b, node);
        const auto& head = node.args[0].items();
        for (size_t i = 0; i < head.size(); ++i)
            if (!w.is_plain(head[i])) b.add(head[i], b.emit("result", {d, number(i)}));
        if (node.args[1].is_list() || !w.is_plain(node.args[1]))
            b.add(node.args[1], b.emit("results_from", {d, number(head.size())}));
    });
}

void rules::accumulate(BlockRewriter& w, const Node& node) {
    moved(w, node, [&node](Backward& b) {
        for (const Value& arg : node.args) b.add(arg, b.cotangent(node));
    });
}

void rules::mark(BlockRewriter& w, const Node& node) {
    moved(w, node, [&node](Backward& b) { b.add(node.args[2], b.cotangent(node)); });
}

void rules::lists_on(BlockRewriter& w, const Node& node) {
    moved(w, node, [&node](Backward& b) { b.add(node.args.back(), as_list(b, node)); });
}

void rules::list_concat(BlockRewriter& w, const Node& node) {
    w.copy(node);
    Value count = w.emit("list_length", {w.tr(node.args[0])});
    w.step([&node, count](Backward& b) {
        if (!b.has(node)) return;
        Value d = as_list(b, node);
        b.add(node.args[0], d);
        b.add(node.args[1], b.emit("results_from", {d, b.saved(count)}));
    });
}

void rules::for_prepare(BlockRewriter& w, const Node& node) {
    moved(w, node, [&node](Backward& b) {
        Value d = as_list(b, node);
        for (size_t i : {0, 2}) b.add(node.args[i], b.emit("result", {d, number(i)}));
    });
}

void rules::to_number(BlockRewriter& w, const Node& node) {
    moved(w, node, [&node, t = w.tr(node.args[0])](Backward& b) {
        b.add(node.args[0], b.emit("number_like", {b.cotangent(node), b.saved(t)}));
    });
}

void rules::from_number(BlockRewriter& w, const Node& node) {
    moved(w, node, [&node](Backward& b) { b.add(node.args[0], b.emit("to_number", {b.cotangent(node)})); });
}

}  // namespace lunaria::autodiff
