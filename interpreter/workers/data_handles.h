// Handles of the data engine in Lua: userdata that hold shared pointers and so are among the owners.
#pragma once

#include <lua.hpp>
#include <string>
#include <utility>

#include "core/data/node.h"
#include "core/data/records.h"
#include "core/data/transform.h"

namespace lunaria {

template <class T>
void push_handle(lua_State* L, T value, const char* type, int user_values = 0) {
    void* place = lua_newuserdatauv(L, sizeof(T), user_values);
    new (place) T(std::move(value));
    luaL_setmetatable(L, type);
}

template <class T>
T& handle_at(lua_State* L, int index, const char* type) {
    return *static_cast<T*>(luaL_checkudata(L, index, type));
}

// The finalizer of handles whose type is upvalue 1. A program may call it too, with any value, and more than once.
template <class T>
int release_handle(lua_State* L) {
    auto* handle = static_cast<T*>(luaL_testudata(L, 1, lua_tostring(L, lua_upvalueindex(1))));
    if (!handle) return 0;
    lua_pushnil(L);
    lua_setmetatable(L, 1);
    handle->~T();
    return 0;
}

// A metatable whose handles end by `release`, release_handle of their class.
void make_handle_type(lua_State* L, const char* name, lua_CFunction release);

inline constexpr const char* kTransformHandle = "lunaria.data.transform";
inline constexpr const char* kRecordsHandle = "lunaria.data.records";
inline constexpr const char* kSamplerHandle = "lunaria.data.sampler";
// Vocabularies and models of text; transforms that use them are owners too.
using SharedObject = std::shared_ptr<const void>;
inline constexpr const char* kWordsHandle = "lunaria.steps.words";
inline constexpr const char* kPiecesHandle = "lunaria.steps.pieces";

inline void push_transform(lua_State* L, data::TransformPtr transform) {
    push_handle(L, std::move(transform), kTransformHandle);
}
inline const data::TransformPtr& transform_at(lua_State* L, int index) {
    return handle_at<data::TransformPtr>(L, index, kTransformHandle);
}

inline uint64_t seed_at(lua_State* L, int index) { return static_cast<uint64_t>(luaL_checkinteger(L, index)); }
std::string text_at(lua_State* L, int index);
// A list of texts.
data::Names names_at(lua_State* L, int index);
// Positions counted from 0, below `count`.
std::vector<size_t> positions_at(lua_State* L, int index, size_t count);
// An integer of at least that.
int64_t least_at(lua_State* L, int index, int64_t least);
// A text, a tensor, a number or a boolean (as a tensor), or a list of texts; `where` and `what` are for messages.
Value data_value_at(lua_State* L, int index, std::string_view where, std::string_view what);
// The tensor's present value, which a later write to the tensor does not change, in host memory.
Value data_value_of(const Tensor& tensor);

// Functions of the module "lunaria.data", by files.
void bind_data_sources(lua_State* L);
void bind_mindrecord(lua_State* L);

}  // namespace lunaria
