#include "jit/trace/guards.h"

#include <bit>
#include <string>
#include <unordered_map>

#include "jit/vm/object.h"

namespace lunaria::trace {

namespace {

// The name of a key that a step reads or finds, an integer or a text: different keys have different names.
std::string name_of_key(const Value& key) {
    if (key.kind() == Value::Kind::string) return "s" + key.string();
    return key.kind() == Value::Kind::integer ? str("i", key.integer()) : std::string();
}

// Whether a table with the keys of the walk, in this order, must have that length: the keys are 1, 2, ... and there are
// no others.
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

// False: the runner has to compare the answer itself.
bool Guards::expect(Check& check, const Expected& e) {
    using Kind = Check::Kind;
    if (e.what != Expected::What::constant) return false;
    switch (e.constant.kind()) {
        case Value::Kind::nil:
            check.kind = Kind::nil;
            return true;
        case Value::Kind::boolean:
            check.kind = Kind::boolean;
            check.bits = e.constant.boolean();
            return true;
        case Value::Kind::integer:
            check.kind = Kind::integer;
            check.bits = e.constant.integer();
            return true;
        case Value::Kind::number:
            check.kind = Kind::number;
            check.bits = std::bit_cast<int64_t>(e.constant.number());
            return true;
        case Value::Kind::string:
            check.kind = Kind::text;
            check.pointer = e.pointer;
            check.text = &e.constant;
            return true;
        case Value::Kind::object:
            check.kind = Kind::object;
            check.pointer = e.pointer;
            return e.pointer != nullptr;
        default:
            return false;
    }
}

// Appends the questions to one object.
void Guards::add_group(const std::vector<Step>& steps, const std::vector<size_t>& group,
                       std::unordered_set<size_t>& asked) {
    Check object;
    object.at = steps[group[0]].object_at;
    const size_t begin = checks_.size();
    checks_.push_back(object);
    // A walk through a table is taken over only from its first key on; each key was then found before Lua looks for the
    // next.
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
    std::unordered_map<std::string, std::pair<size_t, Check>> values;  // values of the keys that the walk finds
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
    // An object may be kept in several places.
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

}  // namespace lunaria::trace
