// Keys of caches, byte by byte.
#pragma once

#include <bit>
#include <string>

#include "core/tensor/value.h"

namespace lunaria {

template <class T>
void append_bytes(std::string& key, const T& bits) {
    key.append(reinterpret_cast<const char*>(&bits), sizeof bits);
}

// Appends the content that tells a value from others; `other` (key, value) does so for tensors, nodes and objects.
// False: a value inside it cannot be compared, and the key is not usable.
template <class Other>
bool append_value(std::string& key, const Value& v, const Other& other) {
    append_bytes(key, v.kind());
    switch (v.kind()) {
        case Value::Kind::nil:
            return true;
        case Value::Kind::boolean:
            append_bytes(key, v.boolean());
            return true;
        case Value::Kind::integer:
            append_bytes(key, v.integer());
            return true;
        case Value::Kind::number:
            append_bytes(key, std::bit_cast<uint64_t>(v.number()));
            return true;
        case Value::Kind::dtype:
            append_bytes(key, v.dtype());
            return true;
        case Value::Kind::string:
            append_bytes(key, v.string().size());
            key += v.string();
            return true;
        case Value::Kind::list: {
            append_bytes(key, v.items().size());
            bool known = true;
            for (const Value& item : v.items()) known &= append_value(key, item, other);
            return known;
        }
        default:
            return other(key, v);
    }
}

}  // namespace lunaria
