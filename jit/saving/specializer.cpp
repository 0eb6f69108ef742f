#include "jit/saving/specializer.h"

#include <algorithm>

#include "jit/language.h"
#include "jit/vm/machine.h"

namespace lunaria {

namespace {

constexpr std::string_view kWhere = "save_mindir";
constexpr size_t kDeepest = 120, kMostNested = 30;

bool is_true(const Value& v) { return !(v.is_nil() || (v.kind() == Value::Kind::boolean && !v.boolean())); }

}  // namespace

Specializer::Specializer(Known& known, Varying& varying, size_t most)
    : known_(known),
      host_(known.host),
      varying_(varying),
      most_(most),
      out_(kWhere),
      unknown_(scratch_.add_parameter("unknown", {})) {}

std::unique_ptr<ir::Graph> Specializer::run(const Value& f, std::span<const Value> example) {
    WrittenFunction& program = out_.add_function("program");
    out_.go_to({&program, &program.blocks.entry(), {}});
    std::vector<Value> inputs;
    std::vector<Partial> args;
    for (size_t i = 0; i < example.size(); ++i) {
        const std::string name = example.size() == 1 ? "x" : str("x", i);
        ir::NodeType type;
        if (example[i].is_tensor()) type = ir::NodeType::of({example[i].tensor().dtype(), example[i].tensor().shape()});
        inputs.emplace_back(out_.root().add_parameter(name, std::move(type)));
        program.parameters.push_back(program.graph->add_parameter(name, {}));
        args.emplace_back(Value(program.parameters.back()));
    }
    const Partial results = call_known(f, Partial::list(std::move(args)));
    const Value list = read_only(results);
    out_.blocks().leave(*out_.here, list, out_.at);
    return out_.finish(std::move(inputs));
}

// Blocks.

Partial Specializer::run_function(Activation& a, std::vector<Partial> args) {
    if (++depth_ > kDeepest) out_.refuse("functions call each other too deeply for values that are known");
    Activation* const before = std::exchange(running_, &a);
    run_block(a, a.function, std::move(args));
    while (!a.waiting.empty()) {
        Variant& v = *a.waiting.back();
        a.waiting.pop_back();
        out_.here = v.block;
        std::vector<Value> nodes;
        for (lower::Variable variable : v.variables) nodes.push_back(out_.blocks().read(*out_.here, variable));
        run_block(a, v.source, with_nodes(v.args, nodes));
    }
    running_ = before;
    --depth_;
    return join(a.leaves);
}

void Specializer::run_block(Activation& a, const ir::Graph* block, std::vector<Partial> args) {
    while (true) {
        const ir::Node* last =
            !block->body().empty() && ir::goes_on(*block->body().back()) ? block->body().back() : nullptr;
        Environment e = run_body(*block, args, last);
        if (!last) {
            Partial results = evaluate(block->result, e);
            if (results.is_known()) results = Partial::list({});
            a.leaves.push_back({out_.here, std::move(results)});
            return;
        }
        out_.at = last->span;
        size_t side = 1;
        if (last->op) {
            const Partial condition = evaluate(last->args[0], e);
            if (condition.is_node()) return branch(a, *last, condition.value, e);
            side = condition.structure || is_true(condition.value) ? 1 : 3;
        }
        const ir::Graph& next = *(last->op ? last->args[side].node() : last->callee)->function;
        std::vector<Partial> given;
        for (const Value& v : last->op ? last->args[side + 1].items() : last->args) given.push_back(evaluate(v, e));
        if (!entries_.once(*a.function, next)) return jump(a, next, std::move(given));
        block = &next;
        args = std::move(given);
    }
}

Specializer::Environment Specializer::run_body(const ir::Graph& block, std::vector<Partial>& args,
                                               const ir::Node* last) {
    Environment e;
    for (size_t i = 0; i < block.parameters().size(); ++i) {
        if (!args[i].is_node() && !args[i].structure && !is_plain(args[i].value)) kept_.push_back(args[i].value);
        e[block.parameters()[i]] = std::move(args[i]);
    }
    for (const ir::Node* node : block.body())
        if (node != last) e[node] = step(*node, e);
    return e;
}

Specializer::Variant& Specializer::variant(Activation& a, const ir::Graph& block, std::vector<Partial> args,
                                           std::vector<Value>& nodes) {
    for (size_t i = 0; i < args.size(); ++i) {
        if (varying_.contains({&block, i}) && !args[i].is_node()) {
            nodes.push_back(operand(args[i]));
            args[i] = unknown_;
        } else {
            gather_nodes(args[i], nodes);
        }
    }
    const std::string key = str(static_cast<const void*>(&block), ' ') + key_of(args);
    auto [found, fresh] = a.variants.try_emplace(key);
    Variant& v = found->second;
    if (!fresh) return v;
    v.source = &block;
    v.block = &out_.add_block();
    v.args = std::move(args);
    for (size_t i = 0; i < nodes.size(); ++i) {
        // The node, and so its name, lives as long as the program is written.
        v.variables.push_back(
            out_.blocks().temporary(nodes[i].is_node() ? std::string_view(nodes[i].node()->name) : ""));
    }
    auto& variants = a.of_block[&block];
    variants.push_back(&v);
    a.waiting.push_back(&v);
    if (variants.size() > most_) widen(variants);
    return v;
}

// Known values that differ among the variants of a block count as unknown from here on.
void Specializer::widen(const std::vector<Variant*>& variants) {
    const ir::Graph* block = variants[0]->source;
    const std::vector<Partial>& last = variants.back()->args;
    bool found = false;
    for (size_t i = 0; i < last.size(); ++i) {
        bool plain = true, same = true;
        for (const Variant* v : variants) {
            plain &= v->args[i].is_node() || (v->args[i].is_known() && is_plain(v->args[i].value));
            same &= key_of({v->args[i]}) == key_of({last[i]});
        }
        if (plain && !same) found |= varying_.emplace(block, i).second;
    }
    if (!found)
        out_.refuse(
            str("a loop goes through more than ", most_, " values that a file cannot hold (tables, functions)"));
    throw Again{};
}

void Specializer::jump(Activation& a, const ir::Graph& block, std::vector<Partial> args) {
    std::vector<Value> nodes;
    const Variant& v = variant(a, block, std::move(args), nodes);
    for (size_t i = 0; i < nodes.size(); ++i) out_.blocks().write(*out_.here, v.variables[i], nodes[i]);
    out_.blocks().jump(*out_.here, *v.block, out_.at);
}

void Specializer::branch(Activation& a, const ir::Node& node, const Value& condition, Environment& e) {
    lower::Block* const from = out_.here;
    // Each side gets a block of its own, which passes the values on.
    lower::Block* sides[2];
    for (lower::Block*& side : sides) side = &out_.add_block();
    out_.blocks().branch(*from, condition, *sides[0], *sides[1], node.span);
    for (size_t i : {0, 1}) {
        out_.blocks().seal(*sides[i]);
        out_.here = sides[i];
        std::vector<Partial> given;
        for (const Value& v : node.args[2 + 2 * i].items()) given.push_back(evaluate(v, e));
        const ir::Graph& next = *node.args[1 + 2 * i].node()->function;
        if (entries_.once(*a.function, next))
            run_block(a, &next, std::move(given));
        else
            jump(a, next, std::move(given));
    }
}

// The result of a function, whichever way it is left. Values that are known on all ways stay known.
Partial Specializer::join(std::vector<Activation::Leaf>& leaves) {
    if (leaves.size() == 1) {
        out_.here = leaves[0].block;
        return leaves[0].results;
    }
    lower::Block& end = out_.add_block();
    const auto count = [](const Partial& p) { return p.is_list() ? p.items().size() : ~size_t{0}; };
    bool lists = !leaves.empty();
    for (const auto& leaf : leaves) lists &= leaf.results.is_list() && count(leaf.results) == count(leaves[0].results);
    std::vector<Partial> results;
    std::vector<lower::Variable> variables;
    // What the values of a leaf need is computed in its own block. All leaves have as many.
    auto hand_on = [&](const auto& values_of) {
        const size_t begin = variables.size();
        for (auto& leaf : leaves) {
            out_.here = leaf.block;
            std::vector<Value> values = values_of(leaf);
            while (variables.size() < begin + values.size()) variables.push_back(out_.blocks().temporary(""));
            for (size_t k = 0; k < values.size(); ++k)
                out_.blocks().write(*leaf.block, variables[begin + k], std::move(values[k]));
        }
    };
    for (size_t i = 0; lists && i < leaves[0].results.items().size(); ++i) {
        auto value = [i](const Activation::Leaf& leaf) -> const Partial& { return leaf.results.items()[i]; };
        const std::string key = key_of({value(leaves[0])});
        if (std::ranges::all_of(leaves, [&](const auto& leaf) { return key_of({value(leaf)}) == key; })) {
            hand_on([&](const Activation::Leaf& leaf) {
                std::vector<Value> nodes;
                gather_nodes(value(leaf), nodes);
                return nodes;
            });
            results.push_back(value(leaves[0]));
        } else {
            hand_on([&](const Activation::Leaf& leaf) { return std::vector<Value>{operand(value(leaf))}; });
            results.emplace_back(unknown_);
        }
    }
    if (!lists && !leaves.empty())
        hand_on([&](const Activation::Leaf& leaf) { return std::vector<Value>{node_of_list(leaf.results)}; });
    for (auto& leaf : leaves) out_.blocks().jump(*leaf.block, end, out_.at);
    out_.blocks().seal(end);
    out_.here = &end;
    std::vector<Value> nodes;
    for (lower::Variable v : variables) nodes.push_back(out_.blocks().read(end, v));
    // Without a way out, the code after the call is never reached.
    return lists || leaves.empty() ? Partial::list(with_nodes(results, nodes)) : Partial(nodes[0]);
}

// Nodes.

Partial Specializer::evaluate(const Value& v, const Environment& e) const {
    if (v.is_list()) {
        std::vector<Partial> items;
        for (const Value& item : v.items()) items.push_back(evaluate(item, e));
        return Partial::list(std::move(items));
    }
    if (!v.is_node()) return v;
    const ir::Node& node = *v.node();
    return node.kind == ir::NodeKind::constant ? Partial(node.constant) : e.at(&node);
}

const std::unordered_map<std::string_view, Specializer::Step>& Specializer::steps() {
    using S = Specializer;
    static const std::unordered_map<std::string_view, Step> table = [] {
        std::unordered_map<std::string_view, Step> t = {
            {"not", &S::negate},        {"equal", &S::equal},
            {"index", &S::index},       {"set_index", &S::set_index},
            {"table", &S::table},       {"cell", &S::emit_all},
            {"call", &S::call},         {"spread", &S::spread},
            {"result", &S::result},     {"results_from", &S::results_from},
            {"guard", &S::no_closing},  {"to_close", &S::no_closing},
            {"cell_get", &S::cell_get}, {"cell_set", &S::cell_set},
            {"closure", &S::closure},   {"current_function", &S::current_function}};
        for (const char* name : {"for_more", "for_count", "for_prepare"}) t[name] = &S::fold_or_emit;
        for (const auto& op : lua::language().all())
            if (lua::facts(*op).operation != lua::Operation::none) t.try_emplace(op->name(), &S::fold_or_emit);
        return t;
    }();
    return table;
}

Partial Specializer::step(const ir::Node& node, const Environment& e) {
    if (node.span.line) out_.at = node.span;
    std::vector<Partial> args;
    if (node.kind == ir::NodeKind::item) {
        const Partial list = evaluate(node.args[0], e);
        if (list.is_node()) return Value(out_.here->graph->add_item(*list.value.node(), node.index));
        return list.is_list() && node.index < list.items().size() ? list.items()[node.index] : Partial();
    }
    // Only `closure` has a function as an operand.
    for (const Value& arg : node.args)
        args.push_back(arg.is_node() && arg.node()->function ? Partial(arg) : evaluate(arg, e));
    if (node.op && registry().find(node.op->name()) == node.op) {
        std::vector<Value> values;
        for (const Partial& p : args) values.push_back(operator_operand(p));
        return out_.emit(*node.op, std::move(values));
    }
    auto found = node.op ? steps().find(node.op->name()) : steps().end();
    if (found == steps().end())
        out_.refuse(str("the operation '", node.op ? node.op->name() : "call", "' cannot be saved"));
    return (this->*found->second)(node, args);
}

// Computes an operation on plain values; false: it has to happen when the program runs.
bool Specializer::fold(const Op& op, const std::vector<Partial>& args, Partial& result) {
    std::vector<Value> values;
    const lua::Operation o = lua::facts(op).operation;
    for (const Partial& p : args) {
        if (!p.is_known() || p.value.is_tensor()) return false;
        if (!is_plain(p.value) && o != lua::Operation::length && o != lua::Operation::equal) return false;
        values.push_back(p.value);
    }
    const std::optional<Value> v = known_.computed(op, values);
    // An operation that fails here fails when the program runs.
    if (!v) return false;
    result = v->is_list() ? Partial::list({v->items().begin(), v->items().end()}) : Partial(*v);
    return true;
}

Partial Specializer::fold_or_emit(const ir::Node& node, std::vector<Partial>& args) {
    Partial result;
    return fold(*node.op, args, result) ? result : emit_all(node, args);
}

Partial Specializer::equal(const ir::Node& node, std::vector<Partial>& args) {
    for (size_t i : {0, 1})
        if (args[i].structure && args[1 - i].is_known() && is_plain(args[1 - i].value)) return Value(false);
    return fold_or_emit(node, args);
}

Partial Specializer::negate(const ir::Node& node, std::vector<Partial>& args) {
    if (args[0].is_node()) return emit_all(node, args);
    return Value(!args[0].structure && !is_true(args[0].value));
}

Partial Specializer::emit_all(const ir::Node& node, std::vector<Partial>& args) {
    return out_.emit(node.op->name(), operands(args));
}

Partial Specializer::table(const ir::Node&, std::vector<Partial>& args) {
    return out_.emit("table", {operand_list(args[0]), operand_list(args[1]), operand(args[2]), operand(args[3])});
}

Partial Specializer::index(const ir::Node& node, std::vector<Partial>& args) {
    const Partial &object = args[0], &key = args[1];
    if (!object.is_known() || !key.is_known() || (object.value.is_tensor() && !is_lasting(key.value))) {
        const Value from = is_outside(object) ? read_only(Partial::list({object})).items()[0] : operand(object);
        const Value found = out_.emit("index", {from, operand(key)});
        if (is_outside(object)) copies_.insert(found.node());
        return found;
    }
    try {
        return host_.index(object.value, key.value);
    } catch (const Error&) {
        return emit_all(node, args);  // fails when the program runs
    }
}

Partial Specializer::set_index(const ir::Node& node, std::vector<Partial>& args) {
    if (is_outside(args[0]))
        out_.refuse("the function writes into a table from outside of it, which a file does not have",
                    "return what it computes, or make the table in the function");
    return emit_all(node, args);
}

Partial Specializer::spread(const ir::Node&, std::vector<Partial>& args) { return joined(args[0], args[1]); }

Partial Specializer::joined(const Partial& head, const Partial& tail) {
    if (!head.is_list()) return out_.emit("spread", {operand_list(head), operand_list(tail)});
    std::vector<Partial> items = head.items();
    if (tail.structure) items.insert(items.end(), tail.items().begin(), tail.items().end());
    if (tail.is_node()) items.push_back(tail);
    return tail.is_node() || tail.is_open_list() ? Partial::open_list(std::move(items))
                                                 : Partial::list(std::move(items));
}

Partial Specializer::result(const ir::Node&, std::vector<Partial>& args) {
    return out_.item(args[0], static_cast<size_t>(args[1].value.integer()));
}

Partial Specializer::results_from(const ir::Node&, std::vector<Partial>& args) {
    return out_.rest(args[0], static_cast<size_t>(args[1].value.integer()));
}

Partial Specializer::closure(const ir::Node&, std::vector<Partial>& args) {
    return Partial::closure(*args[0].value.node()->function, running_->owner, args[1].items());
}
Partial Specializer::current_function(const ir::Node&, std::vector<Partial>&) { return running_->self; }

// nil is not closed: the case of nearly all loops over tables.
Partial Specializer::no_closing(const ir::Node&, std::vector<Partial>& args) {
    if (!args[0].is_known() || is_true(args[0].value))
        out_.refuse(
            "a variable that is closed (<close>, or a loop over what is known only when it runs) cannot be saved");
    return {};
}

Partial Specializer::cell_get(const ir::Node& node, std::vector<Partial>& args) {
    if (args[0].is_node()) return emit_all(node, args);
    return static_cast<vm::Cell*>(args[0].value.object())->get();
}

Partial Specializer::cell_set(const ir::Node& node, std::vector<Partial>& args) {
    if (args[0].is_node()) return emit_all(node, args);
    out_.refuse("the function assigns to a variable from outside of it, which a file does not have",
                "return what it computes, or make the variable in the function");
}

// Calls.

Partial Specializer::call(const ir::Node&, std::vector<Partial>& args) {
    const Partial &f = args[0], &given = args[1];
    if (f.is_node()) return out_.emit("call", {f.value, operand_list(given)});
    return f.structure ? apply(f, given) : call_known(f.value, given);
}

Partial Specializer::function_of(const Value& f, std::vector<Partial>& prefix) const {
    vm::Callee callee = host_.resolve(f);
    for (const Value& v : callee.prefix) prefix.emplace_back(v);
    if (callee.kind != vm::Callee::Kind::closure && callee.kind != vm::Callee::Kind::function) return {};
    auto* closure = vm::object_as<vm::Closure>(callee.closure);
    std::shared_ptr<const void> owner = closure ? closure->owner : callee.owner;
    std::vector<Partial> captures(callee.captures.begin(), callee.captures.end());
    return Partial::closure(callee.function->graph, std::move(owner), std::move(captures));
}

Partial Specializer::call_known(const Value& f, const Partial& args) {
    kept_.push_back(f);
    if (const Value made = made_again(f)) return out_.emit("call", {made, operand_list(args)});
    if (known_.is_ipairs_step(f)) {
        Partial results;
        if (fold_call("ipairs", f, args, results)) return results;
        out_.refuse("a loop over a table from outside of the function goes on by what is known when it runs only");
    }
    if (const auto entry = known_.named(f)) return call_named(*entry, f, args);
    const vm::Callee callee = host_.resolve(f);
    if (callee.kind == vm::Callee::Kind::op) {
        if (registry().find(callee.op->name()) != callee.op)
            out_.refuse(str("the operator ", callee.op->name(),
                            " was made by ms.op, which a program with branches or loops "
                            "cannot be saved with"));
        return out_.emit("call", {operator_name(*callee.op), read_only(args)});
    }
    std::vector<Partial> prefix;
    const Partial function = function_of(f, prefix);
    if (function.structure) {
        if (prefix.empty()) return apply(function, args);
        return apply(function, joined(Partial::list(std::move(prefix)), args));
    }
    if (f.kind() == Value::Kind::object)
        out_.refuse(str("the function calls ", host_.describe(f), ", which a file cannot hold: ", host_.why_opaque(f)));
    return out_.emit("call", {operand(f), operand_list(args)});
}

Partial Specializer::call_named(const Known::Named& entry, const Value& f, const Partial& args) {
    // In a compiled function cells and transforms simply run; outside they may compile themselves.
    if (entry.name == "inside") return Partial::list({Value(true)});
    Partial results;
    const bool folds = entry.saved == Saved::folded || entry.saved == Saved::known;
    if (folds && fold_call(entry.name, f, args, results)) return results;
    if (entry.saved == Saved::known)
        out_.refuse(str("'", entry.name, "' cannot be saved where its arguments are not known"));
    if (entry.saved == Saved::writes && args.structure && !args.items().empty() && is_outside(args.items()[0]))
        out_.refuse(str(entry.name, " writes into a table from outside of the function, which a file does not have"));
    const Value list = out_.emit("call", {name_value(entry.name), entry.reads ? read_only(args) : operand_list(args)});
    const int64_t count = entry.name == "ipairs" || entry.name == "pairs" ? 3 : entry.name == "string.gmatch" ? 1 : 0;
    if (!count) return list;
    std::vector<Partial> results_of;
    for (int64_t i = 0; i < count; ++i) results_of.push_back(out_.emit("result", {list, Value(i)}));
    return Partial::list(std::move(results_of));
}

bool Specializer::fold_call(std::string_view name, const Value& f, const Partial& args, Partial& results) {
    if (!args.is_list()) return false;
    const std::vector<Partial>& list = args.items();
    if (std::optional<std::vector<Partial>> found = told_by_structure(name, list)) {
        results = Partial::list(std::move(*found));
        return true;
    }
    std::vector<Value> values;
    for (const Partial& p : list) {
        // A function that computes from elements belongs into the program.
        if (!p.is_known() ||
            (p.value.is_tensor() && name.find('.') != std::string::npos && !name.starts_with("ms.is_")))
            return false;
        values.push_back(p.value);
    }
    const std::optional<std::vector<Value>> found = known_.called(f, values);
    if (found) results = Partial::list({found->begin(), found->end()});
    return found.has_value();
}

// The arguments in the order of the function's parameters, after the captured values.
std::vector<Partial> Specializer::bind(const ir::Graph& function, const std::vector<Partial>& captures,
                                       const Partial& args) {
    std::vector<Partial> bound = captures;
    const size_t fixed = function.parameters().size() - function.captures - function.variadic;
    for (size_t i = 0; i < fixed; ++i) bound.push_back(out_.item(args, i));
    if (function.variadic) bound.push_back(out_.rest(args, fixed));
    return bound;
}

// Inlines the function, unless this call is inside a call of it.
Partial Specializer::apply(const Partial& f, const Partial& args) {
    const ir::Graph& graph = *f.structure->graph;
    std::vector<Partial> bound = bind(graph, f.items(), args);
    Activation a{&graph, key_of(bound), f, f.structure->owner, running_, {}, {}, {}, {}};
    size_t nested = 0;
    for (const Activation* up = running_; up; up = up->caller) {
        if (up->function != &graph) continue;
        if (up->key == a.key || ++nested > kMostNested) return call_residual(f, std::move(bound));
    }
    const ir::Span at = out_.at;
    Partial results = run_function(a, std::move(bound));
    out_.at = at;
    return results;
}

Partial Specializer::call_residual(const Partial& f, std::vector<Partial> bound) {
    const ir::Graph& graph = *f.structure->graph;
    std::vector<Partial> args(bound.begin() + static_cast<std::ptrdiff_t>(graph.captures), bound.end());
    std::vector<Value> captured, given;
    // Plain values may differ from call to call, such as the depth of a recursion.
    for (Partial& p : args) {
        if (p.is_known() && is_plain(p.value) && !p.value.is_nil()) {
            given.push_back(p.value);
            p = unknown_;
        } else {
            gather_nodes(p, given);
        }
    }
    for (const Partial& p : f.items()) gather_nodes(p, captured);
    WrittenFunction& r = residual_of(f, args, false);
    return out_.emit("call", {out_.closure_of(r, std::move(captured)), Value::list(std::move(given))});
}

// The residual function: one of its own in the program. `any_arguments`: it is used as a value, so that its arguments
// are unknown.
WrittenFunction& Specializer::residual_of(const Partial& f, const std::vector<Partial>& args, bool any_arguments) {
    const ir::Graph& graph = *f.structure->graph;
    const std::string key =
        str(any_arguments, static_cast<const void*>(&graph), ' ') + key_of(f.items()) + "/" + key_of(args);
    auto [found, fresh] = residual_by_key_.try_emplace(key);
    if (!fresh) return *found->second;
    WrittenFunction& r = out_.add_function(graph.name);
    ir::Graph& made = *r.graph;
    made.span = graph.span;
    found->second = &r;
    auto name_of = [&](size_t i) {
        return i < graph.parameters().size() ? graph.parameters()[i]->name : std::string();
    };
    std::vector<Value> captured, given;
    size_t at = 0;
    auto parameters_for = [&](const Partial& p, std::vector<ir::Node*>& list, std::vector<Value>& values) {
        std::vector<Value> nodes;
        gather_nodes(p, nodes);
        for (size_t i = 0; i < nodes.size(); ++i) {
            list.push_back(made.add_parameter(name_of(at), {}));
            values.emplace_back(list.back());
        }
        ++at;
    };
    for (const Partial& p : f.items()) parameters_for(p, r.captures, captured);
    for (const Partial& p : args) parameters_for(p, r.parameters, given);
    made.variadic = any_arguments && graph.variadic;

    const ProgramWriter::Place place = out_.place();
    const bool copies = std::exchange(copies_tables_, false);
    Activation* const running = std::exchange(running_, nullptr);
    out_.go_to({&r, &r.blocks.entry(), place.at});
    Partial self;
    self.structure =
        std::make_shared<const Structure>(Structure{&graph, f.structure->owner, with_nodes(f.items(), captured)});
    std::vector<Partial> bound = self.items();
    for (Partial& p : with_nodes(args, given)) bound.push_back(std::move(p));
    Activation a{&graph, key_of(bound), self, f.structure->owner, nullptr, {}, {}, {}, {}};
    const Partial results = run_function(a, std::move(bound));
    const Value list = operand_list(results);
    r.blocks.leave(*out_.here, list, out_.at);
    running_ = running;
    copies_tables_ = copies;
    out_.go_to(place);
    return r;
}

// Values of the new program.

std::vector<Value> Specializer::operands(const std::vector<Partial>& list) {
    std::vector<Value> values;
    for (const Partial& p : list) values.push_back(operand(p));
    return values;
}

Value Specializer::operator_operand(const Partial& p) {
    if (!p.is_list()) return operand(p);
    std::vector<Value> items;
    for (const Partial& item : p.items()) items.push_back(operator_operand(item));
    return Value::list(std::move(items));
}

Value Specializer::operand_list(const Partial& p) {
    if (p.is_list()) return Value::list(operands(p.items()));
    if (p.is_open_list()) {
        std::vector<Value> head = operands(p.items());
        Value tail = std::move(head.back());
        head.pop_back();
        return out_.emit("spread", {Value::list(std::move(head)), std::move(tail)});
    }
    return p.value;
}

Value Specializer::node_of_list(const Partial& p) {
    return p.is_list() ? out_.emit("spread", {operand_list(p), Value()}) : operand_list(p);
}

Value Specializer::operand(const Partial& p) {
    if (p.is_closure()) {
        const ir::Graph& graph = *p.structure->graph;
        std::vector<Value> captured;
        for (const Partial& c : p.items()) gather_nodes(c, captured);
        const std::vector<Partial> args(graph.parameters().size() - graph.captures, unknown_);
        return out_.closure_of(residual_of(p, args, true), std::move(captured));
    }
    if (p.structure) return node_of_list(p);
    return p.is_node() ? p.value : known_operand(p.value);
}

Value Specializer::known_operand(const Value& v) {
    if (is_plain(v)) return v;
    if (v.is_list()) {
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(known_operand(item));
        return Value::list(std::move(items));
    }
    if (v.is_tensor()) return out_.tensor(v);
    // Checked before functions: a dtype can be called as well, x:dtype().
    if (const std::optional<DType> dtype = known_.dtype_of(v)) return Value(*dtype);
    kept_.push_back(v);
    if (const auto entry = known_.named(v); entry && entry->saved != Saved::known) return name_value(entry->name);
    if (const Value made = made_again(v)) return made;
    const vm::Callee callee = host_.resolve(v);
    if (callee.kind == vm::Callee::Kind::op && registry().find(callee.op->name()) == callee.op)
        return operator_name(*callee.op);
    std::vector<Partial> prefix;
    const Partial function = function_of(v, prefix);
    if (function.structure && prefix.empty()) return operand(function);
    if (function.structure) {
        const ir::Graph& graph = *function.structure->graph;
        std::vector<Partial> args(graph.parameters().size() - graph.captures, unknown_);
        for (size_t i = 0; i < prefix.size() && i + graph.variadic < args.size(); ++i) args[i] = prefix[i];
        std::vector<Value> captured;
        for (const Partial& c : function.items()) gather_nodes(c, captured);
        return out_.closure_of(residual_of(function, args, true), std::move(captured));
    }
    if (host_.is_table(v)) return known_table(v);
    out_.refuse(str("the program needs ", host_.describe(v), ", which a file cannot hold"));
}

bool Specializer::is_outside(const Partial& p) const {
    if (p.is_node()) return copies_.contains(p.value.node());
    return p.is_known() && !is_plain(p.value) && !p.value.is_tensor();
}

// The same for operations that only read tables.
Value Specializer::read_only(const Partial& list) {
    const bool before = std::exchange(copies_tables_, true);
    Value values = operand_list(list);
    copies_tables_ = before;
    return values;
}

// A table as it is when the program is saved. The program must not write into it, since each call would need a fresh
// copy.
Value Specializer::known_table(const Value& t) {
    if (!copies_tables_)
        out_.refuse("a table from outside of the function is handed to what may write into it; a file has a copy only",
                    "make the table in the function");
    const void* identity = vm::identity_of(t);
    if (std::ranges::find(tables_, identity) != tables_.end())
        out_.refuse("the program needs a table that holds itself, which a file cannot hold");
    if (constexpr size_t kDeepest = 200; tables_.size() >= kDeepest)
        out_.refuse(str("the program needs a table that is nested deeper than ", kDeepest, " levels"));
    tables_.push_back(identity);
    Known::Content content = known_.content_of(t);
    if (!content.plain)
        out_.refuse(str("the program needs ", host_.describe(t),
                        " with a metatable or keys that are objects, which a file cannot hold"));
    for (Value& v : content.values) v = known_operand(v);
    tables_.pop_back();
    return out_.emit("table",
                     {Value::list(std::move(content.keys)), Value::list(std::move(content.values)), Value(0), Value()});
}

// The result of ms.grad, ms.slice and their kin, as another call of them; nil: another object.
Value Specializer::made_again(const Value& object) {
    Known::Made call = known_.made_by(object);
    if (call.name.empty()) return {};
    const bool before = std::exchange(copies_tables_, true);
    for (Value& v : call.args) v = known_operand(v);
    copies_tables_ = before;
    const Value results = out_.emit("call", {name_value(call.name), Value::list(std::move(call.args))});
    return out_.emit("result", {results, Value(0)});
}

std::unique_ptr<ir::Graph> specialize(Known& known, const Value& f, std::span<const Value> example) {
    // First few iterations of a loop; where the loop needs its values to be known, many.
    for (const size_t most : {24, 1500}) {
        Varying varying;
        try {
            while (true) try {
                    return Specializer(known, varying, most).run(f, example);
                } catch (const Specializer::Again&) {
                }
        } catch (const Error&) {
            if (varying.empty() || most > 24) throw;
        }
    }
    return nullptr;
}

}  // namespace lunaria
