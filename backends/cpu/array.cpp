// CPU kernels: joining, triangles, sequences.
#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/cpu/copy.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/short_copy.h"
#include "core/base/interrupt.h"
#include "core/operator/op.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

bool concat(const KernelCall& call) {
    Tensor& out = call.out[0];
    int64_t axis = call.args[1].integer();
    if (axis < 0) axis += out.rank();
    int64_t start = 0;
    for (const Value& v : call.args[0].items()) {
        const Tensor& part = v.tensor();
        int64_t offset = start * out.strides()[static_cast<int>(axis)];
        if (part.size()) copy_elements(part, out.view(part.shape(), out.strides(), offset));
        start += part.dim(static_cast<int>(axis));
    }
    return true;
}

// Two to four dense parts with one element in each row.
bool interleaved(std::span<const Value> parts, const Tensor& out, int64_t rows) {
    const size_t size = size_of(out.dtype());
    if (parts.size() < 2 || parts.size() > 4 || size > 8) return false;
    for (const Value& v : parts)
        if (v.tensor().size() != rows) return false;
    const InterleaveLoop loop = copy_loops().interleave[parts.size() - 2][std::countr_zero(size)];
    parallel_for(rows, 1 << 15, [&](int64_t begin, int64_t end) {
        const void* from[4] = {};
        for (size_t k = 0; k < parts.size(); ++k)
            from[k] = static_cast<const char*>(parts[k].tensor().raw()) + begin * static_cast<int64_t>(size);
        char* const to = static_cast<char*>(out.raw());
        loop(from, to + begin * static_cast<int64_t>(size * parts.size()), end - begin);
    });
    return true;
}

// With dense parts, each row continues after the row of the part before it.
bool fast_concat(const KernelCall& call) {
    const Tensor& out = call.out[0];
    const std::span<const Value> parts = call.args[0].items();
    int64_t axis = call.args[1].integer();
    if (axis < 0) axis += out.rank();
    int64_t rows = 1;
    for (int i = 0; i < axis; ++i) rows *= out.dim(i);
    for (const Value& v : parts)
        if (!v.tensor().is_contiguous() || v.tensor().dtype() != out.dtype()) return false;
    if (out.size() == 0) return true;
    if (interleaved(parts, out, rows)) return true;
    const auto width = static_cast<int64_t>(out.nbytes()) / rows;
    int64_t start = 0;
    for (const Value& v : parts) {
        const Tensor& part = v.tensor();
        const auto length = static_cast<int64_t>(part.nbytes()) / rows;
        const char* from = static_cast<const char*>(part.raw());
        char* to = static_cast<char*>(out.raw()) + start;
        auto copy_rows = [&](int64_t begin, int64_t end) {
            copy_byte_rows(from + begin * length, length, to + begin * width, width, end - begin, length);
        };
        // With hundreds of short parts, copying them is faster than splitting the work.
        constexpr int64_t kWorthwhile = 1 << 17, kLong = 1 << 24;
        if (rows * length <= kWorthwhile)
            copy_rows(0, rows);
        else if (length > kLong)
            for (int64_t row = 0; row < rows; ++row)
                parallel_for(length, kWorthwhile, kAlignment, [&](int64_t begin, int64_t end) {
                    std::memcpy(to + row * width + begin, from + row * length + begin,
                                static_cast<size_t>(end - begin));
                });
        else
            parallel_for(rows, kWorthwhile / length + 1, copy_rows);
        start += length;
    }
    return true;
}

// Keeps the elements of each row from column `from(row)` to `to(row)`; the others become 0.
template <bool kLower>
bool triangle(const KernelCall& call) {
    const Tensor& in = call.tensor(0);
    Tensor& out = call.out[0];
    copy_elements(in, out);
    int64_t rows = out.dim(out.rank() - 2), columns = out.shape().back();
    size_t width = size_of(out.dtype());
    // Bounded, so that the sum below cannot overflow.
    int64_t diagonal = std::clamp(call.args[1].integer(), -rows - 1, columns + 1);
    char* data = static_cast<char*>(out.raw());
    for (int64_t row = 0, all = out.size() ? out.size() / columns : 0; row < all; ++row) {
        int64_t edge = std::clamp<int64_t>(row % rows + diagonal + (kLower ? 1 : 0), 0, columns);
        int64_t from = kLower ? edge : 0, to = kLower ? columns : edge;
        std::memset(data + static_cast<size_t>(row * columns + from) * width, 0,
                    static_cast<size_t>(to - from) * width);
    }
    return true;
}

bool reverse_sequence(const KernelCall& call) {
    const Tensor &in = call.tensor(0), &lengths = call.tensor(1);
    Tensor& out = call.out[0];
    Call view(call.op, call.args, call.dtype);
    int sequence = view.axis(2, 0), batch = view.axis(3, 0);
    for (int64_t b = 0; b < lengths.size(); ++b) {
        int64_t length = lengths.data<int64_t>()[b], size = in.dim(sequence);
        if (length < 0 || length > size)
            throw value_error(call.op.name(),
                              str("seq_lengths[", b, "] is ", length, ", out of range for an axis of size ", size));
        Shape shape = in.shape();
        shape[batch] = 1;
        int64_t at = b * in.strides()[batch], step = in.strides()[sequence];
        Strides backwards = in.strides();
        backwards[sequence] = -step;
        shape[sequence] = length;
        if (length > 0 && in.size() > 0)
            copy_elements(in.view(shape, backwards, at + (length - 1) * step), out.view(shape, out.strides(), at));
        shape[sequence] = size - length;
        if (length < size && in.size() > 0)
            copy_elements(in.view(shape, in.strides(), at + length * step),
                          out.view(shape, out.strides(), at + length * step));
    }
    return true;
}

bool sequence_mask(const KernelCall& call) {
    const Tensor& lengths = call.tensor(0);
    const int64_t* length = lengths.data<int64_t>();
    if (!call.out[0]) {
        Shape shape = lengths.shape();
        int64_t longest = 0;
        for (int64_t i = 0; i < lengths.size(); ++i) longest = std::max(longest, length[i]);
        std::vector<int64_t> sizes(shape.begin(), shape.end());
        sizes.push_back(longest);
        call.out[0] = Tensor::empty(DType::boolean, checked_shape(call.op.name(), sizes, 1));
    }
    int64_t columns = call.out[0].shape().back();
    bool* out = call.out[0].data<bool>();
    for (int64_t i = 0; i < lengths.size(); ++i, out += columns)
        for_elements(columns, [&](int64_t j) { out[j] = j < length[i]; });
    return true;
}

}  // namespace

void add_array_kernels(KernelTable& table) {
    table.fast("concat", fast_concat);
    table.plain("concat", concat);
    table.plain("tril", triangle<true>);
    table.plain("triu", triangle<false>);
    table.plain("reverse_sequence", reverse_sequence);
    table.plain("sequence_mask", sequence_mask);
}

}  // namespace lunaria::cpu
