// Single values, names and places in the text form of a graph (core/ir/printer.h). Numbers are written so that they
// read back to the same bits and integers stay distinct from floats.
#pragma once

#include <string>
#include <string_view>

#include "core/operator/node.h"

namespace lunaria::ir {

// The base of objects that represent an operator as a value.
struct OperatorHolder {
    virtual ~OperatorHolder() = default;
    virtual const Op& held() const = 0;
};

// The base of objects that represent a function of the language that a program refers to by its name.
struct NameHolder {
    virtual ~NameHolder() = default;
    virtual std::string_view held_name() const = 0;
};

// With escapes for quotes, backslashes and control characters; other bytes as they are.
std::string quoted(std::string_view text);
// The inverse; throws Error(ErrorKind::syntax) with `name`.
std::string unquoted(std::string_view text, std::string_view name);
// Shortest text that reads back to the same number: 1.0, 2.5e-08, inf, -nan.
std::string number_text(double value);
// The dtype and shape, and the elements where there are at most `limit` of them, otherwise {...}.
std::string tensor_text(const Tensor& tensor, int64_t limit);
// A graph's name: as it is when it consists of words, otherwise quoted.
std::string graph_name_text(std::string_view name);
// The name of a parameter or variable likewise.
std::string node_name_text(std::string_view name);
// "chunk:line", quoted where the chunk's name needs that.
std::string span_text(const Span& span);
// The same for messages, with the name as it is; empty for a span without a place.
std::string place_text(const Span& span);

bool is_graph_name_char(char c);
bool is_node_name_char(char c);

}  // namespace lunaria::ir
