// Devices: the device of new tensors, waiting for it, its memory, marks in the order of its work. ms.set_device and
// ms.synchronize, and the module "lunaria.devices" behind lunaria/runtime.lua.

#include "core/operator/op.h"
#include "core/run/shapes_device.h"
#include "core/tensor/usable_device.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/state.h"
#include "interpreter/values/devices.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

// The device of the name at `index`; without one the current device.
Device& device_or_current(lua_State* L, int index, std::string_view where) {
    return lua_isnoneornil(L, index) ? *current_device() : device_at(L, index, where, "device");
}

// set_device(name [, id])
int set_device(lua_State* L) {
    Device& device = device_at(L, 1, "set_device", "device_target");
    if (!lua_isnoneornil(L, 2)) {
        const int64_t id = integer_at(L, 2, "set_device", "device_id");
        if (id != 0) throw value_error("set_device", str("device_id must be 0, got ", id));
    }
    set_current_device(&device);
    return 0;
}

int synchronize(lua_State* L) {
    device_or_current(L, 1, "synchronize").synchronize();
    return 0;
}

int names(lua_State* L) {
    lua_createtable(L, 0, 0);
    lua_Integer n = 0;
    for (const Device* device : usable_devices()) {
        push(L, device->name());
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

int is_device(lua_State* L) {
    lua_pushboolean(L, device_named(L, 1) != nullptr);
    return 1;
}

// memory([name]): live, peak, cached, allocations
int memory(lua_State* L) {
    const DeviceMemory m = device_or_current(L, 1, "memory").memory();
    for (const int64_t value : {m.live, m.peak, m.cached, m.allocations}) lua_pushinteger(L, value);
    return 4;
}

int reset_peak(lua_State* L) {
    device_or_current(L, 1, "reset_peak_memory_stats").reset_peak_memory();
    return 0;
}

int empty_cache(lua_State* L) {
    lua_gc(L, LUA_GCCOLLECT);
    device_or_current(L, 1, "empty_cache").empty_cache();
    return 0;
}

// record([name]): a mark in the order of the device's work; done_at(mark [, name]); wait(mark [, name])
int record(lua_State* L) {
    lua_pushinteger(L, static_cast<lua_Integer>(device_or_current(L, 1, "record").record()));
    return 1;
}
int done_at(lua_State* L) {
    lua_pushnumber(L,
                   device_or_current(L, 2, "query").done_at(static_cast<uint64_t>(integer_at(L, 1, "query", "event"))));
    return 1;
}
int wait(lua_State* L) {
    device_or_current(L, 2, "synchronize").wait(static_cast<uint64_t>(integer_at(L, 1, "synchronize", "event")));
    return 0;
}

// fallbacks(): {{operator, device, calls, bytes}, ...}, in the order of their first calls
int fallback_list(lua_State* L) {
    lua_createtable(L, 0, 0);
    lua_Integer n = 0;
    for (const Fallback& f : fallbacks()) {
        lua_createtable(L, 0, 4);
        push(L, f.op->name());
        lua_setfield(L, -2, "operator");
        push(L, f.device->name());
        lua_setfield(L, -2, "device");
        lua_pushinteger(L, f.calls);
        lua_setfield(L, -2, "calls");
        lua_pushinteger(L, f.bytes);
        lua_setfield(L, -2, "bytes");
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}
// parts([name]): a list of lines
int parts(lua_State* L) {
    const auto* device = dynamic_cast<const OptionalDevice*>(&device_or_current(L, 1, "libraries"));
    lua_createtable(L, 0, 0);
    lua_Integer n = 0;
    for (const std::string& line : device ? device->parts() : std::vector<std::string>()) {
        push(L, line);
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}
int forget_fallback_list(lua_State*) {
    forget_fallbacks();
    return 0;
}

// move(tensor, name): moves the tensor itself to that device; all its handles see it.
int move(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "to", "tensor");
    const Tensor there = t.to(place_of(device_at(L, 2, "to", "device")));
    if (!there.same_body(t)) reinterpret_cast<Tensor&>(*tensor_place(L, 1)).become(there);
    lua_settop(L, 1);
    return 1;
}

// fill(tensor, values): the tensor itself becomes a copy of the values on their device.
int fill(lua_State* L) {
    check_tensor(L, 1, "assign", "tensor");
    reinterpret_cast<Tensor&>(*tensor_place(L, 1)).become(check_tensor(L, 2, "assign", "values").copy());
    return 0;
}

// without_elements(f, arguments ...): the results of f, which is called while new tensors have no elements.
int without_elements(lua_State* L) {
    luaL_checkany(L, 1);
    const ShapesScope scope;
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

}  // namespace

void bind_devices(lua_State* L) {
    lua_pushcfunction(L, protect<set_device>);
    lua_setfield(L, -2, "set_device");
    lua_pushcfunction(L, protect<synchronize>);
    lua_setfield(L, -2, "synchronize");
}

int open_devices(lua_State* L) {
    constexpr std::pair<const char*, lua_CFunction> kFunctions[] = {
        {"names", protect<names>},
        {"is_device", protect<is_device>},
        {"memory", protect<memory>},
        {"reset_peak", protect<reset_peak>},
        {"empty_cache", protect<empty_cache>},
        {"record", protect<record>},
        {"done_at", protect<done_at>},
        {"wait", protect<wait>},
        {"synchronize", protect<synchronize>},
        {"fill", protect<fill>},
        {"without_elements", protect<without_elements>},
        {"fallbacks", protect<fallback_list>},
        {"forget_fallbacks", protect<forget_fallback_list>},
        {"parts", protect<parts>},
        {"move", protect<move>},
    };
    lua_createtable(L, 0, static_cast<int>(std::size(kFunctions)));
    for (auto [name, function] : kFunctions) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    return 1;
}

}  // namespace lunaria
