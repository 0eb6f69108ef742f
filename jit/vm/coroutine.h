// Coroutines within the machine, in differentiated functions above all.
//
// The backward pass of a coroutine is a coroutine, too. The code between two yields is a part of the coroutine's
// function; the backpropagator of the whole, B, exists when the coroutine has ended (a suspended one is left in the
// middle, as by an error, which gives the backpropagator of the part that ran). Backwards, the last resumption comes
// first: its backpropagator starts B with the cotangents of the coroutine's results; the backpropagator of a yield in B
// yields the cotangents of the resumption's arguments, and gets those of the yielded values when the backpropagator of
// the previous resumption resumes B. All these are functions of the IR, so they have derivatives of their own.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "jit/vm/frame.h"
#include "jit/vm/object.h"

namespace lunaria::vm {

class Coroutine final : public Object {
  public:
    enum class Status : uint8_t { suspended, running, normal, dead };

    explicit Coroutine(Value f);

    // The state of the coroutine. Circles of objects go through a LocalCell (see cycles.h), so the state is in one.
    class State;
    State& state() const;
    void for_each_owned(const std::function<void(const Value&)>& f) const { f(cell_); }

    Status status = Status::suspended;
    bool wrapped = false;  // made by wrap: errors go on to the caller of the resumption
    bool begun = false;
    bool left = false;      // it was left before its end, and its backpropagators are those of the part that ran
    int64_t resumes = 0;    // so far
    int64_t expected = -1;  // in the backward pass of another: the number of times it will be resumed

  private:
    Value cell_;
};

class Coroutine::State final : public Object {
  public:
    ~State() override;
    void for_each_owned(const std::function<void(const Value&)>& f) const;

    Value function;             // until it begins
    Values contexts;            // of the differentiations in which it takes part
    Values backs;               // backpropagators of all that ran
    Values backward;            // for each of these, the coroutine that runs it
    Value error;                // the error that ended it
    Destination to;             // the place for the arguments of the next resumption
    std::vector<Frame> frames;  // while it is suspended; their registers one after the other:
    std::vector<Value> registers;
    std::vector<Closing> closing;  // frames counted from its first one
};

// The functions of Lua's library in the machine's form.
class NativeFunction final : public Object {
  public:
    enum class Kind : uint8_t {
        create,
        wrap,
        resume,  // as in Lua: catches errors
        yield,
        status,
        running,
        is_yieldable,
        close,
        go_on,    // resumes and lets errors pass; nil is no coroutine and gives nothing
        advance,  // co, k: resumes without values until resumption k of the other coroutine is next
    };
    NativeFunction(Kind kind, Value original) : kind(kind), original(std::move(original)) {}

    const Kind kind;
    const Value original;  // the host's own function, for the host's coroutines
};

class Machine;

// The coroutines that run in a machine. They share its stack, which does not hold the frames of suspended ones.
class Coroutines {
  public:
    explicit Coroutines(Machine& machine) : machine_(machine) {}

    // Calls one of the library's functions.
    void call(const NativeFunction& f, std::span<const Value> contexts, Values args, const Destination& to);
    // The coroutine that takes the cotangents of the results of resumption `k`, of backpropagators of `order`; nil:
    // there are none.
    Value backward(const Value& coroutine, int64_t k, int64_t order);
    // The innermost one has ended with results.
    void finish(Values results, std::span<Value> backs);
    // An error has left its first function; `backs` are the backpropagators of what ran, and become those of the
    // resumption.
    void fail(Value& error, Values& backs);
    // The innermost one has stopped running.
    void end(Coroutine::Status status);
    // Whether a coroutine runs whose frames are above so many.
    bool runs_above(size_t frames) const { return !running_.empty() && running_.back().base > frames; }

  private:
    struct Running {
        Value coroutine;
        size_t base, level;  // its first frame; the level of the machine's run() that it belongs to
        Destination to;      // the place for its results
    };
    Value answer(NativeFunction::Kind kind, const Coroutine* asked, bool any) const;
    void check_yield(std::span<const Value> contexts) const;
    void resume(const Value& coroutine, std::span<const Value> contexts, Values args, const Destination& to);
    void yield(std::span<const Value> contexts, Values args, const Destination& to);
    void suspend(Coroutine& coroutine, size_t base);
    void restore(Coroutine& coroutine);
    void leave(Coroutine& coroutine, bool closes, Value& error);
    void close(const Value& coroutine, std::span<const Value> contexts, const Destination& to);

    Machine& machine_;
    std::vector<Running> running_;  // the outermost first
};

}  // namespace lunaria::vm
