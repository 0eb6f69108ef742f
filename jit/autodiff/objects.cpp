// J of what has an identity: tables, variables, closures and their shadows; and of lists of results.
#include <algorithm>
#include <array>

#include "jit/autodiff/rewriter.h"
#include "jit/language.h"

namespace lunaria::autodiff {

using ir::Node;

namespace {
Value number(size_t i) { return Value(static_cast<int64_t>(i)); }
}  // namespace

// The cotangent of a part that is read goes to the shadow of whom it belongs to.
void BlockRewriter::read_part(const Node& node, const Value& holder, const Value& key, Value value) {
    Value shadow = emit("source", {context_, holder, value});
    map_[&node] = emit("mark", {context_, shadow, value, key});
    step([&node, shadow, key](Backward& b) {
        if (b.has(node)) b.emit("shadow_add", {b.saved(shadow), b.saved(key), b.cotangent(node)});
    });
}

// A part that was written had the cotangent that its place in the shadow has collected since.
void BlockRewriter::write_part(const Value& holder, const Value& key, const Value& old_value) {
    Value shadow = emit("touch", {context_, holder, Value::list({tr(old_value)}), key, Value()});
    step([shadow, key, old_value](Backward& b) {
        Value d = b.emit("shadow_take", {b.saved(shadow), b.saved(key)});
        b.add(old_value, d);
    });
}

void BlockRewriter::extend(const Value& made, const Value& position, const Value& old_tail) {
    Value tail = tr(old_tail);
    emit("table_extend", {made, position, tail});
    Value shadow = emit("touch", {context_, made, tail, Value(), position});
    Value count = emit("list_length", {tail});
    step([shadow, count, position, old_tail](Backward& b) {
        b.add(old_tail, b.emit("shadow_items", {b.saved(shadow), position, b.saved(count)}));
    });
}

void BlockRewriter::table(const Node& node) {
    const auto &keys = node.args[0].items(), &values = node.args[1].items();
    const auto positional = static_cast<size_t>(node.args[2].integer());
    Value tail = node.args[3].is_nil() ? Value() : tr(node.args[3]);
    Value made = emit("new_table", {node.args[2], tail, number(keys.size() - std::min(keys.size(), positional))});
    map_[&node] = made;
    plain(node);
    for (size_t i = 0; i < keys.size(); ++i) {
        Value key = tr(keys[i]);
        emit("raw_set", {made, key, tr(values[i])});
        write_part(made, key, values[i]);
    }
    if (!node.args[3].is_nil()) extend(made, node.args[2], node.args[3]);
}

bool BlockRewriter::objects(const Node& node) {
    const std::string_view name = node.op->name();
    if (name == "table") {
        table(node);
    } else if (name == "closure") {
        copy(node);
        plain(node);
        const auto& captures = node.args[1].items();
        auto counts = [this](const Value& v) { return v.is_list() || !is_plain(v); };
        if (std::ranges::none_of(captures, counts)) return true;
        std::vector<Value> held;
        for (const Value& v : captures) held.push_back(tr(v));
        Value shadow = emit("touch", {context_, map_[&node], Value::list(std::move(held)), Value(), Value()});
        step([&node, shadow, counts](Backward& b) {
            const auto& list = node.args[1].items();
            for (size_t i = 0; i < list.size(); ++i)
                if (counts(list[i])) b.add(list[i], b.emit("shadow_get", {b.saved(shadow), number(i)}));
        });
    } else if (name == "current_function" && root_.order == 1) {
        map_[&node] = self_;
        plain(node);
    } else if (name == "cell") {
        copy(node);
        plain(node);
        write_part(map_[&node], Value(0), node.args[0]);
    } else if (name == "cell_get") {
        Value cell = tr(node.args[0]);
        read_part(node, cell, Value(0), emit("cell_get", {cell}));
    } else if (name == "cell_set") {
        copy(node);
        plain(node);
        write_part(tr(node.args[0]), Value(0), node.args[1]);
    } else if (name == "raw_index") {
        Value holder = tr(node.args[0]), key = tr(node.args[1]);
        read_part(node, holder, key, emit("raw_index", {holder, key}));
    } else if (name == "raw_set") {
        copy(node);
        plain(node);
        write_part(tr(node.args[0]), tr(node.args[1]), node.args[2]);
    } else if (name == "overwrite") {
        Value shadow = emit("box", {context_, tr(node.args[0]), tr(node.args[1])});
        copy(node);
        plain(node);
        step([&node, shadow](Backward& b) {
            b.add(node.args[1], b.emit("shadow_take", {b.saved(shadow), number(0)}));
        });
    } else if (name == "content") {
        // Of a tensor that was overwritten all names have one cotangent, in its shadow; before, each name has its own.
        Value tensor = tr(node.args[0]);
        Value shadow = emit("box_of", {context_, tensor});
        std::vector<Value> boxes{shadow};
        for (const Value& known : node.args[1].items()) boxes.push_back(tr(known));
        map_[&node] =
            emit("mark", {context_, shadow, emit("content", {tensor, Value::list(std::move(boxes))}), Value()});
        step([&node, shadow](Backward& b) {
            if (!b.has(node)) return;
            Value s = b.saved(shadow), d = b.cotangent(node);
            b.emit("shadow_add", {s, number(0), d});
            b.add(node.args[0], b.emit("unless", {s, d}));
        });
    } else if (name == "table_extend") {
        plain(node);
        extend(tr(node.args[0]), tr(node.args[1]), node.args[2]);
        map_[&node] = Value();
    } else {
        return false;
    }
    return true;
}

bool BlockRewriter::shadows(const Node& node) {
    const std::string_view name = node.op->name();
    if (name == "shadow_get" || name == "shadow_take") {
        const bool take = name == "shadow_take";
        Value inner = tr(node.args[0]), key = tr(node.args[1]);
        Value value = emit(name, {inner, key});
        Value shadow = emit("source", {context_, inner, value});
        map_[&node] = emit("mark", {context_, shadow, value, Value()});
        step([&node, shadow, key, take](Backward& b) {
            if (take)
                b.emit("shadow_put", {b.saved(shadow), b.saved(key), b.cotangent(node)});
            else if (b.has(node))
                b.emit("shadow_add", {b.saved(shadow), b.saved(key), b.cotangent(node)});
        });
    } else if (name == "shadow_put" || name == "shadow_add") {
        const bool put = name == "shadow_put";
        copy(node);
        plain(node);
        Value key = tr(node.args[1]);
        Value shadow = emit("touch", {context_, tr(node.args[0]), Value::list({tr(node.args[2])}), Value(), Value()});
        step([&node, shadow, key, put](Backward& b) {
            b.add(node.args[2], b.emit(put ? "shadow_take" : "shadow_get", {b.saved(shadow), b.saved(key)}));
        });
    } else if (name == "unless") {
        copy(node);
        step([&node, shadow = tr(node.args[0])](Backward& b) {
            if (b.has(node)) b.add(node.args[1], b.emit("unless", {b.saved(shadow), b.cotangent(node)}));
        });
    } else if (name == "reset") {
        copy(node);
        plain(node);
        Value contexts = with_context(node.args[0]);
        step([contexts](Backward& b) { b.emit("reset", {b.saved(contexts)}); });
    } else if (name == "shadow_items") {
        Value inner = tr(node.args[0]), from = tr(node.args[1]);
        Value items = emit(name, {inner, from, tr(node.args[2])});
        Value shadow = emit("source", {context_, inner, Value()});
        map_[&node] = emit("mark", {context_, shadow, items, Value()});
        step([&node, shadow, from](Backward& b) {
            if (b.has(node))
                b.emit("shadow_add_items", {b.saved(shadow), b.saved(from),
                                            b.emit("spread", {Value::list({}), b.cotangents_of_list(node)})});
        });
    } else if (name == "shadow_add_items") {
        copy(node);
        plain(node);
        Value list = tr(node.args[2]), from = tr(node.args[1]);
        Value shadow = emit("touch", {context_, tr(node.args[0]), list, Value(), Value()});
        Value count = emit("list_length", {list});
        step([&node, shadow, from, count](Backward& b) {
            b.add(node.args[2], b.emit("shadow_items", {b.saved(shadow), b.saved(from), b.saved(count)}));
        });
    } else {
        return false;
    }
    return true;
}

namespace {

// Primitives whose result is their last operand, a list.
bool hands_on(std::string_view name) {
    static constexpr std::array<std::string_view, 5> kNames{"mark_arguments", "unmark", "hold", "unwritten",
                                                            "given_cotangents"};
    return std::ranges::find(kNames, name) != kNames.end();
}

}  // namespace

// What moves values around without changing them.
bool BlockRewriter::lists(const Node& node) {
    const std::string_view name = node.op->name();
    auto as_list = [](Backward& b, const Node& n) {
        Value d = b.cotangents_of_list(n);
        return d.is_list() ? b.emit("spread", {d, Value()}) : d;
    };
    if (name == "result") {
        copy(node);
        step([&node, at = tr(node.args[1])](Backward& b) {
            if (!b.has(node)) return;
            const Value &list = node.args[0], &i = node.args[1];
            if (!list.is_node()) return;
            if (i.kind() == Value::Kind::integer)
                b.add_item(*list.node(), static_cast<size_t>(i.integer()), b.cotangent(node));
            else
                b.add(list, b.emit("list_at", {b.saved(at), b.cotangent(node)}));
        });
    } else if (name == "results_from" || name == "list_shift") {
        copy(node);
        const bool from = name == "results_from";
        step([&node, from, as_list, i = tr(node.args[from ? 1 : 0])](Backward& b) {
            if (!b.has(node)) return;
            Value d = as_list(b, node);
            b.add(node.args[from ? 0 : 1],
                  from ? b.emit("list_shift", {b.saved(i), d}) : b.emit("results_from", {d, b.saved(i)}));
        });
    } else if (name == "list_at") {
        copy(node);
        step([&node, as_list, i = tr(node.args[0])](Backward& b) {
            if (b.has(node)) b.add(node.args[1], b.emit("result", {as_list(b, node), b.saved(i)}));
        });
    } else if (name == "spread") {
        copy(node);
        step([this, &node, as_list](Backward& b) {
            if (!b.has(node)) return;
            Value d = as_list(b, node);
            const auto& head = node.args[0].items();
            for (size_t i = 0; i < head.size(); ++i)
                if (!is_plain(head[i])) b.add(head[i], b.emit("result", {d, number(i)}));
            if (node.args[1].is_list() || !is_plain(node.args[1]))
                b.add(node.args[1], b.emit("results_from", {d, number(head.size())}));
        });
    } else if (name == "accumulate") {
        copy(node);
        step([&node](Backward& b) {
            if (!b.has(node)) return;
            for (const Value& arg : node.args) b.add(arg, b.cotangent(node));
        });
    } else if (name == "mark") {
        copy(node);
        step([&node](Backward& b) {
            if (b.has(node)) b.add(node.args[2], b.cotangent(node));
        });
    } else if (name == "list_concat") {
        copy(node);
        Value count = emit("list_length", {tr(node.args[0])});
        step([&node, count, as_list](Backward& b) {
            if (!b.has(node)) return;
            Value d = as_list(b, node);
            b.add(node.args[0], d);
            b.add(node.args[1], b.emit("results_from", {d, b.saved(count)}));
        });
    } else if (name == "follow") {
        copy(node);
        step([&node, as_list](Backward& b) {
            if (b.has(node)) b.add(node.args[2], as_list(b, node));
        });
    } else if (hands_on(name)) {
        copy(node);
        step([&node, as_list](Backward& b) {
            if (b.has(node)) b.add(node.args.back(), as_list(b, node));
        });
    } else if (name == "for_prepare") {
        copy(node);
        step([&node, as_list](Backward& b) {
            if (!b.has(node)) return;
            Value d = as_list(b, node);
            for (size_t i : {0, 2}) b.add(node.args[i], b.emit("result", {d, number(i)}));
        });
    } else if (name == "to_number") {
        copy(node);
        Value t = tr(node.args[0]);
        step([&node, t](Backward& b) {
            if (b.has(node)) b.add(node.args[0], b.emit("number_like", {b.cotangent(node), b.saved(t)}));
        });
    } else if (name == "number_like" || name == "number_tensor") {
        copy(node);
        step([&node](Backward& b) {
            if (b.has(node)) b.add(node.args[0], b.emit("to_number", {b.cotangent(node)}));
        });
    } else {
        return false;
    }
    return true;
}

}  // namespace lunaria::autodiff
