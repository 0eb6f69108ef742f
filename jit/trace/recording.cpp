#include "jit/trace/recording.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/interrupt.h"
#include "core/tensor/element.h"
#include "jit/language.h"
#include "jit/trace/placeholders.h"
#include "jit/trace/region.h"
#include "jit/trace/size_pattern.h"
#include "jit/vm/prelude.h"

namespace lunaria::trace {

namespace {

// The bytes allocated between two sweeps for unused values: a base, and a share for each value.
constexpr uint64_t kSweepBytes = 2u << 20, kSweepBytesEach = 256;

}  // namespace

Value constant_operand(Value v) {
    v.set_marks(0);
    return v;
}

Recording::Recording(Outside& outside, Tree& tree, Progress& progress, const Limits& limits, vm::Host& watched)
    : outside(outside),
      host(outside.host),
      tree(tree),
      machine(watched),
      progress_(progress),
      limits_(limits),
      block_(&tree.root) {
    if (!progress_.effects) {
        // Nothing that cannot be repeated has happened yet.
        progress_.done = 0;
        progress_.observed = progress_.failed = false;
    }
    size_t position = 0;
    for (size_t b = 0; b < progress_.path.size() && position < progress_.done; ++b)
        for (const Step& step : progress_.path[b]->steps) {
            if (position++ == progress_.done) break;
            if (step.kind == Step::Kind::make)
                tables.replay(step.table, progress_.slots[static_cast<size_t>(step.expected[0].slot)]);
        }
}

void Recording::stop(std::string why) {
    if (!stopped_.empty()) return;
    stopped_ = described(machine.span(), why);
    if (effects_ > 0 && !trial) return tables.settle();
    restart_ = true;
    throw state_error("graph mode", stopped_);
}

// The results of a step that the runner has carried out.
vm::Values Recording::repeat(Step& s, const std::function<void(vm::Values&)>& body) {
    if (at_ == block_->steps.size()) {
        block_ = progress_.path.at(path_++);
        at_ = 0;
    }
    Step& known = block_->steps[at_];
    sizes.lift(known, s);
    if (!same_event(known, s))
        throw state_error("graph mode", str("the function does something else (", name_of(s.kind), " instead of ",
                                            name_of(known.kind), ") when it is done again"));
    vm::Values results = known_results(progress_, known, values_);
    // A function that the call makes from here on may hold them for longer than there is a record.
    for (Value& v : results) v = outside.lasting(v);
    if (known.kind == Step::Kind::op && !known.effect) size_placeholders(progress_, known, results, body);
    effects_ += known.effect;
    know(known, results);
    count_writes(known);
    for (const Expected& e : known.expected)
        if (e.what == Expected::What::tensor && static_cast<size_t>(e.slot) < progress_.handles.size() &&
            !progress_.handles[static_cast<size_t>(e.slot)].is_nil())
            note_handle(values_[static_cast<size_t>(e.slot)], progress_.handles[static_cast<size_t>(e.slot)]);
    ++at_;
    ++position_;
    if (known.fails) raise(results[0]);
    return results;
}

// The results of the step at which the runner stopped, because they were new.
vm::Values Recording::take_observed(Step& s) {
    progress_.observed = false;
    if (at_ < block_->steps.size())
        s.written = block_->steps[at_].written;
    else if (!block_->next.empty())
        s.written = block_->next[0]->steps[0].written;
    count_writes(s);
    s.fails = progress_.failed;
    if (s.fails) return {std::move(progress_.error)};
    return std::move(progress_.results);
}

void Recording::keep_old(const Step& s) {
    const auto real = [&](const Value& operand) {
        return operand.is_node() ? plain(values_[static_cast<size_t>(operand.node()->slot)]) : operand;
    };
    // The very object that is there, if it is a tensor.
    const auto found = [](Answer answer) { return answer.handle.is_nil() ? answer.value : answer.handle; };
    for_each_slot(s, [&](int32_t slot) {
        const Value& v = values_[static_cast<size_t>(slot)];
        if (v.is_tensor() && old_.insert(vm::identity_of(v)).second)
            undo_.emplace_back([tensor = v.tensor(), old = v.tensor().copy()]() mutable { tensor.become(old); });
    });
    if (s.kind == Step::Kind::raw_set) {
        const Value table = real(s.args()[0]), key = outside_key(real(s.args()[1]));
        const Question asked{.kind = Step::Kind::read, .object = &table, .key = &key, .value = true, .handle = true};
        undo_.emplace_back([this, table, key, old = found(outside.ask(asked))] { host.raw_set(table, key, old); });
    } else if (s.kind == Step::Kind::set_upvalue) {
        const Value function = real(s.args()[0]);
        const int position = static_cast<int>(s.args()[1].integer());
        const Question asked{
            .kind = Step::Kind::upvalue, .object = &function, .position = position, .value = true, .handle = true};
        undo_.emplace_back([this, function, position, old = found(outside.ask(asked))] {
            outside.set_upvalue(function, position, old);
        });
    }
}

void Recording::undo() {
    for (; !undo_.empty(); undo_.pop_back()) undo_.back()();
}

vm::Values Recording::event(Step&& s, const std::function<void(vm::Values&)>& body) {
    vm::Values results;
    if (!stopped_.empty()) {
        forget();
        const vm::Watch unwatched(nullptr);
        body(results);
        return results;
    }
    if (position_ < progress_.done) return repeat(s, body);
    identities_.clear();
    s.node->span = machine.span();
    s.direct = s.kind == Step::Kind::call && machine.caller().empty();
    s.method = s.kind == Step::Kind::call && machine.calls_method();
    s.late = effects_ > 0;
    if (effects_ > 0 || s.effect) {
        sweep();
        s.live = alive_;
        live_ += s.live.size();
    }
    effects_ += s.effect;
    if (s.effect && trial) keep_old(s);
    const bool observed = progress_.observed && position_ == progress_.done;
    std::vector<uint32_t> versions;
    if (s.effect && !observed)
        for (const int32_t slot : s.live) versions.push_back(version_at(slot));
    if (observed) {
        results = take_observed(s);
    } else if (catching > 0) {
        s.fails = !attempt(s.span(), body, results);
    } else {
        const vm::Watch unwatched(nullptr);
        body(results);
    }
    for (size_t k = 0; k < versions.size(); ++k)
        if (version_at(s.live[k]) != versions[k]) s.written.push_back(s.live[k]);
    if (s.fails && catching == 0) host.raise(results[0]);
    const bool fails = s.fails;
    write(std::move(s), results);
    if (fails) raise(results[0]);
    return results;
}

// False: the body raised an error, which is the result.
bool Recording::attempt(const ir::Span& span, const std::function<void(vm::Values&)>& body, vm::Values& results) {
    vm::Host::Protected outcome = host.call_protected([&] {
        const vm::Watch unwatched(nullptr);
        try {
            body(results);
        } catch (const Error& e) {
            interrupted_ |= e.kind() == ErrorKind::memory;
            if (span.line == 0 || !e.place().empty()) throw;
            throw Error(e).at(ir::place_text(span));
        } catch (const std::bad_alloc&) {
            interrupted_ = true;
            throw;
        }
    });
    if (outcome.ok) return true;
    interrupted_ |= interrupt_requested();
    if (interrupted_) {
        stop("an interrupt or a lack of memory ended it");
        host.raise(outcome.error);
    }
    results = {std::move(outcome.error)};
    return false;
}

Value Recording::ask(Step step, const Question& question) {
    Question asked = question;
    asked.value = asked.handle = true;
    vm::Values results = event(std::move(step), [&](vm::Values& values) {
        Answer answer = outside.ask(asked);
        const bool tensor = answer.value.is_tensor();
        identities_.push_back({answer.identity, tensor ? Value() : answer.handle});
        if (tensor && stopped_.empty()) note_handle(answer.value, std::move(answer.handle));
        values.push_back(std::move(answer.value));
    });
    // The runner keeps the object as which a tensor came only where its record gives the object away.
    if (stopped_.empty() && results[0].is_tensor() && !has_handle(results[0]))
        if (Answer answer = outside.ask(asked); vm::identity_of(answer.value) == vm::identity_of(results[0]))
            note_handle(results[0], std::move(answer.handle));
    return results[0];
}

namespace {

std::string describe_event(const Step& step) {
    std::string text(name_of(step));
    if (step.kind == Step::Kind::argument) text += str(" ", step.args()[0].integer() + 1);
    if (step.kind == Step::Kind::read)
        text = step.args()[1].is_node() ? "a field" : str("field ", to_string(step.args()[1]));
    return described(step.span(), text);
}

// Whether the step has a symbolic value where the other has a single one.
bool covers(const Step& s, const Step& other) {
    const auto& old = other.expected;
    if (old.size() != s.expected.size() || other.fails != s.fails) return false;
    bool wider = false;
    for (size_t k = 0; k < old.size(); ++k) {
        const Expected& e = s.expected[k];
        const bool is_wider = (e.what == Expected::What::number || e.what == Expected::What::table) &&
                              old[k].what == Expected::What::constant && old[k].constant.kind() == e.constant.kind();
        wider |= is_wider;
        if (!is_wider && (old[k].what != e.what || !identical(old[k].constant, e.constant))) return false;
    }
    return wider;
}

// The answers of earlier calls, the first of them one by one.
std::string in_words(std::span<const Step* const> steps) {
    constexpr size_t kMostTold = 4;
    std::string text;
    for (size_t i = 0; i < std::min(steps.size(), kMostTold); ++i)
        text += (text.empty() ? "" : "; ") + in_words(steps[i]->expected);
    if (steps.size() > kMostTold) text += str("; and ", steps.size() - kMostTold, " more");
    return text;
}

}  // namespace

// If a tensor or table is already known, by a slot or as itself, a fitting type is not enough: it must be the same one.
void Recording::write(Step s, vm::Values& results) {
    auto known_as = [&](const Step& step) {
        if (!all_fit(host, step, s.fails, results, values_)) return false;
        for (size_t k = 0; k < results.size(); ++k) {
            const auto what = step.expected[k].what;
            if (what != Expected::What::tensor && what != Expected::What::table) continue;
            const void* identity = vm::identity_of(results[k]);
            if (slot_of_.contains(identity) || (what == Expected::What::table && tree.tables.contains(identity)))
                return false;
        }
        return true;
    };
    auto follow = [&](Step& step) {
        ++step.hits;
        know(step, results);
        ++at_;
        ++position_;
    };
    if (at_ < block_->steps.size()) {
        Step& known = block_->steps[at_];
        sizes.lift(known, s);
        if (!same_event(known, s)) return stop("it does something else though all that it reads is the same");
        if (known_as(known)) return follow(known);
        block_->split(at_);
    }
    if (!block_->next.empty()) {
        sizes.lift(block_->next[0]->steps[0], s);
        if (!same_event(block_->next[0]->steps[0], s))
            return stop("it does something else though all that it reads is the same");
        std::vector<const Step*> others;
        for (auto& next : block_->next) {
            if (known_as(next->steps[0])) {
                block_ = next.get();
                at_ = 0;
                return follow(block_->steps[0]);
            }
            others.push_back(&next->steps[0]);
        }
        s.expected = expect(s, results, others);
        s.list |= others[0]->list;
        if (surprise_.empty())
            surprise_ = str(describe_event(s), " is ", in_words(s.expected), " and was ", in_words(others), " before");
        block_->erase_ways([&](const Block& way) { return covers(s, way.steps[0]); });
        make_room(tree, *block_, limits_);
        ++tree.branches;
        Block& way = block_->add_way();
        growth_.begin(*block_, &way);
        block_ = &way;
        block_->used = ++tree.clock;
        at_ = 0;
    } else {
        s.expected = expect(s, results, {});
    }
    if (live_ > limits_.live) return stop("it makes too many values behind its first effect");
    growth_.begin(*block_, nullptr, at_);
    ++growth_.steps;
    if (++tree.steps > limits_.steps && (growth_.steps > limits_.steps / 2 || !forget_oldest(tree, *block_)))
        return stop(str("it has more than ", limits_.steps, " steps"));
    s.looked = sizes.looked();
    block_->append(std::move(s));
    know(block_->steps.back(), results);
    ++at_;
    ++position_;
    sizes.leave_behind(block_->steps.back());
}

void Recording::know(const Step& step, vm::Values& results) {
    sizes.enter(step, results);
    for (size_t k = 0; k < step.expected.size(); ++k) {
        const Expected& e = step.expected[k];
        if (e.what == Expected::What::constant && vm::object_as<vm::Closure>(results[k])) note_function(results[k]);
        if (e.typed) {
            sizes.decided(e.slot);
        }
        if (e.what == Expected::What::constant || e.what == Expected::What::same) continue;
        const auto at = static_cast<size_t>(e.slot);
        if (values_.size() <= at) {
            values_.resize(at + 1);
            nodes_.resize(at + 1);
            made_.resize(at + 1);
        }
        nodes_[at] = e.node;
        made_[at] = step.kind == Step::Kind::op || step.kind == Step::Kind::loop;
        const bool open = sizes.closed() ? e.what == Expected::What::tensor && sizes.follow(step) : e.open;
        sizes.note(e.slot, open, step.kind != Step::Kind::op || step.by_content ? &results[k] : nullptr);
        slots_ = std::max(slots_, e.slot + 1);
        if (values_[at].is_nil()) alive_.push_back(e.slot);
        values_[at] = results[k];
        values_[at].set_marks(0);
        if (e.what == Expected::What::number) {
            results[k] = vm::make_object<SymbolicNumber>(e.slot, results[k]);
            open_ = true;
        } else {
            slot_of_[vm::identity_of(results[k])] = e.slot;
        }
    }
}

void Recording::sweep() {
    std::erase_if(alive_, [&](int32_t slot) {
        Value& v = values_[static_cast<size_t>(slot)];
        if (!v.is_tensor() || v.tensor().body()->refs.load(std::memory_order_relaxed) != 1) return false;
        slot_of_.erase(v.tensor().body());
        v = Value();
        return true;
    });
}

void Recording::forget() {
    if (std::exchange(forgot_, true)) return;
    handles_.clear();
    values_.clear();
    alive_.clear();
    slot_of_.clear();
}

Value Recording::operand(const Value& v) {
    if (auto* number = symbolic_number(v)) return node_at(number->slot);
    if (v.is_list()) {
        return Value::list(operands(v.items()));
    }
    const void* identity = vm::identity_of(v);
    if (identity)
        if (auto found = slot_of_.find(identity); found != slot_of_.end()) return node_at(found->second);
    if (v.is_tensor() && !constants_.contains(identity)) {
        if (!is_in_code(v)) stop("a tensor comes from where it cannot be followed");
        made(v);
    }
    if (tables.find(v)) stop("a table that it makes is used in a way that cannot be followed");
    return constant_operand(v);
}

std::vector<Value> Recording::operands(std::span<const Value> values) {
    std::vector<Value> list;
    for (const Value& v : values) list.push_back(operand(v));
    return list;
}

Value Recording::given(const Value& v) {
    if (v.kind() != Value::Kind::object || symbolic_number(v)) return operand(v);
    if (OwnTables::Own* own = tables.find(v)) return node_at(tables.give_away(*own));
    if (tables.goes_away(v) && !slot_of_.contains(vm::identity_of(v)))
        stop("a table that it makes and that contains itself is given away");
    constexpr const char* kAway = " is given away (returned, stored or passed to a function that is not compiled)";
    if (is_compiled(v)) stop(str("what ms.jit gave", kAway));
    const bool function = vm::object_as<vm::Closure>(v) && !functions_.contains(vm::identity_of(v));
    if (function || vm::object_as<vm::LocalCell>(v) || vm::object_as<vm::Context>(v) || vm::object_as<vm::Shadow>(v))
        stop(str("a function that it makes", kAway));
    return operand(v);
}

void Recording::settle_captures(const Value& v, std::unordered_set<const void*>& seen) {
    auto* closure = vm::object_as<vm::Closure>(v);
    auto* cell = vm::object_as<vm::LocalCell>(v);
    if ((!closure && !cell) || !seen.insert(vm::identity_of(v)).second) return;
    if (closure)
        for (Value& captured : closure->captures) {
            if (auto* number = symbolic_number(captured)) captured = number->value;
            settle_captures(captured, seen);
        }
    if (cell) {
        if (const Value content = cell->get(); symbolic_number(content))
            cell->set(symbolic_number(content)->value);
        else
            settle_captures(content, seen);
    }
}

Value Recording::plain(const Value& v) {
    if (auto* number = symbolic_number(v)) return number->value;
    if (v.is_list()) {
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(plain(item));
        return Value::list(std::move(items));
    }
    // Where nothing is recorded any more, a function has no use for symbolic numbers, and one that leaves the call must
    // not hold any.
    if (!records() && vm::object_as<vm::Closure>(v)) {
        std::unordered_set<const void*> seen;
        settle_captures(v, seen);
    }
    return v;
}

Value Recording::alike(const Value& maker, vm::Values args) {
    for (size_t i = 1; i < args.size(); ++i) args[i] = plain(args[i]);
    const vm::OperatorFunction& calls = vm::prelude(vm::Prelude::alike);
    Value made = vm::make_object<vm::Closure>(*calls.function, calls.owner, vm::Values{args[0]});
    compiled_[vm::identity_of(made)] = {made, maker, {}, std::move(args)};
    return made;
}

Value Recording::compiled(const Value& f) {
    if (records() || !is_compiled(f)) return outward(f);
    plain(f);
    Compiled& c = compiled_.at(vm::identity_of(f));
    if (c.made.is_nil()) c.made = host.call(c.maker, c.args)[0];
    return c.made;
}

Value Recording::outward(const Value& v) {
    if (!v.is_tensor()) return plain(v);
    if (!stopped_.empty()) {
        forget();
        return outside.handle_of(v);
    }
    if (const auto known = handles_.find(vm::identity_of(v)); known != handles_.end() && !known->second.handle.is_nil())
        return known->second.handle;
    // From now on the outside has a handle.
    Value handle = outside.handle_of(v);
    handles_.insert_or_assign(vm::identity_of(v), Handle{constant_operand(v), handle});
    return handle;
}

void Recording::note_handle(const Value& tensor, Value handle) {
    handles_.try_emplace(vm::identity_of(tensor), Handle{constant_operand(tensor), std::move(handle)});
}

Value Recording::decided(const Value& v) {
    if (v.is_list()) {
        if (!SymbolicNumbers::holds(v)) return v;
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(decided(item));
        Value list = Value::list(std::move(items));
        list.set_marks(v.marks());
        return list;
    }
    auto* number = symbolic_number(v);
    if (!number) return v;
    Value plain_value = number->value;
    if (stopped_.empty()) {
        const std::string id = question('=', nullptr, Value(static_cast<int64_t>(number->slot)));
        if (!questions.answers().contains(id)) {
            const Value value = number->value;
            plain_value = event(Step(Step::Kind::is, {node_at(number->slot)}),
                                [&](vm::Values& results) { results.push_back(value); })[0];
            questions.answers()[id] = plain_value;
        }
    }
    plain_value.set_marks(v.marks());
    return plain_value;
}

void Recording::made(const Value& tensor) {
    if (tensor.is_tensor()) constants_[tensor.tensor().body()] = tensor;
}

namespace {

// Composite operators may draw random numbers in their expansion.
bool draws(const Op& op) { return op.draws() || (op.expand_fn && !op.infer_fn); }

}  // namespace

Value Recording::run(const Op& op, std::span<const Value> args) {
    vm::Values real;
    for (const Value& v : args) real.push_back(plain(v));
    if (!stopped_.empty() || op.host_fn) {
        if (op.host_fn)
            for (const Value& v : args) {
                if (SymbolicNumbers::holds(v)) decided(v);
                if (v.is_list())
                    for (const Value& item : v.items()) sizes.decide(item);
                sizes.decide(v);
            }
        const vm::Watch unwatched(nullptr);
        return lunaria::run(op, real);
    }
    Step s(Step::Kind::op, op, operands(args), {});
    s.whole = whole ? whole : machine.whole();
    s.effect = op.writes() && !graph::is_layout(op);
    tree.random |= draws(op);
    if (s.effect)
        for (const Value& v : s.args())
            if (v.is_tensor()) stop("a tensor that was made of constants is written in place");
    s.by_content = sizes.by_content(op, args, real);
    vm::Values results = event(std::move(s), [&](vm::Values& values) {
        Value result = lunaria::run(op, real);
        s.list = result.is_list();
        if (s.list)
            values = vm::Values(std::vector<Value>(result.items()));
        else
            values.push_back(std::move(result));
    });
    // Values that the program has dropped are dropped here too before much else is allocated.
    if (++operators_ >= 64 + alive_.size() ||
        thread_allocated_bytes() - swept_at_ >= kSweepBytes + kSweepBytesEach * alive_.size()) {
        sweep();
        operators_ = 0;
        swept_at_ = thread_allocated_bytes();
    }
    const bool list = stopped_.empty() && at_ > 0 ? block_->steps[at_ - 1].list : s.list;
    if (!list) return results[0];
    return std::move(results).list();
}

// Whether the tensor is a constant in an operator's expansion or in its rule.
bool Recording::is_in_code(const Value& tensor) const {
    if (!machine.is_running() || tensor.tensor().parameter()) return false;
    return std::ranges::any_of(machine.code().constants, [&](const Value& constant) {
        return constant.is_tensor() && constant.tensor().same_body(tensor.tensor());
    });
}

// Its variables do not belong to this run, and no step asks for them.
void Recording::note_function(const Value& f) {
    if (!functions_.try_emplace(vm::identity_of(f), f).second) return;
    auto note = [&](const auto& self, const Value& v) -> void {
        if (vm::object_as<vm::LocalCell>(v)) foreign_.insert(v.object());
        if (const auto* closure = vm::object_as<vm::Closure>(v))
            for (const Value& c : closure->captures) self(self, c);
    };
    note(note, f);
}

void Recording::raise(const Value& error) {
    exact = true;
    host.raise(outward(error));
    std::abort();  // not reached: GCC does not know that the virtual function never returns
}

const Step* Recording::next_known() const {
    if (at_ < block_->steps.size()) return &block_->steps[at_];
    return block_->next.empty() ? nullptr : &block_->next[0]->steps[0];
}

void Recording::rewind(Block& block, size_t at, int32_t slots, vm::Values& values) {
    block_ = &block;
    at_ = at + 1;
    const Step& begin = block.steps[at];
    const int32_t first = begin.expected[0].slot;
    std::erase_if(slot_of_, [&](const auto& entry) { return entry.second >= first; });
    std::erase_if(alive_, [&](int32_t slot) { return slot >= first; });
    for (size_t k = static_cast<size_t>(first); k < values_.size(); ++k) values_[k] = Value();
    slots_ = slots;
    know(begin, values);
}

int32_t Recording::slot_of(const Value& v) const {
    const auto found = slot_of_.find(vm::identity_of(v));
    return found == slot_of_.end() ? -1 : found->second;
}

}  // namespace lunaria::trace
