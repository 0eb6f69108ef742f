// Keys with and without places, and what sorts them or selects one of them.
#pragma once

#include <cstdint>

#include "backends/cpu/scratch.h"
#include "backends/cpu/simd/sort_key.h"
#include "backends/cpu/simd/sort_loops.h"

namespace lunaria::cpu {

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

// The loops of the instruction set in use.
const SortLoops& sort_loops();

// Sorts the items; `scratch` is working memory that may be reused between calls.
void sort_items(Scratch<NarrowItem>& items, Scratch<NarrowItem>& scratch);
void sort_items(Scratch<WideItem>& items, Scratch<WideItem>& scratch);

// Sorts keys that have no places.
void sort_keys(Scratch<uint32_t>& keys, Scratch<uint32_t>& scratch);
void sort_keys(Scratch<uint64_t>& keys, Scratch<uint64_t>& scratch);

// The key that would be at a position if the keys were sorted, as signed numbers, and how many of the keys equal to it
// would come before that position.
template <class Key>
struct Selected {
    Key key;
    int64_t equals;
};
// `some` is working memory that may be reused between calls.
Selected<int32_t> key_at(const int32_t* keys, int64_t n, int64_t position, Scratch<int32_t> (&some)[2]);
Selected<int64_t> key_at(const int64_t* keys, int64_t n, int64_t position, Scratch<int64_t> (&some)[2]);

// Sorts places, which are in ascending order, by the keys at these places; places of equal keys keep their order.
void sort_places(const Scratch<uint64_t>& keys, Scratch<uint32_t>& places);

}  // namespace lunaria::cpu
