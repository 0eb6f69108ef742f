// Circles through Lua and the machine: a table holds a function that the machine made, whose captures hold the table.
// Lua sees only that the registry has the table, the machine only that Lua has the function.
//
// So that Lua's collector can see the circle, objects of the machine that only Lua refers to, in boxes, are mirrored
// for the length of one collection: the mirror of an object is a table that holds the mirrors of the objects it refers
// to, and Lua's objects themselves; its box refers to it. The registry releases those objects meanwhile, and afterwards
// refers to the remaining ones as before.
#include "interpreter/host/boxes.h"

#include <typeinfo>

#include "interpreter/host/handles.h"
#include "interpreter/values/lua_reference.h"
#include "jit/vm/cycles.h"

namespace lunaria {

namespace {

constexpr const char* kBox = "lunaria.value";
// The number of boxes made since the last search that calls for another; and per kilobyte of Lua's heap, since a search
// costs a full collection.
constexpr size_t kManyBoxes = 1000;
constexpr int kKilobytesPerBox = 16;

int drop_box(lua_State* L) {
    if (auto* v = static_cast<Value*>(luaL_testudata(L, 1, kBox))) *v = Value();
    return 0;
}

bool has_object(const Value& v) { return v.kind() == Value::Kind::object || v.is_list(); }

LuaReference* strong_reference(Object& object) {
    if (typeid(object) != typeid(LuaReference)) return nullptr;
    auto& r = static_cast<LuaReference&>(object);
    return r.is_kept() ? nullptr : &r;
}

// Stops the collector while it lives.
class Standstill {
  public:
    explicit Standstill(lua_State* L) : L_(L), ran_(lua_gc(L, LUA_GCISRUNNING) != 0) { lua_gc(L, LUA_GCSTOP); }
    ~Standstill() {
        if (ran_) lua_gc(L_, LUA_GCRESTART);
    }
    Standstill(const Standstill&) = delete;
    Standstill& operator=(const Standstill&) = delete;

  private:
    lua_State* L_;
    bool ran_;
};

}  // namespace

Boxes::Boxes(lua_State* main) : main_(main), boxes_(weak_table(main, "k")) {}

void Boxes::push(lua_State* state, const Value& v) {
    new (lua_newuserdatauv(state, sizeof(Value), 1)) Value(v);
    if (luaL_newmetatable(state, kBox)) {
        lua_pushcfunction(state, drop_box);
        lua_setfield(state, -2, "__gc");
        lua_pushliteral(state, "differentiation");
        lua_setfield(state, -2, "__name");
    }
    lua_setmetatable(state, -2);
    lua_rawgeti(state, LUA_REGISTRYINDEX, boxes_);
    lua_pushvalue(state, -2);
    lua_pushboolean(state, true);
    lua_rawset(state, -3);
    lua_pop(state, 1);
    ++new_boxes_;
}

const Value* Boxes::at(lua_State* state, int index) {
    const auto* v = static_cast<const Value*>(luaL_testudata(state, index, kBox));
    if (v && weakened_) strengthen();
    return v;
}

bool Boxes::many() const {
    return new_boxes_ >
           kManyBoxes + settled_boxes_ + static_cast<size_t>(lua_gc(main_, LUA_GCCOUNT) / kKilobytesPerBox);
}

void Boxes::for_each(const std::function<void(Value&, int)>& f) {
    lua_rawgeti(main_, LUA_REGISTRYINDEX, boxes_);
    const int table = lua_gettop(main_);
    lua_pushnil(main_);
    while (lua_next(main_, table)) {
        lua_pop(main_, 1);
        const int box = lua_gettop(main_);
        auto& v = *static_cast<Value*>(lua_touserdata(main_, box));
        if (has_object(v)) f(v, box);
        lua_settop(main_, box);
    }
    lua_settop(main_, table - 1);
}

void Boxes::mirror(const Release& release) {
    vm::Island island;
    for_each([&](Value& v, int) { island.add(*v.object(), 1); });
    const std::vector<Object*> isolated = island.isolated();
    for (const Object* o : isolated) release(*o);
    lua_State* L = main_;
    luaL_checkstack(L, 12, "collection");
    lua_newtable(L);
    const int tables = lua_gettop(L);
    for (Object* o : isolated) {
        lua_newtable(L);
        lua_rawsetp(L, tables, o);
    }
    for (Object* o : isolated) {
        lua_rawgetp(L, tables, o);
        const int own = lua_gettop(L);
        if (LuaReference* r = strong_reference(*o)) {
            r->push(L);
            lua_rawsetp(L, own, r);
        }
        lua_Integer count = 0;
        vm::for_each_owned(*o, [&](const Value& v) {
            if (!has_object(v)) return;
            lua_rawgetp(L, tables, v.object());
            lua_rawseti(L, own, ++count);
        });
        lua_settop(L, own - 1);
    }
    for_each([&](Value& v, int box) {
        lua_rawgetp(L, tables, v.object());
        lua_setiuservalue(L, box, 1);
    });
    lua_settop(L, tables - 1);
    weakened_ = true;
    for (Object* o : isolated)
        if (LuaReference* r = strong_reference(*o)) r->weaken();
}

void Boxes::strengthen() {
    lua_State* L = main_;
    const Standstill standstill(L);
    luaL_checkstack(L, 12, "collection");
    lua_newtable(L);  // a queue of tables, each of which is in it once
    const int queue = lua_gettop(L);
    lua_newtable(L);
    const int known = lua_gettop(L);
    lua_Integer count = 0;
    auto enqueue = [&](int table) {
        lua_pushvalue(L, table);
        if (lua_rawget(L, known) == LUA_TNIL) {
            lua_pushvalue(L, table);
            lua_pushboolean(L, true);
            lua_rawset(L, known);
            lua_pushvalue(L, table);
            lua_rawseti(L, queue, ++count);
        }
        lua_pop(L, 1);
    };
    for_each([&](Value&, int box) {
        if (lua_getiuservalue(L, box, 1) == LUA_TTABLE) enqueue(lua_gettop(L));
    });
    for (lua_Integer i = 1; i <= count; ++i) {
        lua_rawgeti(L, queue, i);
        const int table = lua_gettop(L);
        lua_pushnil(L);
        while (lua_next(L, table)) {
            if (lua_type(L, -2) == LUA_TLIGHTUSERDATA)
                static_cast<LuaReference*>(lua_touserdata(L, -2))->strengthen(L, lua_gettop(L));
            else if (lua_istable(L, -1))
                enqueue(lua_gettop(L));
            lua_pop(L, 1);
        }
        lua_settop(L, table - 1);
    }
    weakened_ = false;
    for_each([&](Value&, int box) {
        lua_pushnil(L);
        lua_setiuservalue(L, box, 1);
    });
    lua_settop(L, queue - 1);
}

bool Boxes::collect_cycles(lua_State* state, const Release& release) {
    if (weakened_ || new_boxes_ + settled_boxes_ == 0) return false;
    {
        const Standstill standstill(state);
        mirror(release);
    }
    lua_gc(state, LUA_GCCOLLECT);
    if (weakened_) strengthen();
    new_boxes_ = settled_boxes_ = 0;
    for_each([&](Value&, int) { ++settled_boxes_; });
    return true;
}

}  // namespace lunaria
