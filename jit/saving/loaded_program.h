// A program from a file as a function of the virtual machine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/io/file.h"
#include "core/ir/parser.h"

namespace lunaria {

// A function of a library by its name; nil: a program may not refer to it.
using FunctionNamed = std::function<Value(const std::string& name)>;

// Whether the graph consists of operators on tensors alone and gives a list of results.
bool is_plain(const ir::Graph& graph);

// What the file says. Throws file_error.
ir::ParsedGraph read_program(const Source& source, const FunctionNamed& function_named);

struct LoadedProgram {
    ir::ParsedGraph parsed;
    // The program with its weights (constants that have a name) in a table that it captures: read from there they are
    // parameters like those of a cell, for derivatives and for records.
    std::unique_ptr<ir::Graph> graph;
    std::vector<Value> weights;
    std::vector<ir::NodeType> input_types;  // as the file says, which the graph does not rely on
};

// Checks what it reads: the machine can run the program. Throws file_error.
std::shared_ptr<LoadedProgram> load_program(const Source& source, const FunctionNamed& function_named);
// The program's function. `weights`: the table of its weights by number, from 1; not used where it has none.
Value function_of(const std::shared_ptr<LoadedProgram>& program, const Value& weights);

}  // namespace lunaria
