// Access to the loops over rows of the instruction set in use, and helpers for the kernels that use them.
#pragma once

#include <algorithm>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/simd/row_loops.h"

namespace lunaria::cpu {

const RowLoops& row_loops();

template <class T>
const ReduceLoops<T>& reduce_loops() {
    if constexpr (sizeof(T) == 4)
        return row_loops().reduce_f32;
    else
        return row_loops().reduce_f64;
}
template <class T>
const IntegerRows<T>& integer_rows() {
    const RowLoops& loops = row_loops();
    if constexpr (std::is_same_v<T, uint8_t>)
        return loops.u8;
    else if constexpr (std::is_same_v<T, int8_t>)
        return loops.i8;
    else if constexpr (std::is_same_v<T, int16_t>)
        return loops.i16;
    else if constexpr (std::is_same_v<T, int32_t>)
        return loops.i32;
    else
        return loops.i64;
}
template <class T>
const TruthLoops<T>& truth_loops() {
    if constexpr (std::is_same_v<T, float>)
        return row_loops().truth_f32;
    else if constexpr (std::is_same_v<T, double>)
        return row_loops().truth_f64;
    else
        return integer_rows<T>().truth;
}
template <class T>
const SoftmaxLoops<T>& softmax_loops() {
    if constexpr (sizeof(T) == 4)
        return row_loops().softmax_f32;
    else
        return row_loops().softmax_f64;
}
template <class T>
const NormLoops<T>& norm_loops() {
    if constexpr (sizeof(T) == 4)
        return row_loops().norm_f32;
    else
        return row_loops().norm_f64;
}

template <class T>
const LossLoops<T>& loss_loops() {
    if constexpr (sizeof(T) == 4)
        return row_loops().loss_f32;
    else
        return row_loops().loss_f64;
}

// Calls f with a float or a double; false for every other dtype.
template <class F>
bool with_real(DType t, F f) {
    if (t == DType::f32) return f(float{});
    if (t == DType::f64) return f(double{});
    return false;
}

// Calls f with a number of an integer type, for bools with a byte; false for every other dtype.
template <class F>
bool with_integer(DType t, F f) {
    switch (t) {
        case DType::boolean:
        case DType::u8:
            return f(uint8_t{});
        case DType::i8:
            return f(int8_t{});
        case DType::i16:
            return f(int16_t{});
        case DType::i32:
            return f(int32_t{});
        case DType::i64:
            return f(int64_t{});
        default:
            return false;
    }
}

// The number of elements of simple work (an addition each) that is worth a thread: some ten microseconds from the outer
// caches, compared with tens for waking a sleeping thread.
inline constexpr int64_t kThreadElements = 98304;

// The number of rows of `length` elements that is worth a thread, when an element costs as much as `cost` additions.
inline int64_t worthwhile_rows(int64_t length, int64_t cost = 1) {
    return std::max<int64_t>(1, kThreadElements / std::max<int64_t>(1, length * cost));
}

void add_fast_reduce_kernels(KernelTable& table);  // backends/cpu/reduce_fast.cpp
// For integers and bools, and tests for 0 (backends/cpu/reduce_integer.cpp); false: not for this call.
bool integer_sum(const KernelCall& c);
bool integer_product(const KernelCall& c);
template <bool largest>
bool integer_extremum(const KernelCall& c);
template <bool largest, bool only_index>
bool integer_first_extremum(const KernelCall& c);
template <bool all>
bool truth_fast(const KernelCall& c);
void add_fast_softmax_kernels(KernelTable& table);  // backends/cpu/softmax_fast.cpp
void add_fast_norm_kernels(KernelTable& table);     // backends/cpu/norm_fast.cpp

}  // namespace lunaria::cpu
