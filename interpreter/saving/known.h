// What a program does with values that are known, done by the host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "interpreter/saving/names.h"

namespace lunaria {

// nil, a boolean, a number, a text or a dtype.
bool is_plain(const Value& v);

// What an operation of the language gives; nothing where it fails.
std::optional<Value> computed(LuaHost& host, const Op& primitive, const std::vector<Value>& operands);
// What a function gives; nothing where it fails.
std::optional<std::vector<Value>> called(LuaHost& host, const Value& f, const std::vector<Value>& args);

// The dtype that an object of the host is.
std::optional<DType> dtype_of(LuaHost& host, const Value& object);

struct TableContent {
    std::vector<Value> keys, values;
    bool plain = true;  // no metatable, and keys that are plain values
};
TableContent content_of(LuaHost& host, const Value& table);

// What ms.grad and its kin were called with to give a function; no name: another function.
struct Transformed {
    std::string name;
    std::vector<Value> args;
};
Transformed transformed(LuaHost& host, const Value& f);

}  // namespace lunaria
