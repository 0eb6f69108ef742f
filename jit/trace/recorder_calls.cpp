// Instructions and calls as the recorder watches them.
#include <algorithm>

#include "jit/language.h"
#include "jit/trace/library_calls.h"
#include "jit/trace/recorder.h"
#include "jit/trace/symbolic_sizes.h"

namespace lunaria::trace {

namespace {

// Calls whose result tells the kind or the number of the arguments, and so has no derivative.
bool tells_kind(Native which, const vm::Values& args) {
    switch (which) {
        case Native::select:
            return !args.empty() && args[0].kind() == Value::Kind::string;
        case Native::type_of:
        case Native::get_metatable:
        case Native::is_tensor:
        case Native::is_parameter:
        case Native::is_alike:
            return true;
        default:
            return false;
    }
}

}  // namespace

bool Recorder::step(vm::Machine& m, const vm::Instr& i) {
    static const Op& closes = lua::primitive("to_close");
    // Lua calls the handler first; the machine closes variables first.
    if (r_.handles_errors && i.op == &closes) r_.stop("a variable is closed on the way to xpcall");
    r_.instr = &i;
    const lua::Access access = lua::facts(i.op).access;
    if ((access == lua::Access::reads_cell || access == lua::Access::writes_cell) && r_.is_foreign(m.operand(i, 0)))
        r_.stop("a variable is used of a function that was made within a derivative or a compiled function");
    // Rules of derivatives look at the sizes of their operands.
    if (r_.sizes.any() && (i.order > 0 || m.depth > 0)) r_.sizes.decide_all();
    if (r_.loops.step(m, i)) return true;
    return r_.has_numbers() && r_.numbers.step(m, i);
}

bool Recorder::takes_followed(Native which, const Value& f, const vm::Values& args) {
    if (which == Native::local && r_.host.is_harmless(f)) return true;
    for (const Value& v : args)
        if (const auto* number = symbolic_number(v); number && v.marks() && !number->value.is_number()) return false;
    const Outside::Type type = r_.outside.type_of(f);
    const bool may_follow = type == Outside::Type::function && (which == Native::unknown || which == Native::pure);
    if (type != Outside::Type::none && !may_follow) return false;
    const vm::Callee::Kind kind = r_.host.resolve(f).kind;
    return kind == vm::Callee::Kind::function || kind == vm::Callee::Kind::closure || kind == vm::Callee::Kind::op;
}

bool Recorder::before_call(vm::Machine& m, const Value& f, std::span<const Value> contexts, vm::Values& args,
                           const vm::Destination& to) {
    const bool itself = contexts.empty() && r_.outside.is_in_derivatives(f);
    if (!r_.records()) {
        for (Value& v : args) v = r_.plain(v);
        if (itself) m.call_host(f, contexts, std::move(args), to);
        return itself;
    }
    const uint16_t followed = vm::followed_by(contexts);
    uint16_t bits = 0;
    for (const Value& v : args) bits |= vm::marks_of(v);
    const Native which = r_.outside.type_of(f) == Outside::Type::function ? r_.outside.native(f) : Native::unknown;
    if ((bits & followed) && !tells_kind(which, args)) {
        vm::Values texts;
        if (which == Native::text && LibraryCalls(r_).run(which, f, args, texts)) {
            for (Value& v : texts) v.set_marks(followed);
            m.give(to, std::move(texts), {});
            return true;
        }
        // For a function that looks at it, a number that is differentiated is a plain number.
        if (!takes_followed(which, f, args))
            for (Value& v : args)
                if (v.marks() & followed) v = r_.decided(v);
        return false;
    }
    vm::Values results;
    if (which == Native::unknown || !LibraryCalls(r_).run(which, f, args, results)) {
        if (itself) m.call_host(f, contexts, std::move(args), to);
        return itself;
    }
    m.give(to, std::move(results), {});
    return true;
}

// The arguments that the outside gets of a call that is not recorded.
vm::Values Recorder::unrecorded(std::span<const Value> args) {
    vm::Values real;
    for (const Value& v : args) real.push_back(r_.is_compiled(v) ? r_.compiled(v) : r_.plain(v));
    return real;
}

// Calls a function that only the outside can run: an effect, repeated at each call.
vm::Values Recorder::call(const Value& f, std::span<const Value> args) {
    if (!r_.records()) {
        const vm::Values real = unrecorded(args);
        const vm::Watch unwatched(nullptr);
        return r_.host.call(f, real);
    }
    const Native which = r_.outside.native(f);
    if (which == Native::error) {
        // The outside raises the error.
        for (const Value& v : args)
            if (vm::object_as<vm::Closure>(v)) r_.stop("a function is raised as an error");
        vm::Values real;
        for (const Value& v : args) real.push_back(r_.plain(v));
        const vm::Watch unwatched(nullptr);
        return r_.host.call(f, real);
    }
    // Metamethods of arguments may do anything.
    bool calls_back = false;
    for (const Value& v : args) calls_back |= is_table(v) && !r_.questions.metatable(v).is_nil();
    const bool looks =
        (which == Native::reader || which == Native::pure || which == Native::text || which == Native::check) &&
        !calls_back;
    if (looks)
        for (const Value& v : args)
            if (is_table(v) && !r_.tables.find(v)) r_.questions.read_all(v);
    std::vector<Value> arguments;
    const Value callee = r_.given(f);
    for (const Value& v : args) arguments.push_back(r_.given(v));
    Step s(Step::Kind::call, {callee, Value::list(std::move(arguments))});
    s.effect = !looks && which != Native::shape && which != Native::rank;
    const bool unknown = s.effect && (which != Native::local || calls_back);
    vm::Values real;
    for (const Value& v : args) real.push_back(r_.compiled(v));
    vm::Values results = r_.event(std::move(s), [&](vm::Values& values) { values = r_.host.call(f, real); });
    if (unknown) {
        r_.questions.forget_all();
    }
    return results;
}

vm::Host::Bound Recorder::bind(const Op& op, std::span<const Value> args) {
    vm::Values real;
    bool open = false;
    SymbolicSizes sizes(r_, args);
    for (const Value& v : args) {
        if (r_.records() && is_table(v)) {
            r_.questions.read_all(v);
            if (op.draws() && !r_.host.raw_get(v, Value(std::string_view("generator"))).is_nil())
                r_.stop("a generator of its own draws the numbers");
        }
        open |= symbolic_number(v) != nullptr;
        real.push_back(r_.plain(v));
    }
    const vm::Watch unwatched(nullptr);
    Bound bound = sizes.bind(op, real);
    if (!r_.records()) return bound;
    auto note = [&](const auto& self, const Value& v) -> void {
        if (v.is_list())
            for (const Value& item : v.items()) self(self, item);
        // A tensor made of plain values, all of which are known.
        if (v.is_tensor() && r_.slot_of(v) < 0) r_.made(v);
    };
    for (const Value& v : bound.args) note(note, v);
    if (!open) return bound;
    // Symbolic numbers stay symbolic where the operator takes them as they are.
    std::vector<bool> stays(args.size());
    for (size_t i = 0; i < bound.args.size(); ++i) {
        if (bound.paths[i].size() != 1 || !bound.paths[i][0].name.is_nil()) continue;
        const size_t k = bound.paths[i][0].argument;
        if (!symbolic_number(args[k]) || !identical(real[k], bound.args[i])) continue;
        bound.args[i] =
            SymbolicNumbers::takes_tensors(op) && i < 2 ? r_.numbers.beside(args[k], bound.args[1 - i], op) : args[k];
        stays[k] = true;
    }
    for (size_t k = 0; k < args.size(); ++k)
        if (symbolic_number(args[k]) && !stays[k]) r_.decided(args[k]);
    return bound;
}

}  // namespace lunaria::trace
