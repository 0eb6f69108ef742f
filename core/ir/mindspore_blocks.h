// MindSpore's files with control flow, as programs of blocks.
//
// In such a file a branch is a choice (Switch) between two graphs with their arguments (Partial), which is then called;
// a loop is a graph that such calls lead back to. A call whose result is the graph's own result continues in the block
// of the called graph. After any other call the rest of the graph becomes a block of its own. It takes the results of
// the call and the earlier values that it needs, and the called graph continues there, with both.
#pragma once

#include "core/ir/mindir.h"
#include "core/ir/mindir_model.h"

namespace lunaria::mindir {

// The result is a function of the language to which the primitives belong; the graph calls it with its inputs.
ir::ParsedGraph import_blocks(const Model& model, const Registry& primitives, const std::string& file);

}  // namespace lunaria::mindir
