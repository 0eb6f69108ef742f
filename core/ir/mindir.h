// Graphs as MindIR files: MindSpore's protobuf format, with its messages and field numbers.
//
// A graph of operators that MindSpore has, and of blocks of them that go on to each other, is written as MindSpore does
// it (mindspore_rules.h, mindspore_blocks.h), and read as its files are. Any other has a form of our own, in which it
// is read back as the same graph: inner graphs, names, places and constants with it. Calls name the operator as in the
// text form (ops.matmul; see core/ir/printer.h), named tensors are the file's parameters, what a graph has beyond
// MindSpore's is in attributes.
#pragma once

#include "core/io/file.h"
#include "core/ir/parser.h"

namespace lunaria::ir {

// The file's bytes. Throws state_error for a graph that holds an object without a form in files.
std::string mindir_of(const Graph& graph);

// The file as MindSpore writes one: its operators, inputs and attributes, so that it reads it. Only for a graph of
// operators on tensors that it has; for others nothing, and `missing` says what it does not have.
std::optional<std::string> mindspore_mindir_of(const Graph& graph, std::string& missing);

// Throws file_error, beginning with the file's name, for what is damaged or not understood; all unknown operators are
// named at once. The graph keeps the rules of verify(). The result of a graph that MindSpore wrote is the list of its
// results.
ParsedGraph read_mindir(const Source& source, const Vocabulary& vocabulary = {});

}  // namespace lunaria::ir
