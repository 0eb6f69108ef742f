// Sorting keys: unsigned integers whose order is the order of the elements, with NaN above everything and -0 equal to
// 0.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "backends/cpu/scratch.h"

namespace lunaria::cpu {

template <class T>
using SortKey = std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>;

template <class T>
SortKey<T> sort_key(T x) {
    using K = SortKey<T>;
    constexpr K kSign = K(1) << (sizeof(K) * 8 - 1);
    if constexpr (std::is_floating_point_v<T>) {
        const K bits = std::bit_cast<K>(x + T(0));  // -0 + 0 is +0
        // Without branches: signs are often random.
        const K flip = (K(0) - (bits >> (sizeof(K) * 8 - 1))) | kSign;
        return (bits ^ flip) | (K(0) - static_cast<K>(x != x));
    } else if constexpr (std::is_signed_v<T>) {
        return static_cast<K>(x) ^ kSign;
    } else {
        return static_cast<K>(x);
    }
}

// The element with this key, but for the sign of a zero and the bits of a NaN.
template <class T>
T element_of(SortKey<T> key) {
    using K = SortKey<T>;
    constexpr K kSign = K(1) << (sizeof(K) * 8 - 1);
    if constexpr (std::is_floating_point_v<T>) {
        const K flip = ((key >> (sizeof(K) * 8 - 1)) - K(1)) | kSign;
        return std::bit_cast<T>(key ^ flip);
    } else if constexpr (std::is_signed_v<T>) {
        return static_cast<T>(key ^ kSign);
    } else {
        return static_cast<T>(key);
    }
}

// An element of a line: its key and its place. Ordered by key, then by place, which makes every sort stable.
struct WideItem {
    uint64_t key;
    uint64_t place;
    friend bool operator<(const WideItem& a, const WideItem& b) {
        return a.key < b.key || (a.key == b.key && a.place < b.place);
    }
};

// The same for keys and places of 32 bits, in one word: the order is that of the words.
using NarrowItem = uint64_t;

template <class K>
struct ItemOf {
    using Item = WideItem;
    static Item make(K key, int64_t place) { return {key, static_cast<uint64_t>(place)}; }
    static int64_t place(const Item& i) { return static_cast<int64_t>(i.place); }
    static K key(const Item& i) { return i.key; }
};
template <>
struct ItemOf<uint32_t> {
    using Item = NarrowItem;
    static Item make(uint32_t key, int64_t place) {
        return static_cast<uint64_t>(key) << 32 | static_cast<uint64_t>(static_cast<uint32_t>(place));
    }
    static int64_t place(Item i) { return static_cast<int64_t>(i & 0xffffffffu); }
    static uint32_t key(Item i) { return static_cast<uint32_t>(i >> 32); }
};

// From this length on sorting by digits is faster than comparing.
inline constexpr size_t kRadixFrom = 256;

// Sorts the items; `scratch` is working memory that may be reused between calls.
void sort_items(Scratch<NarrowItem>& items, Scratch<NarrowItem>& scratch);
void sort_items(Scratch<WideItem>& items, Scratch<WideItem>& scratch);

// Sorts keys that have no places.
void sort_keys(Scratch<uint32_t>& keys, Scratch<uint32_t>& scratch);
void sort_keys(Scratch<uint64_t>& keys, Scratch<uint64_t>& scratch);

// The key that would be at this position if the keys were sorted; they change their order.
uint32_t key_at(Scratch<uint32_t>& keys, size_t position);
uint64_t key_at(Scratch<uint64_t>& keys, size_t position);

// Sorts places, which are in ascending order, by the keys at these places; places of equal keys keep their order.
void sort_places(const Scratch<uint64_t>& keys, Scratch<uint32_t>& places);

}  // namespace lunaria::cpu
