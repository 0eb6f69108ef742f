// The syntax tree of a Lua chunk, with every name resolved.
//
// A Chunk owns the source text and, in an arena, all nodes; nodes are trivially destructible, immutable after the parse
// and live as long as the chunk. Expressions and statements are small class hierarchies with a `kind`: switch over it
// and use `as<Call>()`, or call `dispatch(expr, overloads)`.
//
// Nesting is bounded (kMaxNesting) except along left spines: `a + b + c + …` and `a.b.c…` make left-deep trees of any
// length, as in stock Lua. Code that recurses over a tree must walk those in a loop: see left_child().
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "jit/frontend/token.h"

namespace lunaria::lua {

inline constexpr int kMaxNesting = 200, kMaxLocals = 200, kMaxUpvalues = 255, kMaxJumps = 32767;

template <class T>
using List = std::span<const T>;

struct Function;
struct Block;
struct Label;

// The value of a compile-time constant: nil, boolean, integer, float or string.
using Constant = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string_view>;

enum class LocalKind : std::uint8_t { variable, parameter, self, function, loop, environment };
enum class Attribute : std::uint8_t { none, constant, close };

// The declaration of a local variable.
struct Local {
    std::string_view name;
    Span span;
    const Function* function = nullptr;  // the function that declares it; null for the chunk's _ENV
    std::uint32_t id = 0;                // dense in the chunk, in order of declaration
    LocalKind kind = LocalKind::variable;
    Attribute attribute = Attribute::none;
    bool captured = false;                // is an upvalue of some function
    bool assigned = false;                // is the target of an assignment after its declaration
    bool assigned_after_capture = false;  // its value may change after a closure has captured it
    std::optional<Constant> constant;  // of a `<const>` that stock Lua folds away: it has no storage, is never captured
};

// One entry of a function's upvalue list, in stock Lua's order, so that debug.getupvalue(f, i + 1) is this variable.
struct Upvalue {
    const Local* local = nullptr;
    bool from_parent_local = false;  // captured from the parent's locals, else from the parent's upvalue `parent_index`
    std::uint32_t parent_index = 0;
};

enum class ExprKind : std::uint8_t {
    nil,
    boolean,
    integer,
    number,
    string,
    vararg,
    function,
    local,
    upvalue,
    constant,
    global,
    index,
    call,
    method_call,
    unary,
    binary,
    logical,
    table,
    paren
};

struct Expr {
    ExprKind kind;
    Span span;

    template <class T>
    const T& as() const {
        assert(kind == T::kKind);
        return static_cast<const T&>(*this);
    }
    template <class T>
    const T* get_if() const {
        return kind == T::kKind ? static_cast<const T*>(this) : nullptr;
    }
};

template <ExprKind K>
struct ExprOf : Expr {
    static constexpr ExprKind kKind = K;
    ExprOf() : Expr{K, {}} {}
};

struct Nil : ExprOf<ExprKind::nil> {};
struct Boolean : ExprOf<ExprKind::boolean> {
    bool value = false;
};
struct Integer : ExprOf<ExprKind::integer> {
    std::int64_t value = 0;
};
struct Number : ExprOf<ExprKind::number> {  // a float
    double value = 0;
};
struct String : ExprOf<ExprKind::string> {
    std::string_view value;
};
struct Vararg : ExprOf<ExprKind::vararg> {};

// A local of the function in which it is used.
struct LocalName : ExprOf<ExprKind::local> {
    const Local* local = nullptr;
};
// A local of an enclosing function: upvalue `index` of the function in which it is used.
struct UpvalueName : ExprOf<ExprKind::upvalue> {
    const Local* local = nullptr;
    std::uint32_t index = 0;
};
// A compile-time constant of this or an enclosing function: local->constant holds the value.
struct ConstantName : ExprOf<ExprKind::constant> {
    const Local* local = nullptr;
};
// The field `name` of _ENV, which is itself a local, an upvalue or (oddly) a constant.
struct GlobalName : ExprOf<ExprKind::global> {
    std::string_view name;
    const Expr* environment = nullptr;
};

struct Index : ExprOf<ExprKind::index> {
    const Expr* object = nullptr;
    const Expr* key = nullptr;  // a String when dotted
    bool dotted = false;
};
struct Call : ExprOf<ExprKind::call> {
    const Expr* callee = nullptr;
    List<const Expr*> arguments;
    Span open;  // the token that begins the arguments
};
struct MethodCall : ExprOf<ExprKind::method_call> {
    const Expr* object = nullptr;
    std::string_view name;
    Span name_span;
    List<const Expr*> arguments;
    Span open;
};

enum class UnaryOp : std::uint8_t { minus, not_, length, bit_not };
enum class BinaryOp : std::uint8_t {
    add,
    sub,
    mul,
    mod,
    pow,
    div,
    floor_div,
    bit_and,
    bit_or,
    bit_xor,
    shift_left,
    shift_right,
    concat,
    equal,
    less,
    less_equal,
    not_equal,
    greater,
    greater_equal
};
enum class LogicalOp : std::uint8_t { and_, or_ };

struct Unary : ExprOf<ExprKind::unary> {
    UnaryOp op{};
    const Expr* operand = nullptr;
};
struct Binary : ExprOf<ExprKind::binary> {
    BinaryOp op{};
    const Expr* left = nullptr;
    const Expr* right = nullptr;
    Span operator_span;
};
// `and` and `or`: control flow, the right side may not run.
struct Logical : ExprOf<ExprKind::logical> {
    LogicalOp op{};
    const Expr* left = nullptr;
    const Expr* right = nullptr;
    Span operator_span;
};

enum class FieldKind : std::uint8_t { positional, named, keyed };
struct Field {
    FieldKind kind{};
    const Expr* key = nullptr;  // null when positional, a String when named
    const Expr* value = nullptr;
    Span span;
};
struct Table : ExprOf<ExprKind::table> {
    List<Field> fields;
};
// Parentheses are kept: they cut several results to one.
struct Paren : ExprOf<ExprKind::paren> {
    const Expr* inner = nullptr;
};

struct Function : ExprOf<ExprKind::function> {
    std::uint32_t id = 0;                         // index in Chunk::functions()
    std::string_view name;                        // "f", "a.b:c", a field's name, or empty: for messages only
    std::uint32_t first_line = 0, last_line = 0;  // as lua_Debug's linedefined and lastlinedefined; 0, 0 for main
    const Function* parent = nullptr;             // null for main
    List<const Local*> parameters;                // `self` is the first one of a method
    bool is_vararg = false;
    bool is_method = false;  // declared with a colon
    List<Upvalue> upvalues;
    List<const Function*> functions;  // directly nested ones, in source order
    std::string_view doc;             // the comment directly above, without dashes
    const Block* body = nullptr;
};

enum class StatKind : std::uint8_t {
    local,
    local_function,
    function,
    assign,
    call,
    do_,
    while_,
    repeat,
    if_,
    numeric_for,
    generic_for,
    return_,
    break_,
    goto_,
    label
};

struct Stat {
    StatKind kind;
    Span span;

    template <class T>
    const T& as() const {
        assert(kind == T::kKind);
        return static_cast<const T&>(*this);
    }
    template <class T>
    const T* get_if() const {
        return kind == T::kKind ? static_cast<const T*>(this) : nullptr;
    }
};

template <StatKind K>
struct StatOf : Stat {
    static constexpr StatKind kKind = K;
    StatOf() : Stat{K, {}} {}
};

// Empty statements (`;`) leave no node.
struct Block {
    Span span;
    List<const Stat*> statements;
};

struct LocalDecl : StatOf<StatKind::local> {
    List<const Local*> locals;
    List<const Expr*> values;
};
struct LocalFunction : StatOf<StatKind::local_function> {
    const Local* local = nullptr;
    const Function* function = nullptr;
};
// `function a.b:c() end`: an assignment of the function to the target.
struct FunctionDecl : StatOf<StatKind::function> {
    const Expr* target = nullptr;
    const Function* function = nullptr;
};
struct Assign : StatOf<StatKind::assign> {
    List<const Expr*> targets;
    List<const Expr*> values;
};
struct CallStatement : StatOf<StatKind::call> {
    const Expr* call = nullptr;  // a Call or a MethodCall
};
struct Do : StatOf<StatKind::do_> {
    const Block* body = nullptr;
};
struct While : StatOf<StatKind::while_> {
    const Expr* condition = nullptr;
    const Block* body = nullptr;
};
struct Repeat : StatOf<StatKind::repeat> {
    const Block* body = nullptr;
    const Expr* condition = nullptr;  // sees the locals of the body
};
struct IfClause {
    const Expr* condition = nullptr;
    const Block* body = nullptr;
};
struct If : StatOf<StatKind::if_> {
    List<IfClause> clauses;
    const Block* otherwise = nullptr;
};
struct NumericFor : StatOf<StatKind::numeric_for> {
    const Local* variable = nullptr;
    const Expr* start = nullptr;
    const Expr* limit = nullptr;
    const Expr* step = nullptr;  // null when left out
    const Block* body = nullptr;
};
struct GenericFor : StatOf<StatKind::generic_for> {
    List<const Local*> variables;
    List<const Expr*> values;
    const Block* body = nullptr;
};
struct Return : StatOf<StatKind::return_> {
    List<const Expr*> values;
};
struct Break : StatOf<StatKind::break_> {};
struct Label : StatOf<StatKind::label> {
    std::string_view name;
    bool ends_block = false;  // only labels and semicolons follow: the block's locals are out of scope already
};
struct Goto : StatOf<StatKind::goto_> {
    std::string_view name;
    const Label* target = nullptr;
    bool backward = false;
};

struct Position {
    std::uint32_t line = 0, column = 0;
};

class Chunk {
  public:
    Chunk(std::string source, std::string name);
    Chunk(const Chunk&) = delete;
    Chunk& operator=(const Chunk&) = delete;

    const std::string& source() const { return source_; }
    const std::string& name() const { return name_; }
    const Function& main() const { return *functions_.front(); }
    const Local& environment() const { return *environment_; }
    // All functions, main first, in the order of their opening.
    List<const Function*> functions() const { return functions_; }
    std::uint32_t local_count() const { return local_count_; }

    // True when the text was a list of expressions: main is then one Return. Silent when a `;` followed it.
    bool is_expression() const { return is_expression_; }
    bool is_silent() const { return is_silent_; }

    std::string_view text(const Span& span) const {
        return std::string_view(source_).substr(span.begin, span.end - span.begin);
    }
    // Line and byte column of an offset; the line's text without its end.
    Position position(std::uint32_t offset) const;
    std::string_view line(std::uint32_t number) const;

    // The functions defined at these lines, in source order. Several on the same lines are told apart by parameter
    // count, vararg and the names of the upvalues in order; find_function returns null unless exactly one fits.
    std::vector<const Function*> functions_at(std::uint32_t first_line, std::uint32_t last_line) const;
    std::vector<const Function*> find_functions(std::uint32_t first_line, std::uint32_t last_line,
                                                std::size_t parameter_count, bool is_vararg,
                                                List<std::string_view> upvalue_names) const;
    const Function* find_function(std::uint32_t first_line, std::uint32_t last_line, std::size_t parameter_count,
                                  bool is_vararg, List<std::string_view> upvalue_names) const;

    // For the parser: nodes and copies of lists and strings that live as long as the chunk.
    template <class T>
    T* make() {
        static_assert(std::is_trivially_destructible_v<T>);
        return new (arena_.allocate(sizeof(T), alignof(T))) T();
    }
    template <class T>
    List<T> keep(const T* items, std::size_t count) {
        static_assert(std::is_trivially_copyable_v<T>);
        if (count == 0) return {};
        T* copy = static_cast<T*>(arena_.allocate(count * sizeof(T), alignof(T)));
        std::uninitialized_copy_n(items, count, copy);
        return {copy, count};
    }
    std::string_view keep(std::string_view text) {
        const List<char> copy = keep(text.data(), text.size());
        return {copy.data(), copy.size()};
    }

  private:
    friend class Parser;

    std::string source_, name_;
    std::pmr::monotonic_buffer_resource arena_{4096};
    std::vector<std::uint32_t> line_starts_;
    std::vector<const Function*> functions_;
    const Local* environment_ = nullptr;
    std::uint32_t local_count_ = 0;
    bool is_expression_ = false, is_silent_ = false;
};

// The subexpression in which a left-deep tree continues, or null: the left operand, the object or the callee.
const Expr* left_child(const Expr& expr);
// The expression and its left children, outermost first.
std::vector<const Expr*> left_spine(const Expr& expr);

std::string_view spelling(UnaryOp op);
std::string_view spelling(BinaryOp op);
std::string_view spelling(LogicalOp op);

template <class... Visitors>
struct Overloads : Visitors... {
    using Visitors::operator()...;
};
template <class... Visitors>
Overloads(Visitors...) -> Overloads<Visitors...>;

// Calls the visitor with the expression or statement as its own class.
template <class Visitor>
decltype(auto) dispatch(const Expr& e, Visitor&& visit) {
    switch (e.kind) {
        case ExprKind::nil:
            return visit(e.as<Nil>());
        case ExprKind::boolean:
            return visit(e.as<Boolean>());
        case ExprKind::integer:
            return visit(e.as<Integer>());
        case ExprKind::number:
            return visit(e.as<Number>());
        case ExprKind::string:
            return visit(e.as<String>());
        case ExprKind::vararg:
            return visit(e.as<Vararg>());
        case ExprKind::function:
            return visit(e.as<Function>());
        case ExprKind::local:
            return visit(e.as<LocalName>());
        case ExprKind::upvalue:
            return visit(e.as<UpvalueName>());
        case ExprKind::constant:
            return visit(e.as<ConstantName>());
        case ExprKind::global:
            return visit(e.as<GlobalName>());
        case ExprKind::index:
            return visit(e.as<Index>());
        case ExprKind::call:
            return visit(e.as<Call>());
        case ExprKind::method_call:
            return visit(e.as<MethodCall>());
        case ExprKind::unary:
            return visit(e.as<Unary>());
        case ExprKind::binary:
            return visit(e.as<Binary>());
        case ExprKind::logical:
            return visit(e.as<Logical>());
        case ExprKind::table:
            return visit(e.as<Table>());
        case ExprKind::paren:
            break;
    }
    return visit(e.as<Paren>());
}

template <class Visitor>
decltype(auto) dispatch(const Stat& s, Visitor&& visit) {
    switch (s.kind) {
        case StatKind::local:
            return visit(s.as<LocalDecl>());
        case StatKind::local_function:
            return visit(s.as<LocalFunction>());
        case StatKind::function:
            return visit(s.as<FunctionDecl>());
        case StatKind::assign:
            return visit(s.as<Assign>());
        case StatKind::call:
            return visit(s.as<CallStatement>());
        case StatKind::do_:
            return visit(s.as<Do>());
        case StatKind::while_:
            return visit(s.as<While>());
        case StatKind::repeat:
            return visit(s.as<Repeat>());
        case StatKind::if_:
            return visit(s.as<If>());
        case StatKind::numeric_for:
            return visit(s.as<NumericFor>());
        case StatKind::generic_for:
            return visit(s.as<GenericFor>());
        case StatKind::return_:
            return visit(s.as<Return>());
        case StatKind::break_:
            return visit(s.as<Break>());
        case StatKind::goto_:
            return visit(s.as<Goto>());
        case StatKind::label:
            break;
    }
    return visit(s.as<Label>());
}

}  // namespace lunaria::lua
