// Visits every expression and statement of a chunk once, without recursion, since left spines are of any length. Later
// ones come first.
#pragma once

#include <vector>

#include "jit/frontend/ast.h"

namespace lunaria::lua {

class Walk {
  public:
    explicit Walk(const Function& f) { add(f.body); }

    template <class OnExpr, class OnStat>
    void run(OnExpr&& on_expr, OnStat&& on_stat) {
        while (!expressions_.empty() || !statements_.empty()) {
            if (!expressions_.empty()) {
                const Expr* e = expressions_.back();
                expressions_.pop_back();
                add_children(*e);
                on_expr(*e);
            } else {
                const Stat* s = statements_.back();
                statements_.pop_back();
                dispatch(*s, [this](const auto& one) { add_children(one); });
                on_stat(*s);
            }
        }
    }

  private:
    // The lists hold what is still to be visited.
    void add(const Expr* e) {
        if (e) expressions_.push_back(e);
    }
    void add(List<const Expr*> list) { expressions_.insert(expressions_.end(), list.begin(), list.end()); }
    void add(const Block* block) {
        if (block) statements_.insert(statements_.end(), block->statements.begin(), block->statements.end());
    }

    void add_children(const Expr& e) {
        add(left_child(e));
        if (const auto* f = e.get_if<Function>()) {
            add(f->body);
        } else if (const auto* index = e.get_if<Index>()) {
            add(index->key);
        } else if (const auto* call = e.get_if<Call>()) {
            add(call->arguments);
        } else if (const auto* method = e.get_if<MethodCall>()) {
            add(method->arguments);
        } else if (const auto* unary = e.get_if<Unary>()) {
            add(unary->operand);
        } else if (const auto* binary = e.get_if<Binary>()) {
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
        }
    }

    void add_children(const LocalDecl& s) { add(s.values); }
    void add_children(const LocalFunction& s) { add(static_cast<const Expr*>(s.function)); }
    void add_children(const FunctionDecl& s) {
        add(s.target);
        add(static_cast<const Expr*>(s.function));
    }
    void add_children(const Assign& s) {
        add(s.targets);
        add(s.values);
    }
    void add_children(const CallStatement& s) { add(s.call); }
    void add_children(const Do& s) { add(s.body); }
    void add_children(const While& s) {
        add(s.condition);
        add(s.body);
    }
    void add_children(const Repeat& s) {
        add(s.condition);
        add(s.body);
    }
    void add_children(const If& s) {
        for (const IfClause& clause : s.clauses) {
            add(clause.condition);
            add(clause.body);
        }
        add(s.otherwise);
    }
    void add_children(const NumericFor& s) {
        for (const Expr* e : {s.start, s.limit, s.step}) add(e);
        add(s.body);
    }
    void add_children(const GenericFor& s) {
        add(s.values);
        add(s.body);
    }
    void add_children(const Return& s) { add(s.values); }
    void add_children(const Break&) {}
    void add_children(const Goto&) {}
    void add_children(const Label&) {}

    std::vector<const Expr*> expressions_;
    std::vector<const Stat*> statements_;
};

}  // namespace lunaria::lua
