// Answers that hold for a whole loop of calls between which nothing else runs: what a step of a trace looked up in the
// first round it need not look up again, unless the trace itself writes there.
#pragma once

#include <unordered_map>

#include "interpreter/jit/trace.h"

namespace lunaria::jit {

class Steady {
  public:
    struct Answer {
        bool keeps = false, known = false;
        Value value, handle;  // of what is no constant
    };

    // Begins anew, for a tree that has changed.
    void prepare(const Tree& tree);
    // Where the step's answer is kept; null: it is to be asked for each time.
    Answer* find(const Block& block, const Step& step) {
        if (&block != block_) {
            auto found = answers_.find(&block);
            if (found == answers_.end()) return nullptr;
            block_ = &block;
            here_ = found->second.data();
        }
        Answer& answer = here_[&step - block.steps.data()];
        return answer.keeps ? &answer : nullptr;
    }

  private:
    std::unordered_map<const Block*, std::vector<Answer>> answers_;
    const Block* block_ = nullptr;
    Answer* here_ = nullptr;
};

}  // namespace lunaria::jit
