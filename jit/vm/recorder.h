// Whoever watches the virtual machine: it is asked before each instruction and each call, and runs the operators.
#pragma once

#include <span>
#include <utility>

#include "core/consume.h"
#include "jit/vm/values.h"

namespace lunaria::vm {

class Machine;
struct Instr;
struct Destination;

class Recorder {
  public:
    virtual ~Recorder() = default;

    // Whether it still writes down what happens; otherwise everything is real.
    virtual bool records() const = 0;
    // Before an instruction: true when it has been carried out.
    virtual bool step(Machine& m, const Instr& i) = 0;
    // A call of f: true when its results have been given to `to`. Otherwise the arguments may have been replaced.
    virtual bool call(Machine& m, const Value& f, std::span<const Value> contexts, Values& args,
                      const Destination& to) = 0;
    virtual Value run(const Op& op, std::span<const Value> args) = 0;
    // The element of a tensor that has one.
    virtual Value number_of(const Value& tensor) = 0;
    // A tensor that was made of plain values alone.
    virtual void made(const Value& tensor) = 0;
    // The value itself, on which what runs relies from here on: a number, the type of a tensor.
    virtual Value settled(const Value& v) { return v; }
    // The operands of arithmetic in differentiated code, as it can follow them.
    virtual void settle_operands(const Op&, Values&) {}
    // The number or text for which v stands, which may be another one the next time; null: v is a value itself.
    virtual const Value* open(const Value&) const { return nullptr; }
    // An operation on numbers, some of which may be open; then so is the result.
    virtual Value compute(const Op&, std::span<const Value>) { return {}; }
    // An open number as a tensor.
    virtual Value tensor_of(const Value&, DType, const Shape&) { return {}; }
    // Throws again what is on its way past the program that runs.
    virtual void pass_on() {}
};

// Of this thread; null: nobody watches.
inline Recorder*& recorder() {
    thread_local Recorder* current = nullptr;
    return current;
}

// While it lives, r watches what this thread runs (null: nobody does), then who did before.
class Watch {
  public:
    explicit Watch(Recorder* r) : before_(std::exchange(recorder(), r)) {}
    ~Watch() { recorder() = before_; }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

  private:
    Recorder* before_;
};

// What v is at present. Nothing but its kind may be relied upon where it stands for a number that may change; marks are
// those of v itself.
inline const Value& shown(const Value& v) {
    if (v.kind() != Value::Kind::object) return v;
    const Recorder* r = recorder();
    const Value* open = r ? r->open(v) : nullptr;
    return open ? *open : v;
}
inline bool is_open(const Value& v) { return &shown(v) != &v; }

// Runs an operator for the machine.
inline Value execute(const Op& op, std::span<const Value> args) {
    if (Recorder* r = recorder()) [[unlikely]]
        return r->run(op, args);
    return run(op, args);
}

// The same with arguments that nobody needs afterwards.
inline Value execute_consuming(const Op& op, std::span<Value> args) {
    if (Recorder* r = recorder()) [[unlikely]]
        return r->run(op, args);
    return run_consuming(op, args);
}

}  // namespace lunaria::vm
