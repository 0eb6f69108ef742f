// Parameters: tensors with a name and a mark whether they are trained. The tensor's body holds both
// (core/tensor/tensor.h), so that a parameter is the same parameter under every name it has in a program.
#include "backends/ascend/outline.h"
#include "core/base/printable.h"
#include "core/io/mapping.h"
#include "core/tensor/tensor_text.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/parameter.h"
#include "interpreter/values/table_tensor.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

constexpr std::string_view kWhere = "Parameter";

std::string name_at(lua_State* L, int index) {
    if (lua_type(L, index) != LUA_TSTRING)
        throw argument_error(kWhere, str("name must be a string, got ", describe(L, index)));
    return lua_tostring(L, index);
}

bool flag_at(lua_State* L, int index, std::string_view name) {
    if (!lua_isboolean(L, index))
        throw argument_error(kWhere, str(name, " must be true or false, got ", describe(L, index)));
    return lua_toboolean(L, index) != 0;
}

// ms.Parameter(data [, name [, requires_grad]]), ms.Parameter(data, {name = ..., requires_grad = ...})
int parameter(lua_State* L) {
    if (lua_gettop(L) == 0) throw argument_error(kWhere, "missing argument 1: data is expected");
    const Tensor data = tensor_from(L, 1, std::nullopt, kWhere);
    ParameterInfo info{std::string(kUnnamedParameter), true};
    if (is_options(L, 2)) {
        check_options(L, 2, kWhere, {"name", "requires_grad"});
        if (push_option(L, 2, "name")) info.name = name_at(L, -1);
        if (push_option(L, 2, "requires_grad")) info.requires_grad = flag_at(L, -1, "requires_grad");
    } else {
        if (!lua_isnoneornil(L, 2)) info.name = name_at(L, 2);
        if (!lua_isnoneornil(L, 3)) info.requires_grad = flag_at(L, 3, "requires_grad");
    }
    // Tensors of an outline have no elements; what lies in a mapped file stays there until it is written to.
    Tensor own = ascend::Outline::is_open() ? Tensor::empty(data.dtype(), data.shape())
                 : Mapping::holds(data)     ? data.apart()
                                            : data.copy();
    own.set_parameter(std::move(info));
    push(L, std::move(own));
    return 1;
}

int is_parameter(lua_State* L) {
    TensorBody** place = State::of(L).memory().handle(lua_touserdata(L, 1));
    lua_pushboolean(L, place && *place && (*place)->parameter);
    return 1;
}

// A list of parameters, checked: the weights of grad and the parameters of an optimizer.
int parameter_tuple(lua_State* L) {
    if (!lua_istable(L, 1))
        throw argument_error("ParameterTuple", str("a table of parameters is expected, got ", describe(L, 1)));
    const auto count = static_cast<lua_Integer>(lua_rawlen(L, 1));
    lua_createtable(L, static_cast<int>(count), 0);
    for (lua_Integer i = 1; i <= count; ++i) {
        lua_rawgeti(L, 1, i);
        const Tensor* t = tensor_at(L, -1);
        if (!t || !t->parameter())
            throw argument_error("ParameterTuple", str("element ", i, " must be a parameter, got ", describe(L, -1)))
                .hint("make one of a tensor with ms.Parameter(tensor, {name = \"w\"})");
        lua_rawseti(L, -2, i);
    }
    return 1;
}

}  // namespace

bool push_parameter_field(lua_State* L, const Tensor& t, std::string_view name) {
    const ParameterInfo* info = t.parameter();
    if (!info) return false;
    if (name == "name")
        push(L, std::string_view(info->name));
    else if (name == "requires_grad")
        lua_pushboolean(L, info->requires_grad);
    else if (name == "data")
        push(L, t);
    else
        return false;
    return true;
}

bool set_parameter_field(lua_State* L, const Tensor& t, std::string_view name, int index) {
    ParameterInfo* info = t.parameter();
    if (!info) return false;
    if (name == "name")
        info->name = name_at(L, index);
    else if (name == "requires_grad")
        info->requires_grad = flag_at(L, index, "requires_grad");
    else
        return false;
    return true;
}

std::string parameter_text(const Tensor& t) {
    const ParameterInfo& info = *t.parameter();
    return str("Parameter (name=", printable(info.name), ", shape=", t.shape(), ", dtype=", dtype_text(t.dtype()),
               ", requires_grad=", info.requires_grad ? "true)" : "false)");
}

void bind_parameters(lua_State* L) {
    for (auto [name, function] : {std::pair<const char*, lua_CFunction>{"Parameter", protect<parameter>},
                                  {"ParameterTuple", protect<parameter_tuple>},
                                  {"is_parameter", protect<is_parameter>}}) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
}

}  // namespace lunaria
