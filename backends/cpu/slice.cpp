// CPU kernels: copies with a part replaced.
#include "backends/cpu/kernel_table.h"
#include "core/ops/layout.h"

namespace lunaria::cpu {

namespace {

// The result is the first operand, with the region given by `region` replaced by the second operand, broadcast.
bool replace_region(const KernelCall& call, void (*region)(const Call&, size_t, Layout&)) {
    const Tensor& value = call.tensor(1);
    Tensor& out = call.out[0];
    copy_elements(call.tensor(0), out);
    Layout layout{out.shape(), out.strides()};
    region(Call(call.op, call.args, call.dtype), 2, layout);
    Strides strides;
    strides.resize(layout.shape.rank(), 0);
    int extra = layout.shape.rank() - value.rank();
    for (int i = 0; i < value.rank(); ++i)
        if (value.dim(i) != 1) strides[i + extra] = value.strides()[i];
    copy_elements(value.view(layout.shape, strides), out.view(layout.shape, layout.strides, layout.offset));
    return true;
}

}  // namespace

void add_slice_kernels(KernelTable& table) {
    table.plain("slice_assign", [](const KernelCall& call) { return replace_region(call, slice_layout); });
    table.plain("diagonal_scatter", [](const KernelCall& call) { return replace_region(call, diagonal_layout); });
}

}  // namespace lunaria::cpu
