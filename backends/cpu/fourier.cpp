// CPU kernels: discrete Fourier transforms, computed in f64. Lengths that are powers of two go through the radix-2
// algorithm; others become a convolution of such a length (L. Bluestein, 1970), so that every length costs n log n.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <numbers>
#include <vector>

#include "backends/cpu/kernel_table.h"
#include "core/interrupt.h"
#include "core/op.h"
#include "core/threads.h"

namespace lunaria::cpu {

namespace {

using Complex = std::complex<double>;
using Signal = std::vector<Complex>;

Complex unit(double turns) { return std::polar(1.0, 2.0 * std::numbers::pi * turns); }

// Steps between two looks at an interrupt; a power of two.
constexpr size_t kBlock = 1 << 16;

template <class F>
void in_blocks(size_t n, F f) {
    for (size_t begin = 0; begin < n; begin += kBlock) {
        if (begin > 0) poll_interrupt();
        for (size_t i = begin, end = std::min(n, begin + kBlock); i < end; ++i) f(i);
    }
}

// Transform of a power of two of elements, in place.
class Radix2 {
  public:
    explicit Radix2(size_t n) : roots_(n / 2) {
        in_blocks(roots_.size(), [&](size_t i) { roots_[i] = unit(-static_cast<double>(i) / static_cast<double>(n)); });
    }

    void operator()(Complex* x) const {
        size_t n = std::max<size_t>(1, 2 * roots_.size());
        size_t j = 0;  // i - 1 with its bits reversed
        in_blocks(n - 1, [&](size_t i) {
            size_t bit = n / 2;
            for (; j & bit; bit /= 2) j ^= bit;
            j ^= bit;
            if (i + 1 < j) std::swap(x[i + 1], x[j]);
        });
        for (size_t half = 1; half < n; half *= 2)
            for (size_t start = 0; start < n; start += 2 * half)
                for (size_t from = 0; from < half; from += kBlock) {
                    if (half >= kBlock || start % kBlock == 0) poll_interrupt();
                    for (size_t k = from; k < std::min(half, from + kBlock); ++k) {
                        Complex &a = x[start + k], &b = x[start + k + half];
                        // By parts: the operator of std::complex looks for infinities.
                        Complex w = roots_[k * (n / (2 * half))];
                        Complex t(b.real() * w.real() - b.imag() * w.imag(), b.real() * w.imag() + b.imag() * w.real());
                        b = a - t;
                        a += t;
                    }
                }
    }

  private:
    Signal roots_;
};

bool is_power_of_two(size_t n) { return (n & (n - 1)) == 0; }

size_t power_of_two_from(size_t n) {
    size_t p = 1;
    while (p < n) p *= 2;
    return p;
}

// Transform of any length; the inverse one is that of the conjugate, conjugated.
class Dft {
  public:
    explicit Dft(size_t n) : n_(n), padded_(is_power_of_two(n) ? n : power_of_two_from(2 * n - 1)), fft_(padded_) {
        if (padded_ == n_) return;
        chirp_.resize(n_);
        in_blocks(n_, [&](size_t i) {
            // i² modulo 2n: the angle stays small, and exact.
            auto square = static_cast<unsigned __int128>(i) * i % (2 * n_);
            chirp_[i] = unit(-0.5 * static_cast<double>(static_cast<size_t>(square)) / static_cast<double>(n_));
        });
        filter_.assign(padded_, 0.0);
        for (size_t i = 0; i < n_; ++i) filter_[i] = filter_[(padded_ - i) % padded_] = std::conj(chirp_[i]);
        fft_(filter_.data());
    }

    // x has size() elements, of which the first n hold the signal.
    size_t size() const { return padded_; }
    void operator()(Signal& x) const {
        if (padded_ == n_) return fft_(x.data());
        for (size_t i = 0; i < n_; ++i) x[i] *= chirp_[i];
        std::fill(x.begin() + static_cast<std::ptrdiff_t>(n_), x.end(), Complex());
        fft_(x.data());
        // The inverse transform by way of conjugates.
        for (size_t i = 0; i < padded_; ++i) x[i] = std::conj(x[i] * filter_[i]);
        fft_(x.data());
        double scale = 1.0 / static_cast<double>(padded_);
        for (size_t i = 0; i < n_; ++i) x[i] = std::conj(x[i]) * scale * chirp_[i];
    }

  private:
    size_t n_, padded_;
    Radix2 fft_;
    Signal chirp_, filter_;
};

// The lines of a dense tensor along one axis.
struct Lines {
    int64_t length, inner, count;
    Lines(const Shape& s, int axis) : length(s[axis]), inner(1), count(1) {
        for (int i = 0; i < s.rank(); ++i) {
            if (i != axis) count *= s[i];
            if (i > axis) inner *= s[i];
        }
    }
    // First element of a line; its elements are `inner` apart.
    int64_t start(int64_t line) const { return line / inner * inner * length + line % inner; }
};

// Transforms all lines: fill(line, signal) reads one, store(line, signal) writes it.
template <class Fill, class Store>
void for_each_line(int64_t lines, int64_t n, Fill fill, Store store) {
    Dft dft(static_cast<size_t>(n));
    constexpr int64_t kWorthwhile = 4096;
    parallel_for(lines, kWorthwhile / n + 1, [&](int64_t begin, int64_t end) {
        Signal x(dft.size());
        for (int64_t line = begin; line < end; ++line) {
            fill(line, x);
            dft(x);
            store(line, x);
        }
    });
}

template <class T>
Complex as_complex(T x) {
    if constexpr (std::is_same_v<T, Complex64>)
        return {x.real(), x.imag()};
    else
        return {static_cast<double>(x), 0.0};
}

bool dft(const KernelCall& c) {
    Call call(c.op, c.args, c.dtype);
    const Tensor& x = c.tensor(0);
    int axis = call.axis(2, 0);
    int64_t n = call.integer(1);
    bool inverse = call.boolean(3);
    double scale = call.number(4);
    Lines in(x.shape(), axis), out(c.out[0].shape(), axis);
    auto* to = c.out[0].data<Complex64>();
    visit_dtype(x.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* from = x.data<T>();
        for_each_line(
            out.count, n,
            [&](int64_t line, Signal& s) {
                for (int64_t i = 0; i < n; ++i) {
                    Complex v = i < in.length ? as_complex(from[in.start(line) + i * in.inner]) : Complex();
                    s[static_cast<size_t>(i)] = inverse ? std::conj(v) : v;
                }
            },
            [&](int64_t line, const Signal& s) {
                for (int64_t i = 0; i < out.length; ++i) {
                    Complex v = s[static_cast<size_t>(i)] * scale;
                    to[out.start(line) + i * out.inner] = Complex64(inverse ? std::conj(v) : v);
                }
            });
    });
    return true;
}

bool dft_real(const KernelCall& c) {
    Call call(c.op, c.args, c.dtype);
    const Tensor& x = c.tensor(0);
    int axis = call.axis(2, 0);
    int64_t n = call.integer(1);
    double scale = call.number(3);
    Lines in(x.shape(), axis), out(c.out[0].shape(), axis);
    visit_dtype(x.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* from = x.data<T>();
        for_each_line(
            out.count, n,
            [&](int64_t line, Signal& s) {
                // The other half mirrors this one. Of the elements that mirror themselves only the real part counts.
                for (int64_t i = 0; i <= n / 2; ++i) {
                    Complex v = i < in.length ? as_complex(from[in.start(line) + i * in.inner]) : Complex();
                    if (i == 0 || 2 * i == n) v = v.real();
                    s[static_cast<size_t>(i)] = std::conj(v);
                    s[static_cast<size_t>((n - i) % n)] = i == 0 ? std::conj(v) : v;
                }
            },
            [&](int64_t line, const Signal& s) {
                for (int64_t i = 0; i < n; ++i) {
                    double v = s[static_cast<size_t>(i)].real() * scale;
                    int64_t at = out.start(line) + i * out.inner;
                    if (c.out[0].dtype() == DType::f64)
                        c.out[0].data<double>()[at] = v;
                    else
                        c.out[0].data<float>()[at] = static_cast<float>(v);
                }
            });
    });
    return true;
}

// Complex numbers are stored as pairs: only the type changes.
bool copy_pairs(const KernelCall& c) {
    Tensor x = c.tensor(0).dtype() == DType::c64 ? c.tensor(0) : c.tensor(0).cast(DType::f32);
    if (x.nbytes()) std::memcpy(c.out[0].raw(), x.raw(), x.nbytes());
    return true;
}

}  // namespace

void add_fourier_kernels(KernelTable& table) {
    table.plain("dft", dft);
    table.plain("dft_real", dft_real);
    table.plain("view_as_real", copy_pairs);
    table.plain("view_as_complex", copy_pairs);
}

}  // namespace lunaria::cpu
