#include "interpreter/debugger/debugger.h"

#include <algorithm>
#include <filesystem>

#include "core/base/interrupt.h"
#include "interpreter/debugger/debugger_variables.h"
#include "interpreter/display/pretty.h"
#include "interpreter/errors/error_report.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/loader/loader.h"
#include "interpreter/protect.h"
#include "jit/frontend/ast.h"

namespace lunaria {

namespace {

// The chunk name of text that a user typed at a stop.
constexpr std::string_view kEvaluated = "=(debug)";

// Sets a variable for as long as it lives.
template <class T>
class Hold {
  public:
    Hold(T& place, T value) : place_(place), before_(std::exchange(place, std::move(value))) {}
    ~Hold() { place_ = std::move(before_); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

  private:
    T& place_;
    T before_;
};

int threads_of(const State& state) {
    int count = 0;
    for (const auto* t = state.innermost(); t; t = t->outer()) ++count;
    return count;
}

bool is_users(std::string_view chunk) { return !chunk.starts_with(kLibraryChunks) && chunk != kEvaluated; }

}  // namespace

std::vector<Breakpoint> Debugger::set_breakpoints(const std::string& source, std::vector<Breakpoint> list) {
    {
        const std::lock_guard lock(mutex_);
        for (Breakpoint& b : list) {
            b.source = source;
            const auto old = std::find_if(breakpoints_.begin(), breakpoints_.end(), [&](const Breakpoint& o) {
                return o.source == source && o.line == b.line && !o.temporary;
            });
            b.id = old != breakpoints_.end() ? old->id : next_id_++;
        }
        std::erase_if(breakpoints_, [&](const Breakpoint& b) { return b.source == source; });
        breakpoints_.insert(breakpoints_.end(), list.begin(), list.end());
    }
    changed();
    return list;
}

int Debugger::add_breakpoint(Breakpoint b) {
    int id = 0;
    {
        const std::lock_guard lock(mutex_);
        id = b.id = next_id_++;
        breakpoints_.push_back(std::move(b));
    }
    changed();
    return id;
}

bool Debugger::change_breakpoint(int id, const std::function<void(Breakpoint&)>& change) {
    bool found = false;
    {
        const std::lock_guard lock(mutex_);
        for (Breakpoint& b : breakpoints_)
            if (b.id == id) {
                change(b);
                found = true;
            }
    }
    changed();
    return found;
}

bool Debugger::remove_breakpoint(int id) {
    bool found = false;
    {
        const std::lock_guard lock(mutex_);
        found = std::erase_if(breakpoints_, [&](const Breakpoint& b) { return b.id == id; }) > 0;
    }
    changed();
    return found;
}

void Debugger::remove_breakpoints() {
    {
        const std::lock_guard lock(mutex_);
        breakpoints_.clear();
    }
    changed();
}

std::vector<Breakpoint> Debugger::breakpoints() const {
    const std::lock_guard lock(mutex_);
    return breakpoints_;
}

void Debugger::stop_at_errors(bool caught, bool uncaught) {
    caught_ = caught;
    uncaught_ = uncaught;
}

void Debugger::request_pause() {
    pause_ = true;
    changed();
}

void Debugger::changed() {
    {
        const std::lock_guard lock(mutex_);
        any_ = !breakpoints_.empty();
    }
    version_.fetch_add(1, std::memory_order_release);
    // Updates at once in Lua's own thread; otherwise the hook of the next line does it, if there is a hook.
    if (!state_.pass_on(0))
        update();
    else
        state_.nudge();
}

void Debugger::on_nudge() noexcept {
    if (any_.load(std::memory_order_relaxed) || pause_.load(std::memory_order_relaxed)) state_.set_line_hook(line_hook);
}

bool Debugger::is_armed() const {
    return any_.load(std::memory_order_relaxed) || pause_.load(std::memory_order_relaxed) || mode_ != Mode::none ||
           std::any_of(watches_.begin(), watches_.end(), [](const Watch& w) { return w.stops; });
}

bool Debugger::is_active() const {
    return is_armed() || attached_.load(std::memory_order_relaxed) || caught_.load(std::memory_order_relaxed) ||
           uncaught_.load(std::memory_order_relaxed);
}

bool Debugger::calls_breakpoint(lua_State* L, int index) {
    if (!State::of(L).loader().mentions_breakpoint()) return false;
    const FunctionSource source = State::of(L).loader().source_of(L, index);
    if (!source.function) return false;
    const lua::Span span = source.function->span;
    const std::string_view text(source.chunk->source());
    return text.substr(span.begin, span.end - span.begin).find("breakpoint") != std::string_view::npos;
}

// A program that calls breakpoint() is debugged from then on: the functions around the call should be visible as well.
bool Debugger::wants_stop_points() const { return is_active() || state_.loader().mentions_breakpoint(); }

void Debugger::update() {
    // Tries again if the signal came in between.
    bool armed = false;
    do {
        armed = is_armed();
        state_.set_line_hook(armed ? line_hook : nullptr);
    } while (armed != is_armed());
}

void Debugger::set_front(Front front) {
    const std::lock_guard lock(mutex_);
    has_front_ = front != nullptr;
    front_ = std::move(front);
}

Debugger::Front Debugger::front() const {
    const std::lock_guard lock(mutex_);
    return front_;
}

void Debugger::set_log(std::function<void(const std::string&)> log) {
    const std::lock_guard lock(mutex_);
    log_ = std::move(log);
}

void Debugger::refresh() {
    const uint64_t version = version_.load(std::memory_order_acquire);
    if (version == known_version_) return;
    known_version_ = version;
    const std::lock_guard lock(mutex_);
    lines_.list = breakpoints_;
    lines_.at.clear();
    for (const Breakpoint& b : breakpoints_) {
        if (b.line <= 0 || !b.enabled) continue;
        if (lines_.at.size() <= static_cast<size_t>(b.line)) lines_.at.resize(static_cast<size_t>(b.line) + 1);
        lines_.at[static_cast<size_t>(b.line)] = true;
    }
}

std::string Debugger::source_name(const std::string& source) const {
    std::string name = rename_ ? rename_(source) : std::string();
    return name.empty() ? source : name;
}

// "train.lua" means any file of that name, a path with folders the end of a path, an absolute path that file.
bool Debugger::matches(const std::string& wanted, const std::string& source) {
    if (wanted == source || (rename_ && rename_(source) == wanted)) return true;
    if (!wanted.starts_with('/')) return source.ends_with("/" + wanted);
    auto [path, fresh] = paths_.try_emplace(source);
    if (fresh) {
        std::error_code failure;
        path->second = std::filesystem::weakly_canonical(source, failure).string();
    }
    return path->second == wanted;
}

void Debugger::quietly(const std::function<void()>& body) {
    Hold busy(busy_, true);
    body();
}

void Debugger::stop_at_next_line() {
    mode_ = Mode::into;
    update();
}

void Debugger::end_of_run() {
    mode_ = Mode::none;
    pause_ = false;
    reported_ = false;
    forget_machine_frames(state_.lua());
    update();
}

int Debugger::add_watch(Watch w) {
    w.id = next_watch_++;
    watches_.push_back(std::move(w));
    update();
    return watches_.back().id;
}

void Debugger::line_hook(lua_State* L, lua_Debug* record) {
    try {
        State& state = State::of(L);
        poll_interrupt();
        state.debugger().on_line(L, record);
    } catch (const std::exception& e) {
        raise_error(L, e);
    }
}

void Debugger::on_line(lua_State* L, lua_Debug* record) {
    if (busy_) return;
    refresh();
    const bool wanted = lines_.has(record->currentline);
    if (!wanted && mode_ == Mode::none && !pause_.load(std::memory_order_relaxed) && watches_.empty()) {
        if (!is_armed()) update();
        return;
    }
    lua_getinfo(L, "S", record);
    std::string chunk(record->source, record->srclen);
    if (!is_users(chunk)) return;
    Position now{L, threads_of(state_), 0, 0, nullptr};
    // The height of the stack only matters for steps over and out.
    if (mode_ == Mode::over) {
        now.levels = stack_depth(L);
        lua_getinfo(L, "f", record);
        now.function = lua_topointer(L, -1);
        lua_pop(L, 1);
    }
    Place place{display_name(chunk), std::move(chunk), record->currentline};
    at_place(L, place, record->linedefined, now);
}

void Debugger::on_machine_line(lua_State* L) {
    if (busy_) return;
    refresh();
    vm::Machine& machine = LuaHost::of(L).machine();
    const vm::FrameView view = machine.frame_view(machine.frame_count() - 1);
    if (!view.chunk) return;
    const bool wanted = lines_.has(view.line);
    if (!wanted && mode_ == Mode::none && !pause_.load(std::memory_order_relaxed) && watches_.empty()) return;
    Position now{L, threads_of(state_), stack_depth(L), machine.frame_count(), machine.running()};
    at_place(L, {*view.chunk, "", view.line}, view.first_line, now);
}

void Debugger::at_place(lua_State* L, const Place& place, int first_line, const Position& now) {
    Stop s{L, StopReason::step, {}, {}};
    if (lines_.has(place.line) && hits(L, place, s)) return stop(L, std::move(s));
    if (steps_here(now)) return stop(L, std::move(s));
    if (pause_.load(std::memory_order_relaxed)) {
        s.reason = StopReason::pause;
        return stop(L, std::move(s));
    }
    if (!watches_.empty() && watches_changed(L, place, first_line, s)) stop(L, std::move(s));
}

bool Debugger::hits(lua_State* L, const Place& place, Stop& s) {
    std::vector<int> temporary;
    bool stops = false;
    for (Breakpoint& b : lines_.list) {
        if (b.line != place.line || !b.enabled || !matches(b.source, place.source)) continue;
        std::string problem;
        if (!b.condition.empty()) {
            bool holds = false;
            Hold busy(busy_, true);
            stack_ = DebugStack(L);
            ++stop_count_;
            const bool ok =
                guarded([&](lua_State* T) { holds = evaluate(T, 0, b.condition) > 0 && lua_toboolean(T, 1); }, problem);
            if (ok && !holds) continue;
        }
        const int hit = b.hits + 1;
        const int id = b.id;
        b.hits = hit;
        {
            const std::lock_guard lock(mutex_);
            for (Breakpoint& shared : breakpoints_)
                if (shared.id == id) shared.hits = hit;
        }
        if (hit < b.from_hit) continue;
        if (!b.log.empty()) {
            write_log(filled_in(L, b.log));
            continue;
        }
        stops = true;
        s.reason = StopReason::breakpoint;
        s.breakpoints.push_back(id);
        if (!problem.empty()) s.text = str("the condition '", b.condition, "' failed: ", problem);
        if (b.temporary) temporary.push_back(id);
    }
    for (int id : temporary) remove_breakpoint(id);
    return stops;
}

std::string Debugger::filled_in(lua_State* L, const std::string& text) {
    Hold busy(busy_, true);
    stack_ = DebugStack(L);
    ++stop_count_;
    std::string result;
    for (size_t at = 0; at < text.size();) {
        const size_t open = std::min(text.find('{', at), text.size());
        const size_t close = text.find('}', open);
        result += text.substr(at, open - at);
        if (close == std::string::npos) return result + text.substr(open);
        std::string value, problem;
        const bool ok = guarded(
            [&](lua_State* T) {
                const int count = evaluate(T, 0, text.substr(open + 1, close - open - 1));
                for (int i = 1; i <= count; ++i) {
                    const bool plain = lua_type(T, i) == LUA_TSTRING;
                    value += (i > 1 ? "  " : "") + (plain ? std::string(lua_tostring(T, i)) : pretty(T, i));
                }
            },
            problem);
        result += ok ? value : "<" + problem + ">";
        at = close + 1;
    }
    return result;
}

void Debugger::write_log(const std::string& text) {
    std::function<void(const std::string&)> log;
    {
        const std::lock_guard lock(mutex_);
        log = log_;
    }
    if (log) return log(text);
    std::string problem;
    guarded(
        [&](lua_State* T) {
            lua_getglobal(T, "print");
            lua_pushlstring(T, text.data(), text.size());
            lua_call(T, 1, 0);
        },
        problem);
}

bool Debugger::steps_here(const Position& now) {
    if (mode_ == Mode::none) return false;
    if (mode_ == Mode::into) return true;
    if (now.thread != from_.thread) return now.threads < from_.threads;
    // If another function is at the place of the one that was left, its caller has made another call.
    auto caller = [&] {
        from_.function = nullptr;
        if (from_.machine > 1 && now.machine > 0 && from_.levels == now.levels) {
            --from_.machine;
        } else {
            --from_.levels;
            from_.machine = 0;
        }
        return false;
    };
    if (now.levels != from_.levels) return now.levels < from_.levels;
    if ((now.machine > 0) != (from_.machine > 0) && from_.function) return caller();
    if (now.machine != from_.machine) return now.machine < from_.machine;
    if (from_.function && now.function != from_.function) return caller();
    return true;
}

std::optional<bool> Debugger::look(Watch& w, size_t frame, std::string& problem) {
    bool changed = false;
    std::string value;
    const bool ok = guarded(
        [&](lua_State* T) {
            const int count = evaluate(T, frame, w.expression);
            changed = w.print.take(T, lua_gettop(T) - count + 1);
            for (int i = 1; i <= count; ++i) value += (i > 1 ? "  " : "") + value_line(T, i);
        },
        problem);
    if (!ok) return std::nullopt;
    w.value = std::move(value);
    return changed;
}

bool Debugger::watches_changed(lua_State* L, const Place& place, int first_line, Stop& s) {
    Hold busy(busy_, true);
    stack_ = DebugStack();
    for (Watch& w : watches_) {
        if (!w.stops || w.chunk != place.source || w.first_line != first_line) continue;
        if (stack_.empty()) stack_ = DebugStack(L);
        ++stop_count_;
        const std::string before = w.value;
        std::string problem;
        if (!look(w, 0, problem).value_or(false)) continue;
        s.text += str(s.text.empty() ? "" : "\n", w.expression, ": ", before, " -> ", w.value);
        if (before == w.value) s.text += " (in a part that is not shown)";
    }
    s.reason = StopReason::watch;
    return !s.text.empty();
}

Debugger::Position Debugger::position_of(const StackFrame& frame) const {
    Position p;
    p.thread = frame.thread;
    p.threads = threads_of(state_);
    for (const auto* t = state_.innermost(); t && frame.thread != state_.running(); t = t->outer()) {
        --p.threads;
        if (t->resumer() == frame.thread) break;
    }
    p.levels = stack_depth(frame.thread) - frame.level;
    if (frame.kind == StackFrame::Kind::machine) {
        p.machine = frame.index + 1;
        p.function = LuaHost::of(frame.thread).machine().function_of_frame(frame.index);
        return p;
    }
    lua_Debug record;
    if (!lua_getstack(frame.thread, frame.level, &record)) return p;
    lua_getinfo(frame.thread, "f", &record);
    p.function = lua_topointer(frame.thread, -1);
    lua_pop(frame.thread, 1);
    return p;
}

void Debugger::go_on(Resume how) {
    mode_ = Mode::none;
    if (how == Resume::into) mode_ = Mode::into;
    if ((how == Resume::over || how == Resume::out) && !stack_.empty()) {
        mode_ = Mode::over;
        from_ = position_of(stack_.frames()[0]);
        if (how == Resume::out) {
            from_.function = nullptr;
            // Whether the frame stays within the machine, or returns to its caller in Lua.
            const auto& frames = stack_.frames();
            const bool stays = from_.machine > 0 && frames.size() > 1 && frames[1].kind == StackFrame::Kind::machine &&
                               frames[1].level == frames[0].level && frames[1].thread == frames[0].thread;
            if (stays) {
                from_.machine = frames[1].index + 1;
            } else {
                --from_.levels;
                from_.machine = 0;
            }
        }
    }
}

void Debugger::stop(lua_State* L, Stop s) {
    const Front front = this->front();
    if (busy_ || !front) return;
    pause_ = false;
    Resume how = Resume::go;
    {
        Hold busy(busy_, true);
        Hold stopped(stopped_, true);
        stack_ = DebugStack(L);
        ++stop_count_;
        if (stack_.empty()) return;
        how = front(s);
        go_on(how);
        stack_ = DebugStack();
        ++stop_count_;
    }
    refresh();
    update();
    if (how != Resume::leave) return;
    left_ = true;
    // Like Ctrl-C: no pcall of the program can swallow it.
    state_.interrupt();
    throw_interrupted();
}

void Debugger::inspect(DebugStack stack, const std::function<void()>& body) {
    Hold busy(busy_, true);
    Hold stopped(stopped_, true);
    Hold kept(stack_, std::move(stack));
    ++stop_count_;
    body();
    ++stop_count_;
}

}  // namespace lunaria
