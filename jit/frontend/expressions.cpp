// Expressions, function bodies and the names of functions.
#include <array>

#include "jit/frontend/grammar.h"

namespace lunaria::lua {

using enum TokenKind;

namespace {

// The binding strengths of an operator on its left and right; a right-associative operator binds its right side less.
struct Strength {
    std::uint8_t left = 0, right = 0;
};

constexpr int kUnaryStrength = 12;

constexpr const char* kFieldIsWritten = "a field is written name = value or [\"name\"] = value";

constexpr std::array<Strength, static_cast<std::size_t>(unknown) + 1> kStrengths = [] {
    std::array<Strength, static_cast<std::size_t>(unknown) + 1> table{};
    const auto set = [&](std::initializer_list<TokenKind> kinds, Strength strength) {
        for (const TokenKind kind : kinds) table[static_cast<std::size_t>(kind)] = strength;
    };
    set({or_}, {1, 1});
    set({and_}, {2, 2});
    set({less, greater, less_equal, greater_equal, equal, not_equal}, {3, 3});
    set({pipe}, {4, 4});
    set({tilde}, {5, 5});
    set({ampersand}, {6, 6});
    set({shift_left, shift_right}, {7, 7});
    set({concat}, {9, 8});
    set({plus, minus}, {10, 10});
    set({star, slash, double_slash, percent}, {11, 11});
    set({caret}, {14, 13});
    return table;
}();

BinaryOp binary_op(TokenKind kind) {
    switch (kind) {
        case plus:
            return BinaryOp::add;
        case minus:
            return BinaryOp::sub;
        case star:
            return BinaryOp::mul;
        case percent:
            return BinaryOp::mod;
        case caret:
            return BinaryOp::pow;
        case slash:
            return BinaryOp::div;
        case double_slash:
            return BinaryOp::floor_div;
        case ampersand:
            return BinaryOp::bit_and;
        case pipe:
            return BinaryOp::bit_or;
        case tilde:
            return BinaryOp::bit_xor;
        case shift_left:
            return BinaryOp::shift_left;
        case shift_right:
            return BinaryOp::shift_right;
        case concat:
            return BinaryOp::concat;
        case equal:
            return BinaryOp::equal;
        case not_equal:
            return BinaryOp::not_equal;
        case less:
            return BinaryOp::less;
        case less_equal:
            return BinaryOp::less_equal;
        case greater:
            return BinaryOp::greater;
        default:
            return BinaryOp::greater_equal;
    }
}

std::optional<UnaryOp> unary_op(TokenKind kind) {
    switch (kind) {
        case minus:
            return UnaryOp::minus;
        case not_:
            return UnaryOp::not_;
        case hash:
            return UnaryOp::length;
        case tilde:
            return UnaryOp::bit_not;
        default:
            return std::nullopt;
    }
}

// The lines of a comment without dashes and without one space after them.
std::string clean_doc(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t end = text.find_first_of("\r\n");
        std::string_view line = text.substr(0, end);
        const std::size_t next = end == std::string_view::npos ? end : text.find_first_not_of(" \t\r\n", end);
        text = next == std::string_view::npos ? std::string_view() : text.substr(next);
        line.remove_prefix(std::min(line.find_first_not_of('-'), line.size()));
        if (line.starts_with(' ')) line.remove_prefix(1);
        const std::size_t last = line.find_last_not_of(" \t");
        if (!out.empty()) out += '\n';
        out += line.substr(0, last == std::string_view::npos ? 0 : last + 1);
    }
    return out;
}

}  // namespace

List<const Expr*> Parser::parse_expression_items() {
    ListBuilder<const Expr*> items(expression_stack_);
    do items.add(parse_expression());
    while (accept(comma));
    return items.keep(chunk_);
}

const Expr* Parser::parse_subexpression(int limit) {
    const Level level(*this);
    const Span begin = token_.span;
    const Expr* left = nullptr;
    if (const auto op = unary_op(token_.kind)) {
        auto* node = make<Unary>(begin);
        node->op = *op;
        advance();
        node->operand = parse_subexpression(kUnaryStrength);
        node->span = since(begin);
        left = node;
    } else {
        left = parse_simple();
    }
    for (;;) {
        const TokenKind kind = token_.kind;
        const Strength strength = kStrengths[static_cast<std::size_t>(kind)];
        if (strength.left <= limit) return left;
        const Span operator_span = token_.span;
        advance();
        const Expr* right = parse_subexpression(strength.right);
        if (kind == and_ || kind == or_) {
            auto* node = make<Logical>(since(begin));
            node->op = kind == and_ ? LogicalOp::and_ : LogicalOp::or_;
            node->left = left;
            node->right = right;
            node->operator_span = operator_span;
            left = node;
        } else {
            auto* node = make<Binary>(since(begin));
            node->op = binary_op(kind);
            node->left = left;
            node->right = right;
            node->operator_span = operator_span;
            left = node;
        }
    }
}

const Expr* Parser::parse_simple() {
    const Span span = token_.span;
    switch (token_.kind) {
        case integer: {
            auto* node = make<Integer>(span);
            node->value = token_.integer;
            advance();
            return node;
        }
        case number: {
            auto* node = make<Number>(span);
            node->value = token_.number;
            advance();
            return node;
        }
        case string: {
            auto* node = make<String>(span);
            node->value = token_.text;
            advance();
            return node;
        }
        case nil_:
            advance();
            return make<Nil>(span);
        case true_:
        case false_: {
            auto* node = make<Boolean>(span);
            node->value = at(true_);
            advance();
            return node;
        }
        case ellipsis:
            if (!scope_.function().is_vararg)
                fail_meaning(span, "cannot use '...' outside a vararg function",
                             "declare the function with '...' as its last parameter; an inner function has its own");
            advance();
            return make<Vararg>(span);
        case left_brace:
            return parse_table();
        case function_:
            open(function_);
            if (at(name)) fail_expected(left_paren, "a function inside an expression has no name: 'function(…) … end'");
            return parse_function_body(span, token_.span.line, false);
        default:
            return parse_suffixed();
    }
}

const Expr* Parser::parse_primary() {
    const Span span = token_.span;
    if (at(name)) {
        Name* name = token_.name;
        advance();
        return scope_.resolve(name, span);
    }
    if (at(left_paren)) {
        auto* node = make<Paren>(span);
        open(left_paren);
        node->inner = parse_expression();
        expect_close(right_paren);
        node->span = since(span);
        return node;
    }
    if (at(slash) || at(double_slash)) fail("unexpected symbol", {}, "comments begin with -- in Lua");
    if (at(hash)) fail("unexpected symbol", {}, "comments begin with -- in Lua, and #x is the length of x");
    if (at(right_paren) || at(right_brace) || at(right_bracket))
        fail("unexpected symbol", {}, open_.empty() ? "there is one too many, or its beginning is missing" : "");
    fail("unexpected symbol", {}, at(eof) ? "an expression is missing at the end" : "");
}

const Expr* Parser::parse_suffixed() {
    const Span begin = token_.span;
    const Expr* expr = parse_primary();
    for (;;) {
        switch (token_.kind) {
            case dot:
                expr = parse_field_suffix(expr);
                break;
            case left_bracket: {
                auto* node = make<Index>(begin);
                open(left_bracket);
                node->object = expr;
                node->key = parse_expression();
                expect_close(right_bracket);
                node->span = since(begin);
                expr = node;
                break;
            }
            case colon: {
                auto* node = make<MethodCall>(begin);
                advance();
                node->object = expr;
                node->name_span = token_.span;
                if (!at(name) && !open_.empty() && open_.back().kind == left_brace && token_.kind > while_)
                    fail_expected(name, kFieldIsWritten);
                node->name = expect_name()->text;
                if (!at(left_paren) && !at(string) && !at(left_brace))
                    fail("function arguments expected", "'('",
                         "':' calls a method, as in x:sum(); a field is read with '.'");
                node->arguments = parse_arguments(node->open);
                node->span = since(begin);
                expr = node;
                break;
            }
            case left_paren:
            case string:
            case left_brace: {
                auto* node = make<Call>(begin);
                node->callee = expr;
                node->arguments = parse_arguments(node->open);
                node->span = since(begin);
                expr = node;
                break;
            }
            default:
                return expr;
        }
    }
}

// `.name` or, in the name of a function statement, `:name`.
const Expr* Parser::parse_field_suffix(const Expr* object) {
    auto* node = make<Index>(object->span);
    advance();
    const Span span = token_.span;
    node->object = object;
    node->key = make_key(expect_name(), span);
    node->dotted = true;
    node->span = since(object->span);
    return node;
}

const Expr* Parser::make_key(Name* name, const Span& span) {
    auto* key = make<String>(span);
    key->value = name->text;
    return key;
}

List<const Expr*> Parser::parse_arguments(Span& open_span) {
    open_span = token_.span;
    if (!at(left_paren)) {
        // A single string or table without parentheses.
        const Expr* only = parse_simple();
        return chunk_.keep(&only, 1);
    }
    open(left_paren);
    List<const Expr*> arguments;
    if (!at(right_paren)) arguments = parse_expression_items();
    if (at(assign)) {
        const std::string slip = hint_for_slip(chunk_.source(), previous_, token_.span);
        fail_expected(right_paren, slip.empty() ? "named arguments go into a table: f{name = value}" : slip);
    }
    if (at(name) || at(string) || at(integer) || at(number) || at(function_)) {
        std::string slip = hint_for_slip(chunk_.source(), previous_, token_.span);
        if (slip.starts_with("the text ends")) fail_expected(right_paren, std::move(slip));
        fail_expected(right_paren, hint_for_items("separate the arguments with commas"));
    }
    expect_close(right_paren);
    return arguments;
}

const Expr* Parser::parse_table() {
    auto* node = make<Table>(token_.span);
    open(left_brace);
    ListBuilder<Field> fields(field_stack_);
    while (!at(right_brace)) {
        fields.add(parse_field());
        if (!accept(comma) && !accept(semicolon)) break;
    }
    if (at(colon)) fail_expected(right_brace, kFieldIsWritten);
    if (at(name) || at(string) || at(integer) || at(number) || at(function_) || at(left_brace))
        fail_expected(right_brace, hint_for_items("separate the fields with commas"));
    expect_close(right_brace);
    node->fields = fields.keep(chunk_);
    node->span = since(node->span);
    return node;
}

Field Parser::parse_field() {
    Field field;
    const Span begin = token_.span;
    const Doc doc{token_.doc_begin, token_.doc_end};
    if (at(left_bracket)) {
        open(left_bracket);
        field.kind = FieldKind::keyed;
        field.key = parse_expression();
        expect_close(right_bracket);
        expect(assign);
    } else if (at(name)) {
        ahead_ = lexer_.next();
        has_ahead_ = true;
        if (ahead_.kind == assign) {
            field.kind = FieldKind::named;
            field.key = make_key(token_.name, begin);
            advance();
            advance();
        }
    }
    field.value = parse_expression();
    if (const auto* key = field.key ? field.key->get_if<String>() : nullptr)
        name_function(field.value, key->value, doc);
    field.span = since(begin);
    return field;
}

// `begin` is the span of the statement's or expression's first token; 'function' and the name have been read.
Function* Parser::parse_function_body(const Span& begin, std::uint32_t first_line, bool is_method) {
    auto* function = make<Function>(begin);
    function->id = static_cast<std::uint32_t>(functions_.size());
    function->first_line = first_line;
    function->is_method = is_method;
    functions_.push_back(function);
    scope_.open_function(function);

    ListBuilder<Local*> locals(local_stack_);
    ListBuilder<Name*> names(name_stack_);
    const std::size_t first_local = local_stack_.size(), first_name = name_stack_.size();
    const auto declare = [&](Name* name, const Span& span, LocalKind kind) {
        locals.add(scope_.declare(name, span, kind));
        names.add(name);
    };
    if (is_method) declare(lexer_.intern("self"), token_.span, LocalKind::self);
    expect(left_paren);
    if (!at(right_paren)) {
        do {
            const Span span = token_.span;
            if (accept(ellipsis)) {
                function->is_vararg = true;
                break;
            }
            if (!at(name)) fail("<name> or '...' expected", "<name> or '...'");
            declare(expect_name(), span, LocalKind::parameter);
        } while (accept(comma));
        if (at(assign)) fail_expected(right_paren, "Lua has no default arguments: write 'x = x or value' in the body");
        if (at(colon)) fail_expected(right_paren, "Lua has no types: leave the annotation out");
    }
    expect(right_paren);
    if (at(left_brace) || at(colon))
        fail("unexpected symbol", {}, "a function's body stands between its parameters and 'end'");
    for (std::size_t i = 0; i < locals.size(); ++i)
        scope_.activate(local_stack_[first_local + i], name_stack_[first_name + i]);
    const std::vector<const Local*> kept(local_stack_.begin() + static_cast<std::ptrdiff_t>(first_local),
                                         local_stack_.end());
    function->parameters = chunk_.keep(kept.data(), kept.size());

    function->body = parse_block();
    function->last_line = token_.span.line;
    expect_close(end_);
    scope_.close_function();
    function->span = since(begin);
    return function;
}

void Parser::document(Function* function, const Doc& doc) {
    if (doc.begin == doc.end) return;
    const std::string_view source = chunk_.source();
    function->doc = chunk_.keep(std::string_view(clean_doc(source.substr(doc.begin, doc.end - doc.begin))));
}

void Parser::name_function(const Expr* value, std::string_view name, const Doc& doc) {
    const auto* found = value->get_if<Function>();
    if (!found || !found->name.empty()) return;
    Function* function = functions_[found->id];
    function->name = name;
    document(function, doc);
}

// Names the functions among the values of an assignment after their targets.
void Parser::name_functions(List<const Expr*> values, List<const Expr*> targets, const Doc& doc) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i]->kind != ExprKind::function) continue;
        const std::string path = i < targets.size() ? path_of(*targets[i]) : std::string();
        name_function(values[i], path.empty() ? path : chunk_.keep(std::string_view(path)), doc);
    }
}

std::string Parser::path_of(const Expr& target) const {
    const auto spine = left_spine(target);
    std::string path;
    for (std::size_t i = spine.size(); i-- > 0;) {
        const Expr& e = *spine[i];
        if (const auto* index = e.get_if<Index>()) {
            const auto* key = index->key->get_if<String>();
            path += key && index->dotted ? str(".", key->value) : std::string("[...]");
        } else if (e.kind == ExprKind::local || e.kind == ExprKind::upvalue || e.kind == ExprKind::global) {
            path += chunk_.text(e.span);
        } else {
            path += "(...)";
        }
    }
    return path;
}

}  // namespace lunaria::lua
