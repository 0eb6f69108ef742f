// ms.op of a function in a shared library (interpreter/embedding/lunaria.h gives its form).
#include <dlfcn.h>

#include <algorithm>
#include <array>

#include "core/base/address_space.h"
#include "core/base/error.h"
#include "core/custom/foreign_op.h"
#include "core/io/file.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/embedding/elements.h"
#include "interpreter/protect.h"
#include "interpreter/values/operators.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

lunaria_tensor in_c(const Op& op, const Tensor& t) {
    lunaria_tensor c{};
    c.dtype = number_in_c(t.dtype());
    c.rank = t.rank();
    if (c.dtype == LUNARIA_UNKNOWN || c.rank > LUNARIA_MAX_RANK)
        throw dtype_error(op.name(),
                          str("functions in C know no tensors of dtype ", name_of(t.dtype()), " and rank ", t.rank()));
    std::ranges::copy(t.shape().dims(), c.shape);
    c.data = t.raw();
    c.bytes = t.nbytes();
    return c;
}

void call_function(lunaria_operator* f, const KernelCall& call) {
    std::vector<lunaria_tensor> inputs, outputs;
    for (const Value& v : call.args) inputs.push_back(in_c(call.op, v.tensor()));
    for (const Tensor& t : call.out) outputs.push_back(in_c(call.op, t));
    std::array<char, 512> message{};
    if (f(inputs.data(), inputs.size(), outputs.data(), outputs.size(), message.data(), message.size()) == 0) return;
    message.back() = '\0';
    throw value_error(call.op.name(), message[0] ? message.data() : "the function of the shared library failed");
}

// The library stays open: operators and graphs may outlive everything that names them.
ForeignOp::Function function_of(void* library, const char* path, const char* symbol) {
    auto* f = reinterpret_cast<lunaria_operator*>(dlsym(library, symbol));
    if (!f) throw argument_error("op", str("there is no function ", symbol, " in ", path));
    return [f](const KernelCall& call) { call_function(f, call); };
}

// {leading = , "n", "m"}
ForeignOp::Axes axes_at(lua_State* L, int index) {
    index = lua_absindex(L, index);
    luaL_checktype(L, index, LUA_TTABLE);
    ForeignOp::Axes axes;
    lua_getfield(L, index, "leading");
    axes.leading = lua_toboolean(L, -1);
    lua_pop(L, 1);
    for (lua_Integer i = 1, n = static_cast<lua_Integer>(lua_rawlen(L, index)); i <= n; ++i) {
        lua_rawgeti(L, index, i);
        axes.sizes.emplace_back(luaL_checkstring(L, -1));
        lua_pop(L, 1);
    }
    return axes;
}

}  // namespace

// define(name, doc, content, names of inputs, axes of inputs, axes of the output, path, symbol[, symbol of the
// gradient])
int define_foreign_op(lua_State* L) {
    const char *path = luaL_checkstring(L, 7), *symbol = luaL_checkstring(L, 8),
               *gradient = luaL_optstring(L, 9, nullptr);
    const std::string name = luaL_checkstring(L, 1);
    if (registry().find(name)) throw argument_error("op", str("there is an operator '", name, "' in ms.ops"));
    std::vector<ForeignOp::Input> inputs;
    luaL_checktype(L, 4, LUA_TTABLE);
    luaL_checktype(L, 5, LUA_TTABLE);
    for (lua_Integer i = 1, n = static_cast<lua_Integer>(lua_rawlen(L, 4)); i <= n; ++i) {
        lua_rawgeti(L, 4, i);
        lua_rawgeti(L, 5, i);
        inputs.push_back({luaL_checkstring(L, -2), axes_at(L, -1)});
        lua_pop(L, 2);
    }
    // The system's loader would wait for the other end of a pipe.
    if (std::string_view(path).find('/') != std::string_view::npos) open_source(path);
    constexpr size_t kRoom = size_t{32} << 20;
    std::string why;
    void* const library = open_library(path, RTLD_NOW | RTLD_LOCAL, kRoom, why);
    if (!library) throw file_error(path, "cannot be opened as a shared library: " + why);
    ForeignOp::Function function = function_of(library, path, symbol);
    ForeignOp::Function back = gradient ? function_of(library, path, gradient) : ForeignOp::Function();
    push_operator(L, ForeignOp::define(name, luaL_checkstring(L, 2), luaL_checkstring(L, 3), std::move(inputs),
                                       axes_at(L, 6), std::move(function), std::move(back)));
    return 1;
}

}  // namespace lunaria
