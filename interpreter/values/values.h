// Conversions between Lua values and the core's: tensors, dtypes, arguments of operators.
#pragma once

#include <initializer_list>
#include <lua.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/operator/op.h"
#include "core/tensor/tensor.h"
#include "core/tensor/value.h"
#include "interpreter/state.h"

namespace lunaria {

// The value at `index` in messages: "a tensor of shape (2, 3)", "the string 'relu'", "a table", "nothing".
std::string describe(lua_State* L, int index);

// The place of the tensor in the handle at `index`; null when the value is not a tensor handle. Throws when the tensor
// has been released by hand.
TensorBody** tensor_place(lua_State* L, int index);
// The same as a borrowed tensor, valid while the handle keeps it; null likewise.
inline const Tensor* tensor_at(lua_State* L, int index) {
    // A Tensor is its body's pointer.
    return reinterpret_cast<const Tensor*>(tensor_place(L, index));
}
// The tensor at `index`; throws argument_error with the function's and the argument's name for other values.
const Tensor& check_tensor(lua_State* L, int index, std::string_view where, std::string_view argument = "self");
// Puts another tensor into the handle at `index`.
void set_tensor(lua_State* L, int index, Tensor tensor);

void push(lua_State* L, Tensor tensor);
// The same without a body of its own: another handle of the same variable.
void push_shared(lua_State* L, Tensor tensor);
void push(lua_State* L, DType dtype);         // always the same object for the same dtype
void push(lua_State* L, const Shape& shape);  // a table that prints as (2, 3) and compares by content
void push(lua_State* L, Value value);         // lists as tables
void push(lua_State* L, std::string_view text);
// The tensor that the value holds, without a reference left in the value.
Tensor take_tensor(Value value);
// One element as a Lua number or boolean.
void push_element(lua_State* L, const Tensor& tensor, int64_t index);

// The dtype object or name at `index`; throws dtype_error. Nothing when the value is nil.
std::optional<DType> dtype_at(lua_State* L, int index, std::string_view where, std::string_view argument = "dtype");
// The dtype if there is one; never throws.
std::optional<DType> find_dtype(lua_State* L, int index);

// Integers at `index`: a table of them, a single one, or a tensor of integers.
std::vector<int64_t> integers_at(lua_State* L, int index, std::string_view where, std::string_view argument);
int64_t integer_at(lua_State* L, int index, std::string_view where, std::string_view argument);

// The name of a file at `index`; throws argument_error when it is not a string.
std::string path_at(lua_State* L, int index, std::string_view where);

// The value at `index` as an argument for the parameter; throws argument_error naming both.
Value argument_at(lua_State* L, int index, const Op& op, const Param& param);

// An option of the table at `index` by name: pushes it and returns true if it is there.
bool push_option(lua_State* L, int index, const char* name);
// Whether the value at `index` is a table whose first key is a string: names with values.
bool is_options(lua_State* L, int index);
// Throws when the table at `index` has a key that is not among the names.
void check_options(lua_State* L, int index, std::string_view where, std::initializer_list<std::string_view> names);

}  // namespace lunaria
