// The check of a light model: all indices lead somewhere, all views lie within their values, values are made before
// they are used. Kernels check the operands of their own kind of step.
#pragma once

#include "core/lite/format/model.h"

namespace lunaria::lite {

struct ModelFault {
    std::string text{};                    // empty: there is none
    uint32_t step = kNone, value = kNone;  // the place, if it is in one of these
};

// What does not depend on sizes.
ModelFault check_form(const Model& model);
// What depends on them: to be asked for the sizes of every resize. The form has to be right.
ModelFault check_sizes(const Model& model, std::span<const int64_t> dimensions);

// Puts the number for given sizes into the instruction.
void apply(const Patch& patch, int64_t value, graph::LoopInstruction& instruction);

}  // namespace lunaria::lite
