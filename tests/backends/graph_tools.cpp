#include "tests/backends/graph_tools.h"

#include <unordered_map>

#include "core/ir/builder.h"
#include "core/operator/expansion.h"

namespace lunaria::testing {

namespace {

using Environment = std::unordered_map<const ir::Node*, Value>;

Value substitute(const Value& v, const Environment& environment) {
    if (v.is_node()) return v.node()->kind == ir::NodeKind::constant ? v.node()->constant : environment.at(v.node());
    if (!v.is_list()) return v;
    std::vector<Value> items;
    for (const Value& item : v.items()) items.push_back(substitute(item, environment));
    return Value::list(std::move(items));
}

// Rebuilds `graph`'s body in `target` with composite operators replaced by what they are made of.
class Expander {
  public:
    Expander(ir::Graph& target) : builder_(target) {}

    Value copy(const Value& v) {
        if (v.is_node()) {
            if (v.node()->kind == ir::NodeKind::constant)
                return Value(builder_.graph().add_constant(v.node()->constant));
            return map_.at(v.node());
        }
        if (!v.is_list()) return v;
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(copy(item));
        return Value::list(std::move(items));
    }
    void body(const ir::Graph& graph) {
        for (const ir::Node* node : graph.body()) {
            if (node->kind == ir::NodeKind::item) {
                map_[node] = builder_.item(copy(node->args[0]), node->index);
                continue;
            }
            std::vector<Value> args;
            for (const Value& arg : node->args) args.push_back(copy(arg));
            map_[node] = expand(*node->op, args);
        }
    }
    void bind(const ir::Node* from, Value to) { map_[from] = std::move(to); }

  private:
    Value expand(const Op& op, std::span<const Value> args) {
        if (op.grad_fn || !op.expand_fn || op.no_grad_reason) return builder_.emit(op, args);
        ir::Graph scratch("expansion");
        ir::GraphBuilder inner(scratch);
        // The expansion is written into a graph of its own first, then copied in expanded form.
        std::vector<Value> parameters;
        Expander nested(builder_.graph());
        for (const Value& arg : args) parameters.push_back(parameter(scratch, nested, arg));
        Value result = lunaria::expand(ExpandCall(Call(op, parameters, promoted_dtype(op, parameters)), inner));
        nested.body(scratch);
        return nested.copy(result);
    }
    static Value parameter(ir::Graph& scratch, Expander& nested, const Value& v) {
        if (v.is_node()) {
            ir::Node* p = scratch.add_parameter("", v.node()->type);
            nested.bind(p, v);
            return Value(p);
        }
        if (!v.is_list()) return v;
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(parameter(scratch, nested, item));
        return Value::list(std::move(items));
    }

    ir::GraphBuilder builder_;
    std::unordered_map<const ir::Node*, Value> map_;
};

class Reverse {
  public:
    explicit Reverse(ir::Graph& graph) : builder_(graph) {}

    std::vector<Value> run(const Value& result, std::span<const size_t> parameters) {
        std::vector<ir::Node*> body = builder_.graph().body();
        if (result.is_node()) add(result.node(), 0, builder_.ones_like(Expr(builder_, result)));
        for (size_t i = body.size(); i-- > 0;) step(*body[i]);
        std::vector<Value> grads;
        for (size_t p : parameters) {
            ir::Node* node = builder_.graph().parameters()[p];
            Expr g = cotangents_[node].empty() ? Expr() : cotangents_[node][0];
            grads.push_back(g ? g.value() : builder_.zeros_like(Expr(builder_, Value(node))).value());
        }
        return grads;
    }

  private:
    void add(ir::Node* node, size_t item, const Expr& g) {
        if (!g || node->kind == ir::NodeKind::constant) return;
        auto& list = cotangents_[node];
        if (list.size() <= item) list.resize(item + 1);
        list[item] = list[item] ? list[item] + g : g;
    }
    void spread(const Value& v, const Expr& g) {
        if (!g) return;
        if (v.is_node()) return add(v.node(), 0, g);
        if (!v.is_list()) return;
        for (size_t i = 0; i < v.items().size(); ++i) spread(v.items()[i], g[i]);
    }
    void step(ir::Node& node) {
        auto found = cotangents_.find(&node);
        if (found == cotangents_.end()) return;
        std::vector<Expr> douts = found->second;
        if (node.kind == ir::NodeKind::item) return add(node.args[0].node(), node.index, douts[0]);
        const Op& op = *node.op;
        if (op.no_grad_reason) return;
        if (!op.grad_fn) throw state_error(op.name(), "has no gradient rule");
        std::vector<Expr> outs;
        size_t count = node.type.kind == ir::NodeType::Kind::list ? node.type.items.size() : 1;
        for (size_t i = 0; i < count; ++i)
            outs.push_back(node.type.kind == ir::NodeType::Kind::list ? Expr(builder_, builder_.item(Value(&node), i))
                                                                      : Expr(builder_, Value(&node)));
        douts.resize(count);
        GradRule rule(Call(op, node.args, promoted_dtype(op, node.args)), builder_, outs, douts);
        Grads grads = gradients(rule);
        if (grads.size() > node.args.size())
            throw state_error(op.name(), "its gradient rule gives more cotangents than there are parameters");
        for (size_t i = 0; i < grads.size(); ++i) {
            if (!grads[i]) continue;
            if (node.args[i].is_node() && !(grads[i].shape() == node.args[i].node()->tensor_type().shape))
                throw state_error(op.name(), str("cotangent ", i, " has shape ", grads[i].shape(), ", its operand ",
                                                 node.args[i].node()->tensor_type().shape));
            spread(node.args[i], grads[i]);
        }
    }

    ir::GraphBuilder builder_;
    std::unordered_map<ir::Node*, std::vector<Expr>> cotangents_;
};

}  // namespace

Value evaluate(const ir::Graph& graph, std::span<const Value> args) {
    Environment environment;
    for (size_t i = 0; i < graph.parameters().size(); ++i) environment[graph.parameters()[i]] = args[i];
    for (const ir::Node* node : graph.body()) {
        if (node->kind == ir::NodeKind::item) {
            environment[node] = environment.at(node->args[0].node()).items().at(node->index);
            continue;
        }
        std::vector<Value> operands;
        for (const Value& arg : node->args) operands.push_back(substitute(arg, environment));
        Value result = lunaria::run(*node->op, operands);
        // split into one part is a list, of which the graph knows the part alone.
        if (result.is_list() && node->type.kind == ir::NodeType::Kind::tensor) result = Value(result.items().at(0));
        environment[node] = std::move(result);
    }
    return substitute(graph.result, environment);
}

std::unique_ptr<ir::Graph> gradient(const ir::Graph& graph, std::span<const size_t> parameters) {
    auto result = std::make_unique<ir::Graph>(graph.name);
    Expander expander(*result);
    for (ir::Node* p : graph.parameters()) expander.bind(p, Value(result->add_parameter(p->name, p->type)));
    expander.body(graph);
    result->result = Value::list(Reverse(*result).run(expander.copy(graph.result), parameters));
    return result;
}

}  // namespace lunaria::testing
