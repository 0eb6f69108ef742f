// Graphs for the modules behind lunaria/insight/.
#pragma once

#include "core/insight/operator_graph.h"
#include "interpreter/values/values.h"

namespace lunaria {

// The first argument: the graph in a file, or of the text that ms.ir gives.
insight::OperatorGraph graph_at(lua_State* L, bool is_text, std::string_view where);

}  // namespace lunaria
