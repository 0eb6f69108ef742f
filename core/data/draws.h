// Random numbers by position: there is no state, so that any thread can compute any of them at any time.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/interrupt.h"
#include "core/random/random.h"

namespace lunaria::data {

// The purposes of random numbers: streams of one seed that must differ.
enum class Purpose : uint64_t { order = 1, buffer, classes, row };

class Draws {
  public:
    Draws(uint64_t seed, uint64_t epoch, Purpose purpose)
        : seed_(seed), stream_(epoch ^ (static_cast<uint64_t>(purpose) << 56)) {}

    uint64_t bits(uint64_t position) const {
        const auto words = philox(seed_, position >> 1, stream_);
        const size_t half = position % 2 == 0 ? 0 : 2;
        return (uint64_t{words[half + 1]} << 32) | words[half];
    }
    // 0 .. bound - 1. The bias of at most bound / 2^64 is beyond notice.
    static uint64_t below(uint64_t bits, uint64_t bound) {
        return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * bound) >> 64);
    }
    // In (0, 1): 53 bits and a half, so that a logarithm is finite.
    double unit(uint64_t position) const { return (static_cast<double>(bits(position) >> 11) + 0.5) * 0x1p-53; }
    // 0 .. count - 1 in random order (Fisher and Yates).
    std::vector<int64_t> permutation(int64_t count) const;

    // The numbers at 0, 1, 2 ... one after the other, two of each computation.
    class InOrder;

  private:
    uint64_t seed_, stream_;
};

// 0 .. count - 1 in random order without a list, for many rows: any position is found at once. Pairs (a, b) of digits
// in a square grid of at least `count` places go through rounds of additions that depend on the other digit (a Feistel
// network over numbers); a result outside of the rows goes through again.
class Scattered {
  public:
    Scattered(const Draws& draws, int64_t count) : count_(static_cast<uint64_t>(count)) {
        while (side_ * side_ < count_) ++side_;
        for (size_t i = 0; i < keys_.size(); ++i) keys_[i] = draws.bits(i);
    }
    // The number of rows from which on this class is used. The order of fewer rows is a list, so that all orders are
    // equally likely.
    static constexpr int64_t kLeast = 1 << 16;

    int64_t at(int64_t position) const {
        uint64_t place = static_cast<uint64_t>(position);
        do {
            uint64_t a = place / side_, b = place % side_;
            for (const uint64_t key : keys_) {
                a += Draws::below(mixed(b + key), side_);
                if (a >= side_) a -= side_;
                std::swap(a, b);
            }
            place = a * side_ + b;
        } while (place >= count_);
        return static_cast<int64_t>(place);
    }

  private:
    // A mixer whose every bit depends on every bit of x (Stafford's mixer 13).
    static uint64_t mixed(uint64_t x) {
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
        return x ^ (x >> 31);
    }
    uint64_t count_, side_ = 256;
    std::array<uint64_t, 4> keys_{};
};

class Draws::InOrder {
  public:
    explicit InOrder(const Draws& draws) : draws_(draws) {}
    uint64_t next() {
        if (at_ % 2 == 0) words_ = philox(draws_.seed_, at_ >> 1, draws_.stream_);
        const size_t half = at_++ % 2 == 0 ? 0 : 2;
        return (uint64_t{words_[half + 1]} << 32) | words_[half];
    }

  private:
    Draws draws_;
    uint64_t at_ = 0;
    std::array<uint32_t, 4> words_{};
};

inline std::vector<int64_t> Draws::permutation(int64_t count) const {
    std::vector<int64_t> list(static_cast<size_t>(count));
    std::iota(list.begin(), list.end(), 0);
    InOrder numbers(*this);
    for_elements(count, [&](int64_t i) {
        const uint64_t left = static_cast<uint64_t>(count - i);
        std::swap(list[static_cast<size_t>(i)], list[static_cast<size_t>(i) + below(numbers.next(), left)]);
    });
    return list;
}

}  // namespace lunaria::data
