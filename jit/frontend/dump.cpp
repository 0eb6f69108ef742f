// The second half of printer.h: the structure of a tree in S-expressions.
#include "core/base/error.h"
#include "jit/frontend/printer.h"
#include "jit/frontend/tree_text.h"

namespace lunaria::lua {

namespace {

class Dumper : public TreeText<Dumper> {
  public:
    using TreeText::operator();
    void operator()(const LocalName& e) { put(e.local); }
    void operator()(const UpvalueName& e) { out_ += str("^", e.local->name, "@", e.index); }
    void operator()(const ConstantName& e) { out_ += str("=", e.local->name, "@", e.local->id); }
    void operator()(const GlobalName& e) {
        // Not the chunk's own _ENV.
        if (e.environment->kind != ExprKind::upvalue || e.environment->as<UpvalueName>().local->function)
            put(e.environment);
        put(':', e.name);
    }
    void operator()(const Function& e) {
        put("(function (");
        for (const Local* parameter : e.parameters) {
            if (parameter != e.parameters.front()) put(' ');
            put(parameter);
        }
        if (e.is_vararg) put(e.parameters.empty() ? "..." : " ...");
        put(") [");
        for (const Upvalue& upvalue : e.upvalues) put(&upvalue == e.upvalues.data() ? "" : " ", upvalue.local->name);
        put(']', e.body, ')');
    }
    void operator()(const Unary& e) { put('(', spelling(e.op), ' ', e.operand, ')'); }
    void operator()(const Paren& e) { put("(paren ", e.inner, ')'); }
    void operator()(const Table& e) {
        put("(table");
        for (const Field& field : e.fields) {
            put(' ');
            if (field.key) put(field.kind == FieldKind::named ? "." : "[]", field.key, '=');
            put(field.value);
        }
        put(')');
    }

    // Writes the part of an expression after its left child; begin() has written the start.
    void operator()(const Index& e) { put(' ', e.key, ')'); }
    void operator()(const Call& e) { put(e.arguments, ')'); }
    void operator()(const MethodCall& e) { put(' ', e.name, e.arguments, ')'); }
    void operator()(const Binary& e) { put(' ', e.right, ')'); }
    void operator()(const Logical& e) { put(' ', e.right, ')'); }

    void operator()(const LocalDecl& s) {
        put("(local");
        for (const Local* local : s.locals) {
            put(' ', local);
            if (local->attribute == Attribute::constant) put("<const>");
            if (local->attribute == Attribute::close) put("<close>");
        }
        put(s.values.empty() ? "" : " =", s.values, ')');
    }
    void operator()(const LocalFunction& s) { put("(local-function ", s.local, ' ', s.function, ')'); }
    void operator()(const FunctionDecl& s) { put("(define ", s.target, ' ', s.function, ')'); }
    void operator()(const Assign& s) { put("(set", s.targets, " =", s.values, ')'); }
    void operator()(const CallStatement& s) { put(s.call); }
    void operator()(const Do& s) { put("(do", s.body, ')'); }
    void operator()(const While& s) { put("(while ", s.condition, s.body, ')'); }
    void operator()(const Repeat& s) { put("(repeat", s.body, ' ', s.condition, ')'); }
    void operator()(const If& s) {
        put("(if");
        for (const IfClause& clause : s.clauses) put(" (", clause.condition, clause.body, ')');
        if (s.otherwise) put(" (else", s.otherwise, ')');
        put(')');
    }
    void operator()(const NumericFor& s) {
        put("(for ", s.variable);
        for (const Expr* e : {s.start, s.limit, s.step}) e ? put(' ', e) : put(" -");
        put(s.body, ')');
    }
    void operator()(const GenericFor& s) {
        put("(for-in");
        for (const Local* local : s.variables) put(' ', local);
        put(" =", s.values, s.body, ')');
    }
    void operator()(const Return& s) { put("(return", s.values, ')'); }
    void operator()(const Break&) { put("(break)"); }
    void operator()(const Goto& s) { put("(goto ", s.name, s.backward ? " back)" : ")"); }
    void operator()(const Label& s) { put("(label ", s.name, s.ends_block ? " at end)" : ")"); }

    void piece(const Expr* e) {
        const auto spine = left_spine(*e);
        for (std::size_t i = 0; i + 1 < spine.size(); ++i) begin(*spine[i]);
        for (std::size_t i = spine.size(); i-- > 0;) dispatch(*spine[i], *this);
    }
    void piece(List<const Expr*> items) {
        for (const Expr* item : items) put(' ', item);
    }
    void piece(const Block* b) {
        for (const Stat* s : b->statements) {
            if (!out_.empty()) put(' ');
            dispatch(*s, *this);
        }
    }
    void piece(const Local* local) {
        out_ += str(local->name, "@", local->id);
        if (local->assigned_after_capture) put('!');
    }

  private:
    void begin(const Expr& e) {
        put('(');
        if (const auto* binary = e.get_if<Binary>())
            put(spelling(binary->op));
        else if (const auto* logical = e.get_if<Logical>())
            put(spelling(logical->op));
        else if (const auto* index = e.get_if<Index>())
            put(index->dotted ? "." : "[]");
        else
            put(e.kind == ExprKind::call ? "call" : "method");
        put(' ');
    }
};

}  // namespace

std::string dump(const Chunk& chunk) {
    Dumper dumper;
    dumper.piece(chunk.main().body);
    return dumper.take();
}

std::string dump(const Expr& expr) {
    Dumper dumper;
    dumper.piece(&expr);
    return dumper.take();
}

}  // namespace lunaria::lua
