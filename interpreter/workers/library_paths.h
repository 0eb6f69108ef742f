// Paths to values of the library: in another state the same path leads to the same thing.
#pragma once

#include <lua.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace lunaria {

class LibraryPaths {
  public:
    explicit LibraryPaths(lua_State* L) : L_(L) {}

    // The path to the table, function or userdata at `index`; nothing where the library has no such value.
    std::optional<std::string> of(int index);
    // Pushes the value at the path.
    static void push(lua_State* L, std::string_view path);
    // The path of a global of Lua's.
    static std::string global(std::string_view name);

  private:
    std::optional<std::string> known(int index);

    lua_State* L_;
    bool looked_ = false;
};

}  // namespace lunaria
