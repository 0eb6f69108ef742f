// Keys of tables for hash tables.
#pragma once

#include <cmath>
#include <cstddef>

#include "core/tensor/value.h"

namespace lunaria::vm {

// A key in a table's form: a float that is an integer becomes that integer.
class TableKey {
  public:
    explicit TableKey(const Value& key) : key_(&key) {
        if (key.kind() != Value::Kind::number) return;
        const double x = key.number();
        if (x != std::floor(x) || std::abs(x) >= 0x1p53) return;
        integer_ = Value(static_cast<int64_t>(x));
        key_ = &integer_;
    }
    TableKey(const TableKey&) = delete;
    TableKey& operator=(const TableKey&) = delete;
    operator const Value&() const { return *key_; }

  private:
    const Value* key_;
    Value integer_;
};

// Objects and tensors by identity, everything else by value.
struct KeyHash {
    size_t operator()(const Value& v) const;
};
struct KeyEqual {
    bool operator()(const Value& a, const Value& b) const;
};

}  // namespace lunaria::vm
