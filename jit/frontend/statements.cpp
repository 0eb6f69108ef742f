// Blocks and statements.
#include "jit/frontend/constants.h"
#include "jit/frontend/grammar.h"

namespace lunaria::lua {

using enum TokenKind;

bool Parser::at_block_end(bool with_until) const {
    switch (token_.kind) {
        case else_:
        case elseif_:
        case end_:
        case eof:
            return true;
        case until_:
            return with_until;
        default:
            return false;
    }
}

const Block* Parser::parse_block() {
    auto* block = make<Block>(token_.span);
    block->span.end = block->span.begin;
    ListBuilder<const Stat*> statements(statement_stack_);
    while (!at_block_end(true)) {
        if (accept(semicolon)) continue;
        if (at(double_colon)) {
            parse_labels(statements);
        } else if (at(return_)) {
            statements.add(parse_return());
            break;
        } else {
            statements.add(parse_statement());
        }
    }
    if (statements.size() > 0) block->span = since(block->span);
    block->statements = statements.keep(chunk_);
    return block;
}

const Block* Parser::parse_scoped_block(bool is_loop) {
    scope_.open_block(is_loop);
    const Block* block = parse_block();
    scope_.close_block();
    return block;
}

const Stat* Parser::parse_statement() {
    const Level level(*this);
    switch (token_.kind) {
        case if_:
            return parse_if();
        case while_:
            return parse_while();
        case do_:
            return parse_do();
        case for_:
            return parse_for();
        case repeat_:
            return parse_repeat();
        case function_:
            return parse_function_statement();
        case local_:
            return parse_local();
        case break_:
            return parse_break();
        case goto_:
            return parse_goto();
        default:
            return parse_expression_statement();
    }
}

const Stat* Parser::parse_if() {
    auto* node = make<If>(token_.span);
    ListBuilder<IfClause> clauses(clause_stack_);
    open(if_);
    for (;;) {
        IfClause clause;
        clause.condition = parse_expression();
        expect_after_condition(then_, *clause.condition);
        clause.body = parse_scoped_block(false);
        clauses.add(clause);
        if (!accept(elseif_)) break;
    }
    const std::uint32_t else_line = token_.span.line;
    if (accept(else_)) {
        if (at(if_) && token_.span.line == else_line) else_if_line_ = else_line;
        node->otherwise = parse_scoped_block(false);
    }
    expect_close(end_);
    node->clauses = clauses.keep(chunk_);
    node->span = since(node->span);
    return node;
}

const Stat* Parser::parse_while() {
    auto* node = make<While>(token_.span);
    open(while_);
    // The loop begins before the condition, which runs again and again too; its block has no locals of its own.
    scope_.open_block(true);
    node->condition = parse_expression();
    expect_after_condition(do_, *node->condition);
    node->body = parse_scoped_block(false);
    scope_.close_block();
    expect_close(end_);
    node->span = since(node->span);
    return node;
}

const Stat* Parser::parse_do() {
    auto* node = make<Do>(token_.span);
    open(do_);
    node->body = parse_scoped_block(false);
    expect_close(end_);
    node->span = since(node->span);
    return node;
}

const Stat* Parser::parse_for() {
    const Span begin = token_.span;
    open(for_);
    const Span name_span = token_.span;
    if (at(left_paren)) fail_expected(name, "a loop over numbers is: for i = 0, n - 1 do … end");
    Name* first = expect_name();
    if (at(assign)) return parse_numeric_for(begin, first, name_span);
    if (at(comma) || at(in_)) return parse_generic_for(begin, first, name_span);
    fail("'=' or 'in' expected", "'=' or 'in'",
         "a for loop is written 'for i = first, last do' or 'for k, v in pairs(t) do'");
}

const Stat* Parser::parse_numeric_for(const Span& begin, Name* name, const Span& name_span) {
    auto* node = make<NumericFor>(begin);
    advance();
    node->start = parse_expression();
    expect(comma);
    node->limit = parse_expression();
    if (accept(comma)) node->step = parse_expression();
    scope_.open_block(true);
    scope_.reserve_hidden(3, name_span);
    expect_after_condition(do_, node->step ? *node->step : *node->limit);
    scope_.open_block(false);
    Local* variable = scope_.declare(name, name_span, LocalKind::loop);
    scope_.activate(variable, name);
    node->variable = variable;
    node->body = parse_block();
    scope_.close_block();
    scope_.close_block();
    expect_close(end_);
    node->span = since(node->span);
    return node;
}

const Stat* Parser::parse_generic_for(const Span& begin, Name* name, const Span& name_span) {
    auto* node = make<GenericFor>(begin);
    struct Variable {
        Name* name;
        Span span;
    };
    std::vector<Variable> variables{{name, name_span}};
    while (accept(comma)) {
        const Span span = token_.span;
        variables.push_back({expect_name(), span});
    }
    if (!at(in_)) fail_expected(in_, "what is gone through stands behind 'in': for k, v in pairs(t) do");
    expect(in_);
    node->values = parse_expression_items();
    scope_.open_block(true);
    scope_.reserve_hidden(4, name_span);
    expect_after_condition(do_, *node->values.back());
    scope_.open_block(false);
    std::vector<Local*> locals;
    for (const Variable& v : variables) locals.push_back(scope_.declare(v.name, v.span, LocalKind::loop));
    for (std::size_t i = 0; i < locals.size(); ++i) scope_.activate(locals[i], variables[i].name);
    const std::vector<const Local*> kept(locals.begin(), locals.end());
    node->variables = chunk_.keep(kept.data(), kept.size());
    node->body = parse_block();
    scope_.close_block();
    scope_.close_block();
    expect_close(end_);
    node->span = since(node->span);
    return node;
}

const Stat* Parser::parse_repeat() {
    auto* node = make<Repeat>(token_.span);
    open(repeat_);
    scope_.open_block(true);
    scope_.open_block(false);
    node->body = parse_block();
    expect_close(until_);
    node->condition = parse_expression();
    if (at(assign)) fail_expected(eof, "'=' assigns a value: equality is written ==");
    scope_.close_block();
    scope_.close_block();
    node->span = since(node->span);
    return node;
}

const Stat* Parser::parse_function_statement() {
    auto* node = make<FunctionDecl>(token_.span);
    const Doc doc{token_.doc_begin, token_.doc_end};
    open(function_);
    const Span name_span = token_.span;
    if (at(left_paren))
        fail_expected(TokenKind::name,
                      "a function statement needs a name: 'function name(…)', or 'local name = function(…)'");
    Name* first = expect_name();
    const Expr* target = scope_.resolve(first, name_span);
    while (at(dot)) target = parse_field_suffix(target);
    const bool is_method = at(colon);
    if (is_method) target = parse_field_suffix(target);
    Function* function = parse_function_body(node->span, node->span.line, is_method);
    scope_.assign(*target, name_span);
    std::string path = path_of(*target);
    if (is_method) path[path.rfind('.')] = ':';
    function->name = chunk_.keep(std::string_view(path));
    document(function, doc);
    node->target = target;
    node->function = function;
    node->span = since(node->span);
    return node;
}

const Stat* Parser::parse_local() {
    const Span begin = token_.span;
    const Doc doc{token_.doc_begin, token_.doc_end};
    advance();
    if (at(function_)) {
        const Stat* stat = parse_local_function(begin);
        document(functions_[stat->as<LocalFunction>().function->id], doc);
        return stat;
    }
    auto* node = make<LocalDecl>(begin);
    ListBuilder<Local*> locals(local_stack_);
    ListBuilder<Name*> names(name_stack_);
    const std::size_t first = local_stack_.size();
    bool has_close = false;
    do {
        const Span span = token_.span;
        names.add(expect_name());
        Local* local = scope_.declare(name_stack_.back(), span, LocalKind::variable);
        local->attribute = parse_attribute();
        if (local->attribute == Attribute::close) {
            if (has_close)
                fail_meaning(span, "multiple to-be-closed variables in local list",
                             "declare each <close> variable in a statement of its own");
            has_close = true;
        }
        locals.add(local);
    } while (accept(comma));
    if (accept(assign))
        node->values = parse_expression_items();
    else if (at(dot) || at(colon) || at(left_bracket))
        fail("unexpected symbol", {}, "'local' declares a plain name: a field is assigned without it, as in t.x = 1");
    else if (at(left_paren) && chunk_.text(previous_) == "func")
        fail("unexpected symbol", {}, "write 'local function name(…)'");

    const std::size_t count = locals.size();
    Local* last = local_stack_.back();
    if (node->values.size() == count && last->attribute == Attribute::constant)
        last->constant = fold_constant(*node->values.back());
    for (std::size_t i = 0; i < count; ++i) {
        scope_.activate(local_stack_[first + i], name_stack_[name_stack_.size() - count + i]);
        if (i < node->values.size()) name_function(node->values[i], local_stack_[first + i]->name, doc);
    }
    const std::vector<const Local*> kept(local_stack_.begin() + static_cast<std::ptrdiff_t>(first), local_stack_.end());
    node->locals = chunk_.keep(kept.data(), kept.size());
    node->span = since(node->span);
    return node;
}

Attribute Parser::parse_attribute() {
    if (!accept(less)) return Attribute::none;
    const Span span = token_.span;
    const Name* attribute = expect_name();
    expect(greater);
    if (attribute->text == "const") return Attribute::constant;
    if (attribute->text == "close") return Attribute::close;
    fail_meaning(span, str("unknown attribute '", attribute->text, "'"), "the attributes are <const> and <close>");
}

const Stat* Parser::parse_local_function(const Span& begin) {
    auto* node = make<LocalFunction>(begin);
    open(function_);
    const Span name_span = token_.span;
    Name* name = expect_name();
    if (at(dot) || at(colon))
        fail_expected(left_paren, "a local function has a plain name: leave out 'local' to define a field");
    Local* local = scope_.declare(name, name_span, LocalKind::function);
    scope_.activate(local, name);  // visible in its own body
    Function* function = parse_function_body(begin, token_.span.line, false);
    function->name = local->name;
    node->local = local;
    node->function = function;
    node->span = since(begin);
    return node;
}

// Labels that follow each other, with only semicolons between, are all at the end of the block if the last one is.
void Parser::parse_labels(ListBuilder<const Stat*>& statements) {
    struct Pending {
        Label* label;
        Name* name;
    };
    std::vector<Pending> labels;
    while (at(double_colon) || at(semicolon)) {
        if (accept(semicolon)) continue;
        auto* label = make<Label>(token_.span);
        advance();
        Name* name = expect_name();
        expect(double_colon);
        label->name = name->text;
        label->span = since(label->span);
        statements.add(label);
        labels.push_back({label, name});
    }
    const bool ends_block = at_block_end(false);
    for (const Pending& pending : labels) scope_.add_label(pending.label, pending.name, ends_block);
}

const Stat* Parser::parse_return() {
    auto* node = make<Return>(token_.span);
    const Doc doc{token_.doc_begin, token_.doc_end};
    advance();
    if (!at_block_end(true) && !at(semicolon)) node->values = parse_expression_items();
    name_functions(node->values, {}, doc);
    node->span = since(node->span);
    accept(semicolon);
    return_end_ = previous_.end;
    return node;
}

const Stat* Parser::parse_break() {
    auto* node = make<Break>(token_.span);
    if (!scope_.in_loop())
        fail_meaning(node->span, str("break outside a loop at line ", node->span.line),
                     "break leaves the innermost loop of its own function; use return to leave a function");
    advance();
    return node;
}

const Stat* Parser::parse_goto() {
    auto* node = make<Goto>(token_.span);
    advance();
    Name* label = expect_name();
    node->name = label->text;
    node->span = since(node->span);
    scope_.add_goto(node, label);
    return node;
}

const Stat* Parser::parse_expression_statement() {
    const Span begin = token_.span;
    const Doc doc{token_.doc_begin, token_.doc_end};
    const Expr* first = parse_suffixed();
    if (!at(assign) && !at(comma)) {
        if (first->kind != ExprKind::call && first->kind != ExprKind::method_call) fail_statement(*first);
        auto* node = make<CallStatement>(begin);
        node->call = first;
        node->span = since(begin);
        return node;
    }
    auto* node = make<Assign>(begin);
    ListBuilder<const Expr*> targets(expression_stack_);
    for (const Expr* target = first;; target = parse_suffixed()) {
        switch (target->kind) {
            case ExprKind::local:
            case ExprKind::upvalue:
            case ExprKind::constant:
            case ExprKind::global:
            case ExprKind::index:
                break;
            default:
                // print "loss", x
                fail("syntax error", {},
                     target == first && at(comma) && target->kind == ExprKind::call
                         ? "several arguments stand in parentheses: f(a, b)"
                         : "only a variable or a field can be assigned to");
        }
        targets.add(target);
        if (!accept(comma)) break;
    }
    node->targets = targets.keep(chunk_);
    expect(assign);
    node->values = parse_expression_items();
    // After the values: a closure among them may capture a target.
    for (const Expr* target : node->targets) scope_.assign(*target, target->span);
    name_functions(node->values, node->targets, doc);
    node->span = since(begin);
    return node;
}

void Parser::fail_statement(const Expr& expr) {
    std::string hint = hint_for_slip(chunk_.source(), previous_, token_.span), message = "syntax error";
    const std::string_view target = chunk_.text(expr.span);
    if (chunk_.source()[token_.span.end] == '=' && hint.find("assignment operators") != std::string::npos &&
        target.size() <= 40) {
        const std::string_view op = chunk_.text(token_.span);
        hint = str("Lua has no '", op, "=': write ", target, " = ", target, " ", op, " ...");
    }
    if (const auto* global = expr.get_if<GlobalName>(); global && previous_.end == expr.span.end) {
        std::string bare = hint_for_bare_name(global->name, token_.kind);
        if (!bare.empty()) {
            if (!bare.starts_with("a call")) message = str("'", global->name, "' is no statement of Lua: ", message);
            if (at(eof)) fail_at(expr.span, std::move(message), {}, std::move(bare));
            hint = std::move(bare);
        }
    }
    if (hint.empty()) hint = hint_for_line(chunk_.source(), token_.span);
    if (hint.empty()) hint = "a statement is a call or an assignment: this expression does nothing";
    fail(std::move(message), {}, std::move(hint));
}

}  // namespace lunaria::lua
