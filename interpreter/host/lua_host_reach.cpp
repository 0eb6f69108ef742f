// The objects that a coroutine of Lua's own can reach: its variables, the upvalues of its functions, and everything
// that these refer to. From the global table only names in the functions' texts count, since every function has that
// table.
#include <cctype>
#include <unordered_set>

#include "interpreter/host/coroutines.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/loader/prologue.h"
#include "interpreter/state.h"
#include "interpreter/values/callables.h"
#include "interpreter/values/lua_reference.h"
#include "interpreter/values/values.h"
#include "jit/frontend/ast.h"

namespace lunaria {

namespace {

// Beyond so many objects, for instance of a large set of data, the rest counts as unrelated: visiting all of them would
// cost more than the coroutine's work.
constexpr size_t kMostObjects = 20000;

class Search {
  public:
    Search(LuaHost& host, lua_State* L, const vm::Context& context, const std::function<bool(const Value&)>& follows)
        : host_(host), L(L), context_(context), follows_(follows) {}

    // Whether the value on top of the stack reaches an active one. Pops it.
    bool run() {
        lua_newtable(L);
        lua_insert(L, -2);
        waiting_ = lua_absindex(L, -2);
        add();
        for (size_t i = 1; i <= seen_.size() && i <= kMostObjects && !found_; ++i) {
            lua_rawgeti(L, waiting_, static_cast<lua_Integer>(i));
            look(lua_gettop(L));
            lua_settop(L, waiting_);
        }
        lua_pop(L, 1);
        return found_;
    }

  private:
    // Notes the value on top of the stack for a later visit, once. Pops it.
    void add() {
        const int type = lua_type(L, -1);
        if (type == LUA_TUSERDATA) {
            // A compiled function refers to its original.
            if (luaL_testudata(L, -1, jit::kMetatable)) {
                lua_getiuservalue(L, -1, jit::kCompiledTarget);
                lua_remove(L, -2);
                return add();
            }
            const Value* v = host_.boxed(L, -1);
            const Tensor* t = v ? nullptr : tensor_at(L, -1);
            found_ |= (v && follows_(*v)) || (t && context_.box(Value(*t)));
        } else if (type == LUA_TTABLE || type == LUA_TFUNCTION || type == LUA_TTHREAD) {
            if (seen_.insert(lua_topointer(L, -1)).second) {
                lua_rawseti(L, waiting_, static_cast<lua_Integer>(seen_.size()));
                return;
            }
        }
        lua_pop(L, 1);
    }

    void look(int index) {
        luaL_checkstack(L, 10, "coroutine");
        if (lua_type(L, index) == LUA_TTABLE)
            look_at_table(index);
        else if (lua_type(L, index) == LUA_TFUNCTION)
            look_at_function(index);
        else
            look_at_thread(lua_tothread(L, index));
    }

    bool is_global_table(int index) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
        const bool same = lua_rawequal(L, -1, index);
        lua_pop(L, 1);
        return same;
    }

    void look_at_table(int index) {
        if (is_global_table(index)) return;
        found_ |= context_.find_identity(lua_topointer(L, index)) != nullptr;
        if (lua_getmetatable(L, index)) add();
        for (lua_pushnil(L); !found_ && lua_next(L, index);) {
            add();
            lua_pushvalue(L, -1);
            add();
        }
    }

    void look_at_function(int index) {
        // Graph mode's entry, which all functions have, knows every compiled function.
        if (is_entry_function(L, index)) return;
        const bool in_lua = !lua_iscfunction(L, index);
        for (int i = 1; lua_getupvalue(L, index, i); ++i) {
            found_ |= in_lua && context_.find_identity(lua_upvalueid(L, index, i)) != nullptr;
            if (in_lua && lua_istable(L, -1) && is_global_table(lua_gettop(L))) look_at_globals(index);
            add();
        }
    }

    // Adds the globals whose names are words of the function's text.
    void look_at_globals(int function) {
        const FunctionSource source = State::of(L).loader().source_of(L, function);
        if (!source.function) return;
        lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
        const int globals = lua_gettop(L);
        const vm::Shadow* shadow = context_.find_identity(lua_topointer(L, globals));
        const std::string_view text = source.chunk->text(source.function->span);
        auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
        for (size_t from = 0; from < text.size();) {
            size_t to = from;
            while (to < text.size() && is_part(text[to])) ++to;
            const std::string_view word = text.substr(from, to - from);
            from = std::max(to, from + 1);
            if (word.empty()) continue;
            found_ |= shadow && shadow->follows(word);
            lua_pushlstring(L, word.data(), word.size());
            lua_rawget(L, globals);
            add();
        }
        lua_settop(L, globals - 1);
    }

    void look_at_thread(lua_State* thread) {
        if (!thread || thread == L || !lua_checkstack(thread, 4)) return;
        auto take = [&] {
            lua_xmove(thread, L, 1);
            add();
        };
        lua_Debug frame;
        for (int level = 0; lua_getstack(thread, level, &frame); ++level) {
            lua_getinfo(thread, "f", &frame);
            take();
            for (int i = 1; lua_getlocal(thread, &frame, i); ++i) take();
            for (int i = -1; lua_getlocal(thread, &frame, i); --i) take();
        }
        // A coroutine that has not begun has its function on the stack.
        if (lua_status(thread) == LUA_OK)
            for (int i = 1, n = lua_gettop(thread); i <= n; ++i) {
                lua_pushvalue(thread, i);
                take();
            }
    }

    LuaHost& host_;
    lua_State* L;
    const vm::Context& context_;
    const std::function<bool(const Value&)>& follows_;
    int waiting_ = 0;  // the table of objects still to be visited, in the order in which they were found
    std::unordered_set<const void*> seen_;
    bool found_ = false;
};

}  // namespace

Value LuaHost::resumed_by(const Value& f, std::span<const Value> args) {
    const lua_CFunction c = c_function(f);
    if (!c) return {};
    luaL_checkstack(L, 4, "coroutine");
    const int base = lua_gettop(L);
    Value thread;
    if (is_coroutine_resume(c)) {
        if (args.empty() || args[0].kind() != Value::Kind::object) return {};
        push(L, args[0]);
        if (lua_isthread(L, -1)) thread = args[0];
    } else {
        // The function from coroutine.wrap has the coroutine.
        push(L, f);
        if (lua_getupvalue(L, -1, 1) && lua_isthread(L, -1)) thread = to_value(L, -1);
    }
    lua_settop(L, base);
    return vm::object_as<LuaReference>(thread) ? thread : Value();
}

bool LuaHost::reaches(const Value& coroutine, const vm::Context& context,
                      const std::function<bool(const Value&)>& follows) {
    luaL_checkstack(L, 10, "coroutine");
    push(L, coroutine);
    return Search(*this, L, context, follows).run();
}

}  // namespace lunaria
