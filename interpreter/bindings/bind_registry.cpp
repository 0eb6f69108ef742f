// The module lunaria.registry: what the entries of the operators say, for tests that are written from them.
#include <array>

#include "interpreter/bindings/libraries.h"
#include "interpreter/bindings/values.h"
#include "interpreter/protect.h"

namespace lunaria {

namespace {

// In the order of ArgType.
constexpr std::array<const char*, 16> kTypes{"same",    "float", "tensor", "index",  "mask",  "tensors",
                                             "bool",    "int",   "number", "string", "dtype", "ints",
                                             "numbers", "shape", "scalar", "any"};

void set_text(lua_State* L, const char* field, std::string_view text) {
    push(L, text);
    lua_setfield(L, -2, field);
}

void set_flag(lua_State* L, const char* field, bool value) {
    lua_pushboolean(L, value);
    lua_setfield(L, -2, field);
}

void push_parameter(lua_State* L, const Param& param) {
    lua_createtable(L, 0, 5);
    set_text(L, "name", param.name);
    set_text(L, "type", kTypes[static_cast<size_t>(param.type)]);
    set_flag(L, "optional", param.optional);
    set_flag(L, "has_default", param.has_default);
    set_flag(L, "by_name_only", param.by_name_only);
}

void push_entry(lua_State* L, const Op& op) {
    constexpr std::array<const char*, 3> kEffects{"none", "random", "state"};
    lua_createtable(L, 0, 8);
    set_text(L, "name", op.name());
    set_text(L, "effect", kEffects[static_cast<size_t>(op.side_effect)]);
    set_flag(L, "method", op.is_method);
    set_flag(L, "host", op.host_fn != nullptr);
    set_flag(L, "has_gradient", op.grad_fn != nullptr || op.expand_fn != nullptr);
    lua_newtable(L);
    lua_Integer n = 0;
    for (const Param& param : op.signature.params) {
        push_parameter(L, param);
        lua_rawseti(L, -2, ++n);
    }
    lua_setfield(L, -2, "parameters");
    lua_newtable(L);
    n = 0;
    for (const char* sample : op.samples) {
        lua_pushstring(L, sample);
        lua_rawseti(L, -2, ++n);
    }
    lua_setfield(L, -2, "samples");
}

// A list of all operators in the order of the registry.
int entries(lua_State* L) {
    lua_newtable(L);
    lua_Integer n = 0;
    for (const auto& op : registry().all()) {
        push_entry(L, *op);
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

}  // namespace

int open_registry(lua_State* L) {
    lua_newtable(L);
    lua_pushcfunction(L, protect<entries>);
    lua_setfield(L, -2, "entries");
    return 1;
}

}  // namespace lunaria
