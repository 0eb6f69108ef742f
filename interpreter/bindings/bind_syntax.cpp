// The module lunaria.syntax: the tree of a Lua text as tables, for lunaria check (lua/lunaria/check/). A node is
// { kind =, line =, ... } with the fields of its class in jit/frontend/ast.h; names refer to one table for each local.
#include <algorithm>
#include <map>
#include <vector>

#include "core/base/error.h"
#include "interpreter/bindings/syntax.h"
#include "interpreter/loader/cell.h"
#include "interpreter/protect.h"
#include "interpreter/values/fields.h"
#include "interpreter/values/values.h"
#include "jit/frontend/advice.h"
#include "jit/frontend/parser.h"

namespace lunaria {

namespace {

using lua::Expr;
using lua::Known;
using lua::List;

constexpr std::pair<Known, std::string_view> kKinds[] = {
    {Known::library, "library"}, {Known::operators, "operators"}, {Known::precision, "precision"},
    {Known::maker, "maker"},     {Known::tensor, "tensor"},       {Known::number, "number"}};

std::string_view name_of(Known known) {
    const auto* found = std::ranges::find(kKinds, known, &std::pair<Known, std::string_view>::first);
    return found == std::end(kKinds) ? std::string_view() : found->second;
}

// Pushes the tables of a tree. Every function leaves one value on the stack.
class TreeWriter {
  public:
    TreeWriter(lua_State* L, const lua::Chunk& chunk, const lua::Kinds& kinds) : L(L), chunk_(chunk), kinds_(kinds) {
        lua_newtable(L);
        locals_ = lua_gettop(L);
    }

    void write(const lua::Block* block) {
        if (!block) return lua_pushnil(L);
        write_list(block->statements, [this](const lua::Stat* s) {
            node(s->span);
            lua::dispatch(*s, [this](const auto& one) { fill(one); });
        });
    }

  private:
    void node(const lua::Span& span) {
        luaL_checkstack(L, 12, "the text is nested too deeply");
        lua_createtable(L, 0, 6);
        set_line(span);
    }
    void set_line(const lua::Span& span) {
        lua_pushinteger(L, chunk_.position(span.begin).line);
        lua_setfield(L, -2, "line");
    }
    void set_kind(const char* kind) { set(kind, "kind"); }
    void set(std::string_view text, const char* field) {
        push(L, text);
        lua_setfield(L, -2, field);
    }
    void set_flag(bool value, const char* field) {
        lua_pushboolean(L, value);
        lua_setfield(L, -2, field);
    }
    void set(const Expr* e, const char* field) {
        if (!e) return;
        write(*e);
        lua_setfield(L, -2, field);
    }
    void set(const lua::Block* block, const char* field) {
        write(block);
        lua_setfield(L, -2, field);
    }
    void set(const lua::Local* local, const char* field) {
        write(*local);
        lua_setfield(L, -2, field);
    }
    template <class T, class Write>
    void write_list(List<T> items, Write&& write_item) {
        luaL_checkstack(L, 12, "the text is nested too deeply");
        lua_createtable(L, static_cast<int>(items.size()), 0);
        for (std::size_t i = 0; i < items.size(); ++i) {
            write_item(items[i]);
            lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
        }
    }
    void set(List<const Expr*> list, const char* field) {
        write_list(list, [this](const Expr* e) { write(*e); });
        lua_setfield(L, -2, field);
    }
    void set(List<const lua::Local*> list, const char* field) {
        write_list(list, [this](const lua::Local* local) { write(*local); });
        lua_setfield(L, -2, field);
    }

    void write(const lua::Local& local) {
        if (lua_rawgeti(L, locals_, local.id) == LUA_TTABLE) return;
        lua_pop(L, 1);
        lua_createtable(L, 0, 3);
        set(local.name, "name");
        set_flag(local.assigned, "assigned");
        set_flag(local.kind == lua::LocalKind::parameter || local.kind == lua::LocalKind::self, "is_parameter");
        lua_pushvalue(L, -1);
        lua_rawseti(L, locals_, local.id);
    }

    // The innermost expression of the left spine first, so that its length costs no depth.
    void write(const Expr& outermost) {
        const std::vector<const Expr*> spine = lua::left_spine(outermost);
        for (auto at = spine.rbegin(); at != spine.rend(); ++at) {
            const Expr& e = **at;
            node(e.span);
            const int inner = at == spine.rbegin() ? 0 : -2;
            if (inner) lua_pushvalue(L, inner);
            lua::dispatch(e, [&](const auto& one) { fill(one, inner != 0); });
            if (const std::string_view known = name_of(kinds_.of(e)); !known.empty()) set(known, "known");
            if (inner) lua_remove(L, -2);
        }
    }
    // The left child's table is on top of the node's.
    void take_left(const char* field) { lua_setfield(L, -2, field); }

    void fill(const lua::Nil&, bool) { set_kind("nil"); }
    void fill(const lua::Boolean& e, bool) {
        set_kind("boolean");
        set_flag(e.value, "value");
    }
    void fill(const lua::Integer& e, bool) {
        set_kind("number");
        lua_pushinteger(L, e.value);
        lua_setfield(L, -2, "value");
    }
    void fill(const lua::Number& e, bool) {
        set_kind("number");
        lua_pushnumber(L, e.value);
        lua_setfield(L, -2, "value");
    }
    void fill(const lua::String& e, bool) {
        set_kind("string");
        set(e.value, "value");
    }
    void fill(const lua::Vararg&, bool) { set_kind("vararg"); }
    void fill(const lua::Function& e, bool) {
        set_kind("function");
        set(e.parameters, "parameters");
        set_flag(e.is_vararg, "is_vararg");
        set(e.body, "body");
    }
    void fill(const lua::LocalName& e, bool) { fill_local(e.local); }
    void fill(const lua::UpvalueName& e, bool) { fill_local(e.local); }
    void fill(const lua::ConstantName& e, bool) { fill_local(e.local); }
    void fill_local(const lua::Local* local) {
        set_kind("local");
        set(local, "local");
    }
    void fill(const lua::GlobalName& e, bool) {
        set_kind("global");
        set(e.name, "name");
    }
    void fill(const lua::Index& e, bool) {
        take_left("object");
        set_kind("index");
        set_line(e.key->span);
        set(e.key, "key");
        set_flag(e.dotted, "dotted");
    }
    void fill(const lua::Call& e, bool) {
        take_left("callee");
        set_kind("call");
        set_line(e.open);
        set(e.arguments, "arguments");
    }
    void fill(const lua::MethodCall& e, bool) {
        take_left("object");
        set_kind("method_call");
        set_line(e.name_span);
        set(e.name, "name");
        set(e.arguments, "arguments");
    }
    void fill(const lua::Unary& e, bool) {
        set_kind("unary");
        set(lua::spelling(e.op), "operator");
        set(e.operand, "operand");
    }
    void fill(const lua::Binary& e, bool) {
        take_left("left");
        set_kind("binary");
        set(lua::spelling(e.op), "operator");
        set(e.right, "right");
    }
    void fill(const lua::Logical& e, bool) {
        take_left("left");
        set_kind("logical");
        set(e.right, "right");
    }
    void fill(const lua::Table& e, bool) {
        set_kind("table");
        write_list(e.fields, [this](const lua::Field& field) {
            lua_createtable(L, 0, 2);
            set(field.key, "key");
            set(field.value, "value");
        });
        lua_setfield(L, -2, "fields");
    }
    void fill(const lua::Paren& e, bool) {
        set_kind("paren");
        set(e.inner, "inner");
    }

    void fill(const lua::LocalDecl& s) {
        set_kind("declare");
        set(s.locals, "locals");
        set(s.values, "values");
    }
    void fill(const lua::LocalFunction& s) {
        set_kind("local_function");
        set(s.local, "local");
        set(static_cast<const Expr*>(s.function), "function");
    }
    void fill(const lua::FunctionDecl& s) {
        set_kind("define");
        set(s.target, "target");
        set(static_cast<const Expr*>(s.function), "function");
    }
    void fill(const lua::Assign& s) {
        set_kind("assign");
        set(s.targets, "targets");
        set(s.values, "values");
    }
    void fill(const lua::CallStatement& s) {
        set_kind("do_call");
        set(s.call, "call");
    }
    void fill(const lua::Do& s) {
        set_kind("do");
        set(s.body, "body");
    }
    void fill(const lua::While& s) {
        set_kind("while");
        set(s.condition, "condition");
        set(s.body, "body");
    }
    void fill(const lua::Repeat& s) {
        set_kind("repeat");
        set(s.condition, "condition");
        set(s.body, "body");
    }
    void fill(const lua::If& s) {
        set_kind("if");
        write_list(s.clauses, [this](const lua::IfClause& clause) {
            lua_createtable(L, 0, 2);
            set(clause.condition, "condition");
            set(clause.body, "body");
        });
        lua_setfield(L, -2, "clauses");
        set(s.otherwise, "otherwise");
    }
    void fill(const lua::NumericFor& s) {
        set_kind("numeric_for");
        set(s.variable, "variable");
        set(s.start, "start");
        set(s.limit, "limit");
        set(s.step, "step");
        set(s.body, "body");
    }
    void fill(const lua::GenericFor& s) {
        set_kind("generic_for");
        set(s.variables, "variables");
        set(s.values, "values");
        set(s.body, "body");
    }
    void fill(const lua::Return& s) {
        set_kind("return");
        set(s.values, "values");
    }
    void fill(const lua::Break&) { set_kind("break"); }
    void fill(const lua::Goto&) { set_kind("goto"); }
    void fill(const lua::Label&) { set_kind("label"); }

    lua_State* L;
    const lua::Chunk& chunk_;
    const lua::Kinds& kinds_;
    int locals_;  // the stack index of the table of locals by id
};

// parse(text, name, globals, is_cell): the statements of the text; the kinds of the globals that it assigns to, by
// name; and what is to be said about it: {{line =, message =, hint =}, ...}. Of a text with a syntax error nil and that
// list. globals: the kinds of globals by name, false for one without a value.
int parse(lua_State* L) {
    size_t size = 0;
    const char* bytes = luaL_checklstring(L, 1, &size);
    const std::string name = luaL_checkstring(L, 2);
    luaL_checktype(L, 3, LUA_TTABLE);
    const bool is_cell = lua_toboolean(L, 4);
    lua_settop(L, 3);
    const lua::KnownGlobal global = [L](std::string_view wanted) {
        push(L, wanted);
        lua_rawget(L, 3);
        Known known = lua_isboolean(L, -1) ? Known::nothing : Known::any;
        if (const char* text = lua_isstring(L, -1) ? lua_tostring(L, -1) : nullptr)
            for (const auto& [kind, word] : kKinds)
                if (word == text) known = kind;
        lua_pop(L, 1);
        return known;
    };
    const auto say = [L](uint32_t line, std::string_view message, std::string_view hint) {
        lua_createtable(L, 0, 3);
        lua_pushinteger(L, line);
        lua_setfield(L, -2, "line");
        set_text(L, "message", message);
        if (!hint.empty()) set_text(L, "hint", hint);
        lua_rawseti(L, -2, static_cast<lua_Integer>(lua_rawlen(L, -2)) + 1);
    };
    std::unique_ptr<lua::Chunk> chunk;
    try {
        std::string text(bytes, size);
        if (is_cell) text = prepare_cell(text, name).chunk;
        chunk = lua::parse(std::move(text), name);
    } catch (const lua::SyntaxError& e) {
        lua_pushnil(L);
        lua_newtable(L);
        say(e.line(), e.headline(), e.problem().hint);
        return 2;
    }
    const lua::Kinds kinds(*chunk, global);
    TreeWriter writer(L, *chunk, kinds);
    writer.write(chunk->main().body);
    lua_newtable(L);
    for (const auto& [assigned, known] : kinds.globals()) {
        push(L, assigned);
        push(L, name_of(known));
        lua_rawset(L, -3);
    }
    lua_newtable(L);
    for (const lua::Advice& advice : lua::advice_on(*chunk, global)) say(advice.line, advice.text, advice.hint);
    return 3;
}

}  // namespace

int open_syntax(lua_State* L) {
    lua_newtable(L);
    lua_pushcfunction(L, protect<parse>);
    lua_setfield(L, -2, "parse");
    return 1;
}

}  // namespace lunaria
