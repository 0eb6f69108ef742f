// Functions of libraries in a saved program, which refers to them by name.
#pragma once

#include <string_view>

#include "core/operator/op.h"
#include "core/tensor/value.h"

namespace lunaria {

// The value that represents a library function in a program that is to be saved.
Value name_value(std::string_view name);
// The name of what stands for a new axis in an index, which is no function.
inline constexpr std::string_view kNewAxisName = "ms.newaxis";
// An operator as programs call it: with options by name, and omitted arguments.
Value operator_name(const Op& op);
// The operator that such a name refers to; null for other values.
const Op* operator_named(const Value& name);

}  // namespace lunaria
