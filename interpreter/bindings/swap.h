// Functions of the module "lunaria.autodiff" for lunaria/nn/offload.lua: what a forward pass keeps on a device for its
// backward pass waits in host memory.
#pragma once

#include <lua.hpp>

namespace lunaria {

void prepare_swaps(lua_State* L);
// swap_out(pull, context): what the pull of vjp keeps goes to host memory, but for parameters and what is there
// already; gives a handle.
int swap_out(lua_State* L);
// swapped_bytes(): those that went to host memory until now.
int swapped_bytes(lua_State* L);
// swap_back(handle): all that went to host memory is on its device again, until swap_away(handle).
int swap_back(lua_State* L);
int swap_away(lua_State* L);

}  // namespace lunaria
