#include "jit/frontend/parser.h"

#include "jit/frontend/grammar.h"

namespace lunaria::lua {

using enum TokenKind;

std::unique_ptr<Chunk> parse(std::string source, std::string name, TextKind kind) {
    auto chunk = std::make_unique<Chunk>(std::move(source), std::move(name));
    Parser(*chunk).parse_chunk(kind);
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

void Parser::parse_chunk(TextKind kind) {
    if (kind == TextKind::file) lexer_.skip_file_header();
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
    if (!at(name)) {
        const TokenKind word = at(assign) && chunk_.text(previous_) == "function" ? function_ : token_.kind;
        fail_expected(name, word <= while_
                                ? str("'", spelling(word), "' is a reserved word: choose another name, or write t[\"",
                                      spelling(word), "\"] for a field")
                                : std::string());
    }
    Name* result = token_.name;
    advance();
    return result;
}

Span Parser::since(const Span& begin) const { return {begin.begin, previous_.end, begin.line, begin.column}; }

void Parser::fail(std::string message, std::string expected, std::string hint) {
    fail_at(token_.span, std::move(message), std::move(expected), std::move(hint));
}

// At another place than the token that cannot stand here.
void Parser::fail_at(const Span& span, std::string message, std::string expected, std::string hint) {
    Problem problem;
    problem.span = span;
    problem.message = std::move(message);
    problem.expected = std::move(expected);
    problem.found = span.begin == span.end ? "<eof>" : quoted_for_message(chunk_.text(span));
    problem.hint = hint.empty() ? hint_for_slip(chunk_.source(), previous_, token_.span) : std::move(hint);
    // A lambda is mistaken for a method's call.
    if (problem.hint.empty() || problem.hint.starts_with("':' calls") || problem.hint.starts_with("separate the")) {
        std::string hint_of_line = hint_for_line(chunk_.source(), token_.span);
        if (!hint_of_line.empty()) problem.hint = std::move(hint_of_line);
    }
    problem.incomplete = at(eof);
    const auto is_header = [](const Opening& o) { return o.kind == if_ || o.kind == for_ || o.kind == while_; };
    const auto header = std::find_if(open_.rbegin(), open_.rend(), is_header);
    if (header != open_.rend()) blame_python_colon(chunk_.source(), header->line, problem);
    std::uint32_t last_line = 0;
    for (const Opening& opening : open_) {
        problem.open_lines += opening.line != last_line;
        last_line = opening.line;
    }
    throw SyntaxError(chunk_.name(), chunk_.source(), std::move(problem));
}

// Reports text that is well formed but has no meaning: more text would not mend it.
void Parser::fail_meaning(const Span& span, std::string message, std::string hint) {
    Problem problem;
    problem.span = span;
    problem.message = std::move(message);
    problem.found = span.begin < span.end ? quoted_for_message(chunk_.text(span)) : "<eof>";
    problem.hint = std::move(hint);
    throw SyntaxError(chunk_.name(), chunk_.source(), std::move(problem));
}

std::string Parser::hint_for_index() const {
    if (at(comma)) return "an index of several axes is a text: x[\"0, 1\"]";
    return at(colon) ? "a slice of a tensor is a text: x[\"0:2\"]; a part of a table is { table.unpack(t, 1, 2) }" : "";
}

// Where the items of a list end with their line, the list is not closed rather than a comma forgotten.
std::string Parser::hint_for_items(const char* hint) const {
    const Opening& opening = open_.back();
    if (token_.span.line == previous_.line || opening.line == token_.span.line) return hint;
    return str("is it closed? the '", spelling(opening.kind), "' stands at line ", opening.line);
}

std::string Parser::hint_behind_return() const {
    if (return_end_ == 0 || return_end_ != previous_.end || at(eof)) return {};
    if (at(if_)) return "the condition comes first: if c then return a end";
    std::string hint = hint_for_line(chunk_.source(), token_.span);
    if (!hint.empty()) return hint;
    return "'return' must be the last statement of its block: is an 'end' missing behind it? 'do return … end' leaves "
           "early";
}

// Where the text ends before a construct is closed.
std::string Parser::hint_at_end(TokenKind kind) const {
    if (!at(eof) || open_.empty()) return {};
    const std::string where = str(spelling(open_.back().kind), "' at line ", open_.back().line);
    return kind == end_ ? str("the block of '", where, " ends with 'end'") : str("is it closed? there is '", where);
}

// What a comma in the place of a closing parenthesis is a slip for.
std::string Parser::hint_for_comma() const {
    const std::string_view before(chunk_.source().data() + previous_.begin, previous_.end - previous_.begin);
    return before == "..." ? "'...' is the last parameter" : "several values are a table: {1, 2}";
}

void Parser::fail_expected(TokenKind kind, std::string hint) {
    const bool is_class = kind == name || kind == eof;
    const std::string expected = is_class ? std::string(spelling(kind)) : str("'", spelling(kind), "'");
    std::string message = expected + " expected";
    const bool closes =
        kind == end_ || kind == until_ || kind == right_paren || kind == right_brace || kind == right_bracket;
    if (closes && !open_.empty() && open_.back().line != token_.span.line)
        message += str(" (to close '", spelling(open_.back().kind), "' at line ", open_.back().line, ")");
    if (hint.empty() && kind == right_bracket) hint = hint_for_index();
    if (hint.empty() && kind == right_paren && at(comma)) hint = hint_for_comma();
    if (hint.empty() && kind == end_ && at(eof) && else_if_line_ != 0)
        hint = str("'else if' at line ", else_if_line_,
                   " opens a second 'if' that needs an 'end' of its own: write 'elseif' in one word");
    const bool ends = kind == end_ || kind == eof || kind == until_;
    if (hint.empty() && ends) hint = hint_behind_return();
    if (hint.empty() && closes) hint = hint_at_end(kind);
    fail(std::move(message), expected, std::move(hint));
}

namespace {

// What opens a block in other languages, behind a condition whose block begins with the word.
std::string hint_for_braces(std::string_view word) {
    return str("a block stands between '", word, "' and 'end', not in braces");
}

}  // namespace

// Where a block in braces stands behind a condition, as in other languages, and Lua read on: reports that place.
void Parser::fail_at_end_of_condition(TokenKind kind, const Expr& condition) {
    const std::string word(spelling(kind)), expected = str("'", word, "'");
    const Expr* last = &condition;
    while (const auto* binary = last->get_if<Binary>()) last = binary->right;
    const auto* call = last->get_if<Call>();
    if (call && call->arguments.size() == 1 && call->arguments[0]->kind == ExprKind::table)
        fail_at(token_.span.line == call->open.line && !at(eof) ? token_.span : call->open, expected + " expected",
                expected, hint_for_braces(word));
    // repeat … while c
    if (open_.size() > 1 && open_[open_.size() - 2].kind == repeat_ && token_.span.line > previous_.line)
        fail_at(previous_, expected + " expected", expected, "the loop ends by a condition: repeat … until not c");
}

// Expects `then` or `do`, the place of the braces and colons of other languages.
void Parser::expect_after_condition(TokenKind kind, const Expr& condition) {
    if (accept(kind)) return;
    const std::string word(spelling(kind));
    std::string hint;
    if (at(assign))
        hint = "'=' assigns a value: equality is written ==";
    else if (at(colon))
        hint = hint_for_colon(word);
    else if (at(left_brace))
        hint = hint_for_braces(word);
    else if (at(else_))
        hint = "Lua has no 'a if c else b': write 'c and a or b', or an if statement";
    else if (at(then_) || at(do_))
        hint = str("write '", word, "' here instead of '", spelling(token_.kind), "'");
    else
        fail_at_end_of_condition(kind, condition);
    if (hint.empty() && !at(eof)) hint = hint_for_slip(chunk_.source(), previous_, token_.span);
    if (hint.empty()) hint = hint_for_line(chunk_.source(), token_.span);
    if (hint.empty()) hint = str("put '", word, "' between the condition and the block");
    fail_expected(kind, std::move(hint));
}

}  // namespace lunaria::lua
