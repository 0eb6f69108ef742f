// A text of the IR as a function whose calls are recorded and run from their records, beside the same function run by
// the machine alone.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "jit/trace/plain_function.h"
#include "tests/jit/vm/text_program.h"

namespace lunaria::testing {

class RecordedProgram {
  public:
    explicit RecordedProgram(std::string_view text) : program_(text), recorded_(program_.host(), program_.function()) {}
    ~RecordedProgram();

    std::vector<Value> call(std::initializer_list<Value> args) {
        return recorded_.call({args.begin(), args.size()}).vector();
    }
    // The same by the machine, without records.
    std::vector<Value> eager(std::initializer_list<Value> args) { return program_.run(args); }
    // A call whose results must be those of the machine, element by element the same bits.
    void check(std::initializer_list<Value> args, int line);
    // The message of the error that a call raises; "no error".
    std::string error(std::initializer_list<Value> args);

    // Of all calls so far.
    int64_t recordings() { return recorded_.compiled().recorded; }
    int64_t runs() { return recorded_.compiled().runs; }
    size_t branches() { return recorded_.compiled().tree.branches; }
    const std::string& refusal() { return recorded_.compiled().refusal; }
    // Steps of one kind in all branches.
    int steps(trace::Step::Kind kind);
    // Compiled graphs of all regions, and the groups of guards.
    int graphs();
    size_t guard_groups();
    // The record as text, once it is verified.
    std::string text();

    trace::Compiled& compiled() { return recorded_.compiled(); }
    vm::PlainHost& host() { return program_.host(); }
    TextProgram& program() { return program_; }

  private:
    TextProgram program_;
    trace::PlainFunction recorded_;
};

// Whether two values are the same, tensors by the bits of their elements.
bool has_same_bits(const Value& a, const Value& b);

// A tensor of these numbers, of f32; `shape`: its sizes, where it is no vector.
Value floats(std::vector<double> values, Shape shape = {});

}  // namespace lunaria::testing
