// CPU kernels: all elementwise operators, the fast side of cast, and neighbours of numbers.
#include <bit>

#include "backends/cpu/elementwise.h"
#include "backends/cpu/elementwise_walk.h"
#include "backends/cpu/fourier_plan.h"
#include "core/operator/op.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

// div with a rounding mode is the quotient of another operator.
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

// Lengths of complex numbers, as real numbers.
bool lengths(const KernelCall& call) {
    if (!is_complex(call.dtype)) return false;
    const Tensor x = call.tensor(0).contiguous(), &out = call.out[0];
    if (x.dtype() != call.dtype || out.dtype() != part_of(call.dtype)) return false;
    parallel_for(x.size(), 16 * 1024, 64, [&](int64_t begin, int64_t end) {
        if (call.dtype == DType::c64)
            fourier_loops().magnitude_f32(static_cast<const float*>(x.raw()) + 2 * begin, out.data<float>() + begin,
                                          end - begin);
        else
            fourier_loops().magnitude_f64(static_cast<const double*>(x.raw()) + 2 * begin, out.data<double>() + begin,
                                          end - begin);
    });
    return true;
}

// The bits of numbers of one sign count up with their magnitudes.
template <class T, class Bits>
T neighbour(T from, T to) {
    const auto x = static_cast<double>(from), y = static_cast<double>(to);
    if (x != x) return from;
    if (x == y || y != y) return to;
    constexpr Bits kSign = Bits(1) << (sizeof(Bits) * 8 - 1);
    if (x == 0) return std::bit_cast<T>(static_cast<Bits>((y < 0 ? kSign : 0) | 1));
    const auto bits = std::bit_cast<Bits>(from);
    return std::bit_cast<T>(static_cast<Bits>((x < y) == (x > 0) ? bits + 1 : bits - 1));
}

template <class T, class Bits>
void neighbours(const void* const* in, const int64_t* step, void* out, int64_t count) {
    const auto *from = static_cast<const T*>(in[0]), *to = static_cast<const T*>(in[1]);
    for (int64_t i = 0; i < count; ++i)
        static_cast<T*>(out)[i] = neighbour<T, Bits>(from[i * step[0]], to[i * step[1]]);
}

ElementLoop neighbours_of(DType dtype) {
    switch (dtype) {
        case DType::f16:
            return neighbours<Half, uint16_t>;
        case DType::bf16:
            return neighbours<BFloat16, uint16_t>;
        case DType::f32:
            return neighbours<float, uint32_t>;
        case DType::f64:
            return neighbours<double, uint64_t>;
        default:
            return nullptr;
    }
}

bool nextafter_by(ElementLoop loop, const KernelCall& call) {
    const Tensor& out = call.out[0];
    if (!loop) return false;
    Walk walk;
    walk.loop = loop;
    walk.operands = 2;
    walk.out = static_cast<char*>(out.raw());
    walk.out_size = static_cast<int>(size_of(out.dtype()));
    for (int i = 0; i < walk.operands; ++i) walk.set_strides(i, call.tensor(static_cast<size_t>(i)), out.shape());
    walk.merge_axes(out.shape());
    parallel_for(out.size(), 16 * 1024, 64, [&](int64_t begin, int64_t end) { walk.run(begin, end); });
    return true;
}
bool nextafter(const KernelCall& call) { return nextafter_by(neighbours_of(call.out[0].dtype()), call); }
bool nextafter_fast(const KernelCall& call) {
    return nextafter_by(loops_of(call.op).by_dtype[static_cast<size_t>(call.out[0].dtype())].loop, call);
}

}  // namespace

void add_math_kernels(KernelTable& table) {
    table.fast("abs", lengths);
    add_elementwise_kernels(table);
    table.fast("cast", cast_dense);
    table.plain("nextafter", nextafter);
    table.fast("nextafter", nextafter_fast);
    table.fast("div", div_rounded<false>);
    table.plain("div", [](const KernelCall& call) {
        return call.has(2) ? div_rounded<true>(call) : run_elementwise_plain(call);
    });
}

}  // namespace lunaria::cpu
