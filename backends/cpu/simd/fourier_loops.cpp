#include "backends/cpu/simd/fourier_loops.h"

#include "backends/cpu/simd/fourier_lines.h"
#include "backends/cpu/simd/fourier_squares.h"
#include "backends/cpu/simd/pack.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

// T is a double or a pack of them.
template <class T>
struct Pair {
    T re, im;
    friend Pair operator+(Pair a, Pair b) { return {a.re + b.re, a.im + b.im}; }
    friend Pair operator-(Pair a, Pair b) { return {a.re - b.re, a.im - b.im}; }
    friend Pair operator*(Pair a, Pair b) {
        return {products_apart(a.re, b.re, a.im, b.im), products(a.re, b.im, a.im, b.re)};
    }
    friend Pair operator*(T a, Pair b) { return {a * b.re, a * b.im}; }
};
template <class T>
[[gnu::always_inline]] inline Pair<T> times_minus_i(Pair<T> a) {
    return {a.im, -a.re};
}

// The transform of R numbers, in place. unit: e^(-2 pi i j / R), for odd radices above 5.
template <int R, class T>
[[gnu::always_inline]] inline void butterfly(Pair<T> (&x)[R], const SplitNumbers& unit) {
    if constexpr (R == 2) {
        Pair<T> a = x[0];
        x[0] = a + x[1];
        x[1] = a - x[1];
    } else if constexpr (R == 4) {
        Pair<T> a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = times_minus_i(x[1] - x[3]);
        x[0] = a + c;
        x[1] = b + d;
        x[2] = a - c;
        x[3] = b - d;
    } else if constexpr (R == 8) {
        Pair<T> even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
        butterfly<4>(even, unit);
        butterfly<4>(odd, unit);
        const T half_root(0.70710678118654752440);
        odd[1] = half_root * (odd[1] + times_minus_i(odd[1]));
        odd[2] = times_minus_i(odd[2]);
        odd[3] = half_root * (times_minus_i(odd[3]) - odd[3]);
        for (int k = 0; k < 4; ++k) {
            x[k] = even[k] + odd[k];
            x[k + 4] = even[k] - odd[k];
        }
    } else if constexpr (R == 3) {
        Pair<T> sum = x[1] + x[2], turned = T(0.86602540378443864676) * times_minus_i(x[1] - x[2]);
        Pair<T> middle = x[0] - T(0.5) * sum;
        x[0] = x[0] + sum;
        x[1] = middle + turned;
        x[2] = middle - turned;
    } else if constexpr (R == 5) {
        const T c1(0.30901699437494742410), c2(-0.80901699437494742410);
        const T s1(0.95105651629515357212), s2(0.58778525229247312917);
        Pair<T> sum1 = x[1] + x[4], sum2 = x[2] + x[3];
        Pair<T> apart1 = times_minus_i(x[1] - x[4]), apart2 = times_minus_i(x[2] - x[3]);
        Pair<T> m1 = x[0] + c1 * sum1 + c2 * sum2, m2 = x[0] + c2 * sum1 + c1 * sum2;
        Pair<T> t1 = {products(s1, apart1.re, s2, apart2.re), products(s1, apart1.im, s2, apart2.im)};
        Pair<T> t2 = {products_apart(s2, apart1.re, s1, apart2.re), products_apart(s2, apart1.im, s1, apart2.im)};
        x[0] = x[0] + sum1 + sum2;
        x[1] = m1 + t1;
        x[2] = m2 + t2;
        x[3] = m2 - t2;
        x[4] = m1 - t1;
    } else {
        static_assert(R % 2 == 1);
        constexpr int kHalf = R / 2;
        const Pair<T> first = x[0];
        Pair<T> sum[kHalf], apart[kHalf];
        for (int k = 0; k < kHalf; ++k) {
            sum[k] = x[k + 1] + x[R - 1 - k];
            apart[k] = times_minus_i(x[k + 1] - x[R - 1 - k]);
            x[0] = x[0] + sum[k];
        }
#pragma GCC unroll 6
        for (int r = 1; r <= kHalf; ++r) {
            Pair<T> middle = first, turned = {T(0), T(0)};
#pragma GCC unroll 6
            for (int k = 0; k < kHalf; ++k) {
                const int turn = r * (k + 1) % R;
                middle = middle + T(unit.re[turn]) * sum[k];
                turned = turned - T(unit.im[turn]) * apart[k];
            }
            x[r] = middle + turned;
            x[R - r] = middle - turned;
        }
    }
}

// Columns q side by side.
template <int R>
void along_columns(const FourierPass& f) {
    using P = Pack<double>;
    const int64_t steps = f.length / R, s = f.stride;
    const SplitNumbers from = f.from, to = f.to, unit = f.unit;
    for (int64_t p = f.p_begin; p < f.p_end; ++p) {
        Pair<double> root[R];
        for (int r = 1; r < R; ++r) root[r] = {f.roots.re[p * r * f.root_step], f.roots.im[p * r * f.root_step]};
        int64_t q = f.q_begin;
        // Inlined twice: behind a call, every number would wait for addresses from memory.
        auto column = [&](auto load, auto store) __attribute__((always_inline)) {
            Pair<P> x[R];
            const double *re = from.re + q + s * p, *im = from.im + q + s * p;
            for (int k = 0; k < R; ++k) x[k] = {load(re + k * steps * s), load(im + k * steps * s)};
            butterfly<R>(x, unit);
            double *to_re = to.re + q + s * R * p, *to_im = to.im + q + s * R * p;
            for (int r = 0; r < R; ++r) {
                if (r > 0) x[r] = Pair<P>{P(root[r].re), P(root[r].im)} * x[r];
                store(to_re + r * s, x[r].re);
                store(to_im + r * s, x[r].im);
            }
        };
        for (; q + P::lanes <= f.q_end; q += P::lanes)
            column([](const double* a) { return P::load(a); }, [](double* a, P v) { v.store(a); });
        // By packs as well: of single numbers the compiler fuses other products with sums.
        const int rest = static_cast<int>(f.q_end - q);
        if (rest > 0)
            column([rest](const double* a) { return load_part(a, rest); },
                   [rest](double* a, P v) { store_part(a, v, rest); });
    }
}

// With a single column, steps p side by side; the results of a step are contiguous.
template <int R>
void along_steps(const FourierPass& f) {
    using P = Pack<double>;
    const int64_t steps = f.length / R;
    for (int64_t p = f.p_begin; p < f.p_end; p += P::lanes) {
        const int count = static_cast<int>(f.p_end - p < P::lanes ? f.p_end - p : P::lanes);
        auto load = [count](const double* a) { return count == P::lanes ? P::load(a) : load_part(a, count); };
        Pair<P> x[R];
        for (int k = 0; k < R; ++k) x[k] = {load(f.from.re + p + k * steps), load(f.from.im + p + k * steps)};
        butterfly<R>(x, f.unit);
        alignas(kBytes) double re[R][P::lanes], im[R][P::lanes];
        for (int r = 0; r < R; ++r) {
            const int64_t at = (r - 1) * steps + p;
            if (r > 0) x[r] = Pair<P>{load(f.roots.re + at), load(f.roots.im + at)} * x[r];
            x[r].re.store(re[r]);
            x[r].im.store(im[r]);
        }
        for (int lane = 0; lane < count; ++lane)
            for (int r = 0; r < R; ++r) {
                f.to.re[R * (p + lane) + r] = re[r][lane];
                f.to.im[R * (p + lane) + r] = im[r][lane];
            }
    }
}

template <int R>
void pass_of(const FourierPass& f) {
    f.stride == 1 ? along_steps<R>(f) : along_columns<R>(f);
}

void pass(const FourierPass& f) {
    switch (f.radix) {
        case 2:
            return pass_of<2>(f);
        case 3:
            return pass_of<3>(f);
        case 4:
            return pass_of<4>(f);
        case 5:
            return pass_of<5>(f);
        case 7:
            return pass_of<7>(f);
        case 8:
            return pass_of<8>(f);
        case 11:
            return pass_of<11>(f);
        default:
            return pass_of<13>(f);
    }
}

void multiply(SplitNumbers x, SplitNumbers factor, int64_t count, int64_t width, bool conjugate) {
    using P = Pack<double>;
    const double sign = conjugate ? -1.0 : 1.0;
    auto one = [&](int64_t j, Pair<double> f) {
        const Pair<double> y = Pair<double>{x.re[j], x.im[j]} * f;
        x.re[j] = y.re;
        x.im[j] = sign * y.im;
    };
    auto pack = [&](int64_t j, Pair<P> f) {
        const Pair<P> y = Pair<P>{P::load(x.re + j), P::load(x.im + j)} * f;
        y.re.store(x.re + j);
        (P(sign) * y.im).store(x.im + j);
    };
    if (width == 1) {
        int64_t i = 0;
        for (; i + P::lanes <= count; i += P::lanes) pack(i, {P::load(factor.re + i), P::load(factor.im + i)});
        for (; i < count; ++i) one(i, {factor.re[i], factor.im[i]});
        return;
    }
    for (int64_t i = 0; i < count; ++i) {
        const double c = factor.re[i], s = factor.im[i];
        int64_t j = i * width;
        for (; j + P::lanes <= (i + 1) * width; j += P::lanes) pack(j, {P(c), P(s)});
        for (; j < (i + 1) * width; ++j) one(j, {c, s});
    }
}

// Squares of kSideBySide rows and columns, as many as there are; each cache line is written at once. Leaves the powers
// for the next row in turn and returns its index.
int64_t turn_squares(SplitNumbers x, SplitNumbers roots, int64_t count, SplitNumbers to, int64_t first, int64_t length,
                     SplitNumbers turn) {
    using P = Pack<double>;
    constexpr int64_t kLanes = P::lanes;
    const int64_t end = count - count % kSideBySide;
    for (int64_t c = 0; c < kSideBySide; c += kLanes) {
        const Pair<P> root{P::load(roots.re + c), P::load(roots.im + c)};
        Pair<P> powers[kSideBySide + 1];
        powers[0] = {P(1), P(0)};
        for (int64_t i = 0; i < kSideBySide; ++i) powers[i + 1] = powers[i] * root;
        Pair<P> power = powers[0];
        for (int64_t begin = 0; begin < end; begin += kSideBySide) {
            P re[kSideBySide], im[kSideBySide];
            for (int64_t i = 0; i < kSideBySide; ++i) {
                const int64_t at = (begin + i) * kSideBySide + c;
                const Pair<P> turned = Pair<P>{P::load(x.re + at), P::load(x.im + at)} * (power * powers[i]);
                re[i] = turned.re;
                im[i] = turned.im;
            }
            power = power * powers[kSideBySide];
            transpose(re);
            transpose(im);
            double* to_re = to.re + begin * length + (first + c) * kSideBySide;
            double* to_im = to.im + begin * length + (first + c) * kSideBySide;
            for (int64_t j = 0; j < kLanes; ++j)
                for (int64_t i = 0; i < kSideBySide; i += kLanes) {
                    re[i + j].store(to_re + j * kSideBySide + i);
                    im[i + j].store(to_im + j * kSideBySide + i);
                }
        }
        power.re.store(turn.re + c);
        power.im.store(turn.im + c);
    }
    return end;
}

void turn_and_part(SplitNumbers x, SplitNumbers roots, int64_t count, int64_t width, SplitNumbers to, int64_t first,
                   int64_t length) {
    // The powers of the roots one after another: each adds a rounding in f64.
    double turn_re[kSideBySide], turn_im[kSideBySide];
    for (int64_t j = 0; j < width; ++j) {
        turn_re[j] = 1;
        turn_im[j] = 0;
    }
    int64_t begin = 0;
    if (width == kSideBySide) begin = turn_squares(x, roots, count, to, first, length, {turn_re, turn_im});
    for (; begin < count; begin += kSideBySide) {
        const int64_t rows = count - begin < kSideBySide ? count - begin : kSideBySide;
        double *to_re = to.re + begin * length + first * rows, *to_im = to.im + begin * length + first * rows;
        for (int64_t i = 0; i < rows; ++i) {
            const double *from_re = x.re + (begin + i) * width, *from_im = x.im + (begin + i) * width;
            for (int64_t j = 0; j < width; ++j) {
                const double c = turn_re[j], s = turn_im[j];
                to_re[j * rows + i] = products_apart(from_re[j], c, from_im[j], s);
                to_im[j * rows + i] = products(from_re[j], s, from_im[j], c);
                turn_re[j] = products_apart(c, roots.re[j], s, roots.im[j]);
                turn_im[j] = products(c, roots.im[j], s, roots.re[j]);
            }
        }
    }
}

void split(const float* pairs, SplitNumbers x, int64_t count, double sign) {
    for (int64_t i = 0; i < count; ++i) {
        x.re[i] = static_cast<double>(pairs[2 * i]);
        x.im[i] = static_cast<double>(pairs[2 * i + 1]) * sign;
    }
}

void join(SplitNumbers x, float* pairs, int64_t count, double scale, double sign) {
    const double of_imaginary = scale * sign;
    for (int64_t i = 0; i < count; ++i) {
        pairs[2 * i] = static_cast<float>(x.re[i] * scale);
        pairs[2 * i + 1] = static_cast<float>(x.im[i] * of_imaginary);
    }
}

// Elements of the spectrum of one real signal, at most kPiece, none of which mirrors itself.
constexpr int64_t kPiece = 64;
void piece_of_spectrum(SplitNumbers x, SplitNumbers turns, int64_t half, int64_t begin, int64_t count, double scale,
                       double sign, float* pairs) {
    double re[kPiece], im[kPiece];
    const double *a_re = x.re + begin, *a_im = x.im + begin, *b_re = x.re + half - begin, *b_im = x.im + half - begin;
    const double *cosine = turns.re + begin, *sine = turns.im + begin;
    for (int64_t k = 0; k < count; ++k) {
        const double even_re = a_re[k] + b_re[-k], even_im = a_im[k] - b_im[-k];
        const double odd_re = a_im[k] + b_im[-k], odd_im = b_re[-k] - a_re[k];
        re[k] = even_re + products_apart(cosine[k], odd_re, sine[k], odd_im);
        im[k] = even_im + products(cosine[k], odd_im, sine[k], odd_re);
    }
    join({re, im}, pairs + 2 * begin, count, 0.5 * scale, sign);
}

void real_spectrum(SplitNumbers x, SplitNumbers turns, int64_t half, int64_t width, int64_t begin, int64_t end,
                   double scale, double sign, float* pairs) {
    for (int64_t k = begin; k <= half && k < end; ++k) {
        if (width == 1 && k > 0 && k + 1 < half && k + 1 < end) {
            const int64_t last = half < end ? half : end, count = last - k < kPiece ? last - k : kPiece;
            piece_of_spectrum(x, turns, half, k, count, scale, sign, pairs);
            k += count - 1;
            continue;
        }
        const int64_t a = k % half * width, b = (half - k) % half * width;
        const double cosine = turns.re[k], sine = turns.im[k];
        float* to = pairs + 2 * k * width;
        for (int64_t j = 0; j < width; ++j) {
            // The transforms of the even and the odd elements.
            const double even_re = 0.5 * (x.re[a + j] + x.re[b + j]), even_im = 0.5 * (x.im[a + j] - x.im[b + j]);
            const double odd_re = 0.5 * (x.im[a + j] + x.im[b + j]), odd_im = 0.5 * (x.re[b + j] - x.re[a + j]);
            to[2 * j] = static_cast<float>((even_re + products_apart(cosine, odd_re, sine, odd_im)) * scale);
            to[2 * j + 1] = static_cast<float>((even_im + products(cosine, odd_im, sine, odd_re)) * scale * sign);
        }
    }
    // The other half mirrors this one.
    for (int64_t k = begin > half ? begin : half + 1; k < end; ++k) {
        const float* from = pairs + 2 * (2 * half - k) * width;
        float* to = pairs + 2 * k * width;
        for (int64_t j = 0; j < width; ++j) {
            to[2 * j] = from[2 * j];
            to[2 * j + 1] = -from[2 * j + 1];
        }
    }
}

void real_signal(const float* pairs, SplitNumbers turns, int64_t half, int64_t width, int64_t begin, int64_t end,
                 SplitNumbers x) {
    for (int64_t k = begin; k < end; ++k) {
        const float *a = pairs + 2 * k * width, *b = pairs + 2 * (half - k) * width;
        const double cosine = turns.re[k], sine = turns.im[k];
        // Of the elements that mirror themselves, the first and the last, only the real part counts.
        const double counts = k == 0 ? 0 : 1;
        for (int64_t j = 0; j < width; ++j) {
            const double a_re = static_cast<double>(a[2 * j]), a_im = static_cast<double>(a[2 * j + 1]) * counts;
            const double b_re = static_cast<double>(b[2 * j]), b_im = static_cast<double>(b[2 * j + 1]) * counts;
            const double even_re = a_re + b_re, even_im = a_im - b_im, apart_re = a_re - b_re, apart_im = a_im + b_im;
            // Multiplied by the conjugate of the turn, then by i.
            const double re = products(apart_re, cosine, apart_im, sine);
            const double im = products_apart(apart_im, cosine, apart_re, sine);
            x.re[k * width + j] = even_re - im;
            x.im[k * width + j] = -(even_im + re);
        }
    }
}

// Squares of floats neither overflow nor underflow as doubles. An infinite part makes the length infinite, whatever the
// other one is.
void magnitude_f32(const float* pairs, float* out, int64_t count) {
    constexpr float kInfinity = __builtin_inff();
    for (int64_t i = 0; i < count; ++i) {
        const float re = pairs[2 * i], im = pairs[2 * i + 1];
        const double x = static_cast<double>(re), y = static_cast<double>(im);
        const auto length = static_cast<float>(__builtin_sqrt(x * x + y * y));
        out[i] = __builtin_fabsf(re) == kInfinity || __builtin_fabsf(im) == kInfinity ? kInfinity : length;
    }
}

// Doubles whose squares are ordinary numbers, which a block of them mostly is; the others one by one.
void magnitude_f64(const double* pairs, double* out, int64_t count) {
    constexpr double kLeast = 0x1p-480, kMost = 0x1p500;
    for (int64_t from = 0; from < count; from += kPiece) {
        const int64_t some = count - from < kPiece ? count - from : kPiece;
        const double* x = pairs + 2 * from;
        bool ordinary = true;
        for (int64_t i = 0; i < 2 * some; ++i) {
            const double size = __builtin_fabs(x[i]);
            ordinary &= (size >= kLeast) & (size <= kMost);
        }
        if (ordinary)
            for (int64_t i = 0; i < some; ++i)
                out[from + i] = __builtin_sqrt(products(x[2 * i], x[2 * i], x[2 * i + 1], x[2 * i + 1]));
        else
            for (int64_t i = 0; i < some; ++i) out[from + i] = __builtin_hypot(x[2 * i], x[2 * i + 1]);
    }
}

}  // namespace

const FourierLoops fourier_loops = {
    pass,          split,         join,      real_spectrum, real_signal,        multiply,        turn_and_part,
    magnitude_f32, magnitude_f64, lines_f32, lines_f64,     halves_of_spectrum, halves_of_signal};

}  // namespace lunaria::cpu::LUNARIA_ISA
