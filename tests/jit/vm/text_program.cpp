#include "tests/jit/vm/text_program.h"

#include "core/ir/verifier.h"
#include "jit/language.h"

namespace lunaria::testing {

Value function_value(const vm::OperatorFunction& f) {
    return vm::make_object<vm::Closure>(*f.function, f.owner, vm::Values());
}

TextProgram::TextProgram(std::string_view text)
    : parsed_(ir::parse(text, {&lua::language(), vm::PlainHost::operator_value}, "text")) {
    ir::verify(*parsed_.graph);
}

TextProgram::~TextProgram() { note_primitives(*parsed_.graph); }

std::set<std::string>& primitives_that_ran() {
    static std::set<std::string> names;
    return names;
}

static void note(const ir::Graph& graph, std::set<const ir::Graph*>& seen) {
    if (!seen.insert(&graph).second) return;
    vm::Function& function = vm::function_of(graph);
    if (function.code)
        for (const ir::Graph* block : ir::blocks_of(graph))
            for (const ir::Node* node : block->body())
                if (node->op && lua::is_primitive(*node->op))
                    primitives_that_ran().insert(std::string(node->op->name()));
    for (const auto* made : {&function.derivative_graph, &function.expanded_graph, &function.calling_graph})
        if (*made) note(**made, seen);
    for (const auto& node : graph.nodes())
        if (node->function) note(*node->function, seen);
    for (const auto& inner : graph.inner()) note(*inner, seen);
}

void note_primitives(const ir::Graph& function) {
    std::set<const ir::Graph*> seen;
    note(function, seen);
}

Value TextProgram::function() const {
    return vm::make_object<vm::Closure>(vm::function_of(*parsed_.graph), nullptr, vm::Values());
}

std::vector<Value> TextProgram::run(std::span<const Value> args) { return machine_.run(function(), args).vector(); }

std::pair<Value, Value> TextProgram::gradient(std::initializer_list<Value> args, int64_t position) {
    vm::Values all{Value("grad"), function(), Value(position)};
    all.append({args.begin(), args.size()});
    const vm::Values results = machine_.run(function_value(vm::prelude(vm::Prelude::gradient)), all);
    return {results[0], results[1]};
}

Value TextProgram::second_derivative(std::initializer_list<Value> args, int64_t position) {
    // f, gradient, position, arguments... -> the derivative of f.
    static const ir::ParsedGraph kSlope = ir::parse(
        "graph slope(%0 f: ?, %1 gradient: ?, %2 position: ?, %3 ...: ?) captures 3 variadic {\n"
        "  %4 = spread({\"grad\", %0, %2}, %3) : ?\n"
        "  %5 = call(%1, %4) : ?\n"
        "  %6 = result(%5, 1) : ?\n"
        "  return {%6}\n"
        "}\n",
        {&lua::language(), vm::operator_value}, "slope");
    const Value gradient = function_value(vm::prelude(vm::Prelude::gradient));
    vm::Values all{Value("grad"),
                   vm::make_object<vm::Closure>(vm::function_of(*kSlope.graph), nullptr,
                                                vm::Values{function(), gradient, Value(position)}),
                   Value(position)};
    all.append({args.begin(), args.size()});
    return machine_.run(gradient, all)[1];
}

std::string TextProgram::error(std::initializer_list<Value> args) {
    const vm::Host::Protected outcome = host_.call_protected([&] { run(args); });
    if (outcome.ok) return "no error";
    return outcome.error.kind() == Value::Kind::string ? outcome.error.string() : to_string(outcome.error);
}

}  // namespace lunaria::testing
