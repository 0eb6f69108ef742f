#include "backends/cpu/elementwise_walk.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/cpu/copy.h"
#include "backends/cpu/short_copy.h"

namespace lunaria::cpu {

namespace {

using Index = std::array<int64_t, kMaxRank>;

// The elements of part of a row.
template <class U>
void gather_line(const U* from, int64_t step, int64_t count, U* out) {
    if (step == 1)
        std::copy_n(from, count, out);
    else if (step == 0)
        std::fill_n(out, count, *from);
    else if (step == 2 && sizeof(U) <= 8)
        copy_loops().every_other[std::countr_zero(sizeof(U)) & 3](from, out, count);
    else
        for (int64_t j = 0; j < count; ++j) out[j] = from[j * step];
}

// Copies `count` elements in row-major order, starting at `index`.
template <class U>
void gather(const Walk& walk, const WalkOperand& o, Index index, int64_t count, U* out) {
    auto* base = reinterpret_cast<const U*>(o.data);
    const auto at = static_cast<size_t>(walk.rank - 1);
    const int64_t inner = walk.dims[at], step = o.stride[at];
    int64_t offset = 0;
    for (size_t i = 0; i <= at; ++i) offset += index[i] * o.stride[i];
    while (count > 0) {
        // Whole short rows together, the rest of a row otherwise.
        int64_t rows = 1, run = std::min(count, inner - index[at]);
        if (at > 0 && run == inner && inner * static_cast<int64_t>(sizeof(U)) < kShortBytes) {
            rows = std::min(count / inner, walk.dims[at - 1] - index[at - 1]);
            copy_short_rows(base + offset, o.stride[at - 1], step, out, inner, 1, rows, inner);
        } else {
            gather_line(base + offset, step, run, out);
        }
        out += rows * run;
        count -= rows * run;
        offset -= index[at] * step;
        index[at] = 0;
        for (size_t i = at; i-- > 0; rows = 1) {
            index[i] += rows;
            offset += rows * o.stride[i];
            if (index[i] < walk.dims[i]) break;
            offset -= index[i] * o.stride[i];
            index[i] = 0;
        }
    }
}

void gather_any(const Walk& walk, const WalkOperand& o, const Index& index, int64_t count, char* out) {
    switch (o.size) {
        case 1:
            return gather(walk, o, index, count, reinterpret_cast<uint8_t*>(out));
        case 2:
            return gather(walk, o, index, count, reinterpret_cast<uint16_t*>(out));
        case 4:
            return gather(walk, o, index, count, reinterpret_cast<uint32_t*>(out));
        case 8:
            return gather(walk, o, index, count, reinterpret_cast<uint64_t*>(out));
        default:
            return gather(walk, o, index, count, reinterpret_cast<Complex128*>(out));
    }
}

// How a walk is divided. Long rows are processed one by one, so that most operands need no copy; several short ones are
// gathered at a time. Blocks of whole rows hold the same elements of an operand that all rows share: one copy serves
// for all.
struct Blocks {
    bool by_row, buffered;
    int64_t size;
    std::array<bool, kMostOperands> shared{};

    explicit Blocks(const Walk& walk) : buffered(walk.narrow != nullptr) {
        const auto last = static_cast<size_t>(walk.rank - 1);
        const int64_t inner = walk.dims[last];
        bool converts = buffered, all_in_blocks = true;
        int widest = 1;
        for (size_t i = 0; i < static_cast<size_t>(walk.operands); ++i) {
            const WalkOperand& o = walk.operand[i];
            widest = std::max(widest, o.size);
            converts |= o.widen != nullptr;
            buffered |= o.widen || (!o.constant && !o.dense && o.stride[last] > 1) || o.stride[last] < 0;
            shared[i] = walk.rank == 2 && !o.constant && o.stride[0] == 0;
            all_in_blocks &= o.constant || o.dense || shared[i];
        }
        size = std::min(converts ? kBlock : 8 * kBlock, 8 * kBlock / widest);
        by_row = inner >= (all_in_blocks ? size / 2 : kLongRow);
        if (by_row)
            shared = {};
        else if (std::ranges::find(shared, true) != shared.end())
            size -= size % inner;
    }
};

}  // namespace

void Walk::set_strides(int i, const Tensor& t, const Shape& shape) {
    WalkOperand& o = operand[static_cast<size_t>(i)];
    int shift = shape.rank() - t.rank();
    for (int axis = 0; axis < shape.rank(); ++axis) {
        bool spread = axis < shift || (t.dim(axis - shift) == 1 && shape[axis] != 1);
        o.stride[static_cast<size_t>(axis)] = spread ? 0 : t.strides()[axis - shift];
    }
    o.data = static_cast<const char*>(t.raw());
    o.size = static_cast<int>(size_of(t.dtype()));
}

void Walk::merge_axes(const Shape& shape) {
    auto count = static_cast<size_t>(operands);
    size_t kept = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) {
        if (shape[axis] == 1) continue;
        auto from = static_cast<size_t>(axis);
        bool merge = kept > 0;
        for (size_t i = 0; merge && i < count; ++i)
            merge = operand[i].constant || operand[i].stride[kept - 1] == operand[i].stride[from] * shape[axis];
        size_t to = merge ? kept - 1 : kept++;
        dims[to] = merge ? dims[to] * shape[axis] : shape[axis];
        for (size_t i = 0; i < count; ++i) operand[i].stride[to] = operand[i].stride[from];
    }
    if (kept == 0) {
        dims[0] = 1;
        for (size_t i = 0; i < count; ++i) operand[i].stride[0] = 0;
        kept = 1;
    }
    rank = static_cast<int>(kept);
    for (size_t i = 0; i < count; ++i) {
        WalkOperand& o = operand[i];
        if (o.constant) continue;
        int64_t step = 1;
        o.dense = true;
        for (size_t axis = kept; axis-- > 0; step *= dims[axis]) o.dense &= o.stride[axis] == step;
    }
}

void Walk::carry(std::array<int64_t, kMaxRank>& index) const {
    for (auto axis = static_cast<size_t>(rank - 1); axis > 0 && index[axis] >= dims[axis]; --axis) {
        // This is mostly the end of a row: a division would take as long as a good part of one.
        if (index[axis] == dims[axis]) {
            index[axis] = 0;
            ++index[axis - 1];
        } else {
            index[axis - 1] += index[axis] / dims[axis];
            index[axis] %= dims[axis];
        }
    }
}

void Walk::run_rows(int64_t begin, int64_t end) const {
    const auto last = static_cast<size_t>(rank - 1), count = static_cast<size_t>(operands);
    const void* at[kMostOperands];
    int64_t step[kMostOperands];
    Index index{};
    index[last] = begin;
    carry(index);
    auto move = [&](size_t axis, int64_t steps) {
        index[axis] += steps;
        for (size_t i = 0; i < count; ++i)
            if (const WalkOperand& o = operand[i]; !o.constant)
                at[i] = static_cast<const char*>(at[i]) + steps * o.stride[axis] * o.size;
    };
    for (size_t i = 0; i < count; ++i) {
        const WalkOperand& o = operand[i];
        step[i] = o.constant ? 0 : o.stride[last];
        int64_t offset = 0;
        for (size_t axis = 0; axis <= last && !o.constant; ++axis) offset += index[axis] * o.stride[axis];
        at[i] = o.data + offset * o.size;
    }
    while (begin < end) {
        const int64_t n = std::min(end - begin, dims[last] - index[last]);
        loop(at, step, out + begin * out_size, n);
        begin += n;
        move(last, -index[last]);
        for (size_t axis = last; axis-- > 0;) {
            move(axis, 1);
            if (index[axis] < dims[axis]) break;
            move(axis, -dims[axis]);
        }
    }
}

void Walk::run(int64_t begin, int64_t end) const {
    // Buffers for gathered and widened operands and for a result that is still to be narrowed.
    alignas(64) char gathered[kMostOperands][kBlock * 8], widened[kMostOperands][kBlock * 4], result[kBlock * 4];
    auto last = static_cast<size_t>(rank - 1);
    auto count = static_cast<size_t>(operands);
    const int64_t inner = dims[last];
    const Blocks blocks(*this);
    const bool by_row = blocks.by_row, buffered = blocks.buffered;
    const int64_t block = blocks.size;
    if (by_row && !buffered) return run_rows(begin, end);
    std::array<bool, kMostOperands> held{};
    Index index{};
    index[last] = begin;
    carry(index);
    while (begin < end) {
        int64_t n = end - begin;
        if (by_row) n = std::min(n, inner - index[last]);
        if (!by_row || buffered) n = std::min(n, block);
        const void* in[kMostOperands];
        int64_t step[kMostOperands];
        for (size_t i = 0; i < count; ++i) {
            const WalkOperand& o = operand[i];
            step[i] = 1;
            if (o.constant) {
                in[i] = o.data;
                step[i] = 0;
                continue;
            }
            if (held[i]) {
                in[i] = o.widen ? widened[i] : gathered[i];
                continue;
            }
            held[i] = blocks.shared[i];
            int64_t offset = 0;
            for (size_t axis = 0; axis <= last; ++axis) offset += index[axis] * o.stride[axis];
            if (o.dense) {
                in[i] = o.data + begin * o.size;
            } else if (by_row && (o.stride[last] == 1 || (o.stride[last] == 0 && !o.widen))) {
                in[i] = o.data + offset * o.size;
                step[i] = o.stride[last];
            } else {
                gather_any(*this, o, index, n, gathered[i]);
                in[i] = gathered[i];
            }
            if (o.widen) {
                o.widen(in[i], widened[i], n);
                in[i] = widened[i];
            }
        }
        char* to = out + begin * out_size;
        if (narrow) {
            loop(in, step, result, n);
            narrow(result, to, n);
        } else {
            loop(in, step, to, n);
        }
        begin += n;
        index[last] += n;
        carry(index);
    }
}

}  // namespace lunaria::cpu
