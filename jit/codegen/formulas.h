// The formulas of core/ops/ as code, by the name of the operator.
#pragma once

#include <span>
#include <string_view>

#include "core/dtype.h"

namespace llvm {
class Value;
}

namespace lunaria::codegen {

// Writes the formula for operands that are vectors of the dtype (masks: of bits). nullptr: there is none of that name,
// dtype and number of operands.
llvm::Value* write_formula(std::string_view name, DType dtype, std::span<llvm::Value* const> args);

}  // namespace lunaria::codegen
