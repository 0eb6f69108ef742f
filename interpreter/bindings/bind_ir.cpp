// ms.save_mindir, ms.load_mindir and ms.export: networks as MindIR files.

#include <cmath>

#include "core/io/sealed.h"
#include "core/ir/mindir.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/saving/lua_known.h"
#include "interpreter/saving/typed_program.h"
#include "interpreter/values/values.h"
#include "interpreter/watchers/graph_trace.h"
#include "interpreter/workers/data_handles.h"
#include "jit/saving/loaded_program.h"
#include "jit/saving/specializer.h"

namespace lunaria {

namespace {

void check_callable(lua_State* L, int index, std::string_view where) {
    if (lua_isfunction(L, index)) return;
    if (luaL_getmetafield(L, index, "__call") == LUA_TNIL)
        throw argument_error(where, str("a function or another callable is expected, got ", describe(L, index)));
    lua_pop(L, 1);
}

constexpr std::string_view kWhere = "save_mindir";

bool is_close(LuaHost& host, const Value& a, const Value& b, int depth);

// The same keys with values that are close.
bool is_close_table(LuaHost& host, const Value& a, const Value& b, int depth) {
    lua_State* L = host.lua();
    luaL_checkstack(L, 6, "tables");
    const int base = lua_gettop(L);
    host.push(L, a);
    host.push(L, b);
    size_t fields = 0;
    bool same = depth < 50;
    lua_pushnil(L);
    while (same && lua_next(L, base + 1)) {
        ++fields;
        lua_pushvalue(L, -2);
        lua_rawget(L, base + 2);
        same = is_close(host, host.to_value(L, -2), host.to_value(L, -1), depth + 1);
        lua_pop(L, 2);
    }
    lua_settop(L, base + 2);
    lua_pushnil(L);
    for (; same && lua_next(L, base + 2); lua_pop(L, 1)) same = fields-- > 0;
    lua_settop(L, base);
    return same && fields == 0;
}

// Whether values agree except for rounding.
bool is_close(LuaHost& host, const Value& a, const Value& b, int depth) {
    auto near = [](double p, double q) {
        return p == q || (std::isnan(p) && std::isnan(q)) || std::abs(p - q) <= 1e-5 + 1e-3 * std::abs(q);
    };
    if (a.is_number() && b.is_number()) return a.kind() == b.kind() && near(a.number(), b.number());
    if (host.is_table(a) && host.is_table(b)) return is_close_table(host, a, b, depth);
    auto dtype = [&](const Value& v) {
        return v.kind() == Value::Kind::dtype ? std::optional(v.dtype()) : dtype_of(host, v);
    };
    if (a.kind() == Value::Kind::dtype || b.kind() == Value::Kind::dtype) return dtype(a) == dtype(b);
    // The content of functions and similar values cannot be compared.
    if (a.kind() == Value::Kind::object) return b.kind() == Value::Kind::object;
    if (!a.is_tensor() || !b.is_tensor()) return same_value(a, b);
    const Tensor &x = a.tensor(), &y = b.tensor();
    if (x.dtype() != y.dtype() || !(x.shape() == y.shape())) return false;
    if (is_complex(x.dtype())) return same_value(a, b);
    for (int64_t i = 0; i < x.size(); ++i)
        if (!near(x.at(i), y.at(i))) return false;
    return true;
}

Value function_in(LuaHost& host, const Source& source, std::vector<Value>& weights) {
    const std::shared_ptr<LoadedProgram> loaded =
        load_program(source, [&](const std::string& name) { return function_named(host, name); });
    weights = loaded->weights;
    Value table;
    if (!weights.empty()) {
        table = host.new_table(weights.size(), 0);
        for (size_t i = 0; i < weights.size(); ++i) host.raw_set(table, Value(static_cast<int64_t>(i) + 1), weights[i]);
    }
    return function_of(loaded, table);
}

// Runs the file's function and the original function on the example, and compares the results.
void compare_with_function(lua_State* L, const Value& f, const std::string& bytes, const ir::Graph& graph,
                           std::span<const Value> inputs) {
    LuaHost& host = LuaHost::of(L);
    auto copied = [&] {
        std::vector<Value> args;
        for (const Value& v : inputs) args.push_back(v.is_tensor() ? Value(v.tensor().copy()) : v);
        return args;
    };
    std::vector<Value> weights;
    const Value saved = function_in(host, *memory_source("mindir", bytes), weights);
    // A function that trains changes the weights: their old values are put back afterwards.
    std::vector<std::pair<Tensor, Tensor>> before;
    for (auto& node : graph.nodes())
        if (node->kind == ir::NodeKind::constant && !node->function && !node->name.empty())
            before.emplace_back(node->constant.tensor(), node->constant.tensor().copy());
    struct Restore {
        std::vector<std::pair<Tensor, Tensor>>& before;
        ~Restore() {
            for (auto& [tensor, content] : before) tensor.assign("save_mindir", content);
        }
    };
    vm::Values expected;
    {
        const Restore restore{before};
        expected = host.call(f, copied());
    }
    if (expected.empty()) throw argument_error(kWhere, "the function returns nothing");
    vm::Values found;
    const auto outcome = host.call_protected([&] { found = host.run(L, saved, copied()); });
    if (!outcome.ok) {
        poll_interrupt();
        throw state_error(kWhere, str("the saved program cannot be run: ", outcome.error.kind() == Value::Kind::string
                                                                               ? outcome.error.string()
                                                                               : to_string(outcome.error)));
    }
    bool same = expected.size() == found.size();
    for (size_t i = 0; same && i < found.size(); ++i) same = is_close(host, found[i], expected[i], 0);
    if (!same)
        throw state_error(kWhere,
                          "the function gives another result when it is called again: it draws random numbers or "
                          "changes what it depends on")
            .hint("leave the training mode before: net:set_train(false)");
}

// The form in which a network is written. either: MindSpore's form if it has all operators and the program is the same
// for inputs of all sizes, else our own; mindspore: MindSpore's form, if need be for the sizes of the example; own: our
// own.
enum class Form { either, mindspore, own };

// Writes one function for an example, with tensors or any values as inputs.
class Exporter {
  public:
    Exporter(lua_State* L, const Value& f, std::span<const Value> inputs)
        : L_(L), host_(LuaHost::of(L)), f_(f), inputs_(inputs) {
        tensors_ = std::ranges::all_of(inputs, [](const Value& v) { return v.is_tensor(); });
    }

    // The file's bytes.
    std::string bytes_of(Form form) {
        if (tensors_ && form == Form::own) line_ = trace_graph(L_, f_, inputs_);
        if (tensors_ && form != Form::own) {
            if (std::optional<std::string> bytes = as_mindspore(form == Form::mindspore)) return *bytes;
        }
        if (form != Form::mindspore) return ir::mindir_of(line_ ? *line_ : program());
        if (missing_.empty()) missing_ = "what depends on the elements of the inputs";
        throw state_error("export", str("MindSpore has no operators for ", missing_))
            .hint("without form = 'mindspore' the file is written in a form of our own");
    }
    // The graph in the file.
    const ir::Graph& graph() const { return line_ ? *line_ : *program_; }

  private:
    const ir::Graph& program() {
        if (program_) return *program_;
        LuaKnown known(host_);
        program_ = specialize(known, f_, inputs_);
        return *program_;
    }

    // A line of operators or, with control flow, blocks of operators that continue in each other.
    std::optional<std::string> as_mindspore(bool for_these_sizes) {
        line_ = trace_graph(L_, f_, inputs_, TracedSizes::open);
        if (!line_ && for_these_sizes) line_ = trace_graph(L_, f_, inputs_, TracedSizes::fixed);
        if (line_) return ir::mindspore_mindir_of(*line_, missing_);
        // The program as it is read from a file, with functions as values.
        const ir::ParsedGraph parsed =
            read_program(*memory_source("mindir", ir::mindir_of(program())),
                         [&](const std::string& name) { return function_named(host_, name); });
        std::unique_ptr<ir::Graph> blocks = typed_program(L_, *parsed.graph, inputs_, TracedSizes::open);
        if (!blocks && for_these_sizes) blocks = typed_program(L_, *parsed.graph, inputs_, TracedSizes::fixed);
        return blocks ? ir::mindspore_mindir_of(*blocks, missing_) : std::nullopt;
    }

    lua_State* L_;
    LuaHost& host_;
    const Value& f_;
    const std::span<const Value> inputs_;
    bool tensors_ = false;
    std::unique_ptr<ir::Graph> line_, program_;  // the function as a line of operators; as a program
    std::string missing_;
};

// The option that is a key of AES; empty where it is not given. Messages say nothing of what is in it.
std::string key_option(lua_State* L, int index, const char* where, const char* name) {
    if (!push_option(L, index, name)) return {};
    if (lua_type(L, -1) != LUA_TSTRING) throw argument_error(where, str(name, " must be a text"));
    const std::string key = text_at(L, -1);
    if (key.size() != 16 && key.size() != 24 && key.size() != 32)
        throw argument_error(where, str(name, " must have 16, 24 or 32 bytes, got ", key.size()));
    return key;
}

std::string sealed(const std::string& bytes, std::string_view key) {
    StringSink sink;
    SealingSink sealing(sink, key);
    sealing.write(bytes);
    sealing.finish();
    return sink.text();
}

// key: the file is encrypted, where there is one.
void save_graph(lua_State* L, int function, const std::string& path, int from, int to, Form form,
                std::string_view key = {}) {
    LuaHost& host = LuaHost::of(L);
    std::vector<Value> inputs;
    for (int i = from; i <= to; ++i) {
        if (!tensor_at(L, i) && (lua_isfunction(L, i) || lua_isuserdata(L, i) || lua_isthread(L, i)))
            throw argument_error(kWhere, str("example inputs must be tensors, numbers, texts or tables, input ",
                                             i - from, " is ", describe(L, i)));
        inputs.push_back(host.to_value(L, i));
    }
    const Value f = host.to_value(L, function);
    const LuaHost::Thread thread(host, L);
    const auto checked = [&](Form wanted) {
        Exporter exporter(L, f, inputs);
        std::string bytes = exporter.bytes_of(wanted);
        compare_with_function(L, f, bytes, exporter.graph(), inputs);
        return bytes;
    };
    std::string bytes;
    try {
        bytes = checked(form);
    } catch (const Error&) {
        if (form != Form::either) throw;
        // The program for these sizes is better than none, and better than one that MindSpore does not read. Otherwise
        // the error is raised.
        for (const Form other : {Form::mindspore, Form::own}) {
            if (!bytes.empty()) break;
            try {
                bytes = checked(other);
            } catch (const Error&) {
            }
        }
        if (bytes.empty()) throw;
    }
    write_file(path, key.empty() ? bytes : sealed(bytes, key));
}

// ms.save_mindir(f, path, example inputs …)
int save_mindir(lua_State* L) {
    check_callable(L, 1, "save_mindir");
    save_graph(L, 1, path_at(L, 2, "save_mindir"), 3, lua_gettop(L), Form::either);
    return 0;
}

// Calls lunaria/onnx/export.lua with the same arguments.
int export_onnx(lua_State* L, int arguments) {
    lua_settop(L, arguments);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "lunaria.onnx.export");
    lua_call(L, 1, 1);
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

// ms.export(net, example inputs …, {file_name = , file_format = "MINDIR" or "ONNX"})
int export_network(lua_State* L) {
    check_callable(L, 1, "export");
    const int n = lua_gettop(L);
    if (n < 2 || !lua_istable(L, n)) throw argument_error("export", "the last argument must be {file_name = ...}");
    if (n == 2)
        throw argument_error("export", "an example input is missing, which the network is recorded with")
            .hint("ms.export(net, ms.ones { 1, 3, 32, 32 }, { file_name = \"net\" })");
    check_options(L, n, "export", {"file_name", "file_format", "form", "dynamic_axes", "enc_key"});
    if (push_option(L, n, "file_format")) {
        const std::string format = luaL_tolstring(L, -1, nullptr);
        if (format == "ONNX") return export_onnx(L, n);
        if (format != "MINDIR")
            throw value_error("export", str("file_format '", format, "' is not available; there are: MINDIR, ONNX"));
    }
    if (push_option(L, n, "dynamic_axes")) throw value_error("export", "dynamic_axes is for file_format = \"ONNX\"");
    Form form = Form::either;
    if (push_option(L, n, "form")) {
        const std::string name = luaL_tolstring(L, -1, nullptr);
        if (name != "mindspore" && name != "lunaria")
            throw value_error("export", str("form must be 'mindspore' or 'lunaria', got '", name, "'"));
        form = name == "mindspore" ? Form::mindspore : Form::own;
    }
    if (!push_option(L, n, "file_name")) throw argument_error("export", "file_name is missing");
    std::string path = path_at(L, -1, "export");
    if (!path.ends_with(".mindir")) path += ".mindir";
    save_graph(L, 1, path, 2, n - 1, form, key_option(L, n, "export", "enc_key"));
    return 0;
}

}  // namespace

// {{name, dtype, shape} ...}, as far as the graph states them.
static void push_about(lua_State* L, const std::vector<std::pair<std::string, ir::NodeType>>& values) {
    lua_newtable(L);
    lua_Integer i = 0;
    for (const auto& [name, type] : values) {
        lua_newtable(L);
        push(L, std::string_view(name));
        lua_setfield(L, -2, "name");
        if (type.kind == ir::NodeType::Kind::tensor) {
            push(L, name_of(type.tensor.dtype));
            lua_setfield(L, -2, "dtype");
            lua_newtable(L);
            lua_Integer axis = 0;
            for (int64_t n : type.tensor.shape) {
                lua_pushinteger(L, n);
                lua_rawseti(L, -2, ++axis);
            }
            lua_setfield(L, -2, "shape");
        }
        lua_rawseti(L, -2, ++i);
    }
}

static void push_about(lua_State* L, const ir::Graph& graph) {
    std::vector<std::pair<std::string, ir::NodeType>> inputs, outputs;
    for (size_t i = graph.captures; i < graph.parameters().size(); ++i)
        inputs.emplace_back(graph.parameters()[i]->name, graph.parameters()[i]->type);
    if (graph.result.is_list())
        for (const Value& v : graph.result.items())
            outputs.emplace_back(str("output_", outputs.size()), v.is_node() ? v.node()->type : ir::NodeType());
    lua_newtable(L);
    push_about(L, inputs);
    lua_setfield(L, -2, "inputs");
    push_about(L, outputs);
    lua_setfield(L, -2, "outputs");
}

int load_mindir(lua_State* L) {
    const std::string path = path_at(L, 1, "load_mindir");
    std::vector<Value> weights;
    LuaHost& host = LuaHost::of(L);
    auto source = open_source(path);
    std::string key;
    if (!lua_isnoneornil(L, 2)) {
        check_options(L, 2, "load_mindir", {"dec_key"});
        key = key_option(L, 2, "load_mindir", "dec_key");
    }
    if (!key.empty())
        source = open_sealed(*source, key, "dec_key is the enc_key with which it was exported");
    else if (is_sealed(*source))
        throw source->error("is encrypted, and there is no key").hint("give it as dec_key");
    const Value f = function_in(host, *source, weights);
    host.push(L, f);
    lua_newtable(L);
    for (const Value& w : weights) {
        push(L, std::string_view(w.tensor().parameter()->name));
        push_shared(L, w.tensor());
        lua_rawset(L, -3);
    }
    push_about(L, vm::object_as<vm::Closure>(f)->function->graph);
    return 3;
}

void bind_ir(lua_State* L) {
    for (auto [name, function] : {std::pair<const char*, lua_CFunction>{"save_mindir", protect<save_mindir>},
                                  {"load_mindir", protect<load_mindir>},
                                  {"export", protect<export_network>}}) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
}

}  // namespace lunaria
