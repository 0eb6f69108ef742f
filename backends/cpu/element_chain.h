// Chains of elementwise operators, block by block with the operators' own loops.
#pragma once

#include "core/run/element_chain.h"

namespace lunaria::cpu {

std::unique_ptr<const ChainKernel> compile_element_chain(const ElementChain& chain);

}  // namespace lunaria::cpu
