// CPU kernels: all elementwise operators, and the fast side of cast.
#include "backends/cpu/elementwise.h"
#include "core/op.h"
#include "core/threads.h"

namespace lunaria::cpu {

namespace {

// div with a rounding mode is another operator's quotient.
template <bool Plain>
bool div_rounded(const KernelCall& call) {
    if (!call.has(2)) return false;
    static const Op& down = registry().get("floor_divide");
    static const Op& towards_zero = registry().get("truncate_div");
    const Op& op = call.args[2].string() == "floor" ? down : towards_zero;
    KernelCall inner{op, call.args.first(2), call.out, call.dtype};
    return Plain ? run_elementwise_plain(inner) : run_elementwise(inner);
}

bool cast_dense(const KernelCall& call) {
    const Tensor& from = call.tensor(0);
    const Tensor& to = call.out[0];
    ConvertLoop loop = find_conversion(from.dtype(), to.dtype());
    if (!loop || !from.is_contiguous()) return false;
    auto in_size = static_cast<int64_t>(size_of(from.dtype())), out_size = static_cast<int64_t>(size_of(to.dtype()));
    parallel_for(from.size(), 64 * 1024, 64, [&](int64_t begin, int64_t end) {
        loop(from.data<char>() + begin * in_size, to.data<char>() + begin * out_size, end - begin);
    });
    return true;
}

}  // namespace

void add_math_kernels(KernelTable& table) {
    add_elementwise_kernels(table);
    table.fast("cast", cast_dense);
    table.fast("div", div_rounded<false>);
    table.plain("div", [](const KernelCall& call) {
        return call.has(2) ? div_rounded<true>(call) : run_elementwise_plain(call);
    });
}

}  // namespace lunaria::cpu
