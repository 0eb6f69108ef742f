// Facts about Lua's own library functions, and those of the module that are written in C: one table, which recording,
// saving, derivatives and formulas read. A function of the library without a row fails a test.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "jit/saving/saved.h"
#include "jit/vm/native.h"

namespace lunaria {

// The use that it makes of its arguments.
enum class Values : uint8_t {
    computes,  // with their values
    moves,     // passes them on
    tells,     // tells their kinds
    controls   // continues elsewhere: assert, error, pcall
};

// The treatment where a derivative is computed.
enum class Derivative : uint8_t {
    none,     // no derivative flows through it
    rule,     // it has a stand-in: lunaria/adjoints.lua
    machine,  // the virtual machine has its own form of it
    harmless  // it reads or prints, but computes nothing with numbers, keeps nothing and calls no function
};

struct LibraryFunction {
    const char* library;         // its name for `require`, or "tensor": methods of tensors
    const char* names;           // the names of functions with these facts
    std::string_view arguments;  // see arguments_fit() in jit/vm/native.h; "": any
    Native recorded;
    Saved saved;
    bool reads;  // it only reads the tables that it gets, and returns none of them
    Values values;
    Derivative derivative;
    // The operator on scalars that it is; "=": the operator of the same name. For a function whose second argument may
    // be missing, op_of_two is the operator for two; "/": the quotient of op of both.
    std::string_view op = {}, op_of_two = {};
};

// Calls f with each row and each of its names.
void for_each_library_function(const std::function<void(const LibraryFunction&, std::string_view name)>& f);
// The name in saved programs: "math.sin", "ms.grad", "pairs".
std::string saved_name(const LibraryFunction& row, std::string_view name);

}  // namespace lunaria
