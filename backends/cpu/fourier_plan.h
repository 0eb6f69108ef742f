// Discrete Fourier transforms of one length, in f64. Lengths without prime factors above 13 are done factor by factor
// (Stockham's method, backends/cpu/simd/fourier_loops.h), long ones in two steps of lengths that stay in a core's cache
// (W. M. Gentleman and G. Sande, 1966); primes one above such a length become a convolution of that length (C. M.
// Rader, 1968), and all others a convolution of some such length (L. Bluestein, 1970), so that every length costs n log
// n.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/cpu/simd/fourier_loops.h"
#include "core/tensor/tensor.h"

namespace lunaria::cpu {

inline SplitNumbers behind(const SplitNumbers& x, int64_t i) { return {x.re + i, x.im + i}; }

// Numbers with their real and imaginary parts apart; not initialised.
class SplitArray {
  public:
    SplitArray() = default;
    explicit SplitArray(size_t n) : memory_(Tensor::empty(DType::f64, {2, static_cast<int64_t>(n)})) {
        numbers_ = {memory_.data<double>(), memory_.data<double>() + n};
    }
    SplitNumbers numbers() const { return numbers_; }
    void set(size_t i, double re, double im) const {
        numbers_.re[i] = re;
        numbers_.im[i] = im;
    }
    void swap(SplitArray& other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(numbers_, other.numbers_);
    }

  private:
    Tensor memory_;
    SplitNumbers numbers_;
};

// For the instruction set in use.
const FourierLoops& fourier_loops();

class FourierPlan {
  public:
    // Plans are kept for the next call; any thread may use one.
    static std::shared_ptr<const FourierPlan> of(int64_t n);

    explicit FourierPlan(int64_t n);

    // Transforms `signals` signals at once. Element i of signal j lies at i * signals + j, before and after. x and
    // scratch have room(signals) numbers. Stops for an interrupt.
    void operator()(SplitArray& x, SplitArray& scratch, int64_t signals) const;
    size_t room(int64_t signals) const { return static_cast<size_t>((padded_ ? padded_->n_ : n_) * signals); }

    // Whether transform_long is there.
    bool is_long() const { return across_ != nullptr; }
    // Transforms one signal of pairs of floats, with imaginary parts times sign before and after, and the result times
    // scale.
    void transform_long(const float* from, float* to, const SplitArray& scratch, double sign, double scale) const;

    // e^(-pi i k / n) for k = 0 .. n, which combine the transforms of the even and the odd elements of a real signal.
    SplitNumbers half_turns() const;

  private:
    void pass_by_pass(SplitArray& x, SplitArray& scratch, int64_t signals) const;
    template <class Read, class Write>
    void in_two_steps(const SplitArray& between, Read read, Write write) const;
    void convolve_long(const SplitArray& x, const SplitArray& scratch) const;
    bool make_cyclic();  // false where the length is not such a prime
    void convolve_cyclic(SplitArray& x, SplitArray& scratch, int64_t signals) const;

    int64_t n_;
    std::vector<int> radices_;
    SplitArray roots_, first_roots_;  // of the whole length; in the order that the first pass of a lone signal reads
    std::vector<SplitArray> units_;   // of each odd radix above 5
    std::shared_ptr<const FourierPlan> across_, along_;  // of a long signal: its columns and its rows
    std::shared_ptr<const FourierPlan> padded_;
    SplitArray chirp_, chirp_back_, filter_;  // chirp_back_: conjugated; filter_: over its length
    // For a prime: the plan of the length before it, and the powers of a number that generates all others.
    std::shared_ptr<const FourierPlan> cyclic_;
    std::vector<int64_t> powers_;
    mutable std::once_flag has_half_turns_;
    mutable SplitArray half_turns_;
};

}  // namespace lunaria::cpu
