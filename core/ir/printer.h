// The text form of a graph, which core/ir/parser.h reads back:
//
//     graph f(%0 x: float32(2, 3), %1 y: ?) captures 1 variadic order 1 {  -- demo.lua:1
//       graph f.then1(%4 x: ?) {
//         ...
//       }
//       %2 = float32() {2.5}
//       %3 = ops.mul(%0, %2)                     : float32(2, 3)  z  -- demo.lua:3
//       %5 = branch(%1, @f.then1, {%3}, @f.else1, {%3})  : ?
//       return %5
//     }
//
// Inner graphs stand indented before the body that uses them. An operator on tensors is ops.name, a primitive of the
// language its bare name; `@name` is a graph as a value, name#2 the second one of that name. A dtype is written by its
// name, an operator as a value as ops.name, any other object as `object`. A name of a variable or parameter stands
// after a node's type, after a constant. What a graph refers to outside of itself (a derivative to the functions of its
// original) follows it as further graphs, so that the text is complete.
#pragma once

#include <functional>
#include <string>

#include "core/ir/graph.h"

namespace lunaria::ir {

struct PrintOptions {
    // Larger tensors are written without their elements, as {...}, and such a text cannot be parsed: core/ir/mindir.h
    // saves them.
    int64_t most_elements = 8;
    // What stands for the type of a node, where more is known of it; such a text is not read back either.
    std::function<std::string(const Node&)> type_text = {};
};

std::string print(const Graph& graph, const PrintOptions& options = {});
std::string to_string(const NodeType& type);

}  // namespace lunaria::ir
