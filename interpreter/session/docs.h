// The reference of all names, written to a folder by lua/lunaria/help/.
#pragma once

#include <string>

#include "interpreter/state.h"

namespace lunaria {

// Writes Markdown, or with `html` a site that needs no server, into the folder, which is created if needed.
void write_docs(State& state, const std::string& folder, bool html);

}  // namespace lunaria
