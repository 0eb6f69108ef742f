#include "jit/vm/code.h"

#include <algorithm>
#include <memory_resource>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "jit/autodiff/pullback.h"
#include "jit/autodiff/transform.h"
#include "jit/language.h"
#include "jit/vm/handlers.h"

namespace lunaria::vm {

using ir::Node;
using ir::NodeKind;

namespace {

const lua::Facts& facts_of(const Node& node) { return lua::facts(node.op); }

class Compiler {
  public:
    // `wanted`: the block whose layout is requested.
    explicit Compiler(const ir::Graph& graph, const ir::Graph* wanted = nullptr) : graph_(graph), wanted_(wanted) {}

    Layout layout() {
        run();
        return {{register_.begin(), register_.end()}, {wanted_last_.begin(), wanted_last_.end()}};
    }

    std::unique_ptr<Code> run() {
        for (const ir::Graph* b : blocks_) {
            index_.try_emplace(b, index_.size());
            auto& block = code_->blocks.emplace_back();
            for (const Node* p : b->parameters()) {
                block.parameters.push_back(static_cast<int32_t>(top_));
                register_[p] = static_cast<int32_t>(top_++);
            }
        }
        code_->parameters = graph_.parameters().size();
        base_ = top_;
        for (size_t i = 0; i < blocks_.size(); ++i) {
            code_->blocks[i].start = static_cast<uint32_t>(code_->instrs.size());
            block(*blocks_[i]);
        }
        code_->registers = top_;
        code_->graph = &graph_;
        return std::move(code_);
    }

  private:
    struct Alias {
        const Node* source;
        int32_t index;
    };

    void block(const ir::Graph& b) {
        spread_.clear();
        alias_.clear();
        aliases_of_.clear();
        last_.clear();
        held_until_.clear();
        free_.clear();
        next_ = base_;
        find_needed(b);
        find_spread(b);
        const auto& body = b.body();
        const Node* jump_node = b.result.is_node() && ir::goes_on(*b.result.node()) ? b.result.node() : nullptr;
        for (size_t i = 0; i < body.size(); ++i)
            if (needed_.contains(body[i]) && !alias_.contains(body[i]))
                for (const Value& arg : body[i]->args) use(arg, facts_of(*body[i]).stops ? next_stop(body, i) : i);
        if (!jump_node) use(b.result, body.size());
        // Parameters without a reader are dropped by the first instruction.
        std::vector<int32_t> dead;
        for (const Node* p : b.parameters())
            if (!last_.contains(p)) dead.push_back(register_.at(p));
        const Node* tail_call = tail_call_of(b);
        for (size_t i = 0; i < body.size(); ++i) {
            const Node& node = *body[i];
            if (alias_.contains(&node) || !needed_.contains(&node)) continue;
            if (&node == jump_node)
                jump(node, std::exchange(dead, {}));
            else
                instruction(node, i, &node == tail_call, std::exchange(dead, {}));
        }
        if (!jump_node && !tail_call) leave(b);
        if (&b == wanted_) wanted_last_ = last_;
        top_ = std::max(top_, next_);
    }

    // A debugger may read the variables at a stop point while the statement runs.
    static size_t next_stop(const std::vector<Node*>& body, size_t i) {
        for (++i; i < body.size(); ++i)
            if (facts_of(*body[i]).stops) return i - 1;
        return body.size();
    }

    // A call whose list of results is the result of an undifferentiated function.
    const Node* tail_call_of(const ir::Graph& b) const {
        if (!b.result.is_node() || graph_.order > 0 || b.body().empty()) return nullptr;
        const Node* node = b.result.node();
        return node == b.body().back() && facts_of(*node).hands_over ? node : nullptr;
    }

    // Nodes that have an effect or serve one.
    void find_needed(const ir::Graph& b) {
        needed_.clear();
        needed_.reserve(b.body().size());
        auto want = [&](Node* n) { needed_.insert(n); };
        ir::for_each_node(b.result, want);
        for (size_t i = b.body().size(); i-- > 0;) {
            const Node& node = *b.body()[i];
            const bool spare = node.kind == NodeKind::item || facts_of(node).spare;
            if (spare && !needed_.contains(&node)) continue;
            needed_.insert(&node);
            for (const Value& arg : node.args) ir::for_each_node(arg, want);
        }
    }

    // Lists of results that are only taken apart are never made: each result has a register.
    void find_spread(const ir::Graph& b) {
        std::pmr::unordered_map<const Node*, int64_t> most(&memory_);
        std::pmr::unordered_set<const Node*> whole(&memory_);
        auto note = [&](Node* n) { whole.insert(n); };
        for (const Node* node : b.body()) {
            if (!needed_.contains(node)) continue;
            if (node->kind == NodeKind::item && is_ordered_item(*node)) continue;
            if (picks_result(*node) && node->args[1].kind() == Value::Kind::integer &&
                gives_results(*node->args[0].node())) {
                auto& m = most[node->args[0].node()];
                m = std::max(m, node->args[1].integer() + 1);
                continue;
            }
            for (const Value& arg : node->args) ir::for_each_node(arg, note);
        }
        ir::for_each_node(b.result, note);
        for (const Node* node : b.body()) {
            if (!gives_results(*node)) continue;
            if (whole.contains(node)) continue;
            spread_[node] = most.contains(node) ? static_cast<int32_t>(most[node]) : 0;
        }
        for (const Node* node : b.body())
            if (picks_result(*node) && spread_.contains(node->args[0].node()))
                add_alias(node, {node->args[0].node(), static_cast<int32_t>(node->args[1].integer())});
        for (const Node* node : b.body())
            if (node->kind == NodeKind::item && is_ordered_item(*node)) add_alias(node, {node->args[0].node(), 0});
    }

    void add_alias(const Node* node, Alias alias) {
        if (alias_.try_emplace(node, alias).second) aliases_of_[alias.source].push_back(node);
    }

    static bool picks_result(const Node& node) {
        static const Op& result = lua::primitive("result");
        return node.op == &result && node.args[0].is_node();
    }

    static bool is_ordered_item(const Node& item) { return facts_of(*item.args[0].node()).ordered; }

    // Whether the node's value is the list of results of a call.
    static bool gives_results(const Node& node) {
        if (node.kind == NodeKind::item)
            return node.index == 0 && is_ordered_item(node) && facts_of(*node.args[0].node()).calls;
        return facts_of(node).calls && !facts_of(node).ordered;
    }

    void use(const Value& v, size_t at) {
        ir::for_each_node(v, [&](Node* n) {
            const Node* root = n;
            last_[n] = std::max(last_[n], at);
            while (alias_.contains(root)) {
                root = alias_.at(root).source;
                last_[root] = std::max(last_[root], at);
            }
        });
    }

    int32_t take_register() {
        if (!free_.empty()) {
            int32_t r = free_.back();
            free_.pop_back();
            held_until_.erase(r);
            return r;
        }
        return static_cast<int32_t>(next_++);
    }

    int32_t take_run(int32_t count) {
        if (count == 1) return take_register();
        auto r = static_cast<int32_t>(next_);
        next_ += static_cast<size_t>(count);
        return r;
    }

    int32_t constant(const Value& v) {
        code_->constants.push_back(v);
        return ~static_cast<int32_t>(code_->constants.size() - 1);
    }

    // Rules have many of these, all of whose results but their content is known beforehand.
    static Handler operator_handler(const Node& node) {
        static const Op &transpose = registry().get("transpose"), &reshape = registry().get("reshape"),
                        &broadcast_to = registry().get("broadcast_to");
        if (node.op == &transpose && node.args[1].is_list() && same_value(node.args[1], Value::ints(Shape{1, 0})))
            return handle_transpose;
        const bool known = node.type.kind == ir::NodeType::Kind::tensor && node.type.tensor.shape.known();
        if (known && node.op == &broadcast_to) return handle_broadcast;
        return known && node.op == &reshape ? handle_reshape : handle_operator;
    }

    static bool has_nodes(const Value& v) {
        bool found = false;
        ir::for_each_node(v, [&](Node*) { found = true; });
        return found;
    }

    // `spelled`: a list is laid out even if all of it is constant.
    Slot slot(const Value& v, bool spelled) {
        if (v.is_list() && (spelled || has_nodes(v))) {
            std::vector<Slot> items;
            for (const Value& item : v.items()) items.push_back(slot(item, false));
            Slot list{static_cast<int32_t>(code_->slots.size()), static_cast<int32_t>(items.size()), false};
            code_->slots.insert(code_->slots.end(), items.begin(), items.end());
            return list;
        }
        if (!v.is_node()) return {constant(v), -1, false};
        const Node& node = *v.node();
        if (node.kind != NodeKind::constant) {
            const auto found = register_.find(&node);
            if (found == register_.end())
                throw state_error("vm", str("node %", node.id, " of ", node.graph().name, " is used in ", graph_.name,
                                            " before it is computed"));
            return {found->second, -1, false};
        }
        if (!node.function) return {constant(node.constant), -1, false};
        return {constant(Value(static_cast<int64_t>(reinterpret_cast<intptr_t>(node.function)))), -1, false};
    }

    void operands(Instr& instr, std::span<const Value> args, bool spelled) {
        std::vector<Slot> slots;
        for (const Value& arg : args) slots.push_back(slot(arg, spelled));
        instr.slots = static_cast<uint32_t>(code_->slots.size());
        instr.slot_count = static_cast<uint32_t>(slots.size());
        code_->slots.insert(code_->slots.end(), slots.begin(), slots.end());
    }

    void kill(Instr& instr, const std::vector<int32_t>& registers) {
        instr.kills = static_cast<uint32_t>(code_->kills.size());
        instr.kill_count = static_cast<uint32_t>(registers.size());
        code_->kills.insert(code_->kills.end(), registers.begin(), registers.end());
    }

    // Registers of operands that are not used after instruction i.
    std::vector<int32_t> dying(std::span<const Value> args, size_t i) const {
        std::vector<int32_t> result;
        for (const Value& arg : args)
            ir::for_each_node(arg, [&](Node* n) {
                auto found = register_.find(n);
                if (n->kind == NodeKind::constant || found == register_.end() || last_.at(n) > i) return;
                auto held = held_until_.find(found->second);
                if (held == held_until_.end() || held->second <= i) result.push_back(found->second);
            });
        std::sort(result.begin(), result.end());
        result.erase(std::unique(result.begin(), result.end()), result.end());
        return result;
    }

    // Operands that occur once and are not used later may be moved.
    void mark_last(const Instr& instr, const std::vector<int32_t>& dying) {
        mark_last(instr.slots, instr.slot_count, dying);
    }
    void mark_last(uint32_t first, uint32_t slots, const std::vector<int32_t>& dying) {
        if (dying.empty()) return;
        std::vector<int> count(dying.size());
        auto walk = [&](auto& self, uint32_t from, uint32_t n, bool mark) -> void {
            for (uint32_t k = from; k < from + n; ++k) {
                Slot& s = code_->slots[k];
                if (s.items >= 0)
                    self(self, static_cast<uint32_t>(s.at), static_cast<uint32_t>(s.items), mark);
                else if (auto r = std::lower_bound(dying.begin(), dying.end(), s.at); r != dying.end() && *r == s.at) {
                    int& times = count[static_cast<size_t>(r - dying.begin())];
                    mark ? void(s.last = times == 1) : void(++times);
                }
            }
        };
        walk(walk, first, slots, false);
        walk(walk, first, slots, true);
    }

    void instruction(const Node& node, size_t i, bool tail, std::vector<int32_t> dead) {
        Instr instr;
        instr.node = &node;
        instr.tail = tail;
        std::vector<int32_t> unused;
        if (node.kind == NodeKind::item) {
            instr.run = handle_item;
            operands(instr, node.args, true);
        } else if (!node.op) {
            throw state_error("vm", "a call of a function value must be the primitive 'call'");
        } else if (!lua::is_primitive(*node.op) || facts_of(node).of_numbers) {
            instr.run = facts_of(node).of_numbers ? handle_number : operator_handler(node);
            instr.op = node.op;
            operands(instr, node.args, false);
        } else {
            instr.run = handler_of(*node.op);
            instr.op = node.op;
            // The next instruction may use the registers for something else.
            const lua::Facts& facts = facts_of(node);
            instr.tail |= facts.goes_elsewhere;
            if (facts.ordered)
                instr.order = node.args[0].is_list() ? static_cast<int32_t>(node.args[0].items().size()) : 1;
            if (facts.names) instr.op = &lua::named_operation(node);
            operands(instr, node.args, true);
        }
        std::vector<int32_t> dies = dying(node.args, i);
        mark_last(instr, dies);
        outputs(instr, node, unused);
        for (int32_t r : dies) free_register(r);
        dies.insert(dies.end(), unused.begin(), unused.end());
        dies.insert(dies.end(), dead.begin(), dead.end());
        kill(instr, dies);
        for (int32_t r : unused) free_register(r);
        code_->instrs.push_back(instr);
    }

    void free_register(int32_t r) {
        if (r >= static_cast<int32_t>(base_)) free_.push_back(r);
    }

    void outputs(Instr& instr, const Node& node, std::vector<int32_t>& unused) {
        const lua::Facts& facts = facts_of(node);
        auto bind = [&](const Node* n, int32_t r) {
            register_[n] = r;
            if (auto last = last_.find(n); last != last_.end()) held_until_[r] = std::max(held_until_[r], last->second);
        };
        // All results spread over registers, aliases included.
        auto bind_results = [&](const Node* list, int32_t count) {
            instr.results = count;
            instr.out = count > 0 ? take_run(count) : -1;
            std::vector<bool> used(static_cast<size_t>(count));
            for (const Node* n : aliases_of_[list])
                if (n->kind != NodeKind::item && last_.contains(n)) {
                    const int32_t index = alias_.at(n).index;
                    bind(n, instr.out + index);
                    used[static_cast<size_t>(index)] = true;
                }
            for (int32_t k = 0; k < count; ++k)
                if (!used[static_cast<size_t>(k)]) unused.push_back(instr.out + k);
        };
        if (facts.ordered) {
            const Node* first = nullptr;
            std::vector<const Node*> rest(static_cast<size_t>(instr.order));
            for (const Node* n : aliases_of_[&node]) {
                if (n->kind != NodeKind::item) continue;
                if (n->index == 0)
                    first = n;
                else
                    rest[n->index - 1] = n;
            }
            if (facts.calls && (!first || spread_.contains(first))) {
                bind_results(first, first ? spread_.at(first) : 0);
            } else {
                instr.results = facts.calls ? -1 : 1;
                if (first && last_.contains(first)) {
                    instr.out = take_register();
                    bind(first, instr.out);
                }
            }
            if (std::any_of(rest.begin(), rest.end(), [&](const Node* n) { return n && last_.contains(n); })) {
                instr.r_out = take_run(instr.order);
                for (int32_t k = 0; k < instr.order; ++k)
                    if (const Node* n = rest[static_cast<size_t>(k)]; n && last_.contains(n))
                        bind(n, instr.r_out + k);
                    else
                        unused.push_back(instr.r_out + k);
            }
            return;
        }
        if (gives_results(node)) {
            if (spread_.contains(&node)) return bind_results(&node, spread_.at(&node));
            instr.results = -1;
        }
        if (!last_.contains(&node)) return;
        instr.out = take_register();
        bind(&node, instr.out);
    }

    void jump(const Node& node, std::vector<int32_t> dead) {
        Instr instr;
        instr.node = &node;
        std::vector<Value> args;
        if (node.callee) {
            instr.run = handle_jump;
            instr.target[0] = static_cast<uint32_t>(index_.at(node.callee->function));
            args = {Value::list(node.args)};
        } else {
            instr.run = handle_branch;
            instr.target[0] = static_cast<uint32_t>(index_.at(node.args[1].node()->function));
            instr.target[1] = static_cast<uint32_t>(index_.at(node.args[3].node()->function));
            args = {node.args[0], node.args[2], node.args[4]};
        }
        operands(instr, args, true);
        instr.tail = true;
        // All remaining registers are cleared after the arguments are gathered; a branch clears those of one side.
        std::vector<int32_t> dies = dying(args, ~size_t{0});
        for (uint32_t k = 0; k < instr.slot_count; ++k)
            if (const Slot list = code_->slots[instr.slots + k]; list.items >= 0)
                mark_last(static_cast<uint32_t>(list.at), static_cast<uint32_t>(list.items), dies);
        dies.insert(dies.end(), dead.begin(), dead.end());
        kill(instr, dies);
        code_->instrs.push_back(instr);
    }

    void leave(const ir::Graph& b) {
        Instr instr;
        instr.run = handle_return;
        instr.tail = true;
        instr.order = graph_.order;
        std::vector<Value> args;
        if (graph_.order > 0)
            args = b.result.items();
        else
            args = {b.result.is_nil() ? Value::list({}) : b.result};
        operands(instr, args, true);
        std::vector<int32_t> dies = dying(args, ~size_t{0});
        mark_last(instr, dies);
        kill(instr, dies);
        code_->instrs.push_back(instr);
    }

    const ir::Graph& graph_;
    const ir::Graph* wanted_;
    // The memory of all tables, which are freed together.
    std::pmr::monotonic_buffer_resource memory_;
    std::pmr::unordered_map<const Node*, size_t> wanted_last_{&memory_};
    std::unique_ptr<Code> code_ = std::make_unique<Code>();
    const std::vector<const ir::Graph*> blocks_ = ir::blocks_of(graph_);
    std::pmr::unordered_map<const ir::Graph*, size_t> index_{&memory_};
    std::pmr::unordered_map<const Node*, int32_t> register_{&memory_};
    // The last use of each register. Several nodes share one only as aliases of one output, which is one value.
    std::pmr::unordered_map<int32_t, size_t> held_until_{&memory_};
    std::pmr::unordered_set<const Node*> needed_{&memory_};
    std::pmr::unordered_map<const Node*, int32_t> spread_{&memory_};
    std::pmr::unordered_map<const Node*, Alias> alias_{&memory_};
    std::pmr::unordered_map<const Node*, std::pmr::vector<const Node*>> aliases_of_{&memory_};
    std::pmr::unordered_map<const Node*, size_t> last_{&memory_};
    std::vector<int32_t> free_;
    size_t base_ = 0, next_ = 0, top_ = 0;
};

}  // namespace

Function& function_of(const ir::Graph& graph) {
    if (!graph.attachment) graph.attachment = std::make_unique<Function>(graph);
    return static_cast<Function&>(*graph.attachment);
}

const ir::Graph& whole_graph(Function& function) {
    if (function.make) std::exchange(function.make, nullptr)();
    return function.graph;
}

Function& derivative_of(Function& function, int order) {
    Function* f = &function;
    if (order > 0) whole_graph(function);
    for (; order > 0; --order) {
        if (!f->derivative_graph) {
            Function* primal = f;
            if (f->rule && (f->expanded_graph = autodiff::without_composites(f->graph)))
                primal = &function_of(*f->expanded_graph);
            f->derivative_graph = autodiff::differentiate(primal->graph, &primal->origins);
            Function& derivative = function_of(*f->derivative_graph);
            derivative.primal = primal;
            derivative.rule = f->rule;
            derivative.packs = f->packs;
            derivative.keeps_caller = f->keeps_caller;
            derivative.whole = f->whole;
            derivative.failed = f->failed;
        }
        f = &function_of(*f->derivative_graph);
    }
    return *f;
}

const Code& code_of(Function& function) {
    if (!function.code) {
        function.code = Compiler(whole_graph(function)).run();
        function.code->function = &function;
    }
    return *function.code;
}

Layout layout_of(const ir::Graph& function, const ir::Graph& block) { return Compiler(function, &block).layout(); }

}  // namespace lunaria::vm
