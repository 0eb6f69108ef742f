// Nested Lua tables to tensors and back.
#pragma once

#include <lua.hpp>
#include <optional>

#include "core/tensor/tensor.h"

namespace lunaria {

// A new tensor from the number, boolean, tensor or nested table at `index`. Without a dtype: int64 when all numbers are
// integers, float32 when there is a float, bool when all are booleans. Tensors of one shape may replace tables.
// Respects __index and __len. Throws Error that names the place, such as data[2][1].
Tensor tensor_from(lua_State* L, int index, std::optional<DType> dtype, std::string_view where = "tensor");

// Pushes nested tables; a number or boolean for rank 0.
void push_table(lua_State* L, const Tensor& tensor);

}  // namespace lunaria
