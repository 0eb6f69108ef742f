// Functions of the machine that are written here rather than by a program.
#pragma once

#include <memory>

#include "core/ir/graph.h"
#include "jit/language.h"
#include "jit/vm/machine.h"

namespace lunaria::vm {

// Builds a function out of primitives.
class Sketch {
  public:
    explicit Sketch(std::string name) : graph_(std::make_shared<ir::Graph>(std::move(name))) {}
    Value parameter(std::string name = "") { return Value(graph_->add_parameter(std::move(name), {})); }
    Value emit(std::string_view name, std::vector<Value> args) {
        return Value(graph_->add_call(lua::primitive(name), std::move(args), {}));
    }
    Value item(const Value& node, size_t i) { return Value(graph_->add_item(*node.node(), i)); }
    OperatorFunction finish(Value result, size_t captures = 0, bool variadic = false) {
        graph_->result = std::move(result);
        graph_->captures = captures;
        graph_->variadic = variadic;
        return {&function_of(*graph_), graph_};
    }
    ir::Graph& graph() { return *graph_; }

  private:
    std::shared_ptr<ir::Graph> graph_;
};

}  // namespace lunaria::vm
