// A function whose calls run from their records: the first call is recorded, later calls run the record, and a call
// that finds something new is recorded from there on. A function that cannot be recorded, or does not pay, is left to
// the outside, which then runs it as it would without records.
#pragma once

#include <string>
#include <vector>

#include "jit/trace/outside.h"
#include "jit/trace/progress.h"
#include "jit/trace/runner.h"

namespace lunaria::trace {

struct Compiled {
    // Runs the call as far as the records go and records the rest; raises the call's error. False: the outside has to
    // run the call.
    bool attempt(Outside& outside, vm::Values& results);
    // Whether calls wait until recording again is likely to pay.
    bool waits() const { return (tree.steps == 0 || stopped_late || rests) && calls < retry_at; }
    // Whether so many branches were removed from the records that they should begin anew, since objects kept for those
    // branches stay. Not to be asked at the end of a call, whose results may be among these objects.
    bool is_crowded() const { return tree.forgotten > kMostForgotten; }
    void start_over();

    static constexpr int64_t kFirstWait = 4;
    static constexpr size_t kMostForgotten = 4096;

    Tree tree;
    Limits limits;
    std::string eager;    // the reason why it is left to the outside for good; empty while it is not
    std::string refusal;  // the reason why the last recording was stopped; empty if none was
    // Up to this number of calls the outside runs what is not compiled yet; after each refusal the wait is twice as
    // long.
    int64_t refused_at = -1, retry_at = 0, wait = kFirstWait;
    bool stopped_late = false;  // recordings stop after an effect: until retry_at the outside runs all calls
    int64_t runs_before = -1;   // number of compiled calls when the last recording was stopped
    Level level = Level::at_once;
    bool rests = false;    // recordings do not pay: until retry_at the outside runs all calls
    bool trial = false;    // calls are recorded only, and change nothing that outlives them
    bool unasked = false;  // it is compiled because it is called often, not because the user asked
    bool full = false;     // being left to the outside is an error
    std::string label;     // the name that the user gave it; empty: the function's own name and line
    int64_t calls = 0, runs = 0, interpreted = 0, resumed = 0, fruitless = 0, recorded = 0;
    struct Recording {
        std::string surprise, failure;
        double seconds = 0;
        size_t steps = 0;
    };
    std::vector<Recording> recordings;
    Progress progress;  // of the running call; its memory is kept for the next one

  private:
    // The outcome of a recording.
    struct Recorded {
        bool ok = false;       // the call is done
        bool restart = false;  // the outside has to begin the call anew
        bool stopped = false;  // the call cannot be recorded
        Value error;
    };
    Recorded record(Outside& outside, vm::Values& results);
    bool may_record() const;
    void refuse(std::string why);
    void refuse_recorded(std::string why);
    // The things that the outside does at every call, in words; empty where the whole function is in its graphs.
    std::string outside_graph(Outside& outside);
    void tell(Outside& outside, const Value& function, bool asked_before, bool stopped) const;
};

}  // namespace lunaria::trace
