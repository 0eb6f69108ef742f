// Watchers of the virtual machine: recording for graph mode, vmap, formulas of ms.op, export. A watcher stands between
// the machine and its host and sees the machine's requests; it is called before each instruction and each call, and it
// runs the operators. By default it has no effect.
#pragma once

#include <span>
#include <utility>

#include "core/run/consume.h"
#include "core/tensor/element.h"
#include "jit/vm/host.h"
#include "jit/vm/values.h"

namespace lunaria::vm {

class Machine;
struct Instr;
struct Destination;

class Watcher : public Host {
  public:
    // `inner`: the host of the program, or another watcher.
    explicit Watcher(Host& inner) : inner_(inner) {}

    // Whether it still records; otherwise all values are real.
    virtual bool records() const { return true; }
    // Whether it needs to see calls of operators and reverse rules only when the operators run.
    virtual bool only_runs() const { return false; }
    // Called before an instruction; true if it has carried the instruction out.
    virtual bool step(Machine&, const Instr&) { return false; }
    // Called before a call of f; true if the results have been given to `to`. Otherwise the arguments may have been
    // replaced.
    virtual bool before_call(Machine&, const Value& /*f*/, std::span<const Value> /*contexts*/, Values& /*args*/,
                             const Destination& /*to*/) {
        return false;
    }
    virtual Value run(const Op& op, std::span<const Value> args) { return lunaria::run(op, args); }
    // The only element of a tensor.
    virtual Value number_of(const Value& tensor) { return element(tensor.tensor(), 0); }
    // Called for a tensor made of plain values alone.
    virtual void made(const Value& /*tensor*/) {}
    // The value itself, which the run depends on from here on: a number, the type of a tensor.
    virtual Value settled(const Value& v) { return v; }
    // Converts the operands of arithmetic in differentiated code to a form that it can follow.
    virtual void settle_operands(const Op&, Values&) {}
    // The number or text of v, which may differ next time; null: v is a value itself.
    virtual const Value* open(const Value&) const { return nullptr; }
    // An operation on numbers, some of which may be open, as the result then is.
    virtual Value compute(const Op&, std::span<const Value>) { return {}; }
    // A symbolic number as a tensor.
    virtual Value tensor_of(const Value&, DType, const Shape&) { return {}; }
    // Throws an error again that passes the running program.
    virtual void pass_on() {}

    // Functions of the host.
    Callee resolve(const Value& f) override { return inner_.resolve(f); }
    Field find_field(const Value& o, const Value& k) override { return inner_.find_field(o, k); }
    Field find_new_field(const Value& o, const Value& k) override { return inner_.find_new_field(o, k); }
    Value metamethod(const Value& a, const Value& b, std::string_view event) override {
        return inner_.metamethod(a, b, event);
    }
    const Op* tensor_operator(const Op& primitive) override { return inner_.tensor_operator(primitive); }
    Value index(const Value& object, const Value& key) override { return inner_.index(object, key); }
    void set_index(const Value& object, const Value& key, const Value& value) override {
        inner_.set_index(object, key, value);
    }
    Values call(const Value& f, std::span<const Value> args) override { return inner_.call(f, args); }
    Value arithmetic(const Op& primitive, const Value& a, const Value& b) override {
        return inner_.arithmetic(primitive, a, b);
    }
    bool compare(const Op& primitive, const Value& a, const Value& b) override {
        return inner_.compare(primitive, a, b);
    }
    Value concat(const Value& a, const Value& b) override { return inner_.concat(a, b); }
    Value length(const Value& a) override { return inner_.length(a); }
    Value new_table(size_t array, size_t fields) override { return inner_.new_table(array, fields); }
    Value raw_get(const Value& t, const Value& k) override { return inner_.raw_get(t, k); }
    void raw_set(const Value& t, const Value& k, const Value& v) override { inner_.raw_set(t, k, v); }
    bool is_table(const Value& v) override { return inner_.is_table(v); }
    bool is_function(const Value& v) override { return inner_.is_function(v); }
    std::string describe(const Value& v) override { return inner_.describe(v); }
    bool is_harmless(const Value& f) override { return inner_.is_harmless(f); }
    bool gives_keys(const Value& f) override { return inner_.gives_keys(f); }
    Value stand_in(const Value& f) override { return inner_.stand_in(f); }
    bool holds_floats(const Value& table) override { return inner_.holds_floats(table); }
    Value resumed_by(const Value& f, std::span<const Value> args) override { return inner_.resumed_by(f, args); }
    bool reaches(const Value& coroutine, const Context& context,
                 const std::function<bool(const Value&)>& follows) override {
        return inner_.reaches(coroutine, context, follows);
    }
    std::string why_opaque(const Value& f) override { return inner_.why_opaque(f); }
    Bound bind(const Op& op, std::span<const Value> args) override { return inner_.bind(op, args); }
    Part part_of(const Value& t, const Value& k) override { return inner_.part_of(t, k); }
    bool is_part(const Value& text) override { return inner_.is_part(text); }
    Part put_part(const Value& tensor, const Value& key, const Value& value) override {
        return inner_.put_part(tensor, key, value);
    }
    void for_each_table(const Value& t, const std::function<void(const Value&)>& f) override {
        inner_.for_each_table(t, f);
    }
    Protected call_protected(const std::function<void()>& body) override { return inner_.call_protected(body); }
    void poll() override { inner_.poll(); }
    std::string outer_place(size_t level) override { return inner_.outer_place(level); }

  protected:
    Host& inner_;
};

// The watcher of this thread; null: there is none.
inline Watcher*& watcher() {
    thread_local Watcher* current = nullptr;
    return current;
}

// While it lives, w watches this thread (null: there is no watcher), afterwards the previous watcher again.
class Watch {
  public:
    explicit Watch(Watcher* r) : before_(std::exchange(watcher(), r)) {}
    ~Watch() { watcher() = before_; }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

  private:
    Watcher* before_;
};

// Whether operators and rules run without calls of a watcher.
inline bool calls_directly() {
    const Watcher* w = watcher();
    return !w || w->only_runs();
}

// The present value of v. If v stands for a number that may change, only its kind may be relied upon; marks are those
// of v itself.
inline const Value& shown(const Value& v) {
    if (v.kind() != Value::Kind::object) return v;
    const Watcher* w = watcher();
    const Value* open = w ? w->open(v) : nullptr;
    return open ? *open : v;
}
inline bool is_open(const Value& v) { return &shown(v) != &v; }

// Runs an operator for the machine.
inline Value execute(const Op& op, std::span<const Value> args) {
    if (Watcher* w = watcher()) [[unlikely]]
        return w->run(op, args);
    return run(op, args);
}

// The same with arguments that have no later use.
inline Value execute_consuming(const Op& op, std::span<Value> args) {
    if (Watcher* w = watcher()) [[unlikely]]
        return w->run(op, args);
    return run_consuming(op, args);
}

}  // namespace lunaria::vm
