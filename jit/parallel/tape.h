// Calls of operators that were run at once, for the way back.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "core/ir/graph.h"
#include "core/operator/op.h"
#include "core/tensor/tensor.h"

namespace lunaria::parallel {

// Zeros where elements may be read, as single numbers are; nothing reads those of large tensors.
Tensor blank(DType dtype, const Shape& shape);

// What was done: an operator, or a change of form whose gradient takes another way.
struct TapeEntry {
    const Op* op = nullptr;
    std::vector<Value> args;
    Value result;
    // Without an operator: `args` and `result` are the tensor before and after, and this brings the gradient back.
    std::function<Tensor(const Tensor&)> back;
};

// Runs operators at once and notes those on which gradients depend.
class Tape final : public Builder {
  public:
    std::map<int, std::vector<TapeEntry>> entries;  // of each operator of the program
    int at = 0;                                     // the operator whose calls these are

    Value emit(const Op& op, std::span<const Value> args) override;
    Value item(const Value& results, size_t i) override { return results.items().at(i); }
    Value tuple(std::vector<Value> items) override { return Value::list(std::move(items)); }

    void note(TapeEntry entry);
    // From now on gradients depend on the tensor.
    void activate(const Tensor& t) { active_.emplace(t.body(), t); }
    bool is_active(const Tensor& t) const { return active_.contains(t.body()); }
    // Whether the value is, or contains, such a tensor.
    bool touches(const Value& v) const;

  private:
    std::map<const TensorBody*, Tensor> active_;  // kept, so that no other tensor gets the place of one of them
};

// The result of a reverse rule (jit/autodiff/pullback.h) for the values of its parameters.
Value run_rule(const ir::Graph& graph, std::vector<Value> given);

}  // namespace lunaria::parallel
