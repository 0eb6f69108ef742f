#include "jit/frontend/parser.h"

#include <algorithm>

#include "jit/frontend/constants.h"
#include "jit/frontend/grammar.h"

namespace lunaria::lua {

using enum TokenKind;

std::unique_ptr<Chunk> parse(std::string source, std::string name) {
    auto chunk = std::make_unique<Chunk>(std::move(source), std::move(name));
    Parser(*chunk).parse_chunk();
    return chunk;
}

std::unique_ptr<Chunk> parse_expression_list(std::string source, std::string name) {
    auto chunk = std::make_unique<Chunk>(std::move(source), std::move(name));
    Parser(*chunk).parse_expressions();
    return chunk;
}

Parser::Parser(Chunk& chunk) : chunk_(chunk), lexer_(chunk), scope_(chunk, lexer_.intern("_ENV")) {}

Function* Parser::open_main() {
    auto* main = chunk_.make<Function>();
    main->span = {0, static_cast<std::uint32_t>(chunk_.source().size()), 1, 1};
    main->is_vararg = true;
    main->name = "main chunk";
    functions_.push_back(main);
    scope_.open_function(main);
    advance();
    return main;
}

void Parser::close_main(Function* main, const Block* body) {
    if (!at(eof)) fail_expected(eof, at(end_) ? "this 'end' closes nothing: look for one too many above" : "");
    scope_.close_function();
    main->body = body;
    chunk_.functions_.assign(functions_.begin(), functions_.end());
    chunk_.environment_ = &scope_.environment();
    chunk_.local_count_ = scope_.local_count();
}

void Parser::parse_chunk() {
    Function* main = open_main();
    const Block* body = parse_block();
    close_main(main, body);
}

void Parser::parse_expressions() {
    Function* main = open_main();
    auto* list = make<Return>(token_.span);
    list->values = parse_expression_items();
    list->span = since(list->span);
    name_functions(list->values, {}, {});
    chunk_.is_silent_ = accept(semicolon);
    chunk_.is_expression_ = true;
    auto* body = chunk_.make<Block>();
    body->span = list->span;
    const Stat* const statements[] = {list};
    body->statements = chunk_.keep(statements, 1);
    close_main(main, body);
}

void Parser::advance() {
    previous_ = token_.span;
    if (has_ahead_) {
        token_ = ahead_;
        has_ahead_ = false;
    } else {
        token_ = lexer_.next();
    }
}

void Parser::enter_level() {
    if (++level_ >= kMaxNesting)
        fail_meaning(token_.span,
                     str("too many nested levels (limit is ", kMaxNesting, ") in ",
                         scope_.function().parent ? "function" : "main function"),
                     "split the expression or the blocks: give parts of it a local name or a function");
}

bool Parser::accept(TokenKind kind) {
    if (!at(kind)) return false;
    advance();
    return true;
}

void Parser::expect(TokenKind kind) {
    if (!accept(kind)) fail_expected(kind);
}

void Parser::open(TokenKind kind) {
    open_.push_back({kind, token_.span.line});
    advance();
}

void Parser::expect_close(TokenKind kind) {
    if (!at(kind)) fail_expected(kind);
    open_.pop_back();
    advance();
}

Name* Parser::expect_name() {
    if (!at(name))
        fail_expected(name, token_.kind <= while_ ? str("'", spelling(token_.kind),
                                                        "' is a reserved word: choose another name, or write t[\"",
                                                        spelling(token_.kind), "\"] for a field")
                                                  : std::string());
    Name* result = token_.name;
    advance();
    return result;
}

Span Parser::since(const Span& begin) const { return {begin.begin, previous_.end, begin.line, begin.column}; }

void Parser::fail(std::string message, std::string expected, std::string hint) {
    Problem problem;
    problem.span = token_.span;
    problem.message = std::move(message);
    problem.expected = std::move(expected);
    problem.found = at(eof) ? "<eof>" : quoted_for_message(chunk_.text(token_.span));
    problem.hint = hint.empty() ? hint_for_slip(chunk_.source(), previous_, token_.span) : std::move(hint);
    problem.incomplete = at(eof);
    std::uint32_t last_line = 0;
    for (const Opening& opening : open_) {
        problem.open_lines += opening.line != last_line;
        last_line = opening.line;
    }
    throw SyntaxError(chunk_.name(), chunk_.source(), std::move(problem));
}

// For text that is well formed but means nothing: more text would not mend it.
void Parser::fail_meaning(const Span& span, std::string message, std::string hint) {
    Problem problem;
    problem.span = span;
    problem.message = std::move(message);
    problem.found = span.begin < span.end ? quoted_for_message(chunk_.text(span)) : "<eof>";
    problem.hint = std::move(hint);
    throw SyntaxError(chunk_.name(), chunk_.source(), std::move(problem));
}

void Parser::fail_expected(TokenKind kind, std::string hint) {
    const bool is_class = kind == name || kind == eof;
    const std::string expected = is_class ? std::string(spelling(kind)) : str("'", spelling(kind), "'");
    std::string message = expected + " expected";
    const bool closes =
        kind == end_ || kind == until_ || kind == right_paren || kind == right_brace || kind == right_bracket;
    if (closes && !open_.empty() && open_.back().line != token_.span.line)
        message += str(" (to close '", spelling(open_.back().kind), "' at line ", open_.back().line, ")");
    if (hint.empty() && kind == end_ && at(eof) && else_if_line_ != 0)
        hint = str("'else if' at line ", else_if_line_,
                   " opens a second 'if' that needs an 'end' of its own: write 'elseif' in one word");
    if (hint.empty() && (kind == end_ || kind == eof || kind == until_) && return_end_ != 0 &&
        return_end_ == previous_.end && !at(eof))
        hint = "'return' must be the last statement of its block: put 'do return … end' around it to leave early";
    fail(std::move(message), expected, std::move(hint));
}

// `then` or `do`: where people write what other languages have there.
void Parser::expect_after_condition(TokenKind kind, const Expr& condition) {
    if (accept(kind)) return;
    const std::string word(spelling(kind));
    std::string hint;
    const auto* call = condition.get_if<Call>();
    if (at(assign))
        hint = "'=' assigns a value: equality is written ==";
    else if (at(colon))
        hint = str("write '", word, "' instead of ':', and 'end' after the block");
    else if (at(left_brace) || (call && call->arguments.size() == 1 && call->arguments[0]->kind == ExprKind::table))
        hint = str("a block stands between '", word, "' and 'end', not in braces");
    else if (at(then_) || at(do_))
        hint = str("write '", word, "' here instead of '", spelling(token_.kind), "'");
    else if (!at(eof))
        hint = hint_for_slip(chunk_.source(), previous_, token_.span);
    if (hint.empty()) hint = str("put '", word, "' between the condition and the block");
    fail_expected(kind, std::move(hint));
}

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
                fail("syntax error", {}, "only a variable or a field can be assigned to");
        }
        scope_.assign(*target, target->span);
        targets.add(target);
        if (!accept(comma)) break;
    }
    node->targets = targets.keep(chunk_);
    expect(assign);
    node->values = parse_expression_items();
    name_functions(node->values, node->targets, doc);
    node->span = since(begin);
    return node;
}

void Parser::fail_statement(const Expr& expr) {
    std::string hint = hint_for_slip(chunk_.source(), previous_, token_.span);
    if (const auto* global = expr.get_if<GlobalName>(); global && previous_.end == expr.span.end) {
        std::string bare = hint_for_bare_name(global->name, token_.kind);
        if (!bare.empty()) hint = std::move(bare);
    }
    if (hint.empty()) hint = "a statement is a call or an assignment: this expression does nothing";
    fail("syntax error", {}, std::move(hint));
}

}  // namespace lunaria::lua
