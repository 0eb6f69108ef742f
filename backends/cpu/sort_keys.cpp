#include "backends/cpu/sort_keys.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "backends/cpu/elementwise.h"
#include "core/base/interrupt.h"
#include "core/base/own_library.h"
#include "core/threads/threads.h"

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

// Highway's sort by vectors, or null. Its module is opened when the first words are sorted: loading it takes some
// milliseconds.
template <class Word>
auto vector_sort() {
    constexpr const char* kName = sizeof(Word) == 4 ? "lunaria_sort_words32" : "lunaria_sort_words64";
    std::string problem;
    return reinterpret_cast<void (*)(Word*, size_t)>(own_library_function("liblunaria_sort.so", kName, problem));
}

// Vectors take longer to begin than a few comparisons do.
template <class Word>
void sort_words(Word* words, size_t n) {
    constexpr size_t kFew = 32;
    if (n < kFew) return std::sort(words, words + n);
    static const auto sort = vector_sort<Word>();
    if (sort)
        sort(words, n);
    else
        std::sort(words, words + n, InterruptibleLess(std::less<Word>()));
}

// The range of the words, cut into digits of so many bits, of which the upper ones differ.
template <class Word>
struct Digits {
    Word least;
    int shift;
    Digits(const Scratch<Word>& words, int bits) {
        Word low = words[0], high = low;
        in_blocks(words, [&](Word w) {
            low = std::min(low, w);
            high = std::max(high, w);
        });
        least = low;
        shift = std::max(0, static_cast<int>(std::bit_width(static_cast<Word>(high - low))) - bits);
    }
    size_t of(Word w) const { return static_cast<size_t>((w - least) >> shift); }
};

// Long arrays are first parted into groups by their upper bits, so that threads share them, each group stays in a
// cache, and an interrupt is noticed between groups.
template <class Word>
void sort_in_groups(Scratch<Word>& words, Scratch<Word>& scratch) {
    constexpr size_t kLong = size_t{1} << 18, kMostGroups = 256;
    constexpr int kBits = 16;
    const size_t n = words.size();
    if (n < kLong || n > 0xffffffffu) return sort_words(words.data(), n);
    const Digits<Word> digits(words, kBits);
    Scratch<uint32_t> counts(size_t{1} << kBits);
    std::fill(counts.begin(), counts.end(), 0u);
    in_blocks(words, [&](Word w) { ++counts[digits.of(w)]; });
    // Neighbouring digits in groups of about the same size.
    Scratch<uint8_t> group(counts.size());
    std::vector<size_t> start{0};
    size_t before = 0;
    for (size_t digit = 0; digit < counts.size(); ++digit) {
        if (before - start.back() > n / kMostGroups && start.size() < kMostGroups) start.push_back(before);
        group[digit] = static_cast<uint8_t>(start.size() - 1);
        before += counts[digit];
    }
    scratch.resize(n);
    std::vector<size_t> next = start;
    in_blocks(words, [&](Word w) { scratch[next[group[digits.of(w)]]++] = w; });
    words.swap(scratch);
    start.push_back(n);
    parallel_for(static_cast<int64_t>(next.size()), 1, [&](int64_t begin, int64_t end) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
            poll_interrupt();
            sort_words(words.data() + start[i], start[i + 1] - start[i]);
        }
    });
}

template <class Key>
const SelectLoops<Key>& select_loops() {
    if constexpr (sizeof(Key) == 4)
        return sort_loops().select32;
    else
        return sort_loops().select64;
}

// The keys from low to high, at the front of `out`; `less` becomes the number of the smaller ones.
template <class Key>
int64_t keep_between(const Key* keys, int64_t n, Key low, Key high, Scratch<Key>& out, int64_t& less) {
    constexpr int64_t kPart = int64_t{1} << 20;
    out.resize(static_cast<size_t>(n + SelectLoops<Key>::kFew));
    int64_t kept = 0;
    less = 0;
    in_ranges(n, kPart, [&](int64_t begin, int64_t end) {
        kept += select_loops<Key>().between(keys + begin, end - begin, low, high, out.data() + kept, less);
    });
    return kept;
}

// Keeps the keys between two of a sample, between which the wanted one lies most likely, again and again. Where many
// keys are equal this may keep most of them: then those that are equal to one key, or less, or greater.
template <class Key>
Selected<Key> select_key(const Key* keys, int64_t n, int64_t position, Scratch<Key> (&some)[2]) {
    constexpr int64_t kFew = SelectLoops<Key>::kFew, kSpread = 5;
    constexpr Key kLeast = std::numeric_limits<Key>::min(), kMost = std::numeric_limits<Key>::max();
    bool shrank = true;
    for (int turn = 0; n > kFew; turn ^= 1) {
        Key sample[kFew], ends[2];
        for (int64_t i = 0; i < kFew; ++i) sample[i] = keys[i * n / kFew];
        const int64_t middle = position * kFew / n, spread = shrank ? kSpread : 0;
        const int64_t around[2] = {std::max<int64_t>(0, middle - spread), std::min(kFew - 1, middle + spread)};
        select_loops<Key>().ranked(sample, kFew, around, 2, ends);
        if (shrank && around[0] == 0) ends[0] = kLeast;
        if (shrank && around[1] == kFew - 1) ends[1] = kMost;
        int64_t less = 0, kept = keep_between(keys, n, ends[0], ends[1], some[turn], less);
        if (position >= less && position < less + kept) {
            position -= less;
            if (ends[0] == ends[1]) return {ends[0], position};
            shrank = kept <= n / 2;
        } else {
            const bool below = position < less;
            if (!below) position -= less + kept;
            kept = keep_between(keys, n, below ? kLeast : ends[1] + 1, below ? ends[0] - 1 : kMost, some[turn], less);
            shrank = true;
        }
        keys = some[turn].data();
        n = kept;
    }
    Key found;
    select_loops<Key>().ranked(keys, n, &position, 1, &found);
    return {found, position - std::count_if(keys, keys + n, [&](Key k) { return k < found; })};
}

}  // namespace

const SortLoops& sort_loops() {
    const Isa isa = current_isa();
    return isa == Isa::avx512 ? avx512::sort_loops : isa == Isa::avx2 ? avx2::sort_loops : v2::sort_loops;
}

void sort_items(Scratch<NarrowItem>& items, Scratch<NarrowItem>& scratch) {
    if (items.size() < kRadixFrom) return sort_words(items.data(), items.size());
    radix_sort(items, scratch, 4, [](NarrowItem i) { return static_cast<uint32_t>(i >> 32); });
}

void sort_keys(Scratch<uint32_t>& keys, Scratch<uint32_t>& scratch) { sort_in_groups(keys, scratch); }
void sort_keys(Scratch<uint64_t>& keys, Scratch<uint64_t>& scratch) { sort_in_groups(keys, scratch); }

Selected<int32_t> key_at(const int32_t* keys, int64_t n, int64_t position, Scratch<int32_t> (&some)[2]) {
    return select_key(keys, n, position, some);
}
Selected<int64_t> key_at(const int64_t* keys, int64_t n, int64_t position, Scratch<int64_t> (&some)[2]) {
    return select_key(keys, n, position, some);
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
