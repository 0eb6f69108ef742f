#include "jit/frontend/printer.h"

#include "jit/frontend/literals.h"

namespace lunaria::lua {

namespace {

class Printer {
  public:
    std::string take() { return std::move(out_); }

    void operator()(const Nil&) { out_ += "nil"; }
    void operator()(const Boolean& e) { out_ += e.value ? "true" : "false"; }
    void operator()(const Integer& e) { out_ += write_number(e.value); }
    void operator()(const Number& e) { out_ += write_number(e.value); }
    void operator()(const String& e) { out_ += write_string(e.value); }
    void operator()(const Vararg&) { out_ += "..."; }
    void operator()(const LocalName& e) { out_ += e.local->name; }
    void operator()(const UpvalueName& e) { out_ += e.local->name; }
    void operator()(const ConstantName& e) { out_ += e.local->name; }
    void operator()(const GlobalName& e) { out_ += e.name; }
    void operator()(const Function& e) {
        out_ += "function";
        body(e);
    }
    void operator()(const Unary& e) {
        out_ += spelling(e.op);
        // "- -x": two minus signs would begin a comment.
        if (e.op == UnaryOp::not_ || e.operand->kind == ExprKind::unary) out_ += ' ';
        expression(*e.operand);
    }
    void operator()(const Paren& e) {
        out_ += '(';
        expression(*e.inner);
        out_ += ')';
    }
    void operator()(const Table& e) {
        out_ += '{';
        for (const Field& field : e.fields) {
            if (&field != e.fields.data()) out_ += ", ";
            if (field.kind == FieldKind::named) {
                out_ += field.key->as<String>().value;
                out_ += " = ";
            } else if (field.kind == FieldKind::keyed) {
                out_ += "[";
                expression(*field.key);
                out_ += "] = ";
            }
            expression(*field.value);
        }
        out_ += '}';
    }

    // What follows the left child of an expression that has one.
    void operator()(const Index& e) {
        if (e.dotted) {
            out_ += '.';
            out_ += e.key->as<String>().value;
        } else {
            out_ += '[';
            expression(*e.key);
            out_ += ']';
        }
    }
    void operator()(const Call& e) { arguments(e.arguments); }
    void operator()(const MethodCall& e) {
        out_ += ':';
        out_ += e.name;
        arguments(e.arguments);
    }
    void operator()(const Binary& e) { infix(spelling(e.op), *e.right); }
    void operator()(const Logical& e) { infix(spelling(e.op), *e.right); }

    void operator()(const LocalDecl& s) {
        out_ += "local ";
        for (const Local* local : s.locals) {
            if (local != s.locals.front()) out_ += ", ";
            out_ += local->name;
            if (local->attribute == Attribute::constant) out_ += " <const>";
            if (local->attribute == Attribute::close) out_ += " <close>";
        }
        if (s.values.empty()) return;
        out_ += " = ";
        expressions(s.values);
    }
    void operator()(const LocalFunction& s) {
        (out_ += "local function ") += s.local->name;
        body(*s.function);
    }
    void operator()(const FunctionDecl& s) {
        out_ += "function ";
        expression(*s.target);
        if (s.function->is_method) out_[out_.rfind('.')] = ':';
        body(*s.function);
    }
    void operator()(const Assign& s) {
        expressions(s.targets);
        out_ += " = ";
        expressions(s.values);
    }
    void operator()(const CallStatement& s) { expression(*s.call); }
    void operator()(const Do& s) {
        out_ += "do";
        block(*s.body);
        line("end");
    }
    void operator()(const While& s) {
        out_ += "while ";
        expression(*s.condition);
        out_ += " do";
        block(*s.body);
        line("end");
    }
    void operator()(const Repeat& s) {
        out_ += "repeat";
        block(*s.body);
        line("until ");
        expression(*s.condition);
    }
    void operator()(const If& s) {
        for (const IfClause& clause : s.clauses) {
            if (&clause == s.clauses.data())
                out_ += "if ";
            else
                line("elseif ");
            expression(*clause.condition);
            out_ += " then";
            block(*clause.body);
        }
        if (s.otherwise) {
            line("else");
            block(*s.otherwise);
        }
        line("end");
    }
    void operator()(const NumericFor& s) {
        ((out_ += "for ") += s.variable->name) += " = ";
        expression(*s.start);
        out_ += ", ";
        expression(*s.limit);
        if (s.step) {
            out_ += ", ";
            expression(*s.step);
        }
        out_ += " do";
        block(*s.body);
        line("end");
    }
    void operator()(const GenericFor& s) {
        out_ += "for ";
        names(s.variables);
        out_ += " in ";
        expressions(s.values);
        out_ += " do";
        block(*s.body);
        line("end");
    }
    void operator()(const Return& s) {
        out_ += "return";
        if (s.values.empty()) return;
        out_ += ' ';
        expressions(s.values);
    }
    void operator()(const Break&) { out_ += "break"; }
    void operator()(const Goto& s) { (out_ += "goto ") += s.name; }
    void operator()(const Label& s) { ((out_ += "::") += s.name) += "::"; }

    void expression(const Expr& e) {
        const auto spine = left_spine(e);
        for (std::size_t i = spine.size(); i-- > 0;) dispatch(*spine[i], *this);
    }

    void statements(const Block& b) {
        for (std::size_t i = 0; i < b.statements.size(); ++i) {
            const Stat& s = *b.statements[i];
            // A statement that begins with a parenthesis would go on with a call of what stands before it.
            if (i > 0 && begins_with_paren(s)) out_ += ';';
            line("");
            dispatch(s, *this);
        }
    }

    void top(const Block& b) {
        statements(b);
        if (!out_.empty()) out_ = out_.substr(1) + "\n";
    }

  private:
    static bool begins_with_paren(const Stat& s) {
        const Expr* first = nullptr;
        if (const auto* call = s.get_if<CallStatement>()) first = call->call;
        if (const auto* assignment = s.get_if<Assign>()) first = assignment->targets.front();
        return first && left_spine(*first).back()->kind == ExprKind::paren;
    }
    void line(std::string_view text) {
        out_ += '\n';
        out_.append(static_cast<std::size_t>(2 * depth_), ' ');
        out_ += text;
    }
    void block(const Block& b) {
        ++depth_;
        statements(b);
        --depth_;
    }
    void body(const Function& f) {
        out_ += '(';
        const std::size_t implicit = f.is_method ? 1 : 0;
        names(f.parameters.subspan(implicit));
        if (f.is_vararg) out_ += f.parameters.size() > implicit ? ", ..." : "...";
        out_ += ')';
        block(*f.body);
        line("end");
    }
    void names(List<const Local*> locals) {
        for (std::size_t i = 0; i < locals.size(); ++i) {
            if (i > 0) out_ += ", ";
            out_ += locals[i]->name;
        }
    }
    void expressions(List<const Expr*> items) {
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (i > 0) out_ += ", ";
            expression(*items[i]);
        }
    }
    void arguments(List<const Expr*> items) {
        out_ += '(';
        expressions(items);
        out_ += ')';
    }
    void infix(std::string_view op, const Expr& right) {
        ((out_ += ' ') += op) += ' ';
        expression(right);
    }

    std::string out_;
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
    printer.expression(expr);
    return printer.take();
}

}  // namespace lunaria::lua
