// What lives in the virtual machine's registers beside numbers and tensors: closures, shared variables, and what a
// differentiation keeps.
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

// The content that a tensor had before a differentiated program wrote into it: pullbacks made before may need it. Kept
// by the contexts of the differentiation.
struct Overwritten {
    const void* body;
    uint64_t clock;  // write_clock() before the write
    uint32_t version;
    Tensor content;
};

// Counts such writes of this thread.
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
    // What it captures is put in afterwards.
    Closure(Function& function, std::shared_ptr<const void> owner) : function(&function), owner(std::move(owner)) {}
    ~Closure() override;
    // Every operator that is followed makes one.
    static void* operator new(size_t);
    static void operator delete(void* block) noexcept;

    Function* function;
    std::shared_ptr<const void> owner;
    Values captures;
    // Sum of the versions of the captured tensors when they were captured; see Tensor::version.
    uint64_t versions = 0;
    uint64_t clock = 0;  // write_clock() then
    int handle = -1;     // of the Lua function that stands for it, in the host's table; -1: none
};

// A variable that several closures share. The host has one for the upvalues of Lua functions.
class Cell : public Object {
  public:
    virtual Value get() const = 0;
    virtual void set(Value v) = 0;
    // Calls f with the values that the cell itself owns.
    virtual void for_each_owned(const std::function<void(const Value&)>& f) const = 0;
};

// All cells of a thread are on one of two lists, for the search for circles: see cycles.h.
class LocalCell final : public Cell {
  public:
    explicit LocalCell(Value v);
    ~LocalCell() override;
    Value get() const override { return value_; }
    void set(Value v) override { value_ = std::move(v); }
    void for_each_owned(const std::function<void(const Value&)>& f) const override { f(value_); }

  private:
    friend class CellList;
    Value value_;
    class CellList* list_ = nullptr;
    LocalCell *before_ = nullptr, *after_ = nullptr;
};

// What identifies an object with a shadow: the table itself, not the handle that refers to it. Null for plain values.
const void* identity_of(const Value& v);

// The cotangents of an object's parts, by key: a table's fields, a closure's captures, a variable's content (key 0).
class Shadow final : public Object {
  public:
    // A shadow of a tensor has one part, whatever the key, and so has the shadow of that shadow.
    explicit Shadow(bool single) : single_(single) {}
    bool single() const { return single_; }
    ~Shadow() override;
    Value get(const Value& key) const;
    void put(const Value& key, Value cotangent);
    void add(const Value& key, const Value& cotangent);
    Value take(const Value& key);
    void clear();
    // Of a table: whether what was written last under a key depends on what is followed; nil: under keys that are not
    // known. A plain number beside what is followed is no variable: operators take it in places without a gradient.
    void note(const Value& key, bool followed);
    // Whether a number under the key may depend on what is followed.
    bool follows_at(const Value& key) const;
    // Of a tensor: whether it was overwritten, so that what is computed from it reports here.
    bool is_box() const { return box_; }
    void make_box() { box_ = true; }
    // Whether what is followed was written under the name.
    bool follows(const Value& name) const;
    // A text that was made of what is followed is among what was written.
    void note_text() { texts_ = true; }
    bool has_texts() const { return texts_; }
    // Keys and cotangents.
    void for_each_owned(const std::function<void(const Value&)>& f) const;

  private:
    bool single_, box_ = false, texts_ = false, elsewhere_ = false;  // elsewhere_: under keys that are not in written_
    Value only_;
    std::unordered_map<Value, Value, KeyHash, KeyEqual> parts_;
    std::unordered_map<Value, bool, KeyHash, KeyEqual> written_;  // by key: whether it is followed
};

// One differentiation in progress. Objects that it has to follow have a shadow in it; values that depend on what it
// differentiates by carry its mark. A tensor that is overwritten becomes such an object (a box): until then the
// variables that have it have a cotangent each, from then on it is one in its shadow, whoever uses it by whatever name,
// and the backward pass finds there what the content between two writes is owed.
class Context final : public Object {
  public:
    Context(uint16_t mark, int level) : mark(mark), level(level) {}

    const uint16_t mark;
    const int level;  // differentiations around it
    std::vector<std::shared_ptr<const Overwritten>> overwritten;
    // The object's shadow; null when it has none.
    Shadow* find(const Value& object) const {
        if (shadows_.empty()) return nullptr;
        return find_identity(identity_of(object));
    }
    Shadow& shadow(const Value& object);                // made when it is not there yet
    std::vector<Value> shadows() const;                 // all of them
    Shadow* find_identity(const void* identity) const;  // the same by what identity_of() gave
    // Objects and their shadows.
    void for_each_owned(const std::function<void(const Value&)>& f) const;
    // The shadow of a tensor that was overwritten in this differentiation; null for everything else.
    Shadow* box(const Value& v) const {
        if (!v.is_tensor() || v.tensor().version() == 0 || shadows_.empty()) return nullptr;
        Shadow* shadow = find_identity(v.tensor().body());
        return shadow && shadow->is_box() ? shadow : nullptr;
    }
    // Tables that have a number which is followed as a key, which cannot be followed there.
    void note_keyed(const Value& table) { keyed_.try_emplace(identity_of(table), table); }
    bool is_keyed(const Value& table) const { return !keyed_.empty() && keyed_.contains(identity_of(table)); }
    // The shadow that a value read from `holder` reports to: a parameter's own, or its holder's.
    Shadow* source(const Value& holder, const Value& value) const;

  private:
    struct Entry {
        Value object;  // kept alive, so that nothing else gets its identity
        Value shadow;
    };
    std::unordered_map<const void*, Entry> shadows_;
    std::unordered_map<const void*, Value> keyed_;  // kept alive too
};

// Puts the sum of two dense tensors of one type into one of them that nobody else has, or into a new one; nil: they are
// something else.
Value sum_of_dense(Value& a, Value& b);

// The sum of two cotangents; nil is zero, lists add item by item.
Value accumulate(Value a, Value b);

// The object if it is of this very class. There is one type_info per class in a program, so addresses tell them apart.
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

// A value that refers to an object that others own as well.
inline Value share(Object& object) {
    add_reference(object.refs);
    return Value::adopt(&object);
}

}  // namespace lunaria::vm
