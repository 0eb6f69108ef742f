// Transposes of blocks that fill whole cache lines: every line of the source is read once and every line of the target
// written once, so that rows a power of two apart, which share one set of the cache, do no harm.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <utility>

#include "backends/cpu/simd/pack.h"

namespace lunaria::cpu::LUNARIA_ISA {

// A register of 16-byte lanes, each of which takes part in a transpose of its own.
#if defined(__AVX2__)
using Lines = __m256i;
inline Lines load_lanes(const char* from, int64_t apart) {
    const __m128i upper = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + apart));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))),
                                   upper, 1);
}
inline void store_lanes(Lines x, void* to, bool stream) {
    if (stream)
        _mm256_stream_si256(static_cast<__m256i*>(to), x);
    else
        _mm256_storeu_si256(static_cast<__m256i*>(to), x);
}
#else
using Lines = __m128i;
inline Lines load_lanes(const char* from, int64_t) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
inline void store_lanes(Lines x, void* to, bool stream) {
    if (stream)
        _mm_stream_si128(static_cast<__m128i*>(to), x);
    else
        _mm_storeu_si128(static_cast<__m128i*>(to), x);
}
#endif
// The elements of the lower or the upper halves of each lane of a and b in turn.
template <class T, bool Upper>
[[gnu::always_inline]] inline Lines in_turn(Lines a, Lines b) {
    typedef BitsOf<T> V __attribute__((vector_size(sizeof(Lines))));
    constexpr int kLane = 16 / sizeof(T), kAll = sizeof(Lines) / sizeof(T);
    return [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
        return (Lines)__builtin_shufflevector(
            (V)a, (V)b, (I / kLane * kLane + (Upper ? kLane / 2 : 0) + I % kLane / 2 + (I % 2 ? kAll : 0))...);
    }
    (std::make_integer_sequence<int, kAll>());
}

// Rows of the source that make Parts registers of a row of the target.
template <class T, int Parts>
inline constexpr int64_t kTileRows = Parts* static_cast<int64_t>(sizeof(Lines) / sizeof(T));
// Columns that are transposed together.
template <class T>
inline constexpr int64_t kTileColumns = 16 / static_cast<int64_t>(sizeof(T));

// kTileRows by kTileColumns. Taking two halves of the rows in turn, log2(columns) times, transposes them.
template <class T, int Parts>
inline void transpose_tile(const T* from, int64_t from_stride, T* to, int64_t to_stride, bool stream) {
    constexpr int N = kTileColumns<T>;
    constexpr int64_t kRows = kTileRows<T, 1>;
    Lines x[Parts][N];
#pragma GCC unroll 4
    for (int part = 0; part < Parts; ++part) {
#pragma GCC unroll 16
        for (int i = 0; i < N; ++i)
            x[part][i] = load_lanes(reinterpret_cast<const char*>(from + (part * kRows + i) * from_stride),
                                    N * from_stride * static_cast<int64_t>(sizeof(T)));
#pragma GCC unroll 4
        for (int step = 1; step < N; step *= 2) {
            Lines y[N];
#pragma GCC unroll 8
            for (int i = 0; i < N / 2; ++i) {
                y[2 * i] = in_turn<T, false>(x[part][i], x[part][i + N / 2]);
                y[2 * i + 1] = in_turn<T, true>(x[part][i], x[part][i + N / 2]);
            }
#pragma GCC unroll 16
            for (int i = 0; i < N; ++i) x[part][i] = y[i];
        }
    }
#pragma GCC unroll 16
    for (int c = 0; c < N; ++c)
#pragma GCC unroll 4
        for (int part = 0; part < Parts; ++part) store_lanes(x[part][c], to + c * to_stride + part * kRows, stream);
}

template <class T>
inline void transpose_plain(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                            int64_t columns) {
    for (int64_t c = 0; c < columns; ++c)
        for (int64_t r = 0; r < rows; ++r) to[c * to_stride + r] = from[r * from_stride + c];
}

// Rows of N columns that follow one another: the compiler loads whole registers and sorts their lanes.
template <int N, class T>
inline void split_columns(const T* __restrict from, T* __restrict to, int64_t to_stride, int64_t rows) {
#pragma GCC ivdep
    for (int64_t r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int c = 0; c < N; ++c) to[c * to_stride + r] = from[r * N + c];
}
template <int N, class T>
inline void join_rows(const T* __restrict from, int64_t from_stride, T* __restrict to, int64_t columns) {
#pragma GCC ivdep
    for (int64_t c = 0; c < columns; ++c)
#pragma GCC unroll 8
        for (int r = 0; r < N; ++r) to[c * N + r] = from[r * from_stride + c];
}
// Dense rows of few columns, and the way back; false: not these.
template <class T>
inline bool transpose_narrow(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                             int64_t columns) {
    if (from_stride == columns) {
        if (columns == 2) return split_columns<2>(from, to, to_stride, rows), true;
        if (columns == 3) return split_columns<3>(from, to, to_stride, rows), true;
        if (columns == 4) return split_columns<4>(from, to, to_stride, rows), true;
        if (columns == 8) return split_columns<8>(from, to, to_stride, rows), true;
    }
    if (to_stride == rows) {
        if (rows == 2) return join_rows<2>(from, from_stride, to, columns), true;
        if (rows == 3) return join_rows<3>(from, from_stride, to, columns), true;
        if (rows == 4) return join_rows<4>(from, from_stride, to, columns), true;
    }
    return false;
}

// As many columns as make whole tiles; returns their number.
template <class T, int Parts>
inline int64_t transpose_tiles(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t columns,
                               bool stream) {
    int64_t c = 0;
    for (; c + kTileColumns<T> <= columns; c += kTileColumns<T>)
        transpose_tile<T, Parts>(from + c, from_stride, to + c * to_stride, to_stride, stream);
    return c;
}

template <class T>
void transpose(const void* in, int64_t from_stride, void* out, int64_t to_stride, int64_t rows, int64_t columns,
               bool stream) {
    auto* from = static_cast<const T*>(in);
    auto* to = static_cast<T*>(out);
    if (transpose_narrow(from, from_stride, to, to_stride, rows, columns)) return;
    constexpr int kLine = 64 / sizeof(Lines);
    for (int64_t r = 0; r < rows;) {
        const bool line = rows - r >= kTileRows<T, kLine>, tile = rows - r >= kTileRows<T, 1>;
        const int64_t height = line ? kTileRows<T, kLine> : tile ? kTileRows<T, 1> : rows - r;
        const T* const part = from + r * from_stride;
        int64_t c = 0;
        if (line)
            c = transpose_tiles<T, kLine>(part, from_stride, to + r, to_stride, columns, stream);
        else if (tile)
            c = transpose_tiles<T, 1>(part, from_stride, to + r, to_stride, columns, false);
        transpose_plain(part + c, from_stride, to + c * to_stride + r, to_stride, height, columns - c);
        r += height;
    }
    if (stream) _mm_sfence();
}

}  // namespace lunaria::cpu::LUNARIA_ISA
