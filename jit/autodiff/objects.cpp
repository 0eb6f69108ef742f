// J of objects with an identity: tables, variables, closures, overwritten tensors. The cotangents of their parts are in
// their shadows.
#include <algorithm>

#include "jit/autodiff/rewriter.h"
#include "jit/language_rules.h"

namespace lunaria::autodiff {

using ir::Node;

namespace {

// The cotangent of a part that is read goes to the shadow of the holder.
void read_part(BlockRewriter& w, const Node& node, const Value& holder, const Value& key, Value value) {
    Value shadow = w.emit("source", {w.context(), holder, value});
    w.set(node, w.emit("mark", {w.context(), shadow, value, key}));
    w.step([&node, shadow, key](Backward& b) {
        if (b.has(node)) b.emit("shadow_add", {b.saved(shadow), b.saved(key), b.cotangent(node)});
    });
}

// The old part gets the cotangent that its place in the shadow has collected since the write.
void write_part(BlockRewriter& w, const Value& holder, const Value& key, const Value& old_value) {
    Value shadow = w.emit("touch", {w.context(), holder, Value::list({w.tr(old_value)}), key, Value()});
    w.step([shadow, key, old_value](Backward& b) {
        Value d = b.emit("shadow_take", {b.saved(shadow), b.saved(key)});
        b.add(old_value, d);
    });
}

void extend(BlockRewriter& w, const Value& made, const Value& position, const Value& old_tail) {
    Value tail = w.tr(old_tail);
    w.emit("table_extend", {made, position, tail});
    Value shadow = w.emit("touch", {w.context(), made, tail, Value(), position});
    Value count = w.emit("list_length", {tail});
    w.step([shadow, count, position, old_tail](Backward& b) {
        b.add(old_tail, b.emit("shadow_items", {b.saved(shadow), position, b.saved(count)}));
    });
}

}  // namespace

void rules::table(BlockRewriter& w, const Node& node) {
    const auto &keys = node.args[0].items(), &values = node.args[1].items();
    const auto positional = static_cast<size_t>(node.args[2].integer());
    Value tail = node.args[3].is_nil() ? Value() : w.tr(node.args[3]);
    Value made = w.emit("new_table", {node.args[2], tail, number(keys.size() - std::min(keys.size(), positional))});
    w.set(node, made);
    w.plain(node);
    for (size_t i = 0; i < keys.size(); ++i) {
        Value key = w.tr(keys[i]);
        w.emit("raw_set", {made, key, w.tr(values[i])});
        write_part(w, made, key, values[i]);
    }
    if (!node.args[3].is_nil()) extend(w, made, node.args[2], node.args[3]);
}

void rules::table_extend(BlockRewriter& w, const Node& node) {
    w.plain(node);
    extend(w, w.tr(node.args[0]), w.tr(node.args[1]), node.args[2]);
    w.set(node, Value());
}

void rules::closure(BlockRewriter& w, const Node& node) {
    const Value made = w.copy(node);
    w.plain(node);
    const auto& captures = node.args[1].items();
    auto counts = [&w](const Value& v) { return v.is_list() || !w.is_plain(v); };
    if (std::ranges::none_of(captures, counts)) return;
    std::vector<Value> held;
    for (const Value& v : captures) held.push_back(w.tr(v));
    // The captured values have the keys 0, 1, ...
    Value shadow = w.emit("touch", {w.context(), made, Value::list(std::move(held)), Value(), Value(-1)});
    w.step([&node, shadow, counts](Backward& b) {
        const auto& list = node.args[1].items();
        for (size_t i = 0; i < list.size(); ++i)
            if (counts(list[i])) b.add(list[i], b.emit("shadow_get", {b.saved(shadow), number(i)}));
    });
}

void rules::current_function(BlockRewriter& w, const Node& node) {
    if (w.order() == 1)
        w.set(node, w.self());
    else
        w.copy(node);
    w.plain(node);
}

void rules::cell(BlockRewriter& w, const Node& node) {
    const Value made = w.copy(node);
    w.plain(node);
    write_part(w, made, Value(0), node.args[0]);
}

void rules::cell_get(BlockRewriter& w, const Node& node) {
    Value cell = w.tr(node.args[0]);
    read_part(w, node, cell, Value(0), w.emit("cell_get", {cell}));
}

void rules::cell_set(BlockRewriter& w, const Node& node) {
    w.copy(node);
    w.plain(node);
    write_part(w, w.tr(node.args[0]), Value(0), node.args[1]);
}

void rules::raw_index(BlockRewriter& w, const Node& node) {
    Value holder = w.tr(node.args[0]), key = w.tr(node.args[1]);
    read_part(w, node, holder, key, w.emit("raw_index", {holder, key}));
}

void rules::raw_set(BlockRewriter& w, const Node& node) {
    w.copy(node);
    w.plain(node);
    write_part(w, w.tr(node.args[0]), w.tr(node.args[1]), node.args[2]);
}

void rules::overwrite(BlockRewriter& w, const Node& node) {
    Value shadow = w.emit("box", {w.context(), w.tr(node.args[0]), w.tr(node.args[1])});
    w.copy(node);
    w.plain(node);
    w.step([&node, shadow](Backward& b) { b.add(node.args[1], b.emit("shadow_take", {b.saved(shadow), number(0)})); });
}

// All names of an overwritten tensor share one cotangent, in its shadow; before the write each name has its own.
void rules::content(BlockRewriter& w, const Node& node) {
    Value tensor = w.tr(node.args[0]);
    Value shadow = w.emit("box_of", {w.context(), tensor});
    std::vector<Value> boxes{shadow};
    for (const Value& known : node.args[1].items()) boxes.push_back(w.tr(known));
    const Value held = w.emit("content", {tensor, Value::list(std::move(boxes))});
    w.set(node, w.emit("mark", {w.context(), shadow, held, Value()}));
    w.step([&node, shadow](Backward& b) {
        if (!b.has(node)) return;
        Value s = b.saved(shadow), d = b.cotangent(node);
        b.emit("shadow_add", {s, number(0), d});
        b.add(node.args[0], b.emit("unless", {s, d}));
    });
}

}  // namespace lunaria::autodiff
