// vmap in one run: the function is called once, by the virtual machine, with tensors that stand for one sample; each
// operator on them is applied to the whole batch (core/batching/batching.h). What cannot be done this way (an effect on
// the world outside, a decision by the elements of a sample) ends the run before anything has happened, and the caller
// takes one sample after the other. The machine's side of it is in jit/vm/region.h.
#pragma once

#include <lua.hpp>

namespace lunaria {

// How many operators have a rule or are made of such, and how many there are.
int count_batch_rules(lua_State* L);

}  // namespace lunaria
