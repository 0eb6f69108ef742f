// What ms.jit gives is an object with methods; to the program it is a function: type() says so, and functions of the
// standard library that want a function take it.
#pragma once

#include <initializer_list>
#include <lua.hpp>

namespace lunaria {

// Where the argument is a compiled function, a plain function that calls it takes its place.
void use_as_function(lua_State* L, int argument);
// The same with the function that was compiled, for code that looks at a function or runs it in a coroutine, where
// nothing is compiled.
void use_target(lua_State* L, int argument);

// Puts a function in the place of one of Lua's own, which is its first upvalue.
struct Replacement {
    const char *library, *name;
    lua_CFunction function;
};
void replace_functions(lua_State* L, std::initializer_list<Replacement> replacements);

// Has the library's functions do so that are Lua's own.
void install_callables(lua_State* L);

}  // namespace lunaria
