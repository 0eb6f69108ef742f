// The state of a compiled function in Lua beside its records.
#pragma once

#include <optional>

#include "interpreter/host/kept.h"
#include "interpreter/host/lua_host.h"
#include "jit/trace/compiled.h"

namespace lunaria::jit {

struct Function : trace::Compiled {
    explicit Function(LuaHost& host) : host(host) {}
    LuaHost& host;
    Kept kept;
    std::optional<bool> stops;  // whether it calls breakpoint()
    int64_t patience = 0;       // calls before it is compiled
    bool busy = false;
    vm::Values results;  // of the last call, until they are taken
};

// For a result of ms.jit at the index; throws a Lua error where it is something else.
Function& function_at(lua_State* L, int index);

// For the module: the records as text, the kernels of their regions, and the facts about the function as a table.
int text(lua_State* L);
int kernels(lua_State* L);
int report(lua_State* L);

}  // namespace lunaria::jit
