// What the machine asks of its host, watched.
#include <algorithm>
#include <bit>

#include "core/base/interrupt.h"
#include "core/ir/substitution.h"
#include "core/operator/expansion.h"
#include "interpreter/bindings/tensor_index.h"
#include "interpreter/bindings/values.h"
#include "interpreter/host/lua_reference.h"
#include "interpreter/jit/captured_numbers.h"
#include "interpreter/jit/recorder.h"
#include "interpreter/jit/symbolic_sizes.h"
#include "jit/language.h"

namespace lunaria::jit {

namespace {

// Of errors of the machine itself: whether their words are those of Lua.
bool is_exact(const Value& error) {
    if (error.kind() != Value::Kind::string) return false;
    for (const char* words : {": attempt to perform 'n", ": attempt to divide by zero", ": attempt to compare "})
        if (error.string().find(words) != std::string::npos) return true;
    return false;
}

LuaReference* reference_of(const Value& v) { return vm::object_as<LuaReference>(v); }

}  // namespace

// A variable of a Lua function outside. Functions that are made inside may outlive the recorder.
class WatchedUpvalue final : public vm::Cell {
  public:
    WatchedUpvalue(std::shared_ptr<Recorder*> recorder, Value function, int position, Value plain)
        : recorder_(std::move(recorder)),
          function_(std::move(function)),
          position_(position),
          plain_(std::move(plain)) {}
    Value get() const override {
        if (!*recorder_ || !vm::watcher()) return cell().get();
        return (*recorder_)->questions_.read_upvalue(function_, position_, identity());
    }
    void set(Value v) override {
        if (!*recorder_ || !vm::watcher()) return cell().set(std::move(v));
        (*recorder_)->questions_.write_upvalue(function_, position_, identity(), v);
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

bool Recorder::is_plain(const Value& v) const {
    return v.kind() <= Value::Kind::dtype || v.kind() == Value::Kind::string;
}

// Whether it is a constant of what an operator or its rule consists of.
bool Recorder::is_in_code(const Value& tensor) const {
    if (!machine_.is_running() || tensor.tensor().parameter()) return false;
    return std::ranges::any_of(machine_.code().constants, [&](const Value& constant) {
        return constant.is_tensor() && constant.tensor().same_body(tensor.tensor());
    });
}

// A function of the machine that comes from outside. Its variables are not those of this run: nobody asks for them.
void Recorder::note_function(const Value& f) {
    if (!functions_.insert(vm::identity_of(f)).second) return;
    auto note = [&](const auto& self, const Value& v) -> void {
        if (vm::object_as<vm::LocalCell>(v)) foreign_.insert(v.object());
        if (const auto* closure = vm::object_as<vm::Closure>(v))
            for (const Value& c : closure->captures) self(self, c);
    };
    note(note, f);
}

std::string Recorder::outer_place(size_t level) {
    // The message stays in the function, and is another one for each line that calls it.
    if (catching_ > 0) stop("a message that it catches names a line of its caller");
    return host_.outer_place(level);
}

vm::Field Recorder::find_field(const Value& object, const Value& key) {
    vm::Field field = questions_.follow(object, key, "__index");
    if (!field.raw && field.method.is_nil()) {
        field.raw = true;
        field.value = index(field.holder, key);
        field.holder = object;
    }
    return field;
}

vm::Field Recorder::find_new_field(const Value& object, const Value& given_key) {
    if (questions_.takes_any_key(object)) {
        // What was there makes no difference.
        vm::Field field;
        field.holder = object;
        field.raw = true;
        return field;
    }
    const Value key = decided(given_key);
    vm::Field field = questions_.follow(object, key, "__newindex");
    if (!field.raw && field.method.is_nil()) field.holder = object;
    return field;
}

Value Recorder::raw_get(const Value& table, const Value& key) {
    return is_table(table) ? questions_.read(table, key) : Value();
}

void Recorder::raw_set(const Value& table, const Value& given_key, const Value& value) {
    const bool any_key = symbolic_number(given_key) && questions_.takes_any_key(table);
    const Value key = any_key ? plain(given_key) : decided(given_key);
    if (stopped_.empty() && is_table(table)) questions_.check_key(key);
    if (!stopped_.empty() || !is_table(table)) return host_.raw_set(table, outward(key), outward(value));
    if (OwnTables::Own* mine = tables_.find(table)) {
        const bool had = !host_.raw_get(table, key).is_nil();
        host_.raw_set(table, outside(key), value);
        loops_.wrote(mine->number);
        if (had == value.is_nil()) mine->changes.push_back({key, !had});
        return;
    }
    // What Lua refuses is refused before it counts as an effect.
    if (key.is_nil() || (key.kind() == Value::Kind::number && key.number() != key.number()))
        return host_.raw_set(table, key, plain(value));
    Step s(Step::Kind::raw_set, {operand(table), given(any_key ? given_key : key), given(value)});
    s.effect = true;
    if (!s.args()[0].is_node()) tree_.tables.insert(vm::identity_of(table));
    const Value found_by = outside(key);
    event(std::move(s), [&](vm::Values&) { host_.raw_set(table, found_by, outward(value)); });
    questions_.wrote(table, key, stopped_.empty() ? value : plain(value), any_key);
}

Value Recorder::metamethod(const Value& a, const Value& b, std::string_view event) {
    for (const Value* v : {&a, &b}) {
        if (!reference_of(*v) && !v->is_tensor()) continue;
        Value method = questions_.meta(*v, std::string(event).c_str());
        if (!method.is_nil()) return method;
    }
    return {};
}

vm::Callee Recorder::resolve(const Value& given_function) {
    const Value f = host_.jit_target(given_function);
    const LuaReference* r = reference_of(f);
    if (!r && is_plain(f) && stopped_.empty()) questions_.refuse_metamethod(f, "__call");
    if (!r) return host_.resolve(f);
    if (r->type != LUA_TFUNCTION) {
        const Value method = questions_.meta(f, "__call");
        if (method.is_nil()) return host_.resolve(f);
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
    vm::Callee callee = host_.resolve(f);
    if (callee.kind != vm::Callee::Kind::function || callee.intrinsic) return callee;
    callee.intrinsic = true;  // it is run by the machine, whatever the order
    lua_State* L = host_.lua();
    luaL_checkstack(L, 4, "call");
    for (size_t i = 0; i < callee.captures.size(); ++i) {
        const int position = static_cast<int>(i) + 1;
        host_.push(L, callee.closure);
        const void* identity = lua_upvalueid(L, -1, position);
        lua_pop(L, 1);
        Value& v = callee.captures[i];
        if (dynamic_cast<vm::Cell*>(v.kind() == Value::Kind::object ? v.object() : nullptr) &&
            !vm::object_as<vm::LocalCell>(v))
            v = vm::make_object<WatchedUpvalue>(self_, callee.closure, position, v);
        else
            v = questions_.read_upvalue(callee.closure, position, identity,
                                        v.is_number() && captured_numbers_of(L).differ(callee.function, position, v));
    }
    return callee;
}

// Runs one of the operators that stand for `whole`, which is what the user typed; null: the operator stands for itself.
Value Recorder::run_for(const Op* whole, const Op& op, std::span<const Value> args) {
    if (!whole) return run(op, args);
    struct Stands {
        Stands(const Op*& slot, const Op* op) : slot(slot) { slot = op; }
        ~Stands() { slot = nullptr; }
        const Op*& slot;
    } const stands(replayed_, whole);
    return speaking_of(*whole, [&] { return run(op, args); });
}

Value Recorder::index(const Value& given_object, const Value& given_key) {
    const Value object = decided(given_object);
    const Value key = object.is_tensor() && SymbolicNumbers::is_position(given_key) ? given_key : decided(given_key);
    if (!stopped_.empty()) {
        Unwatched unwatched;
        return host_.index(object, plain(key));
    }
    if (object.is_tensor()) {
        vm::Host::Part part = part_of(object, key);
        if (part.function) {
            part.args.insert(part.args.begin(), object);
            for (const auto& node : part.function->nodes())
                if (node->kind == ir::NodeKind::constant) made(node->constant);
            const Op* const whole = vm::function_of(*part.function).whole;
            const Value result = ir::replay(
                *part.function, part.args,
                [&](const Op& op, const std::vector<Value>& args) { return run_for(whole, op, args); },
                [](const Value& results, size_t i) { return results.items().at(i); });
            Value v = result.is_list() ? result.items().at(0) : result;
            // The whole tensor may have been asked for.
            return v;
        }
        if (key.kind() == Value::Kind::string) {
            if (Value sizes; key.string() == "shape" && (sizes = open_shape(*this, object))) return sizes;
            static constexpr std::string_view kOfType[] = {"shape",    "dtype",  "ndim",      "rank",  "size",
                                                           "itemsize", "nbytes", "is_sparse", "device"};
            Value v = host_.index(object, key);
            if (is_function(v)) return v;
            for (std::string_view name : kOfType) {
                if (key.string() != name) continue;
                if (name == "shape" || name == "size" || name == "nbytes") sizes_.decide(object);
                return tables_.adopt(v);
            }
        }
        return event(Step(Step::Kind::index, {operand(object), given(key)}),
                     [&](vm::Values& values) { values.push_back(host_.index(object, key)); })[0];
    }
    if (const LuaReference* r = reference_of(object); r && r->type == LUA_TUSERDATA) {
        return event(Step(Step::Kind::index, {operand(object), given(key)}),
                     [&](vm::Values& values) { values.push_back(host_.index(object, key)); })[0];
    }
    const Value library = questions_.meta(object, "__index");
    if (is_table(library)) {
        vm::Field field = find_field(library, key);
        if (field.method.is_nil()) return field.value;
    }
    if (!library.is_nil()) stop("the metamethod __index is used");
    return host_.index(object, key);
}

void Recorder::set_index(const Value& object, const Value& given_key, const Value& value) {
    const Value key = object.is_tensor() && SymbolicNumbers::is_position(given_key) ? given_key : decided(given_key);
    auto set = [&](vm::Values&) { host_.set_index(object, plain(key), plain(value)); };
    Step s(Step::Kind::set_index, {});
    s.effect = true;
    if (stopped_.empty()) {
        if (!object.is_tensor() && !(reference_of(object) && reference_of(object)->type == LUA_TUSERDATA)) {
            questions_.refuse_metamethod(object, "__newindex");
            return host_.set_index(object, key, plain(value));
        }
        if (object.is_tensor() && constants_.contains(vm::identity_of(object)))
            stop("a tensor that was made of constants is written in place");
        if (is_table(key)) questions_.read_all(key);
        s.node->args = {operand(object), given(key), given(value)};
    }
    event(std::move(s), set);
}

Value Recorder::arithmetic(std::string_view primitive, const Value& given_a, const Value& given_b) {
    const Value a = decided(given_a), b = decided(given_b);
    const std::string event(vm::event_of(primitive));
    for (const Value* v : {&a, &b}) questions_.refuse_metamethod(*v, event.c_str());
    return host_.arithmetic(primitive, a, b);
}

bool Recorder::compare(std::string_view primitive, const Value& given_a, const Value& given_b) {
    const Value a = decided(given_a), b = decided(given_b);
    auto really = [&] {
        Unwatched unwatched;
        return host_.compare(primitive, a, b);
    };
    if (!stopped_.empty()) return really();
    if (a.is_tensor() || b.is_tensor()) {
        if (primitive == "equal" && !(a.is_tensor() && b.is_tensor())) return really();
        for (const Value* v : {&a, &b}) {
            if (v->is_tensor() || is_plain(*v)) continue;
            stop("a tensor is compared with something else");
        }
        return event(Step(Step::Kind::compare, lua::primitive(primitive), {operand(a), operand(b)}, {}),
                     [&](vm::Values& values) { values.push_back(Value(host_.compare(primitive, a, b))); })[0]
            .boolean();
    }
    const bool strings = a.kind() == Value::Kind::string && b.kind() == Value::Kind::string;
    if (primitive == "equal") {
        // Tables and userdata alone are compared by a metamethod.
        auto has_own = [](const Value& v) {
            const LuaReference* r = reference_of(v);
            return r && (r->type == LUA_TTABLE || r->type == LUA_TUSERDATA);
        };
        if (!has_own(a) || !has_own(b) || vm::identity_of(a) == vm::identity_of(b)) return really();
    }
    const std::string event(vm::event_of(primitive));
    if (!strings)
        for (const Value* v : {&a, &b}) questions_.refuse_metamethod(*v, event.c_str());
    return really();
}

Value Recorder::concat(const Value& given_a, const Value& given_b) {
    const Value a = decided(given_a), b = decided(given_b);
    if (stopped_.empty() && (a.is_tensor() || b.is_tensor() || reference_of(a) || reference_of(b)))
        stop("something else than strings and numbers is concatenated");
    for (const Value* v : {&a, &b})
        if (stopped_.empty() && !v->is_number() && v->kind() != Value::Kind::string)
            questions_.refuse_metamethod(*v, "__concat");
    Unwatched unwatched;
    return host_.concat(a, b);
}

Value Recorder::length(const Value& given_object) {
    const Value object = decided(given_object);
    if (stopped_.empty() && object.is_tensor() && object.tensor().rank() > 0) return size_of(*this, object, 0);
    sizes_.decide(object);
    if (stopped_.empty() && is_table(object)) {
        const Value method = questions_.meta(object, "__len");
        if (method.is_nil()) return questions_.length_of(object);
        if (!tables_.find(object)) stop("the metamethod __len is used");
    } else if (stopped_.empty() && !object.is_tensor() && object.kind() != Value::Kind::string) {
        questions_.refuse_metamethod(object, "__len");
    }
    Unwatched unwatched;
    return host_.length(object);
}

vm::Host::Part Recorder::part_of(const Value& tensor, const Value& given_key) {
    if (const Value positions = numbers_.positions_of(given_key, tensor)) return host_.part_of(tensor, positions);
    const Value key = decided(given_key);
    if (is_table(key)) questions_.read_all(key);
    if (!key.is_tensor() && !is_table(key) && !is_plain(key)) return {};
    // Nothing depends on the sizes where it is the name of a method or of a property.
    const bool named = key.kind() == Value::Kind::string && !host_.is_part(key);
    if (!named) sizes_.decide_attributes(tensor);
    return host_.part_of(tensor, key);
}

vm::Host::Part Recorder::put_part(const Value& tensor, const Value& key, const Value& value) {
    if (is_table(key)) questions_.read_all(key);
    if (!key.is_tensor() && !is_table(key) && !is_plain(key))
        stop("a tensor is written at a place that cannot be followed");
    sizes_.decide(tensor);
    return host_.put_part(tensor, plain(key), decided(value));
}

void Recorder::for_each_table(const Value& table, const std::function<void(const Value&)>& f) {
    questions_.read_all(table);
    host_.for_each_table(table, f);
}

vm::Host::Protected Recorder::call_protected(const std::function<void()>& body) {
    ++catching_;
    exact_ = false;
    Protected outcome = host_.call_protected(body);
    --catching_;
    if (outcome.ok) return outcome;
    pass_on();
    interrupted_ |= interrupt_requested();
    // Lua calls a handler that fails again and again.
    const void* handling = &vm::xpcall_function().function->failed->function->graph;
    for (size_t i = 0; handles_errors_ && i < machine_.frame_count(); ++i)
        if (machine_.function_of_frame(i) == handling) stop("the handler of xpcall fails");
    // The machine's words for an error may be less than Lua's.
    if (interrupted_ || !(std::exchange(exact_, false) || is_exact(outcome.error))) stop("an error is caught");
    return outcome;
}

}  // namespace lunaria::jit
