#include "jit/trace/compiled.h"

#include <chrono>
#include <memory>

#include "core/base/log.h"
#include "core/random/random.h"
#include "jit/trace/recorder.h"
#include "jit/trace/size_pattern.h"

namespace lunaria::trace {

namespace {

// For functions that are compiled unasked: with more other steps than this for an operator, Lua is faster.
constexpr int64_t kStepsPerOperator = 300;

void count_operators(const Block& block, int64_t& operators, int64_t& others) {
    for (const Step& step : block.steps) ++(step.kind == Step::Kind::op ? operators : others);
    for (const auto& next : block.next) count_operators(*next, operators, others);
}

std::string why_not_worth_it(const Tree& tree) {
    int64_t operators = 0, others = 0;
    count_operators(tree.root, operators, others);
    if (operators == 0) return "it runs no operators on tensors";
    if (others <= kStepsPerOperator * operators) return {};
    return str("it runs only ", operators, " operators on tensors in ", others, " steps");
}

// Recordings that a function may have at once; more are allowed with its calls, so that new cases never cost more than
// a part of the time.
constexpr int64_t kFreely = 64, kCallsPerRecording = 16;
// Of those of a function whose compilation has to pay the first few are free, and each further one takes so many calls
// that a record has done.
constexpr int64_t kUnearned = 8, kRunsPerRecording = 4;
// For a function that is compiled unasked: the number of refusals without a record after which it is not tried again.
constexpr int64_t kMostRefusals = 4;

}  // namespace

// Writes the message of LUNARIA_LOG after a recording.
void Compiled::tell(Outside& outside, const Value& function, bool asked_before, bool stopped) const {
    const Recording& last = recordings.back();
    const auto report = [&](LogTopic topic, const std::string& text) {
        if (logs(topic)) log(topic, str(label.empty() ? outside.host.describe(function) : label, ": ", text));
    };
    if (const std::string& why = eager.empty() && stopped ? refusal : eager; !why.empty()) {
        report(LogTopic::fallbacks, str("it is left to Lua: ", why));
    } else if (!last.failure.empty()) {
        report(LogTopic::fallbacks, str("an error ends the recording: ", last.failure));
    } else if (asked_before) {
        report(LogTopic::recompiles, str("it is recorded again", last.surprise.empty() ? "" : ": ", last.surprise));
    } else {
        report(LogTopic::compiles, str("recorded in ", last.seconds * 1e3, " ms, ", tree.steps, " steps"));
    }
}

bool Compiled::may_record() const { return calls >= retry_at && recorded < kFreely + calls / kCallsPerRecording; }

void Compiled::refuse(std::string why) {
    refusal = std::move(why);
    refused_at = calls;
    rests = false;
    retry_at = calls + wait;
    wait = std::min<int64_t>(2 * wait, 1 << 20);
    if (unasked && tree.steps == 0 && ++fruitless >= kMostRefusals) eager = refusal;
}

// The same for a recording that was stopped. After an effect the call continues in the machine, which is slower than
// the outside. If that happens twice with no compiled call in between, calls are left to the outside from their
// beginning for a while.
void Compiled::refuse_recorded(std::string why) {
    stopped_late = progress.effects && runs == runs_before;
    if (runs != runs_before) wait = kFirstWait;
    runs_before = runs;
    refuse(std::move(why));
}

std::string Compiled::outside_graph(Outside& outside) {
    std::string found;
    for_each_step(tree, [&](Step& step) {
        if (!found.empty() || step.kind != Step::Kind::call) return;
        const Value& callee = step.args()[0];
        found = described(step.span(), str("it calls ", callee.is_node() ? "a function" : outside.host.describe(callee),
                                           ", which no graph holds"));
    });
    return found;
}

// Records the part of the call that the tree does not have.
Compiled::Recorded Compiled::record(Outside& outside, vm::Values& results) {
    ++recorded;
    resumed += progress.effects;
    const Value function = outside.function();
    const auto start = std::chrono::steady_clock::now();
    const size_t before = tree.steps;
    Recorder recorder(outside, tree, progress, limits);
    auto& made = recorder.recording();
    made.trial = trial;
    const vm::Host::Protected outcome = outside.protect([&] { results = recorder.record(function); });
    const bool stopped = !made.records() && !made.interrupted();
    // A recording that was stopped leads nowhere.
    if (stopped) made.growth().withdraw(tree);
    if (Growth& growth = made.growth(); growth.way && !stopped) join_sizes(tree, *growth.block);
    outside.keep(tree);
    settle(tree);
    if (stopped)
        refuse_recorded(made.stopped());
    else if (!made.growth().block && ++fruitless >= 32)
        refuse("the same calls have to be recorded over and over");
    else if (level == Level::paying && recorded > kUnearned + runs / kRunsPerRecording) {
        refuse("most of its calls do something new, so that recording them costs more than it saves");
        rests = true;
    }
    if (std::string done = full ? outside_graph(outside) : ""; !done.empty()) {
        refuse(std::move(done));
        eager = refusal;
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (unasked && eager.empty() && outcome.ok && !stopped) eager = why_not_worth_it(tree);
    std::string failure;
    if (!outcome.ok && !made.restart())
        failure = outcome.error.kind() == Value::Kind::string ? outcome.error.string() : "an error object";
    recordings.push_back({made.surprise(), failure, seconds.count(), tree.steps});
    if (recordings.size() > 100) recordings.erase(recordings.begin());
    tell(outside, function, before > 0, stopped);
    // Not within a protected call, which an interrupt would end before it begins; the record is complete.
    made.undo();
    return {outcome.ok && !made.restart(), made.can_restart(), stopped, outcome.error};
}

bool Compiled::attempt(Outside& outside, vm::Values& results) {
    struct Clear {
        Progress& progress;
        ~Clear() { progress.clear(); }
    } clear{progress};
    RandomStream random;
    if (tree.random) random = default_generator().state();
    if (!trial && trace::run(outside, tree, level, progress, results)) {
        ++runs;
        if (tree.dirty) settle(tree);
        return true;
    }
    results.clear();
    if (!progress.effects && tree.random) default_generator().set_state(random);
    if (!progress.effects && !may_record()) return false;
    random = default_generator().state();
    const Recorded made = record(outside, results);
    // The tree of a function that is compiled unasked may be large, and will not be used any more.
    if (unasked && !eager.empty()) start_over();
    if (made.ok) return true;
    results.clear();
    // The outside raises the call's own error, but not one of a trial, which it is not to begin anew.
    if (made.restart && (made.stopped || !trial)) {
        default_generator().set_state(random);
        return false;
    }
    outside.host.raise(made.error);
    return false;
}

void Compiled::start_over() {
    std::destroy_at(&tree);
    std::construct_at(&tree);
}

}  // namespace lunaria::trace
