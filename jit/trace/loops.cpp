#include "jit/trace/loops.h"

#include <algorithm>
#include <unordered_set>

#include "jit/language.h"
#include "jit/trace/recording.h"
#include "jit/vm/handlers.h"

namespace lunaria::trace {

namespace {

// The blocks of a function and their successors.
class Flow {
  public:
    explicit Flow(const vm::Code& code) : code_(code), next_(code.blocks.size()), before_(code.blocks.size()) {
        for (size_t b = 0; b < code.blocks.size(); ++b) {
            const vm::Instr& last = code.instrs[end(b) - 1];
            const bool branch = last.run == vm::handle_branch;
            if (!branch && last.run != vm::handle_jump) continue;
            for (size_t k = 0; k < (branch ? 2 : 1); ++k) {
                next_[b].push_back(last.target[k]);
                before_[last.target[k]].push_back(static_cast<uint32_t>(b));
            }
        }
    }
    // Calls f(head, blocks of the loop) for each block to which a jump leads back.
    template <class F>
    void for_each_loop(F&& f) const {
        enum : uint8_t { fresh, open, done };
        std::vector<uint8_t> state(next_.size(), fresh);
        std::unordered_map<uint32_t, std::unordered_set<uint32_t>> loops;
        std::vector<std::pair<uint32_t, size_t>> path{{0, 0}};
        state[0] = open;
        while (!path.empty()) {
            auto& [block, k] = path.back();
            if (k == next_[block].size()) {
                state[block] = done;
                path.pop_back();
                continue;
            }
            const uint32_t to = next_[block][k++];
            if (state[to] == open) add_body(loops[to], to, block);
            if (state[to] != fresh) continue;
            state[to] = open;
            path.emplace_back(to, 0);
        }
        for (const auto& [head, body] : loops) f(head, body);
    }
    // The instruction whose result decides the successor of a block; null: it has one successor, or the instruction is
    // in another block.
    const vm::Instr* decider(uint32_t block) const {
        const vm::Instr& last = code_.instrs[end(block) - 1];
        if (last.run != vm::handle_branch) return nullptr;
        const int32_t at = code_.slots[last.slots].at;
        for (size_t i = end(block) - 1; i-- > code_.blocks[block].start;) {
            const vm::Instr& one = code_.instrs[i];
            if (one.out >= 0 && one.out <= at && at < one.out + std::max(one.results, 1)) return &one;
        }
        return nullptr;
    }
    const std::vector<uint32_t>& next(uint32_t block) const { return next_[block]; }

    // The parameters of the head that may have other values when an iteration has come back to it.
    std::vector<bool> varying(uint32_t head, const std::unordered_set<uint32_t>& body) const {
        // By register of a parameter: the parameter of the head whose value at the start of the iteration it still has.
        std::unordered_map<int32_t, int32_t> source;
        constexpr int32_t kOther = -1;
        for (int32_t r : code_.blocks[head].parameters) source[r] = r;
        std::unordered_set<int32_t> others;
        for (bool changes = true; changes;) {
            changes = false;
            for (uint32_t block : body)
                for_each_edge(block, [&](uint32_t to, const vm::Slot& list) {
                    if (!body.contains(to)) return;
                    for (size_t k = 0; k < code_.blocks[to].parameters.size(); ++k) {
                        const vm::Slot& s = code_.slots[static_cast<size_t>(list.at) + k];
                        const bool register_of_its =
                            s.items < 0 && s.at >= 0 && std::ranges::count(code_.blocks[block].parameters, s.at) > 0;
                        const auto known = source.find(s.at);
                        if (register_of_its && known == source.end()) continue;
                        const int32_t from = register_of_its ? known->second : kOther;
                        const int32_t parameter = code_.blocks[to].parameters[k];
                        if (to == head) {
                            changes |= from != parameter && others.insert(parameter).second;
                            continue;
                        }
                        const auto [entry, fresh] = source.try_emplace(parameter, from);
                        if (!fresh && entry->second != from && entry->second != kOther) {
                            entry->second = kOther;
                            changes = true;
                        }
                        changes |= fresh;
                    }
                });
        }
        std::vector<bool> result;
        for (int32_t r : code_.blocks[head].parameters) result.push_back(others.contains(r));
        return result;
    }

  private:
    template <class F>
    void for_each_edge(uint32_t block, F&& f) const {
        const vm::Instr& last = code_.instrs[end(block) - 1];
        if (last.run == vm::handle_jump) return f(last.target[0], code_.slots[last.slots]);
        for (uint32_t k = 0; last.run == vm::handle_branch && k < 2; ++k)
            f(last.target[k], code_.slots[last.slots + k + 1]);
    }
    size_t end(size_t block) const {
        return block + 1 < code_.blocks.size() ? code_.blocks[block + 1].start : code_.instrs.size();
    }
    // Adds all blocks from which the head is reached without passing it.
    void add_body(std::unordered_set<uint32_t>& body, uint32_t head, uint32_t last) const {
        body.insert(head);
        std::vector<uint32_t> rest{last};
        while (!rest.empty()) {
            const uint32_t block = rest.back();
            rest.pop_back();
            if (!body.insert(block).second) continue;
            rest.insert(rest.end(), before_[block].begin(), before_[block].end());
        }
    }

    const vm::Code& code_;
    std::vector<std::vector<uint32_t>> next_, before_;
};

// A parameter that nothing reads is dropped by the first instruction.
bool is_read(const vm::Machine& m, const vm::Instr& first, int32_t parameter) {
    const vm::Code& code = m.code();
    const auto kills = code.kills.begin() + first.kills;
    if (std::find(kills, kills + first.kill_count, parameter) == kills + first.kill_count) return true;
    const auto uses = [&](auto& self, const vm::Slot& s) -> bool {
        if (s.items < 0) return s.at == parameter;
        return std::ranges::any_of(m.items(s), [&](const vm::Slot& item) { return self(self, item); });
    };
    for (uint32_t k = 0; k < first.slot_count; ++k)
        if (uses(uses, m.slot(first, k))) return true;
    return false;
}

bool is_same_value(const Value& a, const Value& b) {
    if (a.is_list() && b.is_list())
        return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(), is_same_value);
    const SymbolicNumber *x = symbolic_number(a), *y = symbolic_number(b);
    return x && y ? x->slot == y->slot : !x && !y && identical(a, b);
}

// Another handle of the same elements, which belongs to this iteration.
Value own_body(const Value& v) { return v.is_tensor() ? Value(v.tensor().apart()) : v; }

}  // namespace

const Loops::Heads& Loops::heads_of(const vm::Machine& m) {
    const vm::Code& code = m.code();
    std::unique_ptr<const Heads>& known = heads_[&code];
    if (known) return *known;
    auto heads = std::make_unique<Heads>();
    heads->owner = m.owner();
    const Flow flow(code);
    flow.for_each_loop([&](uint32_t head, const std::unordered_set<uint32_t>& body) {
        heads->blocks[&code.instrs[code.blocks[head].start]] = head;
        heads->varying[head] = flow.varying(head, body);
        for (uint32_t block : body)
            if (std::ranges::any_of(flow.next(block), [&](uint32_t to) { return !body.contains(to); }))
                if (const vm::Instr* decider = flow.decider(block)) heads->deciders[decider].push_back(head);
    });
    known = std::move(heads);
    return *known;
}

// Ends loops whose functions have returned, or that began anew in the same place.
void Loops::leave(const vm::Machine& m, const vm::Instr& i) {
    const size_t frames = m.frame_count();
    const bool enters = &i == &m.code().instrs[m.code().blocks[0].start];
    while (!loops_.empty() && (loops_.back().frames > frames || (enters && loops_.back().frames == frames)))
        loops_.pop_back();
}

bool Loops::step(vm::Machine& m, const vm::Instr& i) {
    if (!r_.records() || &m != &r_.machine) return false;
    if (!loops_.empty()) note(m, i);
    const vm::Code& code = m.code();
    if (code_ != &code) {
        code_ = &code;
        const Heads& heads = heads_of(m);
        here_ = heads.blocks.empty() ? nullptr : &heads;
    }
    if (!here_) return r_.has_numbers() && compute(m, i);
    if (const auto head = here_->blocks.find(&i); head != here_->blocks.end()) arrive(m, i, head->second);
    if (const auto decider = here_->deciders.find(&i); decider != here_->deciders.end()) {
        position_ = r_.position();
        deciding_ = decider->second;
        deciding_frames_ = m.frame_count();
    }
    return r_.has_numbers() && compute(m, i);
}

// Notes what the previous instruction asked for, and what this one may change.
void Loops::note(vm::Machine& m, const vm::Instr& i) {
    const lua::Facts& facts = lua::facts(i.op);
    leave(m, i);
    if (!deciding_.empty()) {
        if (r_.position() > position_)
            for (Loop& loop : loops_)
                loop.decided |= loop.frames == deciding_frames_ && std::ranges::count(deciding_, loop.block) > 0;
        deciding_.clear();
    }
    bool changes = facts.access == lua::Access::writes_cell;
    if (facts.calls) {
        const vm::Slot& callee = m.slot(i, facts.ordered ? 1 : 0);
        changes = callee.items < 0 && vm::object_as<vm::NativeFunction>(m.get(callee));
    }
    if (changes)
        for (Loop& loop : loops_) loop.changed = true;
}

void Loops::wrote(int32_t table) {
    for (Loop& loop : loops_) loop.changed |= table < loop.tables;
}

Loops::Seen Loops::seen(const Value& v) const {
    Seen one;
    one.kind = vm::shown(v).kind();
    if (const auto* number = symbolic_number(v))
        one.slot = number->slot;
    else if (v.is_tensor())
        one.identity = vm::identity_of(v);
    else
        one.value = v;
    if (v.is_tensor()) {
        one.type = {v.tensor().dtype(), v.tensor().shape()};
        one.slot = r_.slot_of(v);
    }
    return one;
}

bool Loops::is_same(const Seen& before, const Value& now) const {
    const Seen one = seen(now);
    if (one.kind != before.kind || one.slot != before.slot) return false;
    return one.slot >= 0 || (one.identity == before.identity && is_same_value(one.value, before.value));
}

// Whether an iteration recorded for the earlier value also fits this one: a number of the same kind, or a tensor of the
// same type that an operator has made since, so that nothing else can refer to it.
bool Loops::is_alike(int32_t since, const Seen& before, const Value& now) const {
    if (now.marks() || vm::shown(now).kind() != before.kind) return false;
    if (vm::shown(now).is_number()) return true;
    if (!now.is_tensor()) return false;
    const Seen one = seen(now);
    if (one.slot < since || !r_.is_made(one.slot) || now.tensor().parameter()) return false;
    if (one.type.dtype != before.type.dtype || one.type.shape.rank() != before.type.shape.rank()) return false;
    return one.type.shape == before.type.shape || r_.sizes.at(one.slot);
}

void Loops::begin_turn(vm::Machine& m, const vm::Instr& i, Loop& loop) {
    loop.seen.clear();
    for (int32_t r : m.code().blocks[loop.block].parameters)
        loop.seen.push_back(is_read(m, i, r) ? seen(m.reg(r)) : Seen());
    loop.slots = r_.slots();
    loop.tables = r_.tables.count();
    loop.ever_changed |= loop.changed || loop.effects != r_.effects();
    loop.effects = r_.effects();
    loop.changed = loop.decided = false;
}

void Loops::arrive(vm::Machine& m, const vm::Instr& i, uint32_t block) {
    leave(m, i);
    const auto found = std::find_if(loops_.rbegin(), loops_.rend(), [&](const Loop& loop) {
        return loop.frames == m.frame_count() && loop.code == &m.code() && loop.block == block;
    });
    if (found == loops_.rend()) {
        Loop& loop = loops_.emplace_back();
        loop.frames = m.frame_count();
        loop.code = &m.code();
        loop.block = block;
        loop.effects = r_.effects();
        begin_turn(m, i, loop);
        loop.first = loop.seen;
        loop.first_slots = loop.slots;
        return;
    }
    loops_.erase(found.base(), loops_.end());
    Loop& loop = loops_.back();
    if (loop.in && close(m, loop)) return rewind(m, loop);
    if (loop.in || !open(m, i, loop)) loop.in = nullptr;
    begin_turn(m, i, loop);
}

bool Loops::may_open(const vm::Machine& m, const Loop& loop) const {
    return !loop.changed && loop.effects == r_.effects() && r_.catching == 0 && m.depth == 0 &&
           loop.code->graph->order == 0 && !m.region();
}

// The slot from which on only the parameters can refer to tensors. That is certain for tensors of the last iteration,
// and for those of earlier iterations if no object has come in between that may refer to them.
int32_t Loops::made_since(const vm::Machine& m, const Loop& loop) const {
    if (loop.ever_changed) return loop.slots;
    const auto& parameters = m.code().blocks[loop.block].parameters;
    for (size_t k = 0; k < parameters.size(); ++k) {
        const Value& v = m.get({parameters[k], -1, false});
        const bool holds = v.is_list() || (v.kind() == Value::Kind::object && !symbolic_number(v));
        if (holds && !is_same(loop.first[k], v)) return loop.slots;
    }
    return loop.first_slots;
}

// Chooses the parameters that differ between iterations; false: one differs in a way that cannot be recorded.
bool Loops::choose(const vm::Machine& m, const vm::Instr& i, const Loop& loop, std::vector<int64_t>& places) const {
    const auto& parameters = m.code().blocks[loop.block].parameters;
    const std::vector<bool>& varying = here_->varying.at(loop.block);
    const int32_t since = made_since(m, loop);
    std::unordered_set<int32_t> tensors;
    for (size_t k = 0; k < parameters.size(); ++k) {
        if (!is_read(m, i, parameters[k])) continue;
        const Value& v = m.get({parameters[k], -1, false});
        const int32_t slot = seen(v).slot;
        if (v.is_tensor() && slot >= 0 && !tensors.insert(slot).second) return false;
        if (varying[k] && is_alike(since, loop.seen[k], v))
            places.push_back(static_cast<int64_t>(k));
        else if (!is_same(loop.seen[k], v))
            return false;
    }
    return true;
}

Value Loops::operands(vm::Machine& m, const std::vector<int32_t>& parameters, const std::vector<int64_t>& places) {
    std::vector<Value> values;
    for (int64_t k : places) values.push_back(r_.operand(m.reg(parameters[static_cast<size_t>(k)])));
    return Value::list(std::move(values));
}

bool Loops::open(vm::Machine& m, const vm::Instr& i, Loop& loop) {
    Step s(Step::Kind::loop, {Value(static_cast<int64_t>(loop.frames))});
    s.table = static_cast<int32_t>(loop.block);
    const Step* known = r_.next_known();
    if (known && !is_loop_of(*known, s)) return false;
    if (!may_open(m, loop) || (!known && !loop.decided)) return false;
    const auto& parameters = m.code().blocks[loop.block].parameters;
    std::vector<int64_t> places;
    bool fits = true;
    if (!known)
        fits = choose(m, i, loop, places);
    else
        for (const Value& place : known->args()[1].items()) places.push_back(place.integer());
    if (!fits || places.empty()) return false;
    s.node->args.push_back(Value::ints(places));
    s.node->args.push_back(operands(m, parameters, places));
    const vm::Values results = r_.event(std::move(s), [&](vm::Values& values) {
        for (int64_t k : places) values.push_back(own_body(r_.plain(m.reg(parameters[static_cast<size_t>(k)]))));
    });
    if (!r_.records()) return false;
    loop.in = &r_.block();
    loop.at = r_.at() - 1;
    loop.fixed.clear();
    for (size_t k = 0; k < parameters.size(); ++k)
        if (is_read(m, i, parameters[k]) && !std::ranges::count(places, static_cast<int64_t>(k)))
            loop.fixed.emplace_back(parameters[k], m.reg(parameters[k]));
    for (size_t k = 0; k < places.size(); ++k) m.reg(parameters[static_cast<size_t>(places[k])]) = results[k];
    loop.places = std::move(places);
    loop.known = {r_.slots(), r_.tables.count(), r_.questions.answers(), r_.sizes.known()};
    return true;
}

// Whether the iteration ends with values with which it could begin: then the step `again` is recorded.
bool Loops::close(vm::Machine& m, Loop& loop) {
    if (!may_open(m, loop)) return false;
    const Step& begin = loop.in->steps[loop.at];
    const auto& parameters = m.code().blocks[loop.block].parameters;
    for (const auto& [at, value] : loop.fixed)
        if (!is_same_value(value, m.reg(at))) return false;
    std::unordered_set<int32_t> tensors;
    bool fits = true;
    for (size_t k = 0; k < loop.places.size(); ++k) {
        const Value& v = m.reg(parameters[static_cast<size_t>(loop.places[k])]);
        const Expected& e = begin.expected[k];
        if (v.marks()) return false;
        if (e.what == Expected::What::number) {
            if (vm::shown(v).kind() != e.constant.kind()) return false;
            continue;
        }
        if (!v.is_tensor() || v.tensor().parameter()) return false;
        const Seen now = seen(v);
        if (now.slot < begin.expected[0].slot || !r_.is_made(now.slot)) return false;
        if (!tensors.insert(now.slot).second) return false;
        const Shape& shape = e.type.shape;
        if (now.type.dtype != e.type.dtype || now.type.shape.rank() != shape.rank()) return false;
        const bool same = e.open || now.type.shape == shape;
        if (!same && !r_.sizes.at(now.slot)) return false;
        fits &= same;
    }
    Step s(Step::Kind::again, {begin.args()[0], operands(m, parameters, loop.places)});
    s.table = begin.table;
    const vm::Values results = r_.event(std::move(s), [&](vm::Values& values) { values.push_back(Value(fits)); });
    return r_.records() && results[0].boolean();
}

// Takes the recording back to the start of the iteration, with other values.
void Loops::rewind(vm::Machine& m, Loop& loop) {
    const auto& parameters = m.code().blocks[loop.block].parameters;
    vm::Values values;
    for (int64_t k : loop.places) values.push_back(own_body(r_.plain(m.reg(parameters[static_cast<size_t>(k)]))));
    const Known& known = loop.known;
    r_.tables.count() = known.tables;
    r_.questions.answers() = known.found;
    r_.sizes.restore(known.sizes);
    r_.rewind(*loop.in, loop.at, known.slots, values);
    for (size_t k = 0; k < loop.places.size(); ++k)
        m.reg(parameters[static_cast<size_t>(loop.places[k])]) = std::move(values[k]);
    loop.changed = false;
}

// Numeric loops with a symbolic number of iterations: the number of remaining ones is an ordinary number.
bool Loops::compute(vm::Machine& m, const vm::Instr& i) {
    static const Op &prepares = lua::primitive("for_prepare"), &asks = lua::primitive("for_more"),
                    &counts = lua::primitive("for_count"), &turns = lua::primitive("for_turns"),
                    &equal = lua::primitive("equal"), &sub = lua::primitive("sub");
    if (i.op != &prepares && i.op != &asks && i.op != &counts) return false;
    vm::Values args;
    for (uint32_t k = 0; k < i.slot_count; ++k) {
        args.push_back(m.operand(i, k));
        if (args.back().marks() || !vm::shown(args.back()).is_number()) return false;
    }
    const auto is_integer = [&](size_t k) { return vm::shown(args[k]).kind() == Value::Kind::integer; };
    if (i.op == &prepares) {
        // Loops within derivatives are recorded iteration by iteration: one guard tells their number.
        if (m.depth > 0 || m.code().graph->order > 0) return false;
        if (!is_integer(0) || !is_integer(2) || symbolic_number(args[2]) || args[2].integer() == 0) return false;
        if (!symbolic_number(args[0]) && !symbolic_number(args[1])) return false;
        Value count = r_.numbers.compute(turns, args);
        m.set(i, Value::list({args[0], args[1], args[2], std::move(count)}));
        return true;
    }
    const Value& count = args.back();
    if (!symbolic_number(count) || (i.op == &asks && !is_integer(0))) return false;
    const Value operands[] = {count, Value(i.op == &asks ? 0 : 1)};
    if (i.op == &counts)
        m.set(i, r_.numbers.compute(sub, operands));
    else
        m.set(i, Value(!r_.numbers.compute(equal, operands).boolean()));
    return true;
}

}  // namespace lunaria::trace
