#include "jit/trace/runner.h"

#include <algorithm>
#include <bit>

#include "core/ir/text.h"
#include "core/operator/expansion.h"
#include "core/random/random.h"
#include "core/run/observer.h"
#include "core/run/placement.h"
#include "core/tensor/element.h"
#include "jit/number.h"
#include "jit/trace/region.h"
#include "jit/trace/size_pattern.h"
#include "jit/trace/symbolic_numbers.h"
#include "jit/trace/turns.h"

namespace lunaria::trace {

namespace {

class Runner {
  public:
    Runner(Outside& outside, Tree& tree, Level level, Progress& progress)
        : outside_(outside),
          host_(outside.host),
          tree_(tree),
          level_(level),
          progress_(progress),
          slots_(progress.slots),
          constants_(tree.tables) {
        if (slots_.size() < static_cast<size_t>(tree.slots)) slots_.resize(static_cast<size_t>(tree.slots));
        progress_.path.push_back(&tree.root);
    }
    ~Runner() { outside_.span = nullptr; }
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;

    bool run(vm::Values& results) {
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
    // Moves to the step after this one, which is done.
    void go_on(const Step& step, Place& here) {
        if (step.kind == Step::Kind::loop) turns_.begin(step, here);
        ++here.at;
        if (step.kind != Step::Kind::again || !goes_back(step)) return;
        turns_.go_back(step, here);
        if ((++rounds_ & 255) == 0) host_.poll();
    }

    // Takes one of the branches at the end of a block; false: none of them fits this call.
    bool choose(Place& here) {
        Block& block = *here.block;
        if (block.next.empty()) return false;
        const Step& first = block.next[0]->steps[0];
        Block* way = nullptr;
        if (asks(first)) {
            bool value = false, handle = false;
            for (const auto& next : block.next) {
                value |= takes_value(next->steps[0].expected[0]);
                handle |= next->steps[0].expected[0].handed;
            }
            Answer answer = ask(first, value, handle);
            for (auto& next : block.next)
                if (accept(next->steps[0].expected[0], answer)) {
                    way = next.get();
                    break;
                }
            if (!way) return false;
        } else {
            vm::Values given;
            const Outcome outcome = carry_out(first, given);
            if (outcome == Outcome::unknown) return false;
            for (auto& next : block.next)
                if (all_fit(host_, next->steps[0], outcome == Outcome::failed, given, slots_)) {
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

    bool waits() const { return level_ == Level::paying; }

    // Whether the region runs as a graph. It is compiled when it runs for the first time, whatever the cache of kernels
    // holds, since a program's results must not depend on the cache: without code for its loops their operators run by
    // themselves, to the same bits, but products are joined alike.
    bool is_ready(Block& block, Region& region) {
        if (level_ == Level::nothing || Observer::sees_all()) return false;
        if (region.executable || (region.open && !region.failed)) return true;
        if (region.failed) return false;
        // Where tensors may lie on ranks, the inputs tell which form is needed.
        if (region.lays_out || has_places()) return true;
        compile_first(block, region);
        return region.executable != nullptr;
    }

    void compile_first(Block& block, Region& region) {
        if (!compile(block, region, waits())) tree_.dirty = block.changed = true;
        constexpr size_t kLargeArena = 8u << 20;
        // Garbage of earlier calls gives its memory to the temporaries of the graph.
        if (region.executable && region.executable->stats().arena_bytes >= kLargeArena) outside_.make_room();
    }

    // The compiled form for the inputs, which are on one device; null where the operators run one by one.
    const graph::Executable* form_for(Block& block, Region& region) {
        if (!region.open) {
            if (!region.executable && !region.failed) compile_first(block, region);
            return place(block, region, progress_.inputs, waits());
        }
        const graph::Executable* executable =
            executable_of(block, region, progress_.inputs, progress_.numbers, waits());
        if (region.failed) tree_.dirty = block.changed = true;
        return executable;
    }

    // Whether these guards hold; in a steady loop they hold if they did once.
    bool hold(const Guards& guards) {
        if (guards.empty()) return false;
        if (!progress_.steady) return outside_.hold(guards);
        bool* const known = progress_.steady->is_of(tree_) ? progress_.steady->known_to_hold(guards) : nullptr;
        if (!known) return false;
        return *known = *known || outside_.hold(guards);
    }

    // The steps of a group whose guards are not asked as one.
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

    // Carries out a step and stores its results; false if they are not as expected.
    bool pass(const Block& block, size_t i) {
        const Step& step = block.steps[i];
        if (step.kind == Step::Kind::count) return step.expected[0].constant.integer() == outside_.count;
        if (asks(step)) {
            Steady::Answer* answer = progress_.steady ? progress_.steady->find(block, i) : nullptr;
            if (answer && answer->known) return repeat(step.expected[0], *answer);
            const Expected& e = step.expected[0];
            Answer found = ask(step, takes_value(e), e.handed);
            const bool fine = accept(e, found);
            if (answer && fine) note(e, *answer);
            return fine;
        }
        if (Value v = compute(step); v && !step.fails && fits(host_, step.expected[0], v, slots_)) {
            if (step.expected[0].slot >= 0) slot(step.expected[0]) = std::move(v);
            return true;
        }
        vm::Values given;
        const Outcome outcome = carry_out(step, given);
        if (outcome == Outcome::unknown) return false;
        if (!all_fit(host_, step, outcome == Outcome::failed, given, slots_))
            return observe(step, std::move(given), outcome);
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
    // Uses the earlier answer as if it had been asked for again.
    bool repeat(const Expected& e, const Steady::Answer& answer) {
        if (e.what == Expected::What::constant || e.what == Expected::What::same) return true;
        slot(e) = answer.value;
        if (e.what == Expected::What::table) progress_.tables.insert(vm::identity_of(answer.value));
        if (e.what != Expected::What::tensor) return true;
        if (e.open) progress_.sizes.emplace_back(e.slot, answer.value.tensor().shape());
        progress_.bodies.insert(answer.value.tensor().body());
        if (!answer.handle.is_nil()) handle_at(e.slot) = answer.handle;
        return true;
    }

    // The region's guards and its steps that are no operators.
    bool pass_others(Block& block, Region& region) {
        for (size_t i : hold(region.guards) ? region.guards.rest() : region.first) {
            if (pass(block, i)) continue;
            // A step has failed: the operators before it run one by one. The other steps before it are done.
            const bool observed = std::exchange(progress_.observed, false);
            vm::Values results = std::move(progress_.results);
            if (!one_by_one(block, region.begin, i)) return false;
            progress_.observed = observed;
            progress_.results = std::move(results);
            return false;
        }
        return true;
    }

    // After the operators: those that did not run at once run one by one, and values that have had their last use go.
    bool finish(Block& block, const Region& region, bool done) {
        if (done) {
            progress_.done += region.end - region.begin;
        } else {
            if (!one_by_one(block, region.begin, region.end)) return false;
            for (int32_t s : region.inner_drops) slots_[static_cast<size_t>(s)] = Value();
        }
        for (int32_t s : region.drops) slots_[static_cast<size_t>(s)] = Value();
        return true;
    }

    // Runs the region's operators at once, after its guards and other steps.
    bool run(Block& block, Region& region) {
        if (!pass_others(block, region)) return false;
        auto& inputs = progress_.inputs;
        auto& outputs = progress_.outputs;
        outputs.resize(region.outputs.size());
        take_inputs(region);
        const bool divided = is_divided(region, inputs);
        const graph::Executable* executable = divided ? nullptr : form_for(block, region);
        const RandomStream random = region.draws ? default_generator().state() : RandomStream();
        bool done = divided || executable != nullptr, written = true, begun = false;
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
        Value told;
        try {
            if (executable) executable->run(inputs, outputs, keep, use_early);
            if (divided)
                done = run_divided(block, region, inputs, progress_.numbers, outputs, [&] {
                    for (size_t use = 0; use < region.early.size(); ++use) use_early(use);
                    keep();
                });
        } catch (const std::exception& e) {
            told = error_of(region.exchanges || (divided && region.divided && region.divided->exchanges()), begun, e);
            // One by one the operators tell which of them failed.
            if (region.draws) default_generator().set_state(random);
            done = false;
        }
        // What was sent is not sent again: the step that failed is known by its place.
        if (!told.is_nil()) host_.raise(told);
        inputs.clear();
        return written && finish(block, region, done);
    }

    // In a handler: the error of a region whose operators do not run again, with the place of the one that failed; nil
    // where they do. Once a parameter has been updated, no step fails by its values: this is an interrupt, or a lack of
    // memory, which is thrown on.
    static Value error_of(bool exchanges, bool begun, const std::exception& e) {
        const auto* error = dynamic_cast<const Error*>(&e);
        if (begun || (exchanges && !error)) throw;
        return exchanges ? Value(described(graph::failed_place(), error->what())) : Value();
    }

    void take_inputs(const Region& region) {
        progress_.inputs.clear();
        progress_.numbers.clear();
        for (int32_t s : region.inputs) progress_.inputs.push_back(slots_[static_cast<size_t>(s)].tensor());
        for (int32_t s : region.numbers) progress_.numbers.push_back(slots_[static_cast<size_t>(s)]);
    }

    // Operators of a region, in their order; the other steps are done.
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

    // Runs the region's operators that write. They were recorded with operands of these types, so that one only fails
    // by an interrupt or a lack of memory: then the values that the program had at that time are computed again.
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
            if (region.exchanges)
                throw state_error("jit", "a variable could not be written, and what was sent is not sent again");
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

    // Whether the step only reads something of the outside.
    static bool asks(const Step& step) { return step.kind <= Step::Kind::next; }
    static bool takes_value(const Expected& e) { return e.what == Expected::What::table; }

    Answer ask(const Step& step, bool value, bool handle) {
        Question q{
            .kind = step.kind, .object_at = step.object_at, .key_at = step.key_at, .value = value, .handle = handle};
        if (step.kind == Step::Kind::count) return outside_.ask(q);
        if (step.kind == Step::Kind::argument) {
            q.position = static_cast<int>(step.args()[0].integer());
            return outside_.ask(q);
        }
        Value key;
        q.object = &constant(step.args()[0]);
        if (step.kind == Step::Kind::upvalue) q.position = static_cast<int>(step.args()[1].integer());
        if (step.kind == Step::Kind::next) q.key = &constant(step.args()[1]);
        if (step.kind == Step::Kind::read) {
            if (step.key_at == 0) key = outward(step, step.args()[1]);
            q.key = &key;
        }
        return outside_.ask(q);
    }

    // Accepts a number or a text of that kind.
    bool accept_number(const Expected& e, const Answer& answer) {
        switch (e.constant.kind()) {
            case Value::Kind::string:
                if (answer.kind != Answer::Kind::text) return false;
                slot(e) = Value(answer.text);
                return true;
            case Value::Kind::integer:
                if (answer.kind != Answer::Kind::integer) return false;
                slot(e) = Value(answer.integer);
                return true;
            default:
                if (answer.kind != Answer::Kind::number) return false;
                slot(e) = Value(answer.number);
                return true;
        }
    }

    // Accepts exactly this value.
    static bool accept_constant(const Expected& e, const Answer& answer) {
        using Kind = Answer::Kind;
        switch (e.constant.kind()) {
            case Value::Kind::nil:
                return answer.kind == Kind::nil;
            case Value::Kind::boolean:
                return answer.kind == Kind::boolean && answer.boolean == e.constant.boolean();
            case Value::Kind::integer:
                return answer.kind == Kind::integer && answer.integer == e.constant.integer();
            case Value::Kind::number:
                return answer.kind == Kind::number &&
                       std::bit_cast<int64_t>(answer.number) == std::bit_cast<int64_t>(e.constant.number());
            case Value::Kind::string:
                return answer.kind == Kind::text && e.constant.string() == answer.text;
            default:
                return answer.kind >= Kind::tensor && answer.identity && answer.identity == e.pointer;
        }
    }

    // Accepts a tensor of the type that differs from all those before: tensors that were distinct in the recording must
    // be distinct.
    bool accept_tensor(const Expected& e, Answer& answer) {
        if (answer.kind != Answer::Kind::tensor) return false;
        const TensorBody& body = *answer.tensor->body();
        if (body.dtype != e.type.dtype || !fits_shape(e, body.shape) || (body.parameter != nullptr) != e.parameter)
            return false;
        if (!progress_.bodies.insert(&body)) return false;
        slot(e) = Value(*answer.tensor);
        if (e.open) progress_.sizes.emplace_back(e.slot, body.shape);
        if (e.handed) handle_at(e.slot) = std::move(answer.handle);
        return true;
    }

    bool accept_same(const Expected& e, const Answer& answer) {
        const Value& other = slot(e);
        if (other.is_tensor())
            return answer.kind == Answer::Kind::tensor && answer.tensor->body() == other.tensor().body();
        return answer.identity && answer.identity == vm::identity_of(other);
    }

    bool accept_table(const Expected& e, Answer& answer) {
        if (answer.kind != Answer::Kind::table) return false;
        if (constants_.contains(answer.identity) || !progress_.tables.insert(answer.identity)) return false;
        slot(e) = std::move(answer.value);
        return true;
    }

    // Checks whether the answer is expected, and sets its slot.
    bool accept(const Expected& e, Answer& answer) {
        switch (e.what) {
            case Expected::What::constant:
                return accept_constant(e, answer);
            case Expected::What::number:
                return accept_number(e, answer);
            case Expected::What::tensor:
                return accept_tensor(e, answer);
            case Expected::What::same:
                return accept_same(e, answer);
            case Expected::What::table:
                return accept_table(e, answer);
        }
        return false;
    }

    Value& handle_at(int32_t slot) {
        auto& handles = progress_.handles;
        if (handles.size() < slots_.size()) handles.resize(slots_.size());
        return handles[static_cast<size_t>(slot)];
    }
    Value& slot(const Expected& e) { return slots_[static_cast<size_t>(e.slot)]; }
    // The value of an operand that is not a list.
    const Value& constant(const Value& v) { return v.is_node() ? slots_[static_cast<size_t>(v.node()->slot)] : v; }

    Value value(const Value& operand) {
        return with_leaves(operand, [&](const Value& v) { return constant(v); });
    }

    // The operand as the outside gets it: for a tensor that came from there, or went there, the same handle.
    Value outward(const Step& step, const Value& operand) {
        if (!operand.is_node()) return value(operand);
        const int32_t slot = operand.node()->slot;
        const auto at = static_cast<size_t>(slot);
        if (at < progress_.handles.size() && !progress_.handles[at].is_nil()) return progress_.handles[at];
        const Value& v = slots_[at];
        if (!v.is_tensor() || std::ranges::find(step.again, slot) == step.again.end()) return v;
        return handle_at(slot) = outside_.handle_of(v);
    }

    // The operands of the step: as the outside gets them, in order, if the step goes out.
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

    // The outcome of a step: its results, an error, or an error whose message takes repeating the step.
    enum class Outcome : uint8_t { fine, failed, unknown };

    Outcome carry_out(const Step& step, vm::Values& given) {
        outside_.span = &step.span();
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
                    return protectedly(given,
                                       [&] { given.push_back(Value(host_.compare(step.op(), args[0], args[1]))); });
                case Step::Kind::make:
                    given.push_back(outside_.make_table(args));
                    break;
                case Step::Kind::set_index:
                    return protectedly(given, [&] { host_.set_index(args[0], args[1], args[2]); });
                case Step::Kind::raw_set:
                    host_.raw_set(args[0], args[1], args[2]);
                    break;
                case Step::Kind::set_upvalue:
                    outside_.set_upvalue(args[0], static_cast<int>(args[1].integer()), args[2]);
                    break;
                default: {
                    const Value f = std::move(args.front());
                    args.pop_front();
                    Value error;
                    if (!outside_.call(f, args, step, given, error)) {
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
            // The repeated step raises it again.
            return Outcome::unknown;
        }
        return Outcome::fine;
    }

    // The ends of iterations, and arithmetic on two numbers, which most steps on numbers are; nil: another step, or one
    // that fails.
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

    Outside& outside_;
    vm::Host& host_;
    Tree& tree_;
    const Level level_;
    Progress& progress_;
    std::vector<Value>& slots_;
    const std::unordered_set<const void*>& constants_;
    Turns turns_{progress_, host_};
    uint32_t rounds_ = 0;
};

}  // namespace

bool run(Outside& outside, Tree& tree, Level level, Progress& progress, vm::Values& results) {
    return Runner(outside, tree, level, progress).run(results);
}

}  // namespace lunaria::trace
