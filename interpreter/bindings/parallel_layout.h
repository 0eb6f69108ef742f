// Meshes and layouts (core/parallel/) as Lua values.
#pragma once

#include <lua.hpp>
#include <string_view>

#include "core/parallel/layout.h"

namespace lunaria {

bool is_layout(lua_State* L, int index);
// The layout at `index`, which ms.Layout or a mesh gave, for a tensor of `rank` axes: those that it does not name are
// whole. Throws argument_error with the function's and the argument's name for other values and for more axes.
const Distribution& layout_at(lua_State* L, int index, int rank, std::string_view where, std::string_view name);
// A layout that prints with the sizes of a tensor: [8@dp, 4@tp].
void push_layout(lua_State* L, const Distribution& layout, const Shape& shape);
void push_mesh(lua_State* L, const parallel::Mesh& mesh);

}  // namespace lunaria
