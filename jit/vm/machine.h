// The virtual machine: runs functions of the IR operator by operator, in the order of the source. Frames and registers
// are on its own stack, so that recursion is as deep as memory allows and loops need none.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/ir/text.h"
#include "jit/autodiff/pullback.h"
#include "jit/vm/code.h"
#include "jit/vm/coroutine.h"
#include "jit/vm/elementwise.h"
#include "jit/vm/host.h"
#include "jit/vm/object.h"
#include "jit/vm/prelude.h"
#include "jit/vm/write_log.h"

namespace lunaria::vm {

struct FrameView;
class Region;

class Machine {
  public:
    explicit Machine(Host& host) : host_(&host) {}
    Machine(const Machine&) = delete;

    // Calls a function value with arguments and returns all its results. Errors carry the line of the user's text.
    Values run(const Value& f, std::span<const Value> args);

    // The same `contexts.size()` times differentiated; the backpropagators go to `backs`.
    Values run(const Value& f, std::span<const Value> contexts, Values args, Values& backs);
    // The running place in the user's text; may be unknown.
    ir::Span span() const;
    std::string here() const { return ir::place_text(span()); }
    // The composite operator whose expansion runs, which errors name; or null.
    const Op* whole() const { return code_ && code_->function ? code_->function->whole : nullptr; }
    // The caller of a function of the host; empty if that is pcall or a similar function, not the program.
    std::string caller() const;
    // The running node; may be null.
    const ir::Node* node() const { return frames_.empty() || pc_ == 0 ? nullptr : code_->instrs[pc_ - 1].node; }
    // Whether that call has the form object:name().
    bool calls_method() const;

    Host& host() const { return *host_; }

    // For handlers of instructions.
    const Value& get(const Slot& slot) const {
        return slot.at >= 0 ? registers_[slot.at] : code_->constants[static_cast<size_t>(~slot.at)];
    }
    // The value, moved out if this is its last use.
    Value take(const Slot& slot) {
        if (slot.last) return std::move(registers_[slot.at]);
        return get(slot);
    }
    const Slot& slot(const Instr& i, size_t k) const { return code_->slots[i.slots + k]; }
    std::span<const Slot> items(const Slot& list) const {
        return {code_->slots.data() + list.at, static_cast<size_t>(list.items)};
    }
    const Value& operand(const Instr& i, size_t k) const { return get(slot(i, k)); }
    // An operand of any form as a value; lists are built.
    Value value(const Slot& slot);
    // The values of a list operand, laid out or not.
    Values values(const Slot& slot);
    // Drops the value of a register.
    static void clear(Value& v) {
        v.~Value();
        new (&v) Value();
    }
    // Moves a value to a place that holds nil or plain data.
    static void move_over(Value& place, Value& from) { new (&place) Value(std::move(from)); }
    void set(const Instr& i, Value v) {
        if (i.out >= 0) registers_[i.out] = std::move(v);
    }
    Value& reg(int32_t r) { return registers_[r]; }
    // Passes on the results and backpropagators of an instruction that made no call.
    void give(const Destination& to, Values results, std::span<Value> backs);
    // One result and the innermost backpropagator.
    void give_one(const Destination& to, Value result, Value back);
    static Destination destination(const Instr& i) {
        return {i.out, i.results, i.r_out, i.order, false, false, i.tail};
    }

    // Continues in the function with the arguments; its results go to `to`. `callee` keeps the function alive; if the
    // order is not 0, contexts (outermost first) and the callee itself are passed.
    void enter(Function& function, Value callee, std::span<const Value> contexts, Values captures, Values args,
               const Destination& to, std::shared_ptr<const void> owner = {});
    // The same for a function without captures, `contexts.size()` times differentiated.
    void enter(const OperatorFunction& function, std::span<const Value> contexts, Values args, const Destination& to);
    // Calls any value f, `contexts.size()` times differentiated.
    void call(const Value& f, std::span<const Value> contexts, Values args, const Destination& to);
    // Calls an operator of which arguments were overwritten: see has_box().
    void call_of_contents(const Value& f, std::span<const Value> contexts, Values args, const Destination& to);
    // Calls a function that only the host can run.
    void call_host(const Value& f, std::span<const Value> contexts, Values args, const Destination& to);
    // Calls an operator with complete arguments in the order of its signature.
    void call_operator(const Op& op, std::span<const Value> contexts, Values args, const Destination& to);
    // The same for an operator with its own rule, differentiated at most once.
    void apply_operator(const Op& op, std::span<const Value> contexts, std::span<const Value> args,
                        const Destination& to);
    // The same with arguments in the form of the call: by name in a table, lists in tables.
    void call_bound(const Op& op, std::span<const Value> contexts, Values args, const Destination& to);
    // The same for a whole batch, if one runs and the arguments belong to it; false: they do not. See region.h.
    bool call_batched(const Op& op, std::span<const Value> contexts, Values& args, const Destination& to);
    // The running batch; null: there is none.
    Region* region() const { return region_; }
    // The contexts of an ordered instruction; several of them are stored in `kept`.
    std::span<const Value> contexts_of(const Instr& i, Values& kept) {
        const Slot& list = slot(i, 0);
        if (list.items == 1) return {&get(items(list)[0]), 1};
        kept = values(list);
        return kept;
    }
    // The instruction `pull` of an operator's rule, without a frame; false: it is something else.
    bool pull_rule(const Instr& i);
    // Elementwise operators on dense tensors, and overwritten contents.
    ElementwiseCalls& elementwise() { return elementwise_; }
    WriteLog& writes() { return writes_; }
    // Calls a backpropagator; nil returns nil.
    void pull(Value r, std::span<const Value> contexts, Values cotangents, const Destination& to);
    bool is_running() const { return !frames_.empty(); }
    void go_to(uint32_t block) { pc_ = code_->blocks[block].start; }
    const Code& code() const { return *code_; }
    const Value& callee() const { return frames_.back().callee; }
    // Whether one of the values is a tensor that was overwritten during one of the differentiations: operators are then
    // computed from its content, see contents_function().
    static bool has_box(std::span<const Value> contexts, std::span<const Value> values);
    // The owner of the running function's graph.
    const std::shared_ptr<const void>& owner() const {
        const Frame& frame = frames_.back();
        return frame.owner ? frame.owner : static_cast<Closure*>(frame.callee.object())->owner;
    }
    // Holds arguments during a jump to another block; empty otherwise.
    std::vector<Value>& moving() { return moving_; }
    void return_values(Values results, std::span<Value> backs);
    // The captures of the closure, moved out if there is no other reference to it.
    static Values captures_of(Value& closure);

    int depth = 0;  // the number of differentiations in their forward part
    // Whether a function that only the host can run has called the machine back.
    bool called_back = false;

    // Errors; see unwind.cpp. From here on the frames above the running run() may catch them or have variables to
    // close.
    void guarded();
    // An error of the user's program, with any value.
    [[noreturn]] void raise(const Value& value);
    // The error during which variables are closed.
    const Value& caught() const { return caught_; }
    // The variables to close in the running frame, the last one first.
    void push_closing(Value value);
    Value pop_closing();
    const Value& last_closing() const { return closing_.back().value; }
    // "file:line" of the call `level` functions further out than the running one; may be empty.
    std::string place(size_t level) const;
    // The same within the user's program: Lunaria's own functions count as functions written in C.
    std::string user_place(size_t level) const;

    Coroutines& coroutines() { return coroutines_; }

    // For debuggers: see jit/vm/inspect.h.
    size_t frame_count() const { return frames_.size(); }
    FrameView frame_view(size_t index);
    // The identity of the running function, in the innermost frame and in any.
    const void* running() const { return code_->graph; }
    const void* function_of_frame(size_t index) const { return frames_[index].code->graph; }
    // Whether a line begins at the stop point, rather than the current one continuing.
    bool begins_line(int line) { return std::exchange(frames_.back().line, line) != line; }

  private:
    friend class RegionScope;
    friend class Coroutines;
    Host* host_;
    Region* region_ = nullptr;
    // A function of operators in the form that the running batch needs for differentiation.
    Function& for_batch(Function& function) const;
    void loop(size_t base);
    void nested(size_t level);
    bool unwind(size_t level, Value& error);
    void take_exit(size_t count, const Value& error, const Values& backs);
    bool run_rest(Value& error, Values& backs);
    void leave_by(std::shared_ptr<const Exit> exit, Value error, Values backs);
    Coroutines coroutines_{*this};
    size_t pending() const;
    void push(const Code& code, Value callee, std::shared_ptr<const void> owner, const Destination& to);
    void pop();
    Value* reserve(size_t count);
    void load_frame();
    void call_operator_by(const Op& op, bool complete, std::span<const Value> contexts, Values args,
                          const Destination& to);

    std::vector<Frame> frames_;
    std::vector<std::unique_ptr<Value[]>> chunks_;
    std::vector<size_t> chunk_sizes_;
    size_t chunk_ = 0, used_ = 0;
    // Of the running frame.
    const Code* code_ = nullptr;
    uint32_t pc_ = 0;
    Value* registers_ = nullptr;
    struct Final {
        Values results, backs;
    };
    std::vector<Final> final_;  // those of running run() calls
    std::vector<Closing> closing_;
    void run_rule(const Instr& i, Closure& closure, std::span<const Value> given);
    WriteLog writes_;
    size_t level_ = 0, guarded_ = ~size_t{0};
    Value raised_, caught_;
    uint32_t ticks_ = 0;
    ElementwiseCalls elementwise_;
    std::vector<Value> moving_;

  public:
    void tick() {
        if ((++ticks_ & 255) == 0) host().poll();
    }
};

// The graph of an operator as a function of its complete arguments; lists of tensors are split into items, composites
// are expanded. Kept for calls of the same form.
OperatorFunction operator_function(const Op& op, std::span<const Value> args);
// A function of all arguments of an operator, from a graph over those that have parameters in it (see
// autodiff::expansion).
OperatorFunction over_arguments(const Op& op, std::span<const Value> args, std::shared_ptr<const ir::Graph> graph);
// The expansion of an operator, over its complete arguments.
OperatorFunction expansion_function(const Op& op, std::span<const Value> args);
// args..., context -> the operator's results, its reverse rule: the derivative of an operator as a function that can be
// differentiated further.
OperatorFunction followed_operator(const Op& op, std::span<const Value> args, size_t results);
// The function with calls in place of operators, which are resolved when they run. `graph` is straight-line code.
std::unique_ptr<ir::Graph> with_calls(const ir::Graph& graph);
// Decides upon the numbers that a recording leaves open; returns whether there were any.
bool settle_numbers(Values& args);
// The closure that carries cotangents of the call's results to its arguments; nil if none is followed.
Value make_pullback(const Op& op, std::span<const Value> args, const Value& result, uint16_t mark);
// The rule of a call; the bits of `active` mark the followed operands.
struct Rule {
    std::shared_ptr<const autodiff::Pullback> pullback;
    Function* function = nullptr;
};
Rule rule_of(const Op& op, std::span<const Value> args, const Value& result, uint64_t active);
// A tensor all of whose elements are that number.
Value full(const Value& number, DType dtype, const Shape& shape);
// A cotangent of this type: zeros in place of nil, a tensor in place of a number.
Value full_cotangent(const ir::NodeType& type, Value d);
// Lua's arithmetic on plain numbers as a function of typed primitives.
OperatorFunction number_function(const Op& primitive);
// An operator as a value that can be called, with arguments in the order of the signature.
Value operator_value(const Op& op);
const Op* operator_of(const Value& v);
// The marks of all contexts together.
uint16_t followed_by(std::span<const Value> contexts);
// The marks of the values in an argument.
uint16_t marks_of(const Value& v);
bool is_differentiable(const Op& op);
// Runs an operation of Lua other than arithmetic; differentiated if a function of the program defines it.
void operate(Machine& m, const Op& primitive, std::span<const Value> contexts, Values operands, const Destination& to);
// Throws if a number that depends on followed values is an attribute without a derivative.
void refuse_attributes(const Op& op, std::span<const Value> args, uint16_t followed);
// Throws if one of the operands is a string that depends on followed values.
void refuse_followed_text(std::span<const Value> contexts, const Values& operands);
// Marks a result with the marks of its operands, if it can have a derivative.
void inherit_marks(const Op& op, Value& result, uint16_t marks);

// captured: f; args... (so many) -> f(args...), with the present content of tensors.
const OperatorFunction& contents_function(size_t count);
// args... -> the results of the machine's own function of that kind.
OperatorFunction native_function(NativeFunction::Kind kind, Value original);

}  // namespace lunaria::vm
