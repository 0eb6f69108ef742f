#include "core/tensor/value.h"

#include <cmath>
#include <new>
#include <sstream>

#include "core/base/error.h"
#include "core/memory/free_list.h"

namespace lunaria {

namespace {

constinit thread_local FreeList<ListObject> free_lists;

// Vectors without items that keep their room for some.
struct SpareRoom {
    static constexpr size_t kMost = kMemoryIsWatched ? 0 : 32, kMostItems = 16;
    std::vector<std::vector<Value>> spare;
    bool closed = false;  // lists may outlive the thread's variables
    // A list that is destroyed may be the first one here that asks for it, and must not fail.
    SpareRoom() noexcept {
        try {
            spare.reserve(kMost);
        } catch (const std::bad_alloc&) {
            closed = true;
        }
    }
    ~SpareRoom() { closed = true; }

    std::vector<Value> take() {
        if (closed || spare.empty()) return {};
        std::vector<Value> room = std::move(spare.back());
        spare.pop_back();
        return room;
    }
    void give(std::vector<Value>&& items) {
        if (items.capacity() == 0 || items.capacity() > kMostItems) return;
        items.clear();
        if (!closed && spare.size() < kMost) spare.push_back(std::move(items));
    }
};
SpareRoom& spare_room() {
    thread_local SpareRoom room;
    return room;
}

}  // namespace

void* ListObject::operator new(size_t) { return free_lists.take(); }
void ListObject::operator delete(void* block) noexcept { free_lists.give(block); }
ListObject::~ListObject() { spare_room().give(std::move(items)); }

Value Value::list_of(std::span<Value> items) {
    std::vector<Value> room = spare_room().take();
    room.assign(std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
    return list(std::move(room));
}

Value Value::list(std::vector<Value> items) {
    Value v;
    v.kind_ = Kind::list;
    v.payload_.object = new ListObject(std::move(items));
    return v;
}

Value Value::ints(std::span<const int64_t> items) { return list(std::vector<Value>(items.begin(), items.end())); }

void Value::add_owner() const noexcept {
    add_reference(kind_ == Kind::tensor ? payload_.tensor->refs : payload_.object->refs);
}

void Value::drop() noexcept {
    if (kind_ == Kind::tensor) return Tensor::drop(payload_.tensor);
    if (drop_reference(payload_.object->refs)) delete payload_.object;
}

bool same_value(const Value& a, const Value& b) {
    if (a.kind() != b.kind()) return false;
    switch (a.kind()) {
        case Value::Kind::nil:
            return true;
        case Value::Kind::boolean:
            return a.boolean() == b.boolean();
        case Value::Kind::integer:
            return a.integer() == b.integer();
        case Value::Kind::number:
            return a.number() == b.number() || (std::isnan(a.number()) && std::isnan(b.number()));
        case Value::Kind::dtype:
            return a.dtype() == b.dtype();
        case Value::Kind::node:
            return a.node() == b.node();
        case Value::Kind::string:
            return a.string() == b.string();
        case Value::Kind::object:
            return a.object() == b.object();
        case Value::Kind::list: {
            const auto &x = a.items(), &y = b.items();
            if (x.size() != y.size()) return false;
            for (size_t i = 0; i < x.size(); ++i)
                if (!same_value(x[i], y[i])) return false;
            return true;
        }
        case Value::Kind::tensor: {
            const Tensor &x = a.tensor(), &y = b.tensor();
            if (x.dtype() != y.dtype() || !(x.shape() == y.shape())) return false;
            if (x.same_body(y)) return true;
            for (int64_t i = 0; i < x.size(); ++i) {
                double p = x.at(i), q = y.at(i);
                if (p != q && !(std::isnan(p) && std::isnan(q))) return false;
            }
            return true;
        }
    }
    return false;
}

std::string to_string(const Value& v) {
    switch (v.kind()) {
        case Value::Kind::nil:
            return "nil";
        case Value::Kind::boolean:
            return v.boolean() ? "true" : "false";
        case Value::Kind::integer:
            return std::to_string(v.integer());
        case Value::Kind::number:
            return str(v.number());
        case Value::Kind::dtype:
            return std::string(name_of(v.dtype()));
        case Value::Kind::node:
            return "node";
        case Value::Kind::string:
            return "\"" + v.string() + "\"";
        case Value::Kind::object:
            return "object";
        case Value::Kind::tensor:
            return str(name_of(v.tensor().dtype()), v.tensor().shape());
        case Value::Kind::list: {
            std::string text = "{";
            for (const Value& item : v.items()) text += (text.size() > 1 ? ", " : "") + to_string(item);
            return text + "}";
        }
    }
    return "?";
}

}  // namespace lunaria
