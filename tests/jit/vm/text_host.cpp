#include "tests/jit/vm/text_host.h"

#include <algorithm>

#include "core/ir/substitution.h"
#include "core/ir/verifier.h"
#include "jit/language.h"
#include "jit/number.h"

namespace lunaria::testing {

namespace {

TextHost::Table* table_at(const Value& v) { return vm::object_as<TextHost::Table>(v); }

bool same_key(const Value& a, const Value& b) {
    if (a.kind() == Value::Kind::object || b.kind() == Value::Kind::object)
        return vm::identity_of(a) == vm::identity_of(b) && a.kind() == b.kind();
    return same_value(a, b);
}

[[noreturn]] void no_such(std::string_view what, const Value& v) {
    throw argument_error("", str("attempt to ", what, " a ", to_string(v), " value"));
}

}  // namespace

Value TextHost::table(std::vector<std::pair<Value, Value>> fields, Value metatable) {
    Value v = vm::make_object<Table>();
    table_at(v)->fields = std::move(fields);
    table_at(v)->metatable = std::move(metatable);
    return v;
}

vm::Callee TextHost::resolve(const Value& f) {
    vm::Callee callee;
    if (const Op* op = vm::operator_of(f)) {
        callee.kind = vm::Callee::Kind::op;
        callee.op = op;
        return callee;
    }
    if (const Value method = metamethod(f, f, "__call"); !method.is_nil()) {
        callee.kind = vm::Callee::Kind::closure;
        auto* closure = vm::object_as<vm::Closure>(method);
        callee.closure = method;
        callee.function = closure->function;
        callee.owner = closure->owner;
        callee.captures = closure->captures;
        callee.intrinsic = true;
        callee.prefix.push_back(f);
        return callee;
    }
    callee.kind = vm::Callee::Kind::opaque;
    return callee;
}

vm::Field TextHost::find_field(const Value& object, const Value& key) {
    vm::Field field;
    field.holder = object;
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

vm::Field TextHost::find_new_field(const Value& object, const Value& key) {
    vm::Field field;
    field.holder = object;
    field.raw = true;
    if (!raw_get(object, key).is_nil()) return field;
    field.method = metamethod(object, object, "__newindex");
    field.raw = field.method.is_nil();
    return field;
}

Value TextHost::metamethod(const Value& a, const Value& b, std::string_view event) {
    for (const Value* v : {&a, &b})
        if (Table* t = table_at(*v); t && !t->metatable.is_nil())
            if (Value method = raw_get(t->metatable, Value(event)); !method.is_nil()) return method;
    return {};
}

const Op* TextHost::tensor_operator(std::string_view primitive) {
    if (primitive == "minus") return registry().find("neg");
    if (primitive == "mod") return registry().find("remainder");
    if (primitive == "floor_div") return registry().find("floor_divide");
    return registry().find(primitive);
}

Value TextHost::index(const Value& object, const Value& key) {
    if (const Part part = object.is_tensor() ? part_of(object, key) : Part{}; part.function)
        return ir::replay(
                   *part.function, {&object, 1},
                   [](const Op& op, const std::vector<Value>& args) { return lunaria::run(op, args); },
                   [](const Value& results, size_t k) { return results.items().at(k); })
            .items()[0];
    no_such(str("index (field '", to_string(key), "')"), object);
}

void TextHost::set_index(const Value& object, const Value&, const Value&) { no_such("index", object); }
vm::Values TextHost::call(const Value& f, std::span<const Value>) { no_such("call", f); }
Value TextHost::arithmetic(std::string_view, const Value& a, const Value& b) {
    no_such("perform arithmetic on", a.is_number() ? b : a);
}
bool TextHost::compare(std::string_view primitive, const Value& a, const Value& b) {
    if (primitive == "equal") return same_key(a, b);
    no_such("compare", a.is_number() ? b : a);
}

Value TextHost::concat(const Value& a, const Value& b) {
    auto text = [](const Value& v) { return v.kind() == Value::Kind::string ? v.string() : to_string(v); };
    return Value(text(a) + text(b));
}

Value TextHost::length(const Value& a) {
    if (!is_table(a)) no_such("get length of", a);
    int64_t n = 0;
    while (!raw_get(a, Value(n + 1)).is_nil()) ++n;
    return Value(n);
}

Value TextHost::new_table(size_t, size_t) { return table({}); }

Value TextHost::raw_get(const Value& table, const Value& key) {
    for (const auto& [k, v] : table_at(table)->fields)
        if (same_key(k, key)) return v;
    return {};
}

void TextHost::raw_set(const Value& table, const Value& key, const Value& value) {
    auto& fields = table_at(table)->fields;
    auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return same_key(f.first, key); });
    if (found != fields.end())
        found->second = value;
    else
        fields.emplace_back(key, value);
}

bool TextHost::is_table(const Value& v) { return table_at(v) != nullptr; }
bool TextHost::is_function(const Value& v) { return vm::object_as<vm::Closure>(v) || vm::operator_of(v); }

vm::Host::Bound TextHost::bind(const Op& op, std::span<const Value> args) {
    const auto& params = op.signature.params;
    Bound bound;
    for (size_t i = 0; i < params.size(); ++i) {
        bound.args.push_back(i < args.size() ? args[i] : params[i].default_value);
        auto& paths = bound.paths.emplace_back();
        if (i < args.size()) paths.push_back({.argument = i});
    }
    return bound;
}

// tensor[i]: a part along the first axis.
vm::Host::Part TextHost::part_of(const Value& tensor, const Value& key) {
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

vm::Host::Part TextHost::put_part(const Value& tensor, const Value&, const Value&) { no_such("write into", tensor); }

void TextHost::for_each_table(const Value& table, const std::function<void(const Value&)>& f) {
    std::vector<Value> found{table};
    for (size_t i = 0; i < found.size(); ++i) {
        f(found[i]);
        for (const auto& [key, value] : table_at(Value(found[i]))->fields)
            if (is_table(value) &&
                std::none_of(found.begin(), found.end(), [&](const Value& other) { return same_key(other, value); }))
                found.push_back(value);
    }
}

vm::Host::Protected TextHost::call_protected(const std::function<void()>& body) {
    try {
        body();
        return {};
    } catch (const Raised& raised) {
        return {false, raised.value};
    } catch (const Error& e) {
        return {false, Value(e.place().empty() ? std::string(e.what()) : str(e.place(), ": ", e.what()))};
    }
}

void TextHost::raise(const Value& error) { throw Raised{error}; }

Value function_value(const vm::OperatorFunction& f) {
    return vm::make_object<vm::Closure>(*f.function, f.owner, vm::Values());
}

TextProgram::TextProgram(std::string_view text)
    : parsed_(ir::parse(text, {&lua::language(), vm::operator_value}, "text")) {
    ir::verify(*parsed_.graph);
}

Value TextProgram::function() const {
    return vm::make_object<vm::Closure>(vm::function_of(*parsed_.graph), nullptr, vm::Values());
}

std::vector<Value> TextProgram::run(std::span<const Value> args) { return machine_.run(function(), args).vector(); }

std::pair<Value, Value> TextProgram::gradient(std::initializer_list<Value> args, int64_t position) {
    vm::Values all{Value("grad"), function(), Value(position)};
    all.append({args.begin(), args.size()});
    const vm::Values results = machine_.run(function_value(vm::gradient_function()), all);
    return {results[0], results[1]};
}

Value TextProgram::second_derivative(std::initializer_list<Value> args, int64_t position) {
    // f, gradient, position, arguments... -> the derivative of f.
    static const ir::ParsedGraph kSlope = ir::parse(
        "graph slope(%0 f: ?, %1 gradient: ?, %2 position: ?, %3 ...: ?) captures 3 variadic {\n"
        "  %4 = spread({\"grad\", %0, %2}, %3) : ?\n"
        "  %5 = call(%1, %4) : ?\n"
        "  %6 = result(%5, 1) : ?\n"
        "  return {%6}\n"
        "}\n",
        {&lua::language(), vm::operator_value}, "slope");
    const Value gradient = function_value(vm::gradient_function());
    vm::Values all{Value("grad"),
                   vm::make_object<vm::Closure>(vm::function_of(*kSlope.graph), nullptr,
                                                vm::Values{function(), gradient, Value(position)}),
                   Value(position)};
    all.append({args.begin(), args.size()});
    return machine_.run(gradient, all)[1];
}

std::string TextProgram::error(std::initializer_list<Value> args) {
    const vm::Host::Protected outcome = host_.call_protected([&] { run(args); });
    if (outcome.ok) return "no error";
    return outcome.error.kind() == Value::Kind::string ? outcome.error.string() : to_string(outcome.error);
}

}  // namespace lunaria::testing
