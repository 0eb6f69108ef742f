// Operators whose elements a function outside of Lunaria computes (from a shared library). They are entries like those
// of core/ops/, in a registry of their own: shapes follow from named sizes, and the gradient is another such operator.
#pragma once

#include <functional>

#include "core/operator/op.h"

namespace lunaria {

class ForeignOp final : public Op {
  public:
    // Sizes of axes: numbers, or names, each of which means one size throughout a call.
    struct Axes {
        bool leading = false;  // any axes in front, the same wherever `leading` is
        std::vector<std::string> sizes;
    };
    struct Input {
        std::string name;
        Axes axes;
    };
    // Fills call.out and throws on failure. Called from any thread.
    using Function = std::function<void(const KernelCall& call)>;

    // `content` tells definitions apart: the same one again gives the same operator. `gradient` is called with the
    // inputs, the result and its cotangent, and fills one cotangent for each input; empty: there is no gradient.
    static const ForeignOp& define(std::string name, std::string doc, std::string content, std::vector<Input> inputs,
                                   Axes output, Function function, Function gradient);

    void run(const KernelCall& call) const { function_(call); }

  private:
    ForeignOp(std::string name, std::string doc, std::vector<Input> inputs);
    std::span<const Kernel> kernels_on(const Device& device) const override;

    const std::string name_, doc_;
    const std::vector<Input> inputs_;
    std::string text_;  // of the signature
    Axes output_;
    Function function_;
    const ForeignOp* derivative_ = nullptr;
    const ForeignOp* primal_ = nullptr;  // of a derivative

    friend struct ForeignRules;
};

// The operator as a foreign one; nullptr for others.
const ForeignOp* foreign_op(const Op& op);

}  // namespace lunaria
