// Which fields and variables a function writes to: what it also reads is likely a counter, and what is recorded for the
// value of one alone would be for nothing.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "jit/vm/machine.h"

namespace lunaria::trace {

class Counters {
  public:
    // Whether the function that runs writes to what its instruction reads: the field `key`, or a variable (nil).
    bool has(const vm::Machine& m, const vm::Instr* i, const Value& key);

  private:
    struct Writes {
        std::unordered_set<std::string> keys;
        std::unordered_set<int32_t> cells;  // registers of the variables
    };
    std::unordered_map<const vm::Code*, Writes> writes_;
};

}  // namespace lunaria::trace
