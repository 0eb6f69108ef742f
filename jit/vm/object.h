// Objects in the virtual machine's registers beside numbers and tensors: closures, shared variables, and data of a
// differentiation.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <unordered_map>
#include <vector>

#include "core/tensor/value.h"
#include "jit/vm/table_key.h"
#include "jit/vm/values.h"

namespace lunaria::vm {

struct Function;

// The content of a tensor before a differentiated program wrote into it: earlier pullbacks may need it. Kept by the
// contexts of the differentiation.
struct Overwritten {
    const void* body;
    uint64_t clock;  // write_clock() before the write
    uint32_t version;
    Tensor content;
};

// The number of such writes in this thread.
inline uint64_t& write_clock() {
    thread_local uint64_t clock = 0;
    return clock;
}

// A function with the values that it captured. Captures are the function's first parameters.
class Closure final : public Object {
  public:
    // `owner` keeps the function's graph alive.
    Closure(Function& function, std::shared_ptr<const void> owner, Values captures)
        : function(&function), owner(std::move(owner)), captures(std::move(captures)) {}
    // The captured values are added afterwards.
    Closure(Function& function, std::shared_ptr<const void> owner) : function(&function), owner(std::move(owner)) {}
    ~Closure() override;
    // Operators of own memory: every differentiated operator makes a closure.
    static void* operator new(size_t);
    static void operator delete(void* block) noexcept;

    Function* function;
    std::shared_ptr<const void> owner;
    Values captures;
    // The sum of the captured tensors' versions at the time of capture; see Tensor::version.
    uint64_t versions = 0;
    uint64_t clock = 0;  // write_clock() at that time
    int handle = -1;     // number in the host's table of the Lua function that represents it; -1: none
};

// What circles of objects go through: see cycles.h.
class Circular : public Object {
  public:
    ~Circular() override;
    // Calls f with the values that the object itself owns.
    virtual void for_each_owned(const std::function<void(const Value&)>& f) const = 0;

  protected:
    // From here on the search for circles begins at it, too: all such objects of a thread are on one of two lists.
    void search_from_here();

  private:
    friend class CellList;
    // Drops what it owns.
    virtual void empty() = 0;
    class CellList* list_ = nullptr;
    Circular *before_ = nullptr, *after_ = nullptr;
};

// A variable that several closures share. The host has one for the upvalues of Lua functions.
class Cell : public Circular {
  public:
    virtual Value get() const = 0;
    virtual void set(Value v) = 0;

  private:
    void empty() override { set({}); }
};

class LocalCell final : public Cell {
  public:
    explicit LocalCell(Value v) : value_(std::move(v)) { search_from_here(); }
    Value get() const override { return value_; }
    void set(Value v) override { value_ = std::move(v); }
    void for_each_owned(const std::function<void(const Value&)>& f) const override { f(value_); }

  private:
    Value value_;
};

// The identity of an object with a shadow: the table itself, not the handle that refers to it. Null for plain values.
const void* identity_of(const Value& v);

// The cotangents of an object's parts, by key: a table's fields, a closure's captures, a variable's content (key 0).
class Shadow final : public Object {
  public:
    // A shadow of a tensor has a single part, whatever the key, and so has the shadow of that shadow.
    explicit Shadow(bool single) : single_(single) {}
    bool single() const { return single_; }
    ~Shadow() override;
    Value get(const Value& key) const;
    void put(const Value& key, Value cotangent);
    void add(const Value& key, const Value& cotangent);
    Value take(const Value& key);
    void clear();
    // For a table: whether the value last written under a key is active; nil: under unknown keys. A plain number beside
    // active values is not a variable: operators take it in places without a gradient.
    void note(const Value& key, bool followed);
    // Whether a number under the key may be active.
    bool follows_at(const Value& key) const;
    // For a tensor: whether it was overwritten, so that operators on it accumulate their cotangents here.
    bool is_box() const { return box_; }
    void make_box() { box_ = true; }
    // Whether an active value was written under the name.
    bool follows(const Value& name) const;
    // Notes that a text made from active values was written.
    void note_text() { texts_ = true; }
    bool has_texts() const { return texts_; }
    // Keys and cotangents.
    void for_each_owned(const std::function<void(const Value&)>& f) const;

  private:
    bool single_, box_ = false, texts_ = false, elsewhere_ = false;  // elsewhere_: under keys that are not in written_
    Value only_;
    std::unordered_map<Value, Value, KeyHash, KeyEqual> parts_;
    std::unordered_map<Value, bool, KeyHash, KeyEqual> written_;  // by key: whether the value is active
};

// One differentiation in progress. Objects with parts that it differentiates have a shadow in it; active values carry
// its mark. A tensor that is overwritten becomes such an object (a box): until then each variable that holds it has a
// cotangent of its own; from then on all of them share the one in its shadow, where the backward pass finds the
// cotangent of the content between two writes.
class Context final : public Object {
  public:
    Context(uint16_t mark, int level) : mark(mark), level(level) {}

    const uint16_t mark;
    const int level;  // number of differentiations around it
    std::vector<std::shared_ptr<const Overwritten>> overwritten;
    // The object's shadow; null when it has none.
    Shadow* find(const Value& object) const {
        if (shadows_.empty()) return nullptr;
        return find_identity(identity_of(object));
    }
    Shadow& shadow(const Value& object);                // made when it is not there yet
    std::vector<Value> shadows() const;                 // all of them
    Shadow* find_identity(const void* identity) const;  // the same by a result of identity_of()
    // Objects and their shadows.
    void for_each_owned(const std::function<void(const Value&)>& f) const;
    // The shadow of a tensor that was overwritten in this differentiation; null for all other values.
    Shadow* box(const Value& v) const {
        if (!v.is_tensor() || v.tensor().version() == 0 || shadows_.empty()) return nullptr;
        Shadow* shadow = find_identity(v.tensor().body());
        return shadow && shadow->is_box() ? shadow : nullptr;
    }
    // Tables with an active number as a key, through which no derivative can flow.
    void note_keyed(const Value& table) { keyed_.try_emplace(identity_of(table), table); }
    bool is_keyed(const Value& table) const { return !keyed_.empty() && keyed_.contains(identity_of(table)); }
    // The shadow in which a value read from `holder` accumulates: a parameter's own, or its holder's.
    Shadow* source(const Value& holder, const Value& value) const;

  private:
    struct Entry {
        Value object;  // kept alive, so that no other object gets its identity
        Value shadow;
    };
    std::unordered_map<const void*, Entry> shadows_;
    std::unordered_map<const void*, Value> keyed_;  // kept alive too
};

// Puts the sum of two dense tensors of one type into one of them that has no other owner, or into a new one; nil: the
// values are different.
Value sum_of_dense(Value& a, Value& b);

// The sum of two cotangents; nil is zero, lists add item by item.
Value accumulate(Value a, Value b);

// The object if it is of exactly this class. There is one type_info per class in a program, so addresses tell them
// apart.
template <class T>
T* object_as(const Value& v) {
    if (v.kind() != Value::Kind::object) return nullptr;
    Object& object = *v.object();
    return &typeid(object) == &typeid(T) ? static_cast<T*>(&object) : nullptr;
}

template <class T, class... Args>
Value make_object(Args&&... args) {
    return Value::adopt(new T(std::forward<Args>(args)...));
}

// A further reference to an object that has other owners.
inline Value share(Object& object) {
    add_reference(object.refs);
    return Value::adopt(&object);
}

}  // namespace lunaria::vm
