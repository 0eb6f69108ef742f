#include "interpreter/values/values.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <new>
#include <utility>

#include "core/base/spelling.h"
#include "core/tensor/element.h"
#include "core/tensor/tensor_text.h"
#include "interpreter/protect.h"

namespace lunaria {

namespace {

// Registry key of the dtype objects' metatable.
constexpr const char* kDTypeMetatable = "lunaria.dtype";

// An integer, or a float with an integer value (x.size / 2) that is not so large that it is more likely a mistake.
std::optional<int64_t> integral(lua_State* L, int index) {
    if (lua_type(L, index) == LUA_TNUMBER) {
        if (!lua_isinteger(L, index) && std::abs(lua_tonumber(L, index)) >= 2147483648.0) return std::nullopt;
        int ok = 0;
        const lua_Integer i = lua_tointegerx(L, index, &ok);
        return ok ? std::optional<int64_t>(i) : std::nullopt;
    }
    if (const Tensor* t = tensor_at(L, index); t && t->size() == 1 && is_integer(t->dtype()))
        if (const Value only = element(*t, 0); only.kind() == Value::Kind::integer) return only.integer();
    return std::nullopt;
}

Value number_value(lua_State* L, int index) {
    if (lua_isinteger(L, index)) return Value(static_cast<int64_t>(lua_tointeger(L, index)));
    return Value(static_cast<double>(lua_tonumber(L, index)));
}

[[noreturn]] void wrong_kind(lua_State* L, int index, std::string_view where, std::string_view argument,
                             std::string_view wanted, std::string_view hint = {}) {
    Error e = argument_error(where, str(argument, " must be ", wanted, ", got ", describe(L, index)));
    if (!hint.empty()) throw e.hint(hint);
    throw e;
}

Value any_value(lua_State* L, int index, const Op& op, const Param& param, int depth) {
    switch (lua_type(L, index)) {
        case LUA_TNIL:
            return {};
        case LUA_TBOOLEAN:
            return Value(lua_toboolean(L, index) != 0);
        case LUA_TNUMBER:
            return number_value(L, index);
        case LUA_TSTRING: {
            size_t size = 0;
            const char* text = lua_tolstring(L, index, &size);
            return Value(std::string_view(text, size));
        }
        case LUA_TTABLE: {
            if (depth > 8) throw argument_error(op.name(), str(param.name, " is nested too deep"));
            std::vector<Value> items;
            luaL_checkstack(L, 2, "nested table");
            for (lua_Integer i = 1, n = static_cast<lua_Integer>(lua_rawlen(L, index)); i <= n; ++i) {
                lua_rawgeti(L, index, i);
                items.push_back(any_value(L, lua_gettop(L), op, param, depth + 1));
                lua_pop(L, 1);
            }
            return Value::list(std::move(items));
        }
        default:
            if (const Tensor* t = tensor_at(L, index)) return Value(*t);
            if (auto dtype = find_dtype(L, index)) return Value(*dtype);
            wrong_kind(L, index, op.name(), param.name, "a value that operators know");
    }
}

// A hint for a table at an index of the stack where one tensor is expected.
std::string_view hint_for_table(lua_State* L, int index) {
    lua_rawgeti(L, index, 1);
    const bool of_tensors = tensor_at(L, lua_gettop(L)) != nullptr;
    lua_pop(L, 1);
    return of_tensors ? "it takes one tensor: call it for each of them, or join them with ops.stack or ops.concat"
                      : "make a tensor of it: ms.tensor{...}";
}

Value tensor_value(lua_State* L, int index, std::string_view where, std::string_view argument) {
    switch (lua_type(L, index)) {
        case LUA_TNUMBER:
            return number_value(L, index);
        case LUA_TBOOLEAN:
            return Value(Tensor::scalar(DType::boolean, lua_toboolean(L, index)));
        default:
            if (const Tensor* t = tensor_at(L, index)) return Value(*t);
            wrong_kind(L, index, where, argument, "a tensor or a number",
                       lua_istable(L, index) ? hint_for_table(L, index) : "");
    }
}

Value tensors_value(lua_State* L, int index, std::string_view where, std::string_view argument) {
    if (const Tensor* t = tensor_at(L, index)) return Value::list({Value(*t)});
    if (!lua_istable(L, index)) wrong_kind(L, index, where, argument, "a table of tensors");
    std::vector<Value> items;
    for (lua_Integer i = 1, n = luaL_len(L, index); i <= n; ++i) {
        lua_geti(L, index, i);
        Value item = tensor_value(L, lua_gettop(L), where, str(argument, "[", i, "]"));
        if (item.kind() == Value::Kind::integer)
            item = Value(Tensor::scalar(item.integer()));
        else if (item.kind() == Value::Kind::number)
            item = Value(Tensor::scalar(DType::f32, item.number()));
        items.push_back(std::move(item));
        lua_pop(L, 1);
    }
    return Value::list(std::move(items));
}

// A view of few elements may be of any size; a list of its elements may not.
void check_list_size(const Tensor& t, std::string_view where, std::string_view argument) {
    constexpr int64_t kMost = int64_t{1} << 24;
    if (t.size() > kMost)
        throw value_error(where, str(argument, " holds ", t.size(), " numbers: at most ", kMost, " can be given"));
}

Value numbers_value(lua_State* L, int index, std::string_view where, std::string_view argument) {
    if (lua_type(L, index) == LUA_TNUMBER) return Value::list({number_value(L, index)});
    std::vector<Value> items;
    if (const Tensor* t = tensor_at(L, index); t && t->rank() <= 1) {
        check_list_size(*t, where, argument);
        for (int64_t i = 0; i < t->size(); ++i)
            items.push_back(is_integer(t->dtype()) ? element(*t, i) : Value(t->at(i)));
        return Value::list(std::move(items));
    }
    if (!lua_istable(L, index)) wrong_kind(L, index, where, argument, "a number or a table of numbers");
    for (lua_Integer i = 1, n = static_cast<lua_Integer>(lua_rawlen(L, index)); i <= n; ++i) {
        lua_rawgeti(L, index, i);
        if (lua_type(L, -1) != LUA_TNUMBER) wrong_kind(L, lua_gettop(L), where, str(argument, "[", i, "]"), "a number");
        items.push_back(number_value(L, -1));
        lua_pop(L, 1);
    }
    return Value::list(std::move(items));
}

Value string_value(lua_State* L, int index, const Op& op, const Param& param) {
    if (lua_type(L, index) != LUA_TSTRING) wrong_kind(L, index, op.name(), param.name, "a string");
    size_t size = 0;
    const char* text = lua_tolstring(L, index, &size);
    std::string_view given(text, size);
    if (!param.choices.empty() && std::ranges::find(param.choices, given) == param.choices.end()) {
        std::string list;
        for (std::string_view choice : param.choices) list += str(list.empty() ? "\"" : ", \"", choice, "\"");
        Error e = argument_error(op.name(), str(param.name, " must be one of ", list, ", got ", describe(L, index)));
        std::string hint = nearest(given, param.choices);
        throw hint.empty() ? e : e.hint(hint);
    }
    return Value(given);
}

int dtype_tostring(lua_State* L) {
    const auto dtype = find_dtype(L, 1);
    push(L, std::string_view(dtype ? dtype_text(*dtype) : "dtype"));
    return 1;
}

int dtype_concat(lua_State* L) {
    luaL_tolstring(L, 1, nullptr);
    luaL_tolstring(L, 2, nullptr);
    lua_concat(L, 2);
    return 1;
}

// x.shape .. " and " .. y.shape; printing; comparing.
int shape_tostring(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    std::string text = "(";
    const lua_Integer n = static_cast<lua_Integer>(lua_rawlen(L, 1));
    for (lua_Integer i = 1; i <= n; ++i) {
        lua_rawgeti(L, 1, i);
        text += str(i > 1 ? ", " : "", luaL_tolstring(L, -1, nullptr));
        lua_pop(L, 2);
    }
    text += n == 1 ? ",)" : ")";
    lua_pushstring(L, text.c_str());
    return 1;
}

int shape_equal(lua_State* L) {
    bool equal = lua_istable(L, 1) && lua_istable(L, 2) && lua_rawlen(L, 1) == lua_rawlen(L, 2);
    for (lua_Integer i = 1; equal && i <= static_cast<lua_Integer>(lua_rawlen(L, 1)); ++i) {
        lua_rawgeti(L, 1, i);
        lua_rawgeti(L, 2, i);
        equal = lua_rawequal(L, -1, -2);
        lua_pop(L, 2);
    }
    lua_pushboolean(L, equal);
    return 1;
}

}  // namespace

// The text of a field of a table, without metamethods; empty where it has none.
std::string raw_text(lua_State* L, int table, const char* field) {
    lua_pushvalue(L, table);
    lua_pushstring(L, field);
    lua_rawget(L, -2);
    std::string text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    lua_pop(L, 2);
    return text;
}

// The kind of an object by its metatable: "a cell (Dense)", "a compiled function"; empty where that does not tell.
std::string object_at(lua_State* L, int index) {
    luaL_checkstack(L, 4, nullptr);
    if (lua_istable(L, index)) {
        const std::string own = raw_text(L, index, "_name");
        if (!own.empty() && !raw_text(L, index, "_called").empty()) return "the class " + own;
    }
    if (!lua_getmetatable(L, index)) return {};
    const int meta = lua_gettop(L);
    const std::string kind = raw_text(L, meta, "_called"), of_class = raw_text(L, meta, "_name");
    std::string name = raw_text(L, meta, "__name");
    lua_pop(L, 1);
    const bool is_object = !kind.empty() && !of_class.empty();
    if (is_object) name = kind;
    if (name == LUA_FILEHANDLE) name = "file";
    constexpr std::string_view kPrefix = "lunaria.";
    if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
    std::ranges::replace(name, '.', ' ');
    if (name.empty()) return {};
    const bool vowel = std::string_view("aeiouAEIOU").find(name.front()) != std::string_view::npos;
    return str(vowel ? "an " : "a ", name, is_object ? " (" + of_class + ")" : "");
}

std::string describe(lua_State* L, int index) {
    switch (lua_type(L, index)) {
        case LUA_TNONE:
            return "nothing";
        case LUA_TNIL:
            return "nil";
        case LUA_TBOOLEAN:
            return lua_toboolean(L, index) ? "true" : "false";
        case LUA_TNUMBER:
            if (lua_isinteger(L, index)) return str("the integer ", lua_tointeger(L, index));
            return str("the number ", lua_tonumber(L, index));
        case LUA_TSTRING: {
            size_t size = 0;
            const char* text = lua_tolstring(L, index, &size);
            return str("the string '", std::string_view(text, std::min<size_t>(size, 40)), size > 40 ? "...'" : "'");
        }
        case LUA_TTABLE: {
            if (std::string object = object_at(L, index); !object.empty()) return object;
            lua_pushvalue(L, index);
            lua_pushnil(L);
            const bool empty = !lua_next(L, -2);
            lua_pop(L, empty ? 1 : 3);
            return empty ? "an empty table" : "a table";
        }
        case LUA_TUSERDATA: {
            if (TensorBody** place = State::of(L).memory().handle(lua_touserdata(L, index))) {
                if (!*place) return "a released tensor";
                return str("a tensor of shape ", (*place)->shape, " and dtype ", name_of((*place)->dtype));
            }
            if (auto dtype = find_dtype(L, index)) return str("the dtype ", name_of(*dtype));
            if (std::string object = object_at(L, index); !object.empty()) return object;
            return "an object of a C library";
        }
        default:
            return str("a ", luaL_typename(L, index));
    }
}

TensorBody** tensor_place(lua_State* L, int index) {
    TensorBody** place = State::of(L).memory().handle(lua_touserdata(L, index));
    if (place && !*place) [[unlikely]]
        throw state_error("tensor", "has been released").hint("a tensor cannot be used after x:release()");
    return place;
}

const Tensor& check_tensor(lua_State* L, int index, std::string_view where, std::string_view argument) {
    if (const Tensor* t = tensor_at(L, index)) return *t;
    if (argument == "self")
        throw argument_error(where, str("a tensor is expected before the colon, got ", describe(L, index)))
            .hint(str("call it as x:", where, "(...)"));
    wrong_kind(L, index, where, argument, "a tensor");
}

void set_tensor(lua_State* L, int index, Tensor tensor) {
    TensorBody** place = State::of(L).memory().handle(lua_touserdata(L, index));
    TensorBody* old = std::exchange(*place, tensor.release());
    if (old) Tensor::drop(old);
}

void push(lua_State* L, Tensor tensor) {
    // Each handle has a body of its own, so that writing through one does not change another. An operator may have
    // returned its operand.
    if (!tensor.is_apart()) [[unlikely]]
        tensor = tensor.apart();
    push_shared(L, std::move(tensor));
}

void push_shared(lua_State* L, Tensor tensor) {
    State& state = State::of(L);
    state.memory().push_handle(L, std::move(tensor));
    lua_rawgeti(L, LUA_REGISTRYINDEX, state.tensor_metatable);
    lua_setmetatable(L, -2);
    state.count_handle(L);
}

void push(lua_State* L, DType dtype) {
    // Registry: metatable name -> { objects by dtype }, made at the first use.
    luaL_checkstack(L, 4, nullptr);
    if (luaL_newmetatable(L, kDTypeMetatable)) {
        lua_pushcfunction(L, protect<dtype_tostring>);
        lua_setfield(L, -2, "__tostring");
        lua_pushcfunction(L, protect<dtype_concat>);
        lua_setfield(L, -2, "__concat");
        for (int i = 0; i < kDTypeCount; ++i) {
            auto* object = static_cast<DType*>(lua_newuserdatauv(L, sizeof(DType), 0));
            *object = static_cast<DType>(i);
            lua_pushvalue(L, -2);
            lua_setmetatable(L, -2);
            lua_rawseti(L, -2, i + 1);
        }
    }
    lua_rawgeti(L, -1, static_cast<int>(dtype) + 1);
    lua_remove(L, -2);
}

void push(lua_State* L, const Shape& shape) {
    luaL_checkstack(L, 4, nullptr);
    lua_createtable(L, shape.rank(), 0);
    for (int i = 0; i < shape.rank(); ++i) {
        lua_pushinteger(L, shape[i]);
        lua_rawseti(L, -2, i + 1);
    }
    if (luaL_newmetatable(L, "lunaria.shape")) {
        lua_pushcfunction(L, protect<shape_tostring>);
        lua_setfield(L, -2, "__tostring");
        lua_pushcfunction(L, protect<shape_equal>);
        lua_setfield(L, -2, "__eq");
        lua_pushcfunction(L, protect<dtype_concat>);
        lua_setfield(L, -2, "__concat");
    }
    lua_setmetatable(L, -2);
}

Tensor take_tensor(Value value) {
    // Moved into storage whose destructor never runs: the tensor takes over the reference, and nothing is counted.
    alignas(Value) std::byte storage[sizeof(Value)];
    const auto* moved = new (storage) Value(std::move(value));
    return Tensor::adopt(moved->tensor().body());
}

void push(lua_State* L, std::string_view text) { lua_pushlstring(L, text.data(), text.size()); }

void push(lua_State* L, Value value) {
    switch (value.kind()) {
        case Value::Kind::boolean:
            lua_pushboolean(L, value.boolean());
            break;
        case Value::Kind::integer:
            lua_pushinteger(L, value.integer());
            break;
        case Value::Kind::number:
            lua_pushnumber(L, value.number());
            break;
        case Value::Kind::dtype:
            push(L, value.dtype());
            break;
        case Value::Kind::string:
            push(L, std::string_view(value.string()));
            break;
        case Value::Kind::tensor:
            push(L, take_tensor(std::move(value)));
            break;
        case Value::Kind::list: {
            const auto& items = value.items();
            luaL_checkstack(L, 2, nullptr);
            lua_createtable(L, static_cast<int>(items.size()), 0);
            for (size_t i = 0; i < items.size(); ++i) {
                push(L, items[i]);
                lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
            }
            break;
        }
        default:
            lua_pushnil(L);
    }
}

namespace {
// A complex number as the list of its real and its imaginary part.
void push_parts(lua_State* L, const Tensor& tensor, int64_t index) {
    const Tensor dense = tensor.contiguous();
    const Tensor one = dense.view({1}, {1}, index).to_host();
    const Complex128 z = one.cast(DType::c128).data<Complex128>()[0];
    luaL_checkstack(L, 2, nullptr);
    lua_createtable(L, 2, 0);
    lua_pushnumber(L, z.real());
    lua_rawseti(L, -2, 1);
    lua_pushnumber(L, z.imag());
    lua_rawseti(L, -2, 2);
}
}  // namespace

void push_element(lua_State* L, const Tensor& tensor, int64_t index) {
    if (is_complex(tensor.dtype()))
        push_parts(L, tensor, index);
    else
        push(L, element(tensor, index));
}

std::optional<DType> find_dtype(lua_State* L, int index) {
    if (lua_type(L, index) == LUA_TSTRING) return parse_dtype(lua_tostring(L, index));
    if (auto* object = static_cast<DType*>(luaL_testudata(L, index, kDTypeMetatable));
        object && lua_rawlen(L, index) == sizeof(DType) && static_cast<int>(*object) < kDTypeCount)
        return *object;
    return std::nullopt;
}

std::optional<DType> dtype_at(lua_State* L, int index, std::string_view where, std::string_view argument) {
    if (lua_isnoneornil(L, index)) return std::nullopt;
    if (auto dtype = find_dtype(L, index)) return dtype;
    throw dtype_error(where,
                      str(argument, " must be a dtype such as ms.float32 or \"float32\", got ", describe(L, index)))
        .hint("dtypes are bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64");
}

int64_t integer_at(lua_State* L, int index, std::string_view where, std::string_view argument) {
    if (auto i = integral(L, index)) return *i;
    const bool large = lua_type(L, index) == LUA_TNUMBER && lua_tointeger(L, index) != 0;
    wrong_kind(L, index, where, argument, "an integer",
               large
                   ? "a float of this size is taken for a slip; math.tointeger(x) and a // b of integers give integers"
                   : "");
}

std::vector<int64_t> integers_at(lua_State* L, int index, std::string_view where, std::string_view argument) {
    if (lua_type(L, index) == LUA_TNUMBER) return {integer_at(L, index, where, argument)};
    std::vector<int64_t> result;
    if (const Tensor* t = tensor_at(L, index); t && t->rank() <= 1 && is_integer(t->dtype())) {
        check_list_size(*t, where, argument);
        for (int64_t i = 0; i < t->size(); ++i) {
            const Value one = element(*t, i);
            if (one.kind() != Value::Kind::integer)
                throw value_error(where, str(argument, " has ", one.number(), ", which is too large for an integer"));
            result.push_back(one.integer());
        }
        return result;
    }
    if (!lua_istable(L, index)) wrong_kind(L, index, where, argument, "an integer or a table of integers");
    for (lua_Integer i = 1, n = static_cast<lua_Integer>(lua_rawlen(L, index)); i <= n; ++i) {
        lua_rawgeti(L, index, i);
        result.push_back(integer_at(L, lua_gettop(L), where, str(argument, "[", i, "]")));
        lua_pop(L, 1);
    }
    return result;
}

std::string path_at(lua_State* L, int index, std::string_view where) {
    if (lua_type(L, index) != LUA_TSTRING)
        throw argument_error(where, str("path must be a string, got ", describe(L, index)));
    size_t size = 0;
    const char* text = lua_tolstring(L, index, &size);
    return {text, size};
}

Value argument_at(lua_State* L, int index, const Op& op, const Param& param) {
    if (index < 0) index = lua_gettop(L) + 1 + index;
    if (lua_isnil(L, index)) {
        if (param.optional) return {};
        if (param.has_default) return param.default_value;
    }
    switch (param.type) {
        case ArgType::same:
        case ArgType::real:
        case ArgType::tensor:
        case ArgType::index:
        case ArgType::mask:
            return tensor_value(L, index, op.name(), param.name);
        case ArgType::tensors:
            return tensors_value(L, index, op.name(), param.name);
        case ArgType::boolean:
            if (!lua_isboolean(L, index)) wrong_kind(L, index, op.name(), param.name, "true or false");
            return Value(lua_toboolean(L, index) != 0);
        case ArgType::integer:
            return Value(integer_at(L, index, op.name(), param.name));
        case ArgType::number:
        case ArgType::scalar:
            if (lua_type(L, index) == LUA_TNUMBER) return number_value(L, index);
            if (param.type == ArgType::scalar && lua_isboolean(L, index)) return Value(lua_toboolean(L, index) != 0);
            if (const Tensor* t = tensor_at(L, index); t && t->size() == 1)
                return is_integer(t->dtype()) ? element(*t, 0) : Value(t->at(0));
            wrong_kind(L, index, op.name(), param.name,
                       param.type == ArgType::scalar ? "a number or a boolean" : "a number");
        case ArgType::string:
            return string_value(L, index, op, param);
        case ArgType::dtype:
            return Value(*dtype_at(L, index, op.name(), param.name));
        case ArgType::ints:
        case ArgType::shape:
            return Value::ints(integers_at(L, index, op.name(), param.name));
        case ArgType::numbers:
            return numbers_value(L, index, op.name(), param.name);
        case ArgType::any:
            break;
    }
    return any_value(L, index, op, param, 0);
}

bool push_option(lua_State* L, int index, const char* name) {
    if (!lua_istable(L, index)) return false;
    if (lua_getfield(L, index, name) != LUA_TNIL) return true;
    lua_pop(L, 1);
    return false;
}

bool is_options(lua_State* L, int index) {
    if (!lua_istable(L, index)) return false;
    if (lua_getmetatable(L, index)) {
        lua_pop(L, 1);
        // The fields of an object or a class of the library do not name arguments.
        if (!object_at(L, index).empty()) return false;
    }
    // Any name decides, since the order of the fields differs from run to run; table.pack gives a list the field n.
    const bool list = lua_rawlen(L, index) > 0;
    bool named = false;
    lua_pushvalue(L, index);
    lua_pushnil(L);
    while (!named && lua_next(L, -2)) {
        lua_pop(L, 1);
        named = lua_type(L, -1) == LUA_TSTRING && !(list && std::string_view("n") == lua_tostring(L, -1));
    }
    lua_pop(L, named ? 2 : 1);
    return named;
}

void check_options(lua_State* L, int index, std::string_view where, std::initializer_list<std::string_view> names) {
    if (!lua_istable(L, index))
        throw argument_error(where, str("options must be a table { name = value }, got ", describe(L, index)));
    lua_pushvalue(L, index);
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pop(L, 1);
        const std::string_view key = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
        if (std::ranges::find(names, key) != names.end()) continue;
        std::string list;
        for (std::string_view name : names) list += str(list.empty() ? "" : ", ", name);
        Error e = argument_error(where, key.empty() ? str("the table of options has ", describe(L, -1), " as a name")
                                                    : str("there is no option '", key, "'; there are: ", list));
        const std::string hint = nearest(key, {names.begin(), names.size()});
        throw hint.empty() ? e : e.hint(hint);
    }
    lua_pop(L, 1);
}

}  // namespace lunaria
