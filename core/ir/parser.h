// The reader of the text form of graphs (core/ir/printer.h): a text that is read and printed again is the same.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/ir/graph.h"

namespace lunaria::ir {

// Knowledge of the layers above: the primitives of a language, and operators as values.
struct Vocabulary {
    const Registry* primitives = nullptr;          // bare names; null: only operators on tensors (ops.name)
    Value (*operator_value)(const Op&) = nullptr;  // null: a text with an operator as a value is refused
    bool (*allows)(const Op&) = nullptr;           // for files: the primitives that they may contain; null: all
    // A function of the language by its name; nil: there is none.
    std::function<Value(const std::string&)> function = nullptr;
};

struct ParsedGraph {
    std::unique_ptr<Graph> graph;
    std::vector<std::unique_ptr<Graph>> others;  // other graphs that it refers to; to be kept as long
};

// `name` stands for the text in messages. Throws Error(ErrorKind::syntax) with "name:line", the line and a caret under
// the place. Refuses tensors whose elements the printer left out. The result has the form of a graph; verify() checks
// the rules of graphs.
ParsedGraph parse(std::string_view text, const Vocabulary& vocabulary = {}, std::string_view name = "ir");

}  // namespace lunaria::ir
