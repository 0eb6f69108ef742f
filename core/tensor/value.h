// Value: an operand or result of an operator, a constant in a graph node, a register of the virtual machine. 16 bytes;
// heap kinds are reference-counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace lunaria {

class Value;

namespace ir {
class Node;
}

// Base of everything that a Value refers to beside tensors: strings, lists, and objects of other layers (tables,
// closures).
struct Object {
    std::atomic<int32_t> refs{1};
    Object() = default;
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
    virtual ~Object() = default;
    // The address that tells objects apart; for a reference, that of its target.
    virtual const void* identity() const { return this; }
};

struct StringObject final : Object {
    std::string text;
    explicit StringObject(std::string_view t) : text(t) {}
};

class Value {
  public:
    enum class Kind : uint8_t { nil, boolean, integer, number, dtype, node, string, list, object, tensor };

    Value() = default;
    Value(bool b) : kind_(Kind::boolean) { payload_.integer = b; }
    Value(int i) : Value(static_cast<int64_t>(i)) {}
    Value(int64_t i) : kind_(Kind::integer) { payload_.integer = i; }
    Value(double d) : kind_(Kind::number) { payload_.number = d; }
    Value(DType t) : kind_(Kind::dtype) { payload_.integer = static_cast<int64_t>(t); }
    Value(std::string_view s) : kind_(Kind::string) { payload_.object = new StringObject(s); }
    Value(const char* s) : Value(std::string_view(s)) {}
    Value(Tensor t) : kind_(t ? Kind::tensor : Kind::nil) { payload_.tensor = t.release(); }
    // A node of a graph under construction; not owned.
    Value(ir::Node* node) : kind_(Kind::node) { payload_.node = node; }
    // Takes over the caller's reference.
    static Value adopt(Object* object) {
        Value v;
        v.kind_ = Kind::object;
        v.payload_.object = object;
        return v;
    }
    static Value list(std::vector<Value> items);
    // The items are moved out. Short lists that are made this way take no new memory: each thread keeps that of earlier
    // ones.
    static Value list_of(std::span<Value> items);
    static Value ints(std::span<const int64_t> items);
    static Value ints(const Shape& shape) { return ints(shape.dims()); }

    Value(const Value& other) : kind_(other.kind_), marks_(other.marks_), payload_(other.payload_) {
        if (kind_ >= Kind::string) add_owner();
    }
    Value(Value&& other) noexcept
        : kind_(std::exchange(other.kind_, Kind::nil)), marks_(other.marks_), payload_(other.payload_) {}
    Value& operator=(Value other) noexcept {
        std::swap(kind_, other.kind_);
        std::swap(marks_, other.marks_);
        std::swap(payload_, other.payload_);
        return *this;
    }
    ~Value() {
        if (kind_ >= Kind::string) drop();
    }

    Kind kind() const { return kind_; }
    bool is_nil() const { return kind_ == Kind::nil; }
    bool is_tensor() const { return kind_ == Kind::tensor; }
    bool is_number() const { return kind_ == Kind::number || kind_ == Kind::integer; }
    bool is_list() const { return kind_ == Kind::list; }
    bool is_node() const { return kind_ == Kind::node; }
    explicit operator bool() const { return kind_ != Kind::nil; }

    // The accessors assume the kind; callers that hold users' input check first.
    bool boolean() const { return payload_.integer != 0; }
    int64_t integer() const { return kind_ == Kind::number ? static_cast<int64_t>(payload_.number) : payload_.integer; }
    double number() const { return kind_ == Kind::number ? payload_.number : static_cast<double>(payload_.integer); }
    DType dtype() const { return static_cast<DType>(payload_.integer); }
    const std::string& string() const { return static_cast<StringObject*>(payload_.object)->text; }
    const std::vector<Value>& items() const;
    // The reference is valid as long as this value keeps the tensor.
    const Tensor& tensor() const { return reinterpret_cast<const Tensor&>(payload_.tensor); }
    ir::Node* node() const { return payload_.node; }
    Object* object() const { return payload_.object; }

    // Bits for code that follows a value through a program: the differentiations in progress that the value depends on.
    // Copies keep them; a new value has none.
    uint16_t marks() const { return marks_; }
    void set_marks(uint16_t bits) { marks_ = bits; }

  private:
    // Not inline: copies are everywhere, and loading inlined code that is not in the nearest cache takes longer than
    // the call.
    void add_owner() const noexcept;
    void drop() noexcept;

    Kind kind_ = Kind::nil;
    uint16_t marks_ = 0;
    union Payload {
        int64_t integer;
        double number;
        TensorBody* tensor;
        Object* object;
        ir::Node* node;
    } payload_{};
};

static_assert(sizeof(Value) == 16 && sizeof(Tensor) == sizeof(TensorBody*));

struct ListObject final : Object {
    std::vector<Value> items;
    explicit ListObject(std::vector<Value> v) : items(std::move(v)) {}
    ~ListObject() override;
    static void* operator new(size_t);
    static void operator delete(void* block) noexcept;
};

inline const std::vector<Value>& Value::items() const { return static_cast<ListObject*>(payload_.object)->items; }

// Equal kind and content; tensors compare dtype, shape and elements (NaN equals NaN); nodes by identity.
bool same_value(const Value& a, const Value& b);
std::string to_string(const Value& v);  // for messages and dumps; tensors as dtype and shape

}  // namespace lunaria
