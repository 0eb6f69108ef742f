// The loops of a record that a call is in, the outermost first, and the way back to the start of an iteration. Values
// bound by the last iteration are dropped, so that each iteration finds everything as the first one did.
#pragma once

#include "jit/trace/progress.h"

namespace lunaria::trace {

// The position of a call in its record.
struct Place {
    Block* block = nullptr;
    size_t at = 0;                 // step of the block
    size_t region = 0, group = 0;  // region and group: the next ones of the block
};

class Turns {
  public:
    Turns(Progress& progress, vm::Host& host) : progress_(progress), host_(host) {}

    // The step `loop` at the place is done.
    void begin(const Step& loop, const Place& place);
    // Takes the values with which another iteration would begin; false: they are not those of the loop.
    bool fits(const Step& again);
    // Begins that iteration.
    void go_back(const Step& again, Place& place);

  private:
    struct Loop {
        const Step* step;
        size_t at, path, done, sizes, bodies, tables;
    };
    const Step& loop_of(const Step& again);

    Progress& progress_;
    vm::Host& host_;
    std::vector<Loop> loops_;
    std::vector<Value> next_;
};

}  // namespace lunaria::trace
