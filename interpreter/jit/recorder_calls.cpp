// Instructions and calls, watched.
#include <algorithm>

#include "interpreter/host/lua_reference.h"
#include "interpreter/jit/library_calls.h"
#include "interpreter/jit/recorder.h"
#include "interpreter/jit/symbolic_sizes.h"
#include "jit/language.h"

namespace lunaria::jit {

namespace {

// Calls whose result says what kind of things the arguments are or how many, and so does not depend on what is
// followed.
bool tells_kind(Native which, const vm::Values& args) {
    switch (which) {
        case Native::select:
            return !args.empty() && args[0].kind() == Value::Kind::string;
        case Native::type_of:
        case Native::get_metatable:
        case Native::is_tensor:
        case Native::is_parameter:
            return true;
        default:
            return false;
    }
}

}  // namespace

bool Recorder::step(vm::Machine& m, const vm::Instr& i) {
    static const Op &closes = lua::primitive("to_close"), &gets = lua::primitive("cell_get"),
                    &sets = lua::primitive("cell_set");
    // Lua calls the handler first, the machine closes first.
    if (handles_errors_ && i.op == &closes) stop("a variable is closed on the way to xpcall");
    instr_ = &i;
    if (!foreign_.empty() && (i.op == &gets || i.op == &sets) && foreign_.contains(m.operand(i, 0).object()))
        stop("a variable is used of a function that was made within a derivative or a compiled function");
    // Rules of derivatives look at the sizes of what they are for.
    if (sizes_.any() && (i.order > 0 || m.depth > 0)) sizes_.decide_all();
    if (loops_.step(m, i)) return true;
    return open_ && numbers_.step(m, i);
}

bool Recorder::takes_followed(Native which, const Value& f, const vm::Values& args) {
    if (which == Native::local && host_.is_harmless(f)) return true;
    for (const Value& v : args)
        if (const auto* number = symbolic_number(v); number && v.marks() && !number->value.is_number()) return false;
    const LuaReference* r = vm::object_as<LuaReference>(f);
    if (r && (r->type != LUA_TFUNCTION || (which != Native::unknown && which != Native::pure))) return false;
    const vm::Callee::Kind kind = host_.resolve(f).kind;
    return kind == vm::Callee::Kind::function || kind == vm::Callee::Kind::closure || kind == vm::Callee::Kind::op;
}

bool Recorder::before_call(vm::Machine& m, const Value& f, std::span<const Value> contexts, vm::Values& args,
                           const vm::Destination& to) {
    const bool itself = contexts.empty() && host_.is_in_derivatives(f);
    if (!stopped_.empty()) {
        for (Value& v : args) v = plain(v);
        if (itself) m.call_host(f, contexts, std::move(args), to);
        return itself;
    }
    const uint16_t followed = vm::followed_by(contexts);
    uint16_t bits = 0;
    for (const Value& v : args) bits |= vm::marks_of(v);
    auto* r = vm::object_as<LuaReference>(f);
    Native which = Native::unknown;
    if (r && r->type == LUA_TFUNCTION) {
        lua_State* L = host_.lua();
        luaL_checkstack(L, 4, "call");
        r->push(L);
        which = natives_.find(L, -1);
        lua_pop(L, 1);
    }
    if ((bits & followed) && !tells_kind(which, args)) {
        vm::Values texts;
        if (which == Native::text && LibraryCalls(*this).run(which, f, args, texts)) {
            for (Value& v : texts) v.set_marks(followed);
            m.give(to, std::move(texts), {});
            return true;
        }
        // A number that is differentiated is a value of its own for a function that looks at it.
        if (!takes_followed(which, f, args))
            for (Value& v : args)
                if (v.marks() & followed) v = decided(v);
        return false;
    }
    vm::Values results;
    if (which == Native::unknown || !LibraryCalls(*this).run(which, f, args, results)) {
        if (itself) m.call_host(f, contexts, std::move(args), to);
        return itself;
    }
    m.give(to, std::move(results), {});
    return true;
}

// A function that only Lua can run: an effect, done again at each call.
vm::Values Recorder::call(const Value& f, std::span<const Value> args) {
    if (!stopped_.empty()) {
        vm::Values real;
        for (const Value& v : args) real.push_back(plain(v));
        Unwatched unwatched;
        return host_.call(f, real);
    }
    lua_State* L = host_.lua();
    luaL_checkstack(L, 4, "call");
    host_.push(L, f);
    const bool function = lua_isfunction(L, -1);
    const Native which = function ? natives_.find(L, -1) : Native::unknown;
    lua_pop(L, 1);
    if (!function || which == Native::error) {
        // It raises an error.
        vm::Values real;
        for (const Value& v : args) real.push_back(plain(v));
        Unwatched unwatched;
        return host_.call(f, real);
    }
    // Their metamethods may do anything.
    bool calls_back = false;
    for (const Value& v : args) calls_back |= is_table(v) && !questions_.metatable(v).is_nil();
    const bool looks =
        (which == Native::reader || which == Native::pure || which == Native::text || which == Native::check) &&
        !calls_back;
    if (looks)
        for (const Value& v : args)
            if (is_table(v) && !tables_.find(v)) questions_.read_all(v);
    std::vector<Value> arguments;
    const Value callee = given(f);
    for (const Value& v : args) arguments.push_back(given(v));
    Step s(Step::Kind::call, {callee, Value::list(std::move(arguments))});
    s.effect = !looks && which != Native::shape && which != Native::rank;
    const bool unknown = s.effect && (which != Native::local || calls_back);
    vm::Values real;
    for (const Value& v : args) real.push_back(outward(v));
    vm::Values results = event(std::move(s), [&](vm::Values& values) { values = host_.call(f, real); });
    if (unknown) {
        questions_.forget_all();
    }
    return results;
}

vm::Host::Bound Recorder::bind(const Op& op, std::span<const Value> args) {
    vm::Values real;
    bool open = false;
    SymbolicSizes sizes(*this, args);
    for (const Value& v : args) {
        if (stopped_.empty() && is_table(v)) {
            questions_.read_all(v);
            if (op.side_effect == Effect::random && !host_.raw_get(v, Value(std::string_view("generator"))).is_nil())
                stop("a generator of its own draws the numbers");
        }
        open |= symbolic_number(v) != nullptr;
        real.push_back(plain(v));
    }
    Unwatched unwatched;
    Bound bound = sizes.bind(op, real);
    if (!stopped_.empty()) return bound;
    auto note = [&](const auto& self, const Value& v) -> void {
        if (v.is_list())
            for (const Value& item : v.items()) self(self, item);
        // Made of plain values, of which all are known.
        if (v.is_tensor() && !slot_of_.contains(vm::identity_of(v))) made(v);
    };
    for (const Value& v : bound.args) note(note, v);
    if (!open) return bound;
    // A symbolic number that an operator takes as it is stays one.
    std::vector<bool> stays(args.size());
    for (size_t i = 0; i < bound.args.size(); ++i) {
        if (bound.paths[i].size() != 1 || !bound.paths[i][0].name.is_nil()) continue;
        const size_t k = bound.paths[i][0].argument;
        if (!symbolic_number(args[k]) || !identical(real[k], bound.args[i])) continue;
        bound.args[i] =
            SymbolicNumbers::takes_tensors(op) && i < 2 ? numbers_.beside(args[k], bound.args[1 - i], op) : args[k];
        stays[k] = true;
    }
    for (size_t k = 0; k < args.size(); ++k)
        if (symbolic_number(args[k]) && !stays[k]) decided(args[k]);
    return bound;
}

}  // namespace lunaria::jit
