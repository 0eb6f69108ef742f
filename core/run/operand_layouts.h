// Operands that the kernels of one device take as they are, where those of others get dense ones of at least 32 bits.
#pragma once

#include <span>

#include "core/operator/op.h"

namespace lunaria {

using TakesOperands = bool (*)(const Op&);

// For one device: whether its kernels of an operator take operands of any layout, or a first operand of 16-bit floats.
void set_operand_layouts(const Device* device, TakesOperands any_strides, TakesOperands halves);

// For the current device. Those that read any strides compute the same bits from a view as from a dense copy.
bool reads_any_strides(const Op& op);
bool takes_any_strides(const Op& op);
bool takes_any_floats(const Op& op, std::span<const Value> args);

}  // namespace lunaria
