// Copies of pieces of a few bytes, for which a call of memcpy would cost more than its copy.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "backends/cpu/copy.h"

namespace lunaria::cpu {

// Below this number of bytes.
inline constexpr int64_t kShortBytes = 64;

namespace detail {

// `bytes` bytes, Size to twice Size: the first and the last Size of them, which may overlap.
template <size_t Size>
void copy_ends(const char* from, char* to, int64_t bytes) {
    struct Part {
        char of[Size];
    };
    const int64_t last = bytes - static_cast<int64_t>(Size);
    Part a, b;
    std::memcpy(&a, from, Size);
    std::memcpy(&b, from + last, Size);
    std::memcpy(to, &a, Size);
    std::memcpy(to + last, &b, Size);
}

template <size_t Size>
void copy_whole(const char* from, char* to) {
    struct Part {
        char of[Size];
    } part;
    std::memcpy(&part, from, Size);
    std::memcpy(to, &part, Size);
}

// Calls f(copy) with the copy for pieces of `bytes` bytes.
template <class F>
void with_copy(int64_t bytes, F f) {
    if (bytes == 4)
        f([](const char* from, char* to) { copy_whole<4>(from, to); });
    else if (bytes == 8)
        f([](const char* from, char* to) { copy_whole<8>(from, to); });
    else if (bytes == 16)
        f([](const char* from, char* to) { copy_whole<16>(from, to); });
    else if (bytes >= kShortBytes)
        f([bytes](const char* from, char* to) { std::memcpy(to, from, static_cast<size_t>(bytes)); });
    else if (bytes >= 32)
        f([bytes](const char* from, char* to) { copy_ends<32>(from, to, bytes); });
    else if (bytes >= 16)
        f([bytes](const char* from, char* to) { copy_ends<16>(from, to, bytes); });
    else if (bytes >= 8)
        f([bytes](const char* from, char* to) { copy_ends<8>(from, to, bytes); });
    else if (bytes >= 4)
        f([bytes](const char* from, char* to) { copy_ends<4>(from, to, bytes); });
    else if (bytes >= 2)
        f([bytes](const char* from, char* to) { copy_ends<2>(from, to, bytes); });
    else if (bytes == 1)
        f([](const char* from, char* to) { *to = *from; });
}

// Rows of less than Size bytes that follow one another in the target, each but the last one with what lies behind it in
// the source: the next row is written over that.
template <size_t Size>
int64_t copy_with_excess(const char* from, int64_t from_row, char* to, int64_t to_row, int64_t rows) {
    // A loop of one copy that lies across two lines of code takes twice as long.
#pragma GCC unroll 4
    for (int64_t r = 0; r + 1 < rows; ++r) copy_whole<Size>(from + r * from_row, to + r * to_row);
    return std::max<int64_t>(rows - 1, 0);
}
}  // namespace detail

// Rows that lie from_row and to_row bytes apart.
inline void copy_byte_rows(const char* from, int64_t from_row, char* to, int64_t to_row, int64_t rows, int64_t bytes) {
    if (from_row == bytes && to_row == bytes) {
        std::memcpy(to, from, static_cast<size_t>(rows * bytes));
        return;
    }
    int64_t done = 0;
    const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes)));
    if (size != bytes && to_row == bytes && from_row > 0 && from_row + bytes >= size) {
        if (size == 4) done = detail::copy_with_excess<4>(from, from_row, to, to_row, rows);
        if (size == 8) done = detail::copy_with_excess<8>(from, from_row, to, to_row, rows);
        if (size == 16) done = detail::copy_with_excess<16>(from, from_row, to, to_row, rows);
        if (size == 32) done = detail::copy_with_excess<32>(from, from_row, to, to_row, rows);
    }
    // By values: a store of bytes might change what a reference leads to.
    detail::with_copy(bytes, [=](auto copy) {
#pragma GCC unroll 4
        for (int64_t r = done; r < rows; ++r) copy(from + r * from_row, to + r * to_row);
    });
}

namespace detail {
// A rectangle with rows of N elements, or of `count` where N is 0: one loop over both axes.
template <int64_t N, class T>
void copy_rectangle(const T* from, int64_t from_row, int64_t in, T* to, int64_t to_row, int64_t out, int64_t rows,
                    int64_t count) {
    for (int64_t r = 0; r < rows; ++r, from += from_row, to += to_row)
        for (int64_t i = 0; i < (N ? N : count); ++i) to[i * out] = from[i * in];
}
}  // namespace detail

// Rows of `count` elements, which lie `in` and `out` elements apart; the rows lie from_row and to_row elements apart.
template <class T>
void copy_short_rows(const T* from, int64_t from_row, int64_t in, T* to, int64_t to_row, int64_t out, int64_t rows,
                     int64_t count) {
    constexpr auto kWidth = static_cast<int64_t>(sizeof(T));
    if (in == 1 && out == 1)
        return copy_byte_rows(reinterpret_cast<const char*>(from), from_row * kWidth, reinterpret_cast<char*>(to),
                              to_row * kWidth, rows, count * kWidth);
    // Neighbours become the elements of rows, as planes become the numbers of pixels.
    if (sizeof(T) <= 8 && from_row == 1 && out == 1 && to_row == count && count >= 2 && count <= 4)
        return copy_loops().transpose[std::countr_zero(sizeof(T)) & 3](from, in, to, count, count, rows, false);
    // Rows of usual lengths are unrolled.
    const auto copy = count == 2   ? detail::copy_rectangle<2, T>
                      : count == 3 ? detail::copy_rectangle<3, T>
                      : count == 4 ? detail::copy_rectangle<4, T>
                                   : detail::copy_rectangle<0, T>;
    copy(from, from_row, in, to, to_row, out, rows, count);
}

// Pieces from offsets of elements of `width` bytes, one after the other to `to`.
inline void copy_byte_pieces(const char* from, const int64_t* offsets, int64_t width, char* to, int64_t pieces,
                             int64_t bytes) {
    detail::with_copy(bytes, [=](auto copy) {
#pragma GCC unroll 4
        for (int64_t i = 0; i < pieces; ++i) copy(from + offsets[i] * width, to + i * bytes);
    });
}

}  // namespace lunaria::cpu
