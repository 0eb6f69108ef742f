// The tensor handle: properties, methods, operators, indexing, printing.
#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/interrupt.h"
#include "core/base/spelling.h"
#include "core/parallel/laid.h"
#include "core/tensor/device.h"
#include "core/tensor/element.h"
#include "core/tensor/tensor_text.h"
#include "core/tensor/turned.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/bindings/parallel_layout.h"
#include "interpreter/protect.h"
#include "interpreter/values/operators.h"
#include "interpreter/values/parameter.h"
#include "interpreter/values/table_tensor.h"
#include "interpreter/values/tensor_index.h"
#include "interpreter/values/tensor_methods.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

struct Property {
    std::string_view name;
    void (*push)(lua_State*, const Tensor&);
};

Tensor transposed(const Tensor& given, std::string_view name, bool last_two) {
    const Tensor t = row_major(given);
    const int rank = t.rank();
    if (last_two && rank < 2) throw shape_error(name, str("needs two axes or more, the tensor has shape ", t.shape()));
    Shape shape = t.shape(), strides = t.strides();
    const int first = last_two ? rank - 2 : 0;
    for (int i = first, j = rank - 1; i < j; ++i, --j) {
        std::swap(shape[i], shape[j]);
        std::swap(strides[i], strides[j]);
    }
    return t.view(shape, strides);
}

constexpr Property kProperties[] = {
    {"shape", [](lua_State* L, const Tensor& t) { push(L, t.shape()); }},
    {"dtype", [](lua_State* L, const Tensor& t) { push(L, t.dtype()); }},
    {"ndim", [](lua_State* L, const Tensor& t) { lua_pushinteger(L, t.rank()); }},
    {"size", [](lua_State* L, const Tensor& t) { lua_pushinteger(L, t.size()); }},
    {"T", [](lua_State* L, const Tensor& t) { push(L, transposed(t, "T", false)); }},
    {"mT", [](lua_State* L, const Tensor& t) { push(L, transposed(t, "mT", true)); }},
    {"mH",
     [](lua_State* L, const Tensor& t) {
         if (is_complex(t.dtype())) throw dtype_error("mH", "complex tensors have no view of their conjugate");
         push(L, transposed(t, "mH", true));
     }},
    {"H",
     [](lua_State* L, const Tensor& t) {
         if (is_complex(t.dtype())) throw dtype_error("H", "complex tensors have no view of their conjugate");
         push(L, transposed(t, "H", true));
     }},
    {"data", [](lua_State* L, const Tensor& t) { push(L, t); }},
    {"itemsize",
     [](lua_State* L, const Tensor& t) { lua_pushinteger(L, static_cast<lua_Integer>(size_of(t.dtype()))); }},
    {"nbytes", [](lua_State* L, const Tensor& t) { lua_pushinteger(L, static_cast<lua_Integer>(t.nbytes())); }},
    {"device", [](lua_State* L, const Tensor& t) { push(L, (t.device() ? t.device() : host_device())->name()); }},
    {"layout",
     [](lua_State* L, const Tensor& t) {
         if (const Distribution* layout = parallel::layout_of(t))
             push_layout(L, *layout, t.shape());
         else
             lua_pushnil(L);
     }},
    {"strides",
     [](lua_State* L, const Tensor& t) {
         Shape bytes = shown_strides(t);
         for (int i = 0; i < bytes.rank(); ++i) bytes[i] *= static_cast<int64_t>(size_of(t.dtype()));
         push(L, bytes);
     }},
};

// Frees the tensor's memory now, before the collector finds it; also the effect of `local x <close>`.
int release(lua_State* L) {
    if (!State::of(L).memory().handle(lua_touserdata(L, 1)))
        throw argument_error("release", str("a tensor is expected, got ", describe(L, 1)));
    set_tensor(L, 1, Tensor());
    return 0;
}

// Adds the methods that are written in Lua to the table of methods (upvalue 1), once, when the first of them is asked
// for.
bool push_lua_method(lua_State* L) {
    constexpr const char* kModule = "lunaria.tensor_methods";
    lua_getglobal(L, "require");
    if (!lua_isfunction(L, -1)) return false;
    lua_pushstring(L, kModule);
    lua_call(L, 1, 1);
    const int methods = lua_gettop(L);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, methods) == LUA_TNIL) return false;
    const int found = lua_gettop(L);
    lua_pushnil(L);
    while (lua_next(L, methods)) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, lua_upvalueindex(1));
    }
    lua_settop(L, found);
    return true;
}

// x.name and x[index]. Upvalue 1: table of methods.
int index(lua_State* L) {
    TensorBody** place = State::of(L).memory().handle(lua_touserdata(L, 1));
    if (place && !*place && lua_type(L, 2) == LUA_TSTRING && std::strcmp(lua_tostring(L, 2), "release") == 0) {
        lua_pushcfunction(L, protect<release>);  // doing it twice does no harm
        return 1;
    }
    const Tensor& t = check_tensor(L, 1, "tensor");
    if (lua_type(L, 2) != LUA_TSTRING) {
        push(L, index_tensor(L, t, 2));
        return 1;
    }
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) return 1;
    size_t size = 0;
    const char* text = lua_tolstring(L, 2, &size);
    const std::string_view name(text, size);
    for (const Property& property : kProperties)
        if (property.name == name) {
            property.push(L, t);
            return 1;
        }
    if (is_slice_text(name)) {
        push(L, index_tensor(L, t, 2));
        return 1;
    }
    if (push_parameter_field(L, t, name)) return 1;
    if (push_in_place_method(L, name)) {
        // Found by its name once; next time it is in the table.
        lua_pushvalue(L, 2);
        lua_pushvalue(L, -2);
        lua_rawset(L, lua_upvalueindex(1));
        return 1;
    }
    if (push_lua_method(L)) return 1;
    std::vector<std::string_view> names;
    for (const Property& property : kProperties) names.push_back(property.name);
    lua_pushnil(L);
    while (lua_next(L, lua_upvalueindex(1))) {
        if (lua_type(L, -2) == LUA_TSTRING) names.push_back(lua_tostring(L, -2));
        lua_pop(L, 1);
    }
    const std::string hint = nearest(name, names);
    Error e = argument_error("tensor", str("a tensor has no field or method '", name, "'"));
    throw hint.empty() ? e : e.hint(hint);
}

int assign_index(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "tensor");
    if (lua_type(L, 2) == LUA_TSTRING && !is_slice_text(lua_tostring(L, 2))) {
        if (set_parameter_field(L, t, lua_tostring(L, 2), 3)) return 0;
        throw argument_error("tensor", str("the field '", lua_tostring(L, 2), "' of a tensor cannot be set"))
            .hint("elements are set through an index: x[0] = 1, x[\"1:3, 0\"] = y");
    }
    set_by_index(L, 1, 2, 3);
    return 0;
}

int length(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "#");
    if (t.rank() == 0) throw shape_error("#", "a tensor of rank 0 has no length");
    lua_pushinteger(L, t.dim(0));
    return 1;
}

int to_string(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "tostring");
    // The layout before the elements are read: that completes sums.
    const Distribution* layout = parallel::layout_of(t);
    const std::string laid = layout ? str("layout=", layout->text(t.shape()), ", ") : "";
    std::string text = t.parameter() ? parameter_text(t) : tensor_text(t);
    if (layout)
        if (const size_t at = text.find(t.parameter() ? "requires_grad=" : "value="); at != std::string::npos)
            text.insert(at, laid);
    push(L, std::string_view(text));
    return 1;
}

ExactNumber comparable(lua_State* L, int index, const char* sign, const char* op) {
    if (lua_type(L, index) == LUA_TNUMBER)
        return lua_isinteger(L, index) ? ExactNumber(lua_tointeger(L, index)) : ExactNumber(lua_tonumber(L, index));
    const Tensor* t = tensor_at(L, index);
    if (!t) throw argument_error(sign, str("a tensor cannot be compared with ", describe(L, index)));
    if (t->size() != 1)
        throw shape_error(sign, str("is a yes-or-no question, and this tensor has shape ", t->shape()))
            .hint(str("compare element by element with ops.", op, "(a, b)"));
    if (is_complex(t->dtype())) throw dtype_error(sign, "complex numbers have no order");
    return exact_element(*t, 0);
}

// Lua turns the result into a boolean, so that these are for single elements only.
int less(lua_State* L) {
    lua_pushboolean(L, comparable(L, 1, "<", "less") < comparable(L, 2, "<", "less"));
    return 1;
}

int less_equal(lua_State* L) {
    lua_pushboolean(L, comparable(L, 1, "<=", "less_equal") <= comparable(L, 2, "<=", "less_equal"));
    return 1;
}

// Lua calls this only where both are tables or both userdata, and not the same object.
int equal(lua_State* L) {
    const Tensor *a = tensor_at(L, 1), *b = tensor_at(L, 2);
    lua_pushboolean(L, a && b && same_or_equal(*a, *b));
    return 1;
}

int concat(lua_State* L) {
    const int which = tensor_at(L, 1) ? 1 : 2;
    throw argument_error("..", str("joins strings, got ", describe(L, which)))
        .hint("use tostring(x) for its text, or ops.concat({a, b}) to join tensors");
}

int call(lua_State* L) {
    throw argument_error("tensor", str("is not a function: ", describe(L, 1), " was called"))
        .hint("index with brackets: x[0], x[\"1:3\"]");
}

// Signs of the language and their operators. For the bits of integers and the truth of bools the operator decides.
constexpr std::array<std::pair<const char*, const char*>, 10> kSigns{{{"__add", "add"},
                                                                      {"__sub", "sub"},
                                                                      {"__mul", "mul"},
                                                                      {"__div", "div"},
                                                                      {"__mod", "remainder"},
                                                                      {"__pow", "pow"},
                                                                      {"__idiv", "floor_divide"},
                                                                      {"__band", "bitwise_and"},
                                                                      {"__bor", "bitwise_or"},
                                                                      {"__bxor", "bitwise_xor"}}};
constexpr std::array<std::pair<const char*, const char*>, 2> kShifts{
    {{"__shl", "bitwise_left_shift"}, {"__shr", "bitwise_right_shift"}}};
constexpr std::array<std::pair<const char*, const char*>, 2> kUnarySigns{{{"__unm", "neg"}, {"__bnot", "bitwise_not"}}};

void set_function(lua_State* L, const char* name, lua_CFunction f) {
    lua_pushcfunction(L, f);
    lua_setfield(L, -2, name);
}

}  // namespace

bool same_or_equal(const Tensor& a, const Tensor& b) {
    if (a.same_body(b)) return true;
    for (const Tensor* t : {&a, &b})
        if (t->size() != 1)
            throw shape_error("==", str("is a yes-or-no question, and this tensor has shape ", t->shape()))
                .hint("compare element by element with ops.equal(a, b); rawequal(a, b) asks whether both are the same");
    if (is_complex(a.dtype()) || is_complex(b.dtype())) {
        const Tensor x = a.to_host().cast(DType::c128), y = b.to_host().cast(DType::c128);
        return x.data<Complex128>()[0] == y.data<Complex128>()[0];
    }
    return exact_element(a, 0) == exact_element(b, 0);
}

void bind_tensors(lua_State* L) {
    // Methods: operators first, so that a method of the handle of the same name wins.
    lua_newtable(L);
    for (const auto& op : registry().all()) {
        if (!op->is_method) continue;
        push_operator(L, *op);
        for (const char* alias : op->aliases) {
            lua_pushvalue(L, -1);
            lua_setfield(L, -3, alias);
        }
        push(L, op->name());
        lua_insert(L, -2);
        lua_rawset(L, -3);
    }
    set_function(L, "release", protect<release>);
    add_tensor_methods(L);
    const int methods = lua_gettop(L);

    lua_pushvalue(L, methods);
    lua_pushcclosure(L, protect<index>, 1);
    const int index_function = lua_gettop(L);
    lua_newtable(L);
    const int metatable = lua_gettop(L);
    lua_pushvalue(L, index_function);
    lua_setfield(L, metatable, "__index");
    set_function(L, "__newindex", protect<assign_index>);
    set_function(L, "__len", protect<length>);
    set_function(L, "__tostring", protect<to_string>);
    set_function(L, "__eq", protect<equal>);
    set_function(L, "__lt", protect<less>);
    set_function(L, "__le", protect<less_equal>);
    set_function(L, "__concat", protect<concat>);
    set_function(L, "__call", protect<call>);
    set_function(L, "__close", protect<release>);
    lua_pushliteral(L, "Tensor");
    lua_setfield(L, metatable, "__name");
    auto add_sign = [&](const char* event, const char* name, bool unary) {
        const Op* op = registry().find(name);
        if (!op) return;
        unary ? push_unary_operator(L, *op) : push_operator(L, *op);
        lua_setfield(L, metatable, event);
    };
    for (auto [event, name] : kSigns) add_sign(event, name, false);
    for (auto [event, name] : kShifts) add_sign(event, name, false);
    for (auto [event, name] : kUnarySigns) add_sign(event, name, true);

    // The metatable that getmetatable shows: handles have no finalizer, but a program that calls one by hand means
    // release().
    lua_newtable(L);
    set_function(L, "__gc", protect<release>);
    lua_pushliteral(L, "Tensor");
    lua_setfield(L, -2, "__name");
    lua_pushvalue(L, index_function);
    lua_setfield(L, -2, "__index");
    lua_setfield(L, metatable, "__metatable");

    lua_pushvalue(L, metatable);
    State::of(L).tensor_metatable = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_settop(L, methods - 1);
}

}  // namespace lunaria
