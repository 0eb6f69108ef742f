// MindSpore's files with control flow, as programs of blocks.
//
// There, a branch is a choice (Switch) between two graphs with their arguments (Partial), which is then called; a loop
// is a graph that comes back to itself by such calls. A call whose result is the graph's own goes on to the block that
// the called graph is. After any other call the rest of the graph is a block of its own, which takes the results and
// what it needs of the values so far: the called graph goes on to it with both.
#pragma once

#include "core/ir/mindir.h"
#include "core/ir/mindir_model.h"

namespace lunaria::mindir {

// The graph calls a function of the language whose primitives these are with its inputs.
ir::ParsedGraph import_blocks(const Model& model, const Registry& primitives, const std::string& file);

}  // namespace lunaria::mindir
