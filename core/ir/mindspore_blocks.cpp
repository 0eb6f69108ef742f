#include "core/ir/mindspore_blocks.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "core/ir/mindir_translate.h"

namespace lunaria::mindir {

namespace {

using ir::Graph;
using ir::Node;
using ir::NodeType;

constexpr std::string_view kFlow[] = {"Switch", "Partial"};
constexpr size_t kMostBlocks = 10000;

// One activation: a call that is not a tail call, or the whole program.
struct Activation {
    const Activation* caller = nullptr;
    Graph* rest = nullptr;  // the block that takes the results; null: they are the results of the program
    std::map<const GraphEntry*, Graph*> blocks;
    int depth = 0;
};

// The state at a place in a block.
struct Place {
    const GraphEntry* entry;
    size_t from;  // the next node of the entry
    Activation* activation;
    Graph* block;
    std::unordered_map<std::string, Value> values;  // by their names in the entry
    std::vector<Value> carried;                     // further values that the blocks after the callers' calls need
};

class BlockImporter {
  public:
    BlockImporter(const Model& model, const Registry& primitives, const std::string& file)
        : model_(model),
          primitives_(primitives),
          file_(file),
          main_(std::make_unique<Graph>("main")),
          program_(std::make_unique<Graph>("program")),
          nodes_(model, file, *program_) {}

    ir::ParsedGraph run() {
        nodes_.refuse_unknown_operators(kFlow);
        const GraphEntry& g = *model_.graph;
        add_constants(g);
        for (const GraphEntry& f : model_.functions) {
            functions_.try_emplace(f.name, &f);
            add_constants(f);
        }
        Place start{&g, 0, &add_activation(nullptr), program_.get(), {}, {}};
        std::vector<Value> weights, inputs;
        for (const auto& [name, weight] : nodes_.weights_of(g, *main_)) {
            weights.emplace_back(weight);
            define(start, name, Value(program_->add_parameter(weight->name, weight->type)));
        }
        program_->captures = weights.size();
        for (const ValueInfo& input : g.inputs) {
            const std::string name = input.name.substr(input.name.rfind(':') + 1);
            inputs.emplace_back(main_->add_parameter(name, nodes_.type_of(input)));
            define(start, input.name, Value(program_->add_parameter(name, nodes_.type_of(input))));
        }
        // Weights that a function uses without listing them as inputs.
        std::set<std::string> used;
        for (const GraphEntry& f : model_.functions)
            for (const NodeEntry& node : f.nodes) used.insert(node.inputs.begin(), node.inputs.end());
        for (const TensorEntry& t : g.parameters)
            if (used.contains(t.name)) {
                shared_.push_back(t.name);
                start.carried.push_back(start.values.at(t.name));
            }
        waiting_.push_back(std::move(start));
        while (!waiting_.empty()) {
            Place place = std::move(waiting_.front());
            waiting_.pop_front();
            nodes_.write_to(*place.block);
            go_through(place);
        }
        return finished(std::move(weights), std::move(inputs));
    }

  private:
    [[noreturn]] void fail(std::string_view what) const { nodes_.fail(what); }

    ir::ParsedGraph finished(std::vector<Value> weights, std::vector<Value> inputs) {
        Node* function = main_->add_function(*program_);
        Node* closure =
            main_->add_call(primitives_.get("closure"), {Value(function), Value::list(std::move(weights))}, {});
        main_->result =
            Value(main_->add_call(primitives_.get("call"), {Value(closure), Value::list(std::move(inputs))}, {}));
        ir::ParsedGraph parsed;
        parsed.graph = std::move(main_);
        parsed.others.push_back(std::move(program_));
        return parsed;
    }

    // A constant is written where it is first needed; all graphs can use it.
    void add_constants(const GraphEntry& g) {
        for (const NodeEntry& node : g.nodes)
            if (node.op_type == "Constant" && !constants_.contains(node.output))
                constants_.emplace(node.output, nodes_.translate(g, node, {}));
    }

    Activation& add_activation(const Activation* caller) {
        Activation& made = activations_.emplace_back();
        made.caller = caller;
        made.depth = caller ? caller->depth + 1 : 0;
        if (made.depth > 100) throw file_error(file_, "graphs call each other without an end, which is not supported");
        return made;
    }

    Graph& add_block() {
        if (++blocks_ > kMostBlocks) fail("graphs call each other too often");
        return program_->add_inner(str(blocks_));
    }

    void define(Place& place, const std::string& name, Value v) const {
        if (!place.values.try_emplace(name, std::move(v)).second) fail(str("two nodes are called '", name, "'"));
    }

    Value named(const Place& place, const std::string& name) {
        const auto found = place.values.find(name);
        if (found != place.values.end()) return found->second;
        if (const auto known = constants_.find(name); known != constants_.end()) return known->second;
        const auto shared = std::ranges::find(shared_, name);
        if (shared == shared_.end()) fail(str("'", name, "' is used before it is made, or nowhere made"));
        // Shared weights are the last of the carried values.
        return place.carried.at(place.carried.size() - static_cast<size_t>(shared_.end() - shared));
    }

    // The node that produces a value of the entry; null: the value is an input, a weight, or a graph.
    const NodeEntry* maker(const GraphEntry& g, const std::string& name) {
        auto& made = makers_[&g];
        if (made.empty())
            for (const NodeEntry& node : g.nodes) made.try_emplace(node.output, &node);
        const auto found = made.find(name);
        return found == made.end() ? nullptr : found->second;
    }

    // The callee of a node: a graph by its name, or the output of a node that has chosen one.
    std::string callee_of(const NodeEntry& node) const {
        if (!node.op_type.starts_with("REF::")) return {};
        std::string name = node.op_type.substr(5);
        return model_.primitives.contains(name) ? std::string() : name;
    }

    bool is_flow(const NodeEntry& node) const {
        return std::ranges::find(kFlow, nodes_.operator_of(node)) != std::end(kFlow);
    }

    // Adds the names of the values that a node needs, including those of the choices that it calls.
    void add_uses(const GraphEntry& g, const NodeEntry& node, std::set<std::string>& names, int depth = 0) {
        if (depth > 10) fail(str("node '", node.output, "' depends on itself"));
        std::vector<std::string> inputs = node.inputs;
        if (const std::string callee = callee_of(node); !callee.empty()) inputs.push_back(callee);
        for (const std::string& name : inputs) {
            const NodeEntry* made = maker(g, name);
            if (made && is_flow(*made))
                add_uses(g, *made, names, depth + 1);
            else
                names.insert(name);
        }
    }

    // Whether only nodes that order effects come between the node and the graph's result.
    bool is_tail(const GraphEntry& g, size_t at) {
        if (g.outputs.size() != 1) return false;
        const NodeEntry* result = maker(g, g.outputs[0].name);
        for (int i = 0; i < 10 && result && result != &g.nodes[at]; ++i) {
            if (nodes_.operator_of(*result) != "Depend" || result->inputs.empty()) return false;
            result = maker(g, result->inputs[0]);
        }
        if (result != &g.nodes[at]) return false;
        return std::all_of(g.nodes.begin() + static_cast<std::ptrdiff_t>(at) + 1, g.nodes.end(),
                           [&](const NodeEntry& n) {
                               const std::string_view op = nodes_.operator_of(n);
                               return n.op_type == "Constant" || op == "Depend" || op == "UpdateState";
                           });
    }

    void go_through(Place& place) {
        const GraphEntry& g = *place.entry;
        const auto value = [&](const std::string& name) { return named(place, name); };
        for (size_t i = place.from; i < g.nodes.size(); ++i) {
            const NodeEntry& node = g.nodes[i];
            if (node.output.empty()) fail(str("node '", node.name, "' has no output"));
            if (node.op_type == "Constant" || nodes_.is_inner(g, node) || is_flow(node)) continue;
            if (!callee_of(node).empty()) return call(place, i);
            define(place, node.output, nodes_.translate(g, node, value));
        }
        std::vector<Value> results;
        for (const ValueInfo& output : g.outputs) {
            const Value v = value(output.name);
            for (const Value& item : v.is_list() ? v.items() : std::vector<Value>{v}) results.push_back(item);
        }
        if (results.empty()) fail(str("graph '", g.name, "' has no output"));
        give(place, std::move(results));
    }

    Value as_operand(const Place& place, const Value& v) const {
        return v.is_tensor() ? Value(place.block->add_constant(v)) : v;
    }

    void give(const Place& place, std::vector<Value> results) {
        for (Value& v : results) v = as_operand(place, v);
        Graph* rest = place.activation->rest;
        if (!rest) {
            place.block->result = Value::list(std::move(results));
            return;
        }
        results.insert(results.end(), place.carried.begin(), place.carried.end());
        if (rest->parameters().size() != results.size())
            fail(str("graph '", place.entry->name, "' gives another number of results than its call has"));
        place.block->result = Value(place.block->add_call(*place.block->add_function(*rest), std::move(results), {}));
    }

    static bool is_order(const ValueInfo& input) {
        return input.info && (input.info->kind == Kind::umonad || input.info->kind == Kind::iomonad);
    }

    // A chosen graph with its arguments.
    struct Way {
        const GraphEntry* graph = nullptr;
        std::vector<Value> args;
    };

    Way way(const Place& place, const std::string& name) {
        Way w;
        std::string function = name;
        if (const NodeEntry* partial = maker(*place.entry, name)) {
            if (nodes_.operator_of(*partial) != "Partial" || partial->inputs.empty())
                fail(str("'", name, "' is no graph with arguments"));
            function = partial->inputs[0];
            for (size_t i = 1; i < partial->inputs.size(); ++i) w.args.push_back(named(place, partial->inputs[i]));
        }
        const auto found = functions_.find(function);
        if (found == functions_.end()) fail(str("there is no graph '", function, "'"));
        w.graph = found->second;
        return w;
    }

    void call(Place& place, size_t at) {
        const GraphEntry& g = *place.entry;
        const NodeEntry& node = g.nodes[at];
        Activation* activation = place.activation;
        std::vector<Value> carried = place.carried;
        if (!is_tail(g, at)) {
            activation = &add_activation(place.activation);
            carried = rest_of(place, at, *activation);
        }
        std::vector<Value> extra;
        for (const std::string& input : node.inputs) extra.push_back(named(place, input));
        const std::string callee = callee_of(node);
        const NodeEntry* choice = maker(g, callee);
        if (!choice) {
            Way w = way(place, callee);
            auto [block, args] = entered(place, w, extra, *activation, carried);
            place.block->result = Value(place.block->add_call(*block, args.items(), {}));
            return;
        }
        if (nodes_.operator_of(*choice) != "Switch" || choice->inputs.size() != 3)
            fail(str("node '", node.output, "' calls '", callee, "', which is no choice between two graphs"));
        const Value condition = truth(place, named(place, choice->inputs[0]));
        std::vector<Value> args{condition};
        for (size_t i : {1, 2}) {
            auto [block, operands] = entered(place, way(place, choice->inputs[i]), extra, *activation, carried);
            args.emplace_back(block);
            args.push_back(std::move(operands));
        }
        place.block->result = Value(place.block->add_call(primitives_.get("branch"), std::move(args), {}));
    }

    // Truth of a tensor's only element, as Lua defines it.
    Value truth(const Place& place, const Value& v) const {
        if (v.kind() == Value::Kind::boolean) return v;
        const Value tensor = as_operand(place, v);
        if (!tensor.is_node()) fail("a condition is no tensor");
        Graph& block = *place.block;
        const Value item(block.add_call(primitives_.get("index"), {tensor, Value("item")}, {}));
        const Value results(block.add_call(primitives_.get("call"), {item, Value::list({tensor})}, {}));
        return Value(block.add_call(primitives_.get("result"), {results, Value(0)}, {}));
    }

    // The function value of a graph's block within an activation, and the arguments for it.
    std::pair<Node*, Value> entered(const Place& place, const Way& w, const std::vector<Value>& extra,
                                    Activation& activation, const std::vector<Value>& carried) {
        std::vector<Value> given = w.args;
        given.insert(given.end(), extra.begin(), extra.end());
        const GraphEntry& g = *w.graph;
        if (g.inputs.size() != given.size())
            fail(str("graph '", g.name, "' has ", g.inputs.size(), " inputs, not ", given.size()));
        std::vector<Value> args;
        for (size_t i = 0; i < given.size(); ++i)
            if (!is_order(g.inputs[i])) args.push_back(as_operand(place, given[i]));
        args.insert(args.end(), carried.begin(), carried.end());
        auto [entry, is_new] = activation.blocks.try_emplace(&g, nullptr);
        if (is_new) {
            entry->second = &add_block();
            Place next{&g, 0, &activation, entry->second, {}, {}};
            for (const ValueInfo& input : g.inputs) {
                const std::string name = input.name.substr(input.name.rfind(':') + 1);
                define(next, input.name,
                       is_order(input) ? Value() : Value(entry->second->add_parameter(name, nodes_.type_of(input))));
            }
            next.carried = parameters_for(carried, *entry->second);
            waiting_.push_back(std::move(next));
        }
        if (args.size() != entry->second->parameters().size()) fail(str("graph '", g.name, "' is called in two ways"));
        return {place.block->add_function(*entry->second), Value::list(std::move(args))};
    }

    static std::vector<Value> parameters_for(const std::vector<Value>& values, Graph& block) {
        std::vector<Value> made;
        for (const Value& v : values)
            made.emplace_back(
                block.add_parameter(v.is_node() ? v.node()->name : "", v.is_node() ? v.node()->type : NodeType()));
        return made;
    }

    // Begins the block for the nodes after the call; returns the values that the called graph has to carry.
    std::vector<Value> rest_of(Place& place, size_t at, Activation& activation) {
        const GraphEntry& g = *place.entry;
        std::set<std::string> needed;
        for (size_t i = at + 1; i < g.nodes.size(); ++i)
            if (!is_flow(g.nodes[i])) add_uses(g, g.nodes[i], needed);
        for (const ValueInfo& output : g.outputs) needed.insert(output.name);
        activation.rest = &add_block();
        Graph& block = *activation.rest;
        Place next{&g, at + 1, place.activation, &block, {}, {}};
        define(next, g.nodes[at].output, results_in(g.nodes[at], block));
        std::vector<Value> carried;
        const auto carry = [&](const Value& v) {
            carried.push_back(v);
            return parameters_for({v}, block)[0];
        };
        for (const std::string& name : needed) {
            const auto found = place.values.find(name);
            if (found == place.values.end()) continue;
            Value now = found->second;
            if (now.is_node()) {
                now = carry(now);
            } else if (now.is_list()) {
                std::vector<Value> items = now.items();
                for (Value& item : items)
                    if (item.is_node()) item = carry(item);
                now = Value::list(std::move(items));
            }
            define(next, name, std::move(now));
        }
        for (const Value& v : place.carried) next.carried.push_back(carry(v));
        waiting_.push_back(std::move(next));
        return carried;
    }

    // Parameters for the results of a call, with the types that the file states.
    Value results_in(const NodeEntry& call, Graph& block) const {
        const Attribute* type = call.find("shape");
        if (!type) fail(str("node '", call.output, "' has no type"));
        const auto result = [&](const Attribute& a) {
            if (a.kind != Kind::tensors || a.tensors.size() != 1 || !a.tensors[0].dtype() ||
                !a.tensors[0].shape_is_valid())
                fail(str("node '", call.output, "' gives what is no tensor"));
            return Value(block.add_parameter("", NodeType::of(a.tensors[0].tensor_type())));
        };
        if (type->kind != Kind::tuple) return result(*type);
        std::vector<Value> results;
        for (const Attribute& a : type->values) results.push_back(result(a));
        return Value::list(std::move(results));
    }

    const Model& model_;
    const Registry& primitives_;
    const std::string& file_;
    std::unique_ptr<Graph> main_, program_;
    NodeTranslator nodes_;
    std::unordered_map<std::string, const GraphEntry*> functions_;
    std::unordered_map<const GraphEntry*, std::unordered_map<std::string_view, const NodeEntry*>> makers_;
    std::unordered_map<std::string, Value> constants_;
    std::vector<std::string> shared_;
    std::deque<Activation> activations_;
    std::deque<Place> waiting_;
    size_t blocks_ = 0;
};

}  // namespace

ir::ParsedGraph import_blocks(const Model& model, const Registry& primitives, const std::string& file) {
    return BlockImporter(model, primitives, file).run();
}

}  // namespace lunaria::mindir
