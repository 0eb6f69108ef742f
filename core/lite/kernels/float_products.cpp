// Products of matrices and direct convolutions of floats. Compiled once for each instruction set.
#include "core/lite/kernels/float_products.h"

#include "core/lite/kernels/pixels.h"
#include "core/lite/kernels/rows.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

namespace {

// One worker's part of scratch.
struct Place {
    Place(void* scratch, int64_t worker_bytes, int worker)
        : gathered(reinterpret_cast<float*>(static_cast<char*>(scratch) + worker * worker_bytes)),
          widened(gathered + kGatheredBytes / 4) {}
    float *gathered, *widened;
};

void gather_matrix(const float* a, int64_t row, int64_t column, int64_t first, int rows, int64_t k, int64_t count,
                   float* to) {
    for (int r = 0; r < rows; ++r) {
        const float* from = a + (first + r) * row + k * column;
        float* target = to + r * kGatheredRow;
        if (column == 1)
            copy(target, from, count);
        else
            for (int64_t i = 0; i < count; ++i) target[i] = from[i * column];
    }
}

// Rows a large power of two apart fall on the same few lines of the first cache.
bool is_direct(int64_t m, int64_t row, int64_t column) {
    return column == 1 && (m <= kSmallRows || (row * 4) % 2048 != 0);
}

void multiply(const RowsTask& task, const float* a, int64_t row, int64_t column, int64_t m0, int64_t m1, int64_t p0,
              int64_t p1, Place place) {
    RowsLoop loop(task, place.widened);
    const DirectRows direct{a, row};
    loop.run(m0, m1, p0, p1, is_direct(m1 - m0, row, column) ? &direct : nullptr, place.gathered,
             [&](int64_t first, int rows, int64_t k, int64_t count, float* to) {
                 gather_matrix(a, row, column, first, rows, k, count, to);
             });
}

// Arranges a matrix of the program in panels.
void pack(int64_t k, int64_t n, const float* b, int64_t row, int64_t column, float* to) {
    for (int64_t j = 0; j < n; j += kPanel) {
        const int64_t columns = n - j < kPanel ? n - j : kPanel;
        for (int64_t i = 0; i < k; ++i, to += kPanel) {
            const float* from = b + i * row + j * column;
            if (column == 1 && columns == kPanel) {
#pragma GCC unroll 4
                for (int v = 0; v < kPanel; v += kLanes) store(to + v, load(from + v));
                continue;
            }
            for (int64_t v = 0; v < columns; ++v) to[v] = from[v * column];
            for (int64_t v = columns; v < kPanel; ++v) to[v] = 0;
        }
    }
}

}  // namespace

void product(const Product& p, void* scratch, const Workers& workers) {
    const RowsTask task{p.m, p.n, p.k, p.b, p.type, p.c, p.c_row, &p.epilogue};
    const Pieces pieces(p.m, p.n, p.k, workers);
    const int64_t panels = panels_of(p.n);
    each_task(workers, pieces.rows * pieces.columns, [&](int64_t i, int worker) {
        const int64_t r = i % pieces.rows, c = i / pieces.rows;
        multiply(task, p.a, p.a_row, p.a_column, p.m * r / pieces.rows, p.m * (r + 1) / pieces.rows,
                 panels * c / pieces.columns, panels * (c + 1) / pieces.columns,
                 Place(scratch, rows_bytes(p.type), worker));
    });
}

namespace {

// A row of a times b, in which neighbours along a row or along a column are neighbours in memory: for few rows,
// arranging b would take longer than multiplying it.
bool is_read_in_place(const BatchedProduct& p) {
    return p.m <= 4 && p.a_column == 1 && (p.b_column == 1 || p.b_row == 1);
}
void row_times_rows(const BatchedProduct& p, const float* a, const float* b, float* c) {
    constexpr int kWidth = 4;
    for (int64_t j = 0; j < p.n; j += kWidth * kLanes) {
        const int64_t rest = p.n - j;
        Floats sums[kWidth] = {};
        if (rest >= kWidth * kLanes) {
            for (int64_t k = 0; k < p.k; ++k)
#pragma GCC unroll 4
                for (int v = 0; v < kWidth; ++v) sums[v] += broadcast(a[k]) * load(b + k * p.b_row + j + v * kLanes);
#pragma GCC unroll 4
            for (int v = 0; v < kWidth; ++v) store(c + j + v * kLanes, sums[v] * broadcast(p.factor));
            continue;
        }
        for (int64_t v = 0; v < rest; v += kLanes) {
            const int64_t count = rest - v < kLanes ? rest - v : kLanes;
            Floats sum{};
            for (int64_t k = 0; k < p.k; ++k) sum += broadcast(a[k]) * load_part(b + k * p.b_row + j + v, count);
            store_part(c + j + v, sum * broadcast(p.factor), count);
        }
    }
}
void row_times_columns(const BatchedProduct& p, const float* a, const float* b, float* c) {
    for (int64_t j = 0; j < p.n; ++j) {
        const float* column = b + j * p.b_column;
        Floats sum{}, other{};
        int64_t k = 0;
        for (; k + 2 * kLanes <= p.k; k += 2 * kLanes) {
            sum += load(a + k) * load(column + k);
            other += load(a + k + kLanes) * load(column + k + kLanes);
        }
        for (; k < p.k; k += kLanes) {
            const int64_t count = p.k - k < kLanes ? p.k - k : kLanes;
            sum += load_part(a + k, count) * load_part(column + k, count);
        }
        c[j] = total(sum + other) * p.factor;
    }
}
void multiply_in_place(const BatchedProduct& p, int64_t batch) {
    for (int64_t r = 0; r < p.m; ++r) {
        const float *a = p.a + batch * p.a_batch + r * p.a_row, *b = p.b + batch * p.b_batch;
        float* c = p.c + batch * p.c_batch + r * p.c_row;
        (p.b_column == 1 ? row_times_rows : row_times_columns)(p, a, b, c);
        if (p.epilogue.bias || p.epilogue.scale || p.epilogue.activation != Activation::none)
            apply(p.epilogue, 1, p.n, c, p.c_row, c, p.c_row);
    }
}

}  // namespace

void batched_product(const BatchedProduct& p, void* scratch, const Workers& workers) {
    const int64_t panels = panels_of(p.n), worker_bytes = kGatheredBytes + p.k * panels * kPanel * 4;
    each_task(workers, p.batch, [&](int64_t i, int worker) {
        if (is_read_in_place(p)) return multiply_in_place(p, i);
        const Place place(scratch, worker_bytes, worker);
        pack(p.k, p.n, p.b + i * p.b_batch, p.b_row, p.b_column, place.widened);
        if (p.factor != 1)
            for (int64_t e = 0; e < p.k * panels * kPanel; e += kLanes)
                store(place.widened + e, load(place.widened + e) * broadcast(p.factor));
        const RowsTask task{p.m, p.n, p.k, place.widened, WeightType::f32, p.c + i * p.c_batch, p.c_row, &p.epilogue};
        multiply(task, p.a + i * p.a_batch, p.a_row, p.a_column, 0, p.m, 0, panels,
                 Place(scratch, worker_bytes, worker));
    });
}

namespace {

Epilogue of_group(const Epilogue& e, int64_t first) {
    Epilogue part = e;
    if (part.bias) part.bias += first;
    if (part.scale) part.scale += first;
    if (part.residual) part.residual += first;
    return part;
}

}  // namespace

void direct(const Convolution& c, void* scratch, const Workers& workers) {
    const ConvolutionShape& s = c.shape;
    if (s.transposed) return transposed(c, scratch, workers);
    if (c.type == WeightType::f32 && PaddedLines(s).fits) return few_channels(c, scratch, workers);
    const int64_t m = s.batch * s.out[0] * s.out[1] * s.out[2], n = s.out_channels / s.groups;
    const int64_t k = s.channels / s.groups * s.kernel[0] * s.kernel[1] * s.kernel[2], panels = panels_of(n);
    const int64_t y_pixel = c.y_pixel ? c.y_pixel : s.out_channels, x_pixel = c.x_pixel ? c.x_pixel : s.channels;
    const int64_t element = c.type == WeightType::f32 ? 4 : 2;
    const Pieces pieces(m, n, k, workers);
    each_task(workers, s.groups * pieces.rows * pieces.columns, [&](int64_t i, int worker) {
        const int64_t group = i / (pieces.rows * pieces.columns), piece = i % (pieces.rows * pieces.columns);
        const int64_t r = piece % pieces.rows, col = piece / pieces.rows;
        const Place place(scratch, rows_bytes(c.type), worker);
        const Epilogue epilogue = of_group(c.epilogue, group * n);
        const RowsTask task{m,       n,
                            k,       static_cast<const char*>(c.weight) + group * k * panels * kPanel * element,
                            c.type,  c.y + group * n,
                            y_pixel, &epilogue};
        const int64_t m0 = m * r / pieces.rows, m1 = m * (r + 1) / pieces.rows;
        const int64_t p0 = panels * col / pieces.columns, p1 = panels * (col + 1) / pieces.columns;
        if (is_product(s)) {
            multiply(task, c.x + group * k, x_pixel, 1, m0, m1, p0, p1, place);
            return;
        }
        const Pixels<float> pixels(s, c.x, x_pixel, group, 0);
        RowsLoop loop(task, place.widened);
        loop.run(m0, m1, p0, p1, nullptr, place.gathered,
                 [&](int64_t first, int rows, int64_t at, int64_t count, float* to) {
                     pixels.gather(first, rows, at, count, to, kGatheredRow);
                 });
    });
}

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
