// What stands for functions that are not written in Lua where a derivative is computed.
#include "interpreter/bindings/operators.h"
#include "interpreter/bindings/tensor_methods.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/host/lua_reference.h"

namespace lunaria {

void LuaHost::set_replacement(lua_State* state, int index, int by, bool followed) {
    index = lua_absindex(state, index);
    by = lua_absindex(state, by);
    if (const Op* op = operator_at(state, index)) {
        operator_stand_ins_[op] = to_value(state, by);
        return;
    }
    lua_rawgeti(state, LUA_REGISTRYINDEX, followed ? stand_ins_ : replacements_);
    lua_pushvalue(state, index);
    lua_pushvalue(state, by);
    lua_rawset(state, -3);
    lua_pop(state, 1);
}

lua_CFunction LuaHost::c_function(const Value& f) {
    auto* r = vm::object_as<LuaReference>(f);
    if (!r || r->type != LUA_TFUNCTION) return nullptr;
    luaL_checkstack(L, 2, "function");
    r->push(L);
    lua_CFunction found = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    return found;
}

bool LuaHost::is_harmless(const Value& f) { return harmless_.contains(c_function(f)); }

bool LuaHost::gives_keys(const Value& f) { return gives_keys_ && c_function(f) == gives_keys_; }

Value LuaHost::stand_in(const Value& f) {
    if (const Op* op = vm::operator_of(f) ? vm::operator_of(f) : operator_in(f)) {
        const auto found = operator_stand_ins_.find(op);
        return found == operator_stand_ins_.end() ? Value() : found->second;
    }
    auto* r = vm::object_as<LuaReference>(f);
    if (!r || r->type != LUA_TFUNCTION) return {};
    luaL_checkstack(L, 4, "function");
    lua_rawgeti(L, LUA_REGISTRYINDEX, stand_ins_);
    r->push(L);
    lua_rawget(L, -2);
    Value other = to_value(L, -1);
    lua_pop(L, 2);
    if (!other.is_nil() || in_place_maker_ == LUA_NOREF) return other;
    luaL_checkstack(L, 6, "function");
    r->push(L);
    if (const Op* op = in_place_operator_at(L, -1)) {
        // Methods such as add_ are many: each gets its stand-in when it is first met.
        lua_rawgeti(L, LUA_REGISTRYINDEX, in_place_maker_);
        push_operator(L, *op);
        lua_pushvalue(L, -3);
        lua_call(L, 2, 1);
        set_replacement(L, -2, -1, true);
        other = to_value(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return other;
}

}  // namespace lunaria
