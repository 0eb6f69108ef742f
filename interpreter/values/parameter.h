// Fields of a parameter beyond those of every tensor: name, requires_grad, a text of its own.
#pragma once

#include <lua.hpp>
#include <string>
#include <string_view>

#include "core/tensor/tensor.h"

namespace lunaria {

// The name of a parameter without one; a cell gives it the name of the field that it is put into.
inline constexpr std::string_view kUnnamedParameter = "Parameter";

// Pushes p.name, p.requires_grad or p.data (the value as a plain tensor). False: the tensor is not a parameter, or has
// no such field.
bool push_parameter_field(lua_State* L, const Tensor& t, std::string_view name);
// Sets p.name or p.requires_grad to the value at `index`. False as above; throws argument_error for a value of the
// wrong kind.
bool set_parameter_field(lua_State* L, const Tensor& t, std::string_view name, int index);

// Parameter (name=fc.weight, shape=(10, 784), dtype=Float32, requires_grad=true)
std::string parameter_text(const Tensor& t);

}  // namespace lunaria
