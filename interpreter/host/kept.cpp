#include "interpreter/host/kept.h"

#include <algorithm>
#include <new>

#include "interpreter/values/lua_reference.h"
#include "interpreter/values/values.h"
#include "jit/trace/guards.h"

namespace lunaria {

using trace::Step;

namespace {

int keepers_key;

// Enters the table on the stack into the table of keepers; returns its number there. `reference`: the table of keepers
// in the registry.
int add_keeper(lua_State* L, int& reference) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &keepers_key) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_createtable(L, 0, 1);
        lua_pushliteral(L, "v");
        lua_setfield(L, -2, "__mode");
        lua_setmetatable(L, -2);
        lua_createtable(L, 2, 0);
        lua_pushvalue(L, -2);
        lua_pushinteger(L, luaL_ref(L, LUA_REGISTRYINDEX));
        lua_rawseti(L, -2, 1);
        lua_pushinteger(L, 0);
        lua_rawseti(L, -2, 2);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &keepers_key);
        lua_pop(L, 1);
        lua_rawgetp(L, LUA_REGISTRYINDEX, &keepers_key);
    }
    lua_rawgeti(L, -1, 1);
    reference = static_cast<int>(lua_tointeger(L, -1));
    lua_rawgeti(L, -2, 2);
    const auto number = static_cast<int>(lua_tointeger(L, -1)) + 1;
    lua_pushinteger(L, number);
    lua_rawseti(L, -4, 2);
    lua_pop(L, 3);
    lua_rawgeti(L, LUA_REGISTRYINDEX, reference);
    lua_pushvalue(L, -2);
    lua_rawseti(L, -2, number);
    lua_pop(L, 1);
    return number;
}

}  // namespace

void Kept::begin(lua_State* L) {
    keys_.clear();
    positions_.clear();
    lua_newtable(L);
    keeper_ = add_keeper(L, keepers_);
    pool_ = lua_newthread(L);
}

// The place of a text, which is left on the stack.
int Kept::place_of(lua_State* L, int table, const std::string& text) {
    push(L, std::string_view(text));
    int& position = keys_[text];
    if (position == 0) {
        position = static_cast<int>(lua_rawlen(L, table)) + 1;
        lua_pushvalue(L, -1);
        lua_rawseti(L, table, position);
    } else {
        lua_pop(L, 1);
        lua_rawgeti(L, table, position);
    }
    return position;
}

void Kept::keep(lua_State* L, int table, trace::Tree& tree) {
    const auto kept = [&](const Value& v) {
        auto* r = vm::object_as<LuaReference>(v);
        if (!r || r->is_kept()) return v;
        // A light userdata may have any address.
        int own = 0;
        int& position = r->type == LUA_TLIGHTUSERDATA ? own : positions_[r->identity()];
        if (position == 0) {
            position = static_cast<int>(lua_rawlen(L, table)) + 1;
            r->push(L);
            lua_rawseti(L, table, position);
        }
        return vm::make_object<LuaReference>(*r, keepers_, keeper_, position);
    };
    for_each_new_step(tree, [&](Step& step) {
        replace_objects(step, kept);
        if (step.kind > Step::Kind::next || step.object_at || step.args().empty()) return;
        if (trace::Expected& e = step.expected[0];
            e.what == trace::Expected::What::constant && e.constant.kind() == Value::Kind::string) {
            place_of(L, table, e.constant.string());
            e.pointer = lua_topointer(L, -1);
            lua_pop(L, 1);
        }
        const Value& object = step.args()[0];
        if (object.kind() == Value::Kind::string) {
            step.object_at = place_of(L, table, object.string());
            lua_pop(L, 1);
        }
        auto* r = vm::object_as<LuaReference>(object);
        if (!r) return;
        step.object_at = r->position();
        if (step.kind != Step::Kind::read || step.args()[1].kind() != Value::Kind::string) return;
        step.key_at = place_of(L, table, step.args()[1].string());
        lua_pop(L, 1);
    });
    const int count = std::min(static_cast<int>(lua_rawlen(L, table)), trace::Guards::kPool),
              pooled = lua_gettop(pool_);
    if (!lua_checkstack(pool_, count - pooled + kSpace)) throw std::bad_alloc();
    for (int i = pooled + 1; i <= count; ++i) {
        lua_rawgeti(L, table, i);
        lua_xmove(L, pool_, 1);
    }
}

}  // namespace lunaria
