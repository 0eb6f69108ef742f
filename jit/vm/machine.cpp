#include "jit/vm/machine.h"

#include <algorithm>
#include <atomic>

#include "core/operator/expansion.h"
#include "jit/vm/cycles.h"
#include "jit/vm/handlers.h"
#include "jit/vm/recursion_limit.h"
#include "jit/vm/watcher.h"

namespace lunaria::vm {

namespace {
// Sizes in registers; many machines run only one small function.
constexpr size_t kFirstChunk = 1024, kChunk = 16384;
std::atomic<size_t>& most_calls() {
    static std::atomic<size_t> most{kMostCalls};
    return most;
}

}  // namespace

size_t recursion_limit() { return most_calls().load(std::memory_order_relaxed); }
void set_recursion_limit(size_t calls) { most_calls().store(std::min(calls, kMostCalls)); }

Handler handler_of(const Op& primitive) {
    for (auto list : {call_handlers(), value_handlers(), operation_handlers(), shadow_handlers(), given_handlers(),
                      error_handlers(), coroutine_handlers(), region_handlers()})
        for (const NamedHandler& h : list)
            if (h.name == primitive.name()) return h.handler;
    throw state_error("vm", str("the primitive '", primitive.name(), "' has no handler"));
}

Value* Machine::reserve(size_t count) {
    if (chunks_.empty() || used_ + count > chunk_sizes_[chunk_]) {
        size_t next = chunks_.empty() ? 0 : chunk_ + 1;
        // A chunk that is too small for this frame is replaced; nothing above the running frame is in use.
        if (next == chunks_.size()) {
            const size_t size = std::max(count, next == 0 ? kFirstChunk : kChunk);
            chunks_.push_back(std::make_unique<Value[]>(size));
            chunk_sizes_.push_back(size);
        } else if (chunk_sizes_[next] < count) {
            chunks_[next] = std::make_unique<Value[]>(count);
            chunk_sizes_[next] = count;
        }
        chunk_ = next;
        used_ = 0;
    }
    Value* at = chunks_[chunk_].get() + used_;
    used_ += count;
    return at;
}

void Machine::push(const Code& code, Value callee, std::shared_ptr<const void> owner, const Destination& to) {
    if (frames_.size() >= recursion_limit())
        throw state_error("stack overflow", str("recursion is deeper than ", recursion_limit(), " calls"))
            .hint("does the recursion end?");
    if (!frames_.empty()) frames_.back().pc = pc_;
    size_t chunk = chunk_, used = used_;
    Value* registers = reserve(code.registers);
    frames_.push_back(
        {&code, code.blocks[0].start, registers, chunk, used, to, std::move(callee), std::move(owner), depth, 0});
    code_ = &code;
    pc_ = code.blocks[0].start;
    registers_ = registers;
}

void Machine::pop() {
    Frame& frame = frames_.back();
    // Most of the registers hold nil by now.
    Value* r = frame.registers;
    size_t left = frame.code->registers;
    for (; left >= 4; left -= 4, r += 4) {
        const int kinds = static_cast<int>(r[0].kind()) | static_cast<int>(r[1].kind()) |
                          static_cast<int>(r[2].kind()) | static_cast<int>(r[3].kind());
        if (kinds)
            for (size_t k = 0; k < 4; ++k) clear(r[k]);
    }
    for (; left > 0; --left) clear(*r++);
    chunk_ = frame.chunk;
    used_ = frame.used;
    frames_.pop_back();
    if (frames_.empty()) {
        code_ = nullptr;
        registers_ = nullptr;
        return;
    }
    code_ = frames_.back().code;
    pc_ = frames_.back().pc;
    registers_ = frames_.back().registers;
}

Values Machine::captures_of(Value& v) {
    auto& closure = *static_cast<Closure*>(v.object());
    return closure.refs.load(std::memory_order_acquire) == 1 ? std::move(closure.captures) : closure.captures;
}

void Machine::enter(Function& function, Value callee, std::span<const Value> contexts, Values captures, Values args,
                    const Destination& wanted, std::shared_ptr<const void> owner) {
    tick();
    Destination to = wanted;
    if (to.returns && !to.stays && !function.keeps_caller) {
        to = frames_.back().to;
        pop();
    }
    to.pack |= function.packs;
    const Code& code = code_of(function);
    push(code, std::move(callee), std::move(owner), to);
    // The registers of a new frame hold nil.
    Value* at = registers_;
    for (const Value& c : contexts) new (at++) Value(c);
    if (!contexts.empty()) new (at++) Value(frames_.back().callee);
    const size_t captured = captures.size();
    captures.move_to(at);
    at += captured;
    const size_t fixed = code.parameters - static_cast<size_t>(at - registers_) - function.graph.variadic;
    const size_t given = std::min(fixed, args.size());
    for (size_t i = 0; i < given; ++i) move_over(at[i], args[i]);
    if (function.graph.variadic) at[fixed] = Value::list_of({args.begin() + given, args.size() - given});
}

void Machine::give_one(const Destination& to, Value result, Value back) {
    if (to.returns || to.results < 0) {
        Values results;
        results.push_back(std::move(result));
        return give(to, std::move(results), {&back, 1});
    }
    if (to.r_out >= 0)
        for (int32_t k = 0; k < to.order; ++k) registers_[to.r_out + k] = k == 0 ? std::move(back) : Value();
    if (to.out < 0) return;
    for (int32_t k = 0; k < to.results; ++k) registers_[to.out + k] = k == 0 ? std::move(result) : Value();
}

void Machine::give(const Destination& to, Values results, std::span<Value> backs) {
    if (to.returns) return return_values(std::move(results), backs);
    if (to.r_out >= 0)
        for (int32_t k = 0; k < to.order; ++k)
            registers_[to.r_out + k] =
                static_cast<size_t>(k) < backs.size() ? std::move(backs[static_cast<size_t>(k)]) : Value();
    if (to.pack && results.size() > 1) {
        uint16_t marks = 0;
        for (const Value& v : results) marks |= v.marks();
        Value packed = std::move(results).list();
        packed.set_marks(marks);
        results.clear();
        results.push_back(std::move(packed));
    }
    if (to.out < 0) return;
    if (to.results < 0) {
        registers_[to.out] = std::move(results).list();
        return;
    }
    for (int32_t k = 0; k < to.results; ++k)
        registers_[to.out + k] =
            static_cast<size_t>(k) < results.size() ? std::move(results[static_cast<size_t>(k)]) : Value();
}

void Machine::return_values(Values results, std::span<Value> backs) {
    Destination to = frames_.back().to;
    pop();
    if (to.base) {
        Final& final = final_.back();
        final.results = std::move(results);
        final.backs.clear();
        for (Value& back : backs) final.backs.push_back(std::move(back));
        return;
    }
    if (to.ends) return coroutines_.finish(std::move(results), backs);
    give(to, std::move(results), backs);
}

Value Machine::value(const Slot& s) {
    if (s.items < 0) return get(s);
    Values list;
    uint16_t marks = 0;
    for (const Slot& item : items(s)) {
        list.push_back(value(item));
        marks |= list.back().marks();
    }
    Value v = std::move(list).list();
    v.set_marks(marks);
    return v;
}

Values Machine::values(const Slot& s) {
    Values list;
    if (s.items >= 0) {
        list.reserve(static_cast<size_t>(s.items));
        for (const Slot& item : items(s)) {
            if (item.items >= 0)
                list.push_reserved(value(item));
            else if (item.last)
                list.push_reserved(std::move(registers_[item.at]));
            else
                list.push_reserved(get(item));
        }
        return list;
    }
    const Value& v = get(s);
    if (v.is_list()) list = v.items();
    return list;
}

bool Machine::has_box(std::span<const Value> contexts, std::span<const Value> values) {
    for (const Value& v : values) {
        if (!v.is_tensor() || v.tensor().version() == 0) continue;
        for (const Value& c : contexts)
            if (static_cast<Context*>(c.object())->box(v)) return true;
    }
    return false;
}

// Loads the machine's copy of the data in the top frame.
void Machine::load_frame() {
    if (frames_.empty()) {
        code_ = nullptr;
        registers_ = nullptr;
        return;
    }
    const Frame& frame = frames_.back();
    code_ = frame.code;
    pc_ = frame.pc;
    registers_ = frame.registers;
}

// Every event of a recording asks for it, so no streams here.
ir::Span Machine::span() const {
    for (size_t i = frames_.size(); i-- > 0;) {
        const uint32_t pc = i + 1 == frames_.size() ? pc_ : frames_[i].pc;
        const ir::Node* node = pc > 0 ? frames_[i].code->instrs[pc - 1].node : nullptr;
        if (node && node->span.line > 0 && node->span.chunk && !node->span.chunk->starts_with("lunaria:"))
            return node->span;
        if (frames_[i].to.base) break;
    }
    return {};
}

void Machine::loop(size_t base) {
    Watcher* const watched = watcher();
    try {
        while (frames_.size() > base) {
            const Instr& at = code_->instrs[pc_++];
            Value* registers = registers_;
            const Code* code = code_;
            // An instruction that leaves the function may have freed its code.
            const bool tail = at.tail;
            if (!watched || !watched->step(*this, at)) at.run(*this, at);
            if (tail) continue;
            const int32_t* kill = code->kills.data() + at.kills;
            for (const int32_t* end = kill + at.kill_count; kill != end; ++kill) clear(registers[*kill]);
        }
    } catch (const Error& e) {
        if (!e.place().empty()) throw;
        const Error told = whole() ? named_after(*whole(), e) : e;
        host().failed(told);
        std::string where = here();
        if (where.empty() && !whole()) throw;
        throw told.at(where);
    }
}

Values Machine::run(const Value& f, std::span<const Value> args) {
    Values backs;
    return run(f, {}, Values(args), backs);
}

Values Machine::run(const Value& f, std::span<const Value> contexts, Values args, Values& backs) {
    if (!frames_.empty()) frames_.back().pc = pc_;
    called_back = true;
    struct Restore {
        Machine& m;
        size_t base, results, level, guarded;
        int depth;
        uint32_t pc;
        const Code* code;  // a reverse rule runs without a frame of its own
        Value* registers;
        ~Restore() {
            while (m.frames_.size() > base) m.pop();
            while (m.coroutines_.runs_above(base)) m.coroutines_.end(Coroutine::Status::dead);
            if (m.frames_.empty()) m.writes_.end_run();
            while (!m.closing_.empty() && m.closing_.back().frame > base) m.closing_.pop_back();
            m.level_ = level;
            m.guarded_ = guarded;
            m.final_.resize(results);
            m.depth = depth;
            m.pc_ = pc;
            m.code_ = code;
            m.registers_ = registers;
        }
    } restore{*this, frames_.size(), final_.size(), level_, guarded_, depth, pc_, code_, registers_};
    level_ = restore.base;
    guarded_ = ~size_t{0};
    final_.emplace_back();
    // A frame of its own takes the results of f, whatever f is.
    static const Code kWaiting = [] {
        Code code;
        code.blocks.emplace_back();
        return code;
    }();
    const Destination to{.returns = true};
    push(kWaiting, {}, {}, {.base = true});
    // Errors are caught above the first frame: f may end with a call of pcall, which replaces the second frame.
    push(kWaiting, {}, {}, to);
    const size_t level = restore.base;
    call(f, contexts, std::move(args), to);
    loop(level);
    if (level == 0) collect_cycles();
    backs = std::move(final_.back().backs);
    return std::move(final_.back().results);
}

// A reverse rule is straight-line code without calls: it runs here, from register to register.
bool Machine::pull_rule(const Instr& i) {
    auto* closure = object_as<Closure>(get(slot(i, 0)));
    if (!closure || !closure->function->rule || i.tail || !calls_directly()) return false;
    const Slot& list = slot(i, 1);
    if (list.items < 0) {
        const Value& given = get(list);
        if (!given.is_list() || std::ranges::all_of(given.items(), [](const Value& v) { return v.is_nil(); }))
            return false;
        writes_.check(*closure);
        run_rule(i, *closure, given.items());
        return true;
    }
    const std::span<const Slot> given = items(list);
    if (std::ranges::none_of(given, [&](const Slot& s) { return s.items >= 0 || get(s); })) return false;
    writes_.check(*closure);
    Function& rule = *closure->function;
    if (!rule.chain_known) {
        rule.chain_known = true;
        rule.chain = chain_of_rule(rule.graph);
    }
    if (rule.chain && !watcher() && pull_chain(*this, i, *closure, given)) return true;
    Values cotangents;
    for (const Slot& s : given) cotangents.push_back(s.items >= 0 ? value(s) : take(s));
    run_rule(i, *closure, cotangents);
    return true;
}

// The same for rules with any operators.
void Machine::run_rule(const Instr& i, Closure& closure, std::span<const Value> given) {
    const Function& rule = *closure.function;
    const Code& code = code_of(*closure.function);
    struct Scope {
        Machine& m;
        const Code* code;
        Value *registers, *own = nullptr;
        size_t chunk, used, count;
        ~Scope() {
            for (size_t k = 0; k < count; ++k) clear(own[k]);
            m.code_ = code;
            m.registers_ = registers;
            m.chunk_ = chunk;
            m.used_ = used;
        }
    } outside{*this, code_, registers_, nullptr, chunk_, used_, 0};
    outside.own = reserve(code.registers);
    outside.count = code.registers;
    // Keeps the rule while it runs.
    const Value r = take(slot(i, 0));
    Value* at = outside.own;
    const bool sole = closure.refs.load(std::memory_order_acquire) == 1;
    const size_t captured = closure.captures.size();
    if (sole)
        closure.captures.move_to(at);
    else
        for (size_t k = 0; k < captured; ++k) at[k] = closure.captures[k];
    at += captured;
    const auto& parameters = rule.graph.parameters();
    for (size_t k = 0; rule.graph.captures + k < parameters.size(); ++k)
        *at++ = full_cotangent(parameters[rule.graph.captures + k]->type, k < given.size() ? given[k] : Value());

    code_ = &code;
    registers_ = outside.own;
    const Instr* instr = code.instrs.data();
    for (; !instr->tail; ++instr) {
        instr->run(*this, *instr);
        for (uint32_t k = 0; k < instr->kill_count; ++k) clear(registers_[code.kills[instr->kills + k]]);
    }
    if (i.out < 0) return;
    Values results = values(slot(*instr, 0));
    if (i.results < 0) {
        outside.registers[i.out] = std::move(results).list();
        return;
    }
    for (int32_t k = 0; k < i.results; ++k)
        outside.registers[i.out + k] =
            static_cast<size_t>(k) < results.size() ? std::move(results[static_cast<size_t>(k)]) : Value();
}

namespace {

// Jumps to a block: after the arguments are gathered, all other registers are cleared.
void jump_to(Machine& m, const Instr& i, uint32_t target, const Slot& list) {
    const std::span<const Slot> args = m.items(list);
    std::vector<Value>& moving = m.moving();
    if (moving.size() < args.size()) moving.resize(args.size());
    // Values that were taken or moved leave nil behind.
    for (size_t k = 0; k < args.size(); ++k) {
        const Slot& s = args[k];
        if (s.items >= 0)
            moving[k] = m.value(s);
        else if (s.last)
            Machine::move_over(moving[k], m.reg(s.at));
        else
            moving[k] = m.get(s);
    }
    const Code& code = m.code();
    for (const int32_t *kill = code.kills.data() + i.kills, *end = kill + i.kill_count; kill != end; ++kill)
        Machine::clear(m.reg(*kill));
    const auto& to = code.blocks[target].parameters;
    for (size_t k = 0; k < to.size(); ++k) {
        Value& place = m.reg(to[k]);
        place.~Value();
        Machine::move_over(place, moving[k]);
    }
    for (size_t k = to.size(); k < args.size(); ++k) Machine::clear(moving[k]);
    m.go_to(target);
}

}  // namespace

void handle_jump(Machine& m, const Instr& i) {
    m.tick();
    jump_to(m, i, i.target[0], m.slot(i, 0));
}

void handle_branch(Machine& m, const Instr& i) {
    const Value& condition = m.operand(i, 0);
    const bool yes = !(condition.is_nil() || (condition.kind() == Value::Kind::boolean && !condition.boolean()));
    jump_to(m, i, i.target[yes ? 0 : 1], m.slot(i, yes ? 1 : 2));
}

void handle_return(Machine& m, const Instr& i) {
    Values results = m.values(m.slot(i, 0));
    Values backs;
    for (int32_t k = 0; k < i.order; ++k) backs.push_back(m.take(m.slot(i, static_cast<size_t>(k) + 1)));
    m.return_values(std::move(results), {backs.begin(), backs.size()});
}

void handle_item(Machine& m, const Instr& i) {
    const Value& list = m.operand(i, 0);
    m.set(i, list.is_list() && i.node->index < list.items().size() ? list.items()[i.node->index] : Value());
}

}  // namespace lunaria::vm
