#include "interpreter/jit/natives.h"

#include "interpreter/state.h"

namespace lunaria::jit {

namespace {

// The module of that name on the stack, or nil.
void push_module(lua_State* L, const char* name) {
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
}

}  // namespace

void Natives::note(lua_State* L, const char* library, std::initializer_list<const char*> names, Native kind) {
    push_module(L, library);
    if (lua_istable(L, -1))
        for (const char* name : names) {
            lua_pushstring(L, name);
            lua_rawget(L, -2);
            if (lua_CFunction f = lua_tocfunction(L, -1)) kinds_.emplace(f, kind);
            lua_pop(L, 1);
        }
    lua_pop(L, 1);
}

Natives::Natives(lua_State* L) {
    const int top = lua_gettop(L);
    note(L, "_G", {"type"}, Native::type_of);
    note(L, "_G", {"select"}, Native::select);
    note(L, "_G", {"getmetatable"}, Native::get_metatable);
    note(L, "_G", {"setmetatable"}, Native::set_metatable);
    note(L, "_G", {"pairs"}, Native::pairs);
    note(L, "_G", {"ipairs"}, Native::ipairs);
    note(L, "_G", {"rawequal"}, Native::raw_equal);
    note(L, "_G", {"rawlen"}, Native::raw_length);
    note(L, "_G", {"error"}, Native::error);
    note(L, "_G", {"xpcall"}, Native::handler);
    note(L, "_G", {"assert"}, Native::check);
    note(L, "_G", {"tostring"}, Native::text);
    note(L, "_G", {"tonumber"}, Native::pure);
    note(L, "_G", {"print"}, Native::local);
    note(L, "math", {"abs", "acos", "asin", "atan", "ceil", "cos",  "deg", "exp",       "floor", "fmod", "log",
                     "max", "min",  "modf", "rad",  "sin",  "sqrt", "tan", "tointeger", "type",  "ult"},
         Native::pure);
    note(L, "math", {"random", "randomseed"}, Native::local);
    note(L, "string", {"byte", "find", "gsub", "len", "match", "pack", "packsize", "unpack"}, Native::pure);
    note(L, "string", {"char", "format", "lower", "rep", "reverse", "sub", "upper"}, Native::text);
    note(L, "utf8", {"char", "codepoint", "len", "offset"}, Native::pure);
    note(L, "os", {"time", "clock", "date", "getenv"}, Native::local);
    note(L, "io", {"write"}, Native::local);
    note(L, "coroutine", {"yield", "wrap", "create", "resume", "running", "status", "isyieldable", "close"},
         Native::refused);
    note(L, "debug",
         {"debug", "gethook", "getinfo", "getlocal", "getupvalue", "sethook", "setlocal", "setmetatable", "setupvalue",
          "traceback", "upvalueid", "upvaluejoin"},
         Native::refused);
    note(L, "_G", {"collectgarbage", "load", "loadfile", "dofile", "require"}, Native::refused);
    note(L, "lunaria.autodiff", {"next_key"}, Native::next_key);
    note(L, "lunaria.jit", {"make"}, Native::itself);
    note(L, "lunaria.jit", {"inside"}, Native::inside);
    note(L, "lunaria.jit", {"is_jit"}, Native::is_tensor);
    note(L, "lunaria.autodiff", {"note"}, Native::ignored);
    note(L, "lunaria", {"is_tensor"}, Native::is_tensor);
    note(L, "lunaria.autodiff", {"is_float"}, Native::is_tensor);
    note(L, "lunaria", {"is_parameter"}, Native::is_parameter);
    note(L, "lunaria", {"get_context", "get_seed", "get_rng_state", "get_num_threads"}, Native::reader);
    note(L, "lunaria", {"tensor"}, Native::reader);
    note(L, "lunaria", {"clock", "set_seed", "set_rng_state", "memory_stats"}, Native::local);

    // Arithmetic with strings.
    lua_pushliteral(L, "");
    if (lua_getmetatable(L, -1))
        for (const char* event : {"__add", "__sub", "__mul", "__mod", "__pow", "__div", "__idiv", "__unm"}) {
            lua_getfield(L, -1, event);
            if (lua_CFunction f = lua_tocfunction(L, -1)) kinds_.emplace(f, Native::pure);
            lua_pop(L, 1);
        }

    // What core.original gives: a function that calls another one.
    push_module(L, "lunaria.autodiff");
    if (lua_istable(L, -1)) {
        lua_getfield(L, -1, "original");
        lua_getglobal(L, "select");
        if (lua_isfunction(L, -1) && lua_pcall(L, 1, 1, 0) == LUA_OK) original_ = lua_tocfunction(L, -1);
    }

    // Methods of tensors, as open_autodiff finds them.
    lua_rawgeti(L, LUA_REGISTRYINDEX, State::of(L).tensor_metatable);
    lua_getfield(L, -1, "__index");
    if (lua_getupvalue(L, -1, 1)) {
        const std::pair<const char*, Native> methods[] = {
            {"item", Native::item},         {"dim", Native::rank},
            {"ndimension", Native::rank},   {"numel", Native::shape},
            {"nelement", Native::shape},    {"is_floating_point", Native::rank},
            {"is_complex", Native::rank},   {"tolist", Native::reader},
            {"new_zeros", Native::reader},  {"new_empty", Native::reader},
            {"new_ones", Native::reader},   {"new_full", Native::reader},
            {"new_tensor", Native::reader}, {"fill_", Native::local},
            {"zero_", Native::local},       {"copy_", Native::local},
            {"set_data", Native::local},    {"requires_grad_", Native::local},
            {"uniform_", Native::local},    {"normal_", Native::local},
            {"random_", Native::local},     {"is_contiguous", Native::reader},
            {"stride", Native::reader},     {"storage_offset", Native::reader}};
        for (auto [name, kind] : methods) {
            lua_getfield(L, -1, name);
            if (lua_CFunction f = lua_tocfunction(L, -1)) kinds_.emplace(f, kind);
            lua_pop(L, 1);
        }
    }
    lua_settop(L, top);
}

Native Natives::find(lua_State* L, int index) const {
    lua_CFunction f = lua_tocfunction(L, index);
    if (!f) return Native::unknown;
    if (f == original_ && lua_getupvalue(L, index, 1)) {
        f = lua_tocfunction(L, -1);
        lua_pop(L, 1);
    }
    auto found = kinds_.find(f);
    return found == kinds_.end() ? Native::unknown : found->second;
}

namespace {
int natives_key;
}

const Natives& natives_of(lua_State* L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &natives_key) == LUA_TNIL) {
        // Not finalized by Lua: finalizers of programs may still need it.
        new (lua_newuserdatauv(L, sizeof(Natives), 0)) Natives(L);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &natives_key);
        lua_remove(L, -2);
    }
    auto* known = static_cast<Natives*>(lua_touserdata(L, -1));
    lua_pop(L, 1);
    return *known;
}

void end_natives(lua_State* L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &natives_key) != LUA_TNIL)
        static_cast<Natives*>(lua_touserdata(L, -1))->~Natives();
    lua_pop(L, 1);
}

}  // namespace lunaria::jit
