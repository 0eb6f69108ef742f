#include "jit/vm/plain_host.h"

#include <algorithm>

#include "core/ir/substitution.h"
#include "core/tensor/element.h"
#include "jit/language.h"

namespace lunaria::vm {

namespace {

using Table = PlainHost::Table;

Table* table_at(const Value& v) { return object_as<Table>(v); }

// A table as the list of its items.
Value argument_of(const Value& v) {
    const Table* t = table_at(v);
    if (!t) return v;
    std::vector<Value> items;
    for (int64_t i = 1, n = t->length(); i <= n; ++i) items.push_back(argument_of(t->get(Value(i))));
    return Value::list(std::move(items));
}

[[noreturn]] void no_such(std::string_view what, const Value& v) {
    throw argument_error("", str("attempt to ", what, " a ", to_string(v), " value"));
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

Value PlainHost::table(std::vector<std::pair<Value, Value>> fields, Value metatable) {
    Value v = make_object<Table>();
    for (auto& [key, value] : fields) table_at(v)->set(key, std::move(value));
    table_at(v)->metatable = std::move(metatable);
    return v;
}

Value PlainHost::function(std::string name, Native native, Function::Body body) {
    return make_object<Function>(std::move(name), native, std::move(body));
}

Callee PlainHost::resolve(const Value& f) {
    Callee callee;
    if (const Op* op = operator_of(f)) {
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
    return callee;
}

Field PlainHost::find_field(const Value& object, const Value& key) {
    Field field;
    field.holder = object;
    if (!is_table(object)) return field;
    field.value = raw_get(object, key);
    field.raw = true;
    if (!field.value.is_nil()) return field;
    const Value method = metamethod(object, object, "__index");
    if (method.is_nil()) return field;
    if (is_table(method)) return find_field(method, key);
    field.raw = false;
    field.method = method;
    return field;
}

Field PlainHost::find_new_field(const Value& object, const Value& key) {
    Field field;
    field.holder = object;
    if (!is_table(object)) return field;
    field.raw = true;
    if (!raw_get(object, key).is_nil()) return field;
    field.method = metamethod(object, object, "__newindex");
    field.raw = field.method.is_nil();
    return field;
}

Value PlainHost::metamethod(const Value& a, const Value& b, std::string_view event) {
    for (const Value* v : {&a, &b})
        if (Table* t = table_at(*v); t && !t->metatable.is_nil())
            if (Value method = raw_get(t->metatable, Value(event)); !method.is_nil()) return method;
    return {};
}

Value PlainHost::index(const Value& object, const Value& key) {
    if (const Field field = find_field(object, key); field.raw) return field.value;
    if (!object.is_tensor()) no_such(str("index (field '", to_string(key), "')"), object);
    if (const Part part = part_of(object, key); part.function)
        return ir::replay(
                   *part.function, {&object, 1},
                   [](const Op& op, const std::vector<Value>& args) { return lunaria::run(op, args); },
                   [](const Value& results, size_t k) { return results.items().at(k); })
            .items()[0];
    static const std::pair<std::string_view, std::function<Value(const Tensor&)>> kProperties[] = {
        {"shape",
         [](const Tensor& x) {
             Value sizes = table({});
             for (int axis = 0; axis < x.rank(); ++axis) table_at(sizes)->set(Value(axis + 1), Value(x.dim(axis)));
             return sizes;
         }},
        {"dtype", [](const Tensor& x) { return Value(x.dtype()); }},
        {"ndim", [](const Tensor& x) { return Value(static_cast<int64_t>(x.rank())); }},
        {"size", [](const Tensor& x) { return Value(x.size()); }}};
    for (const auto& [name, property] : kProperties)
        if (key.kind() == Value::Kind::string && key.string() == name) return property(object.tensor());
    no_such(str("index (field '", to_string(key), "')"), object);
}

void PlainHost::set_index(const Value& object, const Value&, const Value&) { no_such("index", object); }
Values PlainHost::call(const Value& f, std::span<const Value> args) {
    if (auto* function = object_as<Function>(f)) return function->body(args);
    no_such("call", f);
}
Value PlainHost::arithmetic(const Op&, const Value& a, const Value& b) {
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
    auto text = [](const Value& v) { return v.kind() == Value::Kind::string ? v.string() : to_string(v); };
    return Value(text(a) + text(b));
}

Value PlainHost::length(const Value& a) {
    if (a.kind() == Value::Kind::string) return Value(static_cast<int64_t>(a.string().size()));
    if (a.is_tensor() && a.tensor().rank() > 0) return Value(a.tensor().dim(0));
    if (!is_table(a)) no_such("get length of", a);
    return Value(table_at(a)->length());
}

Value PlainHost::new_table(size_t, size_t) { return table({}); }

Value PlainHost::raw_get(const Value& table, const Value& key) {
    const Table* t = table_at(table);
    return t ? t->get(key) : Value();
}
void PlainHost::raw_set(const Value& table, const Value& key, const Value& value) { table_at(table)->set(key, value); }

bool PlainHost::is_table(const Value& v) { return table_at(v) != nullptr; }
bool PlainHost::is_function(const Value& v) {
    return object_as<Closure>(v) || object_as<Function>(v) || operator_of(v);
}

std::string PlainHost::describe(const Value& v) {
    const auto* function = object_as<Function>(v);
    return function ? str("function '", function->name, "'") : to_string(v);
}

// Arguments in the order of the parameters, with options by name in a last table; a list in a table is a list.
Host::Bound PlainHost::bind(const Op& op, std::span<const Value> args) {
    const auto& params = op.signature.params;
    Bound bound;
    bound.paths.resize(params.size());
    for (const Param& param : params) bound.args.push_back(param.default_value);
    for (size_t k = 0; k < args.size(); ++k) {
        const Table* t = table_at(args[k]);
        if (t && k + 1 == args.size() && t->length() == 0 && !t->next(Value()).is_nil()) {
            t->for_each([&](const Value& name, const Value& value) {
                const int i = name.kind() == Value::Kind::string ? op.signature.find(name.string()) : -1;
                if (i < 0) throw argument_error(op.name(), str("there is no option ", to_string(name)));
                bound.args[static_cast<size_t>(i)] = argument_of(value);
                bound.paths[static_cast<size_t>(i)] = {{.argument = k, .name = name}};
            });
            continue;
        }
        if (k >= params.size()) throw argument_error(op.name(), str("it takes ", params.size(), " arguments at most"));
        bound.args[k] = argument_of(args[k]);
        bound.paths[k] = {{.argument = k}};
    }
    return bound;
}

// tensor[i]: a part along the first axis.
Host::Part PlainHost::part_of(const Value& tensor, const Value& key) {
    if (key.kind() != Value::Kind::integer) return {};
    auto graph = std::make_shared<ir::Graph>("part");
    const Tensor& t = tensor.tensor();
    Value x(graph->add_parameter("x", ir::NodeType::of(type_of(tensor))));
    Shape row = t.shape(), shape;
    row[0] = 1;
    for (int i = 1; i < t.rank(); ++i) shape.push_back(t.dim(i));
    Value part(
        graph->add_call(registry().get("narrow"), {x, Value(0), key, Value(1)}, ir::NodeType::of({t.dtype(), row})));
    graph->result = Value::list({Value(
        graph->add_call(registry().get("reshape"), {part, Value::ints(shape)}, ir::NodeType::of({t.dtype(), shape})))});
    return {graph, {}};
}

Host::Part PlainHost::put_part(const Value& tensor, const Value&, const Value&) { no_such("write into", tensor); }

void PlainHost::for_each_table(const Value& table, const std::function<void(const Value&)>& f) {
    std::vector<Value> found{table};
    for (size_t i = 0; i < found.size(); ++i) {
        const Value at = found[i];
        f(at);
        table_at(at)->for_each([&](const Value&, const Value& value) {
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
