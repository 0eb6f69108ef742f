// The module behind lunaria/lite/convert.lua: networks as light models.
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <optional>

#include "core/io/inside.h"
#include "core/lite/format/arena.h"
#include "core/lite/format/file.h"
#include "core/lite/format/secret.h"
#include "core/lite/format/sizes.h"
#include "core/lite/runtime/executor.h"
#include "core/random/random.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/jit/function.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/watchers/graph_trace.h"
#include "interpreter/workers/data_handles.h"
#include "jit/lite/convert.h"
#include "jit/lite/resize.h"
#include "jit/lite/training.h"

namespace lunaria {

namespace {

constexpr std::string_view kLiteWhere = "lite.convert";
constexpr const char* kName = "lunaria.light_model";

using ModelHandle = std::unique_ptr<lite::Converted>;

lite::Converted& model_at(lua_State* L) { return *handle_at<ModelHandle>(L, 1, kName); }

void push_model(lua_State* L, lite::Converted model) {
    push_handle<ModelHandle>(L, std::make_unique<lite::Converted>(std::move(model)), kName);
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

// The numbers of a list; false is kNone.
std::vector<int64_t> integer_list(lua_State* L, int table) {
    std::vector<int64_t> numbers;
    for (lua_Integer i = 1; i <= luaL_len(L, table); ++i) {
        lua_rawgeti(L, table, i);
        numbers.push_back(lua_isboolean(L, -1) ? int64_t{lite::kNone} : luaL_checkinteger(L, -1));
        lua_pop(L, 1);
    }
    return numbers;
}

// Texts, numbers and lists of whole numbers by name, as properties.
std::vector<lite::Attribute> properties_at(lua_State* L, int options) {
    std::vector<lite::Attribute> properties;
    if (lua_getfield(L, options, "properties") == LUA_TTABLE) {
        lua_pushnil(L);
        while (lua_next(L, -2)) {
            lite::Attribute a{luaL_checkstring(L, -2), lite::Attribute::Kind::text, {}, {}, {}};
            if (lua_type(L, -1) == LUA_TNUMBER) {
                a.kind = lite::Attribute::Kind::numbers;
                a.numbers = {lua_tonumber(L, -1)};
            } else if (lua_istable(L, -1)) {
                a.kind = lite::Attribute::Kind::integers;
                for (const int64_t n : integer_list(L, lua_gettop(L))) a.integers.emplace_back(n);
            } else {
                a.text = luaL_checkstring(L, -1);
            }
            properties.push_back(std::move(a));
            lua_pop(L, 1);
        }
        std::ranges::sort(properties, {}, &lite::Attribute::name);
    }
    lua_pop(L, 1);
    return properties;
}

std::vector<Value> tensors_at(lua_State* L, int table) {
    std::vector<Value> tensors;
    for (lua_Integer i = 1; i <= luaL_len(L, table); ++i) {
        lua_rawgeti(L, table, i);
        const Tensor* tensor = tensor_at(L, -1);
        if (!tensor) throw argument_error(kLiteWhere, str("input ", i, " is ", describe(L, -1), ", not a tensor"));
        tensors.emplace_back(*tensor);
        lua_pop(L, 1);
    }
    return tensors;
}

std::unique_ptr<ir::Graph> graph_of(lua_State* L, const Value& f, int inputs) {
    luaL_checktype(L, inputs, LUA_TTABLE);
    const RandomStream before = default_generator().state();
    std::unique_ptr<ir::Graph> graph = trace_graph(L, f, tensors_at(L, inputs), TracedSizes::fixed, true);
    if (!graph)
        throw state_error(
            kLiteWhere,
            "the network does more than compute tensors from its inputs: it decides by elements, or returns "
            "other values");
    const RandomStream after = default_generator().state();
    if (after.seed != before.seed || after.counter != before.counter)
        throw state_error(kLiteWhere, "the network draws random numbers, which a light model cannot")
            .hint("convert the part without them, or give them as an input");
    return graph;
}

lite::ConvertOptions options_at(lua_State* L, int table) {
    lite::ConvertOptions options;
    options.inputs = texts_at(L, table, "inputs");
    options.outputs = texts_at(L, table, "outputs");
    options.properties = properties_at(L, table);
    if (lua_getfield(L, table, "weights") == LUA_TSTRING) options.passes.weights = lua_tostring(L, -1);
    lua_pop(L, 1);
    return options;
}

// convert(f, {inputs ...}, options) -> model, number of operators that f calls
int convert(lua_State* L) {
    luaL_checktype(L, 3, LUA_TTABLE);
    const Value f = LuaHost::of(L).to_value(L, 1);
    const std::unique_ptr<ir::Graph> graph = graph_of(L, f, 2);
    size_t nodes = 0;
    for (const ir::Node* node : graph->body()) nodes += node->op != nullptr;
    push_model(L, lite::convert(*graph, options_at(L, 3)));
    lua_pushinteger(L, static_cast<lua_Integer>(nodes));
    return 2;
}

// resizable(f, {{inputs ...} ...}, options, dimensions) -> model
// dimensions: names, sizes = {{...} ...} for each list of inputs, step, open = for each input a number or false per
// axis.
int convert_resizable(lua_State* L) {
    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checktype(L, 3, LUA_TTABLE);
    luaL_checktype(L, 4, LUA_TTABLE);
    const Value f = LuaHost::of(L).to_value(L, 1);
    const lite::ConvertOptions options = options_at(L, 3);
    std::vector<std::vector<int64_t>> points;
    std::vector<std::vector<uint32_t>> open;
    lua_getfield(L, 4, "sizes");
    for (lua_Integer i = 1; i <= luaL_len(L, -1); ++i) {
        lua_rawgeti(L, -1, i);
        points.push_back(integer_list(L, lua_gettop(L)));
        lua_pop(L, 1);
    }
    lua_getfield(L, 4, "open");
    for (lua_Integer i = 1; i <= luaL_len(L, -1); ++i) {
        lua_rawgeti(L, -1, i);
        const std::vector<int64_t> axes = integer_list(L, lua_gettop(L));
        open.emplace_back(axes.begin(), axes.end());
        lua_pop(L, 1);
    }
    lua_getfield(L, 4, "step");
    const lua_Integer step = luaL_checkinteger(L, -1);
    const std::vector<std::string> names = texts_at(L, 4, "names");
    std::vector<lite::Dimension> dimensions;
    for (size_t d = 0; d < names.size(); ++d) dimensions.push_back({names[d], points.at(0).at(d), 1, 0, step});
    std::vector<lite::Converted> models;
    for (size_t p = 0; p < points.size(); ++p) {
        lua_rawgeti(L, 2, static_cast<lua_Integer>(p) + 1);
        models.push_back(lite::convert(*graph_of(L, f, lua_gettop(L)), options));
        if (p > 0) lite::drop_constants(models[p], models[0]);
        lua_pop(L, 1);
    }
    push_model(L, lite::resizable(models, points, dimensions, open));
    return 1;
}

// step(compiled, namer, found, options) -> model: the last call of a compiled function as a model whose variables are
// the parameters among the tensors that `namer` has put into the table `found`, by their names.
int convert_step(lua_State* L) {
    luaL_checktype(L, 3, LUA_TTABLE);
    luaL_checktype(L, 4, LUA_TTABLE);
    const std::unique_ptr<ir::Graph> graph = jit::whole_graph(L, 1, 2);
    std::map<std::string, Tensor> found;
    lua_pushnil(L);
    while (lua_next(L, 3)) {
        if (const Tensor* tensor = tensor_at(L, -1)) found.emplace(luaL_checkstring(L, -2), *tensor);
        lua_pop(L, 1);
    }
    push_model(L, lite::convert_step(*graph, found, options_at(L, 4)));
    return 1;
}

// The model as the definition of an array in C.
class Source {
  public:
    Source(std::ostream& out, std::string_view name) : out_(out), name_(name) {
        out_ << "/* A light model of lunaria: " << name << "_size bytes. */\n#include <stddef.h>\n\n"
             << "#if defined(__cplusplus)\nextern \"C\" {\nextern const unsigned char " << name
             << "[];\nextern const size_t " << name << "_size;\nalignas(64)\n#else\n_Alignas(64)\n#endif\n"
             << "const unsigned char " << name << "[] = {";
    }
    void add(std::span<const std::byte> bytes) {
        for (const std::byte b : bytes) {
            if (count_++ % 24 == 0) out_ << '\n';
            out_ << static_cast<int>(b) << ',';
        }
    }
    void end() {
        out_ << "\n};\nconst size_t " << name_ << "_size = sizeof " << name_
             << ";\n#if defined(__cplusplus)\n}\n#endif\n";
    }

  private:
    std::ostream& out_;
    std::string name_;
    size_t count_ = 0;
};

std::string bytes_of(const lite::Converted& made) {
    std::string bytes;
    const std::string fault = lite::write_model(made.model, [&](std::span<const std::byte> part) {
        bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
        return true;
    });
    if (!fault.empty()) throw state_error(kLiteWhere, fault);
    return bytes;
}

// embed(model, name, other): the other model becomes a constant of this one.
int embed(lua_State* L) {
    const lite::Converted& other = *handle_at<ModelHandle>(L, 3, kName);
    lite::embed(model_at(L), luaL_checkstring(L, 2), bytes_of(other));
    return 0;
}

// add_variable(model, name, dtype, {sizes}): one that no step reads, of zeros.
int add_variable(lua_State* L) {
    lite::Value value;
    value.name = luaL_checkstring(L, 2);
    value.dtype = std::string_view(luaL_checkstring(L, 3)) == "int64" ? DType::i64 : DType::f32;
    value.home = lite::Value::Home::variable;
    for (const int64_t n : integer_list(L, 4)) value.shape.emplace_back(n);
    model_at(L).model.values.push_back(std::move(value));
    return 0;
}

// write(model, path, name or nil, key or nil): under another name first, so that no half file takes the place of a
// whole one. With a name: as C source that defines an array of this name. With a key in hexadecimal digits: encrypted.
int write(lua_State* L) {
    const lite::Converted& made = model_at(L);
    const std::string path = path_at(L, 2, kLiteWhere), part = path + ".part";
    std::string secret;
    if (!lua_isnoneornil(L, 4)) {
        const std::string key = lite::key_of(luaL_checkstring(L, 4));
        if (key.empty()) throw argument_error(kLiteWhere, "encryptKey must have 32, 48 or 64 hexadecimal digits");
        std::array<char, 12> start;
        if (getentropy(start.data(), start.size()) != 0)
            throw state_error(kLiteWhere, "the system gives no random bytes");
        secret = lite::encrypted(bytes_of(made), key, {start.data(), start.size()});
    }
    std::ofstream file(part, std::ios::binary);
    std::optional<Source> source;
    if (!lua_isnoneornil(L, 3)) source.emplace(file, luaL_checkstring(L, 3));
    const auto sink = [&](std::span<const std::byte> bytes) {
        if (source)
            source->add(bytes);
        else
            file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        return static_cast<bool>(file);
    };
    std::string fault;
    if (secret.empty())
        fault = lite::write_model(made.model, sink);
    else
        sink(std::as_bytes(std::span(secret)));
    if (source) source->end();
    file.close();
    if (!fault.empty() || !file || std::rename(part.c_str(), path.c_str()) != 0) {
        std::remove(part.c_str());
        throw file_error(path, fault.empty() ? "it cannot be written" : fault);
    }
    return 0;
}

// run(model, {inputs ...}) -> {outputs ...} of one run: as the light runtime computes them.
int run(lua_State* L) {
    const lite::Converted& made = model_at(L);
    const std::string text = bytes_of(made);
    lite::Memory file;
    if (!file.reserve(text.size())) throw memory_error(kLiteWhere, "there is no memory for the model");
    std::memcpy(file.data(), text.data(), text.size());
    std::string fault;
    const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(file.data()), text.size());
    const auto executor =
        lite::Executor::make(bytes, std::make_shared<lite::Threads>(1, lite::Affinity::none, std::vector<int>{}),
                             std::make_shared<lite::Workspace>(), fault);
    if (!executor) throw state_error(kLiteWhere, fault);
    const lite::Model& model = executor->model();
    std::vector<Tensor> inputs, outputs;
    std::vector<std::vector<int64_t>> shapes;
    std::vector<const void*> in;
    std::vector<void*> out;
    for (size_t i = 0; i < model.inputs.size(); ++i) {
        lua_rawgeti(L, 2, static_cast<lua_Integer>(i) + 1);
        const Tensor* tensor = tensor_at(L, -1);
        if (!tensor || tensor->dtype() != model.values[model.inputs[i]].dtype)
            throw argument_error(kLiteWhere, str("input ", i, " is ", describe(L, -1)));
        inputs.push_back(tensor->contiguous());
        in.push_back(inputs.back().raw());
        const auto dims = inputs.back().shape().dims();
        shapes.emplace_back(dims.begin(), dims.end());
        lua_pop(L, 1);
    }
    if (!executor->resize(shapes, fault)) throw argument_error(kLiteWhere, fault);
    lua_newtable(L);
    for (const uint32_t v : model.outputs) {
        outputs.push_back(Tensor::empty(model.values[v].dtype, Shape(executor->shape(v))));
        out.push_back(outputs.back().data<char>());
        push(L, outputs.back());
        lua_rawseti(L, -2, static_cast<lua_Integer>(outputs.size()));
    }
    if (!executor->run(in, out, {}, fault)) throw state_error(kLiteWhere, fault);
    return 1;
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
    const lite::Model& model = model_at(L).model;
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
    make_handle_type(L, kName, protect<release_handle<ModelHandle>>);
    lua_newtable(L);
    for (auto [name, function] : {std::pair<const char*, lua_CFunction>{"convert", protect<convert>},
                                  {"resizable", protect<convert_resizable>},
                                  {"write", protect<write>},
                                  {"run", protect<run>},
                                  {"report", protect<report>},
                                  {"step", protect<convert_step>},
                                  {"embed", protect<embed>},
                                  {"add_variable", protect<add_variable>}}) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    return 1;
}

}  // namespace lunaria
