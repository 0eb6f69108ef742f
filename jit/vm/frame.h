// The machine's record of a function that runs.
#pragma once

#include <memory>

#include "jit/vm/code.h"

namespace lunaria::vm {

// The destination of results: registers of the waiting frame.
struct Destination {
    int32_t out = -1;
    int32_t results = -1;  // see Instr
    int32_t r_out = -1;
    int32_t order = 0;
    bool pack = false;     // several results are one value, a list
    bool base = false;     // the caller of run() waits
    bool returns = false;  // they are the results of the running function ...
    bool stays = false;    // ... which stays on the stack meanwhile
    bool ends = false;     // they are the last results of a coroutine
};

struct Frame {
    const Code* code;
    uint32_t pc;
    Value* registers;
    size_t chunk, used;  // position in the register stack to return to
    Destination to;
    Value callee;
    std::shared_ptr<const void> owner;  // null: the callee is a closure and keeps it alive
    int depth;
    int line = 0;  // of the last stop point
};

// A variable to close when an error leaves the function.
struct Closing {
    size_t frame;  // number of frames
    Value value;
};

}  // namespace lunaria::vm
