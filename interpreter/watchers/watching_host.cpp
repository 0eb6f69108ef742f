#include "interpreter/watchers/watching_host.h"

#include "interpreter/values/lua_reference.h"

namespace lunaria {

vm::Callee WatchingHost::resolve(const Value& f) {
    vm::Callee callee = inner_.resolve(f);
    if (callee.kind != vm::Callee::Kind::op && callee.kind != vm::Callee::Kind::function) return callee;
    // The library's stand-ins for Lua's own functions are for derivatives; here Lua's functions themselves are used.
    if (callee.kind == vm::Callee::Kind::function && !callee.intrinsic && !is_c_function(f)) {
        callee.intrinsic = true;
        return callee;
    }
    vm::Callee opaque;
    opaque.kind = vm::Callee::Kind::opaque;
    opaque.prefix = callee.prefix;
    if (!callee.prefix.empty())
        opaque.closure = callee.kind == vm::Callee::Kind::op ? vm::operator_value(*callee.op) : callee.closure;
    return opaque;
}

bool WatchingHost::is_c_function(const Value& f) const {
    auto* r = vm::object_as<LuaReference>(f);
    if (!r || r->type != LUA_TFUNCTION) return false;
    lua_State* L = host_.lua();
    luaL_checkstack(L, 1, "call");
    r->push(L);
    const bool is_c = lua_iscfunction(L, -1);
    lua_pop(L, 1);
    return is_c;
}
}  // namespace lunaria
