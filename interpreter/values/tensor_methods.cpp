#include "interpreter/values/tensor_methods.h"

#include <algorithm>
#include <cstring>

#include "core/tensor/element.h"
#include "core/tensor/tensor_text.h"
#include "core/tensor/turned.h"
#include "interpreter/protect.h"
#include "interpreter/state.h"
#include "interpreter/values/devices.h"
#include "interpreter/values/operators.h"
#include "interpreter/values/table_tensor.h"
#include "interpreter/values/values.h"
#include "jit/vm/tensor_parts.h"

namespace lunaria {

namespace {

int item(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "item");
    if (lua_gettop(L) == 1) {
        expect_one_element(t);
        push_element(L, t, 0);
        return 1;
    }
    if (lua_gettop(L) - 1 != t.rank())
        throw index_error("item", str(lua_gettop(L) - 1, " indices for a tensor of shape ", t.shape()));
    int64_t flat = 0;
    for (int axis = 0; axis < t.rank(); ++axis) {
        const int64_t given = integer_at(L, axis + 2, "item", "index"), n = t.dim(axis);
        if (given < -n || given >= n)
            throw index_error("item", str("index ", given, " is out of range for axis ", axis, " with size ", n));
        flat = flat * n + (given < 0 ? given + n : given);
    }
    push_element(L, t, flat);
    return 1;
}

int to_table(lua_State* L) {
    push_table(L, check_tensor(L, 1, "tolist"));
    return 1;
}

// The elements of a table of numbers, in brackets.
int array_text(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    push(L, std::string_view(elements_text(tensor_from(L, 1, std::nullopt, "tostring"))));
    return 1;
}

// x:asnumpy(): nested tables, each of which prints its numbers.
void mark_arrays(lua_State* L, int index, int rank) {
    luaL_checkstack(L, 4, "nested table");
    for (lua_Integer i = 1, n = rank > 1 ? static_cast<lua_Integer>(lua_rawlen(L, index)) : 0; i <= n; ++i) {
        lua_rawgeti(L, index, i);
        mark_arrays(L, lua_gettop(L), rank - 1);
        lua_pop(L, 1);
    }
    if (luaL_newmetatable(L, "lunaria.array")) {
        lua_pushcfunction(L, protect<array_text>);
        lua_setfield(L, -2, "__tostring");
    }
    lua_setmetatable(L, index);
}

int to_array(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "asnumpy");
    push_table(L, t);
    if (t.rank() > 0) mark_arrays(L, lua_gettop(L), t.rank());
    return 1;
}

int rank(lua_State* L) {
    lua_pushinteger(L, check_tensor(L, 1, "dim").rank());
    return 1;
}

int element_count(lua_State* L) {
    lua_pushinteger(L, check_tensor(L, 1, "numel").size());
    return 1;
}

// The tensor of a method that makes another one of the same size; garbage is collected first if memory is short.
const Tensor& to_copy(lua_State* L, const char* method) {
    const Tensor& t = check_tensor(L, 1, method);
    State::of(L).pace(L);
    return t;
}

int copy(lua_State* L) {
    push(L, to_copy(L, "copy").copy());
    return 1;
}

int contiguous(lua_State* L) {
    const Tensor& t = to_copy(L, "contiguous");
    push(L, is_turned(t) ? t : t.contiguous());
    return 1;
}

int is_contiguous(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "is_contiguous");
    lua_pushboolean(L, t.is_contiguous() || is_turned(t));
    return 1;
}

// x:astype(dtype), x:to(dtype or device), x:type_as(other)
int convert(lua_State* L, const char* method) {
    const Tensor& t = to_copy(L, method);
    if (const Tensor* other = tensor_at(L, 2)) {
        push(L, t.cast(other->dtype()));
        return 1;
    }
    if (lua_type(L, 2) == LUA_TSTRING && !find_dtype(L, 2)) {
        if (device_named(L, 2)) {
            push(L, t.to(place_of(device_at(L, 2, method, "device"))));
            return 1;
        }
        if (std::string_view(method) == "to") {
            std::string names;
            for (const Device* device : usable_devices()) names += str(names.empty() ? "" : ", ", device->name());
            throw value_error(method,
                              str("'", lua_tostring(L, 2),
                                  "' is neither a dtype such as \"float32\" nor a device; devices are: ", names));
        }
    }
    const auto dtype = dtype_at(L, 2, method);
    if (!dtype) throw argument_error(method, "missing argument 1: dtype is expected");
    push(L, t.cast(*dtype));
    return 1;
}

int astype(lua_State* L) { return convert(L, "astype"); }
int to(lua_State* L) { return convert(L, "to"); }
int type_as(lua_State* L) { return convert(L, "type_as"); }

template <DType T>
int cast_to(lua_State* L) {
    push(L, to_copy(L, "astype").cast(T));
    return 1;
}

template <bool (*Question)(DType)>
int ask_dtype(lua_State* L) {
    lua_pushboolean(L, Question(check_tensor(L, 1, "dtype").dtype()));
    return 1;
}

int stride(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "stride");
    const Strides strides = shown_strides(t);
    if (lua_isnoneornil(L, 2)) {
        push(L, strides);
        return 1;
    }
    lua_pushinteger(L, strides[normal_axis("stride", integer_at(L, 2, "stride", "axis"), t.rank())]);
    return 1;
}

int storage_offset(lua_State* L) {
    lua_pushinteger(L, check_tensor(L, 1, "storage_offset").offset());
    return 1;
}

int data_address(lua_State* L) {
    const Tensor t = row_major(check_tensor(L, 1, "data_ptr"));
    lua_pushinteger(L, static_cast<lua_Integer>(reinterpret_cast<uintptr_t>(t.data<char>())));
    return 1;
}

int bytes(lua_State* L) {
    const Tensor t = check_tensor(L, 1, "get_bytes").to_host().contiguous();
    push(L, std::string_view(t.data<char>(), t.nbytes()));
    return 1;
}

// All elements of the memory that the tensor and its views share, in order.
Tensor whole_storage(lua_State* L, const char* method) {
    const Tensor t = row_major(check_tensor(L, 1, method));
    const auto count = static_cast<int64_t>(t.body()->storage->bytes / size_of(t.dtype()));
    return t.view({count}, {1}, -t.offset());
}

int storage(lua_State* L) {
    push(L, whole_storage(L, "storage"));
    return 1;
}

int untyped_storage(lua_State* L) {
    const Tensor whole = whole_storage(L, "untyped_storage").to_host();
    const Tensor all = Tensor::empty(DType::u8, {static_cast<int64_t>(whole.nbytes())});
    std::memcpy(all.data<char>(), whole.data<char>(), all.nbytes());
    push(L, all);
    return 1;
}

std::optional<DType> dtype_option(lua_State* L, int index, std::string_view where) {
    if (is_options(L, index)) {
        check_options(L, index, where, {"dtype"});
        push_option(L, index, "dtype");
        return dtype_at(L, -1, where);
    }
    return dtype_at(L, index, where);
}

// Sizes in a table or spelled out from index 2; `next` is the index after them.
Shape sizes(lua_State* L, std::string_view where, DType dtype, int& next) {
    std::vector<int64_t> result;
    next = 2;
    if (lua_isinteger(L, 2)) {
        while (lua_isinteger(L, next)) result.push_back(lua_tointeger(L, next++));
    } else {
        result = integers_at(L, next++, where, "shape");
    }
    return checked_shape(where, result, size_of(dtype));
}

int new_zeros(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "new_zeros");
    int next = 0;
    const Shape shape = sizes(L, "new_zeros", DType::f64, next);
    push(L, Tensor::zeros(dtype_option(L, next, "new_zeros").value_or(t.dtype()), shape).to(t.device()));
    return 1;
}

int new_ones(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "new_ones");
    int next = 0;
    const Shape shape = sizes(L, "new_ones", DType::f64, next);
    push(L, Tensor::full(dtype_option(L, next, "new_ones").value_or(t.dtype()), shape, 1.0).to(t.device()));
    return 1;
}

int new_full(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "new_full");
    const Shape shape = checked_shape("new_full", integers_at(L, 2, "new_full", "size"));
    if (!lua_isnumber(L, 3)) throw argument_error("new_full", str("fill_value must be a number, got ", describe(L, 3)));
    const DType dtype = dtype_option(L, 4, "new_full").value_or(t.dtype());
    push(L, Tensor::full(dtype, shape, lua_tonumber(L, 3)).to(t.device()));
    return 1;
}

int new_tensor(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "new_tensor");
    push(L, tensor_from(L, 2, dtype_option(L, 3, "new_tensor").value_or(t.dtype()), "new_tensor").to(t.device()));
    return 1;
}

// The value at `index` as a tensor that may replace `t` element by element.
Tensor broadcast_like(lua_State* L, int index, const Tensor& t, std::string_view where) {
    // Numbers are float32 by default, which would show in float64.
    const auto read_as = t.dtype() == DType::f64 ? std::optional(DType::f64) : std::nullopt;
    const Tensor source = tensor_from(L, index, read_as, where).cast(t.dtype()).to(t.device());
    if (source.shape() == t.shape()) return source;
    if (source.rank() > t.rank() || !(broadcast(where, source.shape(), t.shape()) == t.shape()))
        throw shape_error(where, str("values of shape ", source.shape(), " do not fit a tensor of shape ", t.shape()));
    Strides strides;
    strides.resize(t.rank(), 0);
    for (int i = 0; i < source.rank(); ++i)
        if (source.dim(i) != 1) strides[t.rank() - source.rank() + i] = source.strides()[i];
    return source.view(t.shape(), strides);
}

// The handle's own body takes the new value, so that a parameter stays a parameter.
void become(lua_State* L, int index, const Tensor& value) {
    reinterpret_cast<Tensor&>(*tensor_place(L, index)).become(value);
}

int fill_in_place(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "fill_");
    const Tensor value = tensor_from(L, 2, std::nullopt, "fill_");
    if (value.size() != 1) throw shape_error("fill_", str("value must be one number, it has shape ", value.shape()));
    become(L, 1, broadcast_like(L, 2, t, "fill_").copy());
    lua_settop(L, 1);
    return 1;
}

int zero_in_place(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "zero_");
    become(L, 1, Tensor::zeros(t.dtype(), t.shape()).to(t.device()));
    lua_settop(L, 1);
    return 1;
}

int copy_in_place(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "copy_");
    become(L, 1, broadcast_like(L, 2, t, "copy_").copy());
    lua_settop(L, 1);
    return 1;
}

int set_dtype(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "set_dtype");
    const auto dtype = dtype_at(L, 2, "set_dtype");
    if (!dtype) throw argument_error("set_dtype", "missing argument 1: dtype is expected");
    become(L, 1, t.cast(*dtype));
    lua_settop(L, 1);
    return 1;
}

// for i, row in x:iter(): rows by their index from 0. Control value: the index before.
int next_row(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "iter");
    const int64_t i = lua_isnil(L, 2) ? 0 : lua_tointeger(L, 2) + 1;
    if (t.rank() == 0 || i >= t.dim(0)) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, i);
    if (t.rank() == 1) {
        // Elements of a vector are returned as numbers.
        push_element(L, t, i);
        return 2;
    }
    push(L, part_of(t, 0, i));
    return 2;
}

int iterate(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "iter");
    if (t.rank() == 0) throw shape_error("iter", "a tensor of rank 0 has no rows");
    lua_pushcfunction(L, protect<next_row>);
    // A handle of its own: writing to x in the loop does not change the iterated values.
    push(L, t);
    lua_pushnil(L);
    return 3;
}

int in_place(lua_State* L) {
    const Op& op = *static_cast<const Op*>(lua_touserdata(L, lua_upvalueindex(1)));
    const std::string name = str(op.name(), "_");
    const Tensor old = check_tensor(L, 1, name);
    const int results = call_operator(L, op);
    const Tensor* value = results == 1 ? tensor_at(L, -1) : nullptr;
    if (!value) throw argument_error(name, "the operator does not give one tensor, so that it cannot be put in place");
    if (!(value->shape() == old.shape()))
        throw shape_error(
            name, str("the result has shape ", value->shape(), ", which does not fit in place of ", old.shape()))
            .hint(str("use x = x:", op.name(), "(...)"));
    if (!vm::fits_in_place(old, *value))
        throw dtype_error(name,
                          str("the result is ", name_of(value->dtype()), " and the tensor is ", name_of(old.dtype())))
            .hint(str("use x = x:", op.name(), "(...)"));
    become(L, 1, value->cast(old.dtype()));
    lua_settop(L, 1);
    return 1;
}

int value(lua_State* L) {
    push(L, check_tensor(L, 1, "value"));
    return 1;
}

int set_data(lua_State* L) {
    check_tensor(L, 1, "set_data");
    const Tensor data = tensor_from(L, 2, std::nullopt, "set_data");
    reinterpret_cast<Tensor&>(*tensor_place(L, 1)).assign("set_data", data);
    lua_settop(L, 1);
    return 1;
}

// A plain tensor has no such property: grad differentiates by any of its arguments.
int requires_grad(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "requires_grad_");
    if (ParameterInfo* info = t.parameter())
        info->requires_grad = !lua_isboolean(L, 2) || lua_toboolean(L, 2);
    else if (lua_isboolean(L, 2) && !lua_toboolean(L, 2))
        throw argument_error("requires_grad_", "a tensor cannot be excluded from gradients for good")
            .hint("use ops.stop_gradient(x) where the gradient is to end");
    lua_settop(L, 1);
    return 1;
}

// Calls the operator with the condition first, its first parameter: x:where(condition, other).
int choose(lua_State* L, const char* name) {
    check_tensor(L, 1, name);
    check_tensor(L, 2, name, "condition");
    if (lua_gettop(L) != 3)
        throw argument_error(name, str("takes a condition and the other value, got ", lua_gettop(L) - 1, " arguments"));
    lua_insert(L, 1);  // other, x, condition
    lua_insert(L, 1);  // condition, other, x
    lua_insert(L, 2);  // condition, x, other
    return call_operator(L, registry().get("where"));
}

int where(lua_State* L) { return choose(L, "where"); }

// x:select(axis, index): one slice, as a view; x:select(condition, other): as where.
int select(lua_State* L) {
    const Tensor& t = check_tensor(L, 1, "select");
    if (tensor_at(L, 2)) return choose(L, "select");
    const int axis = normal_axis("select", integer_at(L, 2, "select", "axis"), t.rank());
    const int64_t i = integer_at(L, 3, "select", "index"), n = t.dim(axis);
    if (i < -n || i >= n)
        throw index_error("select", str("index ", i, " is out of range for axis ", axis, " with size ", n));
    push(L, part_of(t, axis, i < 0 ? i + n : i));
    return 1;
}

// Draws numbers for every element: x:uniform_(from, to), x:normal_(mean, std), x:random_(from, to).
int fill_with_random(lua_State* L, const char* method, const char* name, Value first, Value second) {
    const Tensor& t = check_tensor(L, 1, method);
    for (int i = 2; i <= 3; ++i)
        if (!lua_isnoneornil(L, i)) {
            if (lua_type(L, i) != LUA_TNUMBER)
                throw argument_error(method, str("argument ", i - 1, " must be a number, got ", describe(L, i)));
            (i == 2 ? first : second) = lua_isinteger(L, i) ? Value(static_cast<int64_t>(lua_tointeger(L, i)))
                                                            : Value(static_cast<double>(lua_tonumber(L, i)));
        }
    Builder& b = eager_builder();
    const Value shape = Value::ints(t.shape());
    const bool shape_first = registry().get(name).signature.params[0].type == ArgType::shape;
    const Expr drawn = shape_first ? b.call(name, {shape, first, second}) : b.call(name, {first, second, shape});
    become(L, 1, drawn.value().tensor().cast(t.dtype()));
    lua_settop(L, 1);
    return 1;
}

int uniform_in_place(lua_State* L) { return fill_with_random(L, "uniform_", "uniform", Value(0.0), Value(1.0)); }
int normal_in_place(lua_State* L) { return fill_with_random(L, "normal_", "normal", Value(0.0), Value(1.0)); }
int random_in_place(lua_State* L) {
    // As many values as the dtype holds exactly, up to 2^24.
    return fill_with_random(L, "random_", "randint", Value(0), Value(int64_t{1} << 24));
}

constexpr std::pair<const char*, lua_CFunction> kMethods[] = {
    {"item", protect<item>},
    {"tolist", protect<to_table>},
    {"totable", protect<to_table>},
    {"asnumpy", protect<to_array>},
    {"numpy", protect<to_array>},
    {"dim", protect<rank>},
    {"ndimension", protect<rank>},
    {"numel", protect<element_count>},
    {"nelement", protect<element_count>},
    {"copy", protect<copy>},
    {"clone", protect<copy>},
    {"contiguous", protect<contiguous>},
    {"is_contiguous", protect<is_contiguous>},
    {"astype", protect<astype>},
    {"to", protect<to>},
    {"type_as", protect<type_as>},
    {"bool", protect<cast_to<DType::boolean>>},
    {"byte", protect<cast_to<DType::u8>>},
    {"short", protect<cast_to<DType::i16>>},
    {"int", protect<cast_to<DType::i32>>},
    {"long", protect<cast_to<DType::i64>>},
    {"half", protect<cast_to<DType::f16>>},
    {"bfloat16", protect<cast_to<DType::bf16>>},
    {"float", protect<cast_to<DType::f32>>},
    {"double", protect<cast_to<DType::f64>>},
    {"is_floating_point", protect<ask_dtype<is_float>>},
    {"is_complex", protect<ask_dtype<is_complex>>},
    {"stride", protect<stride>},
    {"storage_offset", protect<storage_offset>},
    {"data_ptr", protect<data_address>},
    {"get_bytes", protect<bytes>},
    {"storage", protect<storage>},
    {"untyped_storage", protect<untyped_storage>},
    {"to_dlpack", protect<to_dlpack>},
    {"new_zeros", protect<new_zeros>},
    {"new_empty", protect<new_zeros>},
    {"new_ones", protect<new_ones>},
    {"new_full", protect<new_full>},
    {"new_tensor", protect<new_tensor>},
    {"fill_", protect<fill_in_place>},
    {"zero_", protect<zero_in_place>},
    {"copy_", protect<copy_in_place>},
    {"set_dtype", protect<set_dtype>},
    {"iter", protect<iterate>},
    {"value", protect<value>},
    {"set_data", protect<set_data>},
    {"requires_grad_", protect<requires_grad>},
    {"where", protect<where>},
    {"select", protect<select>},
    {"uniform_", protect<uniform_in_place>},
    {"normal_", protect<normal_in_place>},
    {"random_", protect<random_in_place>},
};

}  // namespace

void add_tensor_methods(lua_State* L) {
    for (auto [name, function] : kMethods) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    // A tensor that is not dense is copied by reshape, so that view always works. `repeat` is a reserved word, but a
    // key.
    for (auto [method, name] :
         {std::pair<const char*, const char*>{"view", "reshape"}, {"repeat_", "tile"}, {"repeat", "tile"}})
        if (const Op* op = registry().find(name)) {
            push_operator(L, *op);
            lua_setfield(L, -2, method);
        }
}

bool push_in_place_method(lua_State* L, std::string_view name) {
    if (name.size() < 2 || name.back() != '_') return false;
    const Op* op = registry().find(name.substr(0, name.size() - 1));
    if (!op || !op->is_method) return false;
    lua_pushlightuserdata(L, const_cast<Op*>(op));
    lua_pushcclosure(L, protect<in_place>, 1);
    return true;
}

const Op* in_place_operator_at(lua_State* L, int index) {
    if (lua_tocfunction(L, index) != protect<in_place>) return nullptr;
    lua_getupvalue(L, index, 1);
    const auto* op = static_cast<const Op*>(lua_touserdata(L, -1));
    lua_pop(L, 1);
    return op;
}

}  // namespace lunaria
