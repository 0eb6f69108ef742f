// The IR of Lua functions means what Lua means: programs are run by Lua and, lowered, by a small interpreter of the IR.
#include "jit/lower/lower.h"

#include <gtest/gtest.h>

#include <lua.hpp>

#include "core/ir/printer.h"
#include "core/ir/verifier.h"
#include "jit/frontend/parser.h"
#include "jit/language.h"

namespace lunaria::lower {
namespace {

// A Lua value kept in the registry.
struct Ref final : Object {
    lua_State* L;
    int ref;
    explicit Ref(lua_State* l) : L(l), ref(luaL_ref(l, LUA_REGISTRYINDEX)) {}
    ~Ref() override { luaL_unref(L, LUA_REGISTRYINDEX, ref); }
};
struct Cell final : Object {
    Value value;
};
struct Closure final : Object {
    const ir::Graph* graph = nullptr;
    std::vector<Value> captures;
};

class Machine {
  public:
    Machine() : L(luaL_newstate()) {
        luaL_openlibs(L);
        lua_pushlightuserdata(L, this);
        lua_setfield(L, LUA_REGISTRYINDEX, "machine");
    }
    ~Machine() {
        results_.clear();
        // A local function that calls itself captures the cell that holds it.
        for (const Value& cell : cells_) static_cast<Cell*>(cell.object())->value = {};
        cells_.clear();
        lua_close(L);
    }

    // What the chunk's main function gives, as text; an error's message when it fails.
    std::string by_lua(const std::string& text) {
        lua_settop(L, 0);
        if (luaL_loadbuffer(L, text.data(), text.size(), "=test")) return "load: " + std::string(lua_tostring(L, -1));
        if (lua_pcall(L, 0, LUA_MULTRET, 0)) return error_text();
        return describe_stack(1);
    }
    std::string by_ir(const std::string& text) {
        auto chunk = lua::parse(text, "test");
        auto graph = lower(*chunk, chunk->main());
        ir::verify(*graph);
        graphs_.push_back(std::move(graph));
        lua_settop(L, 0);
        lua_pushcfunction(L, [](lua_State* l) {
            Machine& m = of(l);
            lua_rawgeti(l, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
            Value environment = Value::adopt(new Ref(l));
            return m.push_results(m.run(*m.graphs_.back(), {environment}, Value()));
        });
        if (lua_pcall(L, 0, LUA_MULTRET, 0)) return error_text();
        return describe_stack(1);
    }

  private:
    static Machine& of(lua_State* l) {
        lua_getfield(l, LUA_REGISTRYINDEX, "machine");
        auto* m = static_cast<Machine*>(lua_touserdata(l, -1));
        lua_pop(l, 1);
        return *m;
    }
    // Messages name variables and lines, which the small interpreter does not know.
    std::string error_text() { return "error"; }
    std::string describe_stack(int from) {
        std::string text;
        for (int i = from, n = lua_gettop(L); i <= n; ++i) {
            text += (i > from ? ", " : "") + std::string(lua_isfunction(L, i) || lua_istable(L, i)
                                                             ? luaL_typename(L, i)
                                                             : luaL_tolstring(L, i, nullptr));
            if (lua_type(L, i) == LUA_TNUMBER) text += lua_isinteger(L, i) ? "i" : "f";
        }
        return text;
    }
    void push(const Value& v) {
        luaL_checkstack(L, 20, "too deep");
        switch (v.kind()) {
            case Value::Kind::nil:
                return lua_pushnil(L);
            case Value::Kind::boolean:
                return lua_pushboolean(L, v.boolean());
            case Value::Kind::integer:
                return lua_pushinteger(L, v.integer());
            case Value::Kind::number:
                return lua_pushnumber(L, v.number());
            case Value::Kind::string:
                lua_pushlstring(L, v.string().data(), v.string().size());
                return;
            default:
                break;
        }
        if (auto* ref = dynamic_cast<Ref*>(v.object())) {
            lua_rawgeti(L, LUA_REGISTRYINDEX, ref->ref);
            return;
        }
        // A closure of ours as a Lua function; kept alive by the machine.
        results_.push_back(v);
        lua_pushlightuserdata(L, v.object());
        lua_pushcclosure(L, call_closure, 1);
    }
    static int call_closure(lua_State* l) {
        Machine& m = of(l);
        auto* closure = static_cast<Closure*>(lua_touserdata(l, lua_upvalueindex(1)));
        std::vector<Value> args;
        for (int i = 1, n = lua_gettop(l); i <= n; ++i) {
            lua_pushvalue(l, i);
            args.push_back(m.pop());
        }
        return m.push_results(m.call(*closure, args));
    }
    Value pop() {
        Value v;
        switch (lua_type(L, -1)) {
            case LUA_TNIL:
                break;
            case LUA_TBOOLEAN:
                v = Value(lua_toboolean(L, -1) != 0);
                break;
            case LUA_TNUMBER:
                v = lua_isinteger(L, -1) ? Value(int64_t{lua_tointeger(L, -1)}) : Value(double{lua_tonumber(L, -1)});
                break;
            default:
                return Value::adopt(new Ref(L));
        }
        lua_pop(L, 1);
        return v;
    }
    int push_results(const Value& list) {
        lua_settop(L, 0);
        for (const Value& v : list.items()) push(v);
        return lua_gettop(L);
    }
    using Registers = std::unordered_map<const ir::Node*, Value>;
    static Value get(const Registers& r, const Value& v) {
        if (v.is_node()) return r.at(v.node());
        if (!v.is_list()) return v;
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(get(r, item));
        return Value::list(std::move(items));
    }
    Value call(const Closure& closure, const std::vector<Value>& given) {
        std::vector<Value> args = closure.captures;
        const auto& parameters = closure.graph->parameters();
        bool variadic = !parameters.empty() && parameters.back()->name == "...";
        size_t plain = parameters.size() - closure.captures.size() - variadic;
        for (size_t i = 0; i < plain; ++i) args.push_back(i < given.size() ? given[i] : Value());
        if (variadic) {
            std::vector<Value> rest;
            for (size_t i = plain; i < given.size(); ++i) rest.push_back(given[i]);
            args.push_back(Value::list(std::move(rest)));
        }
        Closure* self = const_cast<Closure*>(&closure);
        self->refs.fetch_add(1);
        return run(*closure.graph, std::move(args), Value::adopt(self));
    }
    Value run(const ir::Graph& start, std::vector<Value> args, Value self) {
        const ir::Graph* graph = &start;
        // A main chunk is variadic and captures _ENV.
        if (args.size() < graph->parameters().size()) args.push_back(Value::list({}));
        while (true) {
            Registers r;
            EXPECT_EQ(graph->parameters().size(), args.size()) << ir::print(*graph);
            for (size_t i = 0; i < args.size(); ++i) r[graph->parameters()[i]] = args[i];
            const ir::Graph* next = nullptr;
            for (const ir::Node* node : graph->body()) {
                if (node->callee) {
                    next = node->callee->function;
                    args = arguments(r, node->args);
                } else if (node->op->name() == "branch") {
                    bool yes = truth(get(r, node->args[0]));
                    next = node->args[yes ? 1 : 3].node()->function;
                    args = arguments(r, node->args[yes ? 2 : 4].items());
                } else if (node->op->name() == "current_function") {
                    r[node] = self;
                } else if (node->op->name() == "closure") {
                    auto* c = new Closure;
                    c->graph = node->args[0].node()->function;
                    c->captures = get(r, node->args[1]).items();
                    r[node] = Value::adopt(c);
                } else {
                    std::vector<Value> operands;
                    for (const Value& v : node->args) operands.push_back(get(r, v));
                    r[node] = execute(node->op->name(), operands);
                }
            }
            if (!next) return get(r, graph->result);
            graph = next;
        }
    }
    static std::vector<Value> arguments(const Registers& r, const std::vector<Value>& from) {
        std::vector<Value> list;
        for (const Value& v : from) list.push_back(get(r, v));
        return list;
    }
    static bool truth(const Value& v) { return !v.is_nil() && !(v.kind() == Value::Kind::boolean && !v.boolean()); }

    Value execute(std::string_view name, const std::vector<Value>& a) {
        constexpr std::pair<std::string_view, int> kArithmetic[] = {
            {"add", LUA_OPADD},    {"sub", LUA_OPSUB},      {"mul", LUA_OPMUL},        {"mod", LUA_OPMOD},
            {"pow", LUA_OPPOW},    {"div", LUA_OPDIV},      {"floor_div", LUA_OPIDIV}, {"bit_and", LUA_OPBAND},
            {"bit_or", LUA_OPBOR}, {"bit_xor", LUA_OPBXOR}, {"shift_left", LUA_OPSHL}, {"shift_right", LUA_OPSHR},
            {"minus", LUA_OPUNM},  {"bit_not", LUA_OPBNOT}};
        constexpr std::pair<std::string_view, int> kComparison[] = {
            {"equal", LUA_OPEQ}, {"less", LUA_OPLT}, {"less_equal", LUA_OPLE}};
        for (auto [op, code] : kArithmetic)
            if (op == name) {
                for (const Value& v : a) push(v);
                lua_arith(L, code);
                return pop();
            }
        for (auto [op, code] : kComparison)
            if (op == name) {
                push(a[0]);
                push(a[1]);
                bool yes = lua_compare(L, -2, -1, code);
                lua_pop(L, 2);
                return Value(yes);
            }
        return execute_other(name, a);
    }
    Value execute_other(std::string_view name, const std::vector<Value>& a) {
        if (name == "not") return Value(!truth(a[0]));
        if (name == "length") {
            push(a[0]);
            lua_len(L, -1);
            lua_remove(L, -2);
            return pop();
        }
        if (name == "concat") {
            push(a[0]);
            push(a[1]);
            lua_concat(L, 2);
            return pop();
        }
        if (name == "index") {
            push(a[0]);
            push(a[1]);
            lua_gettable(L, -2);
            lua_remove(L, -2);
            return pop();
        }
        if (name == "set_index") {
            for (const Value& v : a) push(v);
            lua_settable(L, -3);
            lua_pop(L, 1);
            return {};
        }
        if (name == "table") {
            lua_newtable(L);
            for (size_t i = 0; i < a[0].items().size(); ++i) {
                push(a[0].items()[i]);
                push(a[1].items()[i]);
                lua_settable(L, -3);
            }
            lua_Integer last = a[2].integer();
            if (a[3].is_list())
                for (const Value& v : a[3].items()) {
                    push(v);
                    lua_seti(L, -2, ++last);
                }
            return pop();
        }
        if (name == "call") {
            int base = lua_gettop(L);
            push(a[0]);
            for (const Value& v : a[1].items()) push(v);
            lua_call(L, static_cast<int>(a[1].items().size()), LUA_MULTRET);
            std::vector<Value> results;
            while (lua_gettop(L) > base) results.insert(results.begin(), pop());
            return Value::list(std::move(results));
        }
        if (name == "spread") {
            std::vector<Value> all = a[0].items();
            if (a[1].is_list()) all.insert(all.end(), a[1].items().begin(), a[1].items().end());
            return Value::list(std::move(all));
        }
        if (name == "result") {
            auto i = static_cast<size_t>(a[1].integer());
            return i < a[0].items().size() ? a[0].items()[i] : Value();
        }
        if (name == "cell") {
            auto* cell = new Cell;
            cell->value = a[0];
            cells_.push_back(Value::adopt(cell));
            return cells_.back();
        }
        if (name == "cell_get") return static_cast<Cell*>(a[0].object())->value;
        if (name == "cell_set") {
            static_cast<Cell*>(a[0].object())->value = a[1];
            return {};
        }
        if (name == "guard") return {};
        if (name == "to_close") {
            if (truth(a[0])) closing_.push_back(a[0]);
            return {};
        }
        if (name == "closing") {
            push(closing_.back());
            closing_.pop_back();
            luaL_getmetafield(L, -1, "__close");
            lua_remove(L, -2);
            return pop();
        }
        if (name == "for_prepare") return for_prepare(a);
        if (name == "for_count") return a[0].integer() < 0 ? a[0] : Value(a[0].integer() - 1);
        if (name == "for_more") {
            if (a[3].integer() >= 0) return Value(a[3].integer() > 0);
            return Value(a[2].number() > 0 ? a[0].number() <= a[1].number() : a[0].number() >= a[1].number());
        }
        throw state_error("test", str("no primitive ", name));
    }
    Value for_prepare(const std::vector<Value>& a) {
        for (const Value& v : a)
            if (!v.is_number()) luaL_error(L, "'for' value must be a number");
        if (a[2].number() == 0) luaL_error(L, "'for' step is zero");
        bool integers = a[0].kind() == Value::Kind::integer && a[2].kind() == Value::Kind::integer;
        if (!integers)
            return Value::list({Value(a[0].number()), Value(a[1].number()), Value(a[2].number()), Value(-1)});
        auto span = static_cast<int64_t>(a[2].integer() > 0 ? std::floor(a[1].number()) : std::ceil(a[1].number()));
        if (a[1].kind() == Value::Kind::integer) span = a[1].integer();
        int64_t rounds = (span - a[0].integer()) / a[2].integer() + 1;
        if (a[2].integer() > 0 ? span < a[0].integer() : span > a[0].integer()) rounds = 0;
        return Value::list({a[0], a[1], a[2], Value(rounds)});
    }

    lua_State* L;
    std::vector<std::unique_ptr<ir::Graph>> graphs_;
    std::vector<Value> closing_;
    std::vector<Value> results_;
    std::vector<Value> cells_;
};

class Agrees : public ::testing::TestWithParam<const char*> {};

TEST_P(Agrees, with_lua) {
    Machine machine;
    std::string want = machine.by_lua(GetParam());
    EXPECT_EQ(machine.by_ir(GetParam()), want) << GetParam();
}

INSTANTIATE_TEST_SUITE_P(
    Programs, Agrees,
    ::testing::Values(
        "return", "return 1, 2.0, 'three', nil, true", "return 1 + 2 * 3 ^ 2 // 4 % 5 - -6",
        "return 7 & 3 | 8 ~ 1, 1 << 4 >> 2, ~0", "return 'a' .. 1 .. 2.5", "return #'abc', not nil, not 0",
        "return 1 < 2, 1 > 2, 1 <= 1, 1 >= 2, 1 == 1.0, 1 ~= 1", "local a, b, c = 1, 2 return c, b, a",
        "local a <const> = 5; return a + a", "local function f(...) return ... end return f(1, 2), f(3, 4)",
        "local function f(...) return select('#', ...) end return f(nil, nil)",
        "local function f(a, ...) local b, c = ... return a, b, c end return f(1, 2)",
        "return (function(...) return (...) end)(4, 5)",
        "local t = {1, 2, x = 3, [10] = 4, (function() return 5, 6 end)()} return #t, t.x, t[10], t[4]",
        "local t = {} t.a, t.b = 1, 2 t['c'] = t.a + t.b return t.c",
        "local i, t = 1, {} i, t[i] = i + 1, 20 return i, t[1], t[2]", "local a, b = 1, 2 a, b = b, a return a, b",
        "local x = nil and 1 or 2 return x, false or nil, 1 and 2, nil and error('no')",
        "local function f(x) if x > 0 then return 'plus' elseif x < 0 then return 'minus' else return 'zero' end end "
        "return f(1), f(-1), f(0)",
        "local s = 0 for i = 1, 10 do s = s + i end return s",
        "local s = 0 for i = 10, 1, -3 do s = s * 10 + i end return s",
        "local s = 0 for x = 0.5, 2 do s = s + x end return s", "for i = 1, 0 do return 'never' end return 'empty'",
        "local n = 0 for i = 1, 10 do if i % 2 == 0 then goto continue end n = n + i ::continue:: end return n",
        "local i = 0 while true do i = i + 1 if i == 5 then break end end return i",
        "local i = 0 repeat local j = i i = i + 1 until j == 3 return i",
        "local s = 0 for k, v in pairs({a = 1, b = 2, c = 3}) do s = s + v end return s",
        "local s = '' for i, v in ipairs({'x', 'y', 'z'}) do s = s .. i .. v end return s",
        "local fs = {} for i = 1, 3 do fs[i] = function() i = i + 1 return i end end return fs[1](), fs[1](), fs[2]()",
        "local c = 0 local function up() c = c + 1 return c end up() up() return c, up()",
        "local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end return fib(15)",
        "local even, odd function even(n) if n == 0 then return true end return odd(n - 1) end function odd(n) if n == "
        "0 then return false end return even(n - 1) end return even(10), odd(7)",
        "local o = {v = 3} function o:get(k) return self.v + k end function o.plain(x) return x end return o:get(4), "
        "o.plain(5)",
        "x_global = 4 local function f() x_global = x_global + 1 end f() return x_global",
        "return pcall(error, 'oops')", "return (pcall(function() local t = nil return t.x end))",
        "return select(2, pcall(function() error({code = 7}) end)).code",
        "local t = setmetatable({}, {__index = function(_, k) return k .. '!' end, __add = function(a, b) return 'sum' "
        "end, __call = function(self, x) return x * 2 end}) return t.foo, t + 1, t(21)",
        "local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return t[1], t[2], t[3]",
        "local a = 1 do local a = 2 a = a + 1 end return a",
        "local n = 0 ::top:: n = n + 1 if n < 4 then goto top end return n",
        "do local k = 0 ::again:: local f = function() return k end k = k + 1 if k < 3 then goto again end return f() "
        "end",
        "local r = {} for i = 1, 3 do for j = 1, 3 do if j == i then goto next_i end r[#r + 1] = i * 10 + j end "
        "::next_i:: end return #r, r[1], r[3]",
        "local function count(...) local n = 0 for _, v in ipairs({...}) do n = n + v end return n end return count(1, "
        "2, 3)",
        "local s = 1 local t = {s, s + 1, s + 2} return table.unpack(t)", "return 1 + nil", "local t = 5 return t.x.y",
        "return {} .. 'x'", "for i = 1, 'x' do end", "for i = 1, 2, 0 do end",
        "local x = 1 local f = function() return x end x = 2 return f()",
        "local x = 1 local f = function() x = x + 1 end f() f() return x",
        "local function outer() local v = 0 return function() v = v + 1 return function() v = v * 2 return v end end "
        "end local g = outer() local h = g() return h(), h()",
        "local a = {1} local b = a b[1] = 2 return a[1]", "return ((1 + 2) * (3 + 4)) // (5 - 3)",
        "local t = {} t[1.0] = 'one' return t[1], math.type(3 // 1.0)",
        "local n = 0 for i = math.maxinteger - 1, math.maxinteger do n = n + 1 end return n",
        "return (2^53 == 2^53 + 1), 1e15, -0.0, 1/0", "while false do end return 'after'",
        "repeat local x = 1 until x == 1 return 'done'", "if nil then return 1 end return 2",
        "local function f() return 1, 2, 3 end local a, b, c, d = 0, f() return a, b, c, d",
        "local function f() end return f(), (f())",
        "local function f() return 1, 2 end return {f(), f()}, #{f(), f()}, #{f(), (f())}",
        "local log = {} local function closer(name) return setmetatable({}, {__close = function() log[#log + 1] = name "
        "end}) end local function f(n) for i = 1, 3 do local a <close> = closer('a' .. i) if i == n then local b "
        "<close> = closer('b') return i, #log end if n == 7 then break end end do local c <close> = nil end return "
        "#log end local r = {f(2)} r[3], r[4] = f(7), f(8) return table.concat(log, ' '), table.concat(r, ' ')",
        "local n = '' local function closer(x) return setmetatable({}, {__close = function() n = n .. x end}) end for "
        "i = 1, 3 do do local a <close> = closer(i) if i == 2 then goto next_i end n = n .. 'b' end ::next_i:: end "
        "repeat local d <close> = closer('r') until #n > 9 for _ in next, {}, nil, closer('f') do end return n",
        "local a = 1 local function set(v) a = v return v end local s = a + set(5) return s, a + set(2) * a, a < "
        "set(9), a .. set(4), -a + set(1), a == set(3)",
        "local t, u, i = {1}, {2}, 1 local v = t local function swap(x) v = u i = 2 return x end v[i] = swap(7) v, i = "
        "t, 1 i, v[i] = 3, swap(8) v, i = t, 1 return u[2], t[1], u[1], v[swap(1)], i",
        "local l = {1, 2, [1] = 3, [3] = 4} return l[1], l[2], l[3]"));

TEST(Lower, long_operator_chains_need_no_deep_recursion) {
    std::string text = "return 0";
    for (int i = 0; i < 20000; ++i) text += " + 1";
    Machine machine;
    EXPECT_EQ(machine.by_ir(text), "20000i");
}

TEST(Lower, loops_become_recursive_graphs_and_nodes_keep_their_lines) {
    auto chunk = lua::parse("local s = 0\nfor i = 1, 3 do\n  s = s + i\nend\nreturn s", "loop.lua");
    auto graph = lower(*chunk, chunk->main());
    std::string text = ir::print(*graph);
    EXPECT_NE(text.find("for_prepare(1, 3, 1)"), std::string::npos) << text;
    EXPECT_NE(text.find("loop.lua:3"), std::string::npos) << text;
    for (auto& block : graph->inner()) EXPECT_TRUE(block->free_variables().empty()) << text;
}

TEST(Lower, a_variable_that_never_changes_costs_no_parameter_of_a_loop) {
    auto chunk = lua::parse("local k, s = 2, 0 for i = 1, 3 do s = s + k end return s", "t");
    std::string text = ir::print(*lower(*chunk, chunk->main()));
    EXPECT_EQ(text.find(" k: "), std::string::npos) << text;
}

}  // namespace
}  // namespace lunaria::lower
