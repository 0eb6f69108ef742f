// GPU kernels: results that are copies of parts of operands, or one element everywhere.
#include "backends/gpu/launcher.h"
#include "backends/gpu/operators.h"
#include "core/error.h"
#include "core/op.h"

namespace lunaria::gpu {

namespace {

// The host's plain kernels of these consist of copies of views alone, which tensors of any device know how to make.
bool by_copies(Launcher&, const KernelCall& c) { return host_device()->kernels(c.op).back()(c); }

// The host makes one element.
bool one_everywhere(Launcher&, const KernelCall& c) {
    for (const Value& v : c.args)
        if (v.is_tensor()) return false;
    const Tensor& out = c.out[0];
    Tensor one = Tensor::empty(out.dtype(), {});
    {
        const PlaceScope host(nullptr);
        if (!host_device()->kernels(c.op).back()({c.op, c.args, {&one, 1}, c.dtype})) return false;
    }
    Strides still;
    still.resize(out.rank(), 0);
    copy_elements(one.to(out.device()).view(out.shape(), still), out);
    return true;
}

bool zeros(Launcher& launcher, const KernelCall& c) {
    launcher.fill_zero(reinterpret_cast<Address>(c.out[0].raw()), static_cast<int64_t>(c.out[0].nbytes()));
    return true;
}

}  // namespace

void add_shape_kernels(KernelTable& table) {
    for (const char* op : {"concat", "slice_assign", "diagonal_scatter"}) table.add(op, by_copies);
    for (const char* op : {"full", "ones"}) table.add(op, one_everywhere);
    table.add("zeros", zeros);
}

}  // namespace lunaria::gpu
