// Compiled functions as values. A result of ms.jit is an object with methods, but to the program it is a function:
// type() says so, and functions of the standard library that want a function take it.
#pragma once

#include <initializer_list>
#include <lua.hpp>

namespace lunaria {

namespace jit {

// The metatable of these objects, in the registry.
inline constexpr const char* kMetatable = "lunaria.jit";

// The user values.
enum CompiledSlot : int {
    kCompiledTarget = 1,   // the function that was compiled
    kCompiledKept = 2,     // a table of objects that its records refer to
    kCompiledPool = 3,     // a thread on whose stack guards are asked
    kCompiledStandIn = 4,  // a Lua function that calls it, made on demand
    kCompiledSlots = 4
};

}  // namespace jit

// Whether the argument is such an object.
bool is_compiled(lua_State* L, int argument);
// Replaces a compiled function among the arguments by a plain function that calls it.
void use_as_function(lua_State* L, int argument);
// The same with its original where that is a function, for code that inspects a function or runs it in a coroutine,
// where nothing is compiled.
void use_target(lua_State* L, int argument);

// A replacement for one of Lua's own functions, which is its first upvalue.
struct Replacement {
    const char *library, *name;
    lua_CFunction function;
};
void replace_functions(lua_State* L, std::initializer_list<Replacement> replacements);

}  // namespace lunaria
