#include "jit/trace/own_tables.h"

#include "jit/trace/recording.h"

namespace lunaria::trace {

OwnTables::Own* OwnTables::find(const Value& table) {
    auto found = own_.find(vm::identity_of(table));
    return found == own_.end() ? nullptr : &found->second;
}

bool OwnTables::goes_away(const Value& table) const { return away_.contains(vm::identity_of(table)); }

void OwnTables::settle() {
    for (const auto& [identity, own] : own_)
        for (const auto& change : own.changes)
            if (const Value value = r_.host.raw_get(own.table, change.key); symbolic_number(value))
                r_.host.raw_set(own.table, change.key, r_.plain(value));
            else if (vm::object_as<vm::Closure>(value))
                r_.plain(value);
}

int32_t OwnTables::give_away(Own& table) {
    // A table within a table takes a part of the machine's stack for each level.
    constexpr int kDeepest = 200;
    struct Level {
        int& depth;
        explicit Level(int& d) : depth(d) { ++depth; }
        ~Level() { --depth; }
        Level(const Level&) = delete;
    } const level(depth_);
    if (depth_ > kDeepest) r_.stop(str("a table is nested deeper than ", kDeepest, " levels"));
    Own own = std::move(table);
    own_.erase(vm::identity_of(own.table));
    away_.insert(vm::identity_of(own.table));
    r_.loops.wrote(own.number);
    const Value meta = r_.outside.ask({.kind = Step::Kind::metatable, .object = &own.table, .value = true}).value;
    std::vector<Value> content{r_.given(meta)};
    for (const auto& change : own.changes) {
        Value value = r_.host.raw_get(own.table, change.key);
        if (symbolic_number(value) || value.is_tensor()) r_.host.raw_set(own.table, change.key, r_.outward(value));
        content.push_back(r_.given(change.key));
        if (!change.insert)
            content.emplace_back();
        else
            content.push_back(value.is_nil() ? Value(true) : r_.given(value));
    }
    Step s(Step::Kind::make, {Value(static_cast<int64_t>(own.array)), Value(static_cast<int64_t>(own.fields)),
                              Value::list(std::move(content))});
    s.table = own.number;
    const bool known = r_.repeats();
    r_.event(std::move(s), [&](vm::Values& values) { values.push_back(own.table); });
    away_.erase(vm::identity_of(own.table));
    // The content that the outside has given it since.
    if (known && !own.content.is_nil()) r_.outside.pour(own.content, own.table);
    return r_.slot_of(own.table);
}

// The table of that number from an earlier attempt of this call, whose content is returned apart; or nil.
Value OwnTables::replayed(int32_t number, Value& content) {
    const auto found = replayed_.find(number);
    if (!r_.repeats() || found == replayed_.end()) return {};
    content = r_.host.new_table(0, 0);
    r_.outside.pour(found->second, content);
    return found->second;
}

OwnTables::Own& OwnTables::add(const Value& table, int32_t number, const Value& content) {
    Own& own = own_[vm::identity_of(table)];
    own = Own();
    own.table = table;
    own.number = number;
    own.content = content;
    return own;
}

Value OwnTables::adopt(Value table) {
    if (!r_.host.is_table(table) || find(table) || !r_.records()) return table;
    const int32_t number = count_++;
    Value content;
    if (const Value known = replayed(number, content)) {
        r_.outside.pour(table, known);
        table = known;
    }
    Own& own = add(table, number, content);
    own.array = static_cast<size_t>(r_.outside.ask({.kind = Step::Kind::length, .object = &table}).integer);
    for (Value key;;) {
        key = r_.outside.ask({.kind = Step::Kind::next, .object = &table, .key = &key, .value = true}).value;
        if (key.is_nil()) break;
        own.changes.push_back({key, true});
    }
    return table;
}

void OwnTables::set(Own& own, const Value& key, const Value& value) {
    const bool had = !r_.host.raw_get(own.table, key).is_nil();
    r_.host.raw_set(own.table, r_.outside_key(key), value);
    r_.loops.wrote(own.number);
    if (had == value.is_nil()) own.changes.push_back({key, !had});
}

Value OwnTables::make(size_t array, size_t fields) {
    const int32_t number = count_++;
    Value content, table = replayed(number, content);
    if (!table) table = r_.host.new_table(array, fields);
    if (!r_.records()) return table;
    Own& own = add(table, number, content);
    own.array = array;
    own.fields = fields;
    return table;
}

}  // namespace lunaria::trace
