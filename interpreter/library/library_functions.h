// What Lua's own library functions do, and those of the module that are written in C: one table, which recording,
// saving, derivatives and formulas read. A function of the library that has no row fails a test.
#pragma once

#include <cstdint>
#include <functional>
#include <lua.hpp>
#include <string>
#include <string_view>

#include "jit/saving/saved.h"
#include "jit/vm/native.h"

namespace lunaria {

// What it does with the values that it is given.
enum class Values : uint8_t {
    computes,  // with what they are
    moves,     // hands them on
    tells,     // says what kind of things they are
    controls   // goes on elsewhere: assert, error, pcall
};

// What comes of it where a derivative is computed.
enum class Derivative : uint8_t {
    none,     // nothing that is differentiated goes through it
    rule,     // something stands for it: lunaria/adjoints.lua
    machine,  // the virtual machine has its own
    harmless  // it looks or prints, but computes nothing with numbers, keeps nothing and calls nobody
};

struct LibraryFunction {
    const char* library;         // as `require` knows it, or "tensor": its methods
    const char* names;           // one or more that have these facts in common
    std::string_view arguments;  // see LuaArguments; "": any
    Native recorded;
    Saved saved;
    bool reads;  // it only looks at tables that it is given, and gives none of them back
    Values values;
    Derivative derivative;
    // The operator that it is on scalars; "=": that of the same name. With two arguments where the second may be
    // missing: another operator; "/": the quotient of what it is of both.
    std::string_view op = {}, op_of_two = {};
};

// Calls f with each row and each of its names.
void for_each_library_function(const std::function<void(const LibraryFunction&, std::string_view name)>& f);
// The name in saved programs: "math.sin", "ms.grad", "pairs".
std::string saved_name(const LibraryFunction& row, std::string_view name);
// Pushes the function as the library has it now, or nil. `name`: "name" or "table.name". `load`: a module of Lunaria
// that was not required yet is required.
void push_library_function(lua_State* L, const LibraryFunction& row, std::string_view name, bool load = false);

}  // namespace lunaria
