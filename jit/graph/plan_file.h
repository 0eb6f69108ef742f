// Plans of compiled graphs in files: operators by name and version, generated kernels by their loop programs, places in
// memory, constants by reference. Reading a plan needs neither the graph nor the passes; code for the loops comes from
// the kernel caches or the code generator (core/loops/kernels.h).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/io/file.h"
#include "jit/graph/executable.h"
#include "jit/graph/plan.h"

namespace lunaria::graph {

// The file of a plan that was made with CompileOptions::keeps_sources. `constants` gets the tensors that it refers to
// by their number: constants of the program, and variables, which each run reads anew. Throws state_error for a plan
// that a file cannot hold, with operators outside of the registry or objects as arguments.
std::string write_plan(const Plan& plan, std::vector<Tensor>& constants);

// Reads a plan for the current place and looks up its kernels. Throws file_error, which begins with the source's name,
// for a file that is damaged, that another version of the program wrote, or whose constants are of other types.
Plan read_plan(const Source& source, std::span<const Tensor> constants);

}  // namespace lunaria::graph
