// Loops whose number of iterations differs, while a call is recorded. The condition of such a loop is a guard of the
// record, so that each number of iterations would be a branch of its own; instead the record has the loop once.
//
// The machine's blocks take everything that they use as parameters: one iteration passes values to the next in the
// parameters of the loop's head, as long as nothing else has changed. So iterations are compared there: where an
// iteration has changed nothing but numbers and tensors among these values, the next one is recorded for any such
// values (the step `loop`), and where it comes back with values of the same kinds, the loop is complete (the step
// `again`): the recorder continues from the start of the iteration, and drops what it learned in between. A loop that
// does more is recorded iteration by iteration.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "jit/trace/questions.h"
#include "jit/trace/symbolic_sizes.h"
#include "jit/trace/trace.h"
#include "jit/vm/machine.h"

namespace lunaria::trace {

class Recording;

class Loops {
  public:
    explicit Loops(Recording& recording) : r_(recording) {}

    // Called before an instruction; true: it was executed here, for a symbolic number of iterations.
    bool step(vm::Machine& m, const vm::Instr& i);
    // Notes that a table which the run made, given by its number, is changed or given away.
    void wrote(int32_t table);

  private:
    // For a function: the heads of its loops, by their first instruction, with the parameters that an iteration may
    // change; and the instructions whose result decides the end of a loop, with the heads of those loops.
    struct Heads {
        std::shared_ptr<const void> owner;  // of the code, so that no other code gets its place in memory
        std::unordered_map<const vm::Instr*, uint32_t> blocks;
        std::unordered_map<uint32_t, std::vector<bool>> varying;
        std::unordered_map<const vm::Instr*, std::vector<uint32_t>> deciders;
    };
    // A value as it was when an iteration began. Objects are kept alive, so that no other object gets their identity; a
    // tensor is not: its slot identifies it, and those without a slot are kept by the recording.
    struct Seen {
        Value value;        // neither a symbolic number nor a tensor
        int32_t slot = -1;  // of a symbolic number or a tensor
        const void* identity = nullptr;
        Value::Kind kind = Value::Kind::nil;
        TensorType type;
    };
    // The recorder's knowledge when the step `loop` was recorded.
    struct Known {
        int32_t slots = 0, tables = 0;
        Questions::Answers found;
        Sizes::Known sizes;
    };
    struct Loop {
        size_t frames = 0;  // number of frames, including that of the loop
        const vm::Code* code = nullptr;
        uint32_t block = 0;
        // About the last iteration:
        std::vector<Seen> seen;
        int32_t slots = 0, tables = 0;
        size_t effects = 0;
        bool changed = false;  // something beside these values
        bool decided = false;  // a guard of the record decided whether it continues
        // About all iterations:
        std::vector<Seen> first;
        int32_t first_slots = 0;
        bool ever_changed = false;
        // Once it is in the record:
        Block* in = nullptr;
        size_t at = 0;  // the step
        std::vector<int64_t> places;
        std::vector<std::pair<int32_t, Value>> fixed;  // the registers of the other parameters, which stay as they are
        Known known;
    };

    const Heads& heads_of(const vm::Machine& m);
    void leave(const vm::Machine& m, const vm::Instr& i);
    void note(vm::Machine& m, const vm::Instr& i);
    void arrive(vm::Machine& m, const vm::Instr& i, uint32_t block);
    void begin_turn(vm::Machine& m, const vm::Instr& i, Loop& loop);
    bool may_open(const vm::Machine& m, const Loop& loop) const;
    Value operands(vm::Machine& m, const std::vector<int32_t>& parameters, const std::vector<int64_t>& places);
    bool open(vm::Machine& m, const vm::Instr& i, Loop& loop);
    bool close(vm::Machine& m, Loop& loop);
    void rewind(vm::Machine& m, Loop& loop);
    bool compute(vm::Machine& m, const vm::Instr& i);
    Seen seen(const Value& v) const;
    bool is_same(const Seen& before, const Value& now) const;
    bool is_alike(int32_t since, const Seen& before, const Value& now) const;
    int32_t made_since(const vm::Machine& m, const Loop& loop) const;
    bool choose(const vm::Machine& m, const vm::Instr& i, const Loop& loop, std::vector<int64_t>& places) const;

    Recording& r_;
    std::vector<Loop> loops_;  // the running loops, the outermost first
    std::unordered_map<const vm::Code*, std::unique_ptr<const Heads>> heads_;
    const vm::Code* code_ = nullptr;  // of the last instruction, and its heads if there are any
    const Heads* here_ = nullptr;
    size_t position_ = 0;  // before the last deciding instruction
    std::vector<uint32_t> deciding_;
    size_t deciding_frames_ = 0;
};

}  // namespace lunaria::trace
