#include "interpreter/jit/runner.h"

#include <algorithm>
#include <cstring>

#include "core/ir/text.h"
#include "core/operator/expansion.h"
#include "core/tensor/element.h"
#include "interpreter/bindings/values.h"
#include "interpreter/host/lua_reference.h"
#include "interpreter/jit/hot.h"
#include "interpreter/jit/region.h"
#include "interpreter/jit/size_pattern.h"
#include "interpreter/jit/turns.h"
#include "jit/number.h"

namespace lunaria::jit {

namespace {

class Runner {
  public:
    Runner(LuaHost& host, const Call& call, Tree& tree, bool flat, Progress& progress)
        : host_(host),
          L(call.L),
          call_(call),
          tree_(tree),
          flat_(flat),
          progress_(progress),
          slots_(progress.slots),
          constants_(tree.tables),
          at_(host, call.L, nullptr, &span_) {
        if (slots_.size() < static_cast<size_t>(tree.slots)) slots_.resize(static_cast<size_t>(tree.slots));
        progress_.path.push_back(&tree.root);
    }

    bool run(vm::Values& results) {
        luaL_checkstack(L, 16, "graph mode");
        for (Place here{progress_.path.back()};;) {
            Block* const block = here.block;
            if (here.at == block->steps.size()) {
                if (!choose(here)) return false;
                continue;
            }
            Step& step = block->steps[here.at];
            if (step.kind == Step::Kind::finish) {
                for (const Value& v : step.rest()) results.push_back(outward(step, v));
                return true;
            }
            while (here.region < block->regions.size() && block->regions[here.region]->begin < here.at) ++here.region;
            if (here.region < block->regions.size() && block->regions[here.region]->begin == here.at) {
                Region& stretch = *block->regions[here.region];
                if (is_ready(*block, stretch)) {
                    if (!run(*block, stretch)) return false;
                    here.at = stretch.end;
                    continue;
                }
            }
            while (here.group < block->groups.size() && block->groups[here.group].begin < here.at) ++here.group;
            if (here.group < block->groups.size() && block->groups[here.group].begin == here.at &&
                hold(block->groups[here.group].guards)) {
                const GuardGroup& asked = block->groups[here.group];
                if (!pass_rest(*block, asked)) return false;
                here.at = asked.end;
                continue;
            }
            if (!pass(*block, here.at)) return false;
            finish(step);
            go_on(step, here);
        }
    }

  private:
    // To the step after this one, which is done.
    void go_on(const Step& step, Place& here) {
        if (step.kind == Step::Kind::loop) turns_.begin(step, here);
        ++here.at;
        if (step.kind != Step::Kind::again || !goes_back(step)) return;
        turns_.go_back(step, here);
        if ((++rounds_ & 255) == 0) host_.poll();
    }

    // Goes one of the ways on from a block; false: none of them is that of this call.
    bool choose(Place& here) {
        Block& block = *here.block;
        if (block.next.empty()) return false;
        const Step& first = block.next[0]->steps[0];
        Block* way = nullptr;
        if (asks(first)) {
            const int top = lua_gettop(L);
            push(first);
            for (auto& next : block.next)
                if (accept(next->steps[0].expected[0], -1)) {
                    way = next.get();
                    break;
                }
            lua_settop(L, top);
            if (!way) return false;
        } else {
            vm::Values given;
            const Outcome outcome = carry_out(first, given);
            if (outcome == Outcome::unknown) return false;
            for (auto& next : block.next)
                if (all_fit(next->steps[0], given, outcome)) {
                    way = next.get();
                    break;
                }
            if (!way) return observe(first, std::move(given), outcome);
            bind(way->steps[0], given);
        }
        progress_.path.push_back(way);
        way->used = ++tree_.clock;
        for (const int32_t s : way->dead) slots_[static_cast<size_t>(s)] = Value();
        here = {way};
        finish(way->steps[0]);
        go_on(way->steps[0], here);
        return true;
    }

    // Whether the region runs as a graph. It is compiled when it is run for the first time, whatever the cache of
    // kernels holds: what a program gives must not depend on that.
    bool is_ready(Block& block, Region& region) {
        if (flat_) return false;
        if (region.executable || (region.open && !region.failed)) return true;
        if (region.failed) return false;
        if (!compile(block, region)) tree_.dirty = block.changed = true;
        if (region.executable) make_room(*region.executable);
        return region.executable != nullptr;
    }

    // What the calls before have left as garbage gives its memory to the temporaries of the graph.
    void make_room(const graph::Executable& executable) {
        constexpr size_t kLargeArena = 8u << 20;
        constexpr int kMostKilobytes = 64 << 10;  // of Lua's own: more takes long to go through
        if (executable.stats().arena_bytes >= kLargeArena && lua_gc(L, LUA_GCCOUNT) <= kMostKilobytes)
            lua_gc(L, LUA_GCCOLLECT);
    }

    // Whether these questions are answered as expected; in a loop that is known once they were.
    bool hold(const Guards& guards) {
        if (guards.empty()) return false;
        if (!progress_.steady) return guards.hold(call_.pool);
        bool* const known = progress_.steady->is_of(tree_) ? progress_.steady->known_to_hold(guards) : nullptr;
        if (!known) return false;
        return *known = *known || guards.hold(call_.pool);
    }

    // The steps of a group that it does not ask as one.
    bool pass_rest(Block& block, const GuardGroup& group) {
        for (size_t i : group.guards.rest()) {
            if (pass(block, i)) continue;
            for (size_t k = group.begin; k < i; ++k) finish(block.steps[k]);
            return false;
        }
        progress_.done += group.end - group.begin;
        for (int32_t s : group.drops) slots_[static_cast<size_t>(s)] = Value();
        return true;
    }

    // Carries out a step and keeps what it gives; false where it does not give what it should.
    bool pass(const Block& block, size_t i) {
        const Step& step = block.steps[i];
        if (asks(step)) {
            Steady::Answer* answer = progress_.steady ? progress_.steady->find(block, i) : nullptr;
            if (answer && answer->known) return repeat(step.expected[0], *answer);
            const int top = lua_gettop(L);
            push(step);
            const bool fine = accept(step.expected[0], -1);
            lua_settop(L, top);
            if (answer && fine) note(step.expected[0], *answer);
            return fine;
        }
        if (Value v = compute(step); v && !step.fails && fits(step.expected[0], v, slots_)) {
            if (step.expected[0].slot >= 0) slot(step.expected[0]) = std::move(v);
            return true;
        }
        vm::Values given;
        const Outcome outcome = carry_out(step, given);
        if (outcome == Outcome::unknown) return false;
        if (!all_fit(step, given, outcome)) return observe(step, std::move(given), outcome);
        bind(step, given);
        return true;
    }

    void note(const Expected& e, Steady::Answer& answer) {
        answer.known = true;
        if (e.what == Expected::What::constant || e.what == Expected::What::same) return;
        answer.value = slot(e);
        const auto at = static_cast<size_t>(e.slot);
        if (at < progress_.handles.size()) answer.handle = progress_.handles[at];
    }
    // As if it had been asked for again.
    bool repeat(const Expected& e, const Steady::Answer& answer) {
        if (e.what == Expected::What::constant || e.what == Expected::What::same) return true;
        slot(e) = answer.value;
        if (e.what == Expected::What::table) progress_.tables.insert(vm::identity_of(answer.value));
        if (e.what != Expected::What::tensor) return true;
        if (e.open) progress_.sizes.emplace_back(e.slot, answer.value.tensor().shape());
        progress_.bodies.insert(answer.value.tensor().body());
        if (answer.handle.is_nil()) return true;
        auto& handles = progress_.handles;
        if (handles.size() < slots_.size()) handles.resize(slots_.size());
        handles[static_cast<size_t>(e.slot)] = answer.handle;
        return true;
    }

    // The region's operators at once, after everything in it that may not be as it was.
    bool run(Block& block, Region& region) {
        for (size_t i : hold(region.guards) ? region.guards.rest() : region.first) {
            if (pass(block, i)) continue;
            // Up to there one by one; what comes before it in the region and is no operator has been done.
            const bool observed = std::exchange(progress_.observed, false);
            vm::Values results = std::move(progress_.results);
            if (!one_by_one(block, region.begin, i)) return false;
            progress_.observed = observed;
            progress_.results = std::move(results);
            return false;
        }
        auto& inputs = progress_.inputs;
        auto& outputs = progress_.outputs;
        outputs.resize(region.outputs.size());
        take_inputs(region);
        place(block, region, inputs);
        const graph::Executable* executable = region.executable.get();
        if (region.open) {
            executable = executable_of(block, region, inputs, progress_.numbers);
            if (region.failed) tree_.dirty = block.changed = true;
        }
        const RandomStream random = region.draws ? default_generator().state() : RandomStream();
        bool done = executable != nullptr, written = true, begun = false;
        const auto keep = [&] {
            inputs.clear();
            for (size_t k = 0; k < outputs.size(); ++k) {
                Tensor t = std::move(outputs[k]);
                if (!t) continue;
                slots_[static_cast<size_t>(region.outputs[k])] = Value(std::move(t));
            }
            written = write(block, region, random);
            if (!written) return;
            for (size_t k : region.borrowed) slots_[static_cast<size_t>(region.outputs[k])] = Value();
        };
        const auto use_early = [&](size_t use) {
            begun = true;
            write_early(block, region, region.early[use]);
        };
        try {
            if (executable) executable->run(inputs, outputs, keep, use_early);
        } catch (const std::exception&) {
            // No step fails by its values once a parameter has been updated: it is an interrupt, or there is no memory.
            if (begun) throw;
            // One by one they say which of them it was.
            if (region.draws) default_generator().set_state(random);
            done = false;
        }
        inputs.clear();
        if (!written) return false;
        if (!done && !one_by_one(block, region.begin, region.end)) return false;
        if (done) progress_.done += region.end - region.begin;
        if (!done)
            for (int32_t s : region.inner_drops) slots_[static_cast<size_t>(s)] = Value();
        for (int32_t s : region.drops) slots_[static_cast<size_t>(s)] = Value();
        return true;
    }

    void take_inputs(const Region& region) {
        progress_.inputs.clear();
        progress_.numbers.clear();
        for (int32_t s : region.inputs) progress_.inputs.push_back(slots_[static_cast<size_t>(s)].tensor());
        for (int32_t s : region.numbers) progress_.numbers.push_back(slots_[static_cast<size_t>(s)]);
    }

    // Operators of a region, in their order; what else is there has been done.
    bool one_by_one(Block& block, size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
            if (block.steps[i].kind == Step::Kind::op) {
                if (!pass(block, i)) return false;
                progress_.effects |= block.steps[i].effect;
            }
            ++progress_.done;
        }
        return true;
    }

    // The region's operators that write. They were recorded with operands of these types, so that one only fails when
    // it is interrupted or there is no memory: then the values that the program had at that time are computed again.
    bool write(Block& block, const Region& region, const RandomStream& random) {
        for (size_t i : region.last) {
            if (std::any_of(region.early.begin(), region.early.end(), [&](const auto& e) { return e.step == i; })) {
                progress_.effects = true;
                continue;
            }
            if (pass(block, i)) {
                progress_.effects |= block.steps[i].effect;
                continue;
            }
            const bool observed = std::exchange(progress_.observed, false);
            vm::Values results = std::move(progress_.results);
            if (region.draws) default_generator().set_state(random);
            for (int32_t s : region.outputs) slots_[static_cast<size_t>(s)] = Value();
            for (size_t k = region.begin; k < i; ++k) {
                const Step& step = block.steps[k];
                if (step.kind == Step::Kind::op && !step.effect && !pass(block, k)) return false;
                ++progress_.done;
            }
            progress_.observed = observed;
            progress_.results = std::move(results);
            return false;
        }
        return true;
    }

    // One item of a writer's lists, see Region::Early.
    void write_early(const Block& block, const Region& region, const Region::Early& early) {
        const Step& step = block.steps[early.step];
        for (size_t k : early.use.outputs) slots_[static_cast<size_t>(region.outputs[k])] = Value(progress_.outputs[k]);
        std::vector<Value> args;
        for (const Value& v : step.args())
            args.push_back(v.is_list() ? Value::list({value(v.items()[early.item])}) : value(v));
        lunaria::run(step.op(), args);
        for (size_t k : early.use.outputs) slots_[static_cast<size_t>(region.outputs[k])] = Value();
    }

    // Whether the step only looks at something, which gives one value on the Lua stack.
    static bool asks(const Step& step) { return step.kind <= Step::Kind::next; }

    void push(const Step& step) {
        if (step.object_at > 0) {
            lua_rawgeti(L, call_.kept, step.object_at);
            switch (step.kind) {
                case Step::Kind::read:
                    if (step.key_at > 0)
                        lua_rawgeti(L, call_.kept, step.key_at);
                    else
                        host_.push(L, outward(step, step.args()[1]));
                    lua_rawget(L, -2);
                    return;
                case Step::Kind::metatable:
                    if (!lua_getmetatable(L, -1)) lua_pushnil(L);
                    return;
                case Step::Kind::upvalue:
                    if (!lua_getupvalue(L, -1, static_cast<int>(step.args()[1].integer()))) lua_pushnil(L);
                    return;
                case Step::Kind::length:
                    lua_pushinteger(L, static_cast<lua_Integer>(lua_rawlen(L, -1)));
                    return;
                default:
                    lua_pop(L, 1);
            }
        }
        switch (step.kind) {
            case Step::Kind::count:
                return lua_pushinteger(L, call_.count);
            case Step::Kind::argument:
                return lua_pushvalue(L, call_.first + static_cast<int>(step.args()[0].integer()));
            case Step::Kind::read:
                return push_read(host_, L, constant(step.args()[0]), outward(step, step.args()[1]));
            case Step::Kind::metatable:
                return push_metatable(host_, L, constant(step.args()[0]));
            case Step::Kind::upvalue:
                return push_upvalue(host_, L, constant(step.args()[0]), static_cast<int>(step.args()[1].integer()));
            case Step::Kind::length:
                return lua_pushinteger(L, raw_length(host_, L, constant(step.args()[0])));
            default:
                return push_next(host_, L, constant(step.args()[0]), constant(step.args()[1]));
        }
    }

    // A number or a text of that kind.
    bool accept_number(const Expected& e, int index) {
        const Value::Kind kind = e.constant.kind();
        if (lua_type(L, index) != (kind == Value::Kind::string ? LUA_TSTRING : LUA_TNUMBER)) return false;
        if (kind == Value::Kind::string)
            slot(e) = host_.to_value(L, index);
        else if ((lua_isinteger(L, index) != 0) != (kind == Value::Kind::integer))
            return false;
        else
            slot(e) = kind == Value::Kind::integer ? Value(static_cast<int64_t>(lua_tointeger(L, index)))
                                                   : Value(static_cast<double>(lua_tonumber(L, index)));
        return true;
    }

    // The very value.
    bool accept_constant(const Expected& e, int index) {
        switch (e.constant.kind()) {
            case Value::Kind::nil:
                return lua_isnil(L, index);
            case Value::Kind::boolean:
                return lua_isboolean(L, index) && (lua_toboolean(L, index) != 0) == e.constant.boolean();
            case Value::Kind::integer:
                return lua_isinteger(L, index) && lua_tointeger(L, index) == e.constant.integer();
            case Value::Kind::number: {
                if (lua_type(L, index) != LUA_TNUMBER || lua_isinteger(L, index)) return false;
                const double x = lua_tonumber(L, index), y = e.constant.number();
                return std::memcmp(&x, &y, sizeof x) == 0;
            }
            case Value::Kind::string: {
                if (lua_type(L, index) != LUA_TSTRING) return false;
                size_t size = 0;
                const char* text = lua_tolstring(L, index, &size);
                return e.constant.string() == std::string_view(text, size);
            }
            default:
                return lua_type(L, index) > LUA_TSTRING && lua_topointer(L, index) == e.pointer;
        }
    }

    // A tensor of the type that is none of those before: what was told apart must be told apart.
    bool accept_tensor(const Expected& e, int index) {
        TensorBody** place = State::of(L).memory().handle(lua_touserdata(L, index));
        if (!place || !*place) return false;
        const TensorBody& body = **place;
        if (body.dtype != e.type.dtype || !fits_shape(e, body.shape) || (body.parameter != nullptr) != e.parameter)
            return false;
        if (!progress_.bodies.insert(&body)) return false;
        slot(e) = Value(reinterpret_cast<const Tensor&>(*place));
        if (e.open) progress_.sizes.emplace_back(e.slot, body.shape);
        if (e.handed) {
            auto& handles = progress_.handles;
            if (handles.size() < slots_.size()) handles.resize(slots_.size());
            handles[static_cast<size_t>(e.slot)] = host_.reference(L, index);
        }
        return true;
    }

    bool accept_same(const Expected& e, int index) {
        const Value& other = slot(e);
        if (!other.is_tensor()) return lua_topointer(L, index) == vm::identity_of(other);
        TensorBody** place = State::of(L).memory().handle(lua_touserdata(L, index));
        return place && *place == other.tensor().body();
    }

    bool accept_table(const Expected& e, int index) {
        if (!lua_istable(L, index)) return false;
        const void* pointer = lua_topointer(L, index);
        if (constants_.contains(pointer) || !progress_.tables.insert(pointer)) return false;
        slot(e) = host_.to_value(L, index);
        return true;
    }

    // What is at the stack position, if it is expected; its slot is set.
    bool accept(const Expected& e, int index) {
        index = lua_absindex(L, index);
        switch (e.what) {
            case Expected::What::constant:
                return accept_constant(e, index);
            case Expected::What::number:
                return accept_number(e, index);
            case Expected::What::tensor:
                return accept_tensor(e, index);
            case Expected::What::same:
                return accept_same(e, index);
            case Expected::What::table:
                return accept_table(e, index);
        }
        return false;
    }

    Value& slot(const Expected& e) { return slots_[static_cast<size_t>(e.slot)]; }
    // Of an operand that is no list.
    const Value& constant(const Value& v) { return v.is_node() ? slots_[static_cast<size_t>(v.node()->slot)] : v; }

    Value value(const Value& v) {
        if (!v.is_list()) return constant(v);
        std::vector<Value> items;
        items.reserve(v.items().size());
        for (const Value& item : v.items()) items.push_back(value(item));
        return Value::list(std::move(items));
    }

    // What Lua gets: of a tensor that came from there, or went there, the same handle.
    Value outward(const Step& step, const Value& operand) {
        if (!operand.is_node()) return value(operand);
        const int32_t slot = operand.node()->slot;
        const auto at = static_cast<size_t>(slot);
        if (at < progress_.handles.size() && !progress_.handles[at].is_nil()) return progress_.handles[at];
        const Value& v = slots_[at];
        if (!v.is_tensor() || std::ranges::find(step.again, slot) == step.again.end()) return v;
        auto& handles = progress_.handles;
        if (handles.size() < slots_.size()) handles.resize(slots_.size());
        host_.push(L, v);
        handles[at] = host_.reference(L, -1);
        lua_pop(L, 1);
        return handles[at];
    }

    // What the step is done with: as Lua gets it, one after the other, where it goes out.
    vm::Values operands(const Step& step) {
        vm::Values args;
        args.reserve(step.args().size());
        const bool out = step.kind == Step::Kind::make || step.kind == Step::Kind::raw_set ||
                         step.kind == Step::Kind::set_upvalue || step.kind == Step::Kind::call;
        for (const Value& v : step.args())
            if (!out)
                args.push_back(value(v));
            else if (!v.is_list())
                args.push_back(outward(step, v));
            else
                for (const Value& item : v.items()) args.push_back(outward(step, item));
        return args;
    }

    // What came of a step: its results, or an error, or an error whose text takes doing the step again.
    enum class Outcome : uint8_t { fine, failed, unknown };

    Outcome carry_out(const Step& step, vm::Values& given) {
        span_ = &step.span();
        if (Value v = compute(step)) {
            given.push_back(std::move(v));
            return Outcome::fine;
        }
        vm::Values args = operands(step);
        try {
            switch (step.kind) {
                case Step::Kind::op:
                    given.push_back(lunaria::run(step.op(), args));
                    if (given[0].is_list()) given = vm::Values(std::vector<Value>(given[0].items()));
                    break;
                case Step::Kind::number:
                    given.push_back(compute_plain(host_, step.op(), args));
                    break;
                case Step::Kind::scalar:
                    given.push_back(scalar_tensor(args[0], args[1].dtype()));
                    break;
                case Step::Kind::is:
                    given.push_back(args[0]);
                    break;
                case Step::Kind::item:
                    given.push_back(element(args[0].tensor(), 0));
                    break;
                case Step::Kind::size:
                    given.push_back(Value(args[0].tensor().shape()[static_cast<int>(args[1].integer())]));
                    break;
                case Step::Kind::loop:
                    given.append(args[2].items());
                    break;
                case Step::Kind::index:
                    return protectedly(given, [&] { given.push_back(host_.index(args[0], args[1])); });
                case Step::Kind::compare:
                    return protectedly(
                        given, [&] { given.push_back(Value(host_.compare(step.op().name(), args[0], args[1]))); });
                case Step::Kind::make:
                    given.push_back(make_table(host_, L, args));
                    break;
                case Step::Kind::set_index:
                    return protectedly(given, [&] { host_.set_index(args[0], args[1], args[2]); });
                case Step::Kind::raw_set:
                    host_.raw_set(args[0], args[1], args[2]);
                    break;
                case Step::Kind::set_upvalue: {
                    host_.push(L, args[0]);
                    host_.push(L, args[2]);
                    lua_setupvalue(L, -2, static_cast<int>(args[1].integer()));
                    lua_pop(L, 1);
                    break;
                }
                default: {
                    const Value f = std::move(args.front());
                    args.pop_front();
                    Value error;
                    if (!call_function(host_, f, args, step, given, error)) {
                        given = {std::move(error)};
                        return Outcome::failed;
                    }
                }
            }
        } catch (const Error& e) {
            const Error told = step.whole ? named_after(*step.whole, e) : e;
            given = {Value(described(step.span(), told.what()))};
            return Outcome::failed;
        } catch (const std::exception&) {
            // It is raised again where this step is done again.
            return Outcome::unknown;
        }
        return Outcome::fine;
    }

    // The ends of turns, and arithmetic on two numbers, which most steps on numbers are; nil: it is something else, or
    // fails.
    Value compute(const Step& step) {
        if (step.kind == Step::Kind::again) return Value(turns_.fits(step));
        if (step.kind != Step::Kind::number) return {};
        const std::vector<Value>& operands = step.args();
        if (operands.size() != 2 || !lua::is_number_primitive(step.op())) return {};
        const Value args[] = {constant(operands[0]), constant(operands[1])};
        if (!args[0].is_number() || !args[1].is_number()) return {};
        try {
            return lua::run_number(step.op(), args);
        } catch (const Error&) {
            return {};
        }
    }

    template <class F>
    Outcome protectedly(vm::Values& given, F&& f) {
        vm::Host::Protected outcome = host_.call_protected(f);
        if (outcome.ok) return Outcome::fine;
        given = {std::move(outcome.error)};
        return Outcome::failed;
    }

    bool all_fit(const Step& step, const vm::Values& given, Outcome outcome) const {
        if (step.sizes && !step.sizes->fits(slots_)) return false;
        const size_t count = step.sizes ? 1 : step.expected.size();
        if (given.size() != count || step.fails != (outcome == Outcome::failed)) return false;
        for (size_t k = 0; k < given.size(); ++k)
            if (!fits(step.expected[k], given[k], slots_)) return false;
        return true;
    }

    void bind(const Step& step, vm::Values& given) {
        if (step.sizes) step.sizes->append_numbers(slots_, given);
        for (size_t k = 0; k < given.size(); ++k) {
            const Expected& e = step.expected[k];
            if (e.what == Expected::What::constant || e.what == Expected::What::same) continue;
            if (e.open && step.kind != Step::Kind::op && given[k].is_tensor())
                progress_.sizes.emplace_back(e.slot, given[k].tensor().shape());
            slot(e) = std::move(given[k]);
        }
    }

    bool observe(const Step& step, vm::Values given, Outcome outcome) {
        progress_.effects |= step.effect;
        progress_.observed = true;
        progress_.failed = outcome == Outcome::failed;
        if (progress_.failed)
            progress_.error = std::move(given[0]);
        else
            progress_.results = std::move(given);
        return false;
    }

    void finish(Step& step) {
        ++progress_.done;
        progress_.effects |= step.effect;
        for (int32_t s : step.drops) slots_[static_cast<size_t>(s)] = Value();
    }

    LuaHost& host_;
    lua_State* L;
    const Call& call_;
    Tree& tree_;
    const bool flat_;
    Progress& progress_;
    std::vector<Value>& slots_;
    const std::unordered_set<const void*>& constants_;
    Turns turns_{progress_};
    uint32_t rounds_ = 0;
    const ir::Span* span_ = nullptr;  // of the step that runs
    LuaHost::At at_;
};

}  // namespace

bool run(LuaHost& host, const Call& call, Tree& tree, bool flat, Progress& progress, vm::Values& results) {
    return Runner(host, call, tree, flat, progress).run(results);
}

}  // namespace lunaria::jit
