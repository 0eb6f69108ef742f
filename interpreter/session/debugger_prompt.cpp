#include "interpreter/session/debugger_prompt.h"

#include <algorithm>
#include <charconv>

#include "interpreter/loader/loader.h"
#include "interpreter/protect.h"

namespace lunaria {

namespace {

constexpr int kAround = 5;  // lines listed before and after

std::string trim(const std::string& text) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

bool is_name_part(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::optional<int> integer(const std::string& text) {
    int value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::string place_text(const StackFrame& f) {
    return str(f.source, ":", f.line, " in ", f.backward ? "the derivative of " : "", f.function);
}

}  // namespace

const std::map<std::string, DebuggerPrompt::Command, std::less<>>& DebuggerPrompt::commands() {
    using P = DebuggerPrompt;
    static const std::map<std::string, Command, std::less<>> all = {
        {"n", {&P::step_over, "n", "goes on to the next line of this function", false}},
        {"s", {&P::step_into, "s", "goes on to the next line, also of a function that is called", false}},
        {"r", {&P::step_out, "r", "goes on until this function returns", false}},
        {"c", {&P::go, "c", "goes on until a breakpoint", false}},
        {"q", {&P::leave, "q", "ends the program", false}},
        {"u", {&P::up, "u [COUNT]", "looks at the caller", true}},
        {"d", {&P::down, "d [COUNT]", "looks at what was called", true}},
        {"w", {&P::where, "w", "shows the stack", false}},
        {"l", {&P::list, "l [FIRST[,LAST]]", "shows source lines, then those after", true}},
        {"ll", {&P::list_function, "ll", "shows the whole function", false}},
        {"p", {&P::print, "p EXPRESSION", "shows a value", true}},
        {"pp", {&P::print_deep, "pp EXPRESSION", "shows all of a value", true}},
        {"whatis", {&P::what, "whatis EXPRESSION", "shows the type of a value", true}},
        {"a", {&P::arguments, "a", "shows locals and arguments", false}},
        {"upvalues", {&P::locals, "upvalues", "shows variables of enclosing functions as well", false}},
        {"b", {&P::set_breakpoint, "b [[FILE:]LINE|FUNCTION[, CONDITION]]", "sets or lists breakpoints", true}},
        {"tbreak", {&P::set_temporary, "tbreak PLACE[, CONDITION]", "a breakpoint for one stop", true}},
        {"cl", {&P::clear, "cl [NUMBER|PLACE]", "removes breakpoints", true}},
        {"condition", {&P::set_condition, "condition NUMBER [EXPRESSION]", "stops only where it is true", true}},
        {"ignore", {&P::ignore, "ignore NUMBER COUNT", "passes a breakpoint so many times", true}},
        {"enable", {&P::enable, "enable NUMBER", "turns a breakpoint on", true}},
        {"disable", {&P::disable, "disable NUMBER", "turns it off", true}},
        {"catch", {&P::stop_at_errors, "catch [all|uncaught|off]", "stops where errors are raised", true}},
        {"watch", {&P::watch, "watch [EXPRESSION]", "stops when it changes in this function; lists", true}},
        {"display", {&P::display, "display [EXPRESSION]", "shows it at every stop", true}},
        {"unwatch", {&P::unwatch, "unwatch [NUMBER]", "forgets what watch and display set", true}},
        {"h", {&P::help, "h [COMMAND]", "this list", true}},
    };
    return all;
}

const std::map<std::string, std::string, std::less<>>& DebuggerPrompt::aliases() {
    static const std::map<std::string, std::string, std::less<>> all = {
        {"next", "n"},     {"step", "s"}, {"return", "r"},         {"finish", "r"}, {"out", "r"},    {"cont", "c"},
        {"continue", "c"}, {"quit", "q"}, {"exit", "q"},           {"up", "u"},     {"down", "d"},   {"where", "w"},
        {"bt", "w"},       {"list", "l"}, {"longlist", "ll"},      {"args", "a"},   {"locals", "a"}, {"break", "b"},
        {"clear", "cl"},   {"help", "h"}, {"undisplay", "unwatch"}};
    return all;
}

std::vector<DebuggerPrompt::Description> DebuggerPrompt::descriptions() {
    std::vector<Description> all;
    for (const auto& [name, command] : commands()) all.push_back({name, command.usage, command.text});
    return all;
}

Resume DebuggerPrompt::on_stop(const Stop& stop) {
    frame_ = 0;
    listed_ = 0;
    running_ = true;
    switch (stop.reason) {
        case StopReason::breakpoint: {
            std::string numbers;
            for (int id : stop.breakpoints) numbers += str(numbers.empty() ? "" : ", ", id);
            write(str("breakpoint ", numbers, stop.text.empty() ? "" : ": ", stop.text));
            break;
        }
        case StopReason::error:
            write("error: " + stop.text);
            break;
        case StopReason::watch:
            write("changed: " + stop.text);
            break;
        case StopReason::pause:
            write("paused");
            break;
        default:
            break;
    }
    show_frame();
    show_watches();
    return run().value_or(Resume::leave);
}

void DebuggerPrompt::post_mortem() {
    std::string problem;
    DebugStack stack;
    debugger().guarded([&](lua_State* T) { stack = DebugStack::post_mortem(T); }, problem);
    if (stack.empty()) throw state_error("debug", "there was no error yet");
    debugger().inspect(std::move(stack), [&] {
        frame_ = 0;
        listed_ = 0;
        running_ = false;
        show_frame();
        run();
    });
}

std::optional<Resume> DebuggerPrompt::run() {
    how_.reset();
    while (!how_) {
        const auto text =
            hooks_.ask(kPrompt, [this](const std::string& t, size_t cursor) { return complete(t, cursor); });
        if (!text) return std::nullopt;
        const std::string typed = trim(*text);
        line(typed.empty() ? last_ : typed);
        if (!typed.empty()) last_ = typed;
    }
    return how_;
}

void DebuggerPrompt::line(const std::string& text) {
    if (text.empty()) return;
    if (text[0] == '!') return print(text.substr(1));
    size_t end = 0;
    while (end < text.size() && is_name_part(text[end])) ++end;
    std::string name = text.substr(0, end);
    const std::string rest = trim(text.substr(end));
    if (const auto alias = aliases().find(name); alias != aliases().end()) name = alias->second;
    const auto found = commands().find(name);
    // `n = 5`, `c.x`, `l:mean()`: a variable with the name of a command.
    const bool adjacent = end < text.size() && text[end] != ' ' && text[end] != '\t';
    const bool is_lua = found == commands().end() || adjacent || (rest.starts_with('=') && !rest.starts_with("==")) ||
                        (!found->second.takes_text && !rest.empty());
    if (is_lua) return print(text);
    const bool goes_on = name == "n" || name == "s" || name == "r" || name == "c";
    if (goes_on && !running_) return write("the program is over: only q, and looking around");
    (this->*found->second.run)(rest);
}

void DebuggerPrompt::show_frame() {
    const StackFrame& f = frame();
    write("> " + place_text(f));
    const auto lines = source_lines(state_, f.chunk);
    const auto at = static_cast<size_t>(f.line) - 1;
    if (at < lines.size()) write("-> " + trim(lines[at]));
    listed_ = 0;
}

void DebuggerPrompt::show_watches() {
    for (const Watch& w : debugger().watches())
        if (!w.stops)
            if (const auto value = value_of(w.expression, hooks_.pretty(), false))
                write(str("display ", w.id, ": ", w.expression, " = ", *value));
}

std::optional<std::string> DebuggerPrompt::value_of(const std::string& code, const PrettyOptions& options, bool tell) {
    std::string value, problem;
    const bool ok = debugger().guarded(
        [&](lua_State* T) {
            const int count = debugger().evaluate(T, frame_, code);
            for (int i = 1; i <= count; ++i) value += (i > 1 ? "\t" : "") + pretty(T, i, options);
        },
        problem);
    if (ok) return value;
    if (tell) write("error: " + problem);
    return std::nullopt;
}

void DebuggerPrompt::print(const std::string& rest) {
    if (rest.empty()) return write("p needs an expression");
    const auto value = value_of(rest, hooks_.pretty());
    if (value && !value->empty()) write(*value);
}

void DebuggerPrompt::print_deep(const std::string& rest) {
    PrettyOptions options = hooks_.pretty();
    options.depth = 20;
    options.entries = 10000;
    options.total = 100000;
    options.text = 1u << 20;
    const auto value = value_of(rest.empty() ? "nil" : rest, options);
    if (value && !value->empty()) write(*value);
}

void DebuggerPrompt::what(const std::string& rest) {
    PrettyOptions options;
    const auto value = value_of(
        "(function(v) local ms = require 'lunaria' return ms.is_tensor(v) and "
        "'tensor' or math.type(v) or type(v) end)((" +
            rest + "))",
        options);
    if (value) write(value->size() > 2 ? value->substr(1, value->size() - 2) : *value);
}

void DebuggerPrompt::select(size_t at) {
    frame_ = at;
    show_frame();
}

void DebuggerPrompt::up(const std::string& rest) {
    const size_t count = static_cast<size_t>(std::max(1, integer(rest).value_or(1)));
    const size_t last = debugger().stack().frames().size() - 1;
    if (frame_ == last) return write("this is the outermost function");
    select(std::min(frame_ + count, last));
}

void DebuggerPrompt::down(const std::string& rest) {
    const size_t count = static_cast<size_t>(std::max(1, integer(rest).value_or(1)));
    if (frame_ == 0) return write("this is where the program stopped");
    select(frame_ - std::min(frame_, count));
}

void DebuggerPrompt::where(const std::string&) {
    const auto& frames = debugger().stack().frames();
    for (size_t i = frames.size(); i-- > 0;) {
        const StackFrame& f = frames[i];
        if (i + 1 < frames.size() && f.thread != frames[i + 1].thread && f.thread) write("  (a coroutine)");
        write((i == frame_ ? "> " : "  ") + place_text(f));
        const auto lines = source_lines(state_, f.chunk);
        const auto at = static_cast<size_t>(f.line) - 1;
        if (at < lines.size()) write("    " + trim(lines[at]));
        if (f.tail) write("  (...tail calls...)");
    }
}

void DebuggerPrompt::write_source(int first, int last) {
    const auto lines = source_lines(state_, frame().chunk);
    if (lines.empty()) return write("its source is not known");
    first = std::max(first, 1);
    last = std::min(last, static_cast<int>(lines.size()));
    if (first > last) return write("that is beyond the end");
    const auto breakpoints = debugger().breakpoints();
    const std::string& source = frame().source;
    for (int i = first; i <= last; ++i) {
        const bool stops = std::any_of(breakpoints.begin(), breakpoints.end(), [&](const Breakpoint& b) {
            return b.line == i && b.enabled && (b.source == source || source.ends_with("/" + b.source));
        });
        std::string number = std::to_string(i);
        number.insert(0, number.size() < 4 ? 4 - number.size() : 0, ' ');
        write(str(number, stops ? " B" : "  ", i == frame().line ? "-> " : "   ", lines[static_cast<size_t>(i) - 1]));
    }
    listed_ = last;
}

void DebuggerPrompt::list(const std::string& rest) {
    if (rest == ".") listed_ = 0;
    if (rest.empty() || rest == ".") {
        const int first = listed_ > 0 ? listed_ + 1 : frame().line - kAround;
        return write_source(first, listed_ > 0 ? listed_ + 2 * kAround + 1 : frame().line + kAround);
    }
    const size_t comma = rest.find(',');
    const auto first = integer(trim(rest.substr(0, comma)));
    const auto last = comma == std::string::npos ? std::nullopt : integer(trim(rest.substr(comma + 1)));
    if (!first) return print("l " + rest);
    // As in pdb, a second number below the first one counts lines.
    const int end = !last ? *first + 2 * kAround : *last < *first ? *first + *last : *last;
    write_source(comma == std::string::npos ? *first - kAround : *first,
                 comma == std::string::npos ? end - kAround : end);
}

void DebuggerPrompt::list_function(const std::string&) {
    const StackFrame& f = frame();
    int last = f.line;
    std::string problem;
    debugger().guarded(
        [&](lua_State* T) {
            debugger().stack().push_function(T, frame_);
            if (!lua_isfunction(T, -1)) return;
            lua_Debug record;
            lua_getinfo(T, ">S", &record);
            last = record.lastlinedefined;
        },
        problem);
    if (f.first_line <= 0) return write_source(1, 1 << 30);
    write_source(f.first_line, std::max(last, f.line + kAround));
}

void DebuggerPrompt::write_variables(VariableKind kind, const char* mark) {
    PrettyOptions options = hooks_.pretty();
    options.depth = 2;
    options.entries = 20;
    options.total = 40;
    options.text = 200;
    std::string problem;
    std::vector<std::string> rows;
    const bool ok = debugger().guarded(
        [&](lua_State* T) {
            const DebugStack& stack = debugger().stack();
            for (const StackVariable& v : stack.variables(T, frame_, kind)) {
                stack.push(T, frame_, v);
                rows.push_back(str(mark, v.name, " = ", pretty(T, -1, options)));
                lua_pop(T, 1);
            }
        },
        problem);
    for (const std::string& row : rows) write(row);
    if (!ok) write("error: " + problem);
}

void DebuggerPrompt::arguments(const std::string&) {
    write_variables(VariableKind::local, "");
    write_variables(VariableKind::vararg, "");
    if (!frame().complete)
        write(
            "(a differentiated function that was entered before anything was debugged: only what is left of its "
            "arguments)");
    if (!running_) write_variables(VariableKind::upvalue, "^");
}

void DebuggerPrompt::locals(const std::string& rest) {
    arguments(rest);
    if (running_) write_variables(VariableKind::upvalue, "^");
}

std::optional<Breakpoint> DebuggerPrompt::place_of(const std::string& text) {
    Breakpoint b;
    std::string chunk = frame().chunk;
    b.source = frame().source;
    const size_t colon = text.rfind(':');
    if (const auto line = integer(text)) {
        b.line = *line;
    } else if (const auto after = colon == std::string::npos ? std::nullopt : integer(trim(text.substr(colon + 1)))) {
        b.source = trim(text.substr(0, colon));
        b.line = *after;
        chunk.clear();
        for (const char* mark : {"=", "@"})
            if (!state_.loader().sources(mark + b.source).empty()) chunk = mark + b.source;
        // A file that is not loaded yet may have any path; there is nothing to compare with.
        if (chunk.empty()) return b;
    } else {
        std::string problem;
        const bool ok = debugger().guarded(
            [&](lua_State* T) {
                debugger().evaluate(T, frame_, text);
                lua_settop(T, 1);
                if (!lua_isfunction(T, 1) || lua_iscfunction(T, 1))
                    throw argument_error("b", str("'", text, "' is neither a line nor a function of Lua"));
                lua_Debug record;
                lua_getinfo(T, ">S", &record);
                chunk.assign(record.source, record.srclen);
                b.source = display_name(chunk);
                b.line = record.linedefined + (record.lastlinedefined > record.linedefined ? 1 : 0);
            },
            problem);
        if (!ok) {
            write("error: " + problem);
            return std::nullopt;
        }
    }
    const auto texts = state_.loader().sources(chunk);
    const std::vector<int> lines = texts.empty() ? std::vector<int>() : lines_with_code(std::string(texts[0]));
    if (lines.empty()) return b;
    const auto next = std::lower_bound(lines.begin(), lines.end(), b.line);
    if (b.line <= 0 || next == lines.end()) {
        write(str("there is no code on line ", b.line, " of ", b.source, " or after it"));
        return std::nullopt;
    }
    b.line = *next;
    return b;
}

void DebuggerPrompt::add_breakpoint(const std::string& rest, bool temporary) {
    const size_t comma = rest.find(',');
    auto b = place_of(trim(rest.substr(0, comma)));
    if (!b) return;
    b->temporary = temporary;
    if (comma != std::string::npos) b->condition = trim(rest.substr(comma + 1));
    const std::string where = str(b->source, ":", b->line);
    write(str("breakpoint ", debugger().add_breakpoint(std::move(*b)), " at ", where));
}

void DebuggerPrompt::set_breakpoint(const std::string& rest) {
    if (!rest.empty()) return add_breakpoint(rest, false);
    const auto list = debugger().breakpoints();
    if (list.empty()) write("no breakpoints");
    for (const Breakpoint& b : list)
        write(str(b.id, "  ", b.source, ":", b.line, b.temporary ? "  once" : "", b.enabled ? "" : "  disabled",
                  b.condition.empty() ? "" : "  if " + b.condition,
                  b.from_hit > b.hits + 1 ? str("  after ", b.from_hit - b.hits - 1, " more hits") : "",
                  b.hits > 0 ? str("  hits: ", b.hits) : ""));
}

void DebuggerPrompt::set_temporary(const std::string& rest) {
    if (rest.empty()) return write("tbreak needs a line or a function");
    add_breakpoint(rest, true);
}

std::optional<int> DebuggerPrompt::number_of(const std::string& text, std::string& rest) {
    const size_t end = std::min(text.find_first_of(" \t"), text.size());
    const auto id = integer(text.substr(0, end));
    rest = trim(text.substr(end));
    const auto all = debugger().breakpoints();
    if (id && std::any_of(all.begin(), all.end(), [&](const Breakpoint& b) { return b.id == *id; })) return id;
    write(str("there is no breakpoint '", text.substr(0, end), "'"));
    return std::nullopt;
}

void DebuggerPrompt::clear(const std::string& rest) {
    if (rest.empty()) {
        debugger().remove_breakpoints();
        return write("all breakpoints removed");
    }
    std::string more;
    if (integer(rest)) {
        if (const auto id = number_of(rest, more)) {
            debugger().remove_breakpoint(*id);
            write(str("breakpoint ", *id, " removed"));
        }
        return;
    }
    const auto b = place_of(rest);
    if (!b) return;
    int removed = 0;
    for (const Breakpoint& other : debugger().breakpoints())
        if (other.source == b->source && other.line == b->line) removed += debugger().remove_breakpoint(other.id);
    write(removed > 0 ? str("removed: ", removed) : str("no breakpoint at ", b->source, ":", b->line));
}

void DebuggerPrompt::set_condition(const std::string& text) {
    std::string rest;
    if (const auto id = number_of(text, rest))
        debugger().change_breakpoint(*id, [&](Breakpoint& b) { b.condition = rest; });
}

void DebuggerPrompt::ignore(const std::string& text) {
    std::string rest;
    const auto id = number_of(text, rest);
    const auto count = integer(rest);
    if (!id) return;
    if (!count || *count < 0) return write("ignore needs a number and a count");
    debugger().change_breakpoint(*id, [&](Breakpoint& b) { b.from_hit = b.hits + *count + 1; });
}

void DebuggerPrompt::enable(const std::string& text) {
    std::string rest;
    if (const auto id = number_of(text, rest))
        debugger().change_breakpoint(*id, [](Breakpoint& b) { b.enabled = true; });
}

void DebuggerPrompt::disable(const std::string& text) {
    std::string rest;
    if (const auto id = number_of(text, rest))
        debugger().change_breakpoint(*id, [](Breakpoint& b) { b.enabled = false; });
}

void DebuggerPrompt::stop_at_errors(const std::string& rest) {
    const std::string what = rest.empty() ? "all" : rest;
    if (what != "all" && what != "uncaught" && what != "off") return write("catch needs all, uncaught or off");
    debugger().stop_at_errors(what == "all", what != "off");
    write(what == "off" ? "errors do not stop" : str("stops at ", what == "all" ? "all" : "uncaught", " errors"));
}

void DebuggerPrompt::watch(const std::string& rest) {
    if (rest.empty()) {
        if (debugger().watches().empty()) write("nothing is watched");
        for (const Watch& w : debugger().watches())
            write(str(w.id, w.stops ? "  watch " : "  display ", w.expression, w.stops ? " = " : "", w.value));
        return;
    }
    Watch w;
    w.expression = rest;
    w.chunk = frame().source;
    w.first_line = frame().first_line;
    std::string problem;
    if (!debugger().look(w, frame_, problem)) return write("error: " + problem);
    const std::string value = w.value;
    write(str("watch ", debugger().add_watch(std::move(w)), ": ", rest, " = ", value));
}

void DebuggerPrompt::display(const std::string& rest) {
    if (rest.empty()) return show_watches();
    Watch w;
    w.expression = rest;
    w.stops = false;
    const int id = debugger().add_watch(std::move(w));
    if (const auto value = value_of(rest, hooks_.pretty())) write(str("display ", id, ": ", rest, " = ", *value));
}

void DebuggerPrompt::unwatch(const std::string& rest) {
    const auto id = integer(rest);
    auto& list = debugger().watches();
    const size_t removed = std::erase_if(list, [&](const Watch& w) { return rest.empty() || (id && w.id == *id); });
    if (removed == 0) write(str("there is no watch '", rest, "'"));
    debugger().update();
}

void DebuggerPrompt::help(const std::string& rest) {
    const auto alias = aliases().find(rest);
    const auto found = commands().find(alias != aliases().end() ? alias->second : rest);
    if (found != commands().end()) return write(str(found->second.usage, "  ", found->second.text));
    for (const auto& [name, command] : commands()) {
        std::string usage = command.usage;
        usage.resize(std::max<size_t>(usage.size(), 38), ' ');
        write(str(usage, " ", command.text));
    }
    write(
        "Anything else is Lua, run where you look: expressions are shown, assignments change the program's variables.\n"
        "!CODE runs Lua that looks like a command. An empty line does the last command again.");
}

Completions DebuggerPrompt::complete(const std::string& text, size_t cursor) {
    const CompletionScope scope{
        [this] {
            std::vector<std::string> names;
            std::string problem;
            debugger().guarded(
                [&](lua_State* T) {
                    for (VariableKind kind : {VariableKind::local, VariableKind::upvalue})
                        for (const StackVariable& v : debugger().stack().variables(T, frame_, kind))
                            names.push_back(v.name);
                },
                problem);
            return names;
        },
        [this](lua_State* L, const std::string& name) {
            StackVariable found;
            if (!debugger().stack().find(L, frame_, name, found)) return false;
            debugger().stack().push(L, frame_, found);
            return true;
        }};
    Completions result = lunaria::complete(state_, text, cursor, {}, &scope);
    if (text.find_first_of(" \t") >= cursor)
        for (const auto& [name, command] : commands())
            if (name.size() > 2 && name.starts_with(text.substr(0, cursor)))
                result.items.push_back({name, "command", command.usage});
    return result;
}

}  // namespace lunaria
