// Reading and writing of parts of a tensor by an index in brackets: x[0], x["1:3, ::2"], x[{0, ms.slice(1, 3)}],
// x[mask], x[index_tensor].
#pragma once

#include <lua.hpp>

#include "core/ops/indexing.h"
#include "core/tensor/tensor.h"

namespace lunaria {

// The value at stack position `index`, read as an index.
Index index_at(lua_State* L, int index);

// Whether the value at stack position `index` is what ms.slice gives; ms.newaxis.
bool is_slice(lua_State* L, int index);
bool is_new_axis(lua_State* L, int index);

// The part of the tensor selected by the index at stack position `index`.
Tensor index_tensor(lua_State* L, const Tensor& tensor, int index);

// x[index] = value for the handle, the index and the value at these stack positions.
void set_by_index(lua_State* L, int handle, int index, int value);

}  // namespace lunaria
