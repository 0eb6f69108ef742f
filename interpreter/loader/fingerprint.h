// Change detection for Lua values, by types and bits, not by the text that is printed of them. Numbers differ when a
// bit of them does, tensors when an element, the shape or the dtype does, tables when a field does, as deep as
// kDeepest. Functions, coroutines and other objects are compared by identity.
#pragma once

#include <cstdint>
#include <lua.hpp>
#include <map>
#include <string_view>

#include "core/tensor/tensor.h"

namespace lunaria {

class Fingerprint {
  public:
    static constexpr int kDeepest = 10;       // tables within tables
    static constexpr int kMostParts = 20000;  // fields visited, in all

    // Takes the values at `first` up to the top of the stack, and returns whether they have changed since the last
    // time; the first time counts as a change. Tensors are kept until the next time, so that one that has not been
    // written to is not compared again.
    bool take(lua_State* L, int first);

  private:
    // Two sums over the same numbers, so that accidental equality is practically impossible.
    struct Digest {
        uint64_t one = 0x9E3779B97F4A7C15u, two = 0xC2B2AE3D27D4EB4Fu;
        void add(uint64_t number);
        void add_bytes(const void* data, size_t size);
        void add_text(std::string_view text);
        bool operator==(const Digest&) const = default;
    };
    struct Seen {
        Tensor tensor;
        uint32_t version = 0;
        Digest elements;
    };
    struct Walk;

    void add_value(lua_State* L, int index, Walk& walk, Digest& digest);
    void add_table(lua_State* L, int index, Walk& walk, Digest& digest);
    Digest elements_of(const Tensor& t, Walk& walk);

    bool known_ = false;
    Digest last_;
    std::map<const void*, Seen> tensors_;  // by body
};

}  // namespace lunaria
