// A computational graph as insight looks at it: operators and what each takes from which other one. Every format of
// graph files is read into this form, and graphs of the IR are.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/io/file.h"
#include "core/ir/graph.h"

namespace lunaria::insight {

struct OperatorNode {
    struct Input {
        int32_t node = -1;  // -1: a value that is given, or nothing
        bool is_control = false;
        int32_t value = -1;  // the given value's index in the graph
    };
    std::string name;  // unique in the graph
    std::string type, scope;
    std::string result;  // dtype and shape, in a text that is equal where they are
    std::vector<std::pair<std::string, std::string>> attributes;  // by name
    std::vector<Input> inputs;                                    // in the operator's order
    std::string line = "";                                        // "file.lua:3"; empty where the file does not say it
    std::string full_name = "";  // the scope with a name in it, as MindSpore gives it; may be empty
};

// A value that no operator of the graph makes.
struct GivenValue {
    enum class Kind : uint8_t { input, parameter, constant } kind = Kind::input;
    std::string name;
    std::string text;  // dtype and shape; of a constant its value
};

struct OperatorGraph {
    std::vector<OperatorNode> nodes;
    std::vector<GivenValue> values;
};

// MindSpore's graph files (ModelProto of anf_ir), MindIR, ONNX, and event files with a graph of MindSpore or
// TensorBoard, told apart by their contents. Throws file_error.
OperatorGraph read_operator_graph(const Source& source);
// The primitives of a program's language that are no operators of their own: a call, one of its results, a field.
struct CallForms {
    const Op *call, *result, *index;
};
// Calls of functions that a program looks up by name are operators of that name; their scopes are the functions in
// which they stand.
OperatorGraph operator_graph_of(const ir::Graph& graph, const CallForms& forms);

}  // namespace lunaria::insight
