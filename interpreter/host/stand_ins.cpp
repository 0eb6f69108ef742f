#include "interpreter/host/stand_ins.h"

#include "interpreter/host/lua_host.h"
#include "interpreter/values/lua_reference.h"
#include "interpreter/values/operators.h"
#include "interpreter/values/tensor_methods.h"

namespace lunaria {

StandIns::StandIns(LuaHost& host, lua_State* main) : host_(host) {
    for (int* table : {&replacements_, &stand_ins_}) {
        lua_newtable(main);
        *table = luaL_ref(main, LUA_REGISTRYINDEX);
    }
}

void StandIns::set_in_place_maker(lua_State* state, int index) {
    lua_pushvalue(state, index);
    in_place_maker_ = luaL_ref(state, LUA_REGISTRYINDEX);
}

bool StandIns::push_replacement(lua_State* state, int index) const {
    index = lua_absindex(state, index);
    lua_rawgeti(state, LUA_REGISTRYINDEX, replacements_);
    lua_pushvalue(state, index);
    const bool found = lua_rawget(state, -2) != LUA_TNIL;
    lua_remove(state, -2);
    return found;
}

void StandIns::set(lua_State* state, int index, int by, bool followed) {
    index = lua_absindex(state, index);
    by = lua_absindex(state, by);
    if (const Op* op = operator_at(state, index)) {
        operators_[op] = host_.to_value(state, by);
        return;
    }
    lua_rawgeti(state, LUA_REGISTRYINDEX, followed ? stand_ins_ : replacements_);
    lua_pushvalue(state, index);
    lua_pushvalue(state, by);
    lua_rawset(state, -3);
    lua_pop(state, 1);
}

Value StandIns::find(const Value& f) {
    if (const Op* op = vm::operator_of(f) ? vm::operator_of(f) : host_.operator_in(f)) {
        const auto found = operators_.find(op);
        return found == operators_.end() ? Value() : found->second;
    }
    auto* r = vm::object_as<LuaReference>(f);
    if (!r || r->type != LUA_TFUNCTION) return {};
    lua_State* L = host_.lua();
    luaL_checkstack(L, 4, "function");
    lua_rawgeti(L, LUA_REGISTRYINDEX, stand_ins_);
    r->push(L);
    lua_rawget(L, -2);
    Value other = host_.to_value(L, -1);
    lua_pop(L, 2);
    if (!other.is_nil() || in_place_maker_ == LUA_NOREF) return other;
    luaL_checkstack(L, 6, "function");
    r->push(L);
    if (const Op* op = in_place_operator_at(L, -1)) {
        // There are many methods such as add_; each gets its stand-in at its first use.
        lua_rawgeti(L, LUA_REGISTRYINDEX, in_place_maker_);
        push_operator(L, *op);
        lua_pushvalue(L, -3);
        lua_call(L, 2, 1);
        set(L, -2, -1, true);
        other = host_.to_value(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return other;
}

}  // namespace lunaria
