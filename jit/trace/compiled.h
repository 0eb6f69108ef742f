// A function whose calls are run from their records: the first call is recorded, later calls run the record, and one
// that finds something new goes on being recorded from there. What is not worth it, or cannot be recorded, is left to
// the outside, which then runs the function as it would without records.
#pragma once

#include <string>
#include <vector>

#include "jit/trace/outside.h"
#include "jit/trace/progress.h"

namespace lunaria::trace {

struct Compiled {
    // Runs the call as far as it is known and records the rest; raises what the call raises. False: the outside has to
    // do the call.
    bool attempt(Outside& outside, vm::Values& results);
    // Whether calls wait until it is worth while to record again.
    bool waits() const { return (tree.steps == 0 || stopped_late) && calls < retry_at; }
    // Whether so many branches were taken out of the records that they should begin anew, since what is kept for those
    // branches stays: not at the end of a call, whose results may be among it.
    bool is_crowded() const { return tree.forgotten > kMostForgotten; }
    void start_over();

    static constexpr int64_t kFirstWait = 4;
    static constexpr size_t kMostForgotten = 4096;

    Tree tree;
    Limits limits;
    std::string eager;    // why it is left to the outside for good; empty while it is not
    std::string refusal;  // why the last recording was stopped; empty while none was
    // Until so many calls the outside does what is not compiled yet; after each refusal the wait is twice as long.
    int64_t refused_at = -1, retry_at = 0, wait = kFirstWait;
    bool stopped_late = false;  // recordings are stopped behind an effect: until retry_at the outside does all calls
    int64_t runs_before = -1;   // compiled calls when the last recording was stopped
    bool flat = false;          // operators run one by one
    bool unasked = false;       // it is compiled because it is called often
    bool full = false;          // being left to the outside is an error
    std::string label;          // what the user knows it by; empty: the function's own name and line
    int64_t calls = 0, runs = 0, interpreted = 0, resumed = 0, fruitless = 0, recorded = 0;
    struct Recording {
        std::string surprise, failure;
        double seconds = 0;
        size_t steps = 0;
    };
    std::vector<Recording> recordings;
    Progress progress;  // of the call that runs; its memory is kept for the next

  private:
    // What a recording has come to.
    struct Recorded {
        bool ok = false;       // the call is done
        bool restart = false;  // it is to be begun anew by the outside
        Value error;
    };
    Recorded record(Outside& outside, vm::Values& results);
    bool may_record() const;
    void refuse(std::string why);
    void refuse_recorded(std::string why);
    // What the outside does at every call, in words; empty where all of the function is in its graphs.
    std::string outside_graph(Outside& outside);
    void tell(Outside& outside, const Value& function, bool asked_before, bool stopped) const;
};

}  // namespace lunaria::trace
