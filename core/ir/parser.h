// Reads the text form of graphs back (core/ir/printer.h): printing what was read gives the same text.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/ir/graph.h"

namespace lunaria::ir {

// What the layers above know: the primitives of a language, and operators as values.
struct Vocabulary {
    const Registry* primitives = nullptr;          // bare names; null: only operators on tensors (ops.name)
    Value (*operator_value)(const Op&) = nullptr;  // null: a text with an operator as a value is refused
    bool (*allows)(const Op&) = nullptr;           // of files: the primitives that they may have; null: all
    // A function of the language by its name; nil: there is none.
    std::function<Value(const std::string&)> function = nullptr;
};

struct ParsedGraph {
    std::unique_ptr<Graph> graph;
    std::vector<std::unique_ptr<Graph>> others;  // that the graph refers to and does not hold; to be kept as long
};

// `name` is what messages call the text. Throws Error(ErrorKind::syntax) with "name:line", the line and a caret under
// the place. Tensors whose elements the printer left out are refused. What is read has the form of a graph; whether it
// keeps the rules of graphs is verify()'s question.
ParsedGraph parse(std::string_view text, const Vocabulary& vocabulary = {}, std::string_view name = "ir");

}  // namespace lunaria::ir
