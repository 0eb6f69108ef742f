#include "interpreter/jit/recorder.h"

#include <algorithm>

#include "core/base/interrupt.h"
#include "core/tensor/element.h"
#include "interpreter/bindings/values.h"
#include "interpreter/host/lua_reference.h"
#include "interpreter/jit/placeholders.h"
#include "interpreter/jit/region.h"
#include "interpreter/jit/size_pattern.h"
#include "jit/language.h"

namespace lunaria::jit {

namespace {

// Allocated before values are looked through for those that are not used any more, in all and for each of them.
constexpr uint64_t kSweepBytes = 2u << 20, kSweepBytesEach = 256;

}  // namespace

Value constant_operand(Value v) {
    v.set_marks(0);
    return v;
}

Recorder::Recorder(LuaHost& host, const Natives& natives, const Call& call, Tree& tree, Progress& progress,
                   const Limits& limits)
    : Watcher(host),
      host_(host),
      natives_(natives),
      call_(call),
      tree_(tree),
      progress_(progress),
      limits_(limits),
      machine_(*this),
      block_(&tree.root) {
    if (!progress_.effects) {
        // Nothing happened yet that could not happen again.
        progress_.done = 0;
        progress_.observed = progress_.failed = false;
    }
    size_t position = 0;
    for (size_t b = 0; b < progress_.path.size() && position < progress_.done; ++b)
        for (const Step& step : progress_.path[b]->steps) {
            if (position++ == progress_.done) break;
            if (step.kind == Step::Kind::make)
                tables_.replay(step.table, progress_.slots[static_cast<size_t>(step.expected[0].slot)]);
        }
}

vm::Values Recorder::record(const Value& f) {
    const vm::Watch watch(this);
    LuaHost::Running running(host_, machine_);
    if (vm::object_as<vm::Closure>(f)) note_function(f);
    ask(Step(Step::Kind::count, {}), [&](lua_State* L) { lua_pushinteger(L, call_.count); });
    vm::Values args;
    for (int i = 0; i < call_.count; ++i)
        args.push_back(ask(Step(Step::Kind::argument, {Value(i)}), [&](lua_State* L) {
            lua_rawgeti(L, LUA_REGISTRYINDEX, call_.table);
            lua_rawgeti(L, -1, i + 1);
            lua_remove(L, -2);
        }));
    vm::Values results = machine_.run(f, args);
    std::vector<Value> values;
    for (const Value& v : results) values.push_back(given(v));
    event(Step(Step::Kind::finish, {Value::list(std::move(values))}), [](vm::Values&) {});
    for (Value& v : results) v = outward(v);
    return results;
}

void Recorder::stop(std::string why) {
    if (!stopped_.empty()) return;
    stopped_ = described(machine_.span(), why);
    if (effects_ > 0) return tables_.settle();
    restart_ = true;
    throw state_error("graph mode", stopped_);
}

// The results of a step that the runner has carried out.
vm::Values Recorder::repeat(Step& s, const std::function<void(vm::Values&)>& body) {
    if (at_ == block_->steps.size()) {
        block_ = progress_.path.at(path_++);
        at_ = 0;
    }
    Step& known = block_->steps[at_];
    sizes_.lift(known, s);
    if (!same_event(known, s))
        throw state_error("graph mode", str("the function does something else (", name_of(s.kind), " instead of ",
                                            name_of(known.kind), ") when it is done again"));
    vm::Values results = known_results(progress_, known, values_);
    if (known.kind == Step::Kind::op && !known.effect) size_placeholders(progress_, known, results, body);
    effects_ += known.effect;
    know(known, results);
    count_writes(known);
    for (const Expected& e : known.expected)
        if (e.what == Expected::What::tensor && static_cast<size_t>(e.slot) < progress_.handles.size() &&
            !progress_.handles[static_cast<size_t>(e.slot)].is_nil())
            handles_.emplace(vm::identity_of(values_[static_cast<size_t>(e.slot)]),
                             progress_.handles[static_cast<size_t>(e.slot)]);
    ++at_;
    ++position_;
    if (known.fails) raise(results[0]);
    return results;
}

// Those of the step at which the runner stopped, since something new came of it.
vm::Values Recorder::take_observed(Step& s) {
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

vm::Values Recorder::event(Step&& s, const std::function<void(vm::Values&)>& body) {
    vm::Values results;
    if (!stopped_.empty()) {
        forget();
        Unwatched unwatched;
        body(results);
        return results;
    }
    if (position_ < progress_.done) return repeat(s, body);
    pointers_.clear();
    s.node->span = machine_.span();
    s.direct = s.kind == Step::Kind::call && machine_.caller().empty();
    s.method = s.kind == Step::Kind::call && machine_.calls_method();
    s.late = effects_ > 0;
    if (effects_ > 0 || s.effect) {
        sweep();
        s.live = alive_;
        live_ += s.live.size();
    }
    effects_ += s.effect;
    const bool observed = progress_.observed && position_ == progress_.done;
    std::vector<uint32_t> versions;
    if (s.effect && !observed)
        for (const int32_t slot : s.live) versions.push_back(version_at(slot));
    if (observed) {
        results = take_observed(s);
    } else if (catching_ > 0) {
        s.fails = !attempt(s.span(), body, results);
    } else {
        Unwatched unwatched;
        body(results);
    }
    for (size_t k = 0; k < versions.size(); ++k)
        if (version_at(s.live[k]) != versions[k]) s.written.push_back(s.live[k]);
    if (s.fails && catching_ == 0) host_.raise(results[0]);
    const bool fails = s.fails;
    write(std::move(s), results);
    if (fails) raise(results[0]);
    return results;
}

// False: it raised an error, which is the result.
bool Recorder::attempt(const ir::Span& span, const std::function<void(vm::Values&)>& body, vm::Values& results) {
    Protected outcome = host_.call_protected([&] {
        Unwatched unwatched;
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
        host_.raise(outcome.error);
    }
    results = {std::move(outcome.error)};
    return false;
}

Value Recorder::ask(Step step, const std::function<void(lua_State*)>& push) {
    vm::Values results = event(std::move(step), [&](vm::Values& values) {
        lua_State* L = host_.lua();
        luaL_checkstack(L, 8, "graph mode");
        push(L);
        pointers_.push_back(lua_topointer(L, -1));
        values.push_back(host_.to_value(L, -1));
        if (values[0].is_tensor() && stopped_.empty())
            handles_.emplace(vm::identity_of(values[0]), host_.reference(L, -1));
        lua_pop(L, 1);
    });
    return results[0];
}

namespace {

bool all_fit(const Step& step, bool fails, const vm::Values& results, std::span<const Value> slots) {
    if (step.sizes && !step.sizes->fits(slots)) return false;
    const size_t count = step.sizes ? 1 : step.expected.size();
    if (count != results.size() || step.fails != fails) return false;
    for (size_t k = 0; k < results.size(); ++k)
        if (!fits(step.expected[k], results[k], slots)) return false;
    return true;
}

std::string describe_event(const Step& step) {
    std::string text(name_of(step));
    if (step.kind == Step::Kind::argument) text += str(" ", step.args()[0].integer() + 1);
    if (step.kind == Step::Kind::read)
        text = step.args()[1].is_node() ? "a field" : str("field ", to_string(step.args()[1]));
    return described(step.span(), text);
}

// Whether the step leaves open what the other has for a single value.
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

// What calls before have answered, the first of them one by one.
std::string in_words(std::span<const Step* const> steps) {
    constexpr size_t kMostTold = 4;
    std::string text;
    for (size_t i = 0; i < std::min(steps.size(), kMostTold); ++i)
        text += (text.empty() ? "" : "; ") + in_words(steps[i]->expected);
    if (steps.size() > kMostTold) text += str("; and ", steps.size() - kMostTold, " more");
    return text;
}

}  // namespace

// Where a tensor or table is one that is known already, by a slot or as itself, it is not enough that it fits the type.
void Recorder::write(Step s, vm::Values& results) {
    auto known_as = [&](const Step& step) {
        if (!all_fit(step, s.fails, results, values_)) return false;
        for (size_t k = 0; k < results.size(); ++k) {
            const auto what = step.expected[k].what;
            if (what != Expected::What::tensor && what != Expected::What::table) continue;
            const void* identity = vm::identity_of(results[k]);
            if (slot_of_.contains(identity) || (what == Expected::What::table && tree_.tables.contains(identity)))
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
        sizes_.lift(known, s);
        if (!same_event(known, s)) return stop("it does something else though all that it reads is the same");
        if (known_as(known)) return follow(known);
        block_->split(at_);
    }
    if (!block_->next.empty()) {
        sizes_.lift(block_->next[0]->steps[0], s);
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
        make_room(tree_, *block_, limits_);
        ++tree_.branches;
        Block& way = block_->add_way();
        growth_.begin(*block_, &way);
        block_ = &way;
        block_->used = ++tree_.clock;
        at_ = 0;
    } else {
        s.expected = expect(s, results, {});
    }
    if (live_ > limits_.live) return stop("it makes too many values behind its first effect");
    growth_.begin(*block_, nullptr, at_);
    ++growth_.steps;
    if (++tree_.steps > limits_.steps && (growth_.steps > limits_.steps / 2 || !forget_oldest(tree_, *block_)))
        return stop(str("it has more than ", limits_.steps, " steps"));
    s.looked = sizes_.looked();
    block_->append(std::move(s));
    know(block_->steps.back(), results);
    ++at_;
    ++position_;
    sizes_.leave_behind(block_->steps.back());
}

void Recorder::know(const Step& step, vm::Values& results) {
    sizes_.enter(step, results);
    for (size_t k = 0; k < step.expected.size(); ++k) {
        const Expected& e = step.expected[k];
        if (e.what == Expected::What::constant && vm::object_as<vm::Closure>(results[k])) note_function(results[k]);
        if (e.typed) {
            sizes_.decided(e.slot);
        }
        if (e.what == Expected::What::constant || e.what == Expected::What::same) continue;
        const auto at = static_cast<size_t>(e.slot);
        if (values_.size() <= at) {
            values_.resize(at + 1);
            nodes_.resize(at + 1);
        }
        nodes_[at] = e.node;
        const bool open = sizes_.closed() ? e.what == Expected::What::tensor && sizes_.follow(step) : e.open;
        sizes_.note(e.slot, open, step.kind != Step::Kind::op || step.by_content ? &results[k] : nullptr);
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

void Recorder::sweep() {
    std::erase_if(alive_, [&](int32_t slot) {
        Value& v = values_[static_cast<size_t>(slot)];
        if (!v.is_tensor() || v.tensor().body()->refs.load(std::memory_order_relaxed) != 1) return false;
        slot_of_.erase(v.tensor().body());
        v = Value();
        return true;
    });
}

void Recorder::forget() {
    if (weak_handles_ != LUA_NOREF) return;
    lua_State* L = host_.lua();
    luaL_checkstack(L, 6, "tensors");
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "v");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    for (const auto& [body, handle] : handles_) {
        if (handle.is_nil()) continue;
        host_.push(L, handle);
        lua_rawsetp(L, -2, body);
    }
    weak_handles_ = luaL_ref(L, LUA_REGISTRYINDEX);
    handles_.clear();
    values_.clear();
    alive_.clear();
    slot_of_.clear();
}

Recorder::~Recorder() {
    *self_ = nullptr;
    luaL_unref(host_.lua(), LUA_REGISTRYINDEX, weak_handles_);
}

Value Recorder::operand(const Value& v) {
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
    if (tables_.find(v)) stop("a table that it makes is used in a way that cannot be followed");
    return constant_operand(v);
}

std::vector<Value> Recorder::operands(std::span<const Value> values) {
    std::vector<Value> list;
    for (const Value& v : values) list.push_back(operand(v));
    return list;
}

Value Recorder::given(const Value& v) {
    if (v.kind() != Value::Kind::object || symbolic_number(v)) return operand(v);
    if (OwnTables::Own* own = tables_.find(v)) return node_at(tables_.give_away(*own));
    if (tables_.goes_away(v) && !slot_of_.contains(vm::identity_of(v)))
        stop("a table that it makes and that contains itself is given away");
    const bool function = vm::object_as<vm::Closure>(v) && !functions_.contains(vm::identity_of(v));
    if (function || vm::object_as<vm::LocalCell>(v) || vm::object_as<vm::Context>(v) || vm::object_as<vm::Shadow>(v))
        stop("a function that it makes is given away (returned, stored or passed to a function that is not compiled)");
    return operand(v);
}

Value Recorder::plain(const Value& v) {
    if (auto* number = symbolic_number(v)) return number->value;
    if (v.is_list()) {
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(plain(item));
        return Value::list(std::move(items));
    }
    // A function that leaves takes no symbolic numbers with it.
    if (auto* closure = vm::object_as<vm::Closure>(v))
        for (Value& captured : closure->captures) {
            if (symbolic_number(captured)) captured = plain(captured);
            if (auto* cell = vm::object_as<vm::LocalCell>(captured); cell && symbolic_number(cell->get()))
                cell->set(plain(cell->get()));
        }
    return v;
}

Value Recorder::outward(const Value& v) {
    if (!v.is_tensor()) return plain(v);
    if (!stopped_.empty()) {
        forget();
        lua_State* L = host_.lua();
        luaL_checkstack(L, 6, "tensor");
        lua_rawgeti(L, LUA_REGISTRYINDEX, weak_handles_);
        if (lua_rawgetp(L, -1, vm::identity_of(v)) == LUA_TNIL) {
            lua_pop(L, 1);
            host_.push(L, v);
            lua_pushvalue(L, -1);
            lua_rawsetp(L, -3, vm::identity_of(v));
        }
        const Value handle = host_.reference(L, -1);
        lua_pop(L, 2);
        return handle;
    }
    if (const auto known = handles_.find(vm::identity_of(v)); known != handles_.end() && !known->second.is_nil())
        return known->second;
    // From now on Lua has one.
    lua_State* L = host_.lua();
    luaL_checkstack(L, 4, "tensor");
    host_.push(L, v);
    Value handle = host_.reference(L, -1);
    lua_pop(L, 1);
    handles_[vm::identity_of(v)] = handle;
    return handle;
}

Value Recorder::decided(const Value& v) {
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
        if (!questions_.answers().contains(id)) {
            const Value value = number->value;
            plain_value = event(Step(Step::Kind::is, {node_at(number->slot)}),
                                [&](vm::Values& results) { results.push_back(value); })[0];
            questions_.answers()[id] = plain_value;
        }
    }
    plain_value.set_marks(v.marks());
    return plain_value;
}

void Recorder::made(const Value& tensor) {
    if (tensor.is_tensor()) constants_[tensor.tensor().body()] = tensor;
}

Value Recorder::settled(const Value& v) {
    sizes_.decide(v);
    return decided(v);
}

void Recorder::pass_on() {
    if (restart_) throw state_error("graph mode", stopped_);
}

Value Recorder::number_of(const Value& tensor) {
    sizes_.decide(tensor);
    if (!stopped_.empty()) return element(tensor.tensor(), 0);
    Value v = event(Step(Step::Kind::item, {operand(tensor)}),
                    [&](vm::Values& values) { values.push_back(element(tensor.tensor(), 0)); })[0];
    auto* number = symbolic_number(v);
    if (number && number->value.kind() == Value::Kind::number) return v;
    return decided(v);
}

namespace {

// Composite operators may draw numbers in what they consist of.
bool draws(const Op& op) { return op.side_effect == Effect::random || (op.expand_fn && !op.infer_fn); }

}  // namespace

Value Recorder::run(const Op& op, std::span<const Value> args) {
    vm::Values real;
    for (const Value& v : args) real.push_back(plain(v));
    if (!stopped_.empty() || op.host_fn) {
        if (op.host_fn)
            for (const Value& v : args) {
                if (SymbolicNumbers::holds(v)) decided(v);
                if (v.is_list())
                    for (const Value& item : v.items()) sizes_.decide(item);
                sizes_.decide(v);
            }
        Unwatched unwatched;
        return lunaria::run(op, real);
    }
    Step s(Step::Kind::op, op, operands(args), {});
    s.whole = replayed_ ? replayed_ : machine_.whole();
    s.effect = op.side_effect == Effect::state;
    tree_.random |= draws(op);
    if (s.effect)
        for (const Value& v : s.args())
            if (v.is_tensor()) stop("a tensor that was made of constants is written in place");
    s.by_content = sizes_.by_content(op, args, real);
    vm::Values results = event(std::move(s), [&](vm::Values& values) {
        Value result = lunaria::run(op, real);
        s.list = result.is_list();
        if (s.list)
            values = vm::Values(std::vector<Value>(result.items()));
        else
            values.push_back(std::move(result));
    });
    // What the program has dropped is dropped here too before much else has been allocated.
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

}  // namespace lunaria::jit
