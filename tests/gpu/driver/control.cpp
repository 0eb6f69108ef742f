// What Lua tests ask the mock of the driver: local mock = require "mock_control".
#include <dlfcn.h>
#include <lua.hpp>

#include <cstdint>

namespace {

template <class F>
F* find(lua_State* L, const char* name) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    void* function = library ? dlsym(library, name) : nullptr;
    if (!function) luaL_error(L, "the driver is no mock: it lacks %s", name);
    return reinterpret_cast<F*>(function);
}

// fail(name, nth, result)
int fail(lua_State* L) {
    find<void(const char*, int64_t, int)>(L, "mock_fail")(luaL_checkstring(L, 1), luaL_checkinteger(L, 2),
                                                          static_cast<int>(luaL_checkinteger(L, 3)));
    return 0;
}
// limit(bytes that there are beside those in use)
int limit(lua_State* L) {
    find<void(int64_t)>(L, "mock_limit")(luaL_checkinteger(L, 1));
    return 0;
}
// skip_kernels(whether they do nothing)
int skip_kernels(lua_State* L) {
    find<void(int)>(L, "mock_skip_kernels")(lua_toboolean(L, 1));
    return 0;
}
template <const char* const& kName>
int number(lua_State* L) {
    lua_pushinteger(L, find<int64_t(const char*)>(L, kName)(luaL_checkstring(L, 1)));
    return 1;
}
const char* const kCalls = "mock_calls";
const char* const kBytes = "mock_bytes";
const char* const kAlive = "mock_alive";
int blamed(lua_State* L) {
    lua_pushstring(L, find<const char*()>(L, "mock_blamed")());
    return 1;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int luaopen_mock_control(lua_State* L) {
    const luaL_Reg functions[] = {{"fail", fail},
                                  {"limit", limit},
                                  {"skip_kernels", skip_kernels},
                                  {"calls", number<kCalls>},
                                  {"bytes", number<kBytes>},
                                  {"alive", number<kAlive>},
                                  {"blamed", blamed},
                                  {nullptr, nullptr}};
    luaL_newlib(L, functions);
    return 1;
}
