// Operators that a program defines by a formula over scalars, or over the points of an index space with a reduction.
// They are entries like those of core/ops/, in a registry of their own: broadcast, gradients of any order and graphs
// come from the formula. A graph runtime sees through them; to run one eagerly as one kernel there is
// set_custom_kernel().
//
// A formula is a straight-line graph over parameters of rank 0 whose nodes work element by element.
#pragma once

#include <map>

#include "core/custom/index_rule.h"
#include "core/ir/builder.h"

namespace lunaria {

class CustomOp;

struct Formula {
    ir::Graph graph{"formula"};
    DType dtype = DType::f32;  // of the result
    bool zero = false;         // a derivative that vanishes everywhere
};

class CustomOp final : public Op {
  public:
    struct Input {
        std::string name;
        bool mask = false;  // takes a tensor of booleans; the other inputs are promoted to one dtype
    };
    // Element by element. The formula's parameters stand for the inputs, in their order, as f32 (masks: bool); where an
    // input of another dtype is given it is written anew for that.
    static const CustomOp& define(std::string name, std::string doc, std::vector<Input> inputs,
                                  const ir::Graph& formula);
    // The same at each point of an index space; indices that the result does not have are reduced.
    static const CustomOp& define(std::string name, std::string doc, std::vector<Input> inputs,
                                  const ir::Graph& formula, IndexRule rule);

    const Formula& formula(DType dtype) const;
    const IndexRule* rule() const { return rule_ ? &*rule_ : nullptr; }
    // The derivative by input i as an operator over the inputs and the cotangent of the result.
    const CustomOp& derivative(size_t i) const;

    // A holder for the compiled forms that the runtime keeps.
    mutable std::mutex mutex;
    mutable std::unique_ptr<ir::Attachment> compiled;

  private:
    CustomOp(std::string name, std::string doc, std::vector<Input> inputs);
    const CustomOp* gathering(size_t i, const GatherRule& rule, DType dtype) const;
    void set_rule(IndexRule rule, const CustomOp& element);
    std::vector<Input> inputs_and_cotangent() const;
    std::span<const Kernel> kernels_on(const Device&) const override;

    const std::string name_, doc_;
    const std::vector<Input> inputs_;
    std::string text_;                         // of the signature
    std::unique_ptr<const Formula> original_;  // of what was defined
    const CustomOp* parent_ = nullptr;         // of a derivative
    size_t position_ = 0;
    std::optional<IndexRule> rule_;
    const CustomOp* element_ = nullptr;  // of a rule: its formula at each point
    mutable std::mutex formula_mutex_;
    mutable std::map<DType, std::unique_ptr<const Formula>> formulas_;
    mutable std::map<size_t, const CustomOp*> derivatives_;

    friend struct CustomRules;
};

// The operator as a custom one; nullptr for those of the registry.
const CustomOp* custom_op(const Op& op);
// By name: of the registry, a custom one, or a foreign one (core/custom/foreign_op.h). Throws argument_error.
const Op& operator_named(std::string_view name);

// Whether a node with this operator works element by element on operands that broadcast.
bool is_pointwise(const Op& op);

// Sets the function that runs custom operators in one piece from now on; nullptr: the operators of the formula run one
// by one. The function gets the call as kernels do and may replace the output.
void set_custom_kernel(Kernel kernel);

}  // namespace lunaria
