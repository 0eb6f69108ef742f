// Operators: complex numbers by their parts, orders of frequencies, and transforms that are made of those in
// fourier.cpp: of signals whose spectrum is real, and of short pieces of a signal.
#include <cmath>

#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/families.h"
#include "core/ops/layout.h"
#include "core/ops/matrix.h"

namespace lunaria {

namespace {

Expr conjugate(const Expr& x) { return mirrored(x); }

// A transform and its conjugate are each other's inverses but for the scale.
const char* opposite(const Call& c, size_t norm) {
    const std::string_view given = c.has(norm) ? std::string_view(c.string(norm)) : "backward";
    return given == "ortho" ? "ortho" : given == "backward" ? "forward" : "backward";
}

Expr expand_hermitian(const ExpandCall& c, const char* transform) {
    return c.call(transform, {conjugate(c.in(0)), c.args[1], c.args[2], Value(opposite(c, 3))});
}

Expr expand_from_hermitian(const ExpandCall& c, const char* transform) {
    return conjugate(c.call(transform, {c.in(0), c.args[1], c.args[2], Value(opposite(c, 3))}));
}

Expr expand_angle(const ExpandCall& c) {
    const Expr x = c.in(0);
    if (is_complex(x.dtype())) return c.call("atan2", {fn("imag", x), fn("real", x)});
    const Expr number = is_float(x.dtype()) ? x : x.cast(DType::f32);
    constexpr double pi = 3.14159265358979323846;
    return where(fn("isnan", number), number, where(c.call("less", {number, 0.0}), pi, number * 0.0));
}

Expr expand_isreal(const ExpandCall& c) {
    if (!is_complex(c.type(0).dtype)) return c.call("full", {Shape{}, true, DType::boolean}).broadcast_to(c.shape(0));
    return c.call("equal", {fn("imag", c.in(0)), 0.0});
}

Expr expand_frequencies(const ExpandCall& c, bool half) {
    const int64_t n = c.integer(0);
    expect_positive(c, 0, n);
    const double d = c.number(1);
    if (d == 0) throw value_error(c.name(), "d, the distance of samples, must not be 0");
    const DType dtype = c.dtype_or(2, DType::f32);
    if (!is_float(dtype)) throw dtype_error(c.name(), str("dtype must be a float, not ", name_of(dtype)));
    const int64_t count = half ? n / 2 + 1 : n;
    checked_shape(c.name(), Shape{count}.dims(), 8);
    Tensor numbers = Tensor::empty(DType::f64, {count});
    double* at = numbers.data<double>();
    const double step = 1.0 / (static_cast<double>(n) * d);
    for (int64_t i = 0; i < count; ++i) at[i] = static_cast<double>(half || i < (n + 1) / 2 ? i : i - n) * step;
    return c.builder.constant(numbers).cast(dtype);
}

Expr expand_shift(const ExpandCall& c, bool inverse) {
    const Shape axes = c.axes(1, 0);
    if (axes.rank() == 0) return c.call("identity", {c.in(0)});
    Shape shifts;
    for (int64_t axis : axes) {
        const int64_t half = c.shape(0)[static_cast<int>(axis)] / 2;
        shifts.push_back(inverse ? -half : half);
    }
    return c.call("roll", {c.in(0), shifts, axes});
}

// The common parts of stft and istft: sizes of pieces, and the window, padded to n_fft.
struct Pieces {
    int64_t n, hop;
    Expr window;

    Pieces(const ExpandCall& c, size_t first, DType dtype) : n(c.integer(first)) {
        expect_positive(c, first, n);
        if (n > (int64_t{1} << 30)) throw value_error(c.name(), str("n_fft is too large: ", n));
        hop = c.has(first + 1) ? c.integer(first + 1) : std::max<int64_t>(1, n / 4);
        expect_positive(c, first + 1, hop);
        const int64_t length = c.has(first + 2) ? c.integer(first + 2) : n;
        if (length < 1 || length > n)
            throw value_error(c.name(), str("win_length must be between 1 and n_fft, ", n, ", not ", length));
        if (c.has(first + 3)) {
            if (c.shape(first + 3) != Shape{length})
                throw shape_error(c.name(), str("window must have shape (", length, "), not ", c.shape(first + 3)));
            window = c.in(first + 3).cast(dtype);
        } else {
            window = c.call("ones", {Shape{length}, dtype});
        }
        const int64_t before = (n - length) / 2;
        if (length < n) window = c.call("pad", {window, Shape{before, n - length - before}});
    }
    // The place in the signal of every element of the pieces.
    Expr places(const ExpandCall& c, int64_t count) const {
        Tensor places = Tensor::empty(DType::i64, {count * n});
        int64_t* at = places.data<int64_t>();
        for (int64_t i = 0; i < count; ++i)
            for (int64_t j = 0; j < n; ++j) at[i * n + j] = i * hop + j;
        return c.builder.constant(places);
    }
};

enum Stft : size_t { kSignal, kFft, kHop, kWinLength, kWindow, kCenter, kPadMode, kNormalized, kOnesided, kComplex };

Expr expand_stft(const ExpandCall& c) {
    const Shape given = c.shape(kSignal);
    if (given.rank() != 1 && given.rank() != 2)
        throw shape_error(c.name(), str("x must be a signal or a batch of them, not ", given));
    const bool complex = is_complex(c.type(kSignal).dtype);
    Expr x = c.in(kSignal);
    if (!complex && !is_float(x.dtype())) x = x.cast(DType::f32);
    const Pieces pieces(c, kFft, part_of(x.dtype()));
    if (given.rank() == 1) x = x.reshape({1, given[0]});
    if (c.boolean(kCenter)) {
        const int64_t half = pieces.n / 2;
        if (complex) throw dtype_error(c.name(), "a complex signal is not padded").hint("give center = false");
        if (c.string(kPadMode) == "reflect" && given.back() <= half)
            throw shape_error(c.name(), str("x has ", given.back(), " samples: reflecting n_fft / 2 = ", half,
                                            " of them needs more"));
        x = c.call("pad", {x, Shape{half, half}, Value(c.string(kPadMode))});
    }
    const int64_t batch = x.shape()[0], length = x.shape()[1];
    if (length < pieces.n) throw shape_error(c.name(), str("x has ", length, " samples, fewer than n_fft, ", pieces.n));
    const int64_t count = 1 + (length - pieces.n) / pieces.hop;
    checked_shape(c.name(), Shape{batch, count, pieces.n}.dims());
    Expr cut = c.call("index_select", {x, 1, pieces.places(c, count)}).reshape({batch, count, pieces.n});
    cut = cut * pieces.window;
    const bool onesided = c.has(kOnesided) ? c.boolean(kOnesided) : !complex;
    if (onesided && complex) throw dtype_error(c.name(), "onesided is for real signals");
    const char* norm = c.boolean(kNormalized) ? "ortho" : "backward";
    const Expr spectrum = c.call(onesided ? "rfft" : "fft", {cut, {"norm", Value(norm)}}).transpose({0, 2, 1});
    Shape out = spectrum.shape();
    if (given.rank() == 1) out.erase(0);
    const bool as_complex = c.has(kComplex) ? c.boolean(kComplex) : complex;
    return as_complex ? spectrum.reshape(out) : c.call("view_as_real", {spectrum.reshape(out)});
}

enum Istft : size_t {
    kSpectrum,
    kBackFft,
    kBackHop,
    kBackLength,
    kBackWindow,
    kBackCenter,
    kBackNormalized,
    kBackOnesided,
    kLength
};

Expr expand_istft(const ExpandCall& c) {
    Expr x = c.in(kSpectrum);
    if (!is_complex(x.dtype())) x = c.call("view_as_complex", {x});
    const Shape given = x.shape();
    if (given.rank() != 2 && given.rank() != 3)
        throw shape_error(c.name(), str("x must be (frequencies, pieces) or a batch of such, not ", given));
    const Pieces pieces(c, kBackFft, part_of(complex_of(c.type(0).dtype)));
    const bool onesided = !c.has(kBackOnesided) || c.boolean(kBackOnesided);
    const int64_t bins = onesided ? pieces.n / 2 + 1 : pieces.n, count = given.back();
    if (given[given.rank() - 2] != bins || count < 1)
        throw shape_error(c.name(), str("x is ", given, ": with n_fft ", pieces.n, " it must have ", bins,
                                        " frequencies and at least one piece"));
    if (given.rank() == 2) x = x.reshape({1, given[0], given[1]});
    const int64_t batch = x.shape()[0];
    int64_t length = 0;
    if (__builtin_mul_overflow(count - 1, pieces.hop, &length) || __builtin_add_overflow(length, pieces.n, &length))
        throw value_error(c.name(), str("hop_length is too large: ", pieces.hop));
    checked_shape(c.name(), Shape{batch, count, pieces.n}.dims());
    const char* norm = c.boolean(kBackNormalized) ? "ortho" : "backward";
    x = x.transpose({0, 2, 1});
    Expr cut = onesided ? c.call("irfft", {x, pieces.n, -1, Value(norm)})
                        : fn("real", c.call("ifft", {x, {"norm", Value(norm)}}));
    cut = (cut * pieces.window).reshape({batch, count * pieces.n});
    const Expr places = pieces.places(c, count);
    const Expr sum = c.call("index_add", {c.call("zeros", {Shape{batch, length}, cut.dtype()}), places, cut, 1});
    const Expr squares = (pieces.window * pieces.window).reshape({1, pieces.n}).broadcast_to({count, pieces.n});
    const Expr weight = c.call(
        "index_add", {c.call("zeros", {Shape{length}, cut.dtype()}), places, squares.reshape({count * pieces.n}), 0});
    // Where no window reaches, the signal is unknown.
    Expr signal = sum / where(c.call("greater", {weight, 1e-11}), weight, 1.0);
    const int64_t start = c.boolean(kBackCenter) ? pieces.n / 2 : 0;
    int64_t end = c.boolean(kBackCenter) ? length - pieces.n / 2 : length;
    if (c.has(kLength)) {
        expect_positive(c, kLength, c.integer(kLength));
        end = start + c.integer(kLength);
        checked_shape(c.name(), Shape{batch, end}.dims());
        if (end > length) signal = c.call("pad", {signal, Shape{0, end - length}});
    }
    if (end <= start) throw shape_error(c.name(), str("x has ", count, " piece: nothing is left without its borders"));
    signal = c.call("narrow", {signal, 1, start, end - start});
    return given.rank() == 2 ? signal.reshape({end - start}) : signal;
}

void add_hermitian_ops(Registry& ops) {
    ops.add(
           "hfft(input/x: tensor, n: int? = nil, dim/axis: int = -1, "
           "norm: \"backward\"|\"ortho\"|\"forward\"? = nil)")
        .doc("Fourier transform of a signal whose second half is the conjugate of its first: the result is real.")
        .example("hfft(tensor{1.0, 2.0, 3.0})", "tensor{8.0, -2.0, 0.0, -2.0}")
        .expand([](const ExpandCall& c) { return expand_hermitian(c, "irfft"); })
        .sample("f32[2,4]")
        .sample("c64[3,4], 7, 1, \"ortho\"");
    ops.add(
           "ihfft(input/x: tensor, n: int? = nil, dim/axis: int = -1, "
           "norm: \"backward\"|\"ortho\"|\"forward\"? = nil)")
        .doc("Inverse of hfft.")
        .example("hfft(ihfft(tensor{1.0, 2.0, 4.0, 3.0}))", "tensor{1.0, 2.0, 4.0, 3.0}")
        .expand([](const ExpandCall& c) { return expand_from_hermitian(c, "rfft"); })
        .sample("f32[2,7]")
        .sample("f32[3,4], 6, 0, \"ortho\"");
    ops.add(
           "hfft2(input/x: tensor, s: ints? = nil, dim/axis: ints = {-2, -1}, "
           "norm: \"backward\"|\"ortho\"|\"forward\"? = nil)")
        .doc("As hfft, over two axes.")
        .example("hfft2(tensor{{1.0, 2.0, 3.0}})", "tensor{{8.0, -2.0, 0.0, -2.0}}")
        .expand([](const ExpandCall& c) { return expand_hermitian(c, "irfft2"); })
        .sample("c64[2,3,5]")
        .sample("c64[3,4], {5, 7}");
    ops.add(
           "ihfft2(input/x: tensor, s: ints? = nil, dim/axis: ints = {-2, -1}, "
           "norm: \"backward\"|\"ortho\"|\"forward\"? = nil)")
        .doc("Inverse of hfft2.")
        .example("hfft2(ihfft2(tensor{{1.0, 2.0, 4.0, 3.0}}))", "tensor{{1.0, 2.0, 4.0, 3.0}}")
        .expand([](const ExpandCall& c) { return expand_from_hermitian(c, "rfft2"); })
        .sample("f32[2,3,5]")
        .sample("f32[3,4], {5, 2}");
    ops.add(
           "hfftn(input/x: tensor, s: ints? = nil, dim/axis: ints? = nil, "
           "norm: \"backward\"|\"ortho\"|\"forward\"? = nil)")
        .doc("As hfft, over several axes, all by default.")
        .example("hfftn(tensor{1.0, 2.0, 3.0})", "tensor{8.0, -2.0, 0.0, -2.0}")
        .expand([](const ExpandCall& c) { return expand_hermitian(c, "irfftn"); })
        .sample("c64[2,3,5]")
        .sample("c64[3,4], {7}");
    ops.add(
           "ihfftn(input/x: tensor, s: ints? = nil, dim/axis: ints? = nil, "
           "norm: \"backward\"|\"ortho\"|\"forward\"? = nil)")
        .doc("Inverse of hfftn.")
        .example("hfftn(ihfftn(tensor{1.0, 2.0, 4.0, 3.0}))", "tensor{1.0, 2.0, 4.0, 3.0}")
        .expand([](const ExpandCall& c) { return expand_from_hermitian(c, "rfftn"); })
        .sample("f32[2,3,5]")
        .sample("f32[3,4], {5}");
}

}  // namespace

void add_spectrum_ops(Registry& ops) {
    add_hermitian_ops(ops);
    ops.add("conjugate(x: same)")
        .doc("Complex numbers with the other sign of the imaginary part: what conj is made of.")
        .example("imag(conjugate(fft(tensor{1.0, 2.0, 1.0, 0.0})))", "tensor{0.0, 2.0, 0.0, -2.0}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads { return {cotangent(g, 0, [&] { return fn("conjugate", g.dout); })}; })
        .linear({0})
        .sample("c64[2,3]")
        .sample("c64[5]");
    ops.add("complex(real: float, imag: float)")
        .doc("Complex numbers of their real and imaginary parts.")
        .example("view_as_real(complex(tensor{1.0, 2.0}, 3.0))", "tensor{{1.0, 3.0}, {2.0, 3.0}}")
        .expand([](const ExpandCall& c) {
            const Shape shape = broadcast(c.name(), c.shape(0), c.shape(1));
            Expr parts[] = {c.in(0).broadcast_to(shape), c.in(1).broadcast_to(shape)};
            return c.call("view_as_complex", {c.call("stack", {c.builder.list(parts), -1})});
        })
        .sample("f32[2,3], f32[2,3]")
        .sample("f32[5], f32[]");
    ops.add("conj(input/x: tensor)")
        .doc("Complex conjugate; a real number itself.")
        .example("imag(conj(fft(tensor{1.0, 2.0, 1.0, 0.0})))", "tensor{0.0, 2.0, 0.0, -2.0}")
        .expand([](const ExpandCall& c) {
            return is_complex(c.type(0).dtype) ? conjugate(c.in(0)) : c.call("identity", {c.in(0)});
        })
        .sample("f32[2,3]")
        .sample("c64[5]");
    ops.add("angle(input/x: tensor)")
        .doc("Angle of complex numbers in radians, from -pi to pi; pi of negative real numbers, 0 of others.")
        .example("angle(view_as_complex(tensor{{1.0, 0.0}, {0.0, 2.0}, {-1.0, 0.0}}))", "tensor{0.0, 1.5708, 3.1416}")
        .expand(expand_angle)
        .sample("c64[2,3]")
        .sample("f32[5]");
    ops.add("polar(abs: float, angle: float)")
        .doc("Complex numbers with these absolute values and angles in radians.")
        .example("real(polar(tensor{2.0}, tensor{3.1415927}))", "tensor{-2.0}")
        .expand([](const ExpandCall& c) {
            const Shape shape = broadcast(c.name(), c.shape(0), c.shape(1));
            Expr parts[] = {(c.in(0) * fn("cos", c.in(1))).broadcast_to(shape),
                            (c.in(0) * fn("sin", c.in(1))).broadcast_to(shape)};
            return c.call("view_as_complex", {c.call("stack", {c.builder.list(parts), -1})});
        })
        .sample("f32[2,3]:(0.5,2), f32[2,3]")
        .sample("f32[5]:(0.5,2), f32[5]");
    ops.add("isreal(input/x: tensor)")
        .doc("True where a number has no imaginary part.")
        .example("isreal(tensor{1.0})", "tensor{true}")
        .expand(expand_isreal)
        .sample("f32[2,3]")
        .sample("c64[5]");
    ops.add("fftfreq(n: int, d: number = 1.0, dtype: dtype? = nil)")
        .doc("Frequencies of the elements of fft for n samples at a distance d, in the order of its result.")
        .example("fftfreq(4)", "tensor{0.0, 0.25, -0.5, -0.25}")
        .expand([](const ExpandCall& c) { return expand_frequencies(c, false); })
        .sample("5, 0.5")
        .sample("4, 1.0, float64");
    ops.add("rfftfreq(n: int, d: number = 1.0, dtype: dtype? = nil)")
        .doc("Frequencies of the elements of rfft for n samples at a distance d.")
        .example("rfftfreq(4)", "tensor{0.0, 0.25, 0.5}")
        .expand([](const ExpandCall& c) { return expand_frequencies(c, true); })
        .sample("5, 0.5")
        .sample("4, 1.0, float64");
    ops.add("fftshift(input/x: tensor, dim/axes/axis: ints? = nil)")
        .doc("Frequencies along the axes (all by default) moved so that 0 is in the middle.")
        .example("fftshift(fftfreq(4))", "tensor{-0.5, -0.25, 0.0, 0.25}")
        .expand([](const ExpandCall& c) { return expand_shift(c, false); })
        .sample("f32[2,3]")
        .sample("f32[3,4], 1");
    ops.add("ifftshift(input/x: tensor, dim/axes/axis: ints? = nil)")
        .doc("Inverse of fftshift.")
        .example("ifftshift(fftshift(tensor{1, 2, 3}))", "tensor{1, 2, 3}")
        .expand([](const ExpandCall& c) { return expand_shift(c, true); })
        .sample("f32[2,3]")
        .sample("f32[3,4], 1");
    ops.add(
           "stft(x/input: tensor, n_fft: int, hop_length: int? = nil, win_length: int? = nil, window: tensor? = nil, "
           "center: bool = true, pad_mode: \"reflect\"|\"constant\"|\"circular\"|\"replicate\" = \"reflect\", "
           "normalized: "
           "bool = false, onesided: bool? = nil, return_complex: bool? = nil)")
        .doc(
            "Short-time Fourier transform: the spectra of pieces of n_fft samples, hop_length (n_fft / 4) apart, each "
            "times the window. The result is (frequencies, pieces), complex or with real and imaginary parts in a new "
            "last axis, as return_complex says.")
        .example("shape(stft(ones({16}), 8, 4, {return_complex = true}))", "{5, 5}")
        .expand(expand_stft)
        .sample("f32[16], 8, 4")
        .sample("f32[2,20], 6, 3, 4, f32[4]:(0.5,1), false, \"reflect\", true, false, true");
    ops.add(
           "istft(x/input: tensor, n_fft: int, hop_length: int? = nil, win_length: int? = nil, window: tensor? = nil, "
           "center: bool = true, normalized: bool = false, onesided: bool? = nil, length: int? = nil)")
        .doc("The real signal whose stft x is: the pieces added up and divided by the sum of the squared windows.")
        .example("istft(stft(tensor{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, 4), 4, {length = 6})",
                 "tensor{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}")
        .expand(expand_istft)
        .sample("f32[5,3,2], 8, 4")
        .sample("c64[2,4,6], 6, 3, 4, f32[4]:(0.5,1), false, true, true, 20");
}

}  // namespace lunaria
