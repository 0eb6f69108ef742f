// Writes kernels as thread programs (core/loops/thread_program.h): numbers whose arithmetic adds instructions.
//
// A program is written while a Writer lives; arithmetic on its numbers goes to the Writer of this thread. Numbers of
// C++ beside a Number become constants of its dtype. Indices are i32 where all counts of a launch fit, else i64.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

#include "core/loops/thread_program.h"

namespace lunaria::gpu {

// The number of iterations to run side by side, for a loop that only reads.
inline constexpr int kTogether = 4;

struct Number {
    uint32_t at = 0;
    DType dtype = DType::f32;
};

// A register that can be written again.
struct Variable {
    uint32_t at = 0;
    DType dtype = DType::f32;
    Number get() const;
    void set(Number v) const;
};

// Elements in the memory of the block.
struct Near {
    int64_t start = 0;
    DType dtype = DType::f32;
    Number get(Number i) const;
    // For an index at a multiple of 16 bytes, so that the element is read together with the next ones.
    Number get_aligned(Number i) const;
    void set(Number i, Number v) const;
};

// A tensor's elements.
struct Elements {
    Number address;
    DType dtype = DType::f32;
    Number get(Number i) const;
    void set(Number i, Number v) const;
    void add(Number i, Number v) const;    // atomically
    void raise(Number i, Number v) const;  // raises an integer element to v if that is larger, atomically
};

class Writer {
  public:
    Writer(bool narrow, int threads);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    static Writer& current();
    graph::ThreadProgram finish();

    // The arguments of the launch, in the order of these calls, tensors first.
    Elements tensor(DType dtype);
    Number size();             // an index
    Number word();             // an i64
    Number real(DType dtype);  // a float, passed by the launch as an f64

    DType index_type() const { return index_; }
    Number constant(DType dtype, double number, int64_t integer);
    Number index(int64_t i) { return constant(index_, 0, i); }
    Number thread() { return index(Kind::thread); }  // of the block
    Number threads() { return index(int64_t{threads_}); }
    Number block() { return index(Kind::block); }
    Number blocks() { return index(Kind::blocks); }
    Near near(DType dtype, int64_t count);
    void barrier();
    Number exchange(Number v, int bits);
    Variable variable(Number first);
    // Operations of a warp together, on this thread's parts of blocks of 16 x 16 elements of 16 bits, of either float
    // type, two of which are an i32 (thread_program.h).
    using Fragment = std::array<Number, 4>;
    Fragment fragment(const Near& from, Number first, int pitch, bool turned);
    void multiply(DType dtype, const Fragment& a, Number b_upper, Number b_lower, std::span<const Variable, 4> sums);
    Number pair(Number low, Number high, DType dtype);
    Number power_of_2(Number v) {
        return add(Kind::power_of_2, DType::f32, {v.at});
    }  // to a few units in the last place

    // `body` is called once and writes the code for each number from `from` below `to`. `together` iterations run side
    // by side where `step` is a constant: worth it where elements are read and none written.
    template <class F>
    void loop(Number from, Number to, Number step, F body, int together = 1) {
        const Number i = add(Kind::loop, from.dtype, {from.at, to.at, step.at}, together);
        body(i);
        add(Kind::end, index_, {});
    }
    template <class F>
    void when(Number condition, F body) {
        add(Kind::condition, DType::boolean, {condition.at});
        body();
        add(Kind::end, index_, {});
    }
    // For each number below `count`; all threads of the launch share them.
    template <class F>
    void for_each(Number count, F body);
    // The same, shared by the threads of this block.
    template <class F>
    void for_each_here(Number count, F body, int together = 1);

    using Kind = graph::ThreadInstruction::Kind;
    Number add(Kind kind, DType dtype, std::initializer_list<uint32_t> args, int64_t integer = 0);
    Number formula(std::string_view name, DType result, std::initializer_list<Number> args);
    Number add_aligned_load(const Near& from, Number i);
    void exact() { program_.exact = true; }

  private:
    Number index(Kind kind);
    graph::ThreadProgram program_;
    const DType index_;
    const int threads_;
    Writer* const outer_;
};

Number cast(Number v, DType to);
Number quotient(Number a, Number b);   // of integers that are not negative
Number remainder(Number a, Number b);  // likewise
Number select(Number condition, Number a, Number b);
Number widen(Number v);           // an i32 as an i64 with zeros in front
Number bits(Number v, DType to);  // the same bits
Number shift_left(Number v, int64_t count);
Number shift_right(Number v, int64_t count);  // zeros come in
// By the formula of that name (core/ops/formulas.h).
Number formula(std::string_view name, Number a);
Number formula(std::string_view name, Number a, Number b);
inline Number sqrt(Number a) { return formula("sqrt", a); }
inline Number exp(Number a) { return formula("exp", a); }
inline Number maximum(Number a, Number b) { return formula("maximum", a, b); }

Number operator+(Number a, Number b);
Number operator-(Number a, Number b);
Number operator*(Number a, Number b);
Number operator/(Number a, Number b);  // of floats
Number operator&(Number a, Number b);
Number operator|(Number a, Number b);
Number operator^(Number a, Number b);
Number operator<(Number a, Number b);
Number operator==(Number a, Number b);
inline Number operator>(Number a, Number b) { return b < a; }
Number operator!(Number a);
inline Number operator>=(Number a, Number b) { return !(a < b); }  // of integers
inline Number operator<=(Number a, Number b) { return !(b < a); }  // of integers
inline Number operator!=(Number a, Number b) { return !(a == b); }
inline Number& operator+=(Number& a, Number b) { return a = a + b; }

template <class T>
concept Plain = std::is_arithmetic_v<T>;
template <Plain T>
Number like(Number other, T v) {
    return Writer::current().constant(other.dtype, static_cast<double>(v), static_cast<int64_t>(v));
}
template <Plain T>
Number operator+(Number a, T b) {
    return a + like(a, b);
}
template <Plain T>
Number operator-(Number a, T b) {
    return a - like(a, b);
}
template <Plain T>
Number operator-(T a, Number b) {
    return like(b, a) - b;
}
template <Plain T>
Number operator*(Number a, T b) {
    return a * like(a, b);
}
template <Plain T>
Number operator*(T a, Number b) {
    return like(b, a) * b;
}
template <Plain T>
Number operator/(Number a, T b) {
    return a / like(a, b);
}
template <Plain T>
Number operator/(T a, Number b) {
    return like(b, a) / b;
}
template <Plain T>
Number operator&(Number a, T b) {
    return a & like(a, b);
}
template <Plain T>
Number operator<(Number a, T b) {
    return a < like(a, b);
}
template <Plain T>
Number operator>(Number a, T b) {
    return a > like(a, b);
}
template <Plain T>
Number operator>=(Number a, T b) {
    return a >= like(a, b);
}
template <Plain T>
Number operator==(Number a, T b) {
    return a == like(a, b);
}
template <Plain T>
Number quotient(Number a, T b) {
    return quotient(a, like(a, b));
}
template <Plain T>
Number remainder(Number a, T b) {
    return remainder(a, like(a, b));
}

template <class F>
void Writer::for_each(Number count, F body) {
    loop(block() * threads() + thread(), count, blocks() * threads(), body);
}
template <class F>
void Writer::for_each_here(Number count, F body, int together) {
    loop(thread(), count, threads(), body, together);
}

// The sum over all threads of a block, in every one of them; `memory` has kWarp elements.
Number block_sum(Number v, const Near& memory);

// Calls `combine(thread, other)` for pairs of so many threads, a power of 2, whose values are in the block's memory,
// until the first thread has the result, which all of them then may read.
template <class F>
void fold_block(int threads, F combine) {
    Writer& w = Writer::current();
    w.barrier();
    for (int half = threads / 2; half > 0; half /= 2) {
        w.when(w.thread() < half, [&] { combine(w.thread(), w.thread() + half); });
        w.barrier();
    }
}

}  // namespace lunaria::gpu
