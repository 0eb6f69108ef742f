#include "backends/cpu/sort_keys.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/interrupt.h"

namespace lunaria::cpu {

namespace {

// Comparison sorts win below this length.
constexpr size_t kRadixFrom = 256;

// Looks at an interrupt in between.
template <class Item, class F>
void in_blocks(const Scratch<Item>& items, F f) {
    // Each item may be the first to write to a large page, which the system fills with zeros then.
    constexpr size_t kBlock = 64;
    for (size_t begin = 0; begin < items.size(); begin += kBlock) {
        if (begin > 0) poll_interrupt();
        for (size_t i = begin, end = std::min(items.size(), begin + kBlock); i < end; ++i) f(items[i]);
    }
}

// Least significant digit first; keys of the same digit keep their order, so the places need no looking at.
template <class Item, class KeyOf>
void radix_sort(Scratch<Item>& items, Scratch<Item>& scratch, int digits, KeyOf key_of) {
    constexpr int kBits = 8;
    constexpr size_t kBuckets = size_t{1} << kBits;
    scratch.resize(items.size());
    std::vector<std::array<uint32_t, kBuckets>> counts(static_cast<size_t>(digits));
    in_blocks(items, [&](const Item& item) {
        auto key = key_of(item);
        for (auto& count : counts) {
            ++count[static_cast<size_t>(key & (kBuckets - 1))];
            key >>= kBits;
        }
    });
    for (int digit = 0; digit < digits; ++digit) {
        auto& start = counts[static_cast<size_t>(digit)];
        int shift = digit * kBits;
        // All keys share this digit: nothing moves.
        if (start[static_cast<size_t>(key_of(items[0]) >> shift & (kBuckets - 1))] == items.size()) continue;
        uint32_t sum = 0;
        for (uint32_t& c : start) sum += std::exchange(c, sum);
        in_blocks(items, [&](const Item& item) {
            scratch[start[static_cast<size_t>(key_of(item) >> shift & (kBuckets - 1))]++] = item;
        });
        items.swap(scratch);
    }
}

}  // namespace

void sort_items(Scratch<NarrowItem>& items, Scratch<NarrowItem>& scratch) {
    if (items.size() < kRadixFrom) return std::sort(items.begin(), items.end());
    radix_sort(items, scratch, 4, [](NarrowItem i) { return static_cast<uint32_t>(i >> 32); });
}

void sort_items(Scratch<WideItem>& items, Scratch<WideItem>& scratch) {
    if (items.size() < kRadixFrom || items.size() > 0xffffffffu) return std::sort(items.begin(), items.end());
    radix_sort(items, scratch, 8, [](const WideItem& i) { return i.key; });
}

}  // namespace lunaria::cpu
