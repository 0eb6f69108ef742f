// A model whose inputs have open sizes, from models of the same network at several sizes.
#pragma once

#include <span>

#include "jit/lite/lower.h"

namespace lunaria::lite {

// `models`: at the sizes `points`, the first of which the result is converted for; the others have passed
// drop_constants(). Each number that differs becomes a formula of the sizes. `dimensions`: their names and limits; in
// `open` the dimension of each axis of each input, or kNone. Throws state_error, which names step and line, where the
// models differ by more than numbers, or a number fits no formula.
Converted resizable(std::span<Converted> models, const std::vector<std::vector<int64_t>>& points,
                    const std::vector<Dimension>& dimensions, const std::vector<std::vector<uint32_t>>& open);

// Compares the constants of a model at other sizes with those of the first one and frees them: those of all models
// might not fit into memory. Throws state_error, which names step and line, where their elements differ.
void drop_constants(Converted& made, const Converted& first);

}  // namespace lunaria::lite
