// vmap in one run: the virtual machine calls the function once, with tensors that represent one sample; each operator
// on them is applied to the whole batch (core/batching/batching.h). Something that cannot be done this way (an effect
// on the world outside, a decision by the elements of a sample) ends the run before anything has happened, and the
// caller takes one sample after the other. The machine's side of it is in jit/vm/region.h.
#pragma once

#include <lua.hpp>

namespace lunaria {

// The number of operators with a rule, of their own or by expansion, and the number of all operators.
int count_batch_rules(lua_State* L);

}  // namespace lunaria
