// A debugger's view of the machine: its frames, their places in the program, and the variables there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "jit/vm/machine.h"

namespace lunaria::vm {

struct FrameVariable {
    std::string name;
    bool outer = false;      // of an enclosing function
    Value* place = nullptr;  // in the frame's registers; null for a value that was known before the program ran
    Value value;             // of a shared variable: its Cell
};

// Valid until the machine goes on.
struct FrameView {
    std::string function;
    std::shared_ptr<const std::string> chunk;  // shared by the nodes of the graph; null: nowhere in the user's text
    int line = 0;
    int first_line = 0;     // of the function
    bool waits = false;     // not a function of its own: the place where run() was entered
    bool backward = false;  // takes cotangents back
    bool complete = false;  // all variables are there: the program has stop points
    std::vector<FrameVariable> variables;
};

}  // namespace lunaria::vm
