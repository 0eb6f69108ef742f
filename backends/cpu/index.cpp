// CPU kernels: gather, masks.
#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/copy.h"
#include "backends/cpu/positions.h"
#include "backends/cpu/short_copy.h"
#include "core/base/interrupt.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

// Pieces that follow one another in the source.
struct PieceRun {
    int64_t offset, first, count;
};

// The runs among the pieces, where they are few: the sides of a padded axis and what lies between, a cut and rolled
// one.
Scratch<PieceRun> runs_of(const Scratch<int64_t>& offsets, int64_t elements) {
    constexpr size_t kPiecesOfRun = 8;
    Scratch<PieceRun> runs;
    for (size_t i = 0; i < offsets.size(); ++i) {
        if (i > 0 && offsets[i] == offsets[i - 1] + elements)
            ++runs.back().count;
        else if (runs.size() * kPiecesOfRun < offsets.size())
            runs.push_back({offsets[i], static_cast<int64_t>(i), 1});
        else
            return {};
    }
    return runs;
}

// Copies `elements` elements from each offset (in elements) of the source, one after another into the target. The
// offset of piece i of block o is o * stride + offsets[i].
template <class T>
void copy_pieces(const char* from, char* to, const Scratch<int64_t>& offsets, int64_t blocks, int64_t stride,
                 int64_t elements) {
    auto* source = reinterpret_cast<const T*>(from);
    auto* target = reinterpret_cast<T*>(to);
    auto pieces = static_cast<int64_t>(offsets.size());
    auto bytes = static_cast<int64_t>(sizeof(T)) * elements;
    if (blocks > 1 && pieces > 1) {
        const Scratch<PieceRun> runs = runs_of(offsets, elements);
        if (!runs.empty()) {
            parallel_for(blocks, std::max<int64_t>(128 * 1024 / (bytes * pieces), 1), [&](int64_t begin, int64_t end) {
                for (const PieceRun& run : runs)
                    copy_byte_rows(reinterpret_cast<const char*>(source + begin * stride + run.offset),
                                   stride * static_cast<int64_t>(sizeof(T)),
                                   reinterpret_cast<char*>(target + (begin * pieces + run.first) * elements),
                                   bytes * pieces, end - begin, bytes * run.count);
            });
            return;
        }
    }
    parallel_for(blocks * pieces, std::max<int64_t>(128 * 1024 / bytes, 1), [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end;) {
            const int64_t block = k / pieces, first = k % pieces, count = std::min(end - k, pieces - first);
            const T* const of_block = source + block * stride;
            const int64_t* const at = offsets.data() + first;
            if (elements == 1)
                for (int64_t i = 0; i < count; ++i) target[k + i] = of_block[at[i]];
            else
                copy_byte_pieces(reinterpret_cast<const char*>(of_block), at, static_cast<int64_t>(sizeof(T)),
                                 reinterpret_cast<char*>(target + k * elements), count, bytes);
            k += count;
        }
    });
}

// Calls f with a zero as wide as an element, of a type for moving only.
template <class F>
void visit_width(DType dtype, F f) {
    switch (size_of(dtype)) {
        case 1:
            return f(uint8_t());
        case 2:
            return f(uint16_t());
        case 4:
            return f(uint32_t());
        case 8:
            return f(uint64_t());
        default:
            return f(Complex128());
    }
}

bool copy_any_pieces(const KernelCall& call, const Scratch<int64_t>& offsets, int64_t blocks, int64_t stride,
                     int64_t elements) {
    auto* from = static_cast<const char*>(call.tensor(0).raw());
    auto* to = static_cast<char*>(call.out[0].raw());
    if (elements == 0 || blocks == 0 || offsets.empty()) return true;
    visit_width(call.tensor(0).dtype(),
                [&](auto zero) { copy_pieces<decltype(zero)>(from, to, offsets, blocks, stride, elements); });
    return true;
}

// The number of elements at random places in memory that is worth a thread.
constexpr int64_t kWorthwhile = 32 * 1024;

// Takes single elements of a vector, each as soon as its index has been checked.
void take_elements(const KernelCall& call, int64_t size) {
    const Tensor& out = call.out[0];
    const int64_t* const index = call.tensor(1).data<int64_t>();
    visit_width(out.dtype(), [&](auto zero) {
        using T = decltype(zero);
        const T* const from = call.tensor(0).data<T>();
        T* const to = out.data<T>();
        parallel_for(out.size(), kWorthwhile, [&](int64_t begin, int64_t end) {
            // Local variables, which the writes cannot change.
            const T* const x = from;
            T* const y = to;
            const int64_t* const at = index;
            const int64_t n = size;
            for (int64_t i = begin; i < end; ++i) y[i] = x[checked_index(call, at[i], n)];
        });
    });
}

bool gather(const KernelCall& call) {
    const Tensor& in = call.tensor(0);
    AxisSplit s(in.shape(), axis_of(call, 2, in.rank()));
    if (s.outer == 1 && s.inner == 1) {
        take_elements(call, s.size);
        return true;
    }
    auto at = checked_indices(call, call.tensor(1), s.size);
    for_elements(static_cast<int64_t>(at.size()), [&](int64_t i) { at[static_cast<size_t>(i)] *= s.inner; });
    return copy_any_pieces(call, at, s.outer, s.size * s.inner, s.inner);
}

bool take_offsets(const KernelCall& call, const Scratch<int64_t>& offsets, int64_t elements) {
    return copy_any_pieces(call, offsets, 1, 0, elements);
}

bool gather_elements(const KernelCall& call) {
    const Tensor& in = call.tensor(0);
    const Tensor& out = call.out[0];
    if (out.size() == 0) return true;
    const ElementOffsets offsets(call, call.tensor(2), in.shape(), axis_of(call, 1, in.rank()));
    visit_width(out.dtype(), [&](auto zero) {
        using T = decltype(zero);
        const T* const from = in.data<T>();
        T* const to = out.data<T>();
        parallel_for(offsets.rows(), std::max<int64_t>(kWorthwhile / offsets.row_length(), 1),
                     [&](int64_t begin, int64_t end) {
                         offsets.visit(begin, end, [from, to](int64_t i, int64_t at) { to[i] = from[at]; });
                     });
    });
    return true;
}

bool gather_nd(const KernelCall& call) {
    const Tensor &in = call.tensor(0), &indices = call.tensor(1);
    int64_t elements = 1;
    for (int i = static_cast<int>(indices.shape().back()); i < in.rank(); ++i) elements *= in.dim(i);
    return take_offsets(call, point_offsets(call, indices, in.shape()), elements);
}

bool index_add(const KernelCall& call) {
    Tensor& out = call.out[0];
    copy_elements(call.tensor(0), out);
    Tensor rows = call.tensor(2).contiguous(), index = call.tensor(1).contiguous();
    AxisSplit s(out.shape(), axis_of(call, 3, out.rank()));
    auto at = checked_indices(call, index, s.size);
    double alpha = call.args[4].number();
    visit_dtype(out.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        using A = Accumulator<T>;
        const T* from = rows.data<T>();
        T* to = out.data<T>();
        A factor;
        if constexpr (kIsComplex<A>)
            factor = A(static_cast<typename A::value_type>(alpha));
        else
            factor = static_cast<A>(alpha);
        for (int64_t o = 0; o < s.outer; ++o)
            in_ranges(static_cast<int64_t>(at.size()), offsets_between_looks(s.inner), [&](int64_t begin, int64_t end) {
                for (int64_t k = begin; k < end; ++k) {
                    T* const row = to + (o * s.size + at[static_cast<size_t>(k)]) * s.inner;
                    for (int64_t i = 0; i < s.inner; ++i) {
                        // Integers wrap around.
                        using W = std::conditional_t<std::is_integral_v<A>, uint64_t, A>;
                        const W added = static_cast<W>(static_cast<A>(*from++)) * static_cast<W>(factor);
                        row[i] = static_cast<T>(static_cast<A>(static_cast<W>(static_cast<A>(row[i])) + added));
                    }
                }
            });
    });
    return true;
}

// Rows are added in the order of the indices; threads share the blocks or the columns, never a row's element.
template <class T>
void add_rows(const CopyLoops& loops, T* to, const T* from, const Scratch<int64_t>& at, const AxisSplit& s, T factor) {
    const auto turn = static_cast<size_t>(offsets_between_looks(s.inner));
    auto add = [&](int64_t block, int64_t begin, int64_t end) {
        for (size_t i = 0; i < at.size(); ++i) {
            if (i % turn == 0) poll_interrupt();
            T* row = to + (block * s.size + at[i]) * s.inner + begin;
            const T* values =
                from + (block * static_cast<int64_t>(at.size()) + static_cast<int64_t>(i)) * s.inner + begin;
            if constexpr (std::is_same_v<T, float>)
                loops.add_f32(row, values, factor, end - begin);
            else
                loops.add_f64(row, values, factor, end - begin);
        }
    };
    auto work = static_cast<int64_t>(at.size());
    if (work == 0) return;
    if (s.outer > 1)
        parallel_for(s.outer, std::max<int64_t>(65536 / (work * s.inner), 1), [&](int64_t begin, int64_t end) {
            for (int64_t block = begin; block < end; ++block) add(block, 0, s.inner);
        });
    else
        parallel_for(s.inner, std::max<int64_t>(65536 / work, 64), 16,
                     [&](int64_t begin, int64_t end) { add(0, begin, end); });
}

bool index_add_fast(const KernelCall& call) {
    Tensor& out = call.out[0];
    AxisSplit s(out.shape(), axis_of(call, 3, out.rank()));
    bool handled = out.dtype() == DType::f32 || out.dtype() == DType::f64;
    if (!handled || s.inner < 8 || out.size() == 0) return false;
    auto at = checked_indices(call, call.tensor(1).contiguous(), s.size);
    copy_elements(call.tensor(0), out);
    Tensor rows = call.tensor(2).contiguous();
    double alpha = call.args[4].number();
    if (out.dtype() == DType::f32)
        add_rows(copy_loops(), out.data<float>(), rows.data<float>(), at, s, static_cast<float>(alpha));
    else
        add_rows(copy_loops(), out.data<double>(), rows.data<double>(), at, s, alpha);
    return true;
}

template <class T>
int64_t count_nonzero(const T* x, int64_t count) {
    std::array<int64_t, 4> sums{};  // four sums do not wait for each other
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (size_t lane = 0; lane < 4; ++lane) sums[lane] += x[i + static_cast<int64_t>(lane)] != T(0);
    for (; i < count; ++i) sums[0] += x[i] != T(0);
    return sums[0] + sums[1] + sums[2] + sums[3];
}

// Calls found(positions, count) for the positions of elements that are not zero, in order. A position is always written
// and kept where it counts, so that no branch depends on the data.
template <class T, class F>
void find_nonzero(const T* x, int64_t count, F found) {
    constexpr int64_t kBlock = 2048;
    std::array<int64_t, kBlock + 1> block;
    for (int64_t begin = 0; begin < count; begin += kBlock) {
        poll_interrupt();
        size_t kept = 0;
        for (int64_t i = begin, end = std::min(count, begin + kBlock); i < end; ++i) {
            block[kept] = i;
            kept += x[i] != T(0) ? 1 : 0;
        }
        found(block.data(), kept);
    }
}

bool argwhere(const KernelCall& call) {
    const Tensor& in = call.tensor(0);
    const int rank = in.rank();
    visit_dtype(in.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* x = in.data<T>();
        call.out[0] = Tensor::empty(DType::i64, {count_nonzero(x, in.size()), rank});
        if (rank == 0) return;
        int64_t* out = call.out[0].data<int64_t>();
        // Positions ascend: the leading axes are computed once for a row.
        const int64_t length = in.dim(rank - 1);
        std::array<int64_t, kMaxRank> at{};
        int64_t row = -1;  // where the current one starts
        find_nonzero(x, in.size(), [&](const int64_t* positions, size_t count) {
            if (rank == 1) {
                out = std::copy(positions, positions + count, out);
                return;
            }
            for (size_t i = 0; i < count; ++i) {
                const int64_t position = positions[i];
                if (row < 0 || position - row >= length) {
                    int64_t rest = position / length;
                    row = rest * length;
                    for (int axis = rank - 2; axis >= 0; --axis) {
                        at[static_cast<size_t>(axis)] = rest % in.dim(axis);
                        rest /= in.dim(axis);
                    }
                }
                for (int axis = 0; axis + 1 < rank; ++axis) *out++ = at[static_cast<size_t>(axis)];
                *out++ = position - row;
            }
        });
    });
    return true;
}

bool one_hot(const KernelCall& call) {
    Tensor& out = call.out[0];
    Tensor index = call.tensor(0).cast(DType::i64);
    int64_t depth = call.args[1].integer();
    AxisSplit s(out.shape(), axis_of(call, 4, out.rank()));
    Tensor on = call.tensor(2).reshaped({}).cast(out.dtype()), off = call.tensor(3).reshaped({}).cast(out.dtype());
    Strides still;
    still.resize(out.rank(), 0);
    if (out.size() == 0) return true;
    copy_elements(off.view(out.shape(), still), out);
    size_t width = size_of(out.dtype());
    for (int64_t o = 0; o < s.outer; ++o)
        for (int64_t i = 0; i < s.inner; ++i) {
            int64_t at = index.data<int64_t>()[o * s.inner + i];
            if (at < 0 || at >= depth) continue;
            std::memcpy(static_cast<char*>(out.raw()) + static_cast<size_t>((o * depth + at) * s.inner + i) * width,
                        on.raw(), width);
        }
    return true;
}

}  // namespace

void add_index_kernels(KernelTable& table) {
    table.fast("index_add", index_add_fast);
    table.plain("gather", gather);
    table.plain("gather_elements", gather_elements);
    table.plain("gather_nd", gather_nd);
    table.plain("index_add", index_add);
    table.plain("argwhere", argwhere);
    table.plain("one_hot", one_hot);
}

}  // namespace lunaria::cpu
