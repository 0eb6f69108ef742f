#include "interpreter/host/names.h"

#include "interpreter/values/operators.h"

namespace lunaria {

namespace {

Value function_in(LuaHost& host, const LibraryFunction& row, std::string_view name) {
    lua_State* L = host.lua();
    push_library_function(L, row, name, true);
    Value f = host.to_value(L, -1);
    lua_pop(L, 1);
    return f;
}

}  // namespace

FunctionNames::FunctionNames(LuaHost& host) {
    for_each_library_function([&](const LibraryFunction& row, std::string_view name) {
        if (row.saved == Saved::unnamed) return;
        Value f = function_in(host, row, name);
        if (f.kind() != Value::Kind::object) return;
        entries_.try_emplace(vm::identity_of(f), Entry{saved_name(row, name), &row});
        kept_.push_back(std::move(f));
    });
    const Value table[] = {host.new_table(0, 0)};
    kept_.push_back(host.call(function_named(host, "ipairs"), table)[0]);
    ipairs_step_ = vm::identity_of(kept_.back());
}

const FunctionNames::Entry* FunctionNames::find(const Value& f) const {
    auto found = f.kind() == Value::Kind::object ? entries_.find(vm::identity_of(f)) : entries_.end();
    return found == entries_.end() ? nullptr : &found->second;
}

Value function_named(LuaHost& host, std::string_view name) {
    constexpr std::string_view kOperators = "ms.ops.";
    if (name.starts_with(kOperators)) {
        const Op* op = registry().find(name.substr(kOperators.size()));
        if (!op) return {};
        lua_State* L = host.lua();
        luaL_checkstack(L, 2, "names");
        push_operator(L, *op);
        Value f = host.to_value(L, -1);
        lua_pop(L, 1);
        return f;
    }
    if (name == kNewAxisName) {
        lua_State* L = host.lua();
        luaL_checkstack(L, 4, "names");
        const int base = lua_gettop(L);
        luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
        lua_getfield(L, -1, "lunaria");
        lua_getfield(L, -1, "newaxis");
        Value axis = host.to_value(L, -1);
        lua_settop(L, base);
        return axis;
    }
    Value found;
    for_each_library_function([&](const LibraryFunction& row, std::string_view function) {
        if (row.saved == Saved::unnamed || row.saved == Saved::known || !found.is_nil()) return;
        if (saved_name(row, function) == name) found = function_in(host, row, function);
    });
    return found;
}

}  // namespace lunaria
