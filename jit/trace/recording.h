// The state of recording a call: what the call does becomes events, see trace.h. The parts of a recording (its loops,
// symbolic numbers, own tables, questions, sizes) reach each other through it.
//
// If the runner carried out the first steps of a call, the recording repeats the call from the beginning. Up to the
// place where the runner stopped it answers with the results of those steps (placeholders of their type replace tensors
// that are no longer needed); from there on everything is real, and recorded as another branch of the tree.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/memory/memory.h"
#include "jit/trace/counters.h"
#include "jit/trace/loops.h"
#include "jit/trace/outside.h"
#include "jit/trace/own_tables.h"
#include "jit/trace/progress.h"
#include "jit/trace/questions.h"
#include "jit/trace/symbolic_numbers.h"
#include "jit/vm/watcher.h"

namespace lunaria::trace {

// The value as an operand, without marks.
Value constant_operand(Value v);

class Recording {
  public:
    // `watched`: the host of the running machine, which is between the machine and the outside's host.
    Recording(Outside& outside, Tree& tree, Progress& progress, const Limits& limits, vm::Host& watched);
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    // The step's results: those that are known already, or those of `body`, which are recorded.
    vm::Values event(Step&& step, const std::function<void(vm::Values&)>& body);
    Value ask(Step step, const Question& question);
    // Runs an operator.
    Value run(const Op& op, std::span<const Value> args);
    // Runs the body and catches its error. False: it raised one, which is the result.
    bool attempt(const ir::Span& span, const std::function<void(vm::Values&)>& body, vm::Values& results);
    [[noreturn]] void raise(const Value& error);

    // Ends the recording, for something that cannot be recorded: the call continues unrecorded, or the outside begins
    // it anew.
    void stop(std::string why);
    bool records() const { return stopped_.empty(); }
    const std::string& stopped() const { return stopped_; }
    // Whether it stopped for a reason that has nothing to do with the function.
    bool interrupted() const { return interrupted_; }
    void interrupt_if(bool interrupted) { interrupted_ |= interrupted; }
    bool restart() const { return restart_; }
    bool can_restart() const { return effects_ == 0 && !progress_.effects; }
    // The reason for a new branch: the event that had a new result; empty if there was none.
    const std::string& surprise() const { return surprise_; }
    Growth& growth() { return growth_; }

    // A value as an operand of a step that stays inside, or of an effect that gives it away.
    Value operand(const Value& v);
    std::vector<Value> operands(std::span<const Value> values);
    Value given(const Value& v);
    // After the recording has stopped, new values have no slot (-1) and no node.
    // Whether an operator of this call made the value, and it was not found in a table, say, which refers to it too.
    bool is_made(int32_t slot) const { return made_[static_cast<size_t>(slot)]; }
    Value node_at(int32_t slot) const { return slot < 0 ? Value() : Value(nodes_[static_cast<size_t>(slot)]); }
    Value plain(const Value& v);    // without symbolic numbers: for an effect that happens now
    Value outward(const Value& v);  // the same, with the handles as which tensors came
    // A key of a table; a tensor is its handle there. A compiled function as a key stays inside.
    Value outside_key(const Value& key) { return key.is_tensor() ? outward(key) : key; }
    Value decided(const Value& v);  // the number itself, on which the trace depends from now on

    // Notes a tensor that was made of plain values alone.
    void made(const Value& tensor);
    bool is_made(const Value& tensor) const { return constants_.contains(vm::identity_of(tensor)); }
    // What stands for the result of ms.jit, which is `maker`, for as long as the call is recorded: a function of its
    // own that calls the first argument.
    Value alike(const Value& maker, vm::Values args);
    // Once nothing is recorded: what `maker` makes, for the functions and the callers that see it; of other values the
    // same as outward().
    Value compiled(const Value& f);
    bool is_compiled(const Value& f) const {
        return !compiled_.empty() && f.kind() == Value::Kind::object && compiled_.contains(vm::identity_of(f));
    }
    // Notes a function of the machine that comes from outside.
    void note_function(const Value& f);
    bool is_noted(const Value& f) const { return functions_.contains(vm::identity_of(f)); }
    // Whether a variable belongs to such a function, and not to this run.
    bool is_foreign(const Value& cell) const { return !foreign_.empty() && foreign_.contains(cell.object()); }
    // Whether a tensor came as an object of the outside, or went there.
    bool has_handle(const Value& tensor) const { return handles_.contains(vm::identity_of(tensor)); }
    bool is_counter(const Value& key) { return counters_.has(machine, instr, key); }
    static bool is_plain(const Value& v) { return v.kind() <= Value::Kind::dtype || v.kind() == Value::Kind::string; }

    // The position of the recording: the number of steps from the root, and the block with the step that comes next.
    size_t position() const { return position_; }
    Block& block() const { return *block_; }
    size_t at() const { return at_; }
    // Whether the runner has already carried out the next step.
    bool repeats() const { return position_ < progress_.done; }
    // The next step of the record; null: the record ends here.
    const Step* next_known() const;
    // Goes back to just after step `at` of the block, which now has these values; everything made since is forgotten.
    void rewind(Block& block, size_t at, int32_t slots, vm::Values& values);
    size_t effects() const { return effects_; }  // number of effects so far
    bool has_numbers() const { return open_; }   // symbolic ones

    int32_t slots() const { return slots_; }
    // The slot of a tensor or a table; -1: it has none.
    int32_t slot_of(const Value& v) const;
    // Gives back what a trial has changed, as far as it is tensors, fields and variables.
    void undo();
    // By slot; nil for values that cannot be used any more.
    const std::vector<Value>& values() const { return values_; }

    Outside& outside;
    vm::Host& host;
    Tree& tree;
    vm::Machine machine;
    const vm::Instr* instr = nullptr;  // the running instruction
    const Op* whole = nullptr;         // the composite operator whose expansion is running
    bool trial = false;                // the call is to change nothing that outlives it
    int catching = 0;                  // number of calls around this one that catch errors
    bool exact = false;                // the error on its way has the message and the line that the language gives
    bool handles_errors = false;       // xpcall was called
    Loops loops{*this};
    SymbolicNumbers numbers{*this};
    OwnTables tables{*this};
    Questions questions{*this};
    Sizes sizes{*this};

  private:
    // For undo(): what the effect is about to change.
    void keep_old(const Step& s);
    vm::Values repeat(Step& s, const std::function<void(vm::Values&)>& body);
    vm::Values take_observed(Step& s);
    void write(Step step, vm::Values& results);
    std::vector<Expected> expect(const Step& s, const vm::Values& results, const std::vector<const Step*>& others);
    Expected expect_known(const Step& s, const Value& v, int32_t slot) const;
    Expected expect_tensor(const Step& s, const Value& v, size_t k, const std::vector<const Step*>& others) const;
    void know(const Step& step, vm::Values& results);
    uint32_t version_at(int32_t slot) const;
    void count_writes(const Step& step);
    void note_handle(const Value& tensor, Value handle);
    void sweep();
    // Drops what was kept for the records once the recording is stopped: the call may go on for long.
    void forget();
    bool is_in_code(const Value& tensor) const;
    // Puts plain numbers in place of the symbolic ones that a function or a variable holds.
    void settle_captures(const Value& v, std::unordered_set<const void*>& seen);

    Progress& progress_;
    const Limits& limits_;
    Block* block_;
    Growth growth_;
    size_t at_ = 0;        // in it
    size_t position_ = 0;  // steps from the root
    size_t path_ = 1;      // index in the runner's path of the next block
    bool restart_ = false, open_ = false, interrupted_ = false;
    size_t effects_ = 0;
    std::string stopped_, surprise_;
    int32_t slots_ = 0;
    size_t operators_ = 0;  // since the last sweep
    size_t live_ = 0;       // see Limits
    uint64_t swept_at_ = thread_allocated_bytes();
    std::vector<Value> values_;                         // by slot
    std::vector<ir::Node*> nodes_;                      // by slot
    std::vector<bool> made_;                            // by slot
    std::vector<int32_t> alive_;                        // the slots of those that can be used
    std::unordered_map<const void*, int32_t> slot_of_;  // tensors and tables by identity
    std::unordered_map<const void*, Value> constants_;  // tensors made of plain values
    // By identity, with what keeps the identity from passing on to something else: functions of the machine that came
    // from outside, whose variables are foreign_, and tensors that have a handle there.
    std::unordered_map<const void*, Value> functions_;
    std::unordered_set<const void*> foreign_;
    struct Compiled {
        Value stand_in, maker, made;
        vm::Values args;
    };
    std::unordered_map<const void*, Compiled> compiled_;  // by identity of what stands for the result
    struct Handle {
        Value tensor, handle;
    };
    std::unordered_map<const void*, Handle> handles_;
    bool forgot_ = false;
    // The event's results as the outside identifies them.
    struct Identity {
        const void* pointer = nullptr;
        Value holder;  // see Expected
    };
    std::vector<Identity> identities_;
    Counters counters_;
    std::vector<std::function<void()>> undo_;
    std::unordered_set<const void*> old_;  // identities of the tensors whose elements undo_ has
};

}  // namespace lunaria::trace
