#include "jit/saving/known.h"

#include "jit/vm/machine.h"

namespace lunaria {

bool is_plain(const Value& v) { return v.kind() < Value::Kind::node || v.kind() == Value::Kind::string; }

std::optional<Value> Known::computed(const Op& primitive, const std::vector<Value>& operands) {
    ir::Graph graph("known");
    std::vector<Value> nodes;
    for (size_t i = 0; i < operands.size(); ++i) nodes.emplace_back(graph.add_parameter("", {}));
    graph.result = Value::list({Value(graph.add_call(primitive, nodes, {}))});
    const Value f =
        vm::make_object<vm::Closure>(vm::function_of(graph), std::shared_ptr<const void>(), std::vector<Value>());
    const std::optional<std::vector<Value>> results = called(f, operands);
    return results ? std::optional((*results)[0]) : std::nullopt;
}

}  // namespace lunaria
