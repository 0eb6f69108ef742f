#include "jit/vm/plain_host.h"

#include <algorithm>

#include "core/ir/substitution.h"
#include "core/tensor/element.h"
#include "jit/language.h"
#include "jit/number.h"
#include "jit/vm/plain_arguments.h"

namespace lunaria::vm {

namespace {

using Table = PlainHost::Table;

Table* object_table(const Value& v) { return object_as<Table>(v); }

// An operator of the language, as LuaOperator is one of Lua's.
class SpelledOperator final : public Object, public ir::OperatorHolder {
  public:
    explicit SpelledOperator(const Op& op) : op_(op) {}
    const Op& held() const override { return op_; }

  private:
    const Op& op_;
};

[[noreturn]] void no_such(std::string_view what, const Value& v, const std::string& which = {}) {
    throw argument_error("", str("attempt to ", what, " a ", PlainHost::type_name(v), " value", which));
}

}  // namespace

Value PlainHost::Table::get(const Value& key) const {
    const auto found = places_.find(TableKey(key));
    return found == places_.end() ? Value() : fields_[found->second].second;
}

void PlainHost::Table::set(const Value& given, Value value) {
    const TableKey key(given);
    const Value& k = key;
    if (k.is_nil()) throw argument_error("", "index is nil");
    if (k.kind() == Value::Kind::number && k.number() != k.number()) throw argument_error("", "index is NaN");
    if (const auto found = places_.find(k); found != places_.end()) {
        Value& place = fields_[found->second].second;
        gone_ += !place.is_nil() && value.is_nil();
        gone_ -= place.is_nil() && !value.is_nil();
        place = std::move(value);
        return;
    }
    if (value.is_nil()) return;
    // While a table is traversed, removed keys are only marked; clean-up happens when a key is added.
    if (gone_ > 8 && 2 * gone_ > fields_.size()) {
        std::erase_if(fields_, [](const auto& field) { return field.second.is_nil(); });
        places_.clear();
        for (size_t i = 0; i < fields_.size(); ++i) places_.emplace(fields_[i].first, i);
        gone_ = 0;
    }
    places_.emplace(k, fields_.size());
    fields_.emplace_back(k, std::move(value));
}

Value PlainHost::Table::next(const Value& key) const {
    size_t at = 0;
    if (!key.is_nil()) {
        const auto found = places_.find(TableKey(key));
        if (found == places_.end()) throw argument_error("next", "the table has no such key");
        at = found->second + 1;
    }
    while (at < fields_.size() && fields_[at].second.is_nil()) ++at;
    return at < fields_.size() ? fields_[at].first : Value();
}

int64_t PlainHost::Table::length() const {
    const auto has = [&](int64_t k) { return !get(Value(k)).is_nil(); };
    int64_t there = 0, beyond = 1;
    while (has(beyond)) {
        there = beyond;
        beyond *= 2;
    }
    while (beyond - there > 1) {
        const int64_t middle = there + (beyond - there) / 2;
        (has(middle) ? there : beyond) = middle;
    }
    return there;
}

void PlainHost::Table::take(Table& other) {
    fields_ = std::exchange(other.fields_, {});
    places_ = std::exchange(other.places_, {});
    gone_ = std::exchange(other.gone_, 0);
    metatable = std::exchange(other.metatable, Value());
}

void PlainHost::Table::for_each(const std::function<void(const Value&, const Value&)>& f) const {
    for (const auto& [key, value] : fields_)
        if (!value.is_nil()) f(key, value);
}

void PlainHost::Table::for_each_owned(const std::function<void(const Value&)>& f) const {
    f(metatable);
    for (const auto& [key, value] : fields_) {
        f(key);
        f(value);
    }
    // The places have the keys once more.
    for (const auto& [key, place] : places_) f(key);
}

void PlainHost::Table::empty() {
    // Moved out first: what goes with the fields may be this table.
    const auto fields = std::exchange(fields_, {});
    const auto places = std::exchange(places_, {});
    const Value meta = std::exchange(metatable, Value());
    gone_ = 0;
}

Value PlainHost::table(std::vector<std::pair<Value, Value>> fields, Value metatable) {
    Value v = make_object<Table>();
    for (auto& [key, value] : fields) object_table(v)->set(key, std::move(value));
    object_table(v)->metatable = std::move(metatable);
    return v;
}

Value PlainHost::function(std::string name, Native native, Function::Body body) {
    return make_object<Function>(std::move(name), native, std::move(body));
}

Value PlainHost::operator_value(const Op& op) { return make_object<SpelledOperator>(op); }

const Op* PlainHost::operator_in(const Value& f) {
    auto* spelled = object_as<SpelledOperator>(f);
    return spelled ? &spelled->held() : nullptr;
}

std::string PlainHost::type_name(const Value& v) {
    switch (v.kind()) {
        case Value::Kind::nil:
            return "nil";
        case Value::Kind::boolean:
            return "boolean";
        case Value::Kind::integer:
        case Value::Kind::number:
            return "number";
        case Value::Kind::string:
            return "string";
        case Value::Kind::tensor:
        case Value::Kind::dtype:
            return "userdata";
        default:
            if (object_table(v)) return "table";
            return object_as<Coroutine>(v) ? "thread" : "function";
    }
}

void PlainHost::replace(const Value& f, const Value& by, std::string_view kinds) {
    replacements_.insert_or_assign(identity_of(f), Replacement{f, by, kinds});
}

void PlainHost::set_stand_in(const Value& f, const Value& by) {
    if (const Op* op = operator_in(f))
        operator_stand_ins_[op] = by;
    else
        stand_ins_[identity_of(f)] = by;
}

Value PlainHost::stand_in(const Value& f) {
    if (const Op* op = operator_of(f) ? operator_of(f) : operator_in(f)) {
        const auto found = operator_stand_ins_.find(op);
        return found == operator_stand_ins_.end() ? Value() : found->second;
    }
    const auto found = stand_ins_.find(identity_of(f));
    return found == stand_ins_.end() ? Value() : found->second;
}

bool PlainHost::gives_keys(const Value& f) {
    const auto* function = object_as<Function>(f);
    return function && function->native == Native::next_key;
}

bool PlainHost::holds_floats(const Value& table) {
    bool found = false;
    for_each_table(table, [&](const Value& t) {
        object_table(t)->for_each([&](const Value&, const Value& v) {
            found |= v.kind() == Value::Kind::number || (v.is_tensor() && is_float(v.tensor().dtype()));
        });
    });
    return found;
}

static bool fit(std::string_view kinds, std::span<const Value> args) {
    return arguments_fit(kinds, args, [](const Value& v, char kind) {
        if (object_table(v)) return kind == 'T' || kind == 'X';
        return !PlainHost::is_callable(v) || kind == 'F';
    });
}

Callee PlainHost::resolve(const Value& f) {
    Callee callee;
    if (const Op* op = operator_of(f) ? operator_of(f) : operator_in(f)) {
        callee.kind = Callee::Kind::op;
        callee.op = op;
        return callee;
    }
    if (auto* closure = object_as<Closure>(f)) {
        callee.kind = Callee::Kind::closure;
        callee.closure = f;
        callee.function = closure->function;
        callee.owner = closure->owner;
        callee.captures = closure->captures;
        callee.intrinsic = true;
        return callee;
    }
    if (const Value method = metamethod(f, f, "__call"); !method.is_nil()) {
        callee = resolve(method);
        if (callee.closure.is_nil()) callee.closure = method;
        callee.prefix.push_back(f);
        return callee;
    }
    callee.kind = Callee::Kind::opaque;
    if (const auto found = replacements_.find(identity_of(f)); object_as<Function>(f) && found != replacements_.end()) {
        callee = resolve(found->second.by);
        callee.keeps_caller = true;
        callee.kinds = found->second.kinds;
        if (!callee.kinds.empty()) callee.takes = fit;
    }
    return callee;
}

Field PlainHost::follow_chain(const Value& object, const Value& key, std::string_view event) {
    Field field;
    field.holder = object;
    for (int i = 0; i < kMostMetatables && is_table(field.holder); ++i) {
        field.value = raw_get(field.holder, key);
        field.raw = true;
        if (!field.value.is_nil()) return field;
        const Value method = metamethod(field.holder, field.holder, event);
        if (method.is_nil()) return field;
        field.raw = false;
        if (!is_table(method)) {
            field.method = method;
            return field;
        }
        field.holder = method;
    }
    return field;
}

Field PlainHost::find_field(const Value& object, const Value& key) {
    const bool is_text = object.kind() == Value::Kind::string && is_table(text_metatable);
    return follow_chain(is_text ? raw_get(text_metatable, Value("__index")) : object, key, "__index");
}

Field PlainHost::find_new_field(const Value& object, const Value& key) {
    return follow_chain(object, key, "__newindex");
}

Value PlainHost::metamethod(const Value& a, const Value& b, std::string_view event) {
    for (const Value* v : {&a, &b})
        if (Table* t = object_table(*v); t && !t->metatable.is_nil())
            if (Value method = raw_get(t->metatable, Value(event)); !method.is_nil()) return method;
    return {};
}

Value PlainHost::index(const Value& object, const Value& key) {
    if (const Field field = find_field(object, key); field.raw) return field.value;
    if (!object.is_tensor())
        no_such("index", object, key.kind() == Value::Kind::string ? str(" (field '", key.string(), "')") : "");
    if (key.kind() != Value::Kind::string || is_slice_text(key.string()))
        return index_get(eager_builder(), object, plain_index(key));
    if (const Part part = part_of(object, key); part.function)
        return ir::replay(
                   *part.function, {&object, 1},
                   [](const Op& op, const std::vector<Value>& args) { return lunaria::run(op, args); },
                   [](const Value& results, size_t k) { return results.items().at(k); })
            .items()[0];
    if (key.string() == "shape") {
        Value sizes = table({}, shape_metatable);
        for (int axis = 0; axis < object.tensor().rank(); ++axis)
            object_table(sizes)->set(Value(axis + 1), Value(object.tensor().dim(axis)));
        return sizes;
    }
    static const std::pair<std::string_view, std::function<Value(const Tensor&)>> kProperties[] = {
        {"dtype", [](const Tensor& x) { return Value(x.dtype()); }},
        {"ndim", [](const Tensor& x) { return Value(static_cast<int64_t>(x.rank())); }},
        {"size", [](const Tensor& x) { return Value(x.size()); }},
        {"nbytes", [](const Tensor& x) { return Value(static_cast<int64_t>(x.nbytes())); }},
        {"itemsize", [](const Tensor& x) { return Value(static_cast<int64_t>(size_of(x.dtype()))); }},
        {"device", [](const Tensor& x) { return Value((x.device() ? x.device() : host_device())->name()); }},
        {"data", [](const Tensor& x) { return Value(x); }}};
    for (const auto& [name, property] : kProperties)
        if (key.string() == name) return property(object.tensor());
    Value& found = methods_[key.string()];
    if (found.is_nil() && method) found = Value(method(key.string()));
    if (found.is_nil()) throw argument_error("tensor", str("a tensor has no field or method '", key.string(), "'"));
    return found;
}

void PlainHost::set_index(const Value& object, const Value& key, const Value& value) {
    if (!object.is_tensor() || (key.kind() == Value::Kind::string && !is_slice_text(key.string())))
        no_such("index", object);
    // The tensor is written to, not a copy of its handle.
    Tensor place = object.tensor();
    index_set(place, plain_index(key), value.is_number() ? value : Value(plain_tensor(value, std::nullopt, "index")));
}
Values PlainHost::call(const Value& f, std::span<const Value> args) {
    if (auto* function = object_as<Function>(f)) return function->body(args);
    no_such("call", f);
}
Value PlainHost::arithmetic(const Op& primitive, const Value& a, const Value& b) {
    const Value numbers[] = {a, b};
    if (a.is_number() && b.is_number())
        return lua::run_number(primitive, {numbers, lua::facts(primitive).is_unary() ? size_t{1} : size_t{2}});
    no_such("perform arithmetic on", a.is_number() ? b : a);
}
bool PlainHost::compare(const Op& primitive, const Value& a, const Value& b) {
    const lua::Facts& facts = lua::facts(primitive);
    if (facts.operation == lua::Operation::equal) return KeyEqual()(a, b);
    if (a.kind() == Value::Kind::string && b.kind() == Value::Kind::string)
        return facts.operation == lua::Operation::less ? a.string() < b.string() : a.string() <= b.string();
    if (a.is_tensor() || b.is_tensor()) {
        const Value args[] = {a, b};
        return element(lunaria::run(*facts.on_tensors, args).tensor(), 0).boolean();
    }
    no_such("compare", a.is_number() ? b : a);
}

Value PlainHost::concat(const Value& a, const Value& b) {
    for (const Value* v : {&a, &b})
        if (v->kind() != Value::Kind::string && !v->is_number()) no_such("concatenate", *v);
    auto text = [](const Value& v) { return v.is_number() ? lua::number_text(v) : v.string(); };
    return Value(text(a) + text(b));
}

Value PlainHost::length(const Value& a) {
    if (a.kind() == Value::Kind::string) return Value(static_cast<int64_t>(a.string().size()));
    if (a.is_tensor() && a.tensor().rank() > 0) return Value(a.tensor().dim(0));
    if (!is_table(a)) no_such("get length of", a);
    return Value(object_table(a)->length());
}

Value PlainHost::new_table(size_t, size_t) { return table({}); }

Value PlainHost::raw_get(const Value& table, const Value& key) {
    const Table* t = object_table(table);
    return t ? t->get(key) : Value();
}
void PlainHost::raw_set(const Value& table, const Value& key, const Value& value) {
    object_table(table)->set(key, value);
}

bool PlainHost::is_table(const Value& v) { return object_table(v) != nullptr; }
bool PlainHost::is_function(const Value& v) { return is_callable(v); }
bool PlainHost::is_callable(const Value& v) {
    return object_as<Closure>(v) || object_as<Function>(v) || object_as<NativeFunction>(v) || operator_of(v) ||
           object_as<SpelledOperator>(v);
}

std::string PlainHost::describe(const Value& v) {
    const auto* function = object_as<Function>(v);
    return function ? str("function '", function->name, "'") : is_function(v) ? "a function" : describe_plain(v);
}

Host::Bound PlainHost::bind(const Op& op, std::span<const Value> args) { return bind_plain(op, args); }

Host::Part PlainHost::part_of(const Value& tensor, const Value& key) {
    if (key.kind() == Value::Kind::string && !is_slice_text(key.string())) return parts_.property(tensor, key.string());
    return parts_.indexed(tensor, plain_index(key), nullptr);
}

Host::Part PlainHost::put_part(const Value& tensor, const Value& key, const Value& value) {
    if (!value.is_number() && !value.is_tensor())
        throw argument_error("index", str("a number or a tensor is expected, got ", describe_plain(value)));
    return parts_.indexed(tensor, plain_index(key), &value);
}

void PlainHost::for_each_table(const Value& table, const std::function<void(const Value&)>& f) {
    std::vector<Value> found{table};
    for (size_t i = 0; i < found.size(); ++i) {
        const Value at = found[i];
        f(at);
        object_table(at)->for_each([&](const Value&, const Value& value) {
            if (is_table(value) &&
                std::ranges::none_of(found, [&](const Value& other) { return KeyEqual()(other, value); }))
                found.push_back(value);
        });
    }
}

Host::Protected PlainHost::call_protected(const std::function<void()>& body) {
    try {
        body();
        return {};
    } catch (const Raised& raised) {
        return {false, raised.value};
    } catch (const Error& e) {
        return {false, Value(e.place().empty() ? std::string(e.what()) : str(e.place(), ": ", e.what()))};
    }
}

void PlainHost::raise(const Value& error) { throw Raised{error}; }

}  // namespace lunaria::vm
