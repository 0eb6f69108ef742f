#include "jit/vm/object.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "core/memory/free_list.h"
#include "jit/language.h"
#include "jit/vm/watcher.h"

namespace lunaria::vm {

namespace {

// Chains of closures (a long loop's backpropagators) are destroyed one by one: destroying one from within another would
// recurse as deep as the loop was long.
class Graveyard {
  public:
    // Takes over what may be the rest of a chain; without memory for that its owner destroys it.
    void bury(Value& v) {
        if (v.kind() < Value::Kind::list || v.is_tensor()) return;
        try {
            waiting_.push_back(std::move(v));
        } catch (const std::bad_alloc&) {
        }
    }
    void clear() {
        if (busy_) return;
        busy_ = true;
        while (!waiting_.empty()) {
            Value v = std::move(waiting_.back());
            waiting_.pop_back();
        }
        busy_ = false;
    }

  private:
    std::vector<Value> waiting_;
    bool busy_ = false;
};

Graveyard& graveyard() {
    thread_local Graveyard instance;
    return instance;
}

}  // namespace

namespace {
constinit thread_local FreeList<Closure> free_closures;
}  // namespace

void* Closure::operator new(size_t) { return free_closures.take(); }
void Closure::operator delete(void* block) noexcept { free_closures.give(block); }

Closure::~Closure() {
    const bool deep =
        std::ranges::any_of(captures, [](const Value& v) { return v.kind() >= Value::Kind::list && !v.is_tensor(); });
    if (!deep) return;
    for (Value& v : captures) graveyard().bury(v);
    graveyard().clear();
}

Shadow::~Shadow() {
    if (single_) graveyard().bury(only_);
    for (auto& [key, value] : parts_) graveyard().bury(value);
    graveyard().clear();
}

const void* identity_of(const Value& v) {
    if (v.is_tensor()) return v.tensor().body();
    return v.kind() == Value::Kind::object ? v.object()->identity() : nullptr;
}

size_t KeyHash::operator()(const Value& v) const {
    switch (v.kind()) {
        case Value::Kind::string:
            return std::hash<std::string>()(v.string());
        case Value::Kind::number:
            return std::hash<double>()(v.number());
        case Value::Kind::integer:
        case Value::Kind::boolean:
        case Value::Kind::dtype:
            return std::hash<int64_t>()(v.kind() == Value::Kind::integer ? v.integer() : v.boolean());
        default:
            return std::hash<const void*>()(identity_of(v));
    }
}

bool KeyEqual::operator()(const Value& a, const Value& b) const {
    if (a.kind() != b.kind()) return false;
    if (a.kind() == Value::Kind::string) return a.string() == b.string();
    if (a.is_number()) return a.number() == b.number() && a.integer() == b.integer();
    if (a.kind() == Value::Kind::boolean) return a.boolean() == b.boolean();
    return identity_of(a) == identity_of(b);
}

Value Shadow::get(const Value& key) const {
    if (single_) return only_;
    auto found = parts_.find(TableKey(key));
    return found == parts_.end() ? Value() : found->second;
}

void Shadow::put(const Value& key, Value cotangent) {
    if (single_)
        only_ = std::move(cotangent);
    else if (cotangent.is_nil())
        parts_.erase(TableKey(key));
    else
        parts_[TableKey(key)] = std::move(cotangent);
}

void Shadow::add(const Value& key, const Value& cotangent) {
    if (cotangent.is_nil()) return;
    Value& place = single_ ? only_ : parts_[TableKey(key)];
    place = accumulate(std::move(place), cotangent);
}

Value Shadow::take(const Value& key) {
    if (single_) return std::exchange(only_, Value());
    auto found = parts_.find(TableKey(key));
    if (found == parts_.end()) return {};
    Value v = std::move(found->second);
    parts_.erase(found);
    return v;
}

void Shadow::clear() {
    only_ = Value();
    parts_.clear();
}

void Shadow::note(const Value& key, bool followed) {
    if (single_) return;
    // A symbolic number may be any key in the next call.
    if (!key.is_nil() && !is_open(key)) {
        written_[TableKey(key)] = followed;
    } else if (followed) {
        written_.clear();
        elsewhere_ = true;
    }
}

bool Shadow::follows_at(const Value& key) const {
    if (key.is_nil() || is_open(key)) return true;
    const auto found = written_.find(TableKey(key));
    return found == written_.end() ? elsewhere_ : found->second;
}

bool Shadow::follows(const Value& name) const {
    const auto found = written_.find(name);
    return found != written_.end() && found->second;
}

void Shadow::for_each_owned(const std::function<void(const Value&)>& f) const {
    f(only_);
    for (const auto& [key, value] : parts_) {
        f(key);
        f(value);
    }
}

void Context::for_each_owned(const std::function<void(const Value&)>& f) const {
    for (const auto& [identity, entry] : shadows_) {
        f(entry.object);
        f(entry.shadow);
    }
    for (const auto& [identity, table] : keyed_) f(table);
}

std::vector<Value> Context::shadows() const {
    std::vector<Value> list;
    for (const auto& [identity, entry] : shadows_) list.push_back(entry.shadow);
    return list;
}

Shadow* Context::find_identity(const void* identity) const {
    auto found = shadows_.find(identity);
    return found == shadows_.end() ? nullptr : static_cast<Shadow*>(found->second.shadow.object());
}

Shadow& Context::shadow(const Value& object) {
    Entry& entry = shadows_[identity_of(object)];
    if (entry.shadow.is_nil()) {
        entry.object = object;
        entry.object.set_marks(0);
        auto* inner = object_as<Shadow>(object);
        entry.shadow = make_object<Shadow>(object.is_tensor() || (inner && inner->single()));
    }
    return *static_cast<Shadow*>(entry.shadow.object());
}

Shadow* Context::source(const Value& holder, const Value& value) const {
    if (shadows_.empty()) return nullptr;
    if (value.is_tensor())
        if (Shadow* own = find_identity(value.tensor().body())) return own;
    return find(holder);
}

Value accumulate(Value a, Value b) {
    if (a.is_nil()) return b;
    if (b.is_nil()) return a;
    auto marks = static_cast<uint16_t>(a.marks() | b.marks());
    Value sum = sum_of_dense(a, b);
    if (sum.is_tensor()) {
        sum.set_marks(marks);
        return sum;
    }
    if (shown(a).is_number() && shown(b).is_number()) {
        static const Op& plus = lua::primitive("add");
        const Value operands[] = {a, b};
        sum = is_open(a) || is_open(b) ? watcher()->compute(plus, operands) : Value(a.number() + b.number());
    } else if (a.is_list() && b.is_list()) {
        const auto &x = a.items(), &y = b.items();
        std::vector<Value> items;
        for (size_t i = 0; i < std::max(x.size(), y.size()); ++i)
            items.push_back(i >= x.size() ? y[i] : i >= y.size() ? x[i] : accumulate(x[i], y[i]));
        sum = Value::list(std::move(items));
    } else {
        static const Op& add = registry().get("add");
        // Reuses one of them where it has no other owner: a sum of many gradients takes the memory of one.
        Value operands[] = {std::move(a), std::move(b)};
        sum = execute_consuming(add, operands);
    }
    sum.set_marks(marks);
    return sum;
}

}  // namespace lunaria::vm
