#include "jit/saving/program_writer.h"

#include <algorithm>

#include "core/ir/text.h"
#include "core/ir/verifier.h"
#include "jit/language.h"

namespace lunaria {

namespace {

constexpr size_t kMostNodes = 300000;

}  // namespace

WrittenFunction& ProgramWriter::add_function(std::string name) {
    return functions_.emplace_back(root_->add_inner(std::move(name)));
}

void ProgramWriter::go_to(const Place& place) {
    function_ = place.function;
    here = place.here;
    at = place.at;
}

void ProgramWriter::refuse(std::string_view what, std::string_view hint) const {
    Error e = state_error(where_, what);
    if (!hint.empty()) e = e.hint(hint);
    throw at.line ? e.at(ir::span_text(at)) : e;
}

Value ProgramWriter::emit(const Op& op, std::vector<Value> args) {
    if (++emitted_ > kMostNodes) refuse(str("the program has more than ", kMostNodes, " operations"));
    ir::Node* node = here->graph->add_call(op, std::move(args), {});
    node->span = at;
    return Value(node);
}

Value ProgramWriter::emit(std::string_view primitive, std::vector<Value> args) {
    return emit(lua::primitive(primitive), std::move(args));
}

Value ProgramWriter::closure_of(WrittenFunction& function, std::vector<Value> captures) {
    ir::Node* constant = here->graph->add_function(*function.graph);
    const Value made = emit("closure", {Value(constant), Value::list(std::move(captures))});
    links_.push_back({made.node(), function_, &function});
    return made;
}

Partial ProgramWriter::item(const Partial& list, size_t i) {
    const auto at = [](size_t k) { return Value(static_cast<int64_t>(k)); };
    if (list.is_node()) return emit("result", {list.value, at(i)});
    if (!list.structure) return {};
    const std::vector<Partial>& items = list.items();
    if (list.is_open_list() && i + 1 >= items.size())
        return emit("result", {items.back().value, at(i + 1 - items.size())});
    return i < items.size() ? items[i] : Partial();
}

Partial ProgramWriter::rest(const Partial& list, size_t i) {
    const auto at = [](size_t k) { return Value(static_cast<int64_t>(k)); };
    if (list.is_node()) return emit("results_from", {list.value, at(i)});
    if (!list.structure) return Partial::list({});
    const std::vector<Partial>& items = list.items();
    if (list.is_open_list() && i + 1 >= items.size())
        return emit("results_from", {items.back().value, at(i + 1 - items.size())});
    std::vector<Partial> rest(items.begin() + static_cast<std::ptrdiff_t>(std::min(i, items.size())), items.end());
    return list.is_open_list() ? Partial::open_list(std::move(rest)) : Partial::list(std::move(rest));
}

Value ProgramWriter::tensor(const Value& tensor) {
    if (tensor.tensor().parameter()) return weight(*function_, tensor);
    Value& constant = function_->constants[tensor.tensor().body()];
    if (constant.is_nil()) constant = Value(function_->graph->add_constant(tensor));
    return constant;
}

Value ProgramWriter::weight(WrittenFunction& in, const Value& tensor) {
    for (auto& [known, node] : in.weights)
        if (known.tensor().body() == tensor.tensor().body()) return Value(node);
    ir::Node* node = in.graph->add_parameter(tensor.tensor().parameter()->name, {});
    if (&in == &functions_.front()) {
        const int count = ++weight_names_[node->name];
        if (count > 1) node->name = str(node->name, '_', count);
    }
    in.weights.emplace_back(tensor, node);
    return Value(node);
}

// The callers of a function need its weights too. Blocks are complete from here on.
void ProgramWriter::pass_weights() {
    for (bool changed = true; changed;) {
        changed = false;
        for (const Link& link : links_) {
            const size_t before = link.in->weights.size();
            for (auto& [tensor, node] : std::vector(link.of->weights)) weight(*link.in, tensor);
            changed |= link.in->weights.size() != before;
        }
    }
    for (const Link& link : links_) {
        std::vector<Value> captured = link.closure->args[1].items();
        for (auto& [tensor, node] : link.of->weights) captured.push_back(weight(*link.in, tensor));
        link.closure->args[1] = Value::list(std::move(captured));
    }
    for (WrittenFunction& r : functions_) {
        std::vector<ir::Node*> order = r.captures;
        for (auto& [tensor, node] : r.weights) order.push_back(node);
        r.graph->captures = order.size();
        order.insert(order.end(), r.parameters.begin(), r.parameters.end());
        r.graph->reorder_parameters(std::move(order));
        r.blocks.finish();
    }
}

std::unique_ptr<ir::Graph> ProgramWriter::finish(std::vector<Value> inputs) {
    pass_weights();
    WrittenFunction& program = functions_.front();
    std::vector<Value> weights;
    for (auto& [tensor, node] : program.weights) {
        ir::Node* constant = root_->add_constant(tensor);
        constant->name = node->name;
        weights.emplace_back(constant);
    }
    ir::Node* constant = root_->add_function(*program.graph);
    const Value closure(
        root_->add_call(lua::primitive("closure"), {Value(constant), Value::list(std::move(weights))}, {}));
    root_->result = Value(root_->add_call(lua::primitive("call"), {closure, Value::list(std::move(inputs))}, {}));
    ir::verify(*root_);
    return std::move(root_);
}

}  // namespace lunaria
