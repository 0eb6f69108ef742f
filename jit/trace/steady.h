// Answers that hold for a whole loop of calls between which nothing else runs: a step of a trace need not look up again
// what it found in the first round, unless the trace itself writes there.
#pragma once

#include <unordered_map>

#include "jit/trace/guards.h"
#include "jit/trace/trace.h"

namespace lunaria::trace {

class Steady {
  public:
    struct Answer {
        bool keeps = false, known = false;
        Value value, handle;  // for answers that are not constants
    };

    // Begins anew, for a tree that has changed.
    void prepare(const Tree& tree);
    bool is_of(const Tree& tree) const { return tree.settled == settled_; }
    // Whether these guards held once, which the caller notes, and nothing can have changed that. Null: it is unknown.
    bool* known_to_hold(const Guards& guards) {
        const auto found = held_.find(&guards);
        return found == held_.end() ? nullptr : &found->second;
    }
    // The place of the step's answer; null: the step must ask each time.
    Answer* find(const Block& block, size_t step) {
        if (&block != block_) {
            auto found = answers_.find(&block);
            if (found == answers_.end()) return nullptr;
            block_ = &block;
            here_ = found->second.data();
        }
        Answer& answer = here_[step];
        return answer.keeps ? &answer : nullptr;
    }

  private:
    void add(const Guards& guards, const std::vector<Answer>& answers, const std::vector<size_t>& steps);

    uint64_t settled_ = 0;
    std::unordered_map<const Guards*, bool> held_;
    std::unordered_map<const Block*, std::vector<Answer>> answers_;
    const Block* block_ = nullptr;
    Answer* here_ = nullptr;
};

}  // namespace lunaria::trace
