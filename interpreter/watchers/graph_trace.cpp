#include "interpreter/watchers/graph_trace.h"

#include <cmath>
#include <set>
#include <unordered_map>

#include "core/custom_op.h"
#include "core/expansion.h"
#include "core/ir/builder.h"
#include "core/ir/substitution.h"
#include "core/ir/verifier.h"
#include "interpreter/watchers/watching_host.h"
#include "jit/vm/machine.h"

namespace lunaria {

namespace {

constexpr std::string_view kWhere = "save_mindir";

Error cannot_save(std::string_view what) {
    return state_error(kWhere, what).hint("decide with operators (ops.where), outside of the function that is saved");
}

// The host for the time of the trace.
class TracingHost final : public WatchingHost {
  public:
    TracingHost(LuaHost& host, ir::Graph& graph) : WatchingHost(host), graph_(graph), builder_(graph) {}

    void add_input(const Tensor& t, const std::string& name) {
        know(Value(t), Value(graph_.add_parameter(name, ir::NodeType::of({t.dtype(), t.shape()}))));
    }
    // What stands for a value in the graph.
    Value operand(const Value& v) {
        if (v.is_list()) {
            std::vector<Value> items;
            for (const Value& item : v.items()) items.push_back(operand(item));
            return Value::list(std::move(items));
        }
        if (!v.is_tensor()) return v;
        auto found = nodes_.find(v.tensor().body());
        if (found != nodes_.end()) return Value(found->second);
        ir::Node* node = graph_.add_constant(v);
        if (const ParameterInfo* p = v.tensor().parameter()) node->name = unique_name(p->name);
        know(v, Value(node));
        return Value(node);
    }

    // A straight-line graph of operators: its results.
    std::vector<Value> run_graph(const ir::Graph& part, std::span<const Value> args) {
        const Value result = ir::replay(
            part, args, [&](const Op& op, const std::vector<Value>& operands) { return record(op, operands); },
            [](const Value& results, size_t i) { return results.items().at(i); });
        return result.is_list() ? result.items() : std::vector<Value>{result};
    }

    vm::Values call(const Value& f, std::span<const Value> args) override {
        const vm::Callee callee = host_.resolve(f);
        if (callee.kind == vm::Callee::Kind::op) {
            const Value result = record(*callee.op, host_.bind(*callee.op, args).args);
            const bool several = result.is_list() && (!callee.op->signature.results.empty() ||
                                                      (!result.items().empty() && result.items()[0].is_tensor()));
            return several ? vm::Values(result.items()) : vm::Values{result};
        }
        if (callee.function == vm::item_function().function && !args.empty() && follows(args[0]))
            throw cannot_save("x:item() reads an element of a tensor that depends on the inputs");
        return host_.call(f, args);
    }

    Value index(const Value& object, const Value& key) override {
        if (object.is_tensor() && follows(object)) {
            const Part part = host_.part_of(object, key);
            if (part.function) {
                std::vector<Value> args = part.args;
                args.insert(args.begin(), object);
                const std::vector<Value> results = run_graph(*part.function, args);
                return results.empty() ? Value() : results[0];
            }
        }
        return host_.index(object, key);
    }
    void set_index(const Value& object, const Value& key, const Value& value) override {
        if (object.is_tensor() && (follows(object) || follows(value)))
            throw state_error(kWhere, "writing into a tensor (x[i] = v) cannot be saved")
                .hint("make a new tensor: ops.where, ops.scatter, ops.concat");
        host_.set_index(object, key, value);
    }
    Value metamethod(const Value& a, const Value& b, std::string_view event) override {
        if (a.is_tensor() || b.is_tensor()) return {};
        return host_.metamethod(a, b, event);
    }
    Value arithmetic(std::string_view primitive, const Value& a, const Value& b) override {
        const Op* op = a.is_tensor() || b.is_tensor() ? host_.tensor_operator(primitive) : nullptr;
        if (!op) return host_.arithmetic(primitive, a, b);
        std::vector<Value> args{a};
        if (primitive != "minus") args.push_back(b);
        return record(*op, host_.bind(*op, args).args);
    }
    bool compare(std::string_view primitive, const Value& a, const Value& b) override {
        if (primitive != "equal" && (follows(a) || follows(b)))
            throw cannot_save("a comparison decides by the elements of a tensor that depends on the inputs");
        return host_.compare(primitive, a, b);
    }

  private:
    class Recording final : public Builder {
      public:
        explicit Recording(TracingHost& host) : host_(host) {}
        Value emit(const Op& op, std::span<const Value> args) override {
            return host_.record(op, {args.begin(), args.end()});
        }
        Value item(const Value& results, size_t i) override { return results.items().at(i); }
        Value tuple(std::vector<Value> items) override { return Value::list(std::move(items)); }

      private:
        TracingHost& host_;
    };

    bool follows(const Value& v) const { return v.is_tensor() && nodes_.contains(v.tensor().body()); }

    // Runs the operator and writes it into the graph, unless it works on constants alone.
    Value record(const Op& op, const std::vector<Value>& args) {
        bool matters = false;
        auto look = [&](const Value& v) { matters |= follows(v) || (v.is_tensor() && v.tensor().parameter()); };
        for (const Value& v : args) {
            look(v);
            if (v.is_list())
                for (const Value& item : v.items()) look(item);
        }
        if (!matters) return run(op, args);
        // Readers of the file know the operators of the registry alone.
        if (custom_op(op)) {
            Recording recording(*this);
            return expand(ExpandCall(Call(op, args, promoted_dtype(op, args)), recording));
        }
        if (op.side_effect == Effect::state)
            throw state_error(kWhere, str("ops.", op.name(), " writes into a tensor, which cannot be saved"));
        std::vector<Value> operands;
        for (const Value& v : args) operands.push_back(operand(v));
        Value result = run(op, args);
        // A view of the whole operand may be the operand itself; the result has to be told from it.
        if (result.is_tensor() && follows(result))
            result = Value(result.tensor().view(result.tensor().shape(), result.tensor().strides()));
        know(result, builder_.emit(op, operands));
        return result;
    }

    void know(const Value& v, const Value& node) {
        if (v.is_list()) {
            for (size_t i = 0; i < v.items().size(); ++i)
                if (v.items()[i].is_tensor()) know(v.items()[i], builder_.item(node, i));
            return;
        }
        if (!v.is_tensor() || !node.is_node()) return;
        nodes_[v.tensor().body()] = node.node();
        kept_.push_back(v.tensor());
    }

    std::string unique_name(const std::string& name) {
        std::string unique = name;
        for (int i = 2; !names_.insert(unique).second; ++i) unique = str(name, '_', i);
        return unique;
    }

    ir::Graph& graph_;
    ir::GraphBuilder builder_;
    std::unordered_map<const TensorBody*, ir::Node*> nodes_;
    std::vector<Tensor> kept_;  // so that no other tensor gets the body of one of them
    std::set<std::string> names_;
};

// The same elements in another order, with the other sign.
Tensor varied(const Tensor& t, bool negative) {
    Tensor other = Tensor::empty(t.dtype(), t.shape());
    const bool floats = is_float(t.dtype());
    for (int64_t i = 0; i < t.size(); ++i) {
        const int64_t from = t.size() - 1 - i;
        if (floats)
            other.set_at(i, t.at(from) * (negative ? -0.75 : 0.75));
        else
            other.set_at(i, t.at(from));
    }
    return other;
}

bool close(const Value& a, const Value& b) {
    if (!a.is_tensor() || !b.is_tensor()) return same_value(a, b);
    const Tensor &x = a.tensor(), &y = b.tensor();
    if (x.dtype() != y.dtype() || !(x.shape() == y.shape())) return false;
    for (int64_t i = 0; i < x.size(); ++i) {
        const double p = x.at(i), q = y.at(i);
        if (p == q || (std::isnan(p) && std::isnan(q))) continue;
        if (!(std::abs(p - q) <= 1e-5 + 1e-3 * std::abs(q))) return false;
    }
    return true;
}

void compare_with_function(LuaHost& host, const Value& f, const ir::Graph& graph, std::span<const Tensor> inputs) {
    const Value closure =
        vm::make_object<vm::Closure>(vm::function_of(graph), std::shared_ptr<const void>(), std::vector<Value>());
    for (int round = 0; round < 3; ++round) {
        std::vector<Value> args;
        for (const Tensor& t : inputs) args.emplace_back(round == 0 ? t : varied(t, round == 2));
        const vm::Values expected = host.call(f, args), found = host.run(host.lua(), closure, args);
        bool same = expected.size() == found.size();
        for (size_t i = 0; same && i < found.size(); ++i) same = close(found[i], expected[i]);
        if (same) continue;
        if (round == 0)
            throw state_error(kWhere,
                              "the function gives another result when it is called again: it draws random numbers or "
                              "changes what it depends on")
                .hint("leave the training mode before: net:set_train(false)");
        throw cannot_save(
            "the function depends on its inputs not only by operators: with other inputs it takes another way");
    }
}

}  // namespace

bool is_plain(const ir::Graph& g) {
    bool plain = g.inner().empty() && !g.variadic && !g.order && g.result.is_list();
    for (const ir::Node* node : g.body())
        plain &= node->kind == ir::NodeKind::item || (node->op && registry().find(node->op->name()) == node->op);
    for (auto& node : g.nodes()) plain &= !node->function;
    return plain;
}

std::unique_ptr<ir::Graph> trace_graph(lua_State* L, const Value& f, std::span<const Tensor> inputs) {
    LuaHost& host = LuaHost::of(L);
    LuaHost::Thread thread(host, L);
    auto graph = std::make_unique<ir::Graph>("main");
    TracingHost tracing(host, *graph);
    std::vector<Value> args;
    for (size_t i = 0; i < inputs.size(); ++i) {
        // A body of its own, which is not a parameter of a network and not the same input twice.
        args.emplace_back(inputs[i].view(inputs[i].shape(), inputs[i].strides()));
        tracing.add_input(args.back().tensor(), inputs.size() == 1 ? "x" : str("x", i));
    }
    std::vector<Value> results;
    auto* closure = vm::object_as<vm::Closure>(f);
    if (closure && is_plain(closure->function->graph)) {
        // A network that was loaded: its graph as it is, but for what it captures.
        args.insert(args.begin(), closure->captures.begin(), closure->captures.end());
        results = tracing.run_graph(closure->function->graph, args);
    } else {
        vm::Machine machine(tracing);
        results = machine.run(f, args).vector();
    }
    std::vector<Value> outputs;
    for (const Value& v : results) {
        if (!v.is_tensor())
            throw argument_error(kWhere, str("the function must return tensors, got ", host.describe(v)));
        outputs.push_back(tracing.operand(v));
    }
    if (outputs.empty()) throw argument_error(kWhere, "the function returns nothing");
    graph->result = Value::list(std::move(outputs));
    ir::verify(*graph);
    compare_with_function(host, f, *graph, inputs);
    return graph;
}

}  // namespace lunaria
