#include "jit/vm/region.h"

#include <algorithm>

#include "core/ir/substitution.h"
#include "jit/batch/operator.h"
#include "jit/language.h"
#include "jit/vm/handlers.h"

namespace lunaria::vm {

namespace {

bool is_operator(const ir::Node& node) { return node.op && !node.op->belongs_to(lua::language()); }

// The tensor of the batch for a value, with the value's marks.
Value unwrapped(const Region& region, const Value& v) {
    if (v.is_list()) {
        if (!region.holds(v)) return v;
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(unwrapped(region, item));
        Value list = Value::list(std::move(items));
        list.set_marks(v.marks());
        return list;
    }
    Value batched = region.taken(v);
    if (batched.is_nil()) return v;
    batched.set_marks(v.marks());
    return batched;
}

Value wrapped(Region& region, const Value& v) {
    if (!v.is_tensor()) return v;
    Value sample = region.enter(v);
    sample.set_marks(v.marks());
    return sample;
}

}  // namespace

bool Region::holds(const Value& v) const {
    if (v.is_list()) return std::ranges::any_of(v.items(), [&](const Value& item) { return holds(item); });
    return !taken(v).is_nil();
}

void BatchedFunction::call(Machine& m, std::span<const Value> contexts, Values args, const Destination& to) const {
    const Value opened = m.host().open_batch(m.host(), size_);
    if (opened.is_nil()) return m.give(to, {}, {});
    Region& region = dynamic_cast<Region&>(*opened.object());
    region.contexts = Values(contexts);
    region.host_around = &m.host();
    region.watcher_around = watcher();
    region.region_around = m.region();
    Values results, backs;
    std::vector<bool> differs;
    const bool before = m.called_back;
    const Host::Protected outcome = region.attempt([&] {
        for (Value& v : args) {
            if (!v.is_tensor() || v.tensor().rank() == 0 || v.tensor().dim(0) != size_)
                throw argument_error("vmap",
                                     str("a tensor of ", size_, " samples is expected, got ", m.host().describe(v)));
            v = wrapped(region, v);
        }
        {
            const RegionScope inside(m, region, &region, &region);
            results = m.run(f_, contexts, std::move(args), backs);
        }
        for (Value& v : results) {
            differs.push_back(v.is_tensor() && region.holds(v));
            if (differs.back()) v = unwrapped(region, v);
        }
    });
    m.called_back = before;
    if (!outcome.ok) return m.give(to, {outcome.error, Value(false)}, {});
    for (const bool d : differs) results.push_back(Value(d));
    results.push_back(Value(true));
    m.give(to, std::move(results), {backs.begin(), backs.size()});
}

std::unique_ptr<ir::Graph> with_calls(const ir::Graph& graph) {
    auto made = std::make_unique<ir::Graph>(graph.name);
    made->span = graph.span;
    made->captures = graph.captures;
    made->variadic = graph.variadic;
    auto emit = [&](const ir::Node& from, std::string_view name, std::vector<Value> args) {
        ir::Node* node = made->add_call(lua::primitive(name), std::move(args), {});
        node->span = from.span;
        return Value(node);
    };
    ir::Substitution values(made.get());
    for (const ir::Node* p : graph.parameters()) values[p] = Value(made->add_parameter(p->name, p->type));
    for (const ir::Node* node : graph.body()) {
        const ir::Node* source = node->kind == ir::NodeKind::item ? node->args[0].node() : nullptr;
        if (source && is_operator(*source)) {
            values[node] = emit(*node, "result", {values(node->args[0]), Value(static_cast<int64_t>(node->index))});
        } else if (is_operator(*node)) {
            std::vector<Value> args = values(node->args);
            for (Value& v : args)
                if (v.is_list() && std::ranges::any_of(v.items(), [](const Value& item) { return item.is_node(); }))
                    v = emit(*node, "spread", {v, Value()});
            Value call = emit(*node, "call", {operator_value(*node->op), Value::list(std::move(args))});
            const bool several = !node->op->signature.results.empty() || node->type.kind == ir::NodeType::Kind::list;
            values[node] = several ? call : emit(*node, "result", {call, Value(0)});
        } else {
            values[node] = values.copy(*node);
        }
    }
    made->result = values(graph.result);
    return made;
}

Function& Machine::for_batch(Function& function) const {
    if (!region_ || region_->order() == 0) return function;
    if (function.calling_graph) return function_of(*function.calling_graph);
    if (std::ranges::none_of(whole_graph(function).body(), [](const ir::Node* n) { return is_operator(*n); }))
        return function;
    function.calling_graph = with_calls(function.graph);
    Function& calling = function_of(*function.calling_graph);
    calling.packs = function.packs;
    return calling;
}

bool Machine::call_batched(const Op& op, std::span<const Value> contexts, Values& args, const Destination& to) {
    Region& region = *region_;
    if (region.order() == 0 || !is_differentiable(op)) return false;
    const uint16_t followed = followed_by(contexts);
    uint16_t bits = 0;
    bool holds = false;
    for (const Value& v : args) {
        bits |= marks_of(v);
        holds |= region.holds(v);
    }
    if (!(bits & followed)) return false;
    Values results, backs;
    if (!holds) {
        // It may involve a batch around this one.
        if (!region.region_around) return false;
        const auto around = RegionScope::around(*this, region);
        results = run(operator_value(op), contexts, std::move(args), backs);
        give(to, std::move(results), {backs.begin(), backs.size()});
        return true;
    }
    for (Value& v : args) {
        const uint16_t marks = v.marks();
        v = watcher()->settled(v);
        v.set_marks(marks);
    }
    refuse_attributes(op, args, followed);
    const bool within = contexts.size() > region.order();
    if (within && autodiff::needs_expansion(op)) {
        const OperatorFunction f = expansion_function(op, args);
        enter(f, contexts, std::move(args), to);
        return true;
    }
    if (within) {
        const OperatorFunction f = followed_operator(op, args, autodiff::count_results(op, args));
        args.push_back(contexts.back());
        results = run(make_object<Closure>(*f.function, f.owner, Values()), contexts.first(contexts.size() - 1),
                      std::move(args), backs);
        backs.push_front(std::move(results.back()));
        results.resize(results.size() - 1);
        give(to, std::move(results), {backs.begin(), backs.size()});
        return true;
    }
    region.admit(op);
    const auto batched = batch::operator_graph(
        op, args, [&](const Value& v) { return region.holds(v); }, region.size());
    if (!batched) {
        const OperatorFunction f = expansion_function(op, args);
        enter(f, contexts, std::move(args), to);
        return true;
    }
    const OperatorFunction f = over_arguments(op, args, batched);
    for (Value& v : args) v = unwrapped(region, v);
    {
        const auto around = RegionScope::around(*this, region);
        results =
            run(make_object<Closure>(for_batch(*f.function), f.owner, Values()), contexts, std::move(args), backs);
    }
    for (Value& v : results) v = wrapped(region, v);
    give(to, std::move(results), {backs.begin(), backs.size()});
    return true;
}

namespace {

// Programs can call it too, with any values.
void batched(Machine& m, const Instr& i) {
    const Value& size = m.operand(i, 0);
    if (size.kind() != Value::Kind::integer || size.integer() < 1)
        throw argument_error("vmap", str("a number of samples is expected, got ", m.host().describe(size)));
    m.set(i, make_object<BatchedFunction>(size.integer(), m.operand(i, 1)));
}

}  // namespace

std::span<const NamedHandler> region_handlers() {
    static constexpr NamedHandler list[] = {{"batched", batched}};
    return list;
}

}  // namespace lunaria::vm
