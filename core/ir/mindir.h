// Graphs as MindIR files: MindSpore's protobuf format, with its messages and field numbers.
//
// A graph of MindSpore's operators, also in blocks that call each other, is written in MindSpore's own form
// (mindspore_rules.h, mindspore_blocks.h), and read as MindSpore's files are. Any other graph has a form of our own,
// from which the same graph is read back, with inner graphs, names, places and constants. Calls name the operator as in
// the text form (ops.matmul; see core/ir/printer.h), named tensors are the file's parameters, and attributes hold
// whatever MindSpore's graphs do not have.
#pragma once

#include "core/io/file.h"
#include "core/ir/parser.h"

namespace lunaria::ir {

// The file's bytes. Throws state_error for a graph that holds an object without a form in files.
std::string mindir_of(const Graph& graph);

// The file in MindSpore's form, which MindSpore reads: its operators, inputs and attributes. Only for graphs of
// operators on tensors that MindSpore has; for others nothing, and `missing` names what MindSpore does not have.
std::optional<std::string> mindspore_mindir_of(const Graph& graph, std::string& missing);

// Throws file_error, beginning with the file's name, for damaged files and unknown contents; all unknown operators are
// named at once. The graph keeps the rules of verify(). The result of a graph that MindSpore wrote is the list of its
// results.
ParsedGraph read_mindir(const Source& source, const Vocabulary& vocabulary = {});

}  // namespace lunaria::ir
