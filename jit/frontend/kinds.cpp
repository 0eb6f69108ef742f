#include "jit/frontend/kinds.h"

#include "core/operator/op.h"
#include "jit/frontend/walk.h"

namespace lunaria::lua {

namespace {

Known join(Known a, Known b) {
    if (a == Known::nothing) return b;
    if (b == Known::nothing) return a;
    return a == b ? a : Known::any;
}

// Expressions nest to a bounded depth except along left spines; deeper ones count as unknown.
constexpr int kDepth = 60;

// The value that target number i of an assignment gets: null where it is a later result of a call, or nil.
const Expr* value_of(List<const Expr*> values, std::size_t i) { return i < values.size() ? values[i] : nullptr; }

// Whether the operator's result, or first result, is a tensor for any arguments.
bool gives_tensor(std::string_view name) {
    const Op* op = registry().find(name);
    return op && !op->host_fn;
}

Known known_constant(const Constant& value) {
    const bool number = std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
    return number ? Known::number : Known::any;
}

}  // namespace

Kinds::Kinds(const Chunk& chunk, const KnownGlobal& global)
    : chunk_(chunk), global_(global), locals_(chunk.local_count(), Known::nothing) {
    for (const Function* f : chunk.functions())
        for (const Local* parameter : f->parameters) assign(parameter, nullptr);
    Walk(chunk.main())
        .run([](const Expr&) {}, [this](const Stat& s) { dispatch(s, [this](const auto& one) { note(one); }); });
    settle();
}

void Kinds::assign(const Local* local, const Expr* value) { assignments_.push_back({local, {}, value}); }

void Kinds::assign_to(const Expr& target, const Expr* value) {
    if (const auto* local = target.get_if<LocalName>()) assign(local->local, value);
    if (const auto* upvalue = target.get_if<UpvalueName>()) assign(upvalue->local, value);
    if (const auto* global = target.get_if<GlobalName>()) assignments_.push_back({nullptr, global->name, value});
}

void Kinds::note(const LocalDecl& s) {
    for (std::size_t i = 0; i < s.locals.size(); ++i) assign(s.locals[i], value_of(s.values, i));
}
void Kinds::note(const LocalFunction& s) { assign(s.local, nullptr); }
void Kinds::note(const FunctionDecl& s) { assign_to(*s.target, nullptr); }
void Kinds::note(const Assign& s) {
    for (std::size_t i = 0; i < s.targets.size(); ++i) assign_to(*s.targets[i], value_of(s.values, i));
}
void Kinds::note(const NumericFor& s) { assign(s.variable, s.start); }
void Kinds::note(const GenericFor& s) {
    for (const Local* variable : s.variables) assign(variable, nullptr);
}

// Finds the kinds of all variables from all their assignments: they rise from `nothing` until no kind changes.
void Kinds::settle() {
    for (const Assignment& a : assignments_)
        if (!a.local) globals_.try_emplace(a.global, Known::nothing);
    for (auto& [name, known] : globals_)
        if (const Known now = known_now(name); now != Known::any) known = now;
    for (bool changed = true; changed;) {
        changed = false;
        for (const Assignment& a : assignments_) {
            Known& known = a.local ? locals_[a.local->id] : globals_[a.global];
            const Known risen = join(known, a.value ? known_of(*a.value, 0) : Known::any);
            changed = changed || risen != known;
            known = risen;
        }
    }
}

Known Kinds::known_now(std::string_view name) const {
    const Known known = global_(name);
    return known == Known::nothing ? Known::any : known;
}

Known Kinds::known_global(const GlobalName& name) const {
    const auto* own = name.environment->get_if<LocalName>();
    const auto* outer = name.environment->get_if<UpvalueName>();
    const Local* environment = own ? own->local : outer ? outer->local : nullptr;
    if (environment != &chunk_.environment()) return Known::any;
    const auto assigned = globals_.find(name.name);
    return assigned != globals_.end() ? assigned->second : known_now(name.name);
}

Known Kinds::known_of(const Expr& e, int depth) const {
    if (++depth > kDepth) return Known::any;
    switch (e.kind) {
        case ExprKind::integer:
        case ExprKind::number:
            return Known::number;
        case ExprKind::local:
            return locals_[e.as<LocalName>().local->id];
        case ExprKind::upvalue:
            return locals_[e.as<UpvalueName>().local->id];
        case ExprKind::constant:
            return known_constant(*e.as<ConstantName>().local->constant);
        case ExprKind::global:
            return known_global(e.as<GlobalName>());
        case ExprKind::index:
            return known_index(e.as<Index>(), depth);
        case ExprKind::call:
            return known_call(e.as<Call>(), depth);
        case ExprKind::method_call:
            return known_method(e.as<MethodCall>(), depth);
        case ExprKind::unary:
            return known_unary(e.as<Unary>(), depth);
        case ExprKind::binary:
            return known_binary(e.as<Binary>(), depth);
        case ExprKind::logical: {
            const Known a = known_of(*e.as<Logical>().left, depth), b = known_of(*e.as<Logical>().right, depth);
            return a == Known::nothing || b == Known::nothing ? Known::nothing : a == b ? a : Known::any;
        }
        case ExprKind::paren:
            return known_of(*e.as<Paren>().inner, depth);
        default:
            return Known::any;
    }
}

Known Kinds::known_index(const Index& e, int depth) const {
    const Known object = known_of(*e.object, depth);
    if (object == Known::nothing) return Known::nothing;
    const auto* key = e.key->get_if<String>();
    const std::string_view name = key ? key->value : "";
    if (object == Known::library) {
        if (name == "ops" || name == "random") return Known::operators;
        if (name == "amp") return Known::precision;
        return name == "tensor" || name == "Tensor" || name == "Parameter" || gives_tensor(name) ? Known::maker
                                                                                                 : Known::any;
    }
    if (object == Known::operators) return gives_tensor(name) ? Known::maker : Known::any;
    if (object == Known::precision) return name == "all_finite" ? Known::maker : Known::any;
    if (object != Known::tensor) return Known::any;
    // Other names are fields and methods; indices have digits, commas, colons or dots.
    if (key)
        return name == "T" || name == "mT" || name.find_first_of("-0123456789,:.") == 0 ? Known::tensor : Known::any;
    if (e.key->kind == ExprKind::table) return Known::tensor;
    const Known by = known_of(*e.key, depth);
    return by == Known::number ? Known::tensor : by == Known::nothing ? Known::nothing : Known::any;
}

Known Kinds::known_call(const Call& e, int depth) const {
    if (const auto* callee = e.callee->get_if<GlobalName>(); callee && callee->name == "require") {
        const auto* module = e.arguments.size() == 1 ? e.arguments[0]->get_if<String>() : nullptr;
        return module && module->value == "lunaria" ? Known::library : Known::any;
    }
    const Known callee = known_of(*e.callee, depth);
    return callee == Known::maker ? Known::tensor : callee == Known::nothing ? Known::nothing : Known::any;
}

Known Kinds::known_method(const MethodCall& e, int depth) const {
    const Known object = known_of(*e.object, depth);
    if (object != Known::tensor) return object == Known::nothing ? Known::nothing : Known::any;
    if (e.name == "item") return Known::number;
    const Op* op = registry().find(e.name);
    return op && op->is_method && !op->host_fn ? Known::tensor : Known::any;
}

Known Kinds::known_unary(const Unary& e, int depth) const {
    if (e.op == UnaryOp::not_) return Known::any;
    return e.op == UnaryOp::length ? Known::number : known_of(*e.operand, depth);
}

Known Kinds::known_binary(const Binary& e, int depth) const {
    if (e.op >= BinaryOp::concat) return Known::any;  // and comparisons
    const Known a = known_of(*e.left, depth), b = known_of(*e.right, depth);
    if (a == Known::tensor || b == Known::tensor) return Known::tensor;
    return a == Known::nothing || b == Known::nothing ? Known::nothing : a == b && a == Known::number ? a : Known::any;
}

}  // namespace lunaria::lua
