// The formulas of core/ops/ as code, by the name of the operator.
#pragma once

#include <span>
#include <string_view>

#include "jit/codegen/code.h"

namespace lunaria::codegen {

// Writes the formula for operands that are vectors of the current emission's dtype (masks: of bits). nullptr: there is
// no formula of that name and number of operands.
llvm::Value* write_formula(std::string_view name, std::span<llvm::Value* const> args);

}  // namespace lunaria::codegen
