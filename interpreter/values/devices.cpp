#include "interpreter/values/devices.h"

#include "core/tensor/usable_device.h"
#include "interpreter/values/values.h"

namespace lunaria {

Device* place_of(Device& device) { return device.is_host() ? nullptr : &device; }

Device* device_named(lua_State* L, int index) {
    return lua_type(L, index) == LUA_TSTRING ? find_device(lua_tostring(L, index)) : nullptr;
}

Device& device_at(lua_State* L, int index, std::string_view where, std::string_view argument) {
    if (lua_type(L, index) != LUA_TSTRING)
        throw argument_error(where, str(argument, " must be a string, got ", describe(L, index)));
    return usable_device(lua_tostring(L, index), where, argument);
}

}  // namespace lunaria
