// Fields of tensors that programs call, as in MindSpore's first releases: x:shape(), x:dtype(). A number cannot be
// called, so that x.size is a field only.
#pragma once

#include <lua.hpp>

namespace lunaria {

// Gives shapes and dtypes a metamethod __call, which is written in Lua. The module is on top of the stack.
void bind_field_calls(lua_State* L);

}  // namespace lunaria
