#include "interpreter/jit/guards.h"

#include <bit>
#include <string>
#include <unordered_map>

#include "jit/vm/object.h"

namespace lunaria::jit {

namespace {

constexpr int kPile = Guards::kSpace - 8;  // answers that are left on the stack before they are taken away at once

// Of a key that a step reads or finds, an integer or a text: another for each.
std::string name_of_key(const Value& key) {
    if (key.kind() == Value::Kind::string) return "s" + key.string();
    return key.kind() == Value::Kind::integer ? str("i", key.integer()) : std::string();
}

// Whether a table whose keys are those of the walk, in this order, can only have that length: they are 1, 2, ... and
// there are no others.
bool is_list_of(const std::vector<Step>& steps, const std::vector<size_t>& walk, const Value& length) {
    if (walk.empty() || length.kind() != Value::Kind::integer) return false;
    if (static_cast<int64_t>(walk.size()) != length.integer() + 1) return false;
    for (size_t k = 0; k + 1 < walk.size(); ++k) {
        const Value& key = steps[walk[k]].expected[0].constant;
        if (key.kind() != Value::Kind::integer || key.integer() != static_cast<int64_t>(k) + 1) return false;
    }
    return steps[walk.back()].expected[0].constant.is_nil();
}

}  // namespace

// False: what is expected has to be looked at by the runner.
bool Guards::expect(Check& check, const Expected& e) {
    if (e.what != Expected::What::constant) return false;
    switch (e.constant.kind()) {
        case Value::Kind::nil:
            check.type = LUA_TNIL;
            return true;
        case Value::Kind::boolean:
            check.type = LUA_TBOOLEAN;
            check.bits = e.constant.boolean();
            return true;
        case Value::Kind::integer:
            check.type = LUA_TNUMBER;
            check.integer = true;
            check.bits = e.constant.integer();
            return true;
        case Value::Kind::number:
            check.type = LUA_TNUMBER;
            check.bits = std::bit_cast<int64_t>(e.constant.number());
            return true;
        case Value::Kind::string:
            check.type = LUA_TSTRING;
            check.pointer = e.pointer;
            check.text = &e.constant;
            return true;
        case Value::Kind::object:
            check.type = LUA_TNONE;
            check.pointer = e.pointer;
            return e.pointer != nullptr;
        default:
            return false;
    }
}

bool Guards::fits(const Check& check, lua_State* L, int type, int index) {
    switch (check.type) {
        case LUA_TNONE:  // an object; a light userdata may have any address
            return type > LUA_TSTRING && lua_topointer(L, index) == check.pointer;
        case LUA_TNIL:
            return type == LUA_TNIL;
        case LUA_TBOOLEAN:
            return type == LUA_TBOOLEAN && lua_toboolean(L, index) == check.bits;
        case LUA_TNUMBER:
            if (type != LUA_TNUMBER || (lua_isinteger(L, index) != 0) != check.integer) return false;
            return (check.integer ? static_cast<int64_t>(lua_tointeger(L, index))
                                  : std::bit_cast<int64_t>(static_cast<double>(lua_tonumber(L, index)))) == check.bits;
        default: {
            if (type != LUA_TSTRING) return false;
            // Lua has a short text once only; of a long one there may be two.
            if (lua_topointer(L, index) == check.pointer) return true;
            size_t size = 0;
            const char* text = lua_tolstring(L, index, &size);
            return check.text->string() == std::string_view(text, size);
        }
    }
}

// The questions to one object.
void Guards::add_group(const std::vector<Step>& steps, const std::vector<size_t>& group,
                       std::unordered_set<size_t>& asked) {
    Check object;
    object.at = steps[group[0]].object_at;
    const size_t begin = checks_.size();
    checks_.push_back(object);
    // Going through a table: only from its first key on, each of which is there then, so that Lua finds the next.
    std::vector<size_t> walk;
    for (size_t i : group) {
        const Step& step = steps[i];
        Check check;
        if (step.kind != Step::Kind::next || step.args()[1].is_node() || !expect(check, step.expected[0])) continue;
        const Value& key = step.args()[1];
        if (walk.empty() ? key.is_nil() : identical(key, steps[walk.back()].expected[0].constant)) walk.push_back(i);
    }
    auto take = [&](size_t i, const Check& check) {
        checks_.push_back(check);
        asked.insert(i);
    };
    std::unordered_map<std::string, std::pair<size_t, Check>> values;  // of keys that are come by
    for (size_t i : walk) values.emplace(name_of_key(steps[i].expected[0].constant), std::pair(i, Check()));
    values.erase(std::string());
    for (size_t i : group) {
        const Step& step = steps[i];
        Check check;
        if (step.kind == Step::Kind::next || !expect(check, step.expected[0])) continue;
        switch (step.kind) {
            case Step::Kind::read:
                if (step.args()[1].kind() == Value::Kind::integer) {
                    check.what = Check::What::item;
                    check.key = step.args()[1].integer();
                } else if (step.key_at > 0 && step.key_at <= kPool) {
                    check.what = Check::What::read;
                    check.at = step.key_at;
                } else {
                    continue;
                }
                if (auto found = values.find(name_of_key(step.args()[1])); found != values.end()) {
                    check.what = Check::What::value;
                    found->second = {i, check};
                } else {
                    take(i, check);
                }
                break;
            case Step::Kind::metatable:
                check.what = Check::What::metatable;
                take(i, check);
                break;
            case Step::Kind::upvalue:
                check.what = Check::What::upvalue;
                check.at = static_cast<int>(step.args()[1].integer());
                take(i, check);
                break;
            default:
                check.what = Check::What::length;
                if (is_list_of(steps, walk, step.expected[0].constant))
                    asked.insert(i);
                else
                    take(i, check);
        }
    }
    for (size_t i : walk) {
        Check check;
        expect(check, steps[i].expected[0]);
        check.what = Check::What::next;
        check.first = i == walk[0];
        take(i, check);
        auto found = values.find(name_of_key(steps[i].expected[0].constant));
        if (found != values.end() && found->second.second.what == Check::What::value)
            take(found->second.first, found->second.second);
    }
    if (checks_.size() == begin + 1) checks_.pop_back();
}

Guards::Guards(const std::vector<Step>& steps, const std::vector<size_t>& indices) {
    std::unordered_set<size_t> asked;
    std::vector<std::vector<size_t>> groups;
    // An object may be kept in more than one place.
    std::unordered_map<const void*, size_t> group_of;
    for (size_t i : indices) {
        const Step& step = steps[i];
        if (step.kind < Step::Kind::read || step.kind > Step::Kind::next || step.object_at == 0) continue;
        if (step.object_at > kPool) continue;
        const auto [found, fresh] = group_of.emplace(vm::identity_of(step.args()[0]), groups.size());
        if (fresh) groups.emplace_back();
        groups[found->second].push_back(i);
    }
    for (const auto& group : groups) add_group(steps, group, asked);
    for (size_t i : indices)
        if (!asked.contains(i)) rest_.push_back(i);
}

bool Guards::hold(lua_State* pool) const {
    const int top = lua_gettop(pool);
    int object = 0, pile = 0;
    bool fine = true;
    for (const Check& check : checks_) {
        if (check.what == Check::What::object) {
            object = check.at;
            continue;
        }
        if (pile >= kPile) {
            lua_settop(pool, top);
            pile = 0;
        }
        int type = LUA_TNIL;
        switch (check.what) {
            case Check::What::read:
                lua_pushvalue(pool, check.at);
                type = lua_rawget(pool, object);
                ++pile;
                break;
            case Check::What::item:
                type = lua_rawgeti(pool, object, check.key);
                ++pile;
                break;
            case Check::What::metatable:
                if (lua_getmetatable(pool, object)) {
                    type = LUA_TTABLE;
                    ++pile;
                }
                break;
            case Check::What::upvalue:
                if (lua_getupvalue(pool, object, check.at)) {
                    type = lua_type(pool, -1);
                    ++pile;
                }
                break;
            case Check::What::length:
                fine = static_cast<int64_t>(lua_rawlen(pool, object)) == check.bits;
                type = LUA_TNONE;
                break;
            case Check::What::next:
                // Above the pool lies the key before it, with its value.
                lua_settop(pool, check.first ? top : top + 1);
                if (check.first) lua_pushnil(pool);
                pile = 0;
                if (lua_next(pool, object))
                    fine = fits(check, pool, lua_type(pool, top + 1), top + 1);
                else
                    fine = check.type == LUA_TNIL;
                type = LUA_TNONE;
                break;
            default:
                type = lua_type(pool, -1);
        }
        if (type != LUA_TNONE) fine = fits(check, pool, type, -1);
        if (!fine) break;
    }
    lua_settop(pool, top);
    return fine;
}

}  // namespace lunaria::jit
