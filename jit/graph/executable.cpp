#include "jit/graph/executable.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/ir/printer.h"
#include "core/run/draws.h"
#include "core/run/placement.h"
#include "core/run/prepared.h"
#include "core/run/profile.h"
#include "jit/graph/arena.h"
#include "jit/graph/flat.h"
#include "jit/graph/passes.h"
#include "jit/graph/plan.h"

namespace lunaria::graph {

namespace {

// The state of a step between runs. Arguments and results in the arena are set once, the others by every run.
struct StepState {
    std::vector<Value> args;
    std::vector<Value> fixed;  // the arguments, without those set by each run
    std::vector<Tensor> out;
    std::vector<void*> pointers;  // of a loop
    std::unique_ptr<Prepared> prepared;
    Kept memory;  // of its kernel
};

// Marks work given to the device as one run.
class Gathering {
  public:
    explicit Gathering(Replay* replay) : replay_(replay) {
        if (replay_) replay_->begin();
    }
    ~Gathering() {
        if (replay_) replay_->give_up();
    }
    Gathering(const Gathering&) = delete;
    Gathering& operator=(const Gathering&) = delete;
    void end() {
        if (Replay* replay = std::exchange(replay_, nullptr)) replay->end();
    }

  private:
    Replay* replay_;
};

// Takes the time that a run spends without code that it waits for.
class Awaited {
  public:
    explicit Awaited(const std::vector<WantedCode*>& wanted) : wanted_(wanted) {}
    ~Awaited() {
        for (WantedCode* code : wanted_) code->seconds += seconds_ / static_cast<double>(wanted_.size());
    }
    Awaited(const Awaited&) = delete;
    Awaited& operator=(const Awaited&) = delete;
    template <class F>
    void run(const Step& step, F&& f) {
        if (wanted_.empty() || !step.awaits) return f();
        const auto start = std::chrono::steady_clock::now();
        f();
        seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }

  private:
    const std::vector<WantedCode*>& wanted_;
    double seconds_ = 0;
};

}  // namespace

struct Executable::Program {
    Plan plan;
    // With LUNARIA_DUMP=times: the time of each step so far, printed when the program is destroyed.
    mutable std::vector<StepTime> times;
    mutable int64_t runs = 0;
    // The kernel that accepted each operator's call last time, which will accept it again.
    std::vector<std::atomic<size_t>> kernel_index;
    mutable std::mutex mutex;
    mutable std::vector<std::unique_ptr<Context>> free;

    Device* const place;  // the device that it runs on, as in Storage
    Backend* const loops;

    explicit Program(Plan p)
        : plan(std::move(p)),
          kernel_index(plan.steps.size()),
          place(current_place()),
          loops(current_device()->graphs()) {
        if (!place) return;
        for (Root& root : plan.roots)
            if (root.home == Root::Home::constant) root.constant = root.constant.to(place);
    }
    ~Program() { print_times(); }
    Program(const Program&) = delete;

    void add_times(const std::vector<StepTime>& run) const {
        std::lock_guard lock(mutex);
        // The first run sets up kernels and is not counted.
        if (++runs == 2) times = run;
        for (size_t s = 0; s < times.size() && runs > 2; ++s) times[s].seconds += run[s].seconds;
    }
    void print_times() const {
        if (runs < 2) return;
        double total = 0;
        const double scale = 1e6 / static_cast<double>(runs - 1);
        for (const StepTime& t : times) total += t.seconds * scale;
        std::cerr << str("times of ", runs, " runs, ", total, " us each:\n");
        for (const StepTime& t : times) {
            const double us = t.seconds * scale;
            std::cerr << str("  ", us, " us  ", static_cast<double>(t.bytes) * 1e-3 / us, " GB/s  ", t.operators, '\n');
        }
    }
};

// The memory of one run at a time.
struct Executable::Context {
    const Program& program;
    ArenaShare arena;  // reserved while a run has the context
    std::vector<Tensor> roots, handles;
    std::vector<StepState> steps;
    std::unique_ptr<Replay> replay;

    explicit Context(const Program& p)
        : program(p), arena(p.plan.arena_bytes, p.place), replay(p.loops ? p.loops->replay() : nullptr) {
        const Plan& plan = p.plan;
        roots.resize(plan.roots.size());
        for (size_t r = 0; r < roots.size(); ++r) {
            const Root& root = plan.roots[r];
            if (root.home == Root::Home::constant) roots[r] = root.constant;
            if (root.home == Root::Home::arena)
                roots[r] = Tensor::over(
                    arena.data() + root.offset, root.type.tensor.dtype, root.type.tensor.shape, [](Storage&) {},
                    nullptr, p.place);
        }
        handles.resize(plan.handles.size());
        for (size_t h = 0; h < handles.size(); ++h)
            if (plan.roots[plan.handles[h].root].is_static()) handles[h] = make(plan.handles[h]);
        for (const Step& step : plan.steps) steps.push_back(state_of(step));
    }

    // Steps with separate times are started one by one.
    Replay* replay_unless_timed(bool is_timed) const { return is_timed || Profile::current() ? nullptr : replay.get(); }

    Tensor make(const Handle& handle) const {
        const Tensor& root = roots[handle.root];
        return handle.whole ? root : root.view(handle.shape, handle.strides, handle.offset);
    }
    const Tensor& handle(size_t h) {
        if (!handles[h]) handles[h] = make(program.plan.handles[h]);
        return handles[h];
    }
    bool is_static(size_t h) const { return program.plan.roots[program.plan.handles[h].root].is_static(); }

    StepState state_of(const Step& step) {
        StepState state;
        state.args = step.args;
        set(state, step, [&](const Use& use) { return is_static(use.handle); });
        state.fixed = state.args;
        if (may_prepare(step)) state.prepared = std::make_unique<Prepared>();
        if (step.kind == Step::Kind::kernel)
            for (size_t r : step.results) state.out.push_back(roots[r]);
        for (size_t k = 0; k < step.loop_roots.size(); ++k) {
            const Tensor& root = roots[step.loop_roots[k]];
            state.pointers.push_back(root ? root.data<char>() + step.loop_offsets[k] : nullptr);
        }
        return state;
    }

    // Whether the second operand is a weight that kernels read in a layout of their own, and is a constant or belongs
    // to the caller.
    bool may_prepare(const Step& step) const {
        if (step.kind != Step::Kind::kernel || !step.op->prepares_weight) return false;
        return std::any_of(step.uses.begin(), step.uses.end(), [&](const Use& use) {
            const Root::Home home = program.plan.roots[program.plan.handles[use.handle].root].home;
            return use.arg == 1 && (home == Root::Home::input || home == Root::Home::constant);
        });
    }

    // Sets the chosen arguments. The uses of a list follow one another.
    template <class F>
    void set(StepState& state, const Step& step, F&& is_chosen) {
        for (size_t u = 0; u < step.uses.size(); ++u) {
            const Use& use = step.uses[u];
            if (!is_chosen(use)) continue;
            Value& arg = state.args[use.arg];
            if (use.item == SIZE_MAX) {
                arg = Value(handle(use.handle));
                continue;
            }
            std::vector<Value> items = arg.items();
            for (; u < step.uses.size() && step.uses[u].arg == use.arg; ++u)
                if (is_chosen(step.uses[u])) items[step.uses[u].item] = Value(handle(step.uses[u].handle));
            --u;
            arg = Value::list(std::move(items));
        }
    }

    void run(size_t s) {
        const Step& step = program.plan.steps[s];
        StepState& state = steps[s];
        if (step.kind == Step::Kind::loop) return run_loop(step, state);
        poll_interrupt();
        set(state, step, [&](const Use& use) { return !is_static(use.handle); });
        if (step.kind == Step::Kind::copy) {
            const Tensor& from = state.args[0].tensor();
            copy_elements(from, roots[step.results[0]].reshaped(from.shape()));
        } else if (step.kind == Step::Kind::kernel) {
            run_kernel(step, state, s);
        } else {
            run_eager(step, state);
        }
        // No tensor of the caller is held between runs, since a write to it would then copy it.
        for (const Use& use : step.uses)
            if (!is_static(use.handle)) state.args[use.arg] = state.fixed[use.arg];
    }

    void run_kernel(const Step& step, StepState& state, size_t s) {
        const Plan& plan = program.plan;
        for (size_t i = 0; i < step.results.size(); ++i)
            if (!plan.roots[step.results[i]].is_static()) state.out[i] = roots[step.results[i]];
        KernelCall call{*step.op, state.args, state.out, step.dtype};
        const MemoryOffer memory(state.memory, state.args);
        if (step.op->draws()) set_stream(call);
        size_t count = 0;
        Device* const device = current_device();
        const Kernel* kernels = step.op->kernels(*device, count);
        auto& index = const_cast<std::atomic<size_t>&>(program.kernel_index[s]);
        std::optional<PreparedOffer> offer;
        // Other tensors are not kept: they would outlive their owner's last reference.
        if (state.prepared && (state.args[1].tensor().parameter() || is_fixed(state, 1)))
            offer.emplace(*state.prepared, state.args[1].tensor());
        size_t k = index.load(std::memory_order_relaxed);
        if (program.place)
            k = device->launch({kernels, count}, k, call);
        else
            while (k < count && !kernels[k](call)) ++k;
        if (k == count)
            throw dtype_error(step.op->name(),
                              str("is not defined for ", name_of(step.dtype), " on the device ", device->name()));
        index.store(k, std::memory_order_relaxed);
        for (size_t i = 0; i < step.results.size(); ++i) {
            if (!state.out[i].same_body(roots[step.results[i]]))
                throw state_error(step.op->name(), "has a kernel that does not write into the memory that it is given");
            if (!plan.roots[step.results[i]].is_static()) state.out[i] = Tensor();
        }
    }

    static bool is_fixed(const StepState& state, size_t arg) { return state.fixed[arg].is_tensor(); }

    void run_eager(const Step& step, StepState& state) {
        Value result = lunaria::run(*step.op, state.args);
        auto keep = [&](size_t root, const Value& v) {
            if (root == SIZE_MAX) return;
            if (!v.is_tensor()) throw state_error(step.op->name(), "gives no tensor where the graph has one");
            const Root& r = program.plan.roots[root];
            Tensor t = v.tensor();
            const TensorType& type = r.type.tensor;
            if (type.shape.known()) {
                t = t.contiguous();
                if (!(TensorType{t.dtype(), t.shape()} == type))
                    throw state_error(step.op->name(),
                                      str("gives ", name_of(t.dtype()), t.shape(), " instead of ", name_of(type.dtype),
                                          type.shape, ", which its rule of inference says"));
            }
            roots[root] = std::move(t);
        };
        if (result.is_list())
            for (size_t i = 0; i < step.results.size(); ++i) keep(step.results[i], result.items().at(i));
        else if (!step.results.empty())
            keep(step.results[0], result);
    }

    void run_loop(const Step& step, StepState& state) {
        for (size_t k = 0; k < step.loop_roots.size(); ++k)
            if (!program.plan.roots[step.loop_roots[k]].is_static())
                state.pointers[k] = roots[step.loop_roots[k]].data<char>() + step.loop_offsets[k];
        program.loops->launch(step.loop, state.pointers);
    }

    // Drops views that no step needs any more, so that a write into an input copies no elements because of them.
    void forget_views(const std::vector<size_t>& inputs) {
        const Plan& plan = program.plan;
        for (size_t h = 0; h < handles.size(); ++h)
            for (size_t i : inputs)
                if (plan.handles[h].root == plan.inputs[i]) handles[h] = Tensor();
    }
    // Drops everything of this run.
    void clear() {
        const Plan& plan = program.plan;
        for (size_t r = 0; r < roots.size(); ++r)
            if (roots[r] && !plan.roots[r].is_static()) roots[r] = Tensor();
        for (size_t h = 0; h < handles.size(); ++h)
            if (handles[h] && !is_static(h)) handles[h] = Tensor();
    }
};

namespace {

[[noreturn]] void wrong_input(size_t i, const TensorType& wanted, const Tensor& got) {
    throw argument_error("run", str("input ", i, " is ", name_of(got.dtype()), got.shape(),
                                    ", and the graph was compiled for ", name_of(wanted.dtype), wanted.shape));
}

// Inputs on the program's device, including constants that are on no device yet.
std::span<const Tensor> placed_inputs(std::span<const Tensor> inputs, const Plan& plan, Device* place,
                                      std::vector<Tensor>& placed) {
    if (!has_places()) return inputs;
    auto name = [](Device* device) { return (device ? device : host_device())->name(); };
    auto check = [&](const Tensor& t, std::string_view what) {
        if (t.device() != place)
            throw state_error("run", str(what, " is on the device ", name(t.device()),
                                         ", and the graph was compiled for ", name(place)));
    };
    for (const Tensor& t : inputs) {
        placed.push_back(is_traveller(t) ? moved_to(t, place) : t);
        check(placed.back(), "an input");
    }
    for (const Tensor& t : plan.variables) check(t, "a parameter");
    return placed;
}

int64_t bytes_of(const Plan& plan, const Step& step) {
    std::set<size_t> roots(step.loop_roots.begin(), step.loop_roots.end());
    for (const Use& use : step.uses) roots.insert(plan.handles[use.handle].root);
    for (size_t r : step.results)
        if (r != kFresh) roots.insert(r);
    int64_t bytes = 0;
    for (size_t r : roots) bytes += static_cast<int64_t>(plan.roots[r].bytes);
    return bytes;
}

Tensor fresh(const Root& root, Device* place) {
    return Tensor::empty(root.type.tensor.dtype, root.type.tensor.shape, place);
}

// Makes the outputs tensors of their own, except those that are donated inputs.
void separate_outputs(const Plan& plan, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
    std::set<size_t> updated;
    for (size_t k = 0; k < outputs.size(); ++k) {
        const Result& result = plan.results[k];
        if (!outputs[k] || outputs[k].is_apart() || result.stored != kFresh) continue;
        const Root& root = plan.roots[plan.handles[result.handle].root];
        const bool donated = root.home == Root::Home::output && root.index != kFresh &&
                             outputs[k].same_body(inputs[root.index]) && updated.insert(root.index).second;
        if (!donated) outputs[k] = outputs[k].apart();
    }
}

// Allocates memory for a whole run; an error of a device that is out of memory names the device.
template <class F>
auto with_memory(const Plan& plan, F&& take) {
    try {
        return take();
    } catch (const Error& e) {
        if (e.kind() != ErrorKind::memory || e.where().empty() || !find_device(e.where())) throw;
        throw memory_error("compiled function",
                           str(e.where(), " is ", e.message(), "; temporaries take ", plan.arena_bytes, " bytes"))
            .hint("use smaller batches or a narrower dtype, and drop tensors that are no longer needed");
    }
}

// Runs a step and records it. An operator that runs as in eager mode records itself and gets only its line here.
void profile_step(Profile& profile, const Plan& plan, const Step& step, const std::function<void()>& run) {
    const std::string place = step.span.chunk ? str(*step.span.chunk, ":", step.span.line) : std::string();
    const size_t before = profile.events.size();
    Profile::Event event;
    event.start = profile.now();
    run();
    if (profile.events.size() == before) {
        event.seconds = profile.now() - event.start;
        event.operators = step.label;
        event.flops = step.flops;
        event.bytes = bytes_of(plan, step);
        event.generated = step.kind == Step::Kind::loop;
        profile.add(std::move(event));
    }
    for (size_t i = before; i < profile.events.size(); ++i) {
        profile.events[i].compiled = true;
        if (!place.empty()) profile.events[i].place = place;
    }
}

thread_local ir::Span last_failed;

bool dumps(std::string_view what) {
    const char* wish = std::getenv("LUNARIA_DUMP");
    return wish && std::string_view(wish).find(what) != std::string_view::npos;
}

}  // namespace

const ir::Span& failed_place() { return last_failed; }

Executable::Executable(std::unique_ptr<Program> program) : program_(std::move(program)) {}
Executable::~Executable() = default;

void Executable::run(std::span<const Tensor> inputs, std::span<Tensor> outputs, const std::function<void()>& last,
                     const std::function<void(size_t)>& early) const {
    static const bool measures = dumps("times");
    if (!measures) return run_steps(inputs, outputs, nullptr, last, early);
    std::vector<StepTime> times;
    run_steps(inputs, outputs, &times, last, early);
    program_->add_times(times);
}

bool Executable::is_worth_code() const {
    const auto& wanted = program_->plan.wanted;
    if (wanted.empty()) return false;
    // Generated code takes about half the time of the operators that it stands for; a program may end at any time.
    constexpr double kTimes = 4;
    size_t count = 0;
    double seconds = 0;
    for (const WantedCode* code : wanted) {
        if (code->known) continue;
        ++count;
        seconds += code->seconds;
    }
    return count == 0 || seconds > kTimes * generation_seconds(count);
}

std::vector<StepTime> Executable::profile(std::span<const Tensor> inputs, std::span<Tensor> outputs) const {
    std::vector<StepTime> times;
    run_steps(inputs, outputs, &times, {}, {});
    return times;
}

void Executable::run_steps(std::span<const Tensor> inputs, std::span<Tensor> outputs, std::vector<StepTime>* times,
                           const std::function<void()>& last, const std::function<void(size_t)>& early) const {
    const Plan& plan = program_->plan;
    if (inputs.size() != plan.parameters.size() || outputs.size() != plan.results.size())
        throw argument_error("run", str("the graph takes ", plan.parameters.size(), " inputs and gives ",
                                        plan.results.size(), " outputs, not ", inputs.size(), " and ", outputs.size()));
    for (size_t i = 0; i < inputs.size(); ++i) {
        const TensorType& wanted = plan.parameters[i];
        if (!inputs[i] || inputs[i].dtype() != wanted.dtype || !(inputs[i].shape() == wanted.shape))
            wrong_input(i, wanted, inputs[i]);
    }
    std::vector<Tensor> moved;
    inputs = placed_inputs(inputs, plan, program_->place, moved);
    const PlaceScope scope(program_->place);
    std::unique_ptr<Context> context;
    {
        std::lock_guard lock(program_->mutex);
        auto& free = program_->free;
        const auto found =
            std::find_if(free.rbegin(), free.rend(), [](const auto& one) { return one->arena.reserve(); });
        if (found != free.rend()) {
            context = std::move(*found);
            free.erase(std::next(found).base());
        }
    }
    if (!context) context = with_memory(plan, [&] { return std::make_unique<Context>(*program_); });

    Gathering gathering(context->replay_unless_timed(times));
    std::vector<Tensor>& roots = context->roots;
    for (size_t d : plan.donated) Tensor(inputs[d]).own_storage();
    for (size_t i = 0; i < plan.inputs.size(); ++i) {
        Tensor t = i < inputs.size() ? inputs[i] : plan.variables[i - inputs.size()];
        const TensorType& type = plan.roots[plan.inputs[i]].type.tensor;
        if (i >= inputs.size() && (t.dtype() != type.dtype || !(t.shape() == type.shape)))
            throw state_error("run", str("a parameter is ", name_of(t.dtype()), t.shape(), " now and was ",
                                         name_of(type.dtype), type.shape, " when the graph was compiled"));
        if (!t.is_contiguous()) {
            // The target of an assignment must be the caller's tensor itself.
            if (plan.written[i])
                t.own_storage();
            else
                t = t.contiguous();
        }
        roots[plan.inputs[i]] = std::move(t);
    }
    for (size_t r = 0; r < roots.size(); ++r) {
        const Root& root = plan.roots[r];
        if (root.home != Root::Home::output) continue;
        roots[r] = root.index == kFresh ? with_memory(plan, [&] { return fresh(root, program_->place); })
                                        : roots[plan.inputs[root.index]];
    }
    Profile* profile = Profile::current();
    Awaited awaited(plan.wanted);
    // After an exception the context is incomplete and is not used again.
    auto run_step = [&](size_t s) {
        if (profile) {
            profile_step(*profile, plan, plan.steps[s], [&] { context->run(s); });
            return;
        }
        if (!times) {
            awaited.run(plan.steps[s], [&] { context->run(s); });
            return;
        }
        const auto start = std::chrono::steady_clock::now();
        context->run(s);
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        const Step& step = plan.steps[s];
        times->push_back(
            {step.label, step.span, step.kind == Step::Kind::loop, taken.count(), bytes_of(plan, step), step.flops});
    };
    std::vector<Tensor> views(plan.early.empty() ? 0 : outputs.size());
    for (size_t s = 0; s < plan.steps.size(); ++s) {
        try {
            run_step(s);
        } catch (...) {
            last_failed = plan.steps[s].span;
            throw;
        }
        if (plan.early_after.empty()) continue;
        for (size_t use : plan.early_after[s]) {
            for (size_t k : plan.early[use].outputs) outputs[k] = context->handle(plan.results[k].handle);
            // A result that is a view of a variable to be written keeps the old elements.
            for (size_t k = 0; k < outputs.size(); ++k) {
                const Handle& handle = plan.handles[plan.results[k].handle];
                for (size_t i : plan.early[use].inputs)
                    if (!handle.whole && handle.root == plan.inputs[i] && !views[k])
                        views[k] = context->handle(plan.results[k].handle).apart();
            }
            context->forget_views(plan.early[use].inputs);
            early(use);
            for (size_t k : plan.early[use].outputs) outputs[k] = Tensor();
        }
    }

    std::vector<std::pair<Tensor, size_t>> stored;
    for (size_t k = 0; k < outputs.size(); ++k) {
        const Result& result = plan.results[k];
        if (result.early) continue;
        const Root& root = plan.roots[plan.handles[result.handle].root];
        Tensor t = !views.empty() && views[k] ? views[k] : context->handle(result.handle);
        if (result.copied || (result.stored != kFresh && root.home == Root::Home::input)) t = t.copy();
        if (result.stored != kFresh) {
            stored.emplace_back(std::move(t), result.stored);
            outputs[k] = inputs[result.stored];
        } else {
            outputs[k] = std::move(t);
        }
    }
    for (auto& [value, input] : stored) copy_elements(value, inputs[input]);
    // Before `last`, so that a write into an input copies nothing because of this run.
    context->clear();
    separate_outputs(plan, inputs, outputs);
    if (last) last();
    for (size_t k = 0; k < outputs.size(); ++k)
        if (plan.results[k].borrowed) outputs[k] = Tensor();
    gathering.end();
    context->arena.give_back();
    std::lock_guard lock(program_->mutex);
    program_->free.push_back(std::move(context));
}

std::vector<PlannedStep> Executable::steps() const {
    std::vector<PlannedStep> steps;
    for (const Step& step : program_->plan.steps)
        steps.push_back(
            {step.label, step.span, step.kind == Step::Kind::loop, bytes_of(program_->plan, step), step.flops});
    return steps;
}

std::vector<PlannedMemory> Executable::memory() const {
    std::vector<PlannedMemory> memory;
    const Plan& plan = program_->plan;
    for (const Root& root : plan.roots)
        if (root.home == Root::Home::arena)
            memory.push_back({root.first < plan.steps.size() ? plan.steps[root.first].label : std::string(),
                              root.offset, root.bytes, root.first, root.last});
    return memory;
}

size_t Executable::output_count() const { return program_->plan.results.size(); }

ExecutableStats Executable::stats() const {
    ExecutableStats stats;
    stats.arena_bytes = program_->plan.arena_bytes;
    for (const Step& step : program_->plan.steps) {
        ++stats.steps;
        if (step.kind != Step::Kind::loop) continue;
        ++stats.generated;
        stats.generated_nodes += step.nodes;
    }
    return stats;
}

Device* Executable::place() const { return program_->place; }

std::vector<std::string_view> Executable::host_operators() const {
    std::vector<std::string_view> names;
    Device* const place = program_->place;
    for (const Step& step : program_->plan.steps) {
        if (!place || step.kind != Step::Kind::eager) continue;
        const Op& op = *step.op;
        size_t here = 0, host = 0;
        op.kernels(*place, here);
        op.kernels(*host_device(), host);
        if (here == 0 && host > 0) names.push_back(op.name());
    }
    return names;
}

std::string Executable::describe() const {
    std::string text;
    for (const Step& step : program_->plan.steps) {
        std::string_view kind = step.kind == Step::Kind::loop     ? "generated"
                                : step.kind == Step::Kind::kernel ? "kernel   "
                                : step.kind == Step::Kind::copy   ? "copy     "
                                                                  : "operator ";
        text += str(kind, " ", step.label);
        if (step.kind == Step::Kind::loop) text += str("  (", step.rows, " x ", step.inner, ")");
        text += '\n';
    }
    if (const size_t wanted = program_->plan.wanted.size())
        text += str("code for ", wanted, wanted == 1 ? " loop" : " loops", " is made when that pays\n");
    return text + str("arena ", program_->plan.arena_bytes, " bytes\n");
}

Plan plan_of(const ir::Graph& graph, const CompileOptions& options) {
    FlatGraph flat = flatten(graph);
    run_passes(*flat.graph);
    flat.again = recompute_cheap_values(*flat.graph);
    return make_plan(flat, options);
}

std::unique_ptr<Executable> executable_of(Plan plan) {
    return std::unique_ptr<Executable>(new Executable(std::make_unique<Executable::Program>(std::move(plan))));
}

std::unique_ptr<Executable> compile(const ir::Graph& graph, const CompileOptions& options) {
    std::optional<KnownCodeOnly> known;
    // The times of steps that a device queues tell nothing.
    if (options.waits && !current_place()) known.emplace();
    Plan plan = plan_of(graph, options);
    if (known) plan.wanted = std::move(known->wanted);
    std::unique_ptr<Executable> result = executable_of(std::move(plan));
    if (dumps("kernels")) std::cerr << graph.name << ":\n" << result->describe();
    return result;
}

std::string optimized_text(const ir::Graph& graph) {
    const FlatGraph flat = flatten(graph);
    run_passes(*flat.graph);
    recompute_cheap_values(*flat.graph);
    return ir::print(*flat.graph);
}

}  // namespace lunaria::graph
