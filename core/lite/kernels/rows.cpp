// The parts of rows.h that do not depend on where rows come from. Compiled once for each
// instruction set.
#include "core/lite/kernels/rows.h"

#include "core/lite/kernels/block_rows.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

namespace {

constexpr float kInfinity = __builtin_inff();

}  // namespace

TileEnd::TileEnd(const Epilogue& e) : in_tile(!e.scale), low(-kInfinity), high(kInfinity) {
    const bool last = e.residual && e.residual_last;
    switch (e.activation) {
        case Activation::none:
            return;
        case Activation::relu:
            low = 0;
            break;
        case Activation::relu6:
            low = 0;
            high = 6;
            break;
        case Activation::clip:
            low = e.alpha;
            high = e.beta;
            break;
        default:
            in_tile = false;
    }
    if (last) in_tile = false;
    if (in_tile) return;
    low = -kInfinity;
    high = kInfinity;
}

RowsLoop::RowsLoop(const RowsTask& task, float* widened)
    : task_(task), end_(task.epilogue ? *task.epilogue : Epilogue{}), widened_(widened) {}

void RowsLoop::widen(int64_t p0, int64_t p1, int64_t k0, int64_t k1) {
    uses_widened_ = task_.type != WeightType::f32;
    if (!uses_widened_) return;
    widened_panel_ = p0;
    widened_k_ = k0;
    widened_depth_ = k1 - k0;
    float* to = widened_;
    if (is_blocks(task_.type)) {
        for (int64_t p = p0; p < p1; ++p, to += (k1 - k0) * kPanel) widen_blocks(p, k0, k1, to);
        return;
    }
    for (int64_t p = p0; p < p1; ++p) {
        const auto* from = static_cast<const uint16_t*>(task_.b) + (p * task_.k + k0) * kPanel;
        const int64_t count = (k1 - k0) * kPanel;
        if (task_.type == WeightType::f16)
            for (int64_t i = 0; i < count; i += kLanes)
                store(to + i, load_floats(reinterpret_cast<const F16*>(from + i)));
        else
            for (int64_t i = 0; i < count; i += kLanes)
                store(to + i, load_floats(reinterpret_cast<const BF16*>(from + i)));
        to += count;
    }
}

// A panel of weights that are rows of blocks in memory.
void RowsLoop::widen_blocks(int64_t p, int64_t k0, int64_t k1, float* to) const {
    const int64_t first = p * kPanel, columns = task_.n - first < kPanel ? task_.n - first : kPanel;
    const int64_t row = task_.k / kBlock * (task_.type == WeightType::q8_0 ? kBytesQ8 : kBytesQ4);
    for (int64_t k = k0 / kBlock * kBlock; k < k1; k += kBlock)
        for (int64_t j = 0; j < kPanel; ++j) {
            float numbers[kBlock] = {};
            if (j < columns)
                read_block(task_.type, static_cast<const uint8_t*>(task_.b) + (first + j) * row, k / kBlock, numbers);
            const int64_t begin = k < k0 ? k0 - k : 0, end = k + kBlock < k1 ? kBlock : k1 - k;
            for (int64_t i = begin; i < end; ++i) to[(k + i - k0) * kPanel + j] = numbers[i];
        }
}

void RowsLoop::panels(const float* a, int64_t a_row, int64_t first, int rows, int64_t p0, int64_t p1, int64_t k,
                      int64_t count) {
    const Epilogue none, &e = task_.epilogue && end_.in_tile ? *task_.epilogue : none;
    const bool begin = k == 0, finish = k + count == task_.k;
    // A residual in the place of the result is there before the first sums are.
    const bool in_place = e.residual && e.residual == task_.c;
    TileTask t;
    t.a = a;
    t.a_row = a_row;
    t.k = count / segments_;
    t.segments = segments_;
    t.a_segment = segment_step_;
    t.c_row = task_.c_row;
    t.low = end_.low;
    t.high = end_.high;
    t.finish = finish;
    t.accumulate = !begin || in_place;
    t.residual_row = e.residual_row;
    t.next = next_ ? next_ : a;
    t.next_step = next_ ? 16 : 0;
    const Weights w = weights(k);
    t.b_panel = w.depth * kPanel;
    const float* bias = begin ? e.bias : nullptr;
    const float* residual = finish && e.residual && !in_place ? e.residual + first * e.residual_row : nullptr;
    for (int64_t p = p0; p < p1;) {
        const int side = kSide == 2 && p + 2 <= p1 ? 2 : 1;
        const int64_t j = p * kPanel;
        t.b = w.base + (p - w.panel) * w.depth * kPanel * w.element;
        t.c = task_.c + first * task_.c_row + j;
        t.bias = bias ? bias + j : nullptr;
        t.residual = residual ? residual + j : nullptr;
        const bool half = kLanes < kPanel && task_.n - j <= kPanel / 2;
        const Tile tile = w.tile(rows, half ? 0 : side);
        if (j + (half ? kPanel / 2 : side * kPanel) > task_.n)
            edge(tile, t, rows, static_cast<int>(task_.n - j));
        else
            tile(t);
        p += side;
        t.next = a;
        t.next_step = 0;
    }
    if (finish && task_.epilogue && !end_.in_tile) apply_rest(first, rows, p0, p1);
}

RowsLoop::Weights RowsLoop::weights(int64_t k) const {
    if (uses_widened_)
        return {reinterpret_cast<const char*>(widened_ + (k - widened_k_) * kPanel), 4, widened_depth_, widened_panel_,
                tile_of<float>};
    const int64_t element = bytes_of(task_.type);
    const char* base = static_cast<const char*>(task_.b) + k * kPanel * element;
    if (task_.type == WeightType::f16) return {base, element, task_.k, 0, tile_of<F16>};
    if (task_.type == WeightType::bf16) return {base, element, task_.k, 0, tile_of<BF16>};
    return {base, element, task_.k, 0, tile_of<float>};
}

// An epilogue that tiles do not have.
void RowsLoop::apply_rest(int64_t first, int rows, int64_t p0, int64_t p1) const {
    const int64_t j = p0 * kPanel, columns = (p1 * kPanel < task_.n ? p1 * kPanel : task_.n) - j;
    Epilogue part = *task_.epilogue;
    if (part.bias) part.bias += j;
    if (part.scale) part.scale += j;
    if (part.residual) part.residual += first * part.residual_row + j;
    float* c = task_.c + first * task_.c_row + j;
    apply(part, rows, columns, c, task_.c_row, c, task_.c_row);
}

// The last columns, fewer than a tile has, by way of memory that has them all.
void RowsLoop::edge(Tile tile, const TileTask& t, int rows, int columns) {
    constexpr int64_t kWidth = kSide * kPanel;
    alignas(64) float c[kRows * kWidth], bias[kWidth] = {}, residual[kRows * kWidth];
    TileTask s = t;
    s.c = c;
    s.c_row = kWidth;
    if (t.bias) {
        copy(bias, t.bias, columns);
        s.bias = bias;
    }
    for (int r = 0; r < rows; ++r) {
        if (t.accumulate) copy(c + r * kWidth, t.c + r * t.c_row, columns);
        if (t.residual) copy(residual + r * kWidth, t.residual + r * t.residual_row, columns);
    }
    if (t.residual) {
        s.residual = residual;
        s.residual_row = kWidth;
    }
    tile(s);
    for (int r = 0; r < rows; ++r) copy(t.c + r * t.c_row, c + r * kWidth, columns);
}

Pieces::Pieces(int64_t m, int64_t n, int64_t k, const Workers& workers) {
    // Handing out less than about 20 microseconds of work costs more than it saves.
    if (!is_shared(workers) || m * n * k < (1 << 20)) return;
    const int64_t wanted = 3 * workers.workers, most_rows = (m + kRows - 1) / kRows,
                  most_columns = (panels_of(n) + 1) / 2;
    rows = most_rows < wanted ? most_rows : wanted;
    const int64_t rest = (wanted + rows - 1) / rows;
    columns = most_columns < rest ? most_columns : rest;
}

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
