// GPU kernels: results that are copies of parts of operands, or one element everywhere.
#include <vector>

#include "backends/gpu/launcher.h"
#include "backends/gpu/operators.h"
#include "core/base/error.h"
#include "core/operator/op.h"

namespace lunaria::gpu {

namespace {

// The host's plain kernels of these operators only copy views, which works for tensors of any device.
bool by_copies(Launcher&, const KernelCall& c) { return host_device()->kernels(c.op).back()(c); }

// The host computes one element.
bool one_everywhere(Launcher&, const KernelCall& c) {
    if (c.args.size() > 1 && c.args[1].is_tensor()) return false;
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

bool copy_strided(Launcher& launcher, const Tensor& source, const Tensor& destination) {
    const Shape& shape = source.shape();
    const bool same = source.dtype() == destination.dtype();
    if (size_of(source.dtype()) > 8 || (!same && (!is_lane(source.dtype()) || !is_lane(destination.dtype()))))
        return false;
    const DType from = same ? moved_dtype(source.dtype()) : source.dtype();
    const DType to = same ? from : destination.dtype();
    const int rank = shape.rank();
    Words words;
    words.tensor(source).tensor(destination).size(shape.size());
    for (int i = 0; i < rank; ++i) words.size(shape[i]).size(source.strides()[i]).size(destination.strides()[i]);
    const std::string name = str("copy ", name_of(from), ' ', name_of(to), ' ', rank);
    return launcher.run_for(name, shape.size(), words, [&](Writer& w) {
        const Elements x = w.tensor(from), y = w.tensor(to);
        const Number all = w.size();
        struct Axis {
            Number size, from, to;
        };
        std::vector<Axis> axes;
        for (int i = 0; i < rank; ++i) {
            const Number size = w.size(), step = w.size(), other = w.size();
            axes.push_back({size, step, other});
        }
        w.for_each(all, [&](Number i) {
            Number at = w.index(0), there = w.index(0);
            for (size_t axis = axes.size(); axis-- > 0;) {
                const Number here = axis ? remainder(i, axes[axis].size) : i;
                if (axis) i = quotient(i, axes[axis].size);
                at += here * axes[axis].from;
                there += here * axes[axis].to;
            }
            y.set(there, cast(x.get(at), to));
        });
    });
}

void add_shape_kernels(KernelTable& table) {
    for (const char* op : {"concat", "slice_assign", "diagonal_scatter"}) table.add(op, by_copies);
    for (const char* op : {"full", "full_like", "ones"}) table.add(op, one_everywhere);
    table.add("zeros", zeros);
}

}  // namespace lunaria::gpu
