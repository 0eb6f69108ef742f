// A plan of the graph runtime as a light model.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "core/lite/format/model.h"
#include "jit/graph/plan.h"

namespace lunaria::lite {

// A model together with the memory of its constants.
struct Converted {
    Model model;
    std::vector<Tensor> constants{};
};

// `inputs`, `outputs`: their names. Throws state_error, which names operator and line, where a step cannot be part of a
// light model.
Converted lower(const graph::Plan& plan, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs);

}  // namespace lunaria::lite
