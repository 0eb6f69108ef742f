#include "jit/trace/library_calls.h"

#include "core/tensor/element.h"
#include "jit/trace/recording.h"

namespace lunaria::trace {

vm::Values LibraryCalls::really(const Value& f, const vm::Values& args) {
    if (r_.catching == 0) {
        const vm::Watch unwatched(nullptr);
        return r_.host.call(f, args);
    }
    vm::Values given;
    if (!r_.attempt(
            r_.machine.span(), [&](vm::Values& values) { values = r_.host.call(f, args); }, given))
        r_.raise(given[0]);
    return given;
}

bool LibraryCalls::type_of(const Value& f, vm::Values& args, vm::Values& results) {
    if (args.empty()) return false;
    const Value v = symbolic_number(args[0]) ? symbolic_number(args[0])->value : args[0];
    if (vm::object_as<vm::Closure>(v)) {
        results.push_back(Value("function"));
        return true;
    }
    args.resize(1);
    args[0] = v;
    results = really(f, args);
    return true;
}

bool LibraryCalls::select(vm::Values& args, vm::Values& results) {
    if (args.empty()) return false;
    const auto given = static_cast<int64_t>(args.size()) - 1;
    if (args[0].kind() == Value::Kind::string && args[0].string() == "#") {
        results.push_back(Value(given));
        return true;
    }
    const Value n = r_.decided(args[0]);
    if (n.kind() != Value::Kind::integer || n.integer() == 0 || n.integer() < -given) return false;
    int64_t k = n.integer() < 0 ? given + n.integer() + 1 : n.integer();
    for (; k <= given; ++k) results.push_back(std::move(args[static_cast<size_t>(k)]));
    return true;
}

bool LibraryCalls::get_metatable(const Value& f, vm::Values& args, vm::Values& results) {
    if (args.size() != 1) return false;
    const Value v = symbolic_number(args[0]) ? symbolic_number(args[0])->value : args[0];
    if (v.is_tensor() || v.kind() == Value::Kind::dtype) {
        results = really(f, args);
        return true;
    }
    Value table = r_.questions.metatable(v);
    if (!table.is_nil()) {
        Value guarded = r_.questions.read(table, Value("__metatable"));
        if (!guarded.is_nil()) table = guarded;
    }
    results.push_back(std::move(table));
    return true;
}

bool LibraryCalls::set_metatable(const Value& f, vm::Values& args, vm::Values& results) {
    if (args.size() != 2 || !r_.host.is_table(args[0]) || !r_.tables.find(args[0])) {
        r_.stop("setmetatable changes a table from outside");
        return false;
    }
    const Value& table = args[1];
    if (!table.is_nil() && !r_.host.is_table(table)) return false;
    if (!table.is_nil() &&
        (!r_.questions.read(table, Value("__gc")).is_nil() || !r_.questions.read(table, Value("__mode")).is_nil()))
        r_.stop("a metatable with __gc or __mode is used");
    if (const Value old = r_.questions.metatable(args[0]);
        !old.is_nil() && !r_.questions.read(old, Value("__metatable")).is_nil())
        return false;
    r_.loops.wrote(r_.tables.find(args[0])->number);
    results = really(f, args);
    return true;
}

// For pairs, ipairs, next_key and rawlen.
bool LibraryCalls::goes_through(Native which, const Value& f, vm::Values& args, vm::Values& results) {
    if (args.size() != (which == Native::next_key ? 2 : 1) || !r_.host.is_table(args[0])) return false;
    if (which == Native::next_key) {
        results.push_back(r_.questions.next_key(args[0], r_.decided(args[1])));
    } else if (which == Native::raw_length) {
        results.push_back(r_.questions.length_of(args[0]));
    } else {
        if (which == Native::pairs && !r_.questions.meta(args[0], "__pairs").is_nil()) return false;
        results = really(f, args);
    }
    return true;
}

bool LibraryCalls::raw_equal(const Value& f, vm::Values& args, vm::Values& results) {
    if (args.size() != 2) return false;
    for (Value& v : args) v = r_.decided(v);
    if (args[0].is_tensor() || args[1].is_tensor())
        results.push_back(Value(vm::identity_of(args[0]) == vm::identity_of(args[1])));
    else
        results = really(f, args);
    return true;
}

bool LibraryCalls::item(vm::Values& args, vm::Values& results) {
    if (args.size() == 1) r_.sizes.decide(args[0]);
    if (args.size() != 1 || !args[0].is_tensor() || args[0].tensor().size() != 1 ||
        is_complex(args[0].tensor().dtype()))
        return false;
    results = r_.event(Step(Step::Kind::item, {r_.operand(args[0])}),
                       [&](vm::Values& values) { values.push_back(element(args[0].tensor(), 0)); });
    return true;
}

bool LibraryCalls::pure(const Value& f, vm::Values& args, vm::Values& results) {
    bool open = false;
    for (const Value& v : args) {
        if (!r_.is_plain(v) && !symbolic_number(v)) return false;
        open |= symbolic_number(v) != nullptr;
        r_.questions.refuse_metamethod(vm::shown(v), "__tostring");
    }
    if (!open) {
        results = really(f, args);
        for (Value& v : results)
            if (!r_.is_plain(v)) v = r_.tables.adopt(v);
        return true;
    }
    // Functions of numbers are instructions of the machine; the results of others are symbolic.
    if (r_.host.resolve(f).kind == vm::Callee::Kind::function) return false;
    const Value callee = r_.operand(f);
    Step s(Step::Kind::call, {callee, Value::list(r_.operands(args))});
    s.opens = true;
    vm::Values real;
    for (const Value& v : args) real.push_back(r_.plain(v));
    results = r_.event(std::move(s), [&](vm::Values& values) { values = r_.host.call(f, real); });
    return true;
}

// Functions that tell the kind of a value, and functions that control the recording.
bool LibraryCalls::tells(Native which, const Value& f, vm::Values& args, vm::Values& results) {
    switch (which) {
        case Native::is_tensor:
        case Native::is_parameter:
        case Native::is_alike:
            // The program goes on with a function that is asked: its variables stay what they are.
            if (args.size() != 1 || vm::object_as<vm::Closure>(args[0])) {
                results.push_back(Value(which == Native::is_alike && !args.empty() && r_.is_compiled(args[0])));
            } else {
                args[0] = r_.plain(args[0]);
                results = really(f, args);
            }
            return true;
        case Native::error:
            for (Value& v : args) v = r_.decided(v);
            return false;
        case Native::check: {
            const bool wrong =
                args.empty() || args[0].is_nil() || (args[0].kind() == Value::Kind::boolean && !args[0].boolean());
            if (!wrong) results = std::move(args);
            return !wrong;
        }
        case Native::handler:
            r_.handles_errors = true;
            return false;
        case Native::alike:
            if (args.empty()) return false;
            results.push_back(r_.alike(f, args));
            return true;
        case Native::inside:
            results.push_back(Value(true));
            return true;
        case Native::ignored:
            return true;
        case Native::refused:
            r_.stop(str(r_.host.describe(f), " is called"));
            return false;
        default:
            return false;
    }
}

bool LibraryCalls::run(Native which, const Value& f, vm::Values& args, vm::Values& results) {
    switch (which) {
        case Native::type_of:
            return type_of(f, args, results);
        case Native::select:
            return select(args, results);
        case Native::get_metatable:
            return get_metatable(f, args, results);
        case Native::set_metatable:
            return set_metatable(f, args, results);
        case Native::next_key:
        case Native::pairs:
        case Native::ipairs:
        case Native::raw_length:
            return goes_through(which, f, args, results);
        case Native::raw_equal:
            return raw_equal(f, args, results);
        case Native::item:
            return item(args, results);
        case Native::shape:
        case Native::rank:
            for (Value& v : args) {
                v = r_.decided(v);
                if (which == Native::shape) r_.sizes.decide(v);
            }
            results = really(f, args);
            return true;
        case Native::text:
        case Native::pure:
            return pure(f, args, results);
        default:
            return tells(which, f, args, results);
    }
}

}  // namespace lunaria::trace
