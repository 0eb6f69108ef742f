// What steps of a trace ask of the outside and do, alike for the runner and the recorder.
#pragma once

#include "interpreter/host/lua_host.h"
#include "interpreter/jit/trace.h"

namespace lunaria::jit {

// Reads and other questions. They leave the value on the stack.
void push_read(LuaHost& host, lua_State* L, const Value& table, const Value& key);
void push_metatable(LuaHost& host, lua_State* L, const Value& table);
void push_upvalue(LuaHost& host, lua_State* L, const Value& function, int position);
void push_next(LuaHost& host, lua_State* L, const Value& table, const Value& key);
int64_t raw_length(LuaHost& host, lua_State* L, const Value& table);
// False: f raised `error`.
bool call_function(LuaHost& host, const Value& f, std::span<const Value> args, const Step& step, vm::Values& results,
                   Value& error);
// A number as a tensor without axes.
Value scalar_tensor(const Value& number, DType dtype);
// An operation on plain numbers or texts, or a comparison of them.
Value compute_plain(LuaHost& host, const Op& op, std::span<const Value> args);
// A new table: sizes, metatable, then keys and values in the order of insertion; a nil value takes the key out again.
Value make_table(LuaHost& host, lua_State* L, std::span<const Value> recipe);
// Whether a result is what was expected. `slots` for what must be the same object as one of them.
bool fits(const Expected& expected, const Value& v, std::span<const Value> slots);
// Moves all of a table, its metatable included, into another.
void pour(LuaHost& host, lua_State* L, const Value& from, const Value& to);
// Whether a tensor of these sizes may come there.
bool fits_shape(const Expected& expected, const Shape& shape);

}  // namespace lunaria::jit
