#include "interpreter/host/field_names.h"

#include "interpreter/host/lua_host.h"
#include "interpreter/values/values.h"

namespace lunaria {

FieldNames::Name& FieldNames::push(lua_State* L, const Value& name) {
    Name& known = names_[(reinterpret_cast<uintptr_t>(name.object()) >> 4) % names_.size()];
    if (known.name.kind() == Value::Kind::string && known.name.object() == name.object()) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, known.key);
        return known;
    }
    luaL_unref(L, LUA_REGISTRYINDEX, known.key);
    luaL_unref(L, LUA_REGISTRYINDEX, known.function);
    known = Name();
    lunaria::push(L, std::string_view(name.string()));
    lua_pushvalue(L, -1);
    known.key = luaL_ref(L, LUA_REGISTRYINDEX);
    known.name = name;
    return known;
}

Value FieldNames::value_by(lua_State* L, Name& name) {
    if (lua_type(L, -1) != LUA_TFUNCTION) return host_.to_value(L, -1);
    const void* pointer = lua_topointer(L, -1);
    if (pointer == name.pointer) return name.found;
    Value found = host_.to_value(L, -1);
    if (!host_.operator_in(found)) return found;
    luaL_unref(L, LUA_REGISTRYINDEX, name.function);
    lua_pushvalue(L, -1);
    name.function = luaL_ref(L, LUA_REGISTRYINDEX);
    name.pointer = pointer;
    name.found = found;
    return found;
}

}  // namespace lunaria
