#include "jit/vm/cycles.h"

#include <algorithm>
#include <typeinfo>

#include "jit/vm/coroutine.h"

namespace lunaria::vm {

namespace {

// The number of cells at which a search starts while something runs.
constexpr size_t kManyCells = 4096;
// The number of objects that a search among new cells may visit, for each cell and in total: old structures that they
// refer to are left to the rarer searches among all.
constexpr size_t kObjectsPerCell = 64, kObjects = 100000;

struct Cells {
    CellList young, old;
    size_t settled = 0;  // old cells after the last search among all
};

Cells& cells() {
    thread_local Cells instance;
    return instance;
}

Object* object_in(const Value& v) { return v.kind() == Value::Kind::object || v.is_list() ? v.object() : nullptr; }

// Empties the cells among objects that are only referred to from within; the others follow by their counts.
void free_isolated(const Island& island) {
    std::vector<Value> garbage;
    for (Object* object : island.isolated())
        if (dynamic_cast<Circular*>(object)) garbage.push_back(share(*object));
    for (const Value& v : garbage) CellList::empty(*v.object());
}

}  // namespace

void Circular::search_from_here() { cells().young.add(*this); }
Circular::~Circular() {
    if (list_) list_->remove(*this);
}

void CellList::empty(Object& object) {
    auto& circular = static_cast<Circular&>(object);
    if (circular.list_) circular.empty();
}

CellList::~CellList() {
    while (first_) remove(*first_);
}

void CellList::add(Circular& cell) {
    cell.list_ = this;
    cell.before_ = nullptr;
    cell.after_ = first_;
    if (first_) first_->before_ = &cell;
    first_ = &cell;
    ++size_;
}

void CellList::remove(Circular& cell) {
    (cell.before_ ? cell.before_->after_ : first_) = cell.after_;
    if (cell.after_) cell.after_->before_ = cell.before_;
    cell.list_ = nullptr;
    --size_;
}

std::vector<Circular*> CellList::cells() const {
    std::vector<Circular*> list;
    for (Circular* c = first_; c; c = c->after_) list.push_back(c);
    return list;
}

void for_each_owned(const Object& object, const std::function<void(const Value&)>& f) {
    const std::type_info& type = typeid(object);
    if (type == typeid(Closure)) {
        for (const Value& v : static_cast<const Closure&>(object).captures) f(v);
    } else if (type == typeid(ListObject)) {
        for (const Value& v : static_cast<const ListObject&>(object).items) f(v);
    } else if (type == typeid(Shadow)) {
        static_cast<const Shadow&>(object).for_each_owned(f);
    } else if (type == typeid(Context)) {
        static_cast<const Context&>(object).for_each_owned(f);
    } else if (type == typeid(Coroutine)) {
        static_cast<const Coroutine&>(object).for_each_owned(f);
    } else if (type == typeid(Coroutine::State)) {
        static_cast<const Coroutine::State&>(object).for_each_owned(f);
    } else if (auto* circular = dynamic_cast<const Circular*>(&object)) {
        circular->for_each_owned(f);
    }
}

bool Island::add(Object& object, int32_t references, size_t limit) {
    size_t next = order_.size();
    auto reach = [&](Object* o, int32_t n) {
        const auto [place, is_new] = counted_.try_emplace(o, 0);
        place->second += n;
        if (is_new) order_.push_back(o);
    };
    reach(&object, references);
    for (; next < order_.size(); ++next) {
        if (order_.size() > limit) return false;
        for_each_owned(*order_[next], [&](const Value& v) {
            if (Object* o = object_in(v)) reach(o, 1);
        });
    }
    return true;
}

std::vector<Object*> Island::isolated() const {
    std::unordered_map<Object*, bool> in_use;
    std::vector<Object*> work;
    auto use = [&](Object* o) {
        if (!in_use.emplace(o, true).second) return;
        work.push_back(o);
    };
    for (const auto& [object, count] : counted_)
        if (object->refs.load(std::memory_order_relaxed) > count) use(object);
    while (!work.empty()) {
        const Object* object = work.back();
        work.pop_back();
        for_each_owned(*object, [&](const Value& v) {
            if (Object* o = object_in(v)) use(o);
        });
    }
    std::vector<Object*> rest;
    std::copy_if(order_.begin(), order_.end(), std::back_inserter(rest),
                 [&](Object* o) { return !in_use.contains(o); });
    return rest;
}

void collect_cycles() {
    Cells& all = cells();
    if (all.young.size() == 0) return;
    if (all.young.size() + all.old.size() > 2 * all.settled + kManyCells) return collect_all_cycles();
    {
        Island island;
        const size_t limit = std::min(kObjects, kObjectsPerCell * (all.young.size() + 16));
        bool known = true;
        for (Circular* cell : all.young.cells()) known = known && island.add(*cell, 0, limit);
        if (known) free_isolated(island);
    }
    for (Circular* cell : all.young.cells()) {
        all.young.remove(*cell);
        all.old.add(*cell);
    }
}

void collect_all_cycles() {
    Cells& all = cells();
    {
        Island island;
        for (Circular* cell : all.young.cells()) island.add(*cell, 0);
        for (Circular* cell : all.old.cells()) island.add(*cell, 0);
        free_isolated(island);
    }
    for (Circular* cell : all.young.cells()) {
        all.young.remove(*cell);
        all.old.add(*cell);
    }
    all.settled = all.old.size();
}

bool many_new_cells() { return cells().young.size() > kManyCells; }

}  // namespace lunaria::vm
