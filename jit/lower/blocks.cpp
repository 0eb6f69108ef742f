#include "jit/lower/blocks.h"

#include <unordered_set>

#include "jit/language.h"

namespace lunaria::lower {

using ir::for_each_node;
using lua::primitive;

Blocks::Blocks(ir::Graph& entry) : function_(entry) {
    blocks_.push_back(&storage_.emplace_back(entry));
    blocks_.front()->sealed_ = true;
}

Block& Blocks::add(std::string name) {
    blocks_.push_back(&storage_.emplace_back(function_.add_inner(function_.name + "." + std::move(name))));
    return *blocks_.back();
}

Variable Blocks::temporary(std::string_view name) {
    Local& local = temporaries_.emplace_back();
    local.name = name;
    return &local;
}

void Blocks::seal(Block& block) {
    if (std::exchange(block.sealed_, true)) return;
    // Reading may pass through this very block and add parameters to it; those are filled at once, since the block is
    // sealed now.
    std::vector<Block::Phi> open = block.phis_;
    for (const Block::Phi& phi : open) fill_phi(block, phi);
}

ir::Node* Blocks::add_phi(Block& block, Variable variable) {
    ir::Node* parameter = block.graph->add_parameter(std::string(variable->name), {});
    block.phis_.push_back({variable, parameter});
    block.values_[variable] = Value(parameter);
    for (Block* p : block.predecessors_)
        for (Edge& edge : p->edges)
            if (edge.target == &block) edge.args.resize(block.phis_.size());
    return parameter;
}

void Blocks::fill_phi(Block& block, const Block::Phi& phi) {
    size_t at = 0;
    while (block.phis_[at].parameter != phi.parameter) ++at;
    // By index: reading may add parameters to predecessors, but no predecessors.
    for (size_t i = 0; i < block.predecessors_.size(); ++i) {
        Block& p = *block.predecessors_[i];
        Value value = read(p, phi.variable);
        for (Edge& edge : p.edges)
            if (edge.target == &block) {
                edge.args.resize(std::max(edge.args.size(), at + 1));
                edge.args[at] = value;
            }
    }
}

Value Blocks::read(Block& block, Variable variable) {
    auto found = block.values_.find(variable);
    if (found != block.values_.end()) return found->second;
    return read_from_predecessors(block, variable);
}

Value Blocks::read_from_predecessors(Block& start, Variable variable) {
    // Chains of single predecessors are walked in a loop: a long function is a long chain.
    Block* block = &start;
    std::vector<Block*> chain;
    Value value;
    while (true) {
        auto found = block->values_.find(variable);
        if (found != block->values_.end()) {
            value = found->second;
            break;
        }
        if (!block->sealed_) {
            value = Value(add_phi(*block, variable));
            break;
        }
        if (block->predecessors_.empty()) break;  // unreachable, or read before it is written: nil
        if (block->predecessors_.size() > 1) {
            value = Value(add_phi(*block, variable));
            fill_phi(*block, block->phis_.back());
            break;
        }
        chain.push_back(block);
        block = block->predecessors_.front();
    }
    for (Block* b : chain) b->values_[variable] = value;
    return value;
}

void Blocks::jump(Block& from, Block& to, ir::Span span) {
    from.ending = Ending::jump;
    from.span = std::move(span);
    from.edges[0].target = &to;
    from.edges[0].args.resize(to.phis_.size());
    to.predecessors_.push_back(&from);
}

void Blocks::branch(Block& from, Value condition, Block& yes, Block& no, ir::Span span) {
    from.ending = Ending::branch;
    from.condition = std::move(condition);
    from.span = std::move(span);
    Block* targets[] = {&yes, &no};
    for (int i = 0; i < 2; ++i) {
        from.edges[i].target = targets[i];
        from.edges[i].args.resize(targets[i]->phis_.size());
        if (i == 0 || &yes != &no) targets[i]->predecessors_.push_back(&from);
    }
}

void Blocks::leave(Block& from, Value results, ir::Span span) {
    from.ending = Ending::leave;
    from.results = std::move(results);
    from.span = std::move(span);
}

std::vector<Block*> Blocks::reachable() {
    std::vector<Block*> list{&entry()};
    std::unordered_set<Block*> seen{&entry()};
    for (size_t i = 0; i < list.size(); ++i)
        for (Edge& edge : list[i]->edges)
            if (edge.target && seen.insert(edge.target).second) list.push_back(edge.target);
    return list;
}

Value Blocks::resolve(const Value& v) const {
    if (v.is_node()) {
        auto found = replaced_.find(v.node());
        return found == replaced_.end() ? v : resolve(found->second);
    }
    if (!v.is_list()) return v;
    std::vector<Value> items;
    for (const Value& item : v.items()) items.push_back(resolve(item));
    return Value::list(std::move(items));
}

// A parameter whose sources are all either itself or one and the same value is replaced by that value.
void Blocks::remove_trivial_phis(const std::vector<Block*>& reachable) {
    std::unordered_map<Block*, std::vector<Edge*>> incoming;
    for (Block* b : reachable)
        for (Edge& edge : b->edges)
            if (edge.target) incoming[edge.target].push_back(&edge);
    for (bool changed = true; changed;) {
        changed = false;
        for (Block* b : reachable) {
            for (size_t i = 0; i < b->phis_.size();) {
                const ir::Node* parameter = b->phis_[i].parameter;
                Value only;
                bool trivial = true, any = false;
                for (Edge* edge : incoming[b]) {
                    Value source = resolve(edge->args[i]);
                    if (source.is_node() && source.node() == parameter) continue;
                    trivial &= !any || same_value(source, only);
                    only = source;
                    any = true;
                }
                if (!trivial) {
                    ++i;
                    continue;
                }
                replaced_[parameter] = only;
                b->phis_.erase(b->phis_.begin() + static_cast<std::ptrdiff_t>(i));
                for (Edge* edge : incoming[b]) edge->args.erase(edge->args.begin() + static_cast<std::ptrdiff_t>(i));
                changed = true;
            }
        }
    }
}

Value Blocks::localise(const Block& block, const Value& v) {
    if (v.is_node()) {
        ir::Node* node = v.node();
        if (node->kind == ir::NodeKind::constant || &node->graph() == block.graph) return v;
        const auto& parameters = block.graph->parameters();
        return Value(parameters[parameters.size() - block.lifted_.size() + block.lifted_at_.at(node)]);
    }
    if (!v.is_list()) return v;
    std::vector<Value> items;
    for (const Value& item : v.items()) items.push_back(localise(block, item));
    return Value::list(std::move(items));
}

void Blocks::lift(const std::vector<Block*>& reachable) {
    auto need = [](Block& block, ir::Node* node) {
        if (node->kind == ir::NodeKind::constant || &node->graph() == block.graph) return false;
        if (!block.lifted_at_.try_emplace(node, block.lifted_.size()).second) return false;
        block.lifted_.push_back(node);
        return true;
    };
    for (Block* b : reachable) {
        auto use = [&](ir::Node* node) { need(*b, node); };
        for (ir::Node* node : b->graph->body())
            for (const Value& arg : node->args) for_each_node(arg, use);
        for_each_node(b->condition, use);
        for_each_node(b->results, use);
        for (Edge& edge : b->edges)
            for (const Value& arg : edge.args) for_each_node(arg, use);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = reachable.size(); i-- > 0;)
            for (Edge& edge : reachable[i]->edges)
                if (edge.target)
                    for (ir::Node* node : edge.target->lifted_) changed |= need(*reachable[i], node);
    }
    for (Block* b : reachable)
        for (ir::Node* node : b->lifted_) b->graph->add_parameter(node->name, node->type);
}

void Blocks::finish() {
    for (Block* b : std::vector<Block*>(blocks_)) seal(*b);
    std::vector<Block*> live = reachable();
    // Edges from unreachable predecessors must not keep a parameter alive: from here on only edges of live blocks
    // count.
    remove_trivial_phis(live);
    for (Block* b : live) {
        for (ir::Node* node : b->graph->body())
            for (Value& arg : node->args) arg = resolve(arg);
        b->condition = resolve(b->condition);
        b->results = resolve(b->results);
        for (Edge& edge : b->edges)
            for (Value& arg : edge.args) arg = resolve(arg);
        b->graph->erase_parameters([&](const ir::Node& p) { return replaced_.contains(&p); });
    }
    std::unordered_set<const ir::Graph*> dropped;
    for (Block* b : blocks_) dropped.insert(b->graph);
    for (Block* b : live) dropped.erase(b->graph);
    lift(live);
    for (Block* b : live) {
        for (ir::Node* node : b->graph->body())
            for (Value& arg : node->args) arg = localise(*b, arg);
        auto arguments = [&](Edge& edge) {
            std::vector<Value> args;
            for (const Value& arg : edge.args) args.push_back(localise(*b, arg));
            for (ir::Node* node : edge.target->lifted_) args.push_back(localise(*b, Value(node)));
            return args;
        };
        ir::Node* last = nullptr;
        switch (b->ending) {
            case Ending::open:
            case Ending::leave:
                b->graph->result = localise(*b, b->results);
                continue;
            case Ending::jump:
                last =
                    b->graph->add_call(*b->graph->add_function(*b->edges[0].target->graph), arguments(b->edges[0]), {});
                break;
            case Ending::branch:
                last = b->graph->add_call(
                    primitive("branch"),
                    {localise(*b, b->condition), Value(b->graph->add_function(*b->edges[0].target->graph)),
                     Value::list(arguments(b->edges[0])), Value(b->graph->add_function(*b->edges[1].target->graph)),
                     Value::list(arguments(b->edges[1]))},
                    {});
                break;
        }
        last->span = b->span;
        b->graph->result = Value(last);
    }
    function_.erase_inner([&](const ir::Graph& g) { return dropped.contains(&g); });
}

}  // namespace lunaria::lower
