// The operators that a function calls, as a table, for lunaria/onnx/export.lua: operators without a form in ONNX are
// expanded.
#include <unordered_map>

#include "core/ir/builder.h"
#include "core/ir/substitution.h"
#include "core/operator/expansion.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/watchers/graph_trace.h"

namespace lunaria {

namespace {

constexpr std::string_view kOnnxGraphWhere = "export";

// Writes operators into a graph; operators that the table at `known` lacks are expressed by others.
class Lowering final : public Builder {
  public:
    Lowering(lua_State* L, int known, ir::Graph& graph) : L_(L), known_(known), builder_(graph) {}

    Value emit(const Op& op, std::span<const Value> given) override {
        if (is_known(op) || !op.expand_fn || op.host_fn) return builder_.emit(op, given);
        const DType dtype = promoted_dtype(op, given);
        std::vector<Value> args = expansion_args(op, given, dtype);
        for (size_t i = 0; i < args.size(); ++i) args[i] = builder_.operand(op, op.signature.params[i], args[i], dtype);
        return expand(ExpandCall(Call(op, args, dtype), *this));
    }
    Value item(const Value& results, size_t i) override { return builder_.item(results, i); }
    Value tuple(std::vector<Value> items) override { return Value::list(std::move(items)); }

  private:
    bool is_known(const Op& op) const {
        push(L_, op.name());
        const bool known = lua_rawget(L_, known_) != LUA_TNIL;
        lua_pop(L_, 1);
        return known;
    }
    lua_State* L_;
    int known_;
    ir::GraphBuilder builder_;
};

// Pushes the graph as {inputs, nodes, results}: a node is {op, args by name, id, types}, a value {id, item, dtype,
// shape}, {constant, name} or {list}, or a plain one.
class GraphTable {
  public:
    explicit GraphTable(lua_State* L) : L_(L) {}

    void push_graph(const ir::Graph& graph) {
        luaL_checkstack(L_, 20, "graphs");
        lua_newtable(L_);
        push_list(graph.parameters(), [&](const ir::Node* p) { push_node(p); });
        lua_setfield(L_, -2, "inputs");
        lua_newtable(L_);
        lua_Integer count = 0;
        for (const ir::Node* node : graph.body()) {
            if (node->kind != ir::NodeKind::call || !node->op) continue;
            push_call(*node);
            lua_rawseti(L_, -2, ++count);
        }
        lua_setfield(L_, -2, "nodes");
        push_list(graph.result.items(), [&](const Value& v) { push_value(v); });
        lua_setfield(L_, -2, "results");
    }

  private:
    template <class List, class Push>
    void push_list(const List& list, const Push& push_item) {
        luaL_checkstack(L_, 10, "graphs");
        lua_newtable(L_);
        lua_Integer i = 0;
        for (const auto& item : list) {
            push_item(item);
            lua_rawseti(L_, -2, ++i);
        }
    }

    lua_Integer id_of(const ir::Node* node) { return ids_.try_emplace(node, ids_.size() + 1).first->second; }

    void set_type(const ir::NodeType& type) {
        if (type.kind != ir::NodeType::Kind::tensor) return;
        push(L_, type.tensor.dtype);
        lua_setfield(L_, -2, "dtype");
        push_list(type.tensor.shape, [&](int64_t n) { lua_pushinteger(L_, n); });
        lua_setfield(L_, -2, "shape");
    }

    void push_call(const ir::Node& node) {
        lua_createtable(L_, 0, 4);
        push(L_, node.op->name());
        lua_setfield(L_, -2, "op");
        lua_pushinteger(L_, id_of(&node));
        lua_setfield(L_, -2, "id");
        set_type(node.type);
        lua_newtable(L_);
        const auto& params = node.op->signature.params;
        for (size_t i = 0; i < node.args.size(); ++i) {
            push(L_, std::string_view(params[i].name));
            push_value(node.args[i]);
            lua_rawset(L_, -3);
        }
        lua_setfield(L_, -2, "args");
        const bool several = node.type.kind == ir::NodeType::Kind::list;
        lua_pushinteger(L_, several ? static_cast<lua_Integer>(node.type.items.size()) : 1);
        lua_setfield(L_, -2, "count");
    }

    void push_node(const ir::Node* node) {
        lua_createtable(L_, 0, 4);
        if (node->kind == ir::NodeKind::constant) {
            push(L_, node->constant);
            lua_setfield(L_, -2, "constant");
            const Value& v = node->constant;
            if (v.is_tensor() && v.tensor().parameter()) {
                push(L_, std::string_view(v.tensor().parameter()->name));
                lua_setfield(L_, -2, "name");
            }
            set_type(v.is_tensor() ? ir::NodeType::of({v.tensor().dtype(), v.tensor().shape()}) : node->type);
            return;
        }
        const bool part = node->kind == ir::NodeKind::item;
        lua_pushinteger(L_, id_of(part ? node->args[0].node() : node));
        lua_setfield(L_, -2, "id");
        lua_pushinteger(L_, part ? static_cast<lua_Integer>(node->index) + 1 : 1);
        lua_setfield(L_, -2, "item");
        if (!node->name.empty()) {
            push(L_, std::string_view(node->name));
            lua_setfield(L_, -2, "name");
        }
        ir::NodeType type = node->type;
        if (part) {
            const ir::NodeType& whole = node->args[0].node()->type;
            if (node->index < whole.items.size()) type = whole.items[node->index];
        }
        set_type(type);
    }

    void push_value(const Value& v) {
        luaL_checkstack(L_, 10, "graphs");
        if (v.is_node()) return push_node(v.node());
        if (v.is_tensor()) {
            lua_createtable(L_, 0, 4);
            push(L_, v);
            lua_setfield(L_, -2, "constant");
            set_type(ir::NodeType::of({v.tensor().dtype(), v.tensor().shape()}));
            return;
        }
        if (!v.is_list()) return push(L_, v);
        push_list(v.items(), [&](const Value& item) { push_value(item); });
    }

    lua_State* L_;
    std::unordered_map<const ir::Node*, size_t> ids_;
};

}  // namespace

// graph(f, known, inputs ...) -> the table; nil where f is no straight line of operators on tensors of these sizes.
int onnx_graph(lua_State* L) {
    luaL_checktype(L, 2, LUA_TTABLE);
    LuaHost& host = LuaHost::of(L);
    std::vector<Value> inputs;
    for (int i = 3; i <= lua_gettop(L); ++i) inputs.emplace_back(check_tensor(L, i, kOnnxGraphWhere, "example input"));
    const Value f = host.to_value(L, 1);
    const LuaHost::Thread thread(host, L);
    const std::unique_ptr<ir::Graph> traced = trace_graph(L, f, inputs, TracedSizes::fixed);
    if (!traced) {
        lua_pushnil(L);
        return 1;
    }
    ir::Graph graph("main");
    std::vector<Value> parameters;
    for (const ir::Node* p : traced->parameters()) parameters.emplace_back(graph.add_parameter(p->name, p->type));
    Lowering lowering(L, 2, graph);
    graph.result = ir::replay(
        *traced, parameters,
        [&](const Op& op, const std::vector<Value>& operands) { return lowering.emit(op, operands); },
        [&](const Value& results, size_t i) { return lowering.item(results, i); });
    GraphTable(L).push_graph(graph);
    return 1;
}

}  // namespace lunaria
