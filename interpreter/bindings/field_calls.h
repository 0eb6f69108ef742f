// Fields of tensors that programs call, as MindSpore's first releases had them: x:shape(), x:dtype(). A number cannot
// be called, so that x.size is a field only.
#pragma once

#include <lua.hpp>

namespace lunaria {

// Gives shapes and dtypes a metamethod __call, which is written in Lua. On top of the stack: the module.
void bind_field_calls(lua_State* L);

}  // namespace lunaria
