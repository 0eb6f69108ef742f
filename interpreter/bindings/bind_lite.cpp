// The module behind lunaria/lite/convert.lua: networks as light models.
#include <fstream>

#include "core/io/inside.h"
#include "core/lite/format/arena.h"
#include "core/lite/format/file.h"
#include "core/lite/format/sizes.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/watchers/graph_trace.h"
#include "jit/lite/convert.h"

namespace lunaria {

namespace {

constexpr std::string_view kWhere = "lite.convert";
constexpr const char* kName = "lunaria.light_model";

lite::Converted& model_at(lua_State* L, int index) {
    return **static_cast<lite::Converted**>(luaL_checkudata(L, index, kName));
}

int collect(lua_State* L) {
    auto** place = static_cast<lite::Converted**>(luaL_checkudata(L, 1, kName));
    delete std::exchange(*place, nullptr);
    return 0;
}

void push_model(lua_State* L, std::unique_ptr<lite::Converted> model) {
    auto** place = static_cast<lite::Converted**>(lua_newuserdatauv(L, sizeof(lite::Converted*), 0));
    *place = nullptr;
    if (luaL_newmetatable(L, kName)) {
        lua_pushcfunction(L, protect<collect>);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    *place = model.release();
}

std::vector<std::string> texts_at(lua_State* L, int options, const char* name) {
    std::vector<std::string> texts;
    if (lua_getfield(L, options, name) == LUA_TTABLE)
        for (lua_Integer i = 1; i <= luaL_len(L, -1); ++i) {
            lua_rawgeti(L, -1, i);
            texts.emplace_back(luaL_checkstring(L, -1));
            lua_pop(L, 1);
        }
    lua_pop(L, 1);
    return texts;
}

// Texts by name as properties.
std::vector<lite::Attribute> properties_at(lua_State* L, int options) {
    std::vector<lite::Attribute> properties;
    if (lua_getfield(L, options, "properties") == LUA_TTABLE) {
        lua_pushnil(L);
        while (lua_next(L, -2)) {
            properties.push_back(
                {luaL_checkstring(L, -2), lite::Attribute::Kind::text, {}, {}, luaL_checkstring(L, -1)});
            lua_pop(L, 1);
        }
        std::ranges::sort(properties, {}, &lite::Attribute::name);
    }
    lua_pop(L, 1);
    return properties;
}

// convert(f, {inputs ...}, options) -> model
int convert(lua_State* L) {
    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checktype(L, 3, LUA_TTABLE);
    LuaHost& host = LuaHost::of(L);
    const Value f = host.to_value(L, 1);
    std::vector<Value> inputs;
    for (lua_Integer i = 1; i <= luaL_len(L, 2); ++i) {
        lua_rawgeti(L, 2, i);
        const Tensor* tensor = tensor_at(L, -1);
        if (!tensor) throw argument_error(kWhere, str("input ", i, " is ", describe(L, -1), ", not a tensor"));
        inputs.emplace_back(*tensor);
        lua_pop(L, 1);
    }
    const std::unique_ptr<ir::Graph> graph = trace_graph(L, f, inputs, TracedSizes::fixed);
    if (!graph)
        throw state_error(
            kWhere,
            "the network does more than compute tensors from its inputs: it decides by elements, or returns "
            "other values");
    lite::ConvertOptions options;
    options.inputs = texts_at(L, 3, "inputs");
    options.outputs = texts_at(L, 3, "outputs");
    options.properties = properties_at(L, 3);
    push_model(L, std::make_unique<lite::Converted>(lite::convert(*graph, options)));
    return 1;
}

// write(model, path): under another name first, so that no half file takes the place of a whole one.
int write(lua_State* L) {
    const lite::Converted& made = model_at(L, 1);
    const std::string path = path_at(L, 2, kWhere), part = path + ".part";
    std::ofstream file(part, std::ios::binary);
    const std::string fault = lite::write_model(made.model, [&](std::span<const std::byte> bytes) {
        return static_cast<bool>(
            file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())));
    });
    file.close();
    if (!fault.empty() || !file || std::rename(part.c_str(), path.c_str()) != 0) {
        std::remove(part.c_str());
        throw file_error(path, fault.empty() ? "it cannot be written" : fault);
    }
    return 0;
}

void set_number(lua_State* L, const char* name, double number) {
    if (number == static_cast<double>(static_cast<lua_Integer>(number)))
        lua_pushinteger(L, static_cast<lua_Integer>(number));
    else
        lua_pushnumber(L, number);
    lua_setfield(L, -2, name);
}
void set_text(lua_State* L, const char* name, const std::string& text) {
    push(L, std::string_view(text));
    lua_setfield(L, -2, name);
}

// report(model) -> {steps = {{kind, label, source, nodes, flops, bytes} ...}, arena, weights}
int report(lua_State* L) {
    const lite::Model& model = model_at(L, 1).model;
    std::vector<uint64_t> sizes;
    uint64_t weights = 0;
    for (const lite::Value& v : model.values) {
        std::vector<int64_t> shape;
        for (const lite::Number& n : v.shape) shape.push_back(n.value);
        sizes.push_back(lite::bytes_of(v.dtype, v.form, shape).value_or(0));
        weights += v.bytes;
    }
    lua_newtable(L);
    lua_createtable(L, static_cast<int>(model.steps.size()), 0);
    lua_Integer i = 0;
    for (const lite::Step& step : model.steps) {
        uint64_t bytes = 0;
        for (const auto* views : {&step.operands, &step.results})
            for (const lite::View& v : *views) bytes += v.value == lite::kNone ? 0 : sizes[v.value];
        lua_newtable(L);
        set_text(L, "kind", step.kind);
        set_text(L, "label", step.label);
        set_text(L, "source", step.source);
        set_number(L, "nodes", step.nodes);
        set_number(L, "flops", step.flops);
        set_number(L, "bytes", static_cast<double>(bytes));
        lua_rawseti(L, -2, ++i);
    }
    lua_setfield(L, -2, "steps");
    set_number(L, "arena", static_cast<double>(lite::place_arena(model, sizes).bytes));
    set_number(L, "weights", static_cast<double>(weights));
    return 1;
}

}  // namespace

int open_lite(lua_State* L) {
    lua_newtable(L);
    for (auto [name, function] : {std::pair<const char*, lua_CFunction>{"convert", protect<convert>},
                                  {"write", protect<write>},
                                  {"report", protect<report>}}) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    return 1;
}

}  // namespace lunaria
