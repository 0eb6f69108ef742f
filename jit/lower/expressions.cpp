#include <array>

#include "core/base/error.h"
#include "jit/lower/function.h"

namespace lunaria::lower {

using lua::ExprKind;

namespace {

Value constant_value(const lua::Constant& c) {
    return std::visit(
        [](auto v) -> Value {
            if constexpr (std::is_same_v<decltype(v), std::nullptr_t>)
                return {};
            else
                return Value(v);
        },
        c);
}

std::string_view primitive_of(lua::BinaryOp op) {
    constexpr std::array<std::string_view, 19> kNames = {"add",        "sub",         "mul",     "mod",       "pow",
                                                         "div",        "floor_div",   "bit_and", "bit_or",    "bit_xor",
                                                         "shift_left", "shift_right", "concat",  "equal",     "less",
                                                         "less_equal", "equal",       "less",    "less_equal"};
    return kNames[static_cast<size_t>(op)];
}

std::string_view primitive_of(lua::UnaryOp op) {
    constexpr std::array<std::string_view, 4> kNames = {"minus", "not", "length", "bit_not"};
    return kNames[static_cast<size_t>(op)];
}

}  // namespace

Value FunctionLowering::emit(std::string_view name, std::vector<Value> args) {
    ir::Node* node = here_->graph->add_call(lua::primitive(name), std::move(args), {});
    node->span = at_;
    return Value(node);
}

Value FunctionLowering::operate(std::string_view name, std::vector<Value> args, const lua::Expr* first,
                                const lua::Expr* second) {
    Value made = emit(name, std::move(args));
    if (operations_) operations_->push_back({made.node(), first, second});
    return made;
}

std::string name_of(const lua::Expr& e) {
    const lua::Expr* inner = &e;
    while (const auto* paren = inner->get_if<lua::Paren>()) inner = paren->inner;
    if (const auto* local = inner->get_if<lua::LocalName>()) return str("local '", local->local->name, "'");
    if (const auto* upvalue = inner->get_if<lua::UpvalueName>()) return str("upvalue '", upvalue->local->name, "'");
    if (const auto* global = inner->get_if<lua::GlobalName>()) return str("global '", global->name, "'");
    if (const auto* text = inner->get_if<lua::String>()) return str("constant '", text->value, "'");
    const auto* index = inner->get_if<lua::Index>();
    if (!index) return {};
    if (const auto* text = index->key->get_if<lua::String>()) return str("field '", text->value, "'");
    // Lua has an instruction of its own for small integers, and a name for them.
    const auto* number = index->key->get_if<lua::Integer>();
    return number && number->value >= 0 && number->value <= 255 ? "field 'integer index'" : "field '?'";
}

FunctionLowering::Held FunctionLowering::hold(Value v) {
    Variable kept = blocks_.temporary("");
    blocks_.write(*here_, kept, std::move(v));
    return {kept, nullptr};
}

FunctionLowering::Held FunctionLowering::hold(const lua::Expr& e, bool upvalues) {
    const lua::Expr* inner = &e;
    while (const auto* paren = inner->get_if<lua::Paren>()) inner = paren->inner;
    const Local* variable = nullptr;
    if (const auto* local = inner->get_if<lua::LocalName>()) variable = local->local;
    if (const auto* upvalue = inner->get_if<lua::UpvalueName>(); upvalue && upvalues) variable = upvalue->local;
    if (variable && is_cell(*variable)) return {nullptr, variable};
    return hold(value(e));
}

Value FunctionLowering::take(const Held& held) {
    return held.variable ? read(*held.variable) : blocks_.read(*here_, held.kept);
}

Value FunctionLowering::value(const lua::Expr& e) {
    // A chain such as a + b + c … leans to the left without bound: a loop lowers its innermost part first.
    std::vector<const lua::Expr*> spine = lua::left_spine(e);
    if (spine.size() == 1) return leaf(e);
    // Only chains of plain operators are flat; everything else recurses to a bounded depth.
    size_t flat = 0;
    while (flat + 1 < spine.size() && spine[flat]->kind == ExprKind::binary) ++flat;
    if (flat < 2) return compound(e);
    auto early = [&](size_t i) { return spine[i]->as<lua::Binary>().op == lua::BinaryOp::concat; };
    Held held = early(flat - 1) ? hold(value(*spine[flat])) : hold(*spine[flat]);
    Value left;
    for (size_t i = flat; i-- > 0;) {
        const auto& op = spine[i]->as<lua::Binary>();
        if (i + 1 < flat) held = hold(left);
        Value right = value(*op.right);
        left = take(held);
        at_ = span(op.operator_span);
        bool swapped = op.op == lua::BinaryOp::greater || op.op == lua::BinaryOp::greater_equal;
        left = swapped ? emit(primitive_of(op.op), {right, left})
                       : operate(primitive_of(op.op), {left, right}, spine[i + 1], op.right);
        if (op.op == lua::BinaryOp::not_equal) left = emit("not", {left});
    }
    return left;
}

Value FunctionLowering::leaf(const lua::Expr& e) {
    at_ = span(e.span);
    switch (e.kind) {
        case ExprKind::nil:
            return {};
        case ExprKind::boolean:
            return Value(e.as<lua::Boolean>().value);
        case ExprKind::integer:
            return Value(e.as<lua::Integer>().value);
        case ExprKind::number:
            return Value(e.as<lua::Number>().value);
        case ExprKind::string:
            return Value(e.as<lua::String>().value);
        case ExprKind::constant:
            return constant_value(*e.as<lua::ConstantName>().local->constant);
        case ExprKind::local:
            return read(*e.as<lua::LocalName>().local);
        case ExprKind::upvalue:
            return read(*e.as<lua::UpvalueName>().local);
        case ExprKind::vararg:
            return emit("result", {varargs_, Value(0)});
        case ExprKind::function:
            return closure(e.as<lua::Function>(), nullptr);
        default:
            return compound(e);
    }
}

Value FunctionLowering::compound(const lua::Expr& e) {
    switch (e.kind) {
        case ExprKind::global: {
            const auto& name = e.as<lua::GlobalName>();
            Value environment = value(*name.environment);
            at_ = span(e.span);
            return emit("index", {environment, Value(name.name)});
        }
        case ExprKind::index: {
            const auto& index = e.as<lua::Index>();
            Held object = hold(*index.object, true);
            Value key = value(*index.key);
            Value from = take(object);
            at_ = span(e.span);
            return operate("index", {from, key}, index.object);
        }
        case ExprKind::call:
        case ExprKind::method_call: {
            Value results = call(e);
            return emit("result", {results, Value(0)});
        }
        case ExprKind::unary: {
            const auto& unary = e.as<lua::Unary>();
            Value operand = value(*unary.operand);
            at_ = span(e.span);
            return operate(primitive_of(unary.op), {operand}, unary.operand);
        }
        case ExprKind::binary:
            return binary(e.as<lua::Binary>());
        case ExprKind::logical:
            return logical(e);
        case ExprKind::table:
            return table(e.as<lua::Table>());
        case ExprKind::paren:
            return value(*e.as<lua::Paren>().inner);
        default:
            return leaf(e);
    }
}

Value FunctionLowering::binary(const lua::Binary& e) {
    // Operands of `..` lie next to each other in registers of their own.
    Held held = e.op == lua::BinaryOp::concat ? hold(value(*e.left)) : hold(*e.left);
    Value right = value(*e.right);
    Value left = take(held);
    at_ = span(e.operator_span);
    switch (e.op) {
        case lua::BinaryOp::greater:
        case lua::BinaryOp::greater_equal:
            return emit(primitive_of(e.op), {right, left});
        case lua::BinaryOp::not_equal:
            return emit("not", {emit("equal", {left, right})});
        default:
            return operate(primitive_of(e.op), {left, right}, e.left, e.right);
    }
}

// `a and b`, `a or b` as values: the right side runs in a block of its own.
Value FunctionLowering::logical(const lua::Expr& e) {
    const auto& l = e.as<lua::Logical>();
    Variable result = blocks_.temporary("");
    Value left = value(*l.left);
    blocks_.write(*here_, result, left);
    std::string number = std::to_string(++counter_);
    Block &right = blocks_.add("right" + number), &join = blocks_.add("join" + number);
    bool is_and = l.op == lua::LogicalOp::and_;
    blocks_.branch(*here_, left, is_and ? right : join, is_and ? join : right, span(l.operator_span));
    blocks_.seal(right);
    go_on_in(right);
    blocks_.write(*here_, result, value(*l.right));
    jump_and_go_on(join, join);
    blocks_.seal(join);
    return blocks_.read(*here_, result);
}

void FunctionLowering::condition(const lua::Expr& e, Block& yes, Block& no) {
    if (const auto* paren = e.get_if<lua::Paren>()) return condition(*paren->inner, yes, no);
    if (const auto* unary = e.get_if<lua::Unary>(); unary && unary->op == lua::UnaryOp::not_)
        return condition(*unary->operand, no, yes);
    if (const auto* l = e.get_if<lua::Logical>()) {
        Block& right = blocks_.add("right" + std::to_string(++counter_));
        if (l->op == lua::LogicalOp::and_)
            condition(*l->left, right, no);
        else
            condition(*l->left, yes, right);
        blocks_.seal(right);
        go_on_in(right);
        return condition(*l->right, yes, no);
    }
    Value v = value(e);
    blocks_.branch(*here_, v, yes, no, span(e.span));
}

bool FunctionLowering::gives_many(const lua::Expr& e) const {
    return e.kind == ExprKind::call || e.kind == ExprKind::method_call || e.kind == ExprKind::vararg;
}

Value FunctionLowering::many(const lua::Expr& e) { return e.kind == ExprKind::vararg ? varargs_ : call(e); }

Value FunctionLowering::list(std::span<const lua::Expr* const> values) {
    if (values.size() == 1 && gives_many(*values[0])) return many(*values[0]);
    std::vector<Variable> kept;
    bool open = !values.empty() && gives_many(*values.back());
    for (size_t i = 0; i + open < values.size(); ++i) {
        kept.push_back(blocks_.temporary(""));
        blocks_.write(*here_, kept.back(), value(*values[i]));
    }
    Value tail = open ? many(*values.back()) : Value();
    std::vector<Value> items;
    for (Variable v : kept) items.push_back(blocks_.read(*here_, v));
    return open ? emit("spread", {Value::list(std::move(items)), tail}) : Value::list(std::move(items));
}

std::vector<Value> FunctionLowering::adjusted(std::span<const lua::Expr* const> values, size_t count) {
    std::vector<Variable> kept;
    auto keep = [&](Value v) {
        kept.push_back(blocks_.temporary(""));
        blocks_.write(*here_, kept.back(), std::move(v));
    };
    for (size_t i = 0; i < values.size(); ++i) {
        bool last = i + 1 == values.size();
        if (!last || values.size() >= count || !gives_many(*values[i])) {
            // A value beyond the count is evaluated for its effects and dropped.
            Value v = value(*values[i]);
            if (i < count) keep(std::move(v));
            continue;
        }
        Value results = many(*values[i]);
        for (size_t j = i; j < count; ++j) keep(emit("result", {results, Value(static_cast<int64_t>(j - i))}));
    }
    while (kept.size() < count) keep({});
    std::vector<Value> result;
    for (Variable v : kept) result.push_back(blocks_.read(*here_, v));
    return result;
}

Value FunctionLowering::call(const lua::Expr& e) {
    Variable callee = blocks_.temporary(""), self = nullptr;
    const lua::Expr* called = nullptr;
    std::span<const lua::Expr* const> arguments;
    if (const auto* method = e.get_if<lua::MethodCall>()) {
        self = blocks_.temporary("self");
        Value object = value(*method->object);
        blocks_.write(*here_, self, object);
        at_ = span(method->name_span);
        called = &e;
        blocks_.write(*here_, callee, operate("index", {object, Value(method->name)}, method->object));
        arguments = method->arguments;
    } else {
        const auto& plain = e.as<lua::Call>();
        blocks_.write(*here_, callee, value(*plain.callee));
        if (plain.callee->kind != ExprKind::method_call) called = plain.callee;
        arguments = plain.arguments;
    }
    Value args = list(arguments);
    at_ = span(e.span);
    if (self) {
        Value object = blocks_.read(*here_, self);
        if (args.is_list()) {
            std::vector<Value> items = args.items();
            items.insert(items.begin(), object);
            args = Value::list(std::move(items));
        } else {
            args = emit("spread", {Value::list({object}), args});
        }
    }
    return operate("call", {blocks_.read(*here_, callee), args}, called);
}

Value FunctionLowering::table(const lua::Table& e) {
    // Stock Lua sets a field with a key at once, and the others fifty at a time.
    constexpr size_t kAtOnce = 50;
    struct Entry {
        Held key, value;
    };
    std::vector<Entry> entries, waiting;
    Value tail;
    int64_t position = 0;
    auto flush = [&] {
        entries.insert(entries.end(), waiting.begin(), waiting.end());
        waiting.clear();
    };
    for (size_t i = 0; i < e.fields.size(); ++i) {
        const lua::Field& field = e.fields[i];
        if (waiting.size() == kAtOnce) flush();
        if (field.kind != lua::FieldKind::positional) {
            Held key = hold(*field.key);
            Held kept = hold(value(*field.value));
            entries.push_back({key.variable ? hold(take(key)) : key, kept});
        } else if (i + 1 == e.fields.size() && gives_many(*field.value)) {
            tail = many(*field.value);
        } else {
            waiting.push_back({hold(Value(++position)), hold(value(*field.value))});
        }
    }
    flush();
    std::vector<Value> keys, values;
    for (const Entry& entry : entries) {
        keys.push_back(take(entry.key));
        values.push_back(take(entry.value));
    }
    at_ = span(e.span);
    return emit("table", {Value::list(std::move(keys)), Value::list(std::move(values)), Value(position), tail});
}

Value FunctionLowering::closure(const lua::Function& f, Variable own_name) {
    at_ = span(f.span);
    std::string name = f.name.empty() ? str("function at line ", f.first_line) : std::string(f.name);
    ir::Graph& inner = graph_.add_inner(name);
    inner.span = at_;
    // A local function that never changes refers to itself without capturing itself.
    if (own_name && is_cell(*own_name)) own_name = nullptr;
    std::vector<Value> captures;
    for (const lua::Upvalue& u : f.upvalues) {
        if (u.local == own_name) continue;
        // A cell is passed as it is; a variable that never changes, by value.
        captures.push_back(is_cell(*u.local) ? blocks_.read(*here_, u.local) : read(*u.local));
    }
    if (later_) {
        inner.captures = captures.size();
        later_->push_back({&inner, &f, own_name});
    } else {
        FunctionLowering(chunk_, chunk_name_, f, inner, stops_, operations_, nullptr, own_name).run();
    }
    ir::Node* constant = here_->graph->add_function(inner);
    return emit("closure", {Value(constant), Value::list(std::move(captures))});
}

}  // namespace lunaria::lower
