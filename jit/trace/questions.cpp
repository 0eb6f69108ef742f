#include "jit/trace/questions.h"

#include <bit>

#include "jit/trace/recording.h"

namespace lunaria::trace {

std::string question(char kind, const void* object, const Value& key) {
    std::string id(1, kind);
    id +=
        std::to_string(reinterpret_cast<uintptr_t>(object)) + ':' + std::to_string(static_cast<int>(key.kind())) + ':';
    switch (key.kind()) {
        case Value::Kind::string:
            return id + key.string();
        case Value::Kind::number:
            return id + std::to_string(std::bit_cast<int64_t>(key.number()));
        case Value::Kind::nil:
            return id;
        case Value::Kind::object:
        case Value::Kind::tensor:
            return id + std::to_string(reinterpret_cast<uintptr_t>(vm::identity_of(key)));
        default:
            return id + std::to_string(key.integer());
    }
}

namespace {

// Values of a basic type share a metatable, which is looked up for this value. Tables and objects have their own.
Value of_basic_type(Outside& outside, const Value& v) {
    switch (v.kind()) {
        case Value::Kind::boolean:
            return Value(false);
        case Value::Kind::integer:
        case Value::Kind::number:
            return Value(0);
        case Value::Kind::string:
            return Value("");
        case Value::Kind::object: {
            const Outside::Type type = outside.type_of(v);
            return type == Outside::Type::table || type == Outside::Type::other ? v : outside.any_function();
        }
        default:
            return v;
    }
}

}  // namespace

void Questions::check_key(const Value& key) {
    // A tensor as a key is found again by the object as which it came.
    if (key.is_tensor() && !r_.has_handle(key)) r_.stop("a table has a tensor as key that it makes");
}

Value Questions::read(const Value& table, const Value& key) {
    if (r_.records()) check_key(key);
    if (!r_.records()) return r_.plain(r_.host.raw_get(table, key));
    if (r_.tables.find(table)) return r_.host.raw_get(table, r_.decided(key));
    r_.numbers.decide_keys(table);
    // The outside cannot have a key that only this run knows. The table itself must not be asked: where a call is
    // repeated up to the place where it stopped, the table already has what the call writes into it later.
    if (r_.tables.find(key) || (vm::object_as<vm::Closure>(key) && !r_.is_noted(key))) return {};
    const SymbolicNumber* number = symbolic_number(key);
    const std::string id = number ? question('k', vm::identity_of(table), Value(static_cast<int64_t>(number->slot)))
                                  : question('r', vm::identity_of(table), key);
    if (auto found = found_.find(id); found != found_.end()) return found->second;
    Step s(Step::Kind::read, {r_.operand(table), r_.operand(key)});
    if (!s.args()[0].is_node()) r_.tree.tables.insert(vm::identity_of(table));
    s.counts = r_.is_counter(key);
    s.opens = number != nullptr;
    const Value found_by = r_.plain(r_.outside_key(key));
    Value v = r_.ask(std::move(s), {.kind = Step::Kind::read, .object = &table, .key = &found_by});
    found_[id] = v;
    return v;
}

Value Questions::metatable(const Value& value) {
    const Value table = of_basic_type(r_.outside, value);
    const Question asked{.kind = Step::Kind::metatable, .object = &table, .value = true};
    if (!r_.records() || r_.tables.find(table)) return r_.outside.ask(asked).value;
    const std::string id = question('m', vm::identity_of(table), r_.is_plain(table) ? table : Value());
    if (auto found = found_.find(id); found != found_.end()) return found->second;
    Step s(Step::Kind::metatable, {r_.operand(table)});
    if (!s.args()[0].is_node() && r_.host.is_table(table)) r_.tree.tables.insert(vm::identity_of(table));
    Value v = r_.ask(std::move(s), asked);
    found_[id] = v;
    return v;
}

Value Questions::meta(const Value& object, const char* event) {
    // The metamethods of tensors and dtypes are the module's own.
    if (object.is_tensor() || object.kind() == Value::Kind::dtype) return r_.host.metamethod(object, object, event);
    const Value table = metatable(object);
    return table.is_nil() ? Value() : read(table, Value(event));
}

// If a program has given a basic type a metamethod of its own, code that uses it is left to Lua.
void Questions::refuse_metamethod(const Value& v, const char* event) {
    const Value method = meta(v, event);
    if (method.is_nil() || !r_.records()) return;
    // Arithmetic with strings, as the library does it.
    if (r_.host.is_function(method) && r_.outside.native(method) == Native::pure) return;
    r_.stop(str("the metamethod ", event, " is used"));
}

Value Questions::read_upvalue(const Value& function, int position, const void* identity, bool varies) {
    const Question asked{.kind = Step::Kind::upvalue, .object = &function, .position = position, .value = true};
    if (!r_.records()) return r_.outside.ask(asked).value;
    const std::string id = question('u', identity, {});
    if (auto found = found_.find(id); found != found_.end()) return found->second;
    Step s(Step::Kind::upvalue, {r_.operand(function), Value(position)});
    s.counts = r_.is_counter({});
    s.varies = varies;
    Value v = r_.ask(std::move(s), asked);
    found_[id] = v;
    return v;
}

void Questions::write_upvalue(const Value& function, int position, const void* identity, const Value& v) {
    auto set = [&](vm::Values&) { r_.outside.set_upvalue(function, position, r_.outward(v)); };
    Step s(Step::Kind::set_upvalue, {});
    s.effect = true;
    if (r_.records()) s.node->args = {r_.operand(function), Value(position), r_.given(v)};
    r_.event(std::move(s), set);
    found_[question('u', identity, {})] = r_.records() ? v : r_.plain(v);
}

Value Questions::next_key(const Value& table, const Value& key) {
    const Question asked{.kind = Step::Kind::next, .object = &table, .key = &key, .value = true};
    if (!r_.records() || r_.tables.find(table)) {
        Value v = r_.outside.ask(asked).value;
        // Keys that are objects come in the order of their addresses.
        if (r_.records() && !r_.is_plain(v)) r_.stop("a table with objects as keys is gone through");
        return v;
    }
    check_key(key);
    const std::string id = question('n', vm::identity_of(table), key);
    if (auto found = found_.find(id); found != found_.end()) return found->second;
    Step s(Step::Kind::next, {r_.operand(table), r_.operand(key)});
    if (!s.args()[0].is_node()) r_.tree.tables.insert(vm::identity_of(table));
    Value v = r_.ask(std::move(s), asked);
    check_key(v);
    found_[id] = v;
    return v;
}

Value Questions::length_of(const Value& table) {
    const Question asked{.kind = Step::Kind::length, .object = &table, .value = true};
    if (!r_.records() || r_.tables.find(table)) return r_.outside.ask(asked).value;
    const std::string id = question('l', vm::identity_of(table), {});
    if (auto found = found_.find(id); found != found_.end()) return found->second;
    Step s(Step::Kind::length, {r_.operand(table)});
    if (!s.args()[0].is_node()) r_.tree.tables.insert(vm::identity_of(table));
    Value v = r_.ask(std::move(s), asked);
    found_[id] = v;
    return v;
}

bool Questions::takes_any_key(const Value& table) {
    return r_.records() && r_.host.is_table(table) && !r_.tables.find(table) && metatable(table).is_nil();
}

// Reads everything in the table and in the tables within it, for code that reads it by itself.
void Questions::read_all(const Value& table, int depth) {
    if (depth > 16) r_.stop("a table is nested too deep");
    if (!r_.records()) return;
    const bool mine = r_.tables.find(table) != nullptr;
    metatable(table);
    if (!mine) length_of(table);
    std::vector<Value> keys;
    for (Value key;;) {
        key = next_key(table, key);
        if (key.is_nil()) break;
        keys.push_back(key);
    }
    for (const Value& key : keys) {
        Value v = read(table, key);
        if (symbolic_number(v)) {
            const Value number = r_.decided(v);
            if (mine) r_.host.raw_set(table, key, number);
        } else if (r_.host.is_table(v)) {
            read_all(v, depth + 1);
        }
    }
}

vm::Field Questions::follow(const Value& object, const Value& key, const char* event) {
    vm::Field field;
    field.holder = object;
    for (int i = 0; i < vm::kMostMetatables; ++i) {
        field.value = read(field.holder, key);
        if (!field.value.is_nil()) {
            field.raw = true;
            return field;
        }
        const Value handler = meta(field.holder, event);
        if (handler.is_nil()) {
            field.raw = true;
            return field;
        }
        if (r_.host.is_function(handler)) {
            field.method = handler;
            return field;
        }
        field.holder = handler;
        if (!r_.host.is_table(handler)) return field;
    }
    return field;
}

void Questions::forget_all() {
    std::erase_if(found_, [](const auto& entry) { return entry.first[0] != '='; });
}

void Questions::wrote(const Value& table, const Value& key, const Value& value, bool any_key) {
    // Order and length may have changed, and so may the value under a symbolic key.
    std::erase_if(found_, [](const auto& entry) {
        return entry.first[0] == 'n' || entry.first[0] == 'l' || entry.first[0] == 'k';
    });
    const std::string id = question('r', vm::identity_of(table), key);
    const std::string_view of_table = std::string_view(id).substr(0, id.find(':') + 1);
    if (any_key)
        std::erase_if(found_, [&](const auto& entry) { return entry.first.starts_with(of_table); });
    else
        found_[id] = value;
}

}  // namespace lunaria::trace
