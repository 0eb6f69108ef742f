// Programs of networks as light models.
#pragma once

#include "jit/lite/lower.h"
#include "jit/lite/passes.h"

namespace lunaria::lite {

struct ConvertOptions {
    std::vector<std::string> inputs{}, outputs{};  // their names
    std::vector<Attribute> properties{};           // of the model
    PassOptions passes{};
};

// `graph`: a straight line of operators on tensors, as the graph runtime takes it; parameters of networks are
// constants. Throws the errors of lower().
Converted convert(const ir::Graph& graph, const ConvertOptions& options);

}  // namespace lunaria::lite
