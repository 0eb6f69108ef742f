#include "jit/frontend/advice.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/operator/op.h"

namespace lunaria::lua {

namespace {

// The kind of a value as the text alone shows it. `any`: unknown. `nothing`: no assignment was seen yet.
enum class Known : std::uint8_t { nothing, library, operators, precision, maker, tensor, number, any };

Known join(Known a, Known b) {
    if (a == Known::nothing) return b;
    if (b == Known::nothing) return a;
    return a == b ? a : Known::any;
}

// Expressions nest to a bounded depth except along left spines; deeper ones count as unknown.
constexpr int kDepth = 60;

class Adviser {
  public:
    Adviser(const Chunk& chunk, const std::function<GlobalValue(std::string_view)>& global)
        : chunk_(chunk), global_(global), locals_(chunk.local_count(), Known::nothing) {}

    std::vector<Advice> run() {
        add(chunk_.main());
        walk();
        if (comparisons_.empty() && conditions_.empty() && foreign_.empty()) return {};
        settle();
        for (const GlobalName* name : foreign_) judge_foreign(*name);
        for (const Binary* comparison : comparisons_) judge(*comparison);
        for (const Expr* condition : conditions_) judge_condition(*condition);
        std::ranges::stable_sort(found_, {}, &Advice::line);
        return std::move(found_);
    }

  private:
    // An assignment to a local or, by name, to a global; a null value is an unknown one.
    struct Assignment {
        const Local* local;
        std::string_view global;
        const Expr* value;
    };

    // The walk: the lists hold what is still to be visited.
    void add(const Expr* e) {
        if (e) expressions_.push_back(e);
    }
    void add(List<const Expr*> list) { expressions_.insert(expressions_.end(), list.begin(), list.end()); }
    void add(const Block* block) {
        if (block) statements_.insert(statements_.end(), block->statements.begin(), block->statements.end());
    }
    void add(const Function& f) {
        for (const Local* parameter : f.parameters) assign(parameter, nullptr);
        add(f.body);
    }
    void assign(const Local* local, const Expr* value) { assignments_.push_back({local, {}, value}); }

    void walk() {
        while (!expressions_.empty() || !statements_.empty()) {
            if (!expressions_.empty()) {
                const Expr* e = expressions_.back();
                expressions_.pop_back();
                look_at(*e);
            } else {
                const Stat* s = statements_.back();
                statements_.pop_back();
                dispatch(*s, [this](const auto& one) { look_at_statement(one); });
            }
        }
    }

    void look_at(const Expr& e) {
        add(left_child(e));
        if (const auto* f = e.get_if<Function>()) {
            add(*f);
        } else if (const auto* index = e.get_if<Index>()) {
            add(index->key);
        } else if (const auto* call = e.get_if<Call>()) {
            add(call->arguments);
        } else if (const auto* method = e.get_if<MethodCall>()) {
            add(method->arguments);
        } else if (const auto* unary = e.get_if<Unary>()) {
            if (unary->op == UnaryOp::not_) conditions_.push_back(unary->operand);
            add(unary->operand);
        } else if (const auto* binary = e.get_if<Binary>()) {
            if (binary->op == BinaryOp::equal || binary->op == BinaryOp::not_equal) comparisons_.push_back(binary);
            add(binary->right);
        } else if (const auto* logical = e.get_if<Logical>()) {
            add(logical->right);
        } else if (const auto* table = e.get_if<Table>()) {
            for (const Field& field : table->fields) {
                add(field.key);
                add(field.value);
            }
        } else if (const auto* paren = e.get_if<Paren>()) {
            add(paren->inner);
        } else if (const auto* global = e.get_if<GlobalName>()) {
            if (word_for(global->name)) foreign_.push_back(global);
        }
    }

    // Lua's word for one of Python's; null for other names.
    static const char* word_for(std::string_view name) {
        return name == "True" ? "true" : name == "False" ? "false" : name == "None" ? "nil" : nullptr;
    }

    // A word of Python's that is assigned to neither in this text nor before.
    void judge_foreign(const GlobalName& name) {
        if (globals_.contains(name.name) || global_(name.name) != GlobalValue::nothing) return;
        found_.push_back({name.span.line, str(name.name, " is a variable here, and has no value"),
                          str("Lua's word is ", word_for(name.name))});
    }

    // The value that target number i of an assignment gets: null where it is a later result of a call, or nil.
    static const Expr* value_of(List<const Expr*> values, std::size_t i) {
        return i < values.size() ? values[i] : nullptr;
    }

    void look_at_statement(const LocalDecl& s) {
        for (std::size_t i = 0; i < s.locals.size(); ++i) assign(s.locals[i], value_of(s.values, i));
        add(s.values);
    }
    void look_at_statement(const LocalFunction& s) {
        assign(s.local, nullptr);
        add(*s.function);
    }
    void look_at_statement(const FunctionDecl& s) {
        assign_to(*s.target, nullptr);
        add(*s.function);
    }
    void look_at_statement(const Assign& s) {
        for (std::size_t i = 0; i < s.targets.size(); ++i) {
            assign_to(*s.targets[i], value_of(s.values, i));
            add(s.targets[i]);
        }
        add(s.values);
    }
    void assign_to(const Expr& target, const Expr* value) {
        if (const auto* local = target.get_if<LocalName>()) assign(local->local, value);
        if (const auto* upvalue = target.get_if<UpvalueName>()) assign(upvalue->local, value);
        if (const auto* global = target.get_if<GlobalName>()) assignments_.push_back({nullptr, global->name, value});
    }
    void look_at_statement(const CallStatement& s) { add(s.call); }
    void look_at_statement(const Do& s) { add(s.body); }
    void look_at_statement(const While& s) {
        condition(s.condition);
        add(s.body);
    }
    void look_at_statement(const Repeat& s) {
        condition(s.condition);
        add(s.body);
    }
    void look_at_statement(const If& s) {
        for (const IfClause& clause : s.clauses) {
            condition(clause.condition);
            add(clause.body);
        }
        add(s.otherwise);
    }
    void look_at_statement(const NumericFor& s) {
        assign(s.variable, s.start);
        for (const Expr* e : {s.start, s.limit, s.step}) add(e);
        add(s.body);
    }
    void look_at_statement(const GenericFor& s) {
        for (const Local* variable : s.variables) assign(variable, nullptr);
        add(s.values);
        add(s.body);
    }
    void look_at_statement(const Return& s) { add(s.values); }
    void look_at_statement(const Break&) {}
    void look_at_statement(const Goto&) {}
    void look_at_statement(const Label&) {}

    void condition(const Expr* e) {
        conditions_.push_back(e);
        add(e);
    }

    // Finds the kinds of all variables from all their assignments: they rise from `nothing` until no kind changes.
    void settle() {
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

    Known known_now(std::string_view name) const {
        switch (global_(name)) {
            case GlobalValue::library:
                return Known::library;
            case GlobalValue::tensor:
                return Known::tensor;
            case GlobalValue::unknown:
            case GlobalValue::nothing:
                break;
        }
        return Known::any;
    }

    Known known_global(const GlobalName& name) const {
        const auto* own = name.environment->get_if<LocalName>();
        const auto* outer = name.environment->get_if<UpvalueName>();
        const Local* environment = own ? own->local : outer ? outer->local : nullptr;
        if (environment != &chunk_.environment()) return Known::any;
        const auto assigned = globals_.find(name.name);
        return assigned != globals_.end() ? assigned->second : known_now(name.name);
    }

    Known known_of(const Expr& e, int depth) const {
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

    static Known known_constant(const Constant& value) {
        const bool number = std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
        return number ? Known::number : Known::any;
    }

    // Whether the operator's result, or first result, is a tensor for any arguments.
    static bool gives_tensor(std::string_view name) {
        const Op* op = registry().find(name);
        return op && !op->host_fn;
    }

    Known known_index(const Index& e, int depth) const {
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
            return name == "T" || name == "mT" || name.find_first_of("-0123456789,:.") == 0 ? Known::tensor
                                                                                            : Known::any;
        if (e.key->kind == ExprKind::table) return Known::tensor;
        const Known by = known_of(*e.key, depth);
        return by == Known::number ? Known::tensor : by == Known::nothing ? Known::nothing : Known::any;
    }

    Known known_call(const Call& e, int depth) const {
        if (const auto* callee = e.callee->get_if<GlobalName>(); callee && callee->name == "require") {
            const auto* module = e.arguments.size() == 1 ? e.arguments[0]->get_if<String>() : nullptr;
            return module && module->value == "lunaria" ? Known::library : Known::any;
        }
        const Known callee = known_of(*e.callee, depth);
        return callee == Known::maker ? Known::tensor : callee == Known::nothing ? Known::nothing : Known::any;
    }

    Known known_method(const MethodCall& e, int depth) const {
        const Known object = known_of(*e.object, depth);
        if (object != Known::tensor) return object == Known::nothing ? Known::nothing : Known::any;
        if (e.name == "item") return Known::number;
        const Op* op = registry().find(e.name);
        return op && op->is_method && !op->host_fn ? Known::tensor : Known::any;
    }

    Known known_unary(const Unary& e, int depth) const {
        if (e.op == UnaryOp::not_) return Known::any;
        return e.op == UnaryOp::length ? Known::number : known_of(*e.operand, depth);
    }

    Known known_binary(const Binary& e, int depth) const {
        if (e.op >= BinaryOp::concat) return Known::any;  // and comparisons
        const Known a = known_of(*e.left, depth), b = known_of(*e.right, depth);
        if (a == Known::tensor || b == Known::tensor) return Known::tensor;
        return a == Known::nothing || b == Known::nothing ? Known::nothing
               : a == b && a == Known::number             ? a
                                                          : Known::any;
    }

    void judge(const Binary& e) {
        const Known a = known_of(*e.left, 0), b = known_of(*e.right, 0);
        const bool doubtful = (a == Known::tensor && b == Known::number) || (a == Known::number && b == Known::tensor);
        if (!doubtful) return;
        const std::string tensor = text_of(a == Known::tensor ? *e.left : *e.right);
        const std::string number = text_of(a == Known::tensor ? *e.right : *e.left);
        found_.push_back({chunk_.position(e.operator_span.begin).line,
                          str(spelling(e.op), " between a tensor and a number is always ",
                              e.op == BinaryOp::equal ? "false" : "true", " in Lua"),
                          str("ops.equal(", tensor, ", ", number, ") compares the elements, ", tensor, ":item() ",
                              spelling(e.op), " ", number, " the only one")});
    }

    void judge_condition(const Expr& e) {
        if (known_of(e, 0) != Known::tensor) return;
        found_.push_back({chunk_.position(e.span.begin).line,
                          "a tensor counts as true in a condition, whatever it holds",
                          str("ask for its value: ops.any(", text_of(e), "):item() of booleans, ", text_of(e),
                              ":item() ~= 0 of a number")});
    }

    // An operand as it was typed; "x" where that is long.
    std::string text_of(const Expr& e) const {
        const std::string_view text = chunk_.text(e.span);
        const bool is_short = text.size() <= 24 && text.find('\n') == text.npos;
        return is_short ? std::string(text) : "x";
    }

    const Chunk& chunk_;
    const std::function<GlobalValue(std::string_view)>& global_;
    std::vector<const Expr*> expressions_;
    std::vector<const Stat*> statements_;
    std::vector<Assignment> assignments_;
    std::vector<const Binary*> comparisons_;
    std::vector<const Expr*> conditions_;
    std::vector<const GlobalName*> foreign_;
    std::vector<Known> locals_;  // by id
    std::map<std::string_view, Known> globals_;
    std::vector<Advice> found_;
};

}  // namespace

std::vector<Advice> advice_on(const Chunk& chunk, const std::function<GlobalValue(std::string_view)>& global) {
    return Adviser(chunk, global).run();
}

}  // namespace lunaria::lua
