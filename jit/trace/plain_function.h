// A function of a plain host, run from its records: a program that is a graph of the IR is recorded, compiled and run
// without an interpreter.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "jit/trace/compiled.h"
#include "jit/vm/plain_host.h"

namespace lunaria::trace {

class PlainFunction {
  public:
    PlainFunction(vm::PlainHost& host, Value function) : host_(host), function_(std::move(function)) {}

    // The results of a call; raises the call's error.
    vm::Values call(std::span<const Value> args);
    Compiled& compiled() { return compiled_; }

    // The objects and keys that the records' guards refer to; each has a place of its own, from 1 on.
    struct Kept {
        int place_of(const Value& v);
        const Value& at(int place) const { return values[static_cast<size_t>(place) - 1]; }

        std::vector<Value> values;
        std::unordered_map<Value, int, vm::KeyHash, vm::KeyEqual> places;
        CapturedNumbers captured;
    };

  private:
    vm::PlainHost& host_;
    Value function_;
    Compiled compiled_;
    Kept kept_;
};

}  // namespace lunaria::trace
