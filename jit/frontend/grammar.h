// The recursive-descent parser behind parser.h: entry and failures in parser.cpp, the rest in statements.cpp and
// expressions.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jit/frontend/ast.h"
#include "jit/frontend/lexer.h"
#include "jit/frontend/parser.h"
#include "jit/frontend/scope.h"

namespace lunaria::lua {

class Parser {
  public:
    explicit Parser(Chunk& chunk);

    void parse_chunk(TextKind kind);
    void parse_expressions();

  private:
    // A construct that is still to be closed.
    struct Opening {
        TokenKind kind;
        std::uint32_t line;
    };
    struct Doc {
        std::uint32_t begin, end;
    };
    // Counts the nesting of statements and expressions, as stock Lua counts the C levels of its parser.
    struct Level {
        explicit Level(Parser& p) : parser(p) { parser.enter_level(); }
        ~Level() { --parser.level_; }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;
        Parser& parser;
    };
    // A list on a stack that all lists of a kind share; the destructor drops what was added.
    template <class T>
    class ListBuilder {
      public:
        explicit ListBuilder(std::vector<T>& stack) : stack_(stack), begin_(stack.size()) {}
        ~ListBuilder() { stack_.resize(begin_); }
        ListBuilder(const ListBuilder&) = delete;
        ListBuilder& operator=(const ListBuilder&) = delete;
        void add(const T& item) { stack_.push_back(item); }
        List<T> keep(Chunk& chunk) const { return chunk.keep(stack_.data() + begin_, size()); }
        std::size_t size() const { return stack_.size() - begin_; }

      private:
        std::vector<T>& stack_;
        std::size_t begin_;
    };

    void advance();
    void enter_level();
    bool at(TokenKind kind) const { return token_.kind == kind; }
    bool accept(TokenKind kind);
    void expect(TokenKind kind);
    void open(TokenKind kind);
    void expect_close(TokenKind kind);
    Name* expect_name();
    Span since(const Span& begin) const;
    template <class T>
    T* make(const Span& begin) {
        T* node = chunk_.make<T>();
        node->span = begin;
        return node;
    }

    [[noreturn]] void fail(std::string message, std::string expected = {}, std::string hint = {});
    [[noreturn]] void fail_at(const Span& span, std::string message, std::string expected, std::string hint);
    [[noreturn]] void fail_meaning(const Span& span, std::string message, std::string hint);
    std::string hint_for_items(const char* hint) const;
    std::string hint_at_end(TokenKind kind) const;
    std::string hint_for_comma() const;
    std::string hint_for_index() const;
    std::string hint_behind_return() const;
    [[noreturn]] void fail_expected(TokenKind kind, std::string hint = {});
    [[noreturn]] void fail_statement(const Expr& expr);
    void fail_at_end_of_condition(TokenKind kind, const Expr& condition);
    void expect_after_condition(TokenKind kind, const Expr& condition);

    Function* open_main();
    void close_main(Function* main, const Block* body);
    bool at_block_end(bool with_until) const;
    const Block* parse_block();
    const Block* parse_scoped_block(bool is_loop);
    const Stat* parse_statement();
    const Stat* parse_if();
    const Stat* parse_while();
    const Stat* parse_do();
    const Stat* parse_for();
    const Stat* parse_numeric_for(const Span& begin, Name* name, const Span& name_span);
    const Stat* parse_generic_for(const Span& begin, Name* name, const Span& name_span);
    const Stat* parse_repeat();
    const Stat* parse_function_statement();
    const Stat* parse_local();
    const Stat* parse_local_function(const Span& begin);
    Attribute parse_attribute();
    void parse_labels(ListBuilder<const Stat*>& statements);
    const Stat* parse_return();
    const Stat* parse_break();
    const Stat* parse_goto();
    const Stat* parse_expression_statement();

    const Expr* parse_expression() { return parse_subexpression(0); }
    const Expr* parse_subexpression(int limit);
    const Expr* parse_simple();
    const Expr* parse_suffixed();
    const Expr* parse_primary();
    const Expr* parse_table();
    Field parse_field();
    List<const Expr*> parse_expression_items();
    List<const Expr*> parse_arguments(Span& open_span);
    const Expr* parse_field_suffix(const Expr* object);
    const Expr* make_key(Name* name, const Span& span);
    Function* parse_function_body(const Span& begin, std::uint32_t first_line, bool is_method);

    void name_function(const Expr* value, std::string_view name, const Doc& doc);
    void name_functions(List<const Expr*> values, List<const Expr*> targets, const Doc& doc);
    void document(Function* function, const Doc& doc);
    std::string path_of(const Expr& target) const;

    Chunk& chunk_;
    Lexer lexer_;
    Scope scope_;
    Token token_, ahead_;
    bool has_ahead_ = false;
    Span previous_;  // of the token before
    int level_ = 0;
    std::uint32_t else_if_line_ = 0;  // line of an `else if`, which opens one block more than `elseif`
    std::uint32_t return_end_ = 0;    // end of the last return statement
    std::vector<Opening> open_;
    std::vector<Function*> functions_;

    std::vector<const Stat*> statement_stack_;
    std::vector<const Expr*> expression_stack_;
    std::vector<Local*> local_stack_;
    std::vector<Name*> name_stack_;
    std::vector<Field> field_stack_;
    std::vector<IfClause> clause_stack_;
};

}  // namespace lunaria::lua
