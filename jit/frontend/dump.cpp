// The second half of printer.h: the structure of a tree in S-expressions.
#include "core/error.h"
#include "jit/frontend/literals.h"
#include "jit/frontend/printer.h"

namespace lunaria::lua {

namespace {

class Dumper {
  public:
    std::string take() { return std::move(out_); }

    void operator()(const Nil&) { out_ += "nil"; }
    void operator()(const Boolean& e) { out_ += e.value ? "true" : "false"; }
    void operator()(const Integer& e) { out_ += write_number(e.value); }
    void operator()(const Number& e) { out_ += write_number(e.value); }
    void operator()(const String& e) { out_ += write_string(e.value); }
    void operator()(const Vararg&) { out_ += "..."; }
    void operator()(const LocalName& e) { declaration(*e.local); }
    void operator()(const UpvalueName& e) { out_ += str("^", e.local->name, "@", e.index); }
    void operator()(const ConstantName& e) { out_ += str("=", e.local->name, "@", e.local->id); }
    void operator()(const GlobalName& e) {
        if (e.environment->kind != ExprKind::upvalue || e.environment->as<UpvalueName>().local->function) {
            // Not the chunk's own _ENV.
            expression(*e.environment);
        }
        (out_ += ':') += e.name;
    }
    void operator()(const Function& e) { function(e); }
    void operator()(const Unary& e) {
        ((out_ += '(') += spelling(e.op)) += ' ';
        expression(*e.operand);
        out_ += ')';
    }
    void operator()(const Paren& e) {
        out_ += "(paren ";
        expression(*e.inner);
        out_ += ')';
    }
    void operator()(const Table& e) {
        out_ += "(table";
        for (const Field& field : e.fields) {
            out_ += ' ';
            if (field.key) {
                out_ += field.kind == FieldKind::named ? "." : "[]";
                expression(*field.key);
                out_ += '=';
            }
            expression(*field.value);
        }
        out_ += ')';
    }

    // What follows the left child of an expression that has one; begin() has written the start.
    void operator()(const Index& e) { last(*e.key); }
    void operator()(const Call& e) { rest(e.arguments); }
    void operator()(const MethodCall& e) {
        (out_ += ' ') += e.name;
        rest(e.arguments);
    }
    void operator()(const Binary& e) { last(*e.right); }
    void operator()(const Logical& e) { last(*e.right); }

    void operator()(const LocalDecl& s) {
        out_ += "(local";
        for (const Local* local : s.locals) {
            out_ += ' ';
            declaration(*local);
            if (local->attribute == Attribute::constant) out_ += "<const>";
            if (local->attribute == Attribute::close) out_ += "<close>";
        }
        if (!s.values.empty()) out_ += " =";
        rest(s.values);
    }
    void operator()(const LocalFunction& s) {
        out_ += "(local-function ";
        declaration(*s.local);
        out_ += ' ';
        function(*s.function);
        out_ += ')';
    }
    void operator()(const FunctionDecl& s) {
        out_ += "(define ";
        expression(*s.target);
        last(*s.function);
    }
    void operator()(const Assign& s) {
        out_ += "(set";
        for (const Expr* target : s.targets) {
            out_ += ' ';
            expression(*target);
        }
        out_ += " =";
        rest(s.values);
    }
    void operator()(const CallStatement& s) { expression(*s.call); }
    void operator()(const Do& s) {
        out_ += "(do";
        close(*s.body);
    }
    void operator()(const While& s) {
        out_ += "(while ";
        expression(*s.condition);
        close(*s.body);
    }
    void operator()(const Repeat& s) {
        out_ += "(repeat";
        block(*s.body);
        last(*s.condition);
    }
    void operator()(const If& s) {
        out_ += "(if";
        for (const IfClause& clause : s.clauses) {
            out_ += " (";
            expression(*clause.condition);
            close(*clause.body);
        }
        if (s.otherwise) {
            out_ += " (else";
            close(*s.otherwise);
        }
        out_ += ')';
    }
    void operator()(const NumericFor& s) {
        out_ += "(for ";
        declaration(*s.variable);
        for (const Expr* e : {s.start, s.limit, s.step}) {
            out_ += ' ';
            if (e)
                expression(*e);
            else
                out_ += '-';
        }
        close(*s.body);
    }
    void operator()(const GenericFor& s) {
        out_ += "(for-in";
        for (const Local* local : s.variables) {
            out_ += ' ';
            declaration(*local);
        }
        out_ += " =";
        for (const Expr* e : s.values) {
            out_ += ' ';
            expression(*e);
        }
        close(*s.body);
    }
    void operator()(const Return& s) {
        out_ += "(return";
        rest(s.values);
    }
    void operator()(const Break&) { out_ += "(break)"; }
    void operator()(const Goto& s) { out_ += str("(goto ", s.name, s.backward ? " back)" : ")"); }
    void operator()(const Label& s) { out_ += str("(label ", s.name, s.ends_block ? " at end)" : ")"); }

    void expression(const Expr& e) {
        const auto spine = left_spine(e);
        for (std::size_t i = 0; i + 1 < spine.size(); ++i) begin(*spine[i]);
        for (std::size_t i = spine.size(); i-- > 0;) dispatch(*spine[i], *this);
    }

    void block(const Block& b) {
        for (const Stat* s : b.statements) {
            if (!out_.empty()) out_ += ' ';
            dispatch(*s, *this);
        }
    }

  private:
    void begin(const Expr& e) {
        out_ += '(';
        if (const auto* binary = e.get_if<Binary>())
            out_ += spelling(binary->op);
        else if (const auto* logical = e.get_if<Logical>())
            out_ += spelling(logical->op);
        else if (const auto* index = e.get_if<Index>())
            out_ += index->dotted ? "." : "[]";
        else
            out_ += e.kind == ExprKind::call ? "call" : "method";
        out_ += ' ';
    }
    void last(const Expr& e) {
        out_ += ' ';
        expression(e);
        out_ += ')';
    }
    void rest(List<const Expr*> items) {
        for (const Expr* item : items) {
            out_ += ' ';
            expression(*item);
        }
        out_ += ')';
    }
    void close(const Block& b) {
        block(b);
        out_ += ')';
    }
    void declaration(const Local& local) {
        out_ += str(local.name, "@", local.id);
        if (local.assigned_after_capture) out_ += '!';
    }
    void function(const Function& f) {
        out_ += "(function (";
        for (const Local* parameter : f.parameters) {
            if (parameter != f.parameters.front()) out_ += ' ';
            declaration(*parameter);
        }
        if (f.is_vararg) out_ += f.parameters.empty() ? "..." : " ...";
        out_ += ") [";
        for (const Upvalue& upvalue : f.upvalues) {
            if (&upvalue != f.upvalues.data()) out_ += ' ';
            out_ += upvalue.local->name;
        }
        out_ += ']';
        close(*f.body);
    }

    std::string out_;
};

}  // namespace

std::string dump(const Chunk& chunk) {
    Dumper dumper;
    dumper.block(*chunk.main().body);
    return dumper.take();
}

std::string dump(const Expr& expr) {
    Dumper dumper;
    dumper.expression(expr);
    return dumper.take();
}

}  // namespace lunaria::lua
