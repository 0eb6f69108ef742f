#include "interpreter/workers/library_paths.h"

#include <array>
#include <vector>

#include "core/base/error.h"

namespace lunaria {

namespace {

// A module's name and then the keys, with a separator between them.
constexpr char kSeparator = '\0';
constexpr std::string_view kMetatable = "\1metatable", kRegistry = "\1registry";
constexpr int kDeepest = 3;  // tables within a module
int paths_key;               // in the registry: paths by values, whose keys are weak

bool is_library(std::string_view module) {
    constexpr std::array<std::string_view, 10> kOfLua = {"_G", "package", "coroutine", "table", "io",
                                                         "os", "string",  "math",      "utf8",  "debug"};
    if (module == "lunaria" || module.starts_with("lunaria.")) return true;
    for (const std::string_view name : kOfLua)
        if (module == name) return true;
    return false;
}

// Notes the path to the value on top of the stack; false where one is known.
bool note(lua_State* L, int paths, const std::string& path) {
    lua_pushvalue(L, -1);
    if (lua_rawget(L, paths) != LUA_TNIL) {
        lua_pop(L, 1);
        return false;
    }
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    lua_pushlstring(L, path.data(), path.size());
    lua_rawset(L, paths);
    return true;
}

// Visits the fields of the table on top of the stack, to which the path leads.
void walk(lua_State* L, int paths, const std::string& path, int depth, bool only_c) {
    luaL_checkstack(L, 8, "workers");
    const int table = lua_gettop(L);
    lua_pushnil(L);
    while (lua_next(L, table)) {
        const int type = lua_type(L, -1);
        const bool wanted =
            only_c ? lua_iscfunction(L, -1) : type == LUA_TTABLE || type == LUA_TFUNCTION || type == LUA_TUSERDATA;
        if (wanted && lua_type(L, -2) == LUA_TSTRING) {
            size_t size = 0;
            const char* key = lua_tolstring(L, -2, &size);
            const std::string inner = path + kSeparator + std::string(key, size);
            if (note(L, paths, inner) && type == LUA_TTABLE && depth < kDeepest)
                walk(L, paths, inner, depth + 1, false);
        }
        lua_pop(L, 1);
    }
    if (!only_c && lua_getmetatable(L, table)) {
        const std::string inner = path + kSeparator + std::string(kMetatable);
        if (note(L, paths, inner) && depth < kDeepest) walk(L, paths, inner, depth + 1, false);
        lua_pop(L, 1);
    }
}

// Modules first, since later paths may lead to the same values.
void walk_all(lua_State* L, int paths) {
    lua_pushglobaltable(L);
    note(L, paths, "_G");
    lua_pop(L, 1);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    const int loaded = lua_gettop(L);
    note(L, paths, std::string("package") + kSeparator + "loaded");
    for (const bool inside : {false, true}) {
        lua_pushnil(L);
        while (lua_next(L, loaded)) {
            if (lua_type(L, -2) == LUA_TSTRING && lua_type(L, -1) >= LUA_TTABLE) {
                const std::string name = lua_tostring(L, -2);
                if (is_library(name)) {
                    if (!inside)
                        note(L, paths, name);
                    else if (lua_istable(L, -1))
                        walk(L, paths, name, 0, name == "_G");
                }
            }
            lua_pop(L, 1);
        }
    }
    // Metatables that C code made.
    lua_pushnil(L);
    while (lua_next(L, LUA_REGISTRYINDEX)) {
        if (lua_type(L, -2) == LUA_TSTRING && lua_istable(L, -1) && lua_rawlen(L, -1) == 0) {
            const std::string key = lua_tostring(L, -2);
            if (key.find('.') != std::string::npos) note(L, paths, std::string(kRegistry) + kSeparator + key);
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

}  // namespace

std::string LibraryPaths::global(std::string_view name) { return std::string("_G") + kSeparator + std::string(name); }

std::optional<std::string> LibraryPaths::known(int index) {
    std::optional<std::string> path;
    if (lua_rawgetp(L_, LUA_REGISTRYINDEX, &paths_key) == LUA_TTABLE) {
        lua_pushvalue(L_, index);
        if (lua_rawget(L_, -2) == LUA_TSTRING) {
            size_t size = 0;
            const char* text = lua_tolstring(L_, -1, &size);
            path.emplace(text, size);
        }
        lua_pop(L_, 1);
    }
    lua_pop(L_, 1);
    return path;
}

std::optional<std::string> LibraryPaths::of(int index) {
    luaL_checkstack(L_, 16, "workers");
    index = lua_absindex(L_, index);
    auto path = known(index);
    if (path || looked_) return path;
    // Once for each capture: files of the library may have been loaded since the last one.
    looked_ = true;
    lua_newtable(L_);
    lua_createtable(L_, 0, 1);
    lua_pushliteral(L_, "k");
    lua_setfield(L_, -2, "__mode");
    lua_setmetatable(L_, -2);
    walk_all(L_, lua_gettop(L_));
    lua_rawsetp(L_, LUA_REGISTRYINDEX, &paths_key);
    return known(index);
}

void LibraryPaths::push(lua_State* L, std::string_view path) {
    luaL_checkstack(L, 8, "workers");
    std::vector<std::string> steps;
    for (size_t at = 0; at <= path.size();) {
        const size_t end = std::min(path.find(kSeparator, at), path.size());
        steps.emplace_back(path.substr(at, end - at));
        at = end + 1;
    }
    if (steps.front() == kRegistry) {
        luaL_getmetatable(L, steps.at(1).c_str());
        return;
    }
    if (steps.front() == "_G") {
        lua_pushglobaltable(L);
    } else {
        lua_getglobal(L, "require");
        lua_pushlstring(L, steps.front().data(), steps.front().size());
        lua_call(L, 1, 1);
    }
    for (size_t i = 1; i < steps.size(); ++i) {
        if (steps[i] == kMetatable) {
            if (!lua_getmetatable(L, -1)) lua_pushnil(L);
        } else {
            lua_getfield(L, -1, steps[i].c_str());
        }
        lua_remove(L, -2);
    }
}

}  // namespace lunaria
