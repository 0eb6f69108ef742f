#include "interpreter/host/handles.h"

#include "interpreter/values/values.h"

namespace lunaria {

int weak_table(lua_State* L, const char* mode) {
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushstring(L, mode);
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    return luaL_ref(L, LUA_REGISTRYINDEX);
}

Handles::Handles(lua_State* main) : handles_(weak_table(main, "v")) {}

void Handles::note(lua_State* state, int index, const void* body) {
    luaL_checkstack(state, 3, "handle");
    lua_rawgeti(state, LUA_REGISTRYINDEX, handles_);
    if (lua_rawgetp(state, -1, body) == LUA_TNIL) {
        lua_pushvalue(state, index);
        lua_rawsetp(state, -3, body);
    }
    lua_pop(state, 2);
}

bool Handles::push(lua_State* state, const void* body) {
    luaL_checkstack(state, 3, "handle");
    lua_rawgeti(state, LUA_REGISTRYINDEX, handles_);
    const bool known = lua_rawgetp(state, -1, body) != LUA_TNIL;
    if (known)
        lua_remove(state, -2);
    else
        lua_pop(state, 2);
    return known;
}

namespace {

// Whether the value at the index is a handle of that tensor, and not one that was released by hand.
bool holds(lua_State* state, int index, const TensorBody* body) {
    TensorBody** place = State::of(state).memory().handle(lua_touserdata(state, index));
    return place && *place == body;
}

}  // namespace

void Handles::note_tensor(lua_State* state, int index, TensorBody** place) {
    luaL_checkstack(state, 3, "tensor");
    lua_rawgeti(state, LUA_REGISTRYINDEX, handles_);
    lua_rawgetp(state, -1, *place);
    if (!holds(state, -1, *place)) {
        lua_pushvalue(state, index);
        lua_rawsetp(state, -3, *place);
    }
    lua_pop(state, 2);
    LuaMemory::note(place) = *place;
}

void Handles::push_tensor(lua_State* state, const Tensor& t) {
    // The tensor has no other owner, so that Lua has no object for it.
    if (t.body()->refs.load(std::memory_order_relaxed) == 1) return push_shared(state, t);
    luaL_checkstack(state, 6, "tensor");
    lua_rawgeti(state, LUA_REGISTRYINDEX, handles_);
    lua_rawgetp(state, -1, t.body());
    lua_remove(state, -2);
    if (holds(state, -1, t.body())) return;
    lua_pop(state, 1);
    push_shared(state, t);
    note_tensor(state, lua_absindex(state, -1), tensor_place(state, -1));
}

}  // namespace lunaria
