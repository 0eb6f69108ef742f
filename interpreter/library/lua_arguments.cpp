#include "interpreter/library/lua_arguments.h"

#include "interpreter/library/library_functions.h"
#include "interpreter/values/lua_reference.h"

namespace lunaria {

namespace {

bool object_is(const Value& v, char kind) {
    const auto* reference = dynamic_cast<const LuaReference*>(v.object());
    if (!reference) return true;
    if (kind == 'F') return reference->type == LUA_TFUNCTION;
    return (kind == 'T' || kind == 'X') && reference->type == LUA_TTABLE;
}

}  // namespace

void LuaArguments::note_library(lua_State* L) {
    for_each_library_function([&](const LibraryFunction& row, std::string_view name) {
        if (row.arguments.empty()) return;
        push_library_function(L, row, name);
        if (lua_CFunction f = lua_tocfunction(L, -1)) kinds_.emplace(f, row.arguments);
        lua_pop(L, 1);
    });
}

void LuaArguments::note(lua_State* L, lua_CFunction f, std::string_view kinds) {
    if (kinds_.empty()) note_library(L);
    kinds_[f] = kinds;
}

std::string_view LuaArguments::of(lua_State* L, lua_CFunction f) {
    if (kinds_.empty()) note_library(L);
    auto found = kinds_.find(f);
    return found == kinds_.end() ? std::string_view() : found->second;
}

bool LuaArguments::fit(std::string_view kinds, std::span<const Value> args) {
    return arguments_fit(kinds, args, object_is);
}

}  // namespace lunaria
