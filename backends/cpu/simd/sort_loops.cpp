#include "backends/cpu/simd/sort_loops.h"

#include <array>
#include <limits>

#include "backends/cpu/simd/fold.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

constexpr int64_t kTogether = SortLoops::kTogether;

template <class Key>
[[gnu::always_inline]] inline void exchange(Key* a, Key* b) {
    for (int64_t i = 0; i < kTogether; i += Pack<Key>::lanes) {
        const Pack<Key> x = Pack<Key>::load(a + i), y = Pack<Key>::load(b + i);
        Pack<Key>(x.v < y.v ? x.v : y.v).store(a + i);
        Pack<Key>(x.v > y.v ? x.v : y.v).store(b + i);
    }
}

[[gnu::always_inline]] inline void exchange_pairs(int64_t* a, int64_t* b, int64_t* a_place, int64_t* b_place) {
    for (int64_t i = 0; i < kTogether; i += Pack<int64_t>::lanes) {
        auto at = [i](int64_t* of) { return Pack<int64_t>::load(of + i); };
        const Pack<int64_t> x = at(a), y = at(b), p = at(a_place), q = at(b_place);
        const Mask<int64_t> stays = (x < y) | ((x == y) & (p < q));
        select(stays, x, y).store(a + i);
        select(stays, y, x).store(b + i);
        select(stays, p, q).store(a_place + i);
        select(stays, q, p).store(b_place + i);
    }
}

// Merges sorted runs of 1, 2, 4 … elements: exchange(i, j) for elements that are to be in this order.
template <class F>
[[gnu::always_inline]] inline void network(int64_t n, F exchange) {
    for (int64_t run = 1; run < n; run *= 2)
        for (int64_t far = run; far > 0; far /= 2)
            for (int64_t from = far % run; from + far < n; from += 2 * far)
                for (int64_t i = from; i < from + far && i + far < n; ++i)
                    if ((i ^ (i + far)) < 2 * run) exchange(i * kTogether, (i + far) * kTogether);
}

template <class Key>
void sort_beside(Key* keys, int64_t n) {
    network(n, [=](int64_t i, int64_t j) { exchange(keys + i, keys + j); });
}

void pairs64(int64_t* keys, int64_t* places, int64_t n) {
    network(n, [=](int64_t i, int64_t j) { exchange_pairs(keys + i, keys + j, places + i, places + j); });
}

template <class T>
bool keys_of(const T* x, int64_t n, SortKey<T> flip, SortKey<T>* keys) {
    SortKey<T> hidden = 0;
    for (int64_t i = 0; i < n; ++i) {
        keys[i] = sort_key(x[i]) ^ flip;
        hidden |= is_hidden(x[i]) ? SortKey<T>(1) : SortKey<T>(0);
    }
    return hidden != 0;
}
template <class T>
void elements_of(const SortKey<T>* keys, int64_t n, SortKey<T> flip, T* x) {
    for (int64_t i = 0; i < n; ++i) x[i] = element_of<T>(keys[i] ^ flip);
}
template <class... T>
constexpr KeyLoopsOf<T...> key_loops(KeyLoopsOf<T...>) {
    return {KeyLoops<T>{keys_of<T>, elements_of<T>}...};
}

#if defined(__AVX512F__)
// One bit for each lane.
inline unsigned bits_of(Mask<int32_t> m) { return _mm512_movepi32_mask((__m512i)m.v); }
inline unsigned bits_of(Mask<int64_t> m) { return _mm512_movepi64_mask((__m512i)m.v); }
// The lanes whose bits are set, at the front. Into a register: AMD's processors take a hundred times longer to memory.
inline Pack<int32_t> chosen(Pack<int32_t> x, unsigned bits) {
    return (Pack<int32_t>::V)_mm512_maskz_compress_epi32(static_cast<__mmask16>(bits), (__m512i)x.v);
}
inline Pack<int64_t> chosen(Pack<int64_t> x, unsigned bits) {
    return (Pack<int64_t>::V)_mm512_maskz_compress_epi64(static_cast<__mmask8>(bits), (__m512i)x.v);
}
#elif defined(__AVX2__)
inline unsigned bits_of(Mask<int32_t> m) { return static_cast<unsigned>(_mm256_movemask_ps((__m256)m.v)); }
inline unsigned bits_of(Mask<int64_t> m) { return static_cast<unsigned>(_mm256_movemask_pd((__m256d)m.v)); }
// For each set of lanes, as bits, the numbers of their words in bytes. Lanes have `Words` words.
template <int Words>
constexpr auto orders_of_words() {
    constexpr int kLanes = 8 / Words;
    std::array<uint64_t, 1 << kLanes> orders{};
    for (size_t bits = 0; bits < orders.size(); ++bits)
        for (int lane = 0, place = 0; lane < kLanes; ++lane)
            if (bits >> lane & 1)
                for (int word = 0; word < Words; ++word)
                    orders[bits] |= static_cast<uint64_t>(lane * Words + word) << (8 * place++);
    return orders;
}
template <class Key>
[[gnu::always_inline]] inline Pack<Key> chosen(Pack<Key> x, unsigned bits) {
    alignas(64) static constexpr auto kOrders = orders_of_words<sizeof(Key) / 4>();
    const __m256i order = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(kOrders[bits])));
    return (typename Pack<Key>::V)_mm256_permutevar8x32_epi32((__m256i)x.v, order);
}
#endif

template <class Key>
int64_t between(const Key* keys, int64_t n, Key low, Key high, Key* out, int64_t& less) {
    int64_t kept = 0, smaller = 0, i = 0;
#if defined(__AVX2__)
    constexpr int lanes = Pack<Key>::lanes;
    const Pack<Key> least = spread(low), most = spread(high);
    for (; i + lanes <= n; i += lanes) {
        const Pack<Key> x = Pack<Key>::load(keys + i);
        const Mask<Key> below = x < least;
        const unsigned bits = bits_of(!(below | (x > most)));
        chosen(x, bits).store(out + kept);
        kept += __builtin_popcount(bits);
        smaller += __builtin_popcount(bits_of(below));
    }
#endif
    for (; i < n; ++i) {
        out[kept] = keys[i];
        kept += (keys[i] >= low) & (keys[i] <= high);
        smaller += keys[i] < low;
    }
    less += smaller;
    return kept;
}

// The key at a position is the greatest one than which no more keys are smaller.
template <class Key>
void ranked(const Key* keys, int64_t n, const int64_t* positions, int count, Key* found) {
    constexpr int lanes = Pack<Key>::lanes;
    const Pack<Key> nothing = spread(std::numeric_limits<Key>::min());
    Pack<Key> best[2] = {nothing, nothing};
    for (int64_t i = 0; i < n; i += lanes) {
        const Pack<Key> x = load_rest(keys + i, n - i, std::numeric_limits<Key>::max());
        Pack<Key> smaller = spread(Key(0));
        for (int64_t j = 0; j < n; ++j) smaller = smaller - Pack<Key>((spread(keys[j]) < x).v);
        for (int p = 0; p < count; ++p) {
            const Pack<Key> fits = select(smaller <= spread(static_cast<Key>(positions[p])), x, nothing);
            best[p] = select(fits > best[p], fits, best[p]);
        }
    }
    for (int p = 0; p < count; ++p) found[p] = best_lane<true, lanes / 2>(best[p]);
}

}  // namespace

const SortLoops sort_loops = {sort_beside<int32_t>,
                              sort_beside<int64_t>,
                              pairs64,
                              key_loops(decltype(SortLoops::keys)()),
                              {between<int32_t>, ranked<int32_t>},
                              {between<int64_t>, ranked<int64_t>}};

}  // namespace lunaria::cpu::LUNARIA_ISA
