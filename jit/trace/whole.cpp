#include "jit/trace/whole.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/ir/builder.h"
#include "jit/graph/passes.h"
#include "jit/trace/size_pattern.h"
#include "jit/trace/symbolic_numbers.h"
#include "jit/trace/undivided.h"

namespace lunaria::trace {

namespace {

class Writer {
  public:
    Writer(vm::Host& host, ir::Graph& graph, const std::function<Found(const Step&)>& found)
        : host_(host), graph_(graph), found_(found) {}

    void write(const Step& step) {
        if (step.fails) refuse(step, "an error that the program catches");
        switch (step.kind) {
            case Step::Kind::loop:
            case Step::Kind::again:
                refuse(step, "a loop whose number of iterations differs from call to call");
            case Step::Kind::count:
            case Step::Kind::argument:
            case Step::Kind::read:
            case Step::Kind::metatable:
            case Step::Kind::upvalue:
            case Step::Kind::length:
            case Step::Kind::next:
                return find(step);
            case Step::Kind::compare:
                return;  // a guard
            case Step::Kind::is:
                return step.sizes ? open_sizes(step) : void();
            case Step::Kind::finish:
                graph_.result = value(step.args().back());
                return;
            default:
                return compute(step);
        }
    }

    // Without what neither a result nor an effect needs, arguments excepted.
    void clear() {
        graph::remove_dead_code(graph_, [&](const ir::Node& node) { return effects_.contains(&node); });
        std::unordered_set<const ir::Node*> used = arguments_;
        const auto use = [&](const ir::Node* node) { used.insert(node); };
        for (const ir::Node* node : graph_.body())
            for (const Value& arg : node->args) ir::for_each_node(arg, use);
        ir::for_each_node(graph_.result, use);
        graph_.erase_parameters([&](const ir::Node& node) { return !used.contains(&node); });
    }

  private:
    [[noreturn]] static void refuse(const Step& step, std::string_view what) {
        throw state_error("lower", described(step.span(), str("the call is not one graph: it has ", what)));
    }

    static ir::NodeType type_of(const Expected& e) {
        return e.what == Expected::What::tensor && !e.open ? ir::NodeType::of(e.type) : ir::NodeType{};
    }
    static bool is_new(const Expected& e) {
        return e.what != Expected::What::constant && e.what != Expected::What::same;
    }

    void find(const Step& step) {
        for (const Expected& e : step.expected) {
            if (!is_new(e)) continue;
            Found found = found_(step);
            ir::Node* parameter = graph_.add_parameter(std::move(found.name), type_of(e));
            if (e.what == Expected::What::tensor && found.type) parameter->type = ir::NodeType::of(*found.type);
            if (step.kind == Step::Kind::argument) arguments_.insert(parameter);
            nodes_.insert_or_assign(e.slot, Value(parameter));
        }
    }

    void compute(const Step& step) {
        std::vector<Value> args, known;
        for (const Value& v : step.args()) {
            args.push_back(value(v));
            known.push_back(known_value(v));
        }
        if (step.kind == Step::Kind::op && is_undivided(step)) {
            ir::GraphBuilder builder(graph_);
            builder.span = step.span();
            nodes_.insert_or_assign(step.expected[0].slot, undivided(builder, step, args));
            return;
        }
        const bool list = step.kind == Step::Kind::op ? step.list : step.expected.size() != 1;
        ir::Node* node = graph_.add_call(step.op(), std::move(args), type_of(step, list, known));
        node->span = step.span();
        if (step.effect) effects_.insert(node);
        for (size_t k = 0; k < step.expected.size(); ++k) {
            const Expected& e = step.expected[k];
            if (!is_new(e)) continue;
            ir::Node* result = list ? graph_.add_item(*node, k) : node;
            nodes_.insert_or_assign(e.slot, Value(result));
            if (Value number = number_of(step, known); !number.is_nil()) numbers_.insert_or_assign(e.slot, number);
        }
    }

    // The numbers that follow from the sizes of some tensors are results of the step that asks for their pattern.
    void open_sizes(const Step& step) {
        vm::Values given{Value()};
        std::vector<Value> slots;
        for (const SizePattern::Source& source : step.sizes->sources) {
            const ir::NodeType& type = nodes_.at(source.slot).node()->type;
            if (type.kind != ir::NodeType::Kind::tensor) refuse(step, "open sizes that no example tells");
            slots.resize(std::max(slots.size(), static_cast<size_t>(source.slot) + 1));
            const Shape strides(std::vector<int64_t>(static_cast<size_t>(type.tensor.shape.rank())));
            slots[static_cast<size_t>(source.slot)] =
                Value(Tensor::zeros(type.tensor.dtype, {}).view(type.tensor.shape, strides));
        }
        step.sizes->append_numbers(slots, given);
        std::vector<ir::NodeType> types(given.size());
        std::vector<Value> args;
        for (const Value& v : step.args()) args.push_back(value(v));
        ir::Node* node = graph_.add_call(step.op(), std::move(args), ir::NodeType::list(std::move(types)));
        for (size_t k = 1; k < step.expected.size() && k < given.size(); ++k) {
            const int32_t slot = step.expected[k].slot;
            nodes_.insert_or_assign(slot, Value(graph_.add_item(*node, k)));
            numbers_.insert_or_assign(slot, given[k]);
        }
    }

    ir::NodeType type_of(const Step& step, bool list, const std::vector<Value>& known) const {
        const bool open = std::ranges::any_of(step.expected, [](const Expected& e) { return e.open; });
        if (open && step.kind == Step::Kind::op) return ir::infer_call(step.op(), known);
        std::vector<ir::NodeType> types;
        for (const Expected& e : step.expected) types.push_back(type_of(e));
        return list ? ir::NodeType::list(std::move(types)) : types.front();
    }

    // The number that the step gives for the examples; nil where that is not known.
    Value number_of(const Step& step, const std::vector<Value>& known) const {
        if (step.kind == Step::Kind::size) {
            if (!known[0].is_node() || known[0].node()->type.kind != ir::NodeType::Kind::tensor) return {};
            return Value(known[0].node()->type.tensor.shape[static_cast<int>(known[1].integer())]);
        }
        if (step.kind != Step::Kind::number || !std::ranges::all_of(known, &Value::is_number)) return {};
        vm::Values operands;
        for (const Value& v : known) operands.push_back(v);
        return compute_plain(host_, step.op(), operands);
    }

    // An operand with the numbers of the examples.
    Value known_value(const Value& operand) const {
        return with_leaves(operand, [&](const Value& v) {
            if (!v.is_node()) return v;
            const auto number = numbers_.find(v.node()->slot);
            return number == numbers_.end() ? nodes_.at(v.node()->slot) : number->second;
        });
    }

    Value value(const Value& operand) {
        return with_leaves(operand, [&](const Value& v) {
            if (v.is_node()) return nodes_.at(v.node()->slot);
            return v.is_tensor() ? Value(graph_.add_constant(v)) : v;
        });
    }

    vm::Host& host_;
    ir::Graph& graph_;
    const std::function<Found(const Step&)>& found_;
    std::unordered_map<int32_t, Value> nodes_, numbers_;  // by slot
    std::unordered_set<const ir::Node*> arguments_, effects_;
};

}  // namespace

std::unique_ptr<ir::Graph> whole_call(vm::Host& host, const Tree& tree,
                                      const std::function<Found(const Step&)>& found) {
    auto graph = std::make_unique<ir::Graph>("step");
    Writer writer(host, *graph, found);
    for (const Block* block = &tree.root; block;) {
        for (const Step& step : block->steps) writer.write(step);
        const auto last = std::ranges::max_element(block->next, {}, [](const auto& way) { return way->used; });
        block = last == block->next.end() ? nullptr : last->get();
    }
    writer.clear();
    return graph;
}

}  // namespace lunaria::trace
