// Runs a function in the virtual machine and writes down what it does: events, see trace.h. It stands between the
// machine and Lua: whatever the machine asks of its host comes by here.
//
// A call whose first steps were carried out by the runner is taken up by doing it all again: up to where it stopped,
// the recorder answers with what is known of those steps (placeholders of their type stand for tensors that are not
// needed any more), from there on everything is real, and recorded as another branch of the tree.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "core/memory/memory.h"
#include "interpreter/jit/counters.h"
#include "interpreter/jit/loops.h"
#include "interpreter/jit/natives.h"
#include "interpreter/jit/own_tables.h"
#include "interpreter/jit/questions.h"
#include "interpreter/jit/runner.h"
#include "interpreter/jit/symbolic_numbers.h"
#include "jit/vm/watcher.h"

namespace lunaria::jit {

// The value as an operand, without marks.
Value constant_operand(Value v);

// No watcher is told of what is done while one of these lives.
class Unwatched {
  public:
    Unwatched() : before_(std::exchange(vm::watcher(), nullptr)) {}
    ~Unwatched() { vm::watcher() = before_; }
    Unwatched(const Unwatched&) = delete;
    Unwatched& operator=(const Unwatched&) = delete;

  private:
    vm::Watcher* before_;
};

class Recorder final : public vm::Watcher {
  public:
    Recorder(LuaHost& host, const Natives& natives, const Call& call, Tree& tree, Progress& progress,
             const Limits& limits);

    // Records the call of f. Errors are raised. With stopped(), the function is not one for the runner; if then no
    // effect happened, the results are void and the call has to be begun anew in Lua.
    vm::Values record(const Value& f);
    ~Recorder() override;
    const std::string& stopped() const { return stopped_; }
    // What stopped it says nothing of the function.
    bool interrupted() const { return interrupted_; }
    bool can_restart() const { return effects_ == 0 && !progress_.effects; }
    bool restart() const { return restart_; }
    // Why a branch was added: the event that gave something new; empty if none was.
    const std::string& surprise() const { return surprise_; }
    // Where it began a new way on; null: it did not.
    Block* parted() const { return growth_.way ? growth_.block : nullptr; }
    // Whether it wrote down anything that was not known.
    bool grew() const { return growth_.block != nullptr; }
    // Takes out what was written: a recording that was stopped leads nowhere.
    void withdraw() { growth_.withdraw(); }

    // Of the machine's watcher.
    bool records() const override { return stopped_.empty(); }
    bool step(vm::Machine& m, const vm::Instr& i) override;
    bool before_call(vm::Machine& m, const Value& f, std::span<const Value> contexts, vm::Values& args,
                     const vm::Destination& to) override;
    Value run(const Op& op, std::span<const Value> args) override;
    Value number_of(const Value& tensor) override;
    void made(const Value& tensor) override;
    Value settled(const Value& v) override;
    void settle_operands(const Op& primitive, vm::Values& operands) override {
        numbers_.settle_operands(primitive, operands);
    }
    const Value* open(const Value& v) const override {
        const SymbolicNumber* number = symbolic_number(v);
        return number ? &number->value : nullptr;
    }
    Value compute(const Op& primitive, std::span<const Value> operands) override {
        return numbers_.compute(primitive, operands);
    }
    Value tensor_of(const Value& number, DType dtype, const Shape& shape) override {
        return numbers_.tensor_of(number, dtype, shape);
    }
    void pass_on() override;

    // Of its host.
    vm::Callee resolve(const Value& f) override;
    vm::Field find_field(const Value& object, const Value& key) override;
    vm::Field find_new_field(const Value& object, const Value& key) override;
    Value metamethod(const Value& a, const Value& b, std::string_view event) override;
    Value index(const Value& object, const Value& key) override;
    void set_index(const Value& object, const Value& key, const Value& value) override;
    vm::Values call(const Value& f, std::span<const Value> args) override;
    Value arithmetic(std::string_view primitive, const Value& a, const Value& b) override;
    bool compare(std::string_view primitive, const Value& a, const Value& b) override;
    Value concat(const Value& a, const Value& b) override;
    Value length(const Value& a) override;
    Value new_table(size_t array, size_t fields) override { return tables_.make(array, fields); }
    Value raw_get(const Value& table, const Value& key) override;
    void raw_set(const Value& table, const Value& key, const Value& value) override;
    Bound bind(const Op& op, std::span<const Value> args) override;
    Part part_of(const Value& tensor, const Value& key) override;
    void for_each_table(const Value& table, const std::function<void(const Value&)>& f) override;
    Part put_part(const Value& tensor, const Value& key, const Value& value) override;
    Protected call_protected(const std::function<void()>& body) override;
    [[noreturn]] void raise(const Value& error) override {
        exact_ = true;
        host_.raise(outward(error));
    }
    Value open_batch(vm::Host& around, int64_t size) override { return host_.open_batch(around, size); }
    std::string outer_place(size_t level) override;

  private:
    friend class Loops;
    friend class LibraryCalls;
    friend class SymbolicNumbers;
    friend class SymbolicSizes;
    friend class OwnTables;
    friend class Questions;
    friend class Sizes;
    friend Value open_shape(Recorder& recorder, const Value& tensor);
    friend Value size_of(Recorder& recorder, const Value& tensor, int axis);
    friend class WatchedUpvalue;

    // The step's results: known already, or what `body` gives; written down.
    vm::Values event(Step&& step, const std::function<void(vm::Values&)>& body);
    vm::Values repeat(Step& s, const std::function<void(vm::Values&)>& body);
    vm::Values take_observed(Step& s);
    Value ask(Step step, const std::function<void(lua_State*)>& push);
    Value run_for(const Op* whole, const Op& op, std::span<const Value> args);
    void write(Step step, vm::Values& results);
    bool attempt(const ir::Span& span, const std::function<void(vm::Values&)>& body, vm::Values& results);
    std::vector<Expected> expect(const Step& s, const vm::Values& results, const std::vector<const Step*>& others);
    Expected expect_known(const Step& s, const Value& v, int32_t slot) const;
    Expected expect_tensor(const Step& s, const Value& v, size_t k, const std::vector<const Step*>& others) const;
    void know(const Step& step, vm::Values& results);
    uint32_t version_at(int32_t slot) const;
    void count_writes(const Step& step);
    // What would otherwise be recorded cannot be: the call goes on unrecorded, or is begun anew in Lua.
    void stop(std::string why);
    void sweep();
    // Once it is stopped, what was kept for the records is of no use any more, and the call may go on for long.
    void forget();

    bool is_in_code(const Value& tensor) const;
    Value operand(const Value& v);  // of a value that stays inside
    std::vector<Value> operands(std::span<const Value> values);
    Value given(const Value& v);  // of a value that an effect gives away
    // Once recording has stopped, what is made has no slot (-1) and no node.
    Value node_at(int32_t slot) const { return slot < 0 ? Value() : Value(nodes_[static_cast<size_t>(slot)]); }
    Value plain(const Value& v);    // without symbolic numbers: for an effect that is carried out now
    Value outward(const Value& v);  // the same with the handles that tensors came with
    // A key of a table, which as a tensor is the handle that it came with; a function that is one stays inside.
    Value outside(const Value& key) { return key.is_tensor() ? outward(key) : key; }
    Value decided(const Value& v);  // the number itself, upon which the trace now depends

    void note_function(const Value& f);
    bool is_counter(const Value& key) { return counters_.has(machine_, instr_, key); }
    bool is_plain(const Value& v) const;
    // Whether a function takes numbers that are differentiated without looking at them.
    bool takes_followed(Native which, const Value& f, const vm::Values& args);

    LuaHost& host_;
    const Natives& natives_;
    const Call& call_;
    Tree& tree_;
    Progress& progress_;
    const Limits& limits_;
    vm::Machine machine_;

    Block* block_;
    Growth growth_;
    size_t at_ = 0;        // in it
    size_t position_ = 0;  // steps from the root
    size_t path_ = 1;      // of the runner's path: the next block
    bool restart_ = false, open_ = false, interrupted_ = false;
    size_t effects_ = 0;                // so far
    int catching_ = 0;                  // calls around this one that meet errors
    const Op* replayed_ = nullptr;      // see run_for
    bool exact_ = false;                // the error on its way has the words and the line that Lua gives
    bool handles_errors_ = false;       // xpcall was called
    const vm::Instr* instr_ = nullptr;  // that runs
    std::string stopped_, surprise_;
    int32_t slots_ = 0;
    size_t operators_ = 0;  // since the last sweep
    size_t live_ = 0;       // see Limits
    uint64_t swept_at_ = thread_allocated_bytes();
    std::vector<Value> values_;                         // by slot; nil for those that cannot be used any more
    std::vector<ir::Node*> nodes_;                      // by slot
    std::vector<int32_t> alive_;                        // the slots of the others
    std::unordered_map<const void*, int32_t> slot_of_;  // tensors and tables by identity
    std::unordered_map<const void*, Value> constants_;  // tensors made of plain values
    std::unordered_set<const void*> functions_;         // of the machine, which came from outside
    std::unordered_set<const void*> foreign_;           // their variables
    std::shared_ptr<Recorder*> self_ = std::make_shared<Recorder*>(this);
    std::unordered_map<const void*, Value> handles_;  // of tensors that came from outside
    int weak_handles_ = LUA_NOREF;       // the same once it is stopped, for as long as the program has them
    std::vector<const void*> pointers_;  // of the event's results, where Lua has them on the stack
    Counters counters_;
    Loops loops_{*this};
    SymbolicNumbers numbers_{*this};
    OwnTables tables_{*this};
    Questions questions_{*this};
    Sizes sizes_{*this};
};

}  // namespace lunaria::jit
