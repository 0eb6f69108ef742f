// Devices by name, for programs.
#pragma once

#include <lua.hpp>
#include <string_view>

#include "core/tensor/device.h"

namespace lunaria {

// Null where the value at `index` is not the name of a device.
Device* device_named(lua_State* L, int index);
// Throws where there is no such device; `argument` is the value's name in the message.
Device& device_at(lua_State* L, int index, std::string_view where, std::string_view argument);
// The device as storage has it: null for host memory.
Device* place_of(Device& device);

}  // namespace lunaria
