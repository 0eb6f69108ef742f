#include "jit/frontend/advice.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/operator/op.h"
#include "jit/frontend/walk.h"

namespace lunaria::lua {

namespace {

class Adviser {
  public:
    Adviser(const Chunk& chunk, const KnownGlobal& global) : chunk_(chunk), global_(global) {}

    std::vector<Advice> run() {
        Walk(chunk_.main()).run([this](const Expr& e) { look_at(e); }, [this](const Stat& s) { look_at(s); });
        if (comparisons_.empty() && conditions_.empty() && foreign_.empty() && dotted_.empty()) return {};
        const Kinds kinds(chunk_, global_);
        for (const GlobalName* name : foreign_) judge_foreign(kinds, *name);
        for (const Binary* comparison : comparisons_) judge(kinds, *comparison);
        for (const Expr* condition : conditions_) judge_condition(kinds, *condition);
        for (const Call* call : dotted_) judge_dotted(kinds, *call);
        std::ranges::stable_sort(found_, {}, &Advice::line);
        return std::move(found_);
    }

  private:
    void look_at(const Expr& e) {
        if (const auto* unary = e.get_if<Unary>()) {
            if (unary->op == UnaryOp::not_) conditions_.push_back(unary->operand);
        } else if (const auto* binary = e.get_if<Binary>()) {
            if (binary->op == BinaryOp::equal || binary->op == BinaryOp::not_equal) comparisons_.push_back(binary);
        } else if (const auto* global = e.get_if<GlobalName>()) {
            if (word_for(global->name)) foreign_.push_back(global);
        } else if (const auto* call = e.get_if<Call>()) {
            const auto* method = call->callee->get_if<Index>();
            if (method && method->dotted && !call->arguments.empty()) dotted_.push_back(call);
        }
    }
    void look_at(const Stat& s) {
        if (const auto* loop = s.get_if<While>()) conditions_.push_back(loop->condition);
        if (const auto* loop = s.get_if<Repeat>()) conditions_.push_back(loop->condition);
        if (const auto* branch = s.get_if<If>())
            for (const IfClause& clause : branch->clauses) conditions_.push_back(clause.condition);
    }

    // Lua's word for one of Python's; null for other names.
    static const char* word_for(std::string_view name) {
        return name == "True" ? "true" : name == "False" ? "false" : name == "None" ? "nil" : nullptr;
    }

    // A word of Python's that is assigned to neither in this text nor before.
    void judge_foreign(const Kinds& kinds, const GlobalName& name) {
        if (kinds.assigns(name.name) || global_(name.name) != Known::nothing) return;
        found_.push_back({name.span.line, str(name.name, " is a variable here, and has no value"),
                          str("Lua's word is ", word_for(name.name))});
    }

    void judge(const Kinds& kinds, const Binary& e) {
        const Known a = kinds.of(*e.left), b = kinds.of(*e.right);
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

    void judge_condition(const Kinds& kinds, const Expr& e) {
        if (kinds.of(e) != Known::tensor) return;
        found_.push_back({chunk_.position(e.span.begin).line,
                          "a tensor counts as true in a condition, whatever it holds",
                          str("ask for its value: ops.any(", text_of(e), "):item() of booleans, ", text_of(e),
                              ":item() ~= 0 of a number")});
    }

    // x.sum(0): the sum of the number 0, which is a tensor.
    void judge_dotted(const Kinds& kinds, const Call& e) {
        const auto& method = e.callee->as<Index>();
        if (kinds.of(*method.object) != Known::tensor || kinds.of(*e.arguments[0]) != Known::number) return;
        const std::string_view name = method.key->as<String>().value;
        const Op* op = registry().find(name);
        if (!op || !op->is_method) return;
        found_.push_back({chunk_.position(e.open.begin).line,
                          str("the method ", name, " is called with a dot: it gets the number, not the tensor"),
                          str("write ", text_of(*method.object), ":", name, "(...)")});
    }

    // An operand as it was typed; "x" where that is long.
    std::string text_of(const Expr& e) const {
        const std::string_view text = chunk_.text(e.span);
        const bool is_short = text.size() <= 24 && text.find('\n') == text.npos;
        return is_short ? std::string(text) : "x";
    }

    const Chunk& chunk_;
    const KnownGlobal& global_;
    std::vector<const Binary*> comparisons_;
    std::vector<const Expr*> conditions_;
    std::vector<const GlobalName*> foreign_;
    std::vector<const Call*> dotted_;
    std::vector<Advice> found_;
};

}  // namespace

std::vector<Advice> advice_on(const Chunk& chunk, const KnownGlobal& global) { return Adviser(chunk, global).run(); }

}  // namespace lunaria::lua
