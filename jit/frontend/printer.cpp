#include "jit/frontend/printer.h"

#include "jit/frontend/tree_text.h"

namespace lunaria::lua {

namespace {

class Printer : public TreeText<Printer> {
    // A text on a line of its own.
    struct Line {
        std::string_view text;
    };
    static constexpr Line kEnd{"end"};

  public:
    using TreeText::operator();
    void operator()(const LocalName& e) { put(e.local); }
    void operator()(const UpvalueName& e) { put(e.local); }
    void operator()(const ConstantName& e) { put(e.local); }
    void operator()(const GlobalName& e) { put(e.name); }
    void operator()(const Function& e) {
        put("function");
        body(e);
    }
    void operator()(const Unary& e) {
        // "- -x": two minus signs would begin a comment.
        const bool apart = e.op == UnaryOp::not_ || e.operand->kind == ExprKind::unary;
        put(spelling(e.op), apart ? " " : "", e.operand);
    }
    void operator()(const Paren& e) { put('(', e.inner, ')'); }
    void operator()(const Table& e) {
        put('{');
        for (const Field& field : e.fields) {
            if (&field != e.fields.data()) put(", ");
            if (field.kind == FieldKind::named) put(field.key->as<String>().value, " = ");
            if (field.kind == FieldKind::keyed) put('[', field.key, "] = ");
            put(field.value);
        }
        put('}');
    }

    // Writes the part of an expression after its left child.
    void operator()(const Index& e) { e.dotted ? put('.', e.key->as<String>().value) : put('[', e.key, ']'); }
    void operator()(const Call& e) { put('(', e.arguments, ')'); }
    void operator()(const MethodCall& e) { put(':', e.name, '(', e.arguments, ')'); }
    void operator()(const Binary& e) { put(' ', spelling(e.op), ' ', e.right); }
    void operator()(const Logical& e) { put(' ', spelling(e.op), ' ', e.right); }

    void operator()(const LocalDecl& s) {
        put("local ");
        for (const Local* local : s.locals) {
            put(local == s.locals.front() ? "" : ", ", local);
            if (local->attribute == Attribute::constant) put(" <const>");
            if (local->attribute == Attribute::close) put(" <close>");
        }
        if (!s.values.empty()) put(" = ", s.values);
    }
    void operator()(const LocalFunction& s) {
        put("local function ", s.local);
        body(*s.function);
    }
    void operator()(const FunctionDecl& s) {
        put("function ", s.target);
        if (s.function->is_method) out_[out_.rfind('.')] = ':';
        body(*s.function);
    }
    void operator()(const Assign& s) { put(s.targets, " = ", s.values); }
    void operator()(const CallStatement& s) { put(s.call); }
    void operator()(const Do& s) { put("do", s.body, kEnd); }
    void operator()(const While& s) { put("while ", s.condition, " do", s.body, kEnd); }
    void operator()(const Repeat& s) { put("repeat", s.body, Line{"until "}, s.condition); }
    void operator()(const If& s) {
        for (const IfClause& clause : s.clauses) {
            &clause == s.clauses.data() ? put("if ") : put(Line{"elseif "});
            put(clause.condition, " then", clause.body);
        }
        if (s.otherwise) put(Line{"else"}, s.otherwise);
        put(kEnd);
    }
    void operator()(const NumericFor& s) {
        put("for ", s.variable, " = ", s.start, ", ", s.limit);
        if (s.step) put(", ", s.step);
        put(" do", s.body, kEnd);
    }
    void operator()(const GenericFor& s) { put("for ", s.variables, " in ", s.values, " do", s.body, kEnd); }
    void operator()(const Return& s) {
        put("return");
        if (!s.values.empty()) put(' ', s.values);
    }
    void operator()(const Break&) { put("break"); }
    void operator()(const Goto& s) { put("goto ", s.name); }
    void operator()(const Label& s) { put("::", s.name, "::"); }

    void piece(const Expr* e) {
        const auto spine = left_spine(*e);
        for (std::size_t i = spine.size(); i-- > 0;) dispatch(*spine[i], *this);
    }
    void piece(const Local* local) { put(local->name); }
    void piece(const Block* b) {
        ++depth_;
        statements(*b);
        --depth_;
    }
    void piece(Line line) { put('\n', std::string(static_cast<std::size_t>(2 * depth_), ' '), line.text); }
    template <class T>
    void piece(List<const T*> items) {
        for (std::size_t i = 0; i < items.size(); ++i) put(i > 0 ? ", " : "", items[i]);
    }

    void top(const Block& b) {
        statements(b);
        if (!out_.empty()) out_ = out_.substr(1) + "\n";
    }

  private:
    void statements(const Block& b) {
        for (std::size_t i = 0; i < b.statements.size(); ++i) {
            const Stat& s = *b.statements[i];
            // A statement that begins with a parenthesis would be read as a call of the expression before it.
            if (i > 0 && begins_with_paren(s)) put(';');
            put(Line{""});
            dispatch(s, *this);
        }
    }
    static bool begins_with_paren(const Stat& s) {
        const Expr* first = nullptr;
        if (const auto* call = s.get_if<CallStatement>()) first = call->call;
        if (const auto* assignment = s.get_if<Assign>()) first = assignment->targets.front();
        return first && left_spine(*first).back()->kind == ExprKind::paren;
    }
    void body(const Function& f) {
        const std::size_t implicit = f.is_method ? 1 : 0;
        put('(', f.parameters.subspan(implicit));
        if (f.is_vararg) put(f.parameters.size() > implicit ? ", ..." : "...");
        put(')', f.body, kEnd);
    }

    int depth_ = 0;
};

}  // namespace

std::string print(const Chunk& chunk) {
    Printer printer;
    printer.top(*chunk.main().body);
    return printer.take();
}

std::string print(const Expr& expr) {
    Printer printer;
    printer.piece(&expr);
    return printer.take();
}

}  // namespace lunaria::lua
