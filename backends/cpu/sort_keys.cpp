#include "backends/cpu/sort_keys.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "core/base/interrupt.h"

namespace lunaria::cpu {

namespace {

// Calls f for each item and looks at an interrupt now and then.
template <class Item, class F>
void in_blocks(const Scratch<Item>& items, F f) {
    // An item may be the first to touch a large page, which the system then fills with zeros.
    in_ranges(static_cast<int64_t>(items.size()), 64, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) f(items[static_cast<size_t>(i)]);
    });
}

// Least significant digit first; keys with the same digit keep their order, so that places need not be compared.
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

// Sorts by the upper 32 of the bits in which the keys differ: items of one word go through half as many digits as the
// keys have. Keys that are equal in those bits are then mostly alone, or nearly so.
void sort_places(const Scratch<uint64_t>& keys, Scratch<uint32_t>& places) {
    uint64_t least = ~uint64_t{0}, most = 0;
    const auto count = static_cast<int64_t>(places.size());
    for_elements(count, [&](int64_t i) {
        const uint64_t key = keys[places[static_cast<size_t>(i)]];
        least = std::min(least, key);
        most = std::max(most, key);
    });
    if (least >= most) return;
    const int shift = std::max(0, static_cast<int>(std::bit_width(most - least)) - 32);
    auto short_key = [&](uint32_t place) { return static_cast<uint32_t>((keys[place] - least) >> shift); };
    Scratch<NarrowItem> items(places.size()), scratch;
    for_elements(count, [&](int64_t k) {
        const auto i = static_cast<size_t>(k);
        items[i] = ItemOf<uint32_t>::make(short_key(places[i]), places[i]);
    });
    sort_items(items, scratch);
    for_elements(count, [&](int64_t k) {
        const auto i = static_cast<size_t>(k);
        places[i] = static_cast<uint32_t>(ItemOf<uint32_t>::place(items[i]));
    });
    if (shift == 0) return;
    for (size_t begin = 0, end; begin < places.size(); begin = end) {
        end = begin + 1;
        while (end < places.size() && ItemOf<uint32_t>::key(items[end]) == ItemOf<uint32_t>::key(items[begin])) ++end;
        const auto from = places.begin() + static_cast<ptrdiff_t>(begin),
                   to = places.begin() + static_cast<ptrdiff_t>(end);
        if (end - begin < kRadixFrom) {
            std::sort(from, to, [&](uint32_t a, uint32_t b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
            continue;
        }
        Scratch<uint32_t> together(from, to);
        sort_places(keys, together);
        std::copy(together.begin(), together.end(), from);
    }
}

}  // namespace lunaria::cpu
