// Tensors of a recorded call that may have any sizes the next time, and these sizes as numbers of the program: x.shape
// gives them, and operators take them in lists (ops.reshape(x, {x.shape[1], 4})), without the record being for the
// sizes of this call.
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

    // What is known at a step of the record.
    struct Known {
        std::vector<bool> open;  // by slot: whether it is a tensor of any sizes, or was until all were decided
        int count = 0;
        size_t sources = 0;
        bool closed = false;  // there shall be no more of them
    };
    bool any() const { return known_.count > 0 && !known_.closed; }
    bool closed() const { return known_.closed; }
    bool at(int32_t slot) const { return !known_.closed && known_.open[static_cast<size_t>(slot)]; }
    bool of(const Value& tensor) const;
    // Whether it is one, or was until all were decided: the program gets its sizes as symbolic numbers.
    bool varies(const Value& tensor) const;
    // The program looks at a size of the tensor: where all are decided, what it does then may depend on it.
    void look(const Value& tensor);
    // An operand: such a tensor, or a list of numbers that may be such sizes.
    bool in(const Value& operand) const;
    // The slot holds a value from there on; `source`: of such a tensor that its sizes follow from those of no others.
    void note(int32_t slot, bool open, const Value* source);
    void decided(int32_t slot) {
        if (!known_.closed) note(slot, false, nullptr);
    }
    // Of an operator's results once all sizes are decided: whether they follow from some that were not.
    bool follow(const Step& step) const;
    // Whether the program has looked at such a size since this was asked last.
    bool looked() { return std::exchange(looked_, false); }
    // From now on the record is for the sizes that the tensor has, at which the program looks; or all tensors, at which
    // rules look.
    void decide(const Value& tensor);
    void decide_all();
    // The same where the sizes are those of an operator's attributes and nothing else depends on them.
    void decide_attributes(const Value& tensor);
    // The record is for the type that the tensor has.
    void rely_on(const Value& tensor);
    // Whether the sizes of the results depend on more than on those of the operands; `real`: the arguments of this
    // call.
    bool by_content(const Op& op, std::span<const Value> args, std::span<const Value> real) const;
    // The step is known, and the call goes on behind it: where a way for any sizes begins there are further results.
    void enter(const Step& step, vm::Values& results);
    // In such a way a number that follows from sizes is a value of the way, as in the step that is known.
    void lift(const Step& known, Step& s) const;
    // The step is new: what comes behind it is recorded for these sizes alone.
    void leave_behind(const Step& step);
    Known known() const;
    void restore(const Known& known);

  private:
    Recording& r_;
    Known known_;
    bool looked_ = false;
    std::shared_ptr<const SizePattern> way_;  // of the way that the call goes, shared with its first step
    std::vector<Value> sources_;
};

// A new table of the sizes of a tensor; nil: they are those of this call in all calls.
Value open_shape(Recording& recording, const Value& tensor);

// The size of an axis: a symbolic number where the tensor may have any.
Value size_of(Recording& recording, const Value& tensor, int axis);

// Lists of the run's own among the arguments of an operator: while it lives they hold plain numbers.
class SymbolicSizes {
  public:
    SymbolicSizes(Recording& recording, std::span<const Value> args);
    ~SymbolicSizes();
    SymbolicSizes(const SymbolicSizes&) = delete;
    SymbolicSizes& operator=(const SymbolicSizes&) = delete;

    // As the host does it, of the arguments without symbolic numbers; these stand in the lists that the operator gets.
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
