// Transposes of blocks that fill whole cache lines: every line of the source is read once and every line of the target
// written once, so that rows a power of two apart, which share one set of the cache, do no harm.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <cstdint>

namespace lunaria::cpu::LUNARIA_ISA {

inline constexpr int64_t kTile = 16;  // 16 floats are a cache line

// 16 rows of 16 floats; `to` rows are complete cache lines.
inline void transpose_tile(const float* from, int64_t from_stride, float* to, int64_t to_stride, bool stream) {
#if defined(__AVX512F__)
    __m512 a[16], b[16];
    for (int i = 0; i < 16; ++i) a[i] = _mm512_loadu_ps(from + i * from_stride);
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
    }
    auto low = [](__m512 x, __m512 y) {
        return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
    };
    auto high = [](__m512 x, __m512 y) {
        return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
    };
    for (int i = 0; i < 16; i += 4) {
        a[i] = low(b[i], b[i + 2]);
        a[i + 1] = high(b[i], b[i + 2]);
        a[i + 2] = low(b[i + 1], b[i + 3]);
        a[i + 3] = high(b[i + 1], b[i + 3]);
    }
    // a[4g + k] holds, in its quarter q, column 4q + k of rows 4g .. 4g + 3.
    for (int k = 0; k < 4; ++k) {
        __m512 even01 = _mm512_shuffle_f32x4(a[k], a[4 + k], 0x88), odd01 = _mm512_shuffle_f32x4(a[k], a[4 + k], 0xdd);
        __m512 even23 = _mm512_shuffle_f32x4(a[8 + k], a[12 + k], 0x88);
        __m512 odd23 = _mm512_shuffle_f32x4(a[8 + k], a[12 + k], 0xdd);
        b[k] = _mm512_shuffle_f32x4(even01, even23, 0x88);
        b[8 + k] = _mm512_shuffle_f32x4(even01, even23, 0xdd);
        b[4 + k] = _mm512_shuffle_f32x4(odd01, odd23, 0x88);
        b[12 + k] = _mm512_shuffle_f32x4(odd01, odd23, 0xdd);
    }
    for (int i = 0; i < 16; ++i) {
        if (stream)
            _mm512_stream_ps(to + i * to_stride, b[i]);
        else
            _mm512_storeu_ps(to + i * to_stride, b[i]);
    }
#elif defined(__AVX2__)
    // Four squares of 8; both halves of a target line are written together.
    for (int64_t c = 0; c < 16; c += 8) {
        __m256 out[2][8];
        for (int half = 0; half < 2; ++half) {
            __m256 a[8], b[8];
            for (int i = 0; i < 8; ++i) a[i] = _mm256_loadu_ps(from + (half * 8 + i) * from_stride + c);
            for (int i = 0; i < 8; i += 2) {
                b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
                b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
            }
            for (int i = 0; i < 8; i += 4) {
                a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
                a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
                a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
                a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
            }
            for (int i = 0; i < 4; ++i) {
                out[half][i] = _mm256_permute2f128_ps(a[i], a[i + 4], 0x20);
                out[half][i + 4] = _mm256_permute2f128_ps(a[i], a[i + 4], 0x31);
            }
        }
        for (int i = 0; i < 8; ++i) {
            float* line = to + (c + i) * to_stride;
            if (stream) {
                _mm256_stream_ps(line, out[0][i]);
                _mm256_stream_ps(line + 8, out[1][i]);
            } else {
                _mm256_storeu_ps(line, out[0][i]);
                _mm256_storeu_ps(line + 8, out[1][i]);
            }
        }
    }
#else
    for (int64_t c = 0; c < 16; c += 4) {
        __m128 rows[4][4];
        for (int64_t g = 0; g < 4; ++g) {
            for (int64_t i = 0; i < 4; ++i) rows[g][i] = _mm_loadu_ps(from + (4 * g + i) * from_stride + c);
            _MM_TRANSPOSE4_PS(rows[g][0], rows[g][1], rows[g][2], rows[g][3]);
        }
        for (int64_t i = 0; i < 4; ++i)
            for (int64_t g = 0; g < 4; ++g) {
                if (stream)
                    _mm_stream_ps(to + (c + i) * to_stride + 4 * g, rows[g][i]);
                else
                    _mm_storeu_ps(to + (c + i) * to_stride + 4 * g, rows[g][i]);
            }
    }
#endif
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

inline void transpose_f32(const void* in, int64_t from_stride, void* out, int64_t to_stride, int64_t rows,
                          int64_t columns, bool stream) {
    auto* from = static_cast<const float*>(in);
    auto* to = static_cast<float*>(out);
    if (transpose_narrow(from, from_stride, to, to_stride, rows, columns)) return;
    int64_t r = 0;
    for (; r + kTile <= rows; r += kTile) {
        int64_t c = 0;
        for (; c + kTile <= columns; c += kTile)
            transpose_tile(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride, stream);
        transpose_plain(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride, kTile, columns - c);
    }
    transpose_plain(from + r * from_stride, from_stride, to + r, to_stride, rows - r, columns);
#if defined(__SSE2__)
    if (stream) _mm_sfence();
#endif
}

// Other widths: small squares through a buffer, so that both reads and writes run along rows.
template <class T>
void transpose_any(const void* in, int64_t from_stride, void* out, int64_t to_stride, int64_t rows, int64_t columns,
                   bool) {
    constexpr int64_t kSide = 64 / static_cast<int64_t>(sizeof(T)) < 32 ? 64 / static_cast<int64_t>(sizeof(T)) : 32;
    auto* from = static_cast<const T*>(in);
    auto* to = static_cast<T*>(out);
    if (transpose_narrow(from, from_stride, to, to_stride, rows, columns)) return;
    T buffer[kSide * kSide];
    for (int64_t r = 0; r < rows; r += kSide)
        for (int64_t c = 0; c < columns; c += kSide) {
            int64_t height = rows - r < kSide ? rows - r : kSide, width = columns - c < kSide ? columns - c : kSide;
            if (height == kSide && width == kSide) {
                for (int64_t i = 0; i < kSide; ++i)
                    for (int64_t j = 0; j < kSide; ++j) buffer[j * kSide + i] = from[(r + i) * from_stride + c + j];
                for (int64_t j = 0; j < kSide; ++j)
                    __builtin_memcpy(to + (c + j) * to_stride + r, buffer + j * kSide, sizeof(T) * kSide);
            } else {
                transpose_plain(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride, height,
                                width);
            }
        }
}

}  // namespace lunaria::cpu::LUNARIA_ISA
