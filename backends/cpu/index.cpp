// CPU kernels: gather, masks.
#include <cstring>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/positions.h"

namespace lunaria::cpu {

namespace {

bool gather(const KernelCall& call) {
    const Tensor& in = call.tensor(0);
    AxisSplit s(in.shape(), axis_of(call, 2, in.rank()));
    auto at = checked_indices(call, call.tensor(1), s.size);
    size_t bytes = static_cast<size_t>(s.inner) * size_of(in.dtype());
    const char* from = static_cast<const char*>(in.raw());
    char* to = static_cast<char*>(call.out[0].raw());
    if (bytes == 0) return true;
    for (int64_t o = 0; o < s.outer; ++o)
        for (int64_t row : at) {
            std::memcpy(to, from + static_cast<size_t>(o * s.size + row) * bytes, bytes);
            to += bytes;
        }
    return true;
}

// Copies `bytes` at each element offset.
bool take_offsets(const KernelCall& call, const std::vector<int64_t>& offsets, int64_t elements) {
    const Tensor& in = call.tensor(0);
    size_t width = size_of(in.dtype()), bytes = static_cast<size_t>(elements) * width;
    const char* from = static_cast<const char*>(in.raw());
    char* to = static_cast<char*>(call.out[0].raw());
    if (bytes == 0) return true;
    for (int64_t offset : offsets) {
        std::memcpy(to, from + static_cast<size_t>(offset) * width, bytes);
        to += bytes;
    }
    return true;
}

bool gather_elements(const KernelCall& call) {
    const Tensor& in = call.tensor(0);
    return take_offsets(call, element_offsets(call, call.tensor(2), in.shape(), axis_of(call, 1, in.rank())), 1);
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
        if constexpr (std::is_same_v<A, Complex64>)
            factor = A(static_cast<float>(alpha));
        else
            factor = static_cast<A>(alpha);
        for (int64_t o = 0; o < s.outer; ++o)
            for (int64_t row : at)
                for (int64_t i = 0; i < s.inner; ++i) {
                    T& element = to[(o * s.size + row) * s.inner + i];
                    element = static_cast<T>(static_cast<A>(element) + static_cast<A>(*from++) * factor);
                }
    });
    return true;
}

bool argwhere(const KernelCall& call) {
    const Tensor& in = call.tensor(0);
    visit_dtype(in.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* x = in.data<T>();
        int64_t count = 0;
        for (int64_t i = 0; i < in.size(); ++i) count += x[i] != T(0);
        call.out[0] = Tensor::empty(DType::i64, {count, in.rank()});
        int64_t* out = call.out[0].data<int64_t>();
        std::array<int64_t, kMaxRank> at{};
        for (int64_t i = 0; i < in.size(); ++i) {
            if (x[i] != T(0))
                for (int axis = 0; axis < in.rank(); ++axis) *out++ = at[static_cast<size_t>(axis)];
            for (int axis = in.rank() - 1; axis >= 0; --axis) {
                if (++at[static_cast<size_t>(axis)] < in.dim(axis)) break;
                at[static_cast<size_t>(axis)] = 0;
            }
        }
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
    table.plain("gather", gather);
    table.plain("gather_elements", gather_elements);
    table.plain("gather_nd", gather_nd);
    table.plain("index_add", index_add);
    table.plain("argwhere", argwhere);
    table.plain("one_hot", one_hot);
}

}  // namespace lunaria::cpu
