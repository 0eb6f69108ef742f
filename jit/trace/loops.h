// Loops whose number of turns differs, while a call is recorded. What decides whether such a loop goes on is a question
// of the record, so that each number of turns would be a branch of its own; instead the loop is in the record once.
//
// The machine's blocks take everything that they use as parameters: what one turn leaves to the next are the values of
// the parameters of the block that the loop goes back to, as long as nothing else has changed. So turns are compared
// there: where one has changed nothing but numbers and tensors among these values, the next one is written down for any
// such values (the step `loop`), and where it comes back with values of the same kinds, it is done (the step `again`):
// the recorder goes on from where the turn began, and forgets what it learned in between. A loop that does more is
// recorded turn by turn.
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

    // Before an instruction; true: it has been carried out, for a symbolic number of turns.
    bool step(vm::Machine& m, const vm::Instr& i);
    // A table that the run made, by its number, is changed or given away.
    void wrote(int32_t table);

  private:
    // Of a function: the blocks that its loops go back to, by their first instruction, with the parameters that a turn
    // may change; and the instructions on whose result the end of a loop depends, with the blocks of those loops.
    struct Heads {
        std::unordered_map<const vm::Instr*, uint32_t> blocks;
        std::unordered_map<uint32_t, std::vector<bool>> varying;
        std::unordered_map<const vm::Instr*, std::vector<uint32_t>> deciders;
    };
    // What a value was when a turn began, without keeping it alive.
    struct Seen {
        Value value;        // a number
        int32_t slot = -1;  // of a symbolic number or a tensor
        const void* identity = nullptr;
        Value::Kind kind = Value::Kind::nil;
        TensorType type;
    };
    // What the recorder knew when the step `loop` was written.
    struct Known {
        int32_t slots = 0, tables = 0;
        Questions::Answers found;
        Sizes::Known sizes;
    };
    struct Loop {
        size_t frames = 0;  // with that of the loop
        const vm::Code* code = nullptr;
        uint32_t block = 0;
        // Of the last turn:
        std::vector<Seen> seen;
        int32_t slots = 0, tables = 0;
        size_t effects = 0;
        bool changed = false;  // something that is not among the values
        bool decided = false;  // a question of the record was whether it goes on
        // Of all turns:
        std::vector<Seen> first;
        int32_t first_slots = 0;
        bool ever_changed = false;
        // Once it is in the record:
        Block* in = nullptr;
        size_t at = 0;  // the step
        std::vector<int64_t> places;
        std::vector<std::pair<int32_t, Value>> fixed;  // the registers of the others, which stay as they are
        Known known;
    };

    const Heads& heads_of(const vm::Code& code);
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
    std::vector<Loop> loops_;  // that run, the outermost first
    std::unordered_map<const vm::Code*, std::unique_ptr<const Heads>> heads_;
    const vm::Code* code_ = nullptr;  // of the last instruction, and its heads if there are any
    const Heads* here_ = nullptr;
    size_t position_ = 0;  // before the last instruction that decides
    std::vector<uint32_t> deciding_;
    size_t deciding_frames_ = 0;
};

}  // namespace lunaria::trace
