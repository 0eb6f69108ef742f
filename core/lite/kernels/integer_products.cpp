// Products and direct convolutions of 8-bit integers. Compiled once for each instruction set.
//
// Rows are gathered as unsigned bytes (s8 ones moved by 128; the sums of the weights' columns put that right). With
// VNNI four bytes are multiplied at once by packed weights as they are; other sets multiply numbers of 16 bits in
// pairs, whose sums cannot overflow, and widen panels of weights beforehand, or in registers where only a few rows use
// them.
#include "core/lite/kernels/integer_products.h"

#include <array>
#include <utility>

#include "core/lite/kernels/integer_end.h"
#include "core/lite/kernels/pixels.h"
#include "core/lite/kernels/rows.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

namespace {

// Words of weights as they are packed; of two numbers of 16 bits; and packed ones that are widened in registers.
enum class Form : uint8_t { quads, pairs, narrow };
constexpr bool kWidens = kTogether == 2;

struct IntegerTile {
    const uint8_t* a;
    int64_t a_row;  // bytes
    const int32_t* b;
    int64_t b_panel, steps;
    int32_t* c;  // kSide panels wide
};

[[gnu::always_inline]] inline Ints word(const uint8_t* p) { return broadcast(load<int32_t>(p)); }

template <int Rows, int Panels, Form Of>
void integer_tile(const IntegerTile& t) {
    constexpr int V = Panels * kColumns, kTriples = (Rows + 2) / 3;
    Ints sums[Rows][V];
#pragma GCC unroll 12
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) sums[r][v] = Ints{};
    const uint8_t* a[kTriples];
#pragma GCC unroll 4
    for (int g = 0; g < kTriples; ++g) a[g] = t.a + 3 * g * t.a_row;
    const int32_t* b = t.b;
    const int64_t row = t.a_row, panel = t.b_panel;
    for (int64_t i = 0; i < t.steps; ++i) {
        Ints w[V];
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) w[v] = load<Ints>(b + v / kColumns * panel + v % kColumns * kLanes);
        if constexpr (Rows <= kSmallRows) __builtin_prefetch(b + 24 * kPanel);
        if constexpr (Of == Form::narrow) {
            // Words of four bytes to two words of two numbers each.
            Ints w2[V];
#pragma GCC unroll 8
            for (int v = 0; v < V; ++v) {
                typedef int16_t Shorts __attribute__((vector_size(kBytes)));
                const Ints even = (Ints)((Shorts)((Shorts)w[v] << 8) >> 8), odd = (Ints)((Shorts)w[v] >> 8);
                w[v] = (even & 0xffff) | (odd << 16);
                w2[v] = (Ints)((Words)even >> 16) | (odd & ~0xffff);
            }
#pragma GCC unroll 12
            for (int r = 0; r < Rows; ++r) {
                const uint8_t* p = a[r / 3] + (r % 3) * row;
                const Ints x = word(p), x2 = word(p + 4);
#pragma GCC unroll 8
                for (int v = 0; v < V; ++v) sums[r][v] = dot(dot(sums[r][v], x, w[v]), x2, w2[v]);
            }
        } else {
#pragma GCC unroll 12
            for (int r = 0; r < Rows; ++r) {
                const Ints x = word(a[r / 3] + (r % 3) * row);
#pragma GCC unroll 8
                for (int v = 0; v < V; ++v)
                    sums[r][v] = Of == Form::quads ? dot_quads(sums[r][v], x, w[v]) : dot(sums[r][v], x, w[v]);
            }
        }
#pragma GCC unroll 4
        for (int g = 0; g < kTriples; ++g) a[g] += Of == Form::narrow ? 8 : 4;
        b += kPanel;
    }
#pragma GCC unroll 12
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) store(t.c + r * kSide * kPanel + v * kLanes, sums[r][v]);
}

using Loop = void (*)(const IntegerTile&);
template <int Panels, Form Of, int... R>
constexpr auto loops_of(std::integer_sequence<int, R...>) {
    return std::array<Loop, sizeof...(R)>{&integer_tile<R + 1, Panels, Of>...};
}
template <Form Of>
Loop find_loop(int rows, int panels) {
    constexpr int kMost = Of == Form::narrow ? kSmallRows : kRows;
    static constexpr auto kOne = loops_of<1, Of>(std::make_integer_sequence<int, kMost>{});
    if constexpr (kSide == 2) {
        static constexpr auto kTwo = loops_of<2, Of>(std::make_integer_sequence<int, kMost>{});
        if (panels == 2) return kTwo[static_cast<size_t>(rows - 1)];
    }
    return kOne[static_cast<size_t>(rows - 1)];
}
Loop loop_of(Form form, int rows, int panels) {
    if constexpr (kWidens) {
        if (form == Form::narrow) return find_loop<Form::narrow>(rows, panels);
        if (form == Form::pairs || !kHasQuads) return find_loop<Form::pairs>(rows, panels);
    }
    return find_loop < kHasQuads ? Form::quads : Form::pairs > (rows, panels);
}

// Packed words to twice as many with two numbers of 16 bits each.
void widen(const int32_t* from, int64_t quads, int32_t* to) {
    typedef int16_t Shorts __attribute__((vector_size(kBytes)));
    for (int64_t q = 0; q < quads; ++q, from += kPanel, to += 2 * kPanel)
#pragma GCC unroll 4
        for (int v = 0; v < kPanel; v += kLanes) {
            const Ints w = load<Ints>(from + v);
            const Ints even = (Ints)((Shorts)((Shorts)w << 8) >> 8), odd = (Ints)((Shorts)w >> 8);
            store(to + v, (even & 0xffff) | (odd << 16));
            store(to + kPanel + v, (Ints)((Words)even >> 16) | (odd & ~0xffff));
        }
}

// Unsigned bytes in place, or as numbers of 16 bits; zeros up to whole words.
void prepare_row(Form form, uint8_t* bytes, int64_t k, uint8_t flip, uint16_t* wide) {
    for (int64_t i = k; i < quads_of(k) * 4; ++i) bytes[i] = flip;
    if (form != Form::quads) {
        for (int64_t i = 0; i < quads_of(k) * 4; ++i) wide[i] = static_cast<uint8_t>(bytes[i] ^ flip);
    } else if (flip) {
        // The rest of the row is scratch.
        for (int64_t i = 0; i < k; i += 16) store(bytes + i, load<Bytes16>(bytes + i) ^ flip);
    }
}

struct IntegerRows {
    int64_t m, n, k;
    const void* b;
    IntegerType type;
    int32_t zero;
    void* c;
    int64_t c_row;
    const IntegerEpilogue* epilogue;
};

[[gnu::always_inline]] inline Sums sums_at(const int32_t* p) {
    Sums sums;
#pragma GCC unroll 4
    for (int v = 0; v < kColumns; ++v) sums.v[v] = load<Ints>(p + v * kLanes);
    return sums;
}
void finish_tile(const IntegerRows& task, const IntegerEnd& end, int64_t first, int rows, int64_t panel, int side,
                 const int32_t* sums) {
    const int64_t element = task.epilogue->to_float ? 4 : 1;
    auto* y = static_cast<uint8_t*>(task.c) + first * task.c_row * element;
    const auto* residual = static_cast<const uint8_t*>(task.epilogue->residual);
    for (int s = 0; s < side; ++s, sums += kPanel) {
        const int64_t j = (panel + s) * kPanel;
        if (end.is_plain(j, residual)) {
            const IntegerEnd::Plain plain = end.plain(j);
            for (int r = 0; r < rows; ++r)
                IntegerEnd::finish(plain, sums_at(sums + r * kSide * kPanel), y + r * task.c_row + j);
            continue;
        }
        for (int r = 0; r < rows; ++r) {
            const uint8_t* other = residual ? residual + (first + r) * task.epilogue->residual_row : nullptr;
            end.finish(j, sums_at(sums + r * kSide * kPanel), y + r * task.c_row * element, other);
        }
    }
}

// Rows [m0, m1) by panels [p0, p1). gather(first, rows, to, to_row) writes rows of bytes; where rows are bytes in
// memory, `in place` is the first and `in_place_row` the step.
template <class Gather>
void multiply(const IntegerRows& task, int64_t m0, int64_t m1, int64_t p0, int64_t p1, void* scratch,
              const uint8_t* in_place, int64_t in_place_row, Gather gather) {
    const IntegerScratch sizes(task.n, task.k);
    auto* bytes = static_cast<uint8_t*>(scratch);
    auto* wide = reinterpret_cast<uint16_t*>(bytes + IntegerScratch::kRows * sizes.row_bytes);
    auto* widened = reinterpret_cast<int32_t*>(bytes + IntegerScratch::kRows * sizes.row_bytes * 3);
    auto* constants = reinterpret_cast<uint8_t*>(widened) + sizes.panels * panel_bytes(task.k) * 2;
    const auto* packed = static_cast<const int32_t*>(task.b);
    const int64_t words = panel_bytes(task.k) / 4, quads = quads_of(task.k);
    IntegerEnd end(*task.epilogue, task.n, constants);
    end.prepare(packed + panels_of(task.n) * words, task.zero + offset_of(task.type));
    const int64_t blocks = (m1 - m0 + kRows - 1) / kRows;
    const bool small = packed[panels_of(task.n) * (words + kPanel)] != 0;
    const Form form = !kWidens || (kHasQuads && small) ? Form::quads
                      : m1 - m0 <= kSmallRows          ? Form::narrow
                                                       : Form::pairs;
    const int64_t twice = form == Form::pairs ? 2 : 1;
    const bool reads_in_place = form == Form::quads && in_place && task.type == IntegerType::u8 && task.k % 4 == 0;
    for (int64_t p = p0; p < p1; p += sizes.panels) {
        const int64_t last = p + sizes.panels < p1 ? p + sizes.panels : p1;
        if (form == Form::pairs)
            for (int64_t i = p; i < last; ++i) widen(packed + i * words, quads, widened + (i - p) * words * 2);
        for (int64_t block = 0; block < blocks; ++block) {
            const int64_t first = m0 + (m1 - m0) * block / blocks;
            const int rows = static_cast<int>(m0 + (m1 - m0) * (block + 1) / blocks - first);
            IntegerTile t;
            t.a = form == Form::quads ? bytes : reinterpret_cast<const uint8_t*>(wide);
            t.a_row = form == Form::quads ? sizes.row_bytes : 2 * sizes.row_bytes;
            if (reads_in_place) {
                t.a = in_place + first * in_place_row;
                t.a_row = in_place_row;
            } else {
                gather(first, rows, bytes, sizes.row_bytes);
                for (int r = 0; r < rows; ++r)
                    prepare_row(form, bytes + r * sizes.row_bytes, task.k, flip_of(task.type),
                                wide + r * sizes.row_bytes);
            }
            t.steps = twice * quads;
            t.b_panel = twice * words;
            alignas(64) int32_t sums[kRows * kSide * kPanel];
            t.c = sums;
            for (int64_t i = p; i < last;) {
                const int side = kSide == 2 && i + 2 <= last ? 2 : 1;
                t.b = form == Form::pairs ? widened + (i - p) * words * 2 : packed + i * words;
                loop_of(form, rows, side)(t);
                finish_tile(task, end, first, rows, i, side, sums);
                i += side;
            }
        }
    }
}

// Float results are finished when a worker has all columns of its rows.
void finish_floats(const IntegerRows& task, int64_t m0, int64_t m1, int64_t p0, int64_t p1) {
    const IntegerEpilogue& e = *task.epilogue;
    if (!e.to_float || (!e.float_bias && e.activation == Activation::none)) return;
    const int64_t j0 = p0 * kPanel, j1 = p1 * kPanel < task.n ? p1 * kPanel : task.n;
    Epilogue f;
    f.bias = e.float_bias ? e.float_bias + j0 : nullptr;
    f.activation = e.activation;
    f.alpha = e.alpha;
    f.beta = e.beta;
    float* y = static_cast<float*>(task.c) + m0 * task.c_row + j0;
    apply(f, m1 - m0, j1 - j0, y, task.c_row, y, task.c_row);
}

struct Cut {
    Cut(int64_t m, int64_t n, int64_t k, const Workers& workers) {
        if (!is_shared(workers) || m * n * k < (1 << 21)) return;
        const int64_t wanted = 3 * workers.workers, most = (m + kRows - 1) / kRows, panels = (panels_of(n) + 1) / 2;
        rows = most < wanted ? most : wanted;
        const int64_t rest = (wanted + rows - 1) / rows;
        columns = panels < rest ? panels : rest;
    }
    int64_t rows = 1, columns = 1;
};

}  // namespace

void integer_product(const IntegerProduct& p, void* scratch, const Workers& workers) {
    const IntegerRows task{p.m, p.n, p.k, p.b, p.type, p.a_zero, p.c, p.c_row, &p.epilogue};
    const Cut cut(p.m, p.n, p.k, workers);
    const int64_t panels = panels_of(p.n), bytes = IntegerScratch(p.n, p.k).bytes;
    each_task(workers, cut.rows * cut.columns, [&](int64_t i, int worker) {
        const int64_t r = i % cut.rows, c = i / cut.rows;
        const int64_t m0 = p.m * r / cut.rows, m1 = p.m * (r + 1) / cut.rows;
        const int64_t p0 = panels * c / cut.columns, p1 = panels * (c + 1) / cut.columns;
        multiply(task, m0, m1, p0, p1, static_cast<uint8_t*>(scratch) + worker * bytes,
                 static_cast<const uint8_t*>(p.a), p.a_row, [&](int64_t first, int rows, uint8_t* to, int64_t to_row) {
                     const auto* from = static_cast<const uint8_t*>(p.a) + first * p.a_row;
                     for (int j = 0; j < rows; ++j) copy(to + j * to_row, from + j * p.a_row, p.k);
                 });
        finish_floats(task, m0, m1, p0, p1);
    });
}

void integer_direct(const IntegerConvolution& c, void* scratch, const Workers& workers) {
    const ConvolutionShape& s = c.shape;
    const int64_t m = s.batch * s.out[0] * s.out[1] * s.out[2], n = s.out_channels / s.groups;
    const int64_t k = s.channels / s.groups * taps_of(s), panels = panels_of(n), bytes = IntegerScratch(n, k).bytes;
    const int64_t x_pixel = c.x_pixel ? c.x_pixel : s.channels, y_pixel = c.y_pixel ? c.y_pixel : s.out_channels;
    const int64_t element = c.epilogue.to_float ? 4 : 1;
    const Cut cut(m, n, k, workers);
    each_task(workers, s.groups * cut.rows * cut.columns, [&](int64_t i, int worker) {
        const int64_t group = i / (cut.rows * cut.columns), r = i % cut.rows, col = i / cut.rows % cut.columns;
        IntegerEpilogue e = c.epilogue;
        if (e.bias) e.bias += group * n;
        if (e.float_bias) e.float_bias += group * n;
        if (e.residual) e.residual = static_cast<const uint8_t*>(e.residual) + group * n;
        e.multiplier += group * n;
        const IntegerRows task{m,
                               n,
                               k,
                               static_cast<const uint8_t*>(c.weight) + group * integer_weight_bytes(k, n),
                               c.type,
                               c.x_zero,
                               static_cast<uint8_t*>(c.y) + group * n * element,
                               y_pixel,
                               &e};
        const int64_t m0 = m * r / cut.rows, m1 = m * (r + 1) / cut.rows;
        const int64_t p0 = panels * col / cut.columns, p1 = panels * (col + 1) / cut.columns;
        const auto* x = static_cast<const uint8_t*>(c.x);
        const Pixels<uint8_t> pixels(s, x, x_pixel, group, static_cast<uint8_t>(c.x_zero));
        multiply(task, m0, m1, p0, p1, static_cast<uint8_t*>(scratch) + worker * bytes,
                 is_product(s) ? x + group * (s.channels / s.groups) : nullptr, x_pixel,
                 [&](int64_t first, int rows, uint8_t* to, int64_t to_row) {
                     pixels.gather(first, rows, 0, k, to, to_row);
                 });
        finish_floats(task, m0, m1, p0, p1);
    });
}

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
