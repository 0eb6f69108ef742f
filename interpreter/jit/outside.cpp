#include "interpreter/jit/outside.h"

#include <algorithm>

#include "core/ir/text.h"
#include "interpreter/host/lua_reference.h"
#include "jit/number.h"

namespace lunaria::jit {

void push_read(LuaHost& host, lua_State* L, const Value& table, const Value& key) {
    static_cast<LuaReference*>(table.object())->push(L);
    host.push(L, key);
    lua_rawget(L, -2);
    lua_remove(L, -2);
}

void push_metatable(LuaHost& host, lua_State* L, const Value& table) {
    host.push(L, table);
    if (!lua_getmetatable(L, -1)) lua_pushnil(L);
    lua_remove(L, -2);
}

void push_upvalue(LuaHost& host, lua_State* L, const Value& function, int position) {
    host.push(L, function);
    if (!lua_getupvalue(L, -1, position)) lua_pushnil(L);
    lua_remove(L, -2);
}

void push_next(LuaHost& host, lua_State* L, const Value& table, const Value& key) {
    host.push(L, table);
    host.push(L, key);
    if (lua_next(L, -2))
        lua_pop(L, 1);
    else
        lua_pushnil(L);
    lua_remove(L, -2);
}

int64_t raw_length(LuaHost& host, lua_State* L, const Value& table) {
    host.push(L, table);
    const auto n = static_cast<int64_t>(lua_rawlen(L, -1));
    lua_pop(L, 1);
    return n;
}

bool call_function(LuaHost& host, const Value& f, std::span<const Value> args, const Step& step, vm::Values& results,
                   Value& error) {
    lua_State* L = host.lua();
    luaL_checkstack(L, static_cast<int>(args.size()) + 8, "too many arguments");
    const int base = lua_gettop(L);
    host.push(L, f);
    for (const Value& v : args) host.push(L, v);
    if (lua_pcall(L, static_cast<int>(args.size()), LUA_MULTRET, 0) != LUA_OK) {
        host.complete_message(f, step.direct ? std::string() : ir::place_text(step.span()), step.method);
        error = host.to_value(L, -1);
        lua_settop(L, base);
        return false;
    }
    for (int i = base + 1, n = lua_gettop(L); i <= n; ++i) results.push_back(host.to_value(L, i));
    lua_settop(L, base);
    return true;
}

Value scalar_tensor(const Value& number, DType dtype) {
    return Value(Tensor::full(
        dtype, {}, number.kind() == Value::Kind::integer ? static_cast<double>(number.integer()) : number.number()));
}

Value compute_plain(LuaHost& host, const Op& op, std::span<const Value> args) {
    if (std::ranges::all_of(args, &Value::is_number) && op.name() != "concat") return lua::run_number(op, args);
    if (op.name() == "concat") return host.concat(args[0], args[1]);
    if (op.name() == "equal") return Value(identical(args[0], args[1]));
    return op.name() == "length" ? host.length(args[0]) : Value(host.compare(op.name(), args[0], args[1]));
}

Value make_table(LuaHost& host, lua_State* L, std::span<const Value> recipe) {
    luaL_checkstack(L, 8, "table");
    lua_createtable(L, static_cast<int>(recipe[0].integer()), static_cast<int>(recipe[1].integer()));
    for (size_t i = 3; i + 1 < recipe.size(); i += 2) {
        host.push(L, recipe[i]);
        host.push(L, recipe[i + 1]);
        lua_rawset(L, -3);
    }
    if (!recipe[2].is_nil()) {
        host.push(L, recipe[2]);
        lua_setmetatable(L, -2);
    }
    Value v = host.to_value(L, -1);
    lua_pop(L, 1);
    return v;
}

void pour(LuaHost& host, lua_State* L, const Value& from, const Value& to) {
    luaL_checkstack(L, 8, "table");
    host.push(L, from);
    host.push(L, to);
    auto clear = [&](int table) {
        lua_pushnil(L);
        while (lua_next(L, table)) {
            lua_pop(L, 1);
            lua_pushvalue(L, -1);
            lua_pushnil(L);
            lua_rawset(L, table);
        }
    };
    const int target = lua_gettop(L), source = target - 1;
    clear(target);
    lua_pushnil(L);
    while (lua_next(L, source)) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, target);
    }
    if (!lua_getmetatable(L, source)) lua_pushnil(L);
    lua_setmetatable(L, target);
    clear(source);
    lua_pushnil(L);
    lua_setmetatable(L, source);
    lua_settop(L, source - 1);
}

bool fits_shape(const Expected& e, const Shape& shape) {
    return e.open ? shape.rank() == e.type.shape.rank() : shape == e.type.shape;
}

bool fits(const Expected& e, const Value& v, std::span<const Value> slots) {
    switch (e.what) {
        case Expected::What::constant:
            return identical(e.constant, v);
        case Expected::What::tensor: {
            if (!v.is_tensor()) return false;
            const Tensor& t = v.tensor();
            return t.dtype() == e.type.dtype && fits_shape(e, t.shape()) && (t.parameter() != nullptr) == e.parameter;
        }
        case Expected::What::same:
            if (v.is_number()) return identical(v, slots[static_cast<size_t>(e.slot)]);
            return vm::identity_of(v) && vm::identity_of(v) == vm::identity_of(slots[static_cast<size_t>(e.slot)]) &&
                   (!e.typed || fits_shape(e, v.tensor().shape()));
        case Expected::What::number:
            return v.kind() == e.constant.kind();
        case Expected::What::table: {
            auto* r = vm::object_as<LuaReference>(v);
            return r && r->type == LUA_TTABLE;
        }
    }
    return false;
}

}  // namespace lunaria::jit
