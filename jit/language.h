// The primitives that Lua itself consists of, as operators of the IR: arithmetic with metamethods, tables, calls,
// cells, the steps of a numeric loop. They stand beside the tensor operators and are executed by the virtual machine.
#pragma once

#include "core/operator/op.h"

namespace lunaria::lua {

// All of them; the descriptions are in language.cpp.
const Registry& language();

// The primitive of that name; throws state_error when there is none.
const Op& primitive(std::string_view name);

// The operator that the primitive of that name means for tensors; null: it is none of arithmetic and bits.
const Op* tensor_operator(std::string_view primitive);

// What derivatives consist of; part of language().
void add_adjoint_primitives(Registry& registry);

}  // namespace lunaria::lua
