// Symbolic sizes: tensors of a recorded call that may have other sizes the next time, and these sizes as numbers of the
// program. x.shape gives them, and operators take them in lists (ops.reshape(x, {x.shape[1], 4})), without tying the
// record to the sizes of this call.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "jit/trace/trace.h"

namespace lunaria::trace {

class Recording;

class Sizes {
  public:
    explicit Sizes(Recording& recording) : r_(recording) {}

    // The state at a step of the record.
    struct Known {
        std::vector<bool> open;  // by slot: whether it is a tensor of any sizes, or was until all were decided
        int count = 0;
        size_t sources = 0;
        bool closed = false;  // no further ones are allowed
    };
    bool any() const { return known_.count > 0 && !known_.closed; }
    bool closed() const { return known_.closed; }
    bool at(int32_t slot) const { return !known_.closed && known_.open[static_cast<size_t>(slot)]; }
    bool of(const Value& tensor) const;
    // Whether its sizes are symbolic, or were until all were decided: the program gets them as symbolic numbers.
    bool varies(const Value& tensor) const;
    // The program looks at a size of the tensor: if all sizes are decided, what it does next may depend on it.
    void look(const Value& tensor);
    // Whether an operand is such a tensor, or a list of numbers that may be such sizes.
    bool in(const Value& operand) const;
    // The slot holds a value from there on; `source`: for such a tensor whose sizes do not follow from those of others.
    void note(int32_t slot, bool open, const Value* source);
    void decided(int32_t slot) {
        if (!known_.closed) note(slot, false, nullptr);
    }
    // For an operator's results once all sizes are decided: whether they follow from sizes that were symbolic.
    bool follow(const Step& step) const;
    // Whether the program has looked at such a size since the last call of this function.
    bool looked() { return std::exchange(looked_, false); }
    // From now on the record is for the sizes of this tensor, at which the program looks; or of all tensors, at which
    // rules look.
    void decide(const Value& tensor);
    void decide_all();
    // The same for sizes that are attributes of an operator and influence nothing else.
    void decide_attributes(const Value& tensor);
    // The record is for the type of this tensor.
    void rely_on(const Value& tensor);
    // Whether the sizes of the results depend on more than those of the operands; `real`: the arguments of this call.
    bool by_content(const Op& op, std::span<const Value> args, std::span<const Value> real) const;
    // The step is known, and the call continues after it: at the start of a branch for any sizes it has further
    // results.
    void enter(const Step& step, vm::Values& results);
    // In such a branch a number that follows from sizes is a value of the branch, as in the known step.
    void lift(const Step& known, Step& s) const;
    // The step is new: everything after it is recorded for these sizes only.
    void leave_behind(const Step& step);
    Known known() const;
    void restore(const Known& known);

  private:
    Recording& r_;
    Known known_;
    bool looked_ = false;
    std::shared_ptr<const SizePattern> way_;  // of the branch that the call takes, shared with its first step
    std::vector<Value> sources_;
};

// A new table of the sizes of a tensor; nil: the sizes are the same in all calls.
Value open_shape(Recording& recording, const Value& tensor);

// The size of an axis: a symbolic number where the tensor may have any size.
Value size_of(Recording& recording, const Value& tensor, int axis);

// Lists made by the run among the arguments of an operator: while this object lives they hold plain numbers.
class SymbolicSizes {
  public:
    SymbolicSizes(Recording& recording, std::span<const Value> args);
    ~SymbolicSizes();
    SymbolicSizes(const SymbolicSizes&) = delete;
    SymbolicSizes& operator=(const SymbolicSizes&) = delete;

    // Binds as the host does, from arguments without symbolic numbers; the lists for the operator then get the symbolic
    // ones.
    vm::Host::Bound bind(const Op& op, std::span<const Value> real);

  private:
    void put_into(vm::Host::Bound& bound);
    void decide();

    struct Lent {
        size_t argument;
        Value table, key, number;
        bool stays = false;
    };
    Recording& r_;
    std::vector<Lent> lent_;
};

}  // namespace lunaria::trace
