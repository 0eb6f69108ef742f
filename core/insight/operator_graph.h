// A computational graph as insight looks at it: operators and what each takes from which other one. Every format of
// graph files is read into this form.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/io/file.h"

namespace lunaria::insight {

struct OperatorNode {
    struct Input {
        int32_t node = -1;  // -1: a parameter, a constant, or nothing
        bool is_control = false;
    };
    std::string name;  // unique in the graph
    std::string type, scope;
    std::string result;  // dtype and shape, in a text that is equal where they are
    std::vector<std::pair<std::string, std::string>> attributes;  // by name
    std::vector<Input> inputs;                                    // in the operator's order
};

struct OperatorGraph {
    std::vector<OperatorNode> nodes;
};

// MindSpore's graph files (ModelProto of anf_ir), MindIR and ONNX, told apart by their contents. Throws file_error.
OperatorGraph read_operator_graph(const Source& source);

}  // namespace lunaria::insight
