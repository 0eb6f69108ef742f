// Operators: discrete Fourier transforms. All are made of two primitives: `dft` along one axis to complex numbers, and
// `dft_real`, its inverse for spectra of real signals, of which only the first half is stored.
#include <cmath>

#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/ops/families.h"
#include "core/ops/matrix.h"
#include "core/ops/window.h"

namespace lunaria {

namespace {

enum Param : size_t { kInput, kLength, kAxis, kNorm };

// The factor of a transform of `n` elements.
double scale_of(const Call& c, bool inverse, int64_t n) {
    std::string_view norm = c.has(kNorm) ? std::string_view(c.string(kNorm)) : "backward";
    if (norm == "ortho") return 1.0 / std::sqrt(static_cast<double>(n));
    return (norm == "backward") == inverse ? 1.0 / static_cast<double>(n) : 1.0;
}

int64_t checked_length(const Call& c, int64_t n) {
    if (n < 1) throw value_error(c.name(), str("a transform needs at least 1 element, not ", n));
    return n;
}

// The transform along one axis: to n elements (nil: as many as there are), or to the first half of them.
Expr along(const ExpandCall& c, const Expr& x, int axis, int64_t n, bool inverse, bool half) {
    checked_length(c, n);
    return c.call("dft", {x, n, axis, inverse, scale_of(c, inverse, n), half});
}

Expr to_real(const ExpandCall& c, const Expr& x, int axis, int64_t n) {
    checked_length(c, n);
    return c.call("dft_real", {x, n, axis, scale_of(c, true, n)});
}

Expr expand_one(const ExpandCall& c, bool inverse, bool half) {
    expect_rank_at_least(c, kInput, 1);
    int axis = c.axis(kAxis, kInput);
    int64_t n = c.has(kLength) ? c.integer(kLength) : c.shape(kInput)[axis];
    if (half && is_complex(c.type(kInput).dtype))
        throw dtype_error(c.name(), "input must be real").hint("fft takes complex numbers");
    return along(c, c.in(kInput), axis, n, inverse, half);
}

Expr expand_irfft(const ExpandCall& c) {
    expect_rank_at_least(c, kInput, 1);
    int axis = c.axis(kAxis, kInput);
    return to_real(c, c.in(kInput), axis, c.has(kLength) ? c.integer(kLength) : 2 * (c.shape(kInput)[axis] - 1));
}

// Axes and lengths of a transform over several axes; without axes, the last ones that `s` names, or all.
struct Axes {
    Shape axes, lengths;

    Axes(const ExpandCall& c, bool last_is_half) {
        auto sizes = c.ints(kLength), list = c.ints(kAxis);
        int rank = c.rank(kInput);
        if (list.empty()) {
            int count = c.has(kLength) ? static_cast<int>(sizes.size()) : rank;
            for (int i = std::max(0, rank - count); i < rank; ++i) axes.push_back(i);
        } else {
            axes = normal_axes(c.name(), list, rank, "dim");
        }
        if (axes.rank() == 0)
            throw shape_error(c.name(), str("input has shape ", c.shape(kInput), ": no axis to transform"));
        if (c.has(kLength) && sizes.size() != static_cast<size_t>(axes.rank()))
            throw value_error(c.name(), str("s has ", sizes.size(), " sizes for ", axes.rank(), " axes"));
        for (int i = 0; i < axes.rank(); ++i) {
            int64_t n = c.shape(kInput)[static_cast<int>(axes[i])];
            if (last_is_half && i + 1 == axes.rank()) n = 2 * (n - 1);
            lengths.push_back(c.has(kLength) ? sizes[static_cast<size_t>(i)] : n);
        }
    }
};

Expr expand_several(const ExpandCall& c, bool inverse) {
    Axes a(c, false);
    Expr x = c.in(kInput);
    for (int i = 0; i < a.axes.rank(); ++i) x = along(c, x, static_cast<int>(a.axes[i]), a.lengths[i], inverse, false);
    return x;
}

Expr expand_several_real(const ExpandCall& c) {
    Axes a(c, false);
    int last = a.axes.rank() - 1;
    if (is_complex(c.type(kInput).dtype)) throw dtype_error(c.name(), "input must be real");
    Expr x = along(c, c.in(kInput), static_cast<int>(a.axes[last]), a.lengths[last], false, true);
    for (int i = 0; i < last; ++i) x = along(c, x, static_cast<int>(a.axes[i]), a.lengths[i], false, false);
    return x;
}

Expr expand_several_to_real(const ExpandCall& c) {
    Axes a(c, true);
    int last = a.axes.rank() - 1;
    Expr x = c.in(kInput);
    for (int i = 0; i < last; ++i) x = along(c, x, static_cast<int>(a.axes[i]), a.lengths[i], true, false);
    return to_real(c, x, static_cast<int>(a.axes[last]), a.lengths[last]);
}

Types infer_dft(const Call& c) {
    Shape s = c.shape(0);
    int axis = c.axis(2, 0);
    expect_positive(c, 1, c.integer(1));
    if (c.integer(1) > (int64_t{1} << 40)) throw value_error(c.name(), str("n is too large: ", c.integer(1)));
    bool to_real = c.op.signature.params.size() == 4;
    s[axis] = !to_real && c.boolean(5) ? c.integer(1) / 2 + 1 : c.integer(1);
    const DType result = complex_of(c.type(0).dtype);
    return checked_type(c, to_real ? part_of(result) : result, s);
}

Expr part(const Expr& x, int axis, int64_t begin, int64_t size) {
    Shape first, sizes = x.shape();
    first.resize(x.rank(), 0);
    for (int i = 0; i < x.rank(); ++i) first[i] = 0;
    first[axis] = begin;
    sizes[axis] = size;
    return call("slice", {x, first, sizes});
}

Expr joined(const GradRule& g, std::vector<Expr> parts, int axis) {
    return g.call("concat", {g.builder.list(parts), axis});
}

// The cotangent `dx` along an axis of the operand that may have been cut or filled with zeros, and may be real.
Expr fitted(const GradRule& g, Expr dx, int axis) {
    int64_t n = g.shape(0)[axis], have = dx.shape()[axis];
    if (have > n) dx = part(dx, axis, 0, n);
    if (have < n) {
        Shape rest = dx.shape();
        rest[axis] = n - have;
        dx = joined(g, {dx, g.builder.constant(Tensor::zeros(dx.dtype(), rest))}, axis);
    }
    return dx.cast(g.type(0).dtype);
}

// Cotangents of complex numbers are dRe + i dIm. The transform is linear, and its transpose turns the other way round.
Grads dft_grad(const GradRule& g) {
    int axis = g.axis(2, 0);
    return {fitted(g, g.call("dft", {g.dout, g.args[1], g.args[2], !g.boolean(3), g.args[4], false}), axis)};
}

Grads dft_real_grad(const GradRule& g) {
    int axis = g.axis(2, 0);
    int64_t n = g.integer(1), last = n / 2;
    double scale = g.number(3);
    auto half = [&](double s) { return g.call("dft", {g.dout, n, axis, false, s, true}); };
    // Elements count for themselves and their mirror images, except the first and, if the number is even, the last.
    Expr once = half(scale), twice = half(2 * scale);
    int64_t mirrored = (n - 1) / 2;
    std::vector<Expr> parts{part(once, axis, 0, 1)};
    if (mirrored) parts.push_back(part(twice, axis, 1, mirrored));
    if (mirrored < last) parts.push_back(part(once, axis, last, 1));
    return {fitted(g, parts.size() > 1 ? joined(g, parts, axis) : parts[0], axis)};
}

// Real (0) or imaginary (1) part.
Expr component(const ExpandCall& c, int64_t which) {
    Expr x = c.in(0);
    if (!is_complex(x.dtype())) return which == 0 ? x : c.builder.zeros_like(x);
    return part(c.call("view_as_real", {x}), x.rank(), which, 1).reshape(x.shape());
}

}  // namespace

void add_fourier_ops(Registry& ops) {
    ops.add("dft(x: tensor, n: int, axis: int, inverse: bool, scale: number, half: bool)")
        .doc(
            "Fourier transform along one axis, cut or filled with zeros to n elements; with half, the first n / 2 + 1 "
            "of the result. What the fft operators are made of.")
        .example("dft_real(dft(tensor{1.0, 2.0}, 2, 0, false, 1.0, true), 2, 0, 0.5)", "tensor{1.0, 2.0}")
        .infer(infer_dft)
        .grad(dft_grad)
        .batched(batch::along<2>)
        .linear({0})
        .sample("f32[2,7], 7, -1, false, 1.0, false")
        .sample("f32[5,3], 8, 0, true, 0.125, true");
    ops.add("dft_real(x: tensor, n: int, axis: int, scale: number)")
        .doc("The n real numbers whose spectrum starts with x: the inverse of a transform that kept one half.")
        .example("dft_real(dft(tensor{1.0, 2.0, 3.0}, 3, 0, false, 1.0, true), 3, 0, 1 / 3)", "tensor{1.0, 2.0, 3.0}")
        .infer(infer_dft)
        .grad(dft_real_grad)
        .batched(batch::along<2>)
        .linear({0})
        .sample("f32[2,4], 7, -1, 1.0")
        .sample("f32[3,2], 4, 0, 0.25");
    ops.add("view_as_real(input/x: tensor)")
        .doc("Complex numbers as pairs of real ones, along a new last axis.")
        .example("view_as_real(fft(tensor{1.0, 2.0}))", "tensor{{3.0, 0.0}, {-1.0, 0.0}}")
        .infer([](const Call& c) -> Types {
            const DType dtype = c.type(0).dtype;
            if (!is_complex(dtype)) throw dtype_error(c.name(), str("input must be complex, not ", name_of(dtype)));
            Shape s = c.shape(0);
            s.push_back(2);
            return {{part_of(dtype), s}};
        })
        .grad([](const GradRule& g) -> Grads { return {g.call("view_as_complex", {g.dout})}; })
        .batched(batch::of_first)
        .cut("...->...!r")
        .linear({0})
        .sample("c64[2,3]")
        .sample("c64[5]");
    ops.add("view_as_complex(input/x: float)")
        .doc("Pairs of real numbers, along the last axis, as complex ones.")
        .example("real(view_as_complex(tensor{{3.0, 1.0}}))", "tensor{3.0}")
        .infer([](const Call& c) -> Types {
            if (is_complex(c.type(0).dtype))
                throw dtype_error(c.name(), str("input must be real, not ", name_of(c.type(0).dtype)));
            Shape s = c.shape(0);
            if (s.rank() == 0 || s.back() != 2)
                throw shape_error(c.name(), str("input is ", s, ": its last axis must have size 2"));
            s.erase(s.rank() - 1);
            return {{complex_of(c.dtype), s}};
        })
        .grad([](const GradRule& g) -> Grads { return {g.call("view_as_real", {g.dout})}; })
        .batched(batch::of_first)
        .cut("...!r->...")
        .linear({0})
        .sample("f32[3,2]")
        .sample("f32[2]");
    ops.add("real(input/x: tensor)")
        .doc("Real part of complex numbers.")
        .example("real(fft(tensor{1.0, 2.0}))", "tensor{3.0, -1.0}")
        .expand([](const ExpandCall& c) { return component(c, 0); })
        .sample("f32[2,3]")
        .sample("f32[5]");
    ops.add("imag(input/x: tensor)")
        .doc("Imaginary part of complex numbers; 0 of real ones.")
        .example("imag(fft(tensor{1.0, 2.0, 1.0, 0.0}))", "tensor{0.0, -2.0, 0.0, 2.0}")
        .expand([](const ExpandCall& c) { return component(c, 1); })
        .sample("f32[2,3]")
        .sample("f32[5]");
    ops.add("fft(input/x: tensor, n: int? = nil, dim/axis: int = -1, norm: \"backward\"|\"ortho\"|\"forward\"? = nil)")
        .doc("Discrete Fourier transform along an axis.")
        .example("irfft(fft(tensor{1.0, 2.0}), 2)", "tensor{1.0, 2.0}")
        .expand([](const ExpandCall& c) { return expand_one(c, false, false); })
        .sample("f32[2,7]")
        .sample("f32[3,4], 6, 0, \"ortho\"");
    ops.add("ifft(input/x: tensor, n: int? = nil, dim/axis: int = -1, norm: \"backward\"|\"ortho\"|\"forward\"? = nil)")
        .doc("Inverse of fft.")
        .example("rfft(tensor{2.0, 0.0})", "fft(tensor{2.0, 0.0})")
        .expand([](const ExpandCall& c) { return expand_one(c, true, false); })
        .sample("f32[2,7]")
        .sample("f32[3,4], 6, 0, \"forward\"");
    ops.add("rfft(input/x: tensor, n: int? = nil, dim/axis: int = -1, norm: \"backward\"|\"ortho\"|\"forward\"? = nil)")
        .doc("First half of the Fourier transform of real numbers, which determines the other.")
        .example("irfft(rfft(tensor{1.0, 5.0, 2.0}), 3)", "tensor{1.0, 5.0, 2.0}")
        .expand([](const ExpandCall& c) { return expand_one(c, false, true); })
        .sample("f32[2,7]")
        .sample("f32[3,4], 6, 0, \"ortho\"");
    ops.add(
           "irfft(input/x: tensor, n: int? = nil, dim/axis: int = -1, norm: \"backward\"|\"ortho\"|\"forward\"? = nil)")
        .doc("Inverse of rfft; n is needed to tell an odd number of elements.")
        .example("irfft(rfft(tensor{1.0, 5.0}))", "tensor{1.0, 5.0}")
        .expand(expand_irfft)
        .sample("f32[2,4]")
        .sample("f32[3,4], 7, 1, \"ortho\"");
    ops.add(
           "fft2(input/x: tensor, s: ints? = nil, dim/axis: ints = {-2, -1}, "
           "norm: \"backward\"|\"ortho\"|\"forward\"? = nil)")
        .doc("Fourier transform over two axes.")
        .example("irfft2(fft2(tensor{{1.0, 2.0}, {3.0, 4.0}}), {2, 2})", "tensor{{1.0, 2.0}, {3.0, 4.0}}")
        .expand([](const ExpandCall& c) { return expand_several(c, false); })
        .sample("f32[2,3,5]")
        .sample("f32[3,4], {5, 2}");
    ops.add(
           "ifft2(input/x: tensor, s: ints? = nil, dim/axis: ints = {-2, -1}, "
           "norm: \"backward\"|\"ortho\"|\"forward\"? = nil)")
        .doc("Inverse of fft2.")
        .example("fft2(ifft2(tensor{{1.0, 2.0}}))", "ifft2(fft2(tensor{{1.0, 2.0}}))")
        .expand([](const ExpandCall& c) { return expand_several(c, true); })
        .sample("f32[2,3,5]")
        .sample("f32[3,4], {5, 2}");
    ops.add(
           "fftn(input/x: tensor, s: ints? = nil, dim/axis: ints? = nil, "
           "norm: \"backward\"|\"ortho\"|\"forward\"? = nil)")
        .doc("Fourier transform over several axes, all by default.")
        .example("fftn(tensor{{1.0, 2.0}})", "fft2(tensor{{1.0, 2.0}})")
        .expand([](const ExpandCall& c) { return expand_several(c, false); })
        .sample("f32[2,3,5]")
        .sample("f32[3,4], {5}");
    ops.add(
           "ifftn(input/x: tensor, s: ints? = nil, dim/axis: ints? = nil, "
           "norm: \"backward\"|\"ortho\"|\"forward\"? = nil)")
        .doc("Inverse of fftn.")
        .example("ifftn(tensor{{1.0, 2.0}})", "ifft2(tensor{{1.0, 2.0}})")
        .expand([](const ExpandCall& c) { return expand_several(c, true); })
        .sample("f32[2,3,5]")
        .sample("f32[3,4], {5}");
    ops.add(
           "rfft2(input/x: tensor, s: ints? = nil, dim/axis: ints = {-2, -1}, "
           "norm: \"backward\"|\"ortho\"|\"forward\"? = nil)")
        .doc("Fourier transform of real numbers over two axes; half of the last one is kept.")
        .example("irfft2(rfft2(tensor{{1.0, 2.0}, {3.0, 5.0}}))", "tensor{{1.0, 2.0}, {3.0, 5.0}}")
        .expand(expand_several_real)
        .sample("f32[2,3,5]")
        .sample("f32[3,4], {5, 2}");
    ops.add(
           "irfft2(input/x: tensor, s: ints? = nil, dim/axis: ints = {-2, -1}, "
           "norm: \"backward\"|\"ortho\"|\"forward\"? = nil)")
        .doc("Inverse of rfft2.")
        .example("irfft2(rfft2(tensor{{1.0, 2.0, 4.0}}), {1, 3})", "tensor{{1.0, 2.0, 4.0}}")
        .expand(expand_several_to_real)
        .sample("c64[2,3,5]")
        .sample("c64[3,4], {5, 7}");
    ops.add(
           "rfftn(input/x: tensor, s: ints? = nil, dim/axis: ints? = nil, "
           "norm: \"backward\"|\"ortho\"|\"forward\"? = nil)")
        .doc("Fourier transform of real numbers over several axes; half of the last one is kept.")
        .example("irfftn(rfftn(tensor{{1.0, 2.0}, {3.0, 5.0}}))", "tensor{{1.0, 2.0}, {3.0, 5.0}}")
        .expand(expand_several_real)
        .sample("f32[2,3,5]")
        .sample("f32[3,4], {5}");
    ops.add(
           "irfftn(input/x: tensor, s: ints? = nil, dim/axis: ints? = nil, "
           "norm: \"backward\"|\"ortho\"|\"forward\"? = nil)")
        .doc("Inverse of rfftn.")
        .example("irfftn(rfftn(tensor{1.0, 2.0, 4.0}), {3})", "tensor{1.0, 2.0, 4.0}")
        .expand(expand_several_to_real)
        .sample("c64[2,3,5]")
        .sample("c64[3,4], {7}");
}

}  // namespace lunaria
