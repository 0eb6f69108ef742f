// A text of the IR (core/ir/printer.h has its form) as a function that runs.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/device.h"
#include "core/ir/parser.h"
#include "jit/vm/machine.h"
#include "jit/vm/plain_host.h"

namespace lunaria::testing {

// Tests whose operators run on the CPU.
class CpuTest : public ::testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }
};

class TextProgram {
  public:
    // The first graph of the text is the function. Throws what the parser and the verifier throw.
    explicit TextProgram(std::string_view text);
    ~TextProgram();
    TextProgram(const TextProgram&) = delete;

    std::vector<Value> run(std::span<const Value> args);
    std::vector<Value> run(std::initializer_list<Value> args) { return run(std::span(args.begin(), args.size())); }
    // The first result and its derivative by the argument at `position`.
    std::pair<Value, Value> gradient(std::initializer_list<Value> args, int64_t position = 0);
    // The derivative of that derivative by the same argument.
    Value second_derivative(std::initializer_list<Value> args, int64_t position = 0);
    // The message of the error that it raises, with its place; "no error".
    std::string error(std::initializer_list<Value> args);

    const ir::Graph& graph() const { return *parsed_.graph; }
    Value function() const;
    vm::PlainHost& host() { return host_; }

  private:
    ir::ParsedGraph parsed_;
    vm::PlainHost host_;
    vm::Machine machine_{host_};
};

// The names of the primitives in functions of all programs of this process that ran, their derivatives and records.
std::set<std::string>& primitives_that_ran();
// Adds those of a function of the machine and of the functions that it makes.
void note_primitives(const ir::Graph& function);

// A function of the machine as a value: vm::prelude(vm::Prelude::pcall) and its like.
Value function_value(const vm::OperatorFunction& f);

}  // namespace lunaria::testing
