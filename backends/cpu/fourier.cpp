// CPU kernels: discrete Fourier transforms, computed in f64.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backends/cpu/copy.h"
#include "backends/cpu/fourier_plan.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/scratch.h"
#include "core/base/interrupt.h"
#include "core/operator/op.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

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

// Signals that go through a transform together, and the number of their elements that stay in a core's cache.
constexpr int64_t kTogether = kSideBySide, kCached = 32 * 1024;

struct Number {
    double re, im;
};

// Signals side by side in a transform.
class Bundle {
  public:
    Bundle(std::shared_ptr<const FourierPlan> plan, int64_t signals)
        : plan_(std::move(plan)), signals_(signals), x_(room()), scratch_(room()) {}

    int64_t signals() const { return signals_; }
    void set(int64_t i, int64_t signal, Number v) { x_.set(static_cast<size_t>(i * signals_ + signal), v.re, v.im); }
    Number at(int64_t i, int64_t signal) const {
        const SplitNumbers x = x_.numbers();
        return {x.re[i * signals_ + signal], x.im[i * signals_ + signal]};
    }
    void transform() { (*plan_)(x_, scratch_, signals_); }
    SplitNumbers numbers() const { return x_.numbers(); }
    // Room beside the numbers, for one element more than a transform has; transforms overwrite it.
    SplitNumbers beside() const { return scratch_.numbers(); }
    // Room for `count` elements of each signal as pairs of floats.
    Complex64* pairs(int64_t count) {
        if (pairs_.size() < static_cast<size_t>(count * signals_)) pairs_.resize(static_cast<size_t>(count * signals_));
        return pairs_.data();
    }

  private:
    size_t room() const { return plan_->room(signals_) + static_cast<size_t>(signals_); }

    std::shared_ptr<const FourierPlan> plan_;
    int64_t signals_;
    SplitArray x_, scratch_;
    Scratch<Complex64> pairs_;
};

// Calls work(bundle, first line) until every line has been in a bundle.
template <class F>
void for_bundles(const std::shared_ptr<const FourierPlan>& plan, int64_t lines, F work) {
    if (lines == 0) return;
    const int64_t room = static_cast<int64_t>(plan->room(1));
    const int64_t together = room * kTogether <= kCached ? std::min(lines, kTogether) : 1;
    const int64_t bundles = (lines + together - 1) / together;
    constexpr int64_t kWorthwhile = 8192;
    parallel_for(bundles, kWorthwhile / (room * together) + 1, [&](int64_t begin, int64_t end) {
        std::optional<Bundle> bundle;
        for (int64_t i = begin; i < end; ++i) {
            const int64_t first = i * together, count = std::min(together, lines - first);
            if (!bundle || bundle->signals() != count) bundle.emplace(plan, count);
            work(*bundle, first);
        }
    });
}

template <class T>
Number number(T x) {
    if constexpr (kIsComplex<T>)
        return {x.real(), x.imag()};
    else
        return {static_cast<double>(x), 0.0};
}

// The first elements of a bundle's lines.
struct Starts {
    std::array<int64_t, kTogether> at{};
    Starts(const Lines& lines, int64_t first, int64_t count) {
        for (int64_t j = 0; j < count; ++j) at[static_cast<size_t>(j)] = lines.start(first + j);
    }
    int64_t operator[](int64_t j) const { return at[static_cast<size_t>(j)]; }
};

struct Direction {
    int64_t n;
    double scale;
    bool inverse;
};

// Elements 0 .. count - 1 of lines, to pairs[element * signals + line].
void gather_lines(const Complex64* from, const Lines& lines, const Starts& starts, int64_t signals, int64_t count,
                  Complex64* pairs) {
    in_ranges(count, kElementsBetweenLooks, [&](int64_t begin, int64_t end) {
        if (lines.inner == 1)
            return copy_loops().transpose[3](from + starts[0] + begin, lines.length, pairs + begin * signals, signals,
                                             signals, end - begin, false);
        for (int64_t i = begin; i < end; ++i)
            for (int64_t j = 0; j < signals; ++j) pairs[i * signals + j] = from[starts[j] + i * lines.inner];
    });
}
// The inverse of gather.
void scatter(const Complex64* pairs, Complex64* to, const Lines& lines, const Starts& starts, int64_t signals,
             int64_t count) {
    in_ranges(count, kElementsBetweenLooks, [&](int64_t begin, int64_t end) {
        if (lines.inner == 1)
            return copy_loops().transpose[3](pairs + begin * signals, signals, to + starts[0] + begin, lines.length,
                                             end - begin, signals, false);
        for (int64_t i = begin; i < end; ++i)
            for (int64_t j = 0; j < signals; ++j) to[starts[j] + i * lines.inner] = pairs[i * signals + j];
    });
}

float* floats(Complex64* pairs) { return reinterpret_cast<float*>(pairs); }
const float* floats(const Complex64* pairs) { return reinterpret_cast<const float*>(pairs); }

void clear(Complex64* pairs, int64_t begin, int64_t end) {
    for_elements(end - begin, [&](int64_t i) { pairs[begin + i] = Complex64(); });
}
void split(const Complex64* pairs, const SplitNumbers& x, int64_t count, double sign) {
    in_ranges(count, kElementsBetweenLooks, [&](int64_t begin, int64_t end) {
        fourier_loops().split(floats(pairs + begin), behind(x, begin), end - begin, sign);
    });
}
void join(const SplitNumbers& x, Complex64* pairs, int64_t count, double scale, double sign) {
    in_ranges(count, kElementsBetweenLooks, [&](int64_t begin, int64_t end) {
        fourier_loops().join(behind(x, begin), floats(pairs + begin), end - begin, scale, sign);
    });
}

// The first `given` elements of lines side by side, and zeros up to `count`: gathered into `room`, unless they lie that
// way.
const Complex64* side_by_side(const Complex64* from, const Lines& lines, const Starts& starts, int64_t signals,
                              int64_t given, int64_t count, Complex64* room) {
    if (signals == 1 && lines.inner == 1 && given == count) return from + starts[0];
    gather_lines(from, lines, starts, signals, given, room);
    clear(room, given * signals, count * signals);
    return room;
}

// Calls put(pairs) for `count` elements of lines side by side, and moves them to their places unless they are there
// already.
template <class Put>
void put_apart(Complex64* to, const Lines& lines, const Starts& starts, int64_t signals, int64_t count, Complex64* room,
               Put put) {
    if (signals == 1 && lines.inner == 1) return put(to + starts[0]);
    put(room);
    scatter(room, to, lines, starts, signals, count);
}

// A line of floats of even length, read as half as many pairs.
Lines in_pairs(Lines lines) {
    lines.length /= 2;
    return lines;
}

// Whether the lines from `first` on fill a bundle and are neighbours in memory, so that they move by whole registers.
bool move_together(const Lines& lines, int64_t first, int64_t signals) {
    return signals == kSideBySide && (lines.inner == 1 || first % lines.inner + kSideBySide <= lines.inner);
}

template <class Part>
const FourierLines<Part>& line_loops() {
    if constexpr (std::is_same_v<Part, float>)
        return fourier_loops().f32;
    else
        return fourier_loops().f64;
}

// The first `given` elements of such lines of pairs, and zeros up to `count`.
template <class Part>
void read_together(const std::complex<Part>* from, const Lines& lines, int64_t first, int64_t given, int64_t count,
                   const SplitNumbers& x, double sign) {
    const auto* pairs = reinterpret_cast<const Part*>(from + lines.start(first));
    if (lines.inner == 1)
        line_loops<Part>().read_rows(pairs, 2 * lines.length, given, x, sign);
    else
        line_loops<Part>().read_columns(pairs, 2 * lines.inner, given, x, sign);
    std::fill(x.re + given * kSideBySide, x.re + count * kSideBySide, 0.0);
    std::fill(x.im + given * kSideBySide, x.im + count * kSideBySide, 0.0);
}
template <class Part>
void write_together(const SplitNumbers& x, int64_t count, std::complex<Part>* to, const Lines& lines, int64_t first,
                    double scale, double sign) {
    auto* pairs = reinterpret_cast<Part*>(to + lines.start(first));
    if (lines.inner == 1)
        line_loops<Part>().write_rows(x, count, pairs, 2 * lines.length, scale, sign);
    else
        line_loops<Part>().write_columns(x, count, pairs, 2 * lines.inner, scale, sign);
}

// A transform of lines that move together; false: of others.
template <class Part>
bool transform_together(Bundle& bundle, const std::complex<Part>* from, const Lines& in, std::complex<Part>* to,
                        const Lines& out, int64_t first, const Direction& d) {
    if (!move_together(in, first, bundle.signals()) || !move_together(out, first, bundle.signals())) return false;
    const double sign = d.inverse ? -1.0 : 1.0;
    read_together(from, in, first, std::min(in.length, d.n), d.n, bundle.numbers(), sign);
    bundle.transform();
    write_together(bundle.numbers(), out.length, to, out, first, d.scale, sign);
    return true;
}

// The same for rows of real numbers as pairs, with the plan's half_turns, and with the half that mirrors the other
// where it is wanted.
template <class Part>
bool transform_real_together(Bundle& bundle, const std::complex<Part>* from, const Lines& in, std::complex<Part>* to,
                             const Lines& out, int64_t first, const Direction& d, const SplitNumbers& turns) {
    if (!move_together(in, first, bundle.signals()) || !move_together(out, first, bundle.signals())) return false;
    const int64_t half = d.n / 2, direct = std::min(out.length, half + 1);
    read_together(from, in, first, half, half, bundle.numbers(), 1.0);
    bundle.transform();
    fourier_loops().halves_of_spectrum(bundle.numbers(), turns, half, bundle.beside());
    write_together(bundle.beside(), direct, to, out, first, d.scale, d.inverse ? -1.0 : 1.0);
    for (int64_t j = 0; j < kSideBySide; ++j) {
        std::complex<Part>* line = to + out.start(first + j);
        for (int64_t k = direct; k < out.length; ++k) line[k * out.inner] = std::conj(line[(d.n - k) * out.inner]);
    }
    return true;
}

// The same for spectra of real rows.
template <class Part>
bool transform_to_real_together(Bundle& bundle, const std::complex<Part>* from, const Lines& in, std::complex<Part>* to,
                                const Lines& out, int64_t first, const Direction& d, const SplitNumbers& turns) {
    if (!move_together(in, first, bundle.signals()) || !move_together(out, first, bundle.signals())) return false;
    const int64_t half = d.n / 2;
    read_together(from, in, first, std::min(in.length, half + 1), half + 1, bundle.beside(), 1.0);
    fourier_loops().halves_of_signal(bundle.beside(), turns, half, bundle.numbers());
    bundle.transform();
    write_together(bundle.numbers(), half, to, out, first, d.scale, -1.0);
    return true;
}

void transform_pairs(const Complex64* from, const Lines& in, Complex64* to, const Lines& out, const Direction& d) {
    // The inverse transform is that of the conjugate, conjugated.
    const double sign = d.inverse ? -1.0 : 1.0;
    const auto plan = FourierPlan::of(d.n);
    if (plan->is_long() && in.inner == 1 && in.length == d.n && out.length == d.n) {
        const SplitArray scratch(plan->room(1));
        for (int64_t i = 0; i < out.count; ++i)
            plan->transform_long(floats(from + in.start(i)), floats(to + out.start(i)), scratch, sign, d.scale);
        return;
    }
    for_bundles(plan, out.count, [&](Bundle& bundle, int64_t first) {
        if (transform_together(bundle, from, in, to, out, first, d)) return;
        const int64_t width = bundle.signals(), given = std::min(in.length, d.n);
        const Starts read(in, first, width), write(out, first, width);
        Complex64* pairs = bundle.pairs(std::max(d.n, out.length));
        const Complex64* x = side_by_side(from, in, read, width, given, d.n, pairs);
        split(x, bundle.numbers(), d.n * width, sign);
        bundle.transform();
        put_apart(to, out, write, width, out.length, pairs,
                  [&](Complex64* result) { join(bundle.numbers(), result, out.length * width, d.scale, sign); });
    });
}

// As transform_real below, for whole contiguous lines of floats.
void transform_real_pairs(const Complex64* from, const Lines& in, Complex64* to, const Lines& out, const Direction& d) {
    const int64_t half = d.n / 2;
    const auto plan = FourierPlan::of(half);
    const SplitNumbers turns = plan->half_turns();
    for_bundles(plan, out.count, [&](Bundle& bundle, int64_t first) {
        if (transform_real_together(bundle, from, in, to, out, first, d, turns)) return;
        const int64_t width = bundle.signals();
        const Starts read(in, first, width), write(out, first, width);
        Complex64* pairs = bundle.pairs(std::max(half, out.length));
        const Complex64* x = side_by_side(from, in, read, width, half, half, pairs);
        split(x, bundle.numbers(), half * width, 1.0);
        bundle.transform();
        put_apart(to, out, write, width, out.length, pairs, [&](Complex64* result) {
            in_ranges(out.length, kElementsBetweenLooks, [&](int64_t begin, int64_t end) {
                fourier_loops().real_spectrum(bundle.numbers(), turns, half, width, begin, end, d.scale,
                                              d.inverse ? -1.0 : 1.0, floats(result));
            });
        });
    });
}

// As transform_to_real below, for contiguous lines of an even number of floats.
void transform_to_real_pairs(const Complex64* from, const Lines& in, Complex64* to, const Lines& out,
                             const Direction& d) {
    const int64_t half = d.n / 2;
    const auto plan = FourierPlan::of(half);
    const SplitNumbers turns = plan->half_turns();
    for_bundles(plan, out.count, [&](Bundle& bundle, int64_t first) {
        if (transform_to_real_together(bundle, from, in, to, out, first, d, turns)) return;
        const int64_t width = bundle.signals(), given = std::min(in.length, half + 1);
        const Starts read(in, first, width), write(out, first, width);
        Complex64* pairs = bundle.pairs(half + 1);
        const Complex64* x = side_by_side(from, in, read, width, given, half + 1, pairs);
        in_ranges(half, kElementsBetweenLooks, [&](int64_t begin, int64_t end) {
            fourier_loops().real_signal(floats(x), turns, half, width, begin, end, bundle.numbers());
        });
        bundle.transform();
        put_apart(to, out, write, width, half, pairs,
                  [&](Complex64* result) { join(bundle.numbers(), result, half * width, d.scale, -1.0); });
    });
}

// A number in the form of the pair type T.
template <class T>
T pair(double re, double im) {
    using Part = typename T::value_type;
    return T(static_cast<Part>(re), static_cast<Part>(im));
}

template <class T, class Out>
void transform_complex(const T* from, const Lines& in, Out* to, const Lines& out, const Direction& d) {
    // The inverse transform is that of the conjugate, conjugated.
    const double sign = d.inverse ? -1.0 : 1.0;
    for_bundles(FourierPlan::of(d.n), out.count, [&](Bundle& bundle, int64_t first) {
        if constexpr (std::is_same_v<T, Out>)
            if (transform_together(bundle, from, in, to, out, first, d)) return;
        const Starts read(in, first, bundle.signals()), write(out, first, bundle.signals());
        for_elements(d.n, [&](int64_t i) {
            for (int64_t j = 0; j < bundle.signals(); ++j) {
                const Number v = i < in.length ? number(from[read[j] + i * in.inner]) : Number{0, 0};
                bundle.set(i, j, {v.re, sign * v.im});
            }
        });
        bundle.transform();
        for_elements(out.length, [&](int64_t i) {
            for (int64_t j = 0; j < bundle.signals(); ++j) {
                const Number v = bundle.at(i, j);
                to[write[j] + i * out.inner] = pair<Out>(v.re * d.scale, v.im * sign * d.scale);
            }
        });
    });
}

// A real signal of even length goes through a transform of half the length, its even elements as real parts and its odd
// ones as imaginary parts.
template <class T, class Out>
void transform_real(const T* from, const Lines& in, Out* to, const Lines& out, const Direction& d) {
    const int64_t half = d.n / 2;
    const auto plan = FourierPlan::of(half);
    const SplitNumbers turn = plan->half_turns();
    const double sign = d.inverse ? -1.0 : 1.0;
    for_bundles(plan, out.count, [&](Bundle& bundle, int64_t first) {
        if constexpr (std::is_same_v<T, typename Out::value_type>)
            if (in.inner == 1 && in.length == d.n &&
                transform_real_together(bundle, reinterpret_cast<const Out*>(from), in_pairs(in), to, out, first, d,
                                        turn))
                return;
        const Starts read(in, first, bundle.signals()), write(out, first, bundle.signals());
        auto element = [&](int64_t j, int64_t i) {
            return i < in.length ? static_cast<double>(from[read[j] + i * in.inner]) : 0.0;
        };
        for_elements(half, [&](int64_t i) {
            for (int64_t j = 0; j < bundle.signals(); ++j) bundle.set(i, j, {element(j, 2 * i), element(j, 2 * i + 1)});
        });
        bundle.transform();
        for_elements(half + 1, [&](int64_t k) {
            for (int64_t j = 0; j < bundle.signals(); ++j) {
                const Number a = bundle.at(k % half, j), b = bundle.at((half - k) % half, j);
                // The transforms of the even and the odd elements.
                const Number even{0.5 * (a.re + b.re), 0.5 * (a.im - b.im)};
                const Number odd{0.5 * (a.im + b.im), 0.5 * (b.re - a.re)};
                const double re = even.re + turn.re[k] * odd.re - turn.im[k] * odd.im;
                const double im = even.im + turn.re[k] * odd.im + turn.im[k] * odd.re;
                const Out v = pair<Out>(re * d.scale, sign * im * d.scale);
                if (k < out.length) to[write[j] + k * out.inner] = v;
                // The other half mirrors this one.
                if (k > 0 && d.n - k != k && d.n - k < out.length) to[write[j] + (d.n - k) * out.inner] = std::conj(v);
            }
        });
    });
}

bool lies_as_pairs(const Tensor& x) { return reinterpret_cast<uintptr_t>(x.raw()) % sizeof(Complex64) == 0; }

bool dft(const KernelCall& c) {
    Call call(c.op, c.args, c.dtype);
    const Tensor& x = c.tensor(0);
    int axis = call.axis(2, 0);
    const Direction d{call.integer(1), call.number(4), call.boolean(3)};
    Lines in(x.shape(), axis), out(c.out[0].shape(), axis);
    visit_dtype(x.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        constexpr bool kWide = std::is_same_v<T, double> || std::is_same_v<T, Complex128>;
        auto* to = c.out[0].data<std::conditional_t<kWide, Complex128, Complex64>>();
        if constexpr (std::is_same_v<T, Complex64>) return transform_pairs(x.data<T>(), in, to, out, d);
        if constexpr (std::is_same_v<T, float>)
            if (d.n % 2 == 0 && in.inner == 1 && in.length == d.n && lies_as_pairs(x))
                return transform_real_pairs(static_cast<const Complex64*>(x.raw()), in_pairs(in), to, out, d);
        if constexpr (!kIsComplex<T>)
            if (d.n % 2 == 0) return transform_real(x.data<T>(), in, to, out, d);
        if constexpr (!std::is_same_v<T, Complex64>) transform_complex(x.data<T>(), in, to, out, d);
    });
    return true;
}

// The inverse transform of the first half of a real signal's spectrum: the other half mirrors it. Of the elements that
// mirror themselves only the real part counts.
template <class T, class Out>
void transform_to_real(const T* from, const Lines& in, Out* to, const Lines& out, const Direction& d) {
    const int64_t n = d.n;
    const bool by_half = n % 2 == 0;
    const auto plan = FourierPlan::of(by_half ? n / 2 : n);
    const SplitNumbers turn = by_half ? plan->half_turns() : SplitNumbers{};
    for_bundles(plan, out.count, [&](Bundle& bundle, int64_t first) {
        if constexpr (std::is_same_v<T, std::complex<Out>>)
            if (by_half && out.inner == 1 &&
                transform_to_real_together(bundle, from, in, reinterpret_cast<T*>(to), in_pairs(out), first, d, turn))
                return;
        const Starts read(in, first, bundle.signals()), write(out, first, bundle.signals());
        auto element = [&](int64_t j, int64_t k) {
            Number v = k < in.length ? number(from[read[j] + k * in.inner]) : Number{0, 0};
            if (k == 0 || 2 * k == n) v.im = 0;
            return v;
        };
        auto put = [&](int64_t j, int64_t i, double v) {
            to[write[j] + i * out.inner] = static_cast<Out>(v * d.scale);
        };
        if (!by_half) {
            for (int64_t j = 0; j < bundle.signals(); ++j)
                for_elements(n / 2 + 1, [&](int64_t k) {
                    const Number v = element(j, k);
                    bundle.set(k, j, {v.re, -v.im});
                    if (k > 0) bundle.set(n - k, j, v);
                });
            bundle.transform();
            for_elements(n, [&](int64_t i) {
                for (int64_t j = 0; j < bundle.signals(); ++j) put(j, i, bundle.at(i, j).re);
            });
            return;
        }
        const int64_t half = n / 2;
        for_elements(half, [&](int64_t k) {
            for (int64_t j = 0; j < bundle.signals(); ++j) {
                const Number a = element(j, k), b = element(j, half - k);
                const Number even{a.re + b.re, a.im - b.im}, apart{a.re - b.re, a.im + b.im};
                // Multiplied by the conjugate of the turn, then by i.
                const double re = apart.re * turn.re[k] + apart.im * turn.im[k];
                const double im = apart.im * turn.re[k] - apart.re * turn.im[k];
                bundle.set(k, j, {even.re - im, -(even.im + re)});
            }
        });
        bundle.transform();
        for_elements(half, [&](int64_t i) {
            for (int64_t j = 0; j < bundle.signals(); ++j) {
                const Number v = bundle.at(i, j);
                put(j, 2 * i, v.re);
                put(j, 2 * i + 1, -v.im);
            }
        });
    });
}

bool dft_real(const KernelCall& c) {
    Call call(c.op, c.args, c.dtype);
    const Tensor& x = c.tensor(0);
    int axis = call.axis(2, 0);
    const Direction d{call.integer(1), call.number(3), true};
    Lines in(x.shape(), axis), out(c.out[0].shape(), axis);
    visit_dtype(x.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        if (std::is_same_v<T, Complex64> && c.out[0].dtype() == DType::f32 && d.n % 2 == 0 && out.inner == 1)
            transform_to_real_pairs(static_cast<const Complex64*>(x.raw()), in, static_cast<Complex64*>(c.out[0].raw()),
                                    in_pairs(out), d);
        else if (c.out[0].dtype() == DType::f64)
            transform_to_real(x.data<T>(), in, c.out[0].data<double>(), out, d);
        else
            transform_to_real(x.data<T>(), in, c.out[0].data<float>(), out, d);
    });
    return true;
}

// Complex numbers are stored as pairs: only the type changes.
bool copy_pairs(const KernelCall& c) {
    const Tensor& given = c.tensor(0);
    const Tensor x = is_complex(given.dtype()) ? given : given.cast(part_of(c.out[0].dtype()));
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
