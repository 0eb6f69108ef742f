// vmap in one run: the function is called once, by the virtual machine, with tensors that stand for one sample; each
// operator on them is applied to the whole batch (core/batching/batching.h). What cannot be done this way (an effect on
// the world outside, a decision by the elements of a sample) ends the run before anything has happened, and the caller
// takes one sample after the other.
//
// Where the machine runs the caller itself, differentiated or recorded, the library has a function of Lua in place of
// batch(), over the primitives open_batch, batch_enter ...: see jit/vm/region.h.
#pragma once

#include <lua.hpp>

namespace lunaria {

// batch(f, size, prepare, finish): calls prepare(stand_in), where stand_in(t) gives what stands for a sample of the
// batched tensor t, then f with what that gives, then finish(taken, results...), where taken(t) gives the batched
// tensor that a sample stands for, or nil. True and what finish gives; false and an error when the function is not one
// for this, nil when a debugger wants to stop in it.
int batch(lua_State* L);

// Which share of an operator has a rule: with_rule, all.
int count_batch_rules(lua_State* L);

}  // namespace lunaria
