// Functions of libraries in a saved program, which refers to them by their names.
#pragma once

#include <string_view>

#include "core/operator/op.h"
#include "core/tensor/value.h"

namespace lunaria {

// A function in a program that is to be saved.
Value name_value(std::string_view name);
// An operator as it is called in a program: with options by name, and what is left out.
Value operator_name(const Op& op);
// The operator that such a name stands for; null for other values.
const Op* operator_named(const Value& name);

}  // namespace lunaria
