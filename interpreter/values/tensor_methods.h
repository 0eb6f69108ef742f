// Methods of tensor handles that are not operators: export, conversion, writes to the handle.
#pragma once

#include <lua.hpp>
#include <string_view>

#include "core/operator/op.h"

namespace lunaria {

// Adds the methods to the table on top of the stack.
void add_tensor_methods(lua_State* L);

// x:to_dlpack() -> a capsule for other programs (interpreter/bindings/bind_dlpack.cpp).
int to_dlpack(lua_State* L);

// x:name_(...) for any operator `name` with a method: computes it and makes the result the handle's tensor, if shape
// and dtype allow. Pushes the function and returns true if there is such an operator.
bool push_in_place_method(lua_State* L, std::string_view name);

// The operator of such a method at the index, or null.
const Op* in_place_operator_at(lua_State* L, int index);

// a == b for two tensors: whether they are the same one, or of one element each and equal. Throws where one has more
// elements.
bool same_or_equal(const Tensor& a, const Tensor& b);

}  // namespace lunaria
