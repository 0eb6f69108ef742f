// Elementwise operators on dense operands, forwards and backwards, bypassing the executor: most of the work in programs
// of small tensors.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "core/run/element_chain.h"
#include "jit/autodiff/pullback.h"
#include "jit/vm/code.h"
#include "jit/vm/object.h"

namespace lunaria::vm {

class Machine;

// A cache of calls of elementwise operators: kernel, shape and reverse rule by call site.
class ElementwiseCalls {
  public:
    // Runs an operator on dense tensors of one shape (up to leading axes of size 1), differentiated once; false: the
    // operands are different, and nothing has happened.
    bool follow(Machine& m, const Op& op, const Instr& i, std::span<const Slot> operands, const Context& context);

  private:
    struct Site {
        const Op* op = nullptr;
        const ChainKernel* kernel = nullptr;
        uint64_t active = 0;
        size_t operands = 0;
        DType dtype = DType::f32;
        Shape shape;  // of the result
        // The ranks of the operands, whose shapes may lack leading axes of size 1; and the operand that lacks none.
        std::array<uint8_t, 3> ranks{};
        uint8_t widest = 0;
        std::shared_ptr<const autodiff::Pullback> rule;  // null: not known yet, or no operand is active
        Function* function = nullptr;
        uint32_t saved = 0;  // operands that the rule needs, by bits
    };
    static bool fits(const Site& site, const Op& op, uint64_t active, std::span<const Tensor* const> operands);
    static bool set_up(Site& site, const Op& op, uint64_t active, std::span<const Tensor* const> operands);
    static void find_rule(Site& site, const Machine& m, std::span<const Slot> operands, const Value& result);
    static int spare_operand(const Site& site, const Machine& m, std::span<const Slot> operands);

    std::array<Site, 256> sites_;  // by a hash of the instruction
};

// The instruction `pull` of a rule that is a chain; false: some operand does not have the form that the chain needs.
bool pull_chain(Machine& m, const Instr& i, Closure& closure, std::span<const Slot> given);

}  // namespace lunaria::vm
