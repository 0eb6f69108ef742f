#include "interpreter/jit/own_tables.h"

#include "interpreter/host/lua_reference.h"
#include "interpreter/jit/recorder.h"

namespace lunaria::jit {

OwnTables::Own* OwnTables::find(const Value& table) {
    auto found = own_.find(vm::identity_of(table));
    return found == own_.end() ? nullptr : &found->second;
}

bool OwnTables::goes_away(const Value& table) const { return away_.contains(vm::identity_of(table)); }

void OwnTables::settle() {
    for (const auto& [identity, own] : own_)
        for (const auto& change : own.changes)
            if (const Value value = r_.host_.raw_get(own.table, change.key); symbolic_number(value))
                r_.host_.raw_set(own.table, change.key, r_.plain(value));
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
    lua_State* L = r_.host_.lua();
    Own own = std::move(table);
    own_.erase(vm::identity_of(own.table));
    away_.insert(vm::identity_of(own.table));
    r_.loops_.wrote(own.number);
    luaL_checkstack(L, 8, "table");
    push_metatable(r_.host_, L, own.table);
    Value meta = r_.host_.to_value(L, -1);
    lua_pop(L, 1);
    std::vector<Value> content{r_.given(meta)};
    for (const auto& change : own.changes) {
        Value value = r_.host_.raw_get(own.table, change.key);
        if (symbolic_number(value) || value.is_tensor()) r_.host_.raw_set(own.table, change.key, r_.outward(value));
        content.push_back(r_.given(change.key));
        if (!change.insert)
            content.emplace_back();
        else
            content.push_back(value.is_nil() ? Value(true) : r_.given(value));
    }
    Step s(Step::Kind::make, {Value(static_cast<int64_t>(own.array)), Value(static_cast<int64_t>(own.fields)),
                              Value::list(std::move(content))});
    s.table = own.number;
    const bool known = r_.position_ < r_.progress_.done;
    vm::Values results = r_.event(std::move(s), [&](vm::Values& values) { values.push_back(own.table); });
    // What the outside made of it since.
    if (known && !own.content.is_nil()) pour(r_.host_, r_.host_.lua(), own.content, own.table);
    auto found = r_.slot_of_.find(vm::identity_of(own.table));
    return found == r_.slot_of_.end() ? -1 : found->second;
}

// The table that an earlier attempt of this call made as the one of that number, whose content is kept apart; or nil.
Value OwnTables::replayed(int32_t number, Value& content) {
    const auto found = replayed_.find(number);
    if (r_.position_ >= r_.progress_.done || found == replayed_.end()) return {};
    content = r_.host_.new_table(0, 0);
    pour(r_.host_, r_.host_.lua(), found->second, content);
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
    auto* r = vm::object_as<LuaReference>(table);
    if (!r || r->type != LUA_TTABLE || find(table) || !r_.stopped_.empty()) return table;
    const int32_t number = count_++;
    Value content;
    if (const Value known = replayed(number, content)) {
        pour(r_.host_, r_.host_.lua(), table, known);
        table = known;
    }
    Own& own = add(table, number, content);
    lua_State* L = r_.host_.lua();
    luaL_checkstack(L, 8, "table");
    r_.host_.push(L, table);
    own.array = lua_rawlen(L, -1);
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pop(L, 1);
        own.changes.push_back({r_.host_.to_value(L, -1), true});
    }
    lua_pop(L, 1);
    return table;
}

Value OwnTables::make(size_t array, size_t fields) {
    const int32_t number = count_++;
    Value content, table = replayed(number, content);
    if (!table) table = r_.host_.new_table(array, fields);
    if (!r_.stopped_.empty()) return table;
    Own& own = add(table, number, content);
    own.array = array;
    own.fields = fields;
    return table;
}

}  // namespace lunaria::jit
