// ms.save_mindir, ms.load_mindir and ms.export: networks as MindIR files.

#include "core/ir/mindir.h"
#include "core/ir/substitution.h"
#include "core/ir/verifier.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/bindings/values.h"
#include "interpreter/protect.h"
#include "interpreter/watchers/graph_trace.h"

namespace lunaria {

namespace {

void check_callable(lua_State* L, int index, std::string_view where) {
    if (lua_isfunction(L, index)) return;
    if (luaL_getmetafield(L, index, "__call") == LUA_TNIL)
        throw argument_error(where, str("a function or another callable is expected, got ", describe(L, index)));
    lua_pop(L, 1);
}

void save(lua_State* L, int function, const std::string& path, int from, int to, std::string_view where) {
    std::vector<Tensor> inputs;
    for (int i = from; i <= to; ++i) {
        const Tensor* t = tensor_at(L, i);
        if (!t)
            throw argument_error(where,
                                 str("example inputs must be tensors, input ", i - from, " is ", describe(L, i)));
        inputs.push_back(*t);
    }
    write_file(path, ir::mindir_of(*trace_graph(L, LuaHost::of(L).to_value(L, function), inputs)));
}

// ms.save_mindir(f, path, example inputs …)
int save_mindir(lua_State* L) {
    check_callable(L, 1, "save_mindir");
    save(L, 1, path_at(L, 2, "save_mindir"), 3, lua_gettop(L), "save_mindir");
    return 0;
}

// ms.export(net, example inputs …, {file_name = , file_format = "MINDIR"})
int export_network(lua_State* L) {
    check_callable(L, 1, "export");
    const int n = lua_gettop(L);
    if (n < 2 || !lua_istable(L, n)) throw argument_error("export", "the last argument must be {file_name = ...}");
    check_options(L, n, "export", {"file_name", "file_format"});
    if (push_option(L, n, "file_format")) {
        const std::string format = luaL_tolstring(L, -1, nullptr);
        if (format != "MINDIR")
            throw value_error("export", str("file_format '", format, "' is not available; there is: MINDIR"));
    }
    if (!push_option(L, n, "file_name")) throw argument_error("export", "file_name is missing");
    std::string path = path_at(L, -1, "export");
    if (!path.ends_with(".mindir")) path += ".mindir";
    save(L, 1, path, 2, n - 1, "export");
    return 0;
}

// The graph with its weights (constants that have a name) as captured values, so that they are parameters of the
// network like those of any other: gradients with respect to them exist.
std::unique_ptr<ir::Graph> capture_weights(const ir::Graph& loaded, std::vector<Value>& weights) {
    auto graph = std::make_unique<ir::Graph>(loaded.name);
    ir::Substitution made(graph.get());
    for (auto& node : loaded.nodes()) {
        if (node->kind != ir::NodeKind::constant) continue;
        if (!node->constant.is_tensor() || node->name.empty()) {
            made[node.get()] = Value(graph->add_constant(node->constant));
            continue;
        }
        Tensor t = node->constant.tensor();
        t.set_parameter({node->name, is_float(t.dtype())});
        weights.emplace_back(t);
        made[node.get()] = Value(graph->add_parameter(node->name, node->type));
    }
    graph->captures = weights.size();
    for (const ir::Node* p : loaded.parameters()) made[p] = Value(graph->add_parameter(p->name, p->type));
    for (const ir::Node* node : loaded.body()) made[node] = made.copy(*node);
    graph->result = made(loaded.result);
    return graph;
}

}  // namespace

int load_mindir(lua_State* L) {
    const std::string path = path_at(L, 1, "load_mindir");
    const ir::ParsedGraph parsed = ir::read_mindir(*open_source(path));
    if (!parsed.others.empty() || parsed.graph->captures || !is_plain(*parsed.graph))
        throw file_error(path, "holds functions within functions; only plain networks can be loaded");
    std::vector<Value> weights;
    std::shared_ptr<ir::Graph> graph = capture_weights(*parsed.graph, weights);
    ir::verify(*graph);
    LuaHost::of(L).push(L, vm::make_object<vm::Closure>(vm::function_of(*graph), graph, weights));
    lua_newtable(L);
    for (const Value& w : weights) {
        push(L, std::string_view(w.tensor().parameter()->name));
        push_shared(L, w.tensor());
        lua_rawset(L, -3);
    }
    return 2;
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
