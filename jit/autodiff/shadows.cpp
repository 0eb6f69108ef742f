// J of cotangents in shadows, for derivatives of derivatives: a shadow has a shadow of its own.
#include "jit/autodiff/rewriter.h"
#include "jit/language_rules.h"

namespace lunaria::autodiff {

using ir::Node;

namespace {

// Reads the cotangent of a part; `take` removes it.
void read(BlockRewriter& w, const Node& node, bool take) {
    Value inner = w.tr(node.args[0]), key = w.tr(node.args[1]);
    Value value = w.emit(*node.op, {inner, key});
    Value shadow = w.emit("source", {w.context(), inner, value});
    w.set(node, w.emit("mark", {w.context(), shadow, value, Value()}));
    w.step([&node, shadow, key, take](Backward& b) {
        if (take)
            b.emit("shadow_put", {b.saved(shadow), b.saved(key), b.cotangent(node)});
        else if (b.has(node))
            b.emit("shadow_add", {b.saved(shadow), b.saved(key), b.cotangent(node)});
    });
}

void write(BlockRewriter& w, const Node& node, const char* back) {
    w.copy(node);
    w.plain(node);
    Value key = w.tr(node.args[1]);
    Value shadow =
        w.emit("touch", {w.context(), w.tr(node.args[0]), Value::list({w.tr(node.args[2])}), Value(), Value()});
    w.step([&node, shadow, key, back](Backward& b) {
        b.add(node.args[2], b.emit(back, {b.saved(shadow), b.saved(key)}));
    });
}

}  // namespace

void rules::shadow_get(BlockRewriter& w, const Node& node) { read(w, node, false); }
void rules::shadow_take(BlockRewriter& w, const Node& node) { read(w, node, true); }
void rules::shadow_put(BlockRewriter& w, const Node& node) { write(w, node, "shadow_take"); }
void rules::shadow_add(BlockRewriter& w, const Node& node) { write(w, node, "shadow_get"); }

void rules::shadow_items(BlockRewriter& w, const Node& node) {
    Value inner = w.tr(node.args[0]), from = w.tr(node.args[1]);
    Value items = w.emit("shadow_items", {inner, from, w.tr(node.args[2])});
    Value shadow = w.emit("source", {w.context(), inner, Value()});
    w.set(node, w.emit("mark", {w.context(), shadow, items, Value()}));
    w.step([&node, shadow, from](Backward& b) {
        if (b.has(node))
            b.emit("shadow_add_items",
                   {b.saved(shadow), b.saved(from), b.emit("spread", {Value::list({}), b.cotangents_of_list(node)})});
    });
}

void rules::shadow_add_items(BlockRewriter& w, const Node& node) {
    w.copy(node);
    w.plain(node);
    Value list = w.tr(node.args[2]), from = w.tr(node.args[1]);
    Value shadow = w.emit("touch", {w.context(), w.tr(node.args[0]), list, Value(), Value()});
    Value count = w.emit("list_length", {list});
    w.step([&node, shadow, from, count](Backward& b) {
        b.add(node.args[2], b.emit("shadow_items", {b.saved(shadow), b.saved(from), b.saved(count)}));
    });
}

void rules::unless(BlockRewriter& w, const Node& node) {
    w.copy(node);
    w.step([&node, shadow = w.tr(node.args[0])](Backward& b) {
        if (b.has(node)) b.add(node.args[1], b.emit("unless", {b.saved(shadow), b.cotangent(node)}));
    });
}

void rules::reset(BlockRewriter& w, const Node& node) {
    w.copy(node);
    w.plain(node);
    Value contexts = w.with_context(node.args[0]);
    w.step([contexts](Backward& b) { b.emit("reset", {b.saved(contexts)}); });
}

}  // namespace lunaria::autodiff
