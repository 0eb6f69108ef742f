#include "backends/cpu/simd/fourier_lines.h"

#include <utility>

#include "backends/cpu/simd/fourier_squares.h"
#include "backends/cpu/simd/pack.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

using P = Pack<double>;
constexpr int kLanes = P::lanes;

template <class Part>
struct Wide {
    typedef Part V __attribute__((vector_size(kLanes * sizeof(Part))));
};

template <class Part>
[[gnu::always_inline]] inline P load(const Part* from) {
    typename Wide<Part>::V v;
    __builtin_memcpy(&v, from, sizeof v);
    return __builtin_convertvector(v, P::V);
}
template <class Part>
[[gnu::always_inline]] inline void store(P x, Part* to) {
    const auto v = __builtin_convertvector(x.v, typename Wide<Part>::V);
    __builtin_memcpy(to, &v, sizeof v);
}

template <int... L>
[[gnu::always_inline]] inline void part_pairs(P a, P b, P& re, P& im, std::integer_sequence<int, L...>) {
    re = __builtin_shufflevector(a.v, b.v, (2 * L)...);
    im = __builtin_shufflevector(a.v, b.v, (2 * L + 1)...);
}
template <int... L>
[[gnu::always_inline]] inline void join_pairs(P re, P im, P& a, P& b, std::integer_sequence<int, L...>) {
    a = __builtin_shufflevector(re.v, im.v, (L / 2 + (L % 2) * kLanes)...);
    b = __builtin_shufflevector(re.v, im.v, (kLanes / 2 + L / 2 + (L % 2) * kLanes)...);
}
using Lanes = std::make_integer_sequence<int, kLanes>;

// Elements that fill a register with their two parts.
constexpr int64_t kInRegister = kLanes / 2;

template <class Part>
void read_rows(const Part* pairs, int64_t step, int64_t count, SplitNumbers x, double sign) {
    int64_t i = 0;
    for (; i + kInRegister <= count; i += kInRegister) {
        P rows[kSideBySide];
        for (int64_t j = 0; j < kSideBySide; ++j) rows[j] = load(pairs + j * step + 2 * i);
        transpose(rows);
        for (int64_t c = 0; c < kSideBySide; c += kLanes)
            for (int64_t t = 0; t < kInRegister; ++t) {
                const int64_t at = (i + t) * kSideBySide + c;
                rows[c + 2 * t].store(x.re + at);
                (rows[c + 2 * t + 1] * P(sign)).store(x.im + at);
            }
    }
    for (; i < count; ++i)
        for (int64_t j = 0; j < kSideBySide; ++j) {
            x.re[i * kSideBySide + j] = static_cast<double>(pairs[j * step + 2 * i]);
            x.im[i * kSideBySide + j] = static_cast<double>(pairs[j * step + 2 * i + 1]) * sign;
        }
}

template <class Part>
void write_rows(SplitNumbers x, int64_t count, Part* pairs, int64_t step, double scale, double sign) {
    const double of_imaginary = scale * sign;
    int64_t i = 0;
    for (; i + kInRegister <= count; i += kInRegister) {
        P rows[kSideBySide];
        for (int64_t c = 0; c < kSideBySide; c += kLanes)
            for (int64_t t = 0; t < kInRegister; ++t) {
                const int64_t at = (i + t) * kSideBySide + c;
                rows[c + 2 * t] = P::load(x.re + at) * P(scale);
                rows[c + 2 * t + 1] = P::load(x.im + at) * P(of_imaginary);
            }
        transpose(rows);
        for (int64_t j = 0; j < kSideBySide; ++j) store(rows[j], pairs + j * step + 2 * i);
    }
    for (; i < count; ++i)
        for (int64_t j = 0; j < kSideBySide; ++j) {
            pairs[j * step + 2 * i] = static_cast<Part>(x.re[i * kSideBySide + j] * scale);
            pairs[j * step + 2 * i + 1] = static_cast<Part>(x.im[i * kSideBySide + j] * of_imaginary);
        }
}

template <class Part>
void read_columns(const Part* pairs, int64_t step, int64_t count, SplitNumbers x, double sign) {
    for (int64_t i = 0; i < count; ++i)
        for (int64_t c = 0; c < kSideBySide; c += kLanes) {
            const Part* from = pairs + i * step + 2 * c;
            P re, im;
            part_pairs(load(from), load(from + kLanes), re, im, Lanes());
            re.store(x.re + i * kSideBySide + c);
            (im * P(sign)).store(x.im + i * kSideBySide + c);
        }
}

template <class Part>
void write_columns(SplitNumbers x, int64_t count, Part* pairs, int64_t step, double scale, double sign) {
    const P of_imaginary(scale * sign);
    for (int64_t i = 0; i < count; ++i)
        for (int64_t c = 0; c < kSideBySide; c += kLanes) {
            const int64_t at = i * kSideBySide + c;
            P a, b;
            join_pairs(P::load(x.re + at) * P(scale), P::load(x.im + at) * of_imaginary, a, b, Lanes());
            Part* const to = pairs + i * step + 2 * c;
            store(a, to);
            store(b, to + kLanes);
        }
}

}  // namespace

// The transforms of the even and the odd elements are the sum and the difference of an element and the conjugate of its
// mirror image; together they give two elements of the spectrum.
void halves_of_spectrum(SplitNumbers x, SplitNumbers turns, int64_t half, SplitNumbers to) {
    for (int64_t k = 0; 2 * k <= half; ++k) {
        const P cosine(turns.re[k]), sine(turns.im[k]), both(0.5);
        for (int64_t c = 0; c < kSideBySide; c += kLanes) {
            const int64_t a = k * kSideBySide + c, b = (k ? half - k : 0) * kSideBySide + c;
            const int64_t mirror = (half - k) * kSideBySide + c;
            const P a_re = P::load(x.re + a), a_im = P::load(x.im + a);
            const P b_re = P::load(x.re + b), b_im = P::load(x.im + b);
            const P even_re = both * (a_re + b_re), even_im = both * (a_im - b_im);
            const P odd_re = both * (a_im + b_im), odd_im = both * (b_re - a_re);
            const P turned_re = products_apart(cosine, odd_re, sine, odd_im),
                    turned_im = products(cosine, odd_im, sine, odd_re);
            (even_re - turned_re).store(to.re + mirror);
            (turned_im - even_im).store(to.im + mirror);
            (even_re + turned_re).store(to.re + a);
            (even_im + turned_im).store(to.im + a);
        }
    }
}

void halves_of_signal(SplitNumbers x, SplitNumbers turns, int64_t half, SplitNumbers to) {
    for (int64_t k = 0; k < half; ++k) {
        // Of the elements that mirror themselves, the first and the last, only the real part counts.
        const P cosine(turns.re[k]), sine(turns.im[k]);
        for (int64_t c = 0; c < kSideBySide; c += kLanes) {
            const int64_t a = k * kSideBySide + c, b = (half - k) * kSideBySide + c;
            P a_im = P::load(x.im + a), b_im = P::load(x.im + b);
            if (k == 0) a_im = b_im = P(0);
            const P a_re = P::load(x.re + a), b_re = P::load(x.re + b);
            const P even_re = a_re + b_re, even_im = a_im - b_im, apart_re = a_re - b_re, apart_im = a_im + b_im;
            // Multiplied by the conjugate of the turn, then by i.
            const P re = products(apart_re, cosine, apart_im, sine),
                    im = products_apart(apart_im, cosine, apart_re, sine);
            (even_re - im).store(to.re + a);
            (P(0) - (even_im + re)).store(to.im + a);
        }
    }
}

const FourierLines<float> lines_f32 = {read_rows<float>, write_rows<float>, read_columns<float>, write_columns<float>};
const FourierLines<double> lines_f64 = {read_rows<double>, write_rows<double>, read_columns<double>,
                                        write_columns<double>};

}  // namespace lunaria::cpu::LUNARIA_ISA
