#include "core/ir/graph.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

namespace lunaria::ir {

Node* Graph::add(NodeKind kind) {
    Graph* root = this;
    while (root->parent) root = root->parent;
    nodes_.push_back(std::make_unique<Node>(kind, *this));
    Node* node = nodes_.back().get();
    node->id = root->next_id_++;
    return node;
}

void Graph::reserve_ids(int id) {
    Graph* root = this;
    while (root->parent) root = root->parent;
    root->next_id_ = std::max(root->next_id_, id);
}

Node* Graph::add_parameter(std::string parameter_name, NodeType type) {
    Node* node = add(NodeKind::parameter);
    node->name = std::move(parameter_name);
    node->type = std::move(type);
    parameters_.push_back(node);
    return node;
}

namespace {
NodeType type_of_constant(const Value& v) {
    if (v.is_tensor()) return NodeType::of(type_of(v));
    if (!v.is_list()) return {NodeType::Kind::host, {}, {}};
    std::vector<NodeType> items;
    for (const Value& item : v.items()) items.push_back(item.is_node() ? item.node()->type : type_of_constant(item));
    return NodeType::list(std::move(items));
}
}  // namespace

Node* Graph::add_constant(Value v) {
    Node* node = add(NodeKind::constant);
    node->type = type_of_constant(v);
    node->constant = std::move(v);
    return node;
}

Node* Graph::add_function(Graph& graph) {
    Node* node = add(NodeKind::constant);
    node->function = &graph;
    return node;
}

Node* Graph::add_call(const Op& op, std::vector<Value> args, NodeType type) {
    Node* node = add(NodeKind::call);
    node->op = &op;
    node->args = std::move(args);
    node->type = std::move(type);
    body_.push_back(node);
    return node;
}

Node* Graph::add_call(Node& callee, std::vector<Value> args, NodeType type) {
    Node* node = add(NodeKind::call);
    node->callee = &callee;
    node->args = std::move(args);
    node->type = std::move(type);
    body_.push_back(node);
    return node;
}

Node* Graph::add_item(Node& results, size_t index) {
    Node* node = add(NodeKind::item);
    node->args.emplace_back(&results);
    node->index = index;
    if (results.type.kind == NodeType::Kind::list) {
        if (index >= results.type.items.size())
            throw state_error(
                "ir", str("node %", results.id, " has ", results.type.items.size(), " results, not ", index + 1));
        node->type = results.type.items[index];
    }
    body_.push_back(node);
    return node;
}

Node* Graph::append(std::unique_ptr<Node> node) {
    Graph* root = this;
    while (root->parent) root = root->parent;
    node->id = root->next_id_++;
    node->graph_ = this;
    body_.push_back(node.get());
    nodes_.push_back(std::move(node));
    return nodes_.back().get();
}

size_t Graph::find(const Node& node) const {
    size_t at = nodes_.size();
    while (nodes_[at - 1].get() != &node) --at;
    return at - 1;
}

size_t Graph::count_body(size_t from) const {
    return static_cast<size_t>(std::count_if(nodes_.begin() + static_cast<ptrdiff_t>(from), nodes_.end(), [](auto& n) {
        return n->kind == NodeKind::call || n->kind == NodeKind::item;
    }));
}

void Graph::erase_from(const Node& first) {
    const size_t at = find(first);
    body_.resize(body_.size() - count_body(at));
    nodes_.resize(at);
    result = Value();
}

Graph& Graph::split(const Node& first, std::string inner_name) {
    auto tail = std::make_unique<Graph>(std::move(inner_name), this);
    const size_t at = find(first);
    const auto of_body = body_.end() - static_cast<ptrdiff_t>(count_body(at));
    const auto of_nodes = nodes_.begin() + static_cast<ptrdiff_t>(at);
    tail->body_.assign(of_body, body_.end());
    tail->nodes_.assign(std::make_move_iterator(of_nodes), std::make_move_iterator(nodes_.end()));
    body_.erase(of_body, body_.end());
    nodes_.erase(of_nodes, nodes_.end());
    tail->inner_ = std::move(inner_);
    inner_.clear();
    tail->result = std::exchange(result, Value());
    for (auto& node : tail->nodes_) node->graph_ = tail.get();
    for (auto& graph : tail->inner_) graph->parent = tail.get();
    inner_.push_back(std::move(tail));
    return *inner_.back();
}

void Graph::join(Graph& inner) {
    const auto found =
        std::find_if(inner_.begin(), inner_.end(), [&](const auto& graph) { return graph.get() == &inner; });
    const std::unique_ptr<Graph> content = std::move(*found);
    inner_.erase(found);
    for (auto& node : content->nodes_) node->graph_ = this;
    for (auto& graph : content->inner_) graph->parent = this;
    body_.insert(body_.end(), content->body_.begin(), content->body_.end());
    std::move(content->nodes_.begin(), content->nodes_.end(), std::back_inserter(nodes_));
    std::move(content->inner_.begin(), content->inner_.end(), std::back_inserter(inner_));
    result = std::move(content->result);
}

Graph& Graph::add_inner(std::string inner_name) {
    inner_.push_back(std::make_unique<Graph>(std::move(inner_name), this));
    return *inner_.back();
}

bool Graph::encloses(const Graph& other) const {
    for (const Graph* g = &other; g; g = g->parent)
        if (g == this) return true;
    return false;
}

std::vector<Node*> Graph::free_variables() const {
    std::vector<Node*> free;
    auto look = [&](Node* node) {
        if (node->kind == NodeKind::constant) return;  // constants need no environment
        if (!encloses(node->graph()) && std::find(free.begin(), free.end(), node) == free.end()) free.push_back(node);
    };
    for (Node* node : body_) {
        for (const Value& arg : node->args) for_each_node(arg, look);
        if (node->callee) look(node->callee);
    }
    for_each_node(result, look);
    for (auto& graph : inner_)
        for (Node* node : graph->free_variables()) look(node);
    return free;
}

void Graph::erase_parameters(const std::function<bool(const Node&)>& dead) {
    std::erase_if(parameters_, [&](Node* node) { return dead(*node); });
}

void Graph::erase_inner(const std::function<bool(const Graph&)>& dead) {
    std::erase_if(inner_, [&](const std::unique_ptr<Graph>& graph) { return dead(*graph); });
}

bool goes_on(const Node& node) { return (node.callee && node.callee->function) || (node.op && node.op->is_branch); }

std::vector<const Graph*> blocks_of(const Graph& entry) {
    std::vector<const Graph*> blocks{&entry};
    std::unordered_set<const Graph*> seen{&entry};
    auto visit = [&](const Value& target) {
        const Graph* graph = target.is_node() ? target.node()->function : nullptr;
        if (graph && seen.insert(graph).second) blocks.push_back(graph);
    };
    for (size_t i = 0; i < blocks.size(); ++i) {
        const Value& result = blocks[i]->result;
        if (!result.is_node() || !goes_on(*result.node())) continue;
        const Node& last = *result.node();
        if (last.callee) {
            visit(Value(last.callee));
        } else {
            visit(last.args[1]);
            visit(last.args[3]);
        }
    }
    return blocks;
}

void for_each_node(const Value& v, const std::function<void(Node*)>& f) {
    if (v.is_node()) f(v.node());
    if (v.is_list())
        for (const Value& item : v.items()) for_each_node(item, f);
}

}  // namespace lunaria::ir
