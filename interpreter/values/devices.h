// Devices by the names that programs give them.
#pragma once

#include <lua.hpp>
#include <string_view>

#include "core/tensor/device.h"

namespace lunaria {

// Null where the value at `index` is no device's name.
Device* device_named(lua_State* L, int index);
// Throws where there is no such device; `argument` is how the message calls the value.
Device& device_at(lua_State* L, int index, std::string_view where, std::string_view argument);
// As storage names it: null for host memory.
Device* place_of(Device& device);

}  // namespace lunaria
