// CPU kernels: gather, scatter, masks.
#include <cstring>
#include <type_traits>

#include "backends/cpu/kernel_table.h"
#include "core/op.h"

namespace lunaria::cpu {

namespace {

// (outer, size, inner) around one axis.
struct AxisSplit {
    int64_t outer = 1, size = 1, inner = 1;
    AxisSplit(const Shape& shape, int axis) {
        for (int i = 0; i < axis; ++i) outer *= shape[i];
        size = shape[axis];
        for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
    }
};

// Position counted from 0.
int64_t checked_index(const KernelCall& call, int64_t index, int64_t size, std::string_view what = "index") {
    int64_t at = index < 0 ? index + size : index;
    if (at >= 0 && at < size) return at;
    if (size == 0) throw index_error(call.op.name(), str(what, " ", index, " is out of range: the axis is empty"));
    throw index_error(call.op.name(), str(what, " ", index, " is out of range for an axis of size ", size,
                                          ": it must be ", -size, " .. ", size - 1));
}

std::vector<int64_t> checked_indices(const KernelCall& call, const Tensor& index, int64_t size) {
    std::vector<int64_t> at(static_cast<size_t>(index.size()));
    for (size_t i = 0; i < at.size(); ++i) at[i] = checked_index(call, index.data<int64_t>()[i], size);
    return at;
}

int axis_of(const KernelCall& call, size_t i, int rank) {
    return normal_axis(call.op.name(), call.args[i].integer(), rank, call.op.signature.params[i].name);
}

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

// The type in which halves and bools are accumulated.
template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float,
                                       std::conditional_t<std::is_same_v<T, bool>, int, T>>;

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

}  // namespace

void add_index_kernels(KernelTable& table) {
    table.plain("gather", gather);
    table.plain("index_add", index_add);
}

}  // namespace lunaria::cpu
