// The recorder runs a function in the virtual machine and records what it does: it is between the machine and its host,
// so that every question of the machine to its host passes through it.
#pragma once

#include "jit/trace/recording.h"

namespace lunaria::trace {

class Recorder final : public vm::Watcher {
  public:
    Recorder(Outside& outside, Tree& tree, Progress& progress, const Limits& limits)
        : Watcher(outside.host), r_(outside, tree, progress, limits, *this) {}
    ~Recorder() override { *self_ = nullptr; }

    // Records the call of f. Errors are raised. If the recording was stopped, the function is not one for the runner;
    // if moreover no effect has happened, the results are void and the outside has to begin the call anew.
    vm::Values record(const Value& f);
    Recording& recording() { return r_; }

    // The interface of the machine's watcher.
    bool records() const override { return r_.records(); }
    bool step(vm::Machine& m, const vm::Instr& i) override;
    bool before_call(vm::Machine& m, const Value& f, std::span<const Value> contexts, vm::Values& args,
                     const vm::Destination& to) override;
    Value run(const Op& op, std::span<const Value> args) override { return r_.run(op, args); }
    Value number_of(const Value& tensor) override;
    void made(const Value& tensor) override { r_.made(tensor); }
    Value settled(const Value& v) override;
    void settle_operands(const Op& primitive, vm::Values& operands) override {
        r_.numbers.settle_operands(primitive, operands);
    }
    const Value* open(const Value& v) const override {
        const SymbolicNumber* number = symbolic_number(v);
        return number ? &number->value : nullptr;
    }
    Value compute(const Op& primitive, std::span<const Value> operands) override {
        return r_.numbers.compute(primitive, operands);
    }
    Value tensor_of(const Value& number, DType dtype, const Shape& shape) override {
        return r_.numbers.tensor_of(number, dtype, shape);
    }
    void pass_on() override;

    // The interface of the machine's host.
    vm::Callee resolve(const Value& f) override;
    vm::Field find_field(const Value& object, const Value& key) override;
    vm::Field find_new_field(const Value& object, const Value& key) override;
    Value metamethod(const Value& a, const Value& b, std::string_view event) override;
    Value index(const Value& object, const Value& key) override;
    void set_index(const Value& object, const Value& key, const Value& value) override;
    vm::Values call(const Value& f, std::span<const Value> args) override;
    Value arithmetic(const Op& primitive, const Value& a, const Value& b) override;
    bool compare(const Op& primitive, const Value& a, const Value& b) override;
    Value concat(const Value& a, const Value& b) override;
    Value length(const Value& a) override;
    Value new_table(size_t array, size_t fields) override { return r_.tables.make(array, fields); }
    Value raw_get(const Value& table, const Value& key) override;
    void raw_set(const Value& table, const Value& key, const Value& value) override;
    Bound bind(const Op& op, std::span<const Value> args) override;
    Part part_of(const Value& tensor, const Value& key) override;
    void for_each_table(const Value& table, const std::function<void(const Value&)>& f) override;
    Part put_part(const Value& tensor, const Value& key, const Value& value) override;
    Protected call_protected(const std::function<void()>& body) override;
    [[noreturn]] void raise(const Value& error) override { r_.raise(error); }
    Value open_batch(vm::Host& around, int64_t size) override { return r_.host.open_batch(around, size); }
    std::string outer_place(size_t level) override;

  private:
    Value run_for(const Op* whole, const Op& op, std::span<const Value> args);
    // Whether a function passes on numbers that are differentiated without looking at them.
    bool takes_followed(Native which, const Value& f, const vm::Values& args);
    vm::Values unrecorded(std::span<const Value> args);

    Recording r_;
    std::shared_ptr<Recorder*> self_ = std::make_shared<Recorder*>(this);
};

}  // namespace lunaria::trace
