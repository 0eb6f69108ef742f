#include "jit/trace/recorder.h"

#include <algorithm>
#include <bit>

#include "core/base/interrupt.h"
#include "core/ir/substitution.h"
#include "core/operator/expansion.h"
#include "core/tensor/element.h"
#include "jit/language.h"
#include "jit/trace/symbolic_sizes.h"

namespace lunaria::trace {

namespace {

// Whether the message of an error raised by the machine itself is the same as Lua's.
bool is_exact(const Value& error) {
    if (error.kind() != Value::Kind::string) return false;
    for (const char* words : {": attempt to perform 'n", ": attempt to divide by zero", ": attempt to compare "})
        if (error.string().find(words) != std::string::npos) return true;
    return false;
}

}  // namespace

// A variable of a Lua function outside. Functions that the recorded call makes may outlive the recorder.
class WatchedUpvalue final : public vm::Cell {
  public:
    WatchedUpvalue(std::shared_ptr<Recorder*> recorder, Value function, int position, Value plain)
        : recorder_(std::move(recorder)),
          function_(std::move(function)),
          position_(position),
          plain_(std::move(plain)) {}
    Value get() const override {
        if (!*recorder_ || !vm::watcher()) return cell().get();
        return (*recorder_)->recording().questions.read_upvalue(function_, position_, identity());
    }
    void set(Value v) override {
        if (!*recorder_ || !vm::watcher()) return cell().set(std::move(v));
        (*recorder_)->recording().questions.write_upvalue(function_, position_, identity(), v);
    }
    const void* identity() const override { return cell().identity(); }
    void for_each_owned(const std::function<void(const Value&)>& f) const override {
        f(function_);
        f(plain_);
    }

  private:
    vm::Cell& cell() const { return *static_cast<vm::Cell*>(plain_.object()); }
    std::shared_ptr<Recorder*> recorder_;
    Value function_;
    int position_;
    Value plain_;
};

vm::Values Recorder::record(const Value& f) {
    const vm::Watch watch(this);
    vm::Values results;
    r_.outside.run(r_.machine, [&] {
        if (vm::object_as<vm::Closure>(f)) r_.note_function(f);
        const int64_t count = r_.ask(Step(Step::Kind::count, {}), {}).integer();
        vm::Values args;
        for (int i = 0; i < count; ++i)
            args.push_back(
                r_.ask(Step(Step::Kind::argument, {Value(i)}), {.kind = Step::Kind::argument, .position = i}));
        results = r_.machine.run(f, args);
        std::vector<Value> values;
        for (const Value& v : results) values.push_back(r_.given(v));
        r_.event(Step(Step::Kind::finish, {Value::list(std::move(values))}), [](vm::Values&) {});
        for (Value& v : results) v = r_.compiled(v);
    });
    return results;
}

Value Recorder::settled(const Value& v) {
    r_.sizes.decide(v);
    return r_.decided(v);
}

void Recorder::pass_on() {
    if (r_.restart()) throw state_error("graph mode", r_.stopped());
}

Value Recorder::number_of(const Value& tensor) {
    r_.sizes.decide(tensor);
    if (!r_.records()) return element(tensor.tensor(), 0);
    Value v = r_.event(Step(Step::Kind::item, {r_.operand(tensor)}),
                       [&](vm::Values& values) { values.push_back(element(tensor.tensor(), 0)); })[0];
    auto* number = symbolic_number(v);
    if (number && number->value.kind() == Value::Kind::number) return v;
    return r_.decided(v);
}

std::string Recorder::outer_place(size_t level) {
    // The error would name the line of the caller, which a record cannot know.
    if (r_.catching > 0) r_.stop("a message that it catches names a line of its caller");
    return r_.host.outer_place(level);
}

vm::Field Recorder::find_field(const Value& object, const Value& key) {
    vm::Field field = r_.questions.follow(object, key, "__index");
    if (!field.raw && field.method.is_nil()) {
        field.raw = true;
        field.value = index(field.holder, key);
        field.holder = object;
    }
    return field;
}

vm::Field Recorder::find_new_field(const Value& object, const Value& given_key) {
    if (r_.questions.takes_any_key(object)) {
        // The answer of this branch makes no difference.
        vm::Field field;
        field.holder = object;
        field.raw = true;
        return field;
    }
    const Value key = r_.decided(given_key);
    vm::Field field = r_.questions.follow(object, key, "__newindex");
    if (!field.raw && field.method.is_nil()) field.holder = object;
    return field;
}

Value Recorder::raw_get(const Value& table, const Value& key) {
    return is_table(table) ? r_.questions.read(table, key) : Value();
}

void Recorder::raw_set(const Value& table, const Value& given_key, const Value& value) {
    const bool any_key = symbolic_number(given_key) && r_.questions.takes_any_key(table);
    const Value key = any_key ? r_.plain(given_key) : r_.decided(given_key);
    if (r_.records() && is_table(table)) r_.questions.check_key(key);
    if (!r_.records() || !is_table(table)) return r_.host.raw_set(table, r_.outward(key), r_.outward(value));
    if (OwnTables::Own* mine = r_.tables.find(table)) return r_.tables.set(*mine, key, value);
    // A key that Lua refuses is an error before the write counts as an effect.
    if (key.is_nil() || (key.kind() == Value::Kind::number && key.number() != key.number()))
        return r_.host.raw_set(table, key, r_.plain(value));
    Step s(Step::Kind::raw_set, {r_.operand(table), r_.given(any_key ? given_key : key), r_.given(value)});
    s.effect = true;
    if (!s.args()[0].is_node()) r_.tree.tables.insert(vm::identity_of(table));
    const Value found_by = r_.outside_key(key);
    r_.event(std::move(s), [&](vm::Values&) { r_.host.raw_set(table, found_by, r_.outward(value)); });
    r_.questions.wrote(table, key, r_.records() ? value : r_.plain(value), any_key);
}

Value Recorder::metamethod(const Value& a, const Value& b, std::string_view event) {
    for (const Value* v : {&a, &b}) {
        if (r_.outside.type_of(*v) == Outside::Type::none && !v->is_tensor()) continue;
        Value method = r_.questions.meta(*v, std::string(event).c_str());
        if (!method.is_nil()) return method;
    }
    return {};
}

vm::Callee Recorder::resolve(const Value& given_function) {
    const Value f = r_.outside.target(given_function);
    const Outside::Type type = r_.outside.type_of(f);
    if (type == Outside::Type::none) {
        if (r_.is_plain(f) && r_.records()) r_.questions.refuse_metamethod(f, "__call");
        return r_.host.resolve(f);
    }
    if (type != Outside::Type::function) {
        const Value method = r_.questions.meta(f, "__call");
        if (method.is_nil()) return r_.host.resolve(f);
        vm::Callee callee;
        if (auto* closure = vm::object_as<vm::Closure>(method)) {
            callee.kind = vm::Callee::Kind::closure;
            callee.function = closure->function;
            callee.intrinsic = true;
            callee.closure = method;
            callee.captures = closure->captures;
        } else {
            callee = resolve(method);
            if (callee.closure.is_nil()) callee.closure = method;
        }
        callee.prefix.push_back(f);
        return callee;
    }
    vm::Callee callee = r_.host.resolve(f);
    if (callee.kind != vm::Callee::Kind::function || callee.intrinsic) return callee;
    callee.intrinsic = true;  // the machine runs it, whatever the order of differentiation
    for (size_t i = 0; i < callee.captures.size(); ++i) {
        const int position = static_cast<int>(i) + 1;
        Value& v = callee.captures[i];
        if (dynamic_cast<vm::Cell*>(v.kind() == Value::Kind::object ? v.object() : nullptr) &&
            !vm::object_as<vm::LocalCell>(v))
            v = vm::make_object<WatchedUpvalue>(self_, callee.closure, position, v);
        else
            v = r_.questions.read_upvalue(
                callee.closure, position, r_.outside.variable(callee.closure, position),
                v.is_number() && r_.outside.captured_numbers().differ(callee.function, position, v));
    }
    return callee;
}

// Runs an operator of the expansion of `whole`, the operator that the user typed; null: no expansion.
Value Recorder::run_for(const Op* whole, const Op& op, std::span<const Value> args) {
    if (!whole) return r_.run(op, args);
    struct Stands {
        Stands(const Op*& slot, const Op* op) : slot(slot) { slot = op; }
        ~Stands() { slot = nullptr; }
        const Op*& slot;
    } const stands(r_.whole, whole);
    return speaking_of(*whole, [&] { return r_.run(op, args); });
}

Value Recorder::index(const Value& given_object, const Value& given_key) {
    const Value object = r_.decided(given_object);
    const Value key = object.is_tensor() && SymbolicNumbers::is_position(given_key) ? given_key : r_.decided(given_key);
    if (r_.records() && r_.is_compiled(object)) r_.stop("a field of what ms.jit gave is read");
    if (!r_.records()) {
        const vm::Watch unwatched(nullptr);
        return r_.host.index(r_.is_compiled(object) ? r_.compiled(object) : object, r_.plain(key));
    }
    if (object.is_tensor()) {
        vm::Host::Part part = part_of(object, key);
        if (part.function) {
            part.args.insert(part.args.begin(), object);
            for (const auto& node : part.function->nodes())
                if (node->kind == ir::NodeKind::constant) r_.made(node->constant);
            const Op* const whole = vm::function_of(*part.function).whole;
            const Value result = ir::replay(
                *part.function, part.args,
                [&](const Op& op, const std::vector<Value>& args) { return run_for(whole, op, args); },
                [](const Value& results, size_t i) { return results.items().at(i); });
            Value v = result.is_list() ? result.items().at(0) : result;
            // The key may mean the whole tensor.
            return v;
        }
        if (key.kind() == Value::Kind::string) {
            if (Value sizes; key.string() == "shape" && (sizes = open_shape(r_, object))) return sizes;
            static constexpr std::string_view kOfType[] = {"shape",    "dtype",  "ndim",      "rank",  "size",
                                                           "itemsize", "nbytes", "is_sparse", "device"};
            Value v = r_.host.index(object, key);
            if (is_function(v)) return v;
            for (std::string_view field : kOfType) {
                if (key.string() != field) continue;
                if (field == "shape" || field == "size" || field == "nbytes") r_.sizes.decide(object);
                return r_.tables.adopt(v);
            }
        }
        return r_.event(Step(Step::Kind::index, {r_.operand(object), r_.given(key)}),
                        [&](vm::Values& values) { values.push_back(r_.host.index(object, key)); })[0];
    }
    if (r_.outside.type_of(object) == Outside::Type::other) {
        return r_.event(Step(Step::Kind::index, {r_.operand(object), r_.given(key)}),
                        [&](vm::Values& values) { values.push_back(r_.host.index(object, key)); })[0];
    }
    const Value library = r_.questions.meta(object, "__index");
    if (is_table(library)) {
        vm::Field field = find_field(library, key);
        if (field.method.is_nil()) return field.value;
    }
    if (!library.is_nil()) r_.stop("the metamethod __index is used");
    return r_.host.index(object, key);
}

void Recorder::set_index(const Value& object, const Value& given_key, const Value& value) {
    const Value key = object.is_tensor() && SymbolicNumbers::is_position(given_key) ? given_key : r_.decided(given_key);
    auto set = [&](vm::Values&) { r_.host.set_index(object, r_.plain(key), r_.plain(value)); };
    Step s(Step::Kind::set_index, {});
    s.effect = true;
    if (r_.records()) {
        if (!object.is_tensor() && r_.outside.type_of(object) != Outside::Type::other) {
            r_.questions.refuse_metamethod(object, "__newindex");
            return r_.host.set_index(object, key, r_.plain(value));
        }
        if (object.is_tensor() && r_.is_made(object))
            r_.stop("a tensor that was made of constants is written in place");
        if (is_table(key)) r_.questions.read_all(key);
        s.node->args = {r_.operand(object), r_.given(key), r_.given(value)};
    }
    r_.event(std::move(s), set);
}

Value Recorder::arithmetic(const Op& primitive, const Value& given_a, const Value& given_b) {
    const Value a = r_.decided(given_a), b = r_.decided(given_b);
    for (const Value* v : {&a, &b}) r_.questions.refuse_metamethod(*v, lua::facts(primitive).event);
    return r_.host.arithmetic(primitive, a, b);
}

bool Recorder::compare(const Op& primitive, const Value& given_a, const Value& given_b) {
    const Value a = r_.decided(given_a), b = r_.decided(given_b);
    const bool equality = lua::facts(primitive).operation == lua::Operation::equal;
    auto really = [&] {
        const vm::Watch unwatched(nullptr);
        return r_.host.compare(primitive, a, b);
    };
    if (!r_.records()) return really();
    if (a.is_tensor() || b.is_tensor()) {
        if (equality && !(a.is_tensor() && b.is_tensor())) return really();
        for (const Value* v : {&a, &b}) {
            if (v->is_tensor() || r_.is_plain(*v)) continue;
            r_.stop("a tensor is compared with something else");
        }
        return r_
            .event(Step(Step::Kind::compare, primitive, {r_.operand(a), r_.operand(b)}, {}),
                   [&](vm::Values& values) { values.push_back(Value(r_.host.compare(primitive, a, b))); })[0]
            .boolean();
    }
    const bool strings = a.kind() == Value::Kind::string && b.kind() == Value::Kind::string;
    if (equality) {
        // Only tables and userdata have a metamethod for comparisons.
        auto has_own = [&](const Value& v) {
            const Outside::Type type = r_.outside.type_of(v);
            return type == Outside::Type::table || type == Outside::Type::other;
        };
        if (!has_own(a) || !has_own(b) || vm::identity_of(a) == vm::identity_of(b)) return really();
    }
    if (!strings)
        for (const Value* v : {&a, &b}) r_.questions.refuse_metamethod(*v, lua::facts(primitive).event);
    return really();
}

Value Recorder::concat(const Value& given_a, const Value& given_b) {
    const Value a = r_.decided(given_a), b = r_.decided(given_b);
    const auto is_object = [&](const Value& v) {
        return v.is_tensor() || r_.outside.type_of(v) != Outside::Type::none;
    };
    if (r_.records() && (is_object(a) || is_object(b)))
        r_.stop("something else than strings and numbers is concatenated");
    for (const Value* v : {&a, &b})
        if (r_.records() && !v->is_number() && v->kind() != Value::Kind::string)
            r_.questions.refuse_metamethod(*v, "__concat");
    const vm::Watch unwatched(nullptr);
    return r_.host.concat(a, b);
}

Value Recorder::length(const Value& given_object) {
    const Value object = r_.decided(given_object);
    if (r_.records() && object.is_tensor() && object.tensor().rank() > 0) return size_of(r_, object, 0);
    r_.sizes.decide(object);
    if (r_.records() && is_table(object)) {
        const Value method = r_.questions.meta(object, "__len");
        if (method.is_nil()) return r_.questions.length_of(object);
        if (!r_.tables.find(object)) r_.stop("the metamethod __len is used");
    } else if (r_.records() && !object.is_tensor() && object.kind() != Value::Kind::string) {
        r_.questions.refuse_metamethod(object, "__len");
    }
    const vm::Watch unwatched(nullptr);
    return r_.host.length(object);
}

vm::Host::Part Recorder::part_of(const Value& tensor, const Value& given_key) {
    if (const Value positions = r_.numbers.positions_of(given_key, tensor)) return r_.host.part_of(tensor, positions);
    const Value key = r_.decided(given_key);
    if (is_table(key)) r_.questions.read_all(key);
    if (!key.is_tensor() && !is_table(key) && !r_.is_plain(key)) return {};
    // The name of a method or of a property does not depend on the sizes.
    const bool named = key.kind() == Value::Kind::string && !r_.host.is_part(key);
    if (!named) r_.sizes.decide_attributes(tensor);
    return r_.host.part_of(tensor, key);
}

vm::Host::Part Recorder::put_part(const Value& tensor, const Value& key, const Value& value) {
    if (is_table(key)) r_.questions.read_all(key);
    if (!key.is_tensor() && !is_table(key) && !r_.is_plain(key))
        r_.stop("a tensor is written at a place that cannot be followed");
    r_.sizes.decide(tensor);
    return r_.host.put_part(tensor, r_.plain(key), r_.decided(value));
}

void Recorder::for_each_table(const Value& table, const std::function<void(const Value&)>& f) {
    r_.questions.read_all(table);
    r_.host.for_each_table(table, f);
}

vm::Host::Protected Recorder::call_protected(const std::function<void()>& body) {
    ++r_.catching;
    r_.exact = false;
    Protected outcome = r_.host.call_protected(body);
    --r_.catching;
    if (outcome.ok) return outcome;
    pass_on();
    r_.interrupt_if(interrupt_requested());
    // Lua calls a failing handler again and again.
    const void* handling = &vm::prelude(vm::Prelude::xpcall).function->failed->function->graph;
    for (size_t i = 0; r_.handles_errors && i < r_.machine.frame_count(); ++i)
        if (r_.machine.function_of_frame(i) == handling) r_.stop("the handler of xpcall fails");
    // The machine's message may have less detail than Lua's.
    if (r_.interrupted() || !(std::exchange(r_.exact, false) || is_exact(outcome.error))) r_.stop("an error is caught");
    return outcome;
}

}  // namespace lunaria::trace
