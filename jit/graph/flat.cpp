#include "jit/graph/flat.h"

#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/custom/custom_op.h"
#include "core/custom/foreign_op.h"
#include "jit/graph/rewrite.h"

namespace lunaria::graph {

namespace {

class Copier {
  public:
    explicit Copier(const ir::Graph& from) : from_(from) { flat_.graph = std::make_unique<ir::Graph>(from.name); }

    FlatGraph run() {
        for (const ir::Node* p : from_.parameters()) {
            if (p->type.kind != ir::NodeType::Kind::tensor || !p->type.tensor.shape.known())
                throw state_error("compile", str("parameter ", p->name, " of ", from_.name,
                                                 " is no tensor of known dtype and shape"));
            map_[p] = flat_.graph->add_parameter(p->name, p->type);
        }
        find_variables();
        for (const ir::Node* node : from_.body()) copy(*node);
        flat_.graph->result = copied(from_.result);
        // The several results of one operator.
        const Value& result = flat_.graph->result;
        if (result.is_node() && result.node()->type.kind == ir::NodeType::Kind::list) {
            std::vector<Value> items;
            for (size_t i = 0; i < result.node()->type.items.size(); ++i)
                items.emplace_back(flat_.graph->add_item(*result.node(), i));
            flat_.graph->result = Value::list(std::move(items));
        }
        return std::move(flat_);
    }

  private:
    void find_variables() {
        for (const ir::Node* node : from_.body()) {
            const bool writes = node->op && node->op->writes();
            for (const Value& arg : node->args)
                ir::for_each_node(arg, [&](ir::Node* n) {
                    if (n->kind != ir::NodeKind::constant || map_.contains(n) || !n->constant.is_tensor()) return;
                    if (writes || n->constant.tensor().parameter()) add_variable(n);
                });
        }
        ir::for_each_node(from_.result, [&](ir::Node* n) {
            if (n->kind == ir::NodeKind::constant && !map_.contains(n) && n->constant.is_tensor() &&
                n->constant.tensor().parameter())
                add_variable(n);
        });
    }
    void add_variable(const ir::Node* node) {
        const Tensor& t = node->constant.tensor();
        // Several constants may be the same tensor.
        for (size_t i = 0; i < flat_.variables.size(); ++i)
            if (flat_.variables[i].same_body(t)) {
                map_[node] = variable_nodes_[i];
                return;
            }
        flat_.variables.push_back(t);
        variable_nodes_.push_back(flat_.graph->add_parameter(node->name, node->type));
        map_[node] = variable_nodes_.back();
    }

    Value copied(const Value& v) {
        if (v.is_tensor()) return Value(flat_.graph->add_constant(v));
        if (v.is_list()) {
            std::vector<Value> items;
            for (const Value& item : v.items()) items.push_back(copied(item));
            return Value::list(std::move(items));
        }
        if (!v.is_node()) return v;
        auto found = map_.find(v.node());
        if (found != map_.end()) return Value(found->second);
        const ir::Node* node = v.node();
        if (node->kind != ir::NodeKind::constant || node->function)
            throw state_error("compile", str("%", node->id, " of ", from_.name, " is used where it is not known"));
        if (!node->constant.is_tensor()) return copied(node->constant);
        ir::Node* constant = flat_.graph->add_constant(node->constant);
        map_[node] = constant;
        return Value(constant);
    }

    void copy(const ir::Node& node) {
        if (node.kind == ir::NodeKind::item) {
            Value source = copied(node.args[0]);
            if (!source.is_node()) throw state_error("compile", str("%", node.id, " is an item of no list of results"));
            map_[&node] = flat_.graph->add_item(*source.node(), node.index);
        } else {
            if (!node.op || !(node.op->belongs_to(registry()) || custom_op(*node.op) || foreign_op(*node.op)))
                throw state_error("compile",
                                  str("%", node.id, " of ", from_.name, " is not the call of an operator on tensors"));
            std::vector<Value> args;
            for (const Value& arg : node.args) args.push_back(copied(arg));
            map_[&node] = flat_.graph->add_call(*node.op, std::move(args), node.type);
        }
        map_[&node]->span = node.span;
        map_[&node]->name = node.name;
    }

    const ir::Graph& from_;
    FlatGraph flat_;
    std::unordered_map<const ir::Node*, ir::Node*> map_;
    std::vector<ir::Node*> variable_nodes_;
};

}  // namespace

FlatGraph flatten(const ir::Graph& graph) {
    if (!graph.inner().empty())
        throw state_error("compile", str("the graph ", graph.name, " holds functions: they must be inlined first"));
    return Copier(graph).run();
}

}  // namespace lunaria::graph
