#include "interpreter/host/handles.h"

#include "core/memory/memory.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/state.h"
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

namespace {

// The number of kept objects, and of bytes that were allocated meanwhile, between two sweeps.
constexpr size_t kManyObjects = 256;
constexpr uint64_t kManyBytes = uint64_t{1} << 20;

// Whether the value at the index is a handle of that tensor, and not one that was released by hand.
bool holds(lua_State* state, int index, const TensorBody* body) {
    TensorBody** place = State::of(state).memory().handle(lua_touserdata(state, index));
    return place && *place == body;
}

}  // namespace

Handles::Handles(LuaHost& host, lua_State* main) : host_(host), handles_(weak_table(main, "v")) {}

void Handles::note(lua_State* state, int index, const void* body) {
    luaL_checkstack(state, 3, "handle");
    lua_rawgeti(state, LUA_REGISTRYINDEX, handles_);
    if (lua_rawgetp(state, -1, body) == LUA_TNIL) {
        lua_pushvalue(state, index);
        lua_rawsetp(state, -3, body);
    }
    lua_pop(state, 2);
    if (keeps(state)) keep(state, index, body);
}

Value Handles::noted(lua_State* state, int index, Value object) {
    if (keeps(state)) note(state, lua_absindex(state, index), object.object());
    return object;
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
    if (keeps(state)) keep(state, index, *place);
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

// Which weak tables there are, and what they have, is unknown, so that all objects count that exist now.
bool Handles::begin_to_keep(lua_State* state) {
    if (!State::of(state).loader().has_weak_tables()) return false;
    keeps_ = true;
    luaL_checkstack(state, 6, "weak tables");
    lua_newtable(state);
    kept_ = luaL_ref(state, LUA_REGISTRYINDEX);
    lua_rawgeti(state, LUA_REGISTRYINDEX, handles_);
    const int table = lua_gettop(state);
    lua_pushnil(state);
    while (lua_next(state, table)) {
        keep(state, table + 2, lua_touserdata(state, table + 1));
        lua_settop(state, table + 1);
    }
    lua_settop(state, table - 1);
    return true;
}

void Handles::keep(lua_State* state, int index, const void* body) {
    if (new_.size() >= kManyObjects || thread_allocated_bytes() - swept_bytes_ > kManyBytes) {
        sweep_new(state);
        if (old_.size() > 2 * settled_ + kManyObjects) sweep_all(state);
    }
    luaL_checkstack(state, 4, "handle");
    index = lua_absindex(state, index);
    lua_rawgeti(state, LUA_REGISTRYINDEX, kept_);
    if (lua_rawgetp(state, -1, body) == LUA_TNIL) new_.push_back(body);
    lua_pop(state, 1);
    lua_pushvalue(state, index);
    lua_rawsetp(state, -2, body);
    lua_pop(state, 1);
}

void Handles::sweep(lua_State* state, std::vector<const void*>& bodies, std::vector<const void*>* survivors) {
    swept_bytes_ = thread_allocated_bytes();
    luaL_checkstack(state, 8, "handles");
    lua_rawgeti(state, LUA_REGISTRYINDEX, kept_);
    const int table = lua_gettop(state);
    std::erase_if(bodies, [&](const void* body) {
        lua_settop(state, table);
        if (lua_rawgetp(state, table, body) == LUA_TNIL) return true;
        if (lua_isuserdata(state, -1)) {
            if (holds(state, -1, static_cast<const TensorBody*>(body))) {
                auto** place = static_cast<TensorBody**>(lua_touserdata(state, -1));
                if ((*place)->refs.load(std::memory_order_relaxed) > 1) return false;
                LuaMemory::note(place) = nullptr;
            }
        } else {
            const Value v = lua_isthread(state, -1) ? host_.coroutine_at(state, -1) : host_.closure_at(state, -1);
            // The object's own reference, and that of v.
            if (!v.is_nil() && v.object()->refs.load(std::memory_order_relaxed) > 2) return false;
        }
        lua_pushnil(state);
        lua_rawsetp(state, table, body);
        return true;
    });
    lua_settop(state, table - 1);
    if (!survivors) return;
    survivors->insert(survivors->end(), bodies.begin(), bodies.end());
    bodies.clear();
}

void Handles::sweep_all(lua_State* state) {
    sweep_new(state);
    if (!old_.empty()) sweep(state, old_, nullptr);
    settled_ = old_.size();
}

void Handles::release(lua_State* state, const void* body) {
    if (!keeps_) return;
    luaL_checkstack(state, 2, "handle");
    lua_rawgeti(state, LUA_REGISTRYINDEX, kept_);
    lua_pushnil(state);
    lua_rawsetp(state, -2, body);
    lua_pop(state, 1);
}

}  // namespace lunaria
