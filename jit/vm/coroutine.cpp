#include "jit/vm/coroutine.h"

#include <algorithm>
#include <unordered_set>

#include "jit/vm/handlers.h"
#include "jit/vm/machine.h"
#include "jit/vm/recursion_limit.h"

namespace lunaria::vm {

namespace {

using Status = Coroutine::Status;
using State = Coroutine::State;

// The suspended coroutines of this thread that have frames.
std::unordered_set<const State*>& suspended() {
    thread_local std::unordered_set<const State*> instance;
    return instance;
}

std::string_view name_of(Status status) {
    static constexpr std::string_view kNames[] = {"suspended", "running", "normal", "dead"};
    return kNames[static_cast<size_t>(status)];
}

// A closure over a function of the machine.
Value closure_of(const OperatorFunction& function, Values captures) {
    return make_object<Closure>(*function.function, function.owner, std::move(captures));
}

// The backpropagators of a resumption or, without a coroutine, of a yield.
Values pullbacks(size_t order, const Value& coroutine) {
    Values list;
    for (size_t j = 0; j < order; ++j) {
        if (!coroutine) {
            list.push_back(closure_of(prelude(Prelude::yield_back), {}));
            continue;
        }
        const int64_t k = static_cast<const Coroutine*>(coroutine.object())->resumes;
        list.push_back(
            closure_of(prelude(Prelude::resume_back), {coroutine, Value(k), Value(static_cast<int64_t>(j))}));
    }
    return list;
}

bool same_contexts(std::span<const Value> a, const Values& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Value& x, const Value& y) { return x.object() == y.object(); });
}

}  // namespace

Coroutine::Coroutine(Value f) {
    Value state = make_object<State>();
    static_cast<State*>(state.object())->function = std::move(f);
    cell_ = make_object<LocalCell>(std::move(state));
}

Coroutine::State& Coroutine::state() const {
    return *static_cast<State*>(static_cast<LocalCell*>(cell_.object())->get().object());
}

Coroutine::State::~State() { suspended().erase(this); }

void Coroutine::State::for_each_owned(const std::function<void(const Value&)>& f) const {
    f(function);
    for (const Values* list : {&contexts, &backs, &backward})
        for (const Value& v : *list) f(v);
    f(error);
    for (const Frame& frame : frames) f(frame.callee);
    for (const Value& v : registers) f(v);
    for (const Closing& c : closing) f(c.value);
}

// Moves the frames from `base` on into the coroutine.
void Coroutines::suspend(Coroutine& coroutine, size_t base) {
    State& state = coroutine.state();
    machine_.frames_.back().pc = machine_.pc_;
    machine_.chunk_ = machine_.frames_[base].chunk;
    machine_.used_ = machine_.frames_[base].used;
    for (size_t i = base; i < machine_.frames_.size(); ++i) {
        Frame& frame = machine_.frames_[i];
        for (size_t k = 0; k < frame.code->registers; ++k) state.registers.push_back(std::move(frame.registers[k]));
        frame.registers = nullptr;
        state.frames.push_back(std::move(frame));
    }
    machine_.frames_.resize(base);
    const auto first = std::ranges::find_if(machine_.closing_, [&](const Closing& c) { return c.frame > base; });
    for (auto c = first; c != machine_.closing_.end(); ++c)
        state.closing.push_back({c->frame - base, std::move(c->value)});
    machine_.closing_.erase(first, machine_.closing_.end());
    suspended().insert(&state);
    machine_.load_frame();
}

// Puts the coroutine's frames on top of the running ones.
void Coroutines::restore(Coroutine& coroutine) {
    State& state = coroutine.state();
    if (machine_.frames_.size() + state.frames.size() > recursion_limit())
        throw state_error("stack overflow", str("recursion is deeper than ", recursion_limit(), " calls"))
            .hint("does the recursion end?");
    if (!machine_.frames_.empty()) machine_.frames_.back().pc = machine_.pc_;
    const size_t base = machine_.frames_.size();
    Value* from = state.registers.data();
    for (Frame& frame : state.frames) {
        frame.chunk = machine_.chunk_;
        frame.used = machine_.used_;
        frame.registers = machine_.reserve(frame.code->registers);
        for (size_t k = 0; k < frame.code->registers; ++k) frame.registers[k] = std::move(*from++);
        machine_.frames_.push_back(std::move(frame));
    }
    for (Closing& c : state.closing) machine_.closing_.push_back({c.frame + base, std::move(c.value)});
    state.frames.clear();
    state.registers.clear();
    state.closing.clear();
    suspended().erase(&state);
    machine_.load_frame();
}

void Coroutines::resume(const Value& value, std::span<const Value> contexts, Values args, const Destination& to) {
    machine_.tick();
    Coroutine& coroutine = *static_cast<Coroutine*>(value.object());
    State& state = coroutine.state();
    if (coroutine.status != Status::suspended) {
        std::string message =
            coroutine.status == Status::dead ? "cannot resume dead coroutine" : "cannot resume non-suspended coroutine";
        if (const std::string at = coroutine.wrapped ? machine_.place(1) : std::string(); !at.empty())
            message = str(at, ": ", message);
        machine_.raise(Value(std::move(message)));
    }
    if (coroutine.left || (coroutine.begun && !same_contexts(contexts, state.contexts)))
        throw state_error("coroutine.resume", "the coroutine began in another differentiation")
            .hint("create it in the function that is differentiated, or take its values before ms.grad is called");
    if (!running_.empty()) static_cast<Coroutine*>(running_.back().coroutine.object())->status = Status::normal;
    coroutine.status = Status::running;
    ++coroutine.resumes;
    running_.push_back({value, machine_.frames_.size(), machine_.level_, to});
    if (!coroutine.begun) {
        coroutine.begun = true;
        state.contexts = Values(contexts);
        args.push_front(std::move(state.function));
        Destination last;
        last.ends = true;
        return machine_.enter(prelude(Prelude::coroutine), state.contexts, std::move(args), last);
    }
    restore(coroutine);
    const Destination waiting = state.to;
    Values backs = pullbacks(contexts.size(), {});
    machine_.give(waiting, std::move(args), {backs.begin(), backs.size()});
}

void Coroutines::yield(std::span<const Value> contexts, Values args, const Destination& to) {
    const Running running = running_.back();
    Coroutine& coroutine = *static_cast<Coroutine*>(running.coroutine.object());
    State& state = coroutine.state();
    if (!same_contexts(contexts, state.contexts))
        throw state_error("coroutine.yield", "a differentiation within the coroutine cannot be left by yield")
            .hint(
                "yield what ms.grad gives, not within the function that it differentiates, nor within ms.custom_vjp "
                "or ms.checkpoint");
    Values backs = pullbacks(contexts.size(), running.coroutine);
    // The results of a tail call leave the frame at once; other instructions continue after their registers were
    // dropped.
    const Instr& at = machine_.code_->instrs[machine_.pc_ - 1];
    if (!at.tail)
        for (uint32_t k = 0; k < at.kill_count; ++k)
            Machine::clear(machine_.registers_[machine_.code_->kills[at.kills + k]]);
    suspend(coroutine, running.base);
    state.to = to;
    end(Status::suspended);
    machine_.give(running.to, std::move(args), {backs.begin(), backs.size()});
}

// The innermost coroutine no longer runs.
void Coroutines::end(Status status) {
    static_cast<Coroutine*>(running_.back().coroutine.object())->status = status;
    running_.pop_back();
    if (!running_.empty()) static_cast<Coroutine*>(running_.back().coroutine.object())->status = Status::running;
}

void Coroutines::finish(Values results, std::span<Value> all) {
    const Running running = running_.back();
    State& state = static_cast<Coroutine*>(running.coroutine.object())->state();
    for (Value& back : all) state.backs.push_back(std::move(back));
    end(Status::dead);
    Values backs = pullbacks(all.size(), running.coroutine);
    machine_.give(running.to, std::move(results), {backs.begin(), backs.size()});
}

// An error has left the coroutine's first function. `backs` are the backpropagators of the part that ran, and become
// those of the resumption.
void Coroutines::fail(Value& error, Values& backs) {
    const Running running = running_.back();
    Coroutine& coroutine = *static_cast<Coroutine*>(running.coroutine.object());
    State& state = coroutine.state();
    const size_t order = backs.size();
    state.backs = std::move(backs);
    state.error = error;
    end(Status::dead);
    backs = pullbacks(order, running.coroutine);
    if (!coroutine.wrapped || error.kind() != Value::Kind::string) return;
    if (const std::string at = machine_.place(1); !at.empty()) error = Value(str(at, ": ", error.string()));
}

// Leaves the functions of a suspended coroutine one by one, as an error would.
void Coroutines::leave(Coroutine& coroutine, bool closes, Value& error) {
    State& state = coroutine.state();
    coroutine.left = true;
    if (!coroutine.begun) return;
    const size_t base = machine_.frames_.size();
    restore(coroutine);
    if (!closes) std::erase_if(machine_.closing_, [&](const Closing& c) { return c.frame > base; });
    Values backs = pullbacks(state.contexts.size(), {});
    while (machine_.frames_.size() > base) {
        const size_t count = machine_.pending();
        if (machine_.code_->function->graph.order == 0 && count == 0) {
            machine_.pop();
            backs.clear();
            continue;
        }
        machine_.take_exit(count, error, backs);
        machine_.run_rest(error, backs);
    }
    state.backs = std::move(backs);
}

void Coroutines::close(const Value& value, std::span<const Value> contexts, const Destination& to) {
    Coroutine& coroutine = *static_cast<Coroutine*>(value.object());
    State& state = coroutine.state();
    if (coroutine.status != Status::suspended && coroutine.status != Status::dead)
        machine_.raise(Value(str("cannot close a ", name_of(coroutine.status), " coroutine")));
    Values backs;
    if (coroutine.status == Status::suspended && !state.closing.empty()) {
        // The variables that it closes count as one more part.
        ++coroutine.resumes;
        Value error;
        leave(coroutine, true, error);
        coroutine.left = false;
        state.error = error;
        backs = pullbacks(contexts.size(), value);
    }
    coroutine.status = Status::dead;
    Value error = std::exchange(state.error, Value());
    Values results{Value(error.is_nil())};
    if (error) results.push_back(error);
    machine_.give(to, std::move(results), {backs.begin(), backs.size()});
}

Value Coroutines::backward(const Value& value, int64_t k, int64_t order) {
    Coroutine& coroutine = *static_cast<Coroutine*>(value.object());
    State& state = coroutine.state();
    if (coroutine.status == Status::running || coroutine.status == Status::normal)
        throw state_error("coroutine.resume", "a gradient flows back through the coroutine while it runs")
            .hint("ask for the gradient outside of the coroutine");
    Value error;
    if (!state.frames.empty()) leave(coroutine, false, error);
    const auto j = static_cast<size_t>(order);
    if (j >= state.backs.size() || state.backs[j].is_nil()) return {};
    state.backward.resize(std::max(state.backward.size(), j + 1));
    auto next = [](const Value& v) {
        const auto& c = *static_cast<const Coroutine*>(v.object());
        return c.expected - c.resumes;
    };
    Value& back = state.backward[j];
    if (back.is_nil() || next(back) < k) {
        back = make_object<Coroutine>(closure_of(prelude(Prelude::reversed), {state.backs[j]}));
        // The last yield of a coroutine that did not end has returned nothing: the first part ends where its results
        // would come in.
        static_cast<Coroutine*>(back.object())->expected = coroutine.resumes + (coroutine.left ? 1 : 0);
    }
    return back;
}

// The answer to a program's question about coroutines; nil: the host has to answer.
Value Coroutines::answer(NativeFunction::Kind kind, const Coroutine* asked, bool any) const {
    using Kind = NativeFunction::Kind;
    if (kind == Kind::status) return asked ? Value(name_of(asked->status)) : Value();
    if (kind == Kind::running) return running_.empty() ? Value() : running_.back().coroutine;
    if (asked) return Value(true);
    return any ? Value() : Value(!running_.empty() && running_.back().level == machine_.level_);
}

void Coroutines::check_yield(std::span<const Value> contexts) const {
    if (!running_.empty() && running_.back().level != machine_.level_)
        machine_.raise(Value("attempt to yield across a C-call boundary"));
    if (running_.empty() && !contexts.empty())
        throw state_error("coroutine.yield", "a differentiated function cannot yield to what called it")
            .hint("create the coroutine within the function that is differentiated, or yield what ms.grad gives");
}

void Coroutines::call(const NativeFunction& f, std::span<const Value> contexts, Values args, const Destination& to) {
    using Kind = NativeFunction::Kind;
    const Value first = args.empty() ? Value() : args[0];
    auto* coroutine = object_as<Coroutine>(first);
    switch (f.kind) {
        case Kind::create:
        case Kind::wrap: {
            if (!machine_.host().is_function(first)) break;
            Value made = make_object<Coroutine>(first);
            if (f.kind == Kind::create) return machine_.give(to, {std::move(made)}, {});
            static_cast<Coroutine*>(made.object())->wrapped = true;
            return machine_.give(to, {closure_of(prelude(Prelude::wrap), {std::move(made)})}, {});
        }
        case Kind::resume:
            if (!coroutine) break;
            return machine_.enter(prelude(Prelude::resume), contexts, std::move(args), to);
        case Kind::go_on:
            if (!coroutine) return machine_.give(to, {}, {});
            args.pop_front();
            return resume(first, contexts, std::move(args), to);
        case Kind::yield:
            check_yield(contexts);
            if (running_.empty()) break;
            return yield(contexts, std::move(args), to);
        case Kind::status:
        case Kind::running:
        case Kind::is_yieldable: {
            Value v = answer(f.kind, coroutine, !args.empty());
            if (v.is_nil()) break;
            Values results{std::move(v)};
            // Whether the running coroutine is the main one.
            if (f.kind == Kind::running) results.push_back(Value(false));
            return machine_.give(to, std::move(results), {});
        }
        case Kind::close:
            if (!coroutine) break;
            return close(first, contexts, to);
        case Kind::advance: {
            const int64_t next = coroutine ? coroutine->expected - coroutine->resumes : 0;
            if (!coroutine || next <= args[1].integer()) return machine_.give(to, {}, {});
            return machine_.enter(prelude(Prelude::advance), contexts, std::move(args), to);
        }
    }
    machine_.call_host(f.original, contexts, std::move(args), to);
}

namespace {

void backward(Machine& m, const Instr& i) {
    m.set(i, m.coroutines().backward(m.operand(i, 0), m.operand(i, 1).integer(), m.operand(i, 2).integer()));
}

}  // namespace

std::span<const NamedHandler> coroutine_handlers() {
    static constexpr NamedHandler list[] = {{"backward", backward}};
    return list;
}

}  // namespace lunaria::vm
