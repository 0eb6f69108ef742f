// The fields and variables that a function writes to. One that it also reads is likely a counter, and a record for a
// single value of a counter would be of no use.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "jit/vm/machine.h"

namespace lunaria::trace {

class Counters {
  public:
    // Whether the running function writes to what its instruction reads: the field `key`, or a variable (nil).
    bool has(const vm::Machine& m, const vm::Instr* i, const Value& key);

  private:
    struct Writes {
        std::shared_ptr<const void> owner;  // of the code, so that no other code gets its place in memory
        std::unordered_set<std::string> keys;
        std::unordered_set<int32_t> cells;  // registers of the variables
    };
    std::unordered_map<const vm::Code*, Writes> writes_;
};

}  // namespace lunaria::trace
