// The interface of the driver's mock to Lua tests: local mock = require "mock_control".
#include <dlfcn.h>
#include <lua.hpp>

#include <cstdint>

namespace {

template <class F>
F* find(lua_State* L, const char* name, const char* file = "libcuda.so.1") {
    void* library = dlopen(file, RTLD_NOW);
    void* function = library ? dlsym(library, name) : nullptr;
    if (!function) luaL_error(L, "%s is no mock: it lacks %s", file, name);
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
// products(): that cuBLASLt was asked for, of these with rounded operands, and with a bias; its handles
int products(lua_State* L) {
    constexpr int kNumbers = 4;
    for (int i = 0; i < kNumbers; ++i)
        lua_pushinteger(L, find<int64_t(int)>(L, "mock_products", "libcublasLt.so.13")(i));
    return kNumbers;
}
// convolutions(): that cuDNN was asked for, of these by units that may round; its handles
int convolutions(lua_State* L) {
    constexpr int kNumbers = 3;
    for (int i = 0; i < kNumbers; ++i)
        lua_pushinteger(L, find<int64_t(int)>(L, "mock_convolutions", "libcudnn.so.9")(i));
    return kNumbers;
}
// collectives(name): how often NCCL was asked for it
int collectives(lua_State* L) {
    lua_pushinteger(L, find<int64_t(const char*)>(L, "mock_collectives", "libnccl.so.2")(luaL_checkstring(L, 1)));
    return 1;
}
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
                                  {"products", products},
                                  {"convolutions", convolutions},
                                  {"collectives", collectives},
                                  {"blamed", blamed},
                                  {nullptr, nullptr}};
    luaL_newlib(L, functions);
    return 1;
}
