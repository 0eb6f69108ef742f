#pragma once

struct lua_State;

namespace lunaria {

// The names of ms that lie in files called otherwise, as a list on the stack.
void push_part_names(lua_State* L);

}  // namespace lunaria
