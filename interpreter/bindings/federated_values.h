// Vectors and settings of federated learning as Lua has them.
#pragma once

#include "core/base/error.h"
#include "core/tensor/device.h"
#include "interpreter/values/values.h"

namespace lunaria::federated {

// Calls f with the elements of the float32 or float64 tensor at `index`, as they lie in the host's memory.
template <class F>
auto with_floats(lua_State* L, int index, std::string_view where, F&& f) {
    const Tensor t = check_tensor(L, index, where, "x").to_host().contiguous();
    const auto count = static_cast<size_t>(t.size());
    if (t.dtype() == DType::f32) return f(std::span<const float>(t.data<float>(), count));
    if (t.dtype() == DType::f64) return f(std::span<const double>(t.data<double>(), count));
    throw dtype_error(where, str("x must be of float32 or float64, got ", name_of(t.dtype())));
}

// The elements of the int64 tensor at `index`.
inline std::vector<int64_t> integers_of(lua_State* L, int index, std::string_view where, std::string_view argument) {
    const Tensor t = check_tensor(L, index, where, argument).to_host().contiguous();
    if (t.dtype() != DType::i64) throw dtype_error(where, str(argument, " must be of int64, got ", name_of(t.dtype())));
    return {t.data<int64_t>(), t.data<int64_t>() + t.size()};
}

// A vector on the session's device, as every new tensor.
template <class T>
void push_vector(lua_State* L, std::span<const T> values) {
    push(L, Tensor::from<T>(values, {static_cast<int64_t>(values.size())}).to(current_place()));
}

inline std::string_view bytes_at(lua_State* L, int index) {
    size_t size = 0;
    const char* text = luaL_checklstring(L, index, &size);
    return {text, size};
}

// Fields of the table of options at `index`, which the library in Lua has checked.
inline int64_t integer_field(lua_State* L, int index, const char* name) {
    lua_getfield(L, index, name);
    const lua_Integer value = luaL_checkinteger(L, -1);
    lua_pop(L, 1);
    return value;
}
inline double number_field(lua_State* L, int index, const char* name) {
    lua_getfield(L, index, name);
    const lua_Number value = luaL_checknumber(L, -1);
    lua_pop(L, 1);
    return value;
}
inline bool boolean_field(lua_State* L, int index, const char* name) {
    lua_getfield(L, index, name);
    const bool value = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return value;
}

// The field of the table at 1, if it is there, into the place of the same name.
template <class T>
void read_field(lua_State* L, const char* name, T& to) {
    if (lua_getfield(L, 1, name) != LUA_TNIL) {
        if constexpr (std::is_same_v<T, bool>)
            to = lua_toboolean(L, -1);
        else if constexpr (std::is_same_v<T, std::string>)
            to = lua_tostring(L, -1);
        else if constexpr (std::is_floating_point_v<T>)
            to = lua_tonumber(L, -1);
        else
            to = static_cast<T>(lua_tointeger(L, -1));
    }
    lua_pop(L, 1);
}

}  // namespace lunaria::federated
