// ONNX files as tables, for lunaria/onnx/, and tables as ONNX files.
//
// A model is {ir_version, producer, opsets = {domain = version}, graph, functions}, a graph {name, nodes, initializers
// =
// {{name, value}}, inputs, outputs}, a node {op, domain, overload, name, inputs, outputs, attributes = {name = {kind,
// value, ref}}}, an input or output {name, type}, a type {kind, dtype, shape, inner}. Sizes that are not fixed are
// names or false.
#include "core/io/inside.h"
#include "core/io/onnx.h"
#include "interpreter/bindings/draft.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/fields.h"

namespace lunaria {

namespace {

using namespace onnx;

constexpr const char* kKinds[] = {"none",  "number",  "integer",  "string",  "tensor",
                                  "graph", "numbers", "integers", "strings", "other"};
constexpr const char* kTypeKinds[] = {"unknown", "tensor", "sequence", "optional", "map", "sparse"};

template <class List, class Push>
void push_list(lua_State* L, const List& list, const Push& push_item) {
    luaL_checkstack(L, 8, "ONNX model");
    lua_createtable(L, static_cast<int>(std::min<size_t>(list.size(), 1 << 20)), 0);
    lua_Integer i = 0;
    for (const auto& item : list) {
        push_item(item);
        lua_rawseti(L, -2, ++i);
    }
}

void push_texts(lua_State* L, const std::vector<std::string>& list) {
    push_list(L, list, [&](const std::string& s) { push(L, std::string_view(s)); });
}
void set_texts(lua_State* L, const char* field, const std::vector<std::string>& list) {
    push_texts(L, list);
    lua_setfield(L, -2, field);
}

void push_type(lua_State* L, const TypeEntry& t) {
    luaL_checkstack(L, 8, "ONNX type");
    lua_newtable(L);
    set_text(L, "kind", kTypeKinds[static_cast<int>(t.kind)]);
    if (t.kind == TypeEntry::Kind::tensor) {
        const std::string_view name = type_name(t.element);
        set_text(L, "dtype", name.empty() ? str("type ", t.element) : std::string(name));
        lua_pushboolean(L, dtype_of(t.element).has_value());
        lua_setfield(L, -2, "known");
    }
    if (t.shape) {
        push_list(L, *t.shape, [&](const TypeEntry::Dim& d) {
            if (d.size >= 0)
                lua_pushinteger(L, d.size);
            else if (!d.name.empty())
                push(L, std::string_view(d.name));
            else
                lua_pushboolean(L, 0);
        });
        lua_setfield(L, -2, "shape");
    }
    if (!t.inner.empty()) {
        push_type(L, t.inner[0]);
        lua_setfield(L, -2, "inner");
    }
}

void push_values(lua_State* L, const std::vector<ValueInfo>& list) {
    push_list(L, list, [&](const ValueInfo& v) {
        lua_newtable(L);
        set_text(L, "name", v.name);
        push_type(L, v.type);
        lua_setfield(L, -2, "type");
    });
}

void push_graph(lua_State* L, const Graph& g);

void push_attribute_value(lua_State* L, const Attribute& a) {
    using Kind = Attribute::Kind;
    switch (a.kind) {
        case Kind::number:
            return lua_pushnumber(L, a.numbers.empty() ? 0 : a.numbers[0]);
        case Kind::integer:
            return lua_pushinteger(L, a.integers.empty() ? 0 : a.integers[0]);
        case Kind::string:
            return push(L, std::string_view(a.strings.empty() ? "" : a.strings[0]));
        case Kind::tensor:
            if (a.tensors.empty()) return lua_pushnil(L);
            return push(L, a.tensors[0].value);
        case Kind::graph:
            if (a.graphs.empty()) return lua_pushnil(L);
            return push_graph(L, a.graphs[0]);
        case Kind::numbers:
            return push_list(L, a.numbers, [&](double d) { lua_pushnumber(L, d); });
        case Kind::integers:
            return push_list(L, a.integers, [&](int64_t i) { lua_pushinteger(L, i); });
        case Kind::strings:
            return push_texts(L, a.strings);
        default:
            return lua_pushnil(L);
    }
}

void push_attribute(lua_State* L, const Attribute& a) {
    lua_newtable(L);
    set_text(L, "kind", kKinds[static_cast<int>(a.kind)]);
    if (!a.reference.empty()) set_text(L, "ref", a.reference);
    push_attribute_value(L, a);
    lua_setfield(L, -2, "value");
}

void push_attributes(lua_State* L, const std::vector<Attribute>& list) {
    luaL_checkstack(L, 8, "ONNX model");
    lua_newtable(L);
    for (const Attribute& a : list) {
        push(L, std::string_view(a.name));
        push_attribute(L, a);
        lua_rawset(L, -3);
    }
}

void push_node(lua_State* L, const Node& n) {
    luaL_checkstack(L, 8, "ONNX model");
    lua_newtable(L);
    set_text(L, "op", n.op);
    set_text(L, "domain", n.domain);
    set_text(L, "overload", n.overload);
    set_text(L, "name", n.name);
    set_texts(L, "inputs", n.inputs);
    set_texts(L, "outputs", n.outputs);
    push_attributes(L, n.attributes);
    lua_setfield(L, -2, "attributes");
}

void push_graph(lua_State* L, const Graph& g) {
    luaL_checkstack(L, 8, "ONNX model");
    lua_newtable(L);
    set_text(L, "name", g.name);
    push_list(L, g.nodes, [&](const Node& n) { push_node(L, n); });
    lua_setfield(L, -2, "nodes");
    push_list(L, g.initializers, [&](const onnx::NamedTensor& t) {
        lua_newtable(L);
        set_text(L, "name", t.name);
        push(L, t.value);
        lua_setfield(L, -2, "value");
    });
    lua_setfield(L, -2, "initializers");
    push_values(L, g.inputs);
    lua_setfield(L, -2, "inputs");
    push_values(L, g.outputs);
    lua_setfield(L, -2, "outputs");
}

void push_opsets(lua_State* L, const std::vector<Opset>& list) {
    lua_newtable(L);
    for (const Opset& o : list) {
        push(L, std::string_view(o.domain));
        lua_pushinteger(L, o.version);
        lua_rawset(L, -3);
    }
    lua_setfield(L, -2, "opsets");
}

// read(path) -> the model as a table
int read(lua_State* L) {
    const std::string path = path_at(L, 1, "load");
    const Model m = read_model(*open_source(path), folder_of(path));
    lua_newtable(L);
    lua_pushinteger(L, m.ir_version);
    lua_setfield(L, -2, "ir_version");
    set_text(L, "producer", m.producer);
    push_opsets(L, m.opsets);
    push_graph(L, *m.graph);
    lua_setfield(L, -2, "graph");
    push_list(L, m.functions, [&](const Function& f) {
        lua_newtable(L);
        set_text(L, "name", f.name);
        set_text(L, "domain", f.domain);
        set_text(L, "overload", f.overload);
        set_texts(L, "inputs", f.inputs);
        set_texts(L, "outputs", f.outputs);
        set_texts(L, "parameters", f.attributes);
        push_attributes(L, f.defaults);
        lua_setfield(L, -2, "defaults");
        push_list(L, f.nodes, [&](const Node& n) { push_node(L, n); });
        lua_setfield(L, -2, "nodes");
        push_opsets(L, f.opsets);
    });
    lua_setfield(L, -2, "functions");
    return 1;
}

constexpr std::string_view kWhere = "export";

std::string text_field(lua_State* L, int index, const char* field) {
    std::string text;
    size_t size = 0;
    if (lua_getfield(L, index, field) == LUA_TSTRING) {
        const char* s = lua_tolstring(L, -1, &size);
        text.assign(s, size);
    }
    lua_pop(L, 1);
    return text;
}

// Calls f for each item of the list in a field, with the item on top of the stack.
template <class F>
void each_item(lua_State* L, int index, const char* field, const F& f) {
    luaL_checkstack(L, 8, "ONNX model");
    if (lua_getfield(L, index, field) == LUA_TTABLE) {
        const lua_Integer count = luaL_len(L, -1);
        for (lua_Integer i = 1; i <= count; ++i) {
            lua_rawgeti(L, -1, i);
            f();
            lua_pop(L, 1);
        }
    }
    lua_pop(L, 1);
}

std::vector<std::string> texts_field(lua_State* L, int index, const char* field) {
    std::vector<std::string> list;
    each_item(L, index, field, [&] {
        size_t size = 0;
        const char* s = luaL_checklstring(L, -1, &size);
        list.emplace_back(s, size);
    });
    return list;
}

Attribute attribute_at(lua_State* L, int index) {
    using Kind = Attribute::Kind;
    Attribute a;
    const std::string kind = text_field(L, index, "kind");
    for (size_t k = 0; k < std::size(kKinds); ++k)
        if (kind == kKinds[k]) a.kind = static_cast<Kind>(k);
    lua_getfield(L, index, "value");
    switch (a.kind) {
        case Kind::number:
            a.numbers.push_back(luaL_checknumber(L, -1));
            break;
        case Kind::integer:
            a.integers.push_back(luaL_checkinteger(L, -1));
            break;
        case Kind::string:
            a.strings.emplace_back(luaL_checkstring(L, -1));
            break;
        case Kind::tensor:
            a.tensors.push_back({"", check_tensor(L, -1, kWhere, "value")});
            break;
        case Kind::numbers:
            for (lua_Integer i = 1; i <= luaL_len(L, -1); ++i) {
                lua_rawgeti(L, -1, i);
                a.numbers.push_back(luaL_checknumber(L, -1));
                lua_pop(L, 1);
            }
            break;
        case Kind::integers:
            a.integers = integers_at(L, lua_gettop(L), kWhere, "attribute");
            break;
        default:
            throw argument_error(kWhere, str("an attribute of kind '", kind, "' is not written"));
    }
    lua_pop(L, 1);
    return a;
}

onnx::NamedTensor tensor_item(lua_State* L, int index) {
    onnx::NamedTensor t{text_field(L, index, "name"), {}};
    lua_getfield(L, index, "value");
    t.value = check_tensor(L, -1, kWhere, "value");
    lua_pop(L, 1);
    return t;
}

ValueInfo value_info_at(lua_State* L, int index) {
    ValueInfo v{text_field(L, index, "name"), {}};
    v.type.kind = TypeEntry::Kind::tensor;
    lua_getfield(L, index, "dtype");
    const std::optional<DType> dtype = find_dtype(L, -1);
    if (!dtype) throw argument_error(kWhere, str("'", v.name, "' has no dtype"));
    v.type.element = type_number(*dtype);
    lua_pop(L, 1);
    v.type.shape.emplace();
    each_item(L, index, "shape", [&] {
        if (lua_type(L, -1) == LUA_TSTRING)
            v.type.shape->push_back({-1, lua_tostring(L, -1)});
        else
            v.type.shape->push_back({luaL_checkinteger(L, -1), ""});
    });
    return v;
}

// write(path or draft, {producer, version, opset, name, nodes, initializers, inputs, outputs}): inputs and outputs are
// {name, dtype, shape}, a shape of sizes and names.
int write(lua_State* L) {
    luaL_checktype(L, 2, LUA_TTABLE);
    Model m;
    m.ir_version = 8;
    m.producer = "Lunaria";
    m.producer_version = LUNARIA_VERSION;
    lua_getfield(L, 2, "opset");
    m.opsets.push_back({"", luaL_checkinteger(L, -1)});
    lua_pop(L, 1);
    Graph& g = m.graph.emplace();
    g.name = text_field(L, 2, "name");
    each_item(L, 2, "nodes", [&] {
        const int at = lua_gettop(L);
        Node n;
        n.op = text_field(L, at, "op");
        n.name = text_field(L, at, "name");
        n.inputs = texts_field(L, at, "inputs");
        n.outputs = texts_field(L, at, "outputs");
        each_item(L, at, "attributes", [&] {
            const int attribute = lua_gettop(L);
            Attribute a = attribute_at(L, attribute);
            a.name = text_field(L, attribute, "name");
            n.attributes.push_back(std::move(a));
        });
        g.nodes.push_back(std::move(n));
    });
    each_item(L, 2, "initializers", [&] { g.initializers.push_back(tensor_item(L, lua_gettop(L))); });
    each_item(L, 2, "inputs", [&] { g.inputs.push_back(value_info_at(L, lua_gettop(L))); });
    each_item(L, 2, "outputs", [&] { g.outputs.push_back(value_info_at(L, lua_gettop(L))); });
    uint64_t bytes = 0;
    for (const onnx::NamedTensor& t : g.initializers)
        bytes += static_cast<uint64_t>(t.value.size()) * size_of(t.value.dtype());
    if (bytes > uint64_t{2000} << 20)
        throw value_error(kWhere, str("the weights have ", bytes >> 20, " MiB; an ONNX file holds at most 2 GiB"))
            .hint("file_format = \"MINDIR\" has no such bound");
    if (lua_type(L, 1) == LUA_TSTRING)
        write_file(path_at(L, 1, kWhere), write_model(m));
    else
        draft_at(L, 1, kWhere).write(write_model(m));
    return 0;
}

TypeEntry type_at(lua_State* L, int index) {
    TypeEntry t;
    const std::string kind = text_field(L, index, "kind");
    for (size_t k = 0; k < std::size(kTypeKinds); ++k)
        if (kind == kTypeKinds[k]) t.kind = static_cast<TypeEntry::Kind>(k);
    if (lua_getfield(L, index, "inner") == LUA_TTABLE) t.inner.push_back(type_at(L, lua_gettop(L)));
    lua_pop(L, 1);
    return t;
}

void push_test_value(lua_State* L, const TestValue& v) {
    luaL_checkstack(L, 8, "sequences");
    if (v.missing) return lua_pushnil(L);
    if (v.tensor) return push(L, *v.tensor);
    push_list(L, v.items, [&](const TestValue& item) { push_test_value(L, item); });
}

// read_value(path, type) -> the value in a .pb file of the ONNX test folders, and its name
int read_value(lua_State* L) {
    const std::string path = path_at(L, 1, "onnx-run");
    luaL_checktype(L, 2, LUA_TTABLE);
    const TestValue v = read_test_value(*open_source(path), type_at(L, 2));
    push_test_value(L, v);
    push(L, std::string_view(v.name));
    return 2;
}

TestValue test_value_at(lua_State* L, int index, const TypeEntry& type) {
    luaL_checkstack(L, 4, "sequences");
    TestValue v;
    if (type.kind == TypeEntry::Kind::optional && !type.inner.empty()) {
        if (lua_isnil(L, index)) {
            v.missing = true;
            return v;
        }
        return test_value_at(L, index, type.inner[0]);
    }
    if (!lua_istable(L, index) || type.inner.empty()) {
        v.tensor = check_tensor(L, index, "onnx-run", "output");
        return v;
    }
    for (lua_Integer i = 1; lua_geti(L, index, i) != LUA_TNIL; ++i) {
        v.items.push_back(test_value_at(L, lua_gettop(L), type.inner[0]));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return v;
}

// write_value(path, name, value, type): a tensor, a list of them or nothing, according to the type
int write_value(lua_State* L) {
    const std::string path = path_at(L, 1, "onnx-run");
    lua_settop(L, 4);
    luaL_checktype(L, 4, LUA_TTABLE);
    const TypeEntry type = type_at(L, 4);
    TestValue v = test_value_at(L, 3, type);
    v.name = luaL_checkstring(L, 2);
    write_file(path, write_test_value(v, type));
    return 0;
}

// dtype(number) -> the dtype of a TensorProto.DataType, or nil and the name of the number
int dtype(lua_State* L) {
    const lua_Integer number = luaL_checkinteger(L, 1);
    if (const std::optional<DType> d = dtype_of(number)) {
        push(L, *d);
        return 1;
    }
    lua_pushnil(L);
    const std::string name(type_name(number));
    push(L, std::string_view(name.empty() ? str("type ", number) : name));
    return 2;
}

// number(dtype) -> its TensorProto.DataType
int number(lua_State* L) {
    const std::optional<DType> d = find_dtype(L, 1);
    if (!d) throw argument_error(kWhere, str("a dtype is expected, got ", describe(L, 1)));
    lua_pushinteger(L, type_number(*d));
    return 1;
}

}  // namespace

int open_onnx(lua_State* L) {
    lua_newtable(L);
    for (auto [name, function] : {std::pair<const char*, lua_CFunction>{"read", protect<read>},
                                  {"write", protect<write>},
                                  {"read_value", protect<read_value>},
                                  {"write_value", protect<write_value>},
                                  {"graph", protect<onnx_graph>},
                                  {"dtype", protect<dtype>},
                                  {"number", protect<number>}}) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    return 1;
}

// ms.load of such a file: calls lunaria/onnx/load.lua.
int load_onnx(lua_State* L) {
    const int base = lua_gettop(L);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "lunaria.onnx.load");
    lua_call(L, 1, 1);
    push(L, std::string_view(path_at(L, 1, "load")));
    lua_call(L, 1, LUA_MULTRET);
    return lua_gettop(L) - base;
}

}  // namespace lunaria
