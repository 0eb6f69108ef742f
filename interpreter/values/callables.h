// What ms.jit gives is an object with methods; to the program it is a function: type() says so, and functions of the
// standard library that want a function take it.
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
    kCompiledKept = 2,     // a table of what its records refer to
    kCompiledPool = 3,     // a thread, on whose stack questions are asked
    kCompiledStandIn = 4,  // once it was asked for: a Lua function that calls it
    kCompiledSlots = 4
};

}  // namespace jit

// Whether the argument is such an object.
bool is_compiled(lua_State* L, int argument);
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

}  // namespace lunaria
