#include "backends/cpu/fourier_plan.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numbers>

#include "backends/cpu/elementwise.h"
#include "core/base/interrupt.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

const FourierLoops& fourier_loops() {
    switch (current_isa()) {
        case Isa::avx512:
            return avx512::fourier_loops;
        case Isa::avx2:
            return avx2::fourier_loops;
        default:
            return v2::fourier_loops;
    }
}

namespace {

void set_root(const SplitArray& a, int64_t at, double turns) {
    // Quarters of a turn are exact: in f64, pi itself has a sine of 1e-16.
    const double quarters = 4.0 * turns, nearest = std::rint(quarters), angle = 0.5 * std::numbers::pi * quarters;
    if (quarters != nearest) return a.set(static_cast<size_t>(at), std::cos(angle), std::sin(angle));
    constexpr double kSine[] = {0, 1, 0, -1};
    const auto quarter = static_cast<size_t>(static_cast<int64_t>(nearest) & 3);
    a.set(static_cast<size_t>(at), kSine[(quarter + 1) % 4], kSine[quarter]);
}

SplitArray roots_of(int64_t n) {
    SplitArray roots(static_cast<size_t>(n));
    for_elements(n, [&](int64_t i) { set_root(roots, i, -static_cast<double>(i) / static_cast<double>(n)); });
    return roots;
}

// The length of the columns of a long signal: the longest for which columns, and rows that are not much longer, go
// through side by side in a core's cache. 0: the signal is not long, or does not divide well.
int64_t columns_of(int64_t n) {
    constexpr int64_t kLong = 1 << 15, kLongestStep = 4096;
    if (n < kLong) return 0;
    auto length = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
    while (n % length != 0) --length;
    return n / length <= kLongestStep ? length : 0;
}

// Factors of 8 and 4 first: they cost least, and the columns that they leave fill registers. Empty if n has a large
// prime factor.
std::vector<int> radices_of(int64_t n) {
    std::vector<int> radices;
    for (int radix : {8, 4, 2, 3, 5, 7, 11, 13})
        for (; n % radix == 0; n /= radix) radices.push_back(radix);
    if (n != 1) radices.clear();
    // Two factors of 4 cost less than an 8 and a 2.
    const auto two = std::ranges::find(radices, 2);
    if (two != radices.end() && two != radices.begin() && two[-1] == 8) two[-1] = *two = 4;
    return radices;
}

// The length from `least` on with the cheapest transform, about: one of small factors.
int64_t cheapest_from(int64_t least) {
    int64_t limit = 1;
    while (limit < least) limit *= 2;
    auto cost = [](int64_t n) {
        double each = 0;
        for (const int radix : radices_of(n)) each += radix == 8 ? 1.2 : radix <= 4 ? 1 : radix == 5 ? 1.5 : 2;
        // Columns and rows of long signals exist only for lengths that divide well.
        return each * static_cast<double>(n) * (n >= (1 << 15) && columns_of(n) == 0 ? 2 : 1);
    };
    int64_t best = limit;
    double lowest = cost(limit);
    for (int64_t threes = 1; threes <= limit; threes *= 3)
        for (int64_t fives = threes; fives <= limit; fives *= 5) {
            int64_t n = fives;
            while (n < least) n *= 2;
            if (n >= limit) continue;
            if (const double c = cost(n); c < lowest) {
                lowest = c;
                best = n;
            }
        }
    return best;
}

void multiply(const SplitArray& x, const SplitArray& factor, int64_t count, int64_t signals, bool conjugate) {
    const SplitNumbers numbers = x.numbers(), factors = factor.numbers();
    in_ranges(count, kElementsBetweenLooks, [&](int64_t begin, int64_t end) {
        fourier_loops().multiply({numbers.re + begin * signals, numbers.im + begin * signals},
                                 {factors.re + begin, factors.im + begin}, end - begin, signals, conjugate);
    });
}

int64_t times_modulo(int64_t a, int64_t b, int64_t n) {
    return static_cast<int64_t>(static_cast<unsigned __int128>(a) * static_cast<uint64_t>(b) %
                                static_cast<uint64_t>(n));
}

bool is_prime(int64_t n) {
    for (int64_t d = 2; d * d <= n; ++d)
        if (n % d == 0) return false;
    return n > 1;
}

// The least number whose powers modulo the prime n are all numbers but 0; `radices` are the factors of n - 1.
int64_t generator_of(int64_t n, const std::vector<int>& radices) {
    auto power = [&](int64_t base, int64_t exponent) {
        int64_t result = 1;
        for (; exponent > 0; exponent /= 2, base = times_modulo(base, base, n))
            if (exponent % 2) result = times_modulo(result, base, n);
        return result;
    };
    auto generates = [&](int64_t g) {
        return std::ranges::all_of(radices, [&](int radix) {
            const int prime = radix == 8 || radix == 4 ? 2 : radix;
            return power(g, (n - 1) / prime) != 1;
        });
    };
    int64_t g = 2;
    while (!generates(g)) ++g;
    return g;
}

void copy(const SplitNumbers& from, int64_t count, const SplitNumbers& to) {
    // Most runs have this length, for which the copy is a few instructions.
    if (count == kSideBySide) {
        std::copy_n(from.re, kSideBySide, to.re);
        std::copy_n(from.im, kSideBySide, to.im);
        return;
    }
    std::copy_n(from.re, count, to.re);
    std::copy_n(from.im, count, to.im);
}

}  // namespace

FourierPlan::FourierPlan(int64_t n) : n_(n), radices_(radices_of(n)) {
    if (n == 1) return;
    if (radices_.empty() && make_cyclic()) return;
    if (radices_.empty()) {
        const int64_t padded = cheapest_from(2 * n - 1);
        padded_ = of(padded);
        chirp_ = SplitArray(static_cast<size_t>(n));
        for_elements(n, [&](int64_t i) {
            // i² modulo 2n: the angle stays small, and exact.
            const auto square =
                static_cast<unsigned __int128>(i) * static_cast<uint64_t>(i) % (2 * static_cast<uint64_t>(n));
            set_root(chirp_, i, -0.5 * static_cast<double>(static_cast<uint64_t>(square)) / static_cast<double>(n));
        });
        filter_ = SplitArray(static_cast<size_t>(padded));
        chirp_back_ = SplitArray(static_cast<size_t>(n));
        const SplitNumbers chirp = chirp_.numbers();
        for_elements(n, [&](int64_t i) { chirp_back_.set(static_cast<size_t>(i), chirp.re[i], -chirp.im[i]); });
        for_elements(padded - n, [&](int64_t i) { filter_.set(static_cast<size_t>(n + i), 0, 0); });
        for_elements(n, [&](int64_t i) {
            for (const int64_t at : {i, (padded - i) % padded})
                filter_.set(static_cast<size_t>(at), chirp.re[i], -chirp.im[i]);
        });
        SplitArray scratch(static_cast<size_t>(padded));
        (*padded_)(filter_, scratch, 1);
        const SplitNumbers filter = filter_.numbers();
        const double scale = 1.0 / static_cast<double>(padded);
        for_elements(padded, [&](int64_t i) {
            filter_.set(static_cast<size_t>(i), filter.re[i] * scale, filter.im[i] * scale);
        });
        return;
    }
    if (const int64_t length = columns_of(n)) {
        across_ = of(length);
        along_ = of(n / length);
        return;
    }
    roots_ = roots_of(n);
    const int64_t radix = radices_.front(), steps = n / radix;
    first_roots_ = SplitArray(static_cast<size_t>((radix - 1) * steps));
    const SplitNumbers root = roots_.numbers();
    for (int64_t r = 1; r < radix; ++r)
        for_elements(steps, [&](int64_t p) {
            first_roots_.set(static_cast<size_t>((r - 1) * steps + p), root.re[r * p], root.im[r * p]);
        });
    units_.resize(radices_.size());
    for (size_t i = 0; i < radices_.size(); ++i)
        if (radices_[i] > 5 && radices_[i] != 8) units_[i] = roots_of(radices_[i]);
}

// Indices 1 .. n - 1 are powers g^q; with them the transform is a convolution over q of x[g^q] and e^(-2 pi i g^-q /
// n), whose length is n - 1.
bool FourierPlan::make_cyclic() {
    // For smaller lengths the order of the powers costs more than twice the length does.
    constexpr int64_t kLeast = 1 << 13;
    const int64_t length = n_ - 1;
    const std::vector<int> radices = radices_of(length);
    if (n_ < kLeast || radices.empty() || !is_prime(n_)) return false;
    cyclic_ = of(length);
    powers_.resize(static_cast<size_t>(length));
    const int64_t g = generator_of(n_, radices);
    int64_t power = 1;
    for (int64_t& each : powers_) {
        each = power;
        power = times_modulo(power, g, n_);
    }
    filter_ = SplitArray(static_cast<size_t>(length));
    for_elements(length, [&](int64_t q) {
        const int64_t at = powers_[static_cast<size_t>(q ? length - q : 0)];
        set_root(filter_, q, -static_cast<double>(at) / static_cast<double>(n_));
    });
    SplitArray scratch(static_cast<size_t>(length));
    (*cyclic_)(filter_, scratch, 1);
    const SplitNumbers filter = filter_.numbers();
    const double scale = 1.0 / static_cast<double>(length);
    for_elements(length,
                 [&](int64_t i) { filter_.set(static_cast<size_t>(i), filter.re[i] * scale, filter.im[i] * scale); });
    return true;
}

void FourierPlan::convolve_cyclic(SplitArray& x, SplitArray& scratch, int64_t signals) const {
    const int64_t length = n_ - 1;
    // Element 0 of each signal, and of its transform.
    std::vector<double> first(static_cast<size_t>(signals) * 4);
    const SplitNumbers zero{first.data(), first.data() + signals}, sum{zero.im + signals, zero.im + 2 * signals};
    copy(x.numbers(), signals, zero);
    for_elements(length, [&, from = x.numbers(), to = scratch.numbers()](int64_t q) {
        copy(behind(from, powers_[static_cast<size_t>(q)] * signals), signals, behind(to, q * signals));
    });
    (*cyclic_)(scratch, x, signals);
    copy(scratch.numbers(), signals, sum);
    // The inverse transform by way of conjugates.
    multiply(scratch, filter_, length, signals, true);
    (*cyclic_)(scratch, x, signals);
    const SplitNumbers to = x.numbers(), from = scratch.numbers();
    for (int64_t j = 0; j < signals; ++j) {
        to.re[j] = zero.re[j] + sum.re[j];
        to.im[j] = zero.im[j] + sum.im[j];
    }
    for_elements(length, [&](int64_t q) {
        const int64_t at = powers_[static_cast<size_t>(q ? length - q : 0)] * signals;
        for (int64_t j = 0; j < signals; ++j) {
            to.re[at + j] = zero.re[j] + from.re[q * signals + j];
            to.im[at + j] = zero.im[j] - from.im[q * signals + j];
        }
    });
}

void FourierPlan::pass_by_pass(SplitArray& x, SplitArray& scratch, int64_t signals) const {
    const FourierLoops& loops = fourier_loops();
    FourierPass pass;
    pass.length = n_;
    pass.stride = signals;
    for (size_t i = 0; i < radices_.size(); ++i) {
        pass.radix = radices_[i];
        pass.from = x.numbers();
        pass.to = scratch.numbers();
        pass.roots = pass.stride == 1 ? first_roots_.numbers() : roots_.numbers();
        pass.root_step = n_ / pass.length;
        pass.unit = units_[i].numbers();
        const int64_t steps = pass.length / pass.radix;
        const int64_t columns = std::min(pass.stride, kElementsBetweenLooks),
                      rows = std::max<int64_t>(kElementsBetweenLooks / columns, 1);
        for (int64_t p = 0; p < steps; p += rows)
            for (int64_t q = 0; q < pass.stride; q += columns) {
                if (p > 0 || q > 0) poll_interrupt();
                pass.p_begin = p;
                pass.p_end = std::min(steps, p + rows);
                pass.q_begin = q;
                pass.q_end = std::min(pass.stride, q + columns);
                loops.pass(pass);
            }
        x.swap(scratch);
        pass.length = steps;
        pass.stride *= pass.radix;
    }
}

// As a matrix of n = columns' length x rows' length: element (i, j) of the columns' transforms is turned by e^(-2 pi i
// (i j) / n), and the rows' results go to every columns-th place. So the data passes through the cache twice, and not
// once for every factor of n. read(at, count, to) fetches elements of the signal, write(at, count, from) takes those of
// the transform, which it may change.
template <class Read, class Write>
void FourierPlan::in_two_steps(const SplitArray& between, Read read, Write write) const {
    const FourierLoops& loops = fourier_loops();
    const int64_t height = across_->n_, width = along_->n_;
    // Calls work(room, work room, first, count) for lines side by side.
    auto side_by_side = [](int64_t lines, const FourierPlan& plan, auto work) {
        constexpr int64_t kWorthwhile = 8192;
        const int64_t bundles = (lines + kSideBySide - 1) / kSideBySide;
        parallel_for(bundles, kWorthwhile / (plan.n_ * kSideBySide) + 1, [&](int64_t begin, int64_t end) {
            SplitArray room(plan.room(kSideBySide)), other(plan.room(kSideBySide));
            for (int64_t i = begin; i < end; ++i)
                work(room, other, i * kSideBySide, std::min(kSideBySide, lines - i * kSideBySide));
        });
    };
    side_by_side(width, *across_, [&](SplitArray& column, SplitArray& other, int64_t first, int64_t count) {
        const SplitNumbers in = column.numbers();
        for (int64_t i = 0; i < height; ++i) read(i * width + first, count, behind(in, i * count));
        (*across_)(column, other, count);
        SplitArray roots(kSideBySide);
        for (int64_t j = 0; j < count; ++j)
            set_root(roots, j, -static_cast<double>(first + j) / static_cast<double>(n_));
        loops.turn_and_part(column.numbers(), roots.numbers(), height, count, between.numbers(), first, width);
    });
    side_by_side(height, *along_, [&](SplitArray& row, SplitArray& other, int64_t first, int64_t count) {
        copy(behind(between.numbers(), first * width), count * width, row.numbers());
        (*along_)(row, other, count);
        const SplitNumbers out = row.numbers();
        for (int64_t i = 0; i < width; ++i) write(i * height + first, count, behind(out, i * count));
    });
}

void FourierPlan::operator()(SplitArray& x, SplitArray& scratch, int64_t signals) const {
    const SplitNumbers numbers = x.numbers();
    if (across_)
        return in_two_steps(
            scratch, [&](int64_t at, int64_t count, SplitNumbers to) { copy(behind(numbers, at), count, to); },
            [&](int64_t at, int64_t count, SplitNumbers from) { copy(from, count, behind(numbers, at)); });
    if (cyclic_) return convolve_cyclic(x, scratch, signals);
    if (!padded_) return pass_by_pass(x, scratch, signals);
    if (padded_->across_) return convolve_long(x, scratch);
    const auto used = n_ * signals;
    multiply(x, chirp_, n_, signals, false);
    for_elements(padded_->n_ * signals - used, [&](int64_t i) { x.set(static_cast<size_t>(used + i), 0, 0); });
    (*padded_)(x, scratch, signals);
    // The inverse transform by way of conjugates.
    multiply(x, filter_, padded_->n_, signals, true);
    (*padded_)(x, scratch, signals);
    multiply(x, chirp_back_, n_, signals, true);
}

// The same for long transforms, in whose passes the products are computed.
void FourierPlan::convolve_long(const SplitArray& x, const SplitArray& scratch) const {
    const FourierLoops& loops = fourier_loops();
    const SplitNumbers numbers = x.numbers(), chirp = chirp_.numbers(), filter = filter_.numbers(),
                       back = chirp_back_.numbers();
    padded_->in_two_steps(
        scratch,
        [&](int64_t at, int64_t count, SplitNumbers to) {
            const int64_t given = std::clamp<int64_t>(n_ - at, 0, count);
            copy(behind(numbers, at), given, to);
            loops.multiply(to, behind(chirp, at), given, 1, false);
            std::fill_n(to.re + given, count - given, 0.0);
            std::fill_n(to.im + given, count - given, 0.0);
        },
        [&](int64_t at, int64_t count, SplitNumbers from) {
            loops.multiply(from, behind(filter, at), count, 1, true);
            copy(from, count, behind(numbers, at));
        });
    padded_->in_two_steps(
        scratch, [&](int64_t at, int64_t count, SplitNumbers to) { copy(behind(numbers, at), count, to); },
        [&](int64_t at, int64_t count, SplitNumbers from) {
            const int64_t wanted = std::clamp<int64_t>(n_ - at, 0, count);
            loops.multiply(from, behind(back, at), wanted, 1, true);
            copy(from, wanted, behind(numbers, at));
        });
}

void FourierPlan::transform_long(const float* from, float* to, const SplitArray& scratch, double sign,
                                 double scale) const {
    const FourierLoops& loops = fourier_loops();
    in_two_steps(
        scratch,
        [&](int64_t at, int64_t count, SplitNumbers numbers) { loops.split(from + 2 * at, numbers, count, sign); },
        [&](int64_t at, int64_t count, SplitNumbers numbers) { loops.join(numbers, to + 2 * at, count, scale, sign); });
}

SplitNumbers FourierPlan::half_turns() const {
    std::call_once(has_half_turns_, [&] {
        half_turns_ = SplitArray(static_cast<size_t>(n_ + 1));
        // Computes the sine for every kStep-th turn, and those between as products: sines take long.
        constexpr int64_t kStep = 256;
        auto turns = [&](int64_t k) { return -0.5 * static_cast<double>(k) / static_cast<double>(n_); };
        SplitArray near(kStep), far(1);
        for (int64_t k = 0; k < std::min(kStep, n_ + 1); ++k) set_root(near, k, turns(k));
        const SplitNumbers b = near.numbers(), a = far.numbers();
        for_elements(n_ + 1, [&](int64_t k) {
            const int64_t j = k % kStep;
            if (j == 0) set_root(far, 0, turns(k));
            half_turns_.set(static_cast<size_t>(k), a.re[0] * b.re[j] - a.im[0] * b.im[j],
                            a.re[0] * b.im[j] + a.im[0] * b.re[j]);
        });
    });
    return half_turns_.numbers();
}

std::shared_ptr<const FourierPlan> FourierPlan::of(int64_t n) {
    constexpr int64_t kLargestKept = 1 << 18;
    constexpr size_t kKept = 8;
    static std::mutex mutex;
    static std::vector<std::shared_ptr<const FourierPlan>> kept;  // the one used last comes last
    {
        std::lock_guard lock(mutex);
        for (auto at = kept.begin(); at != kept.end(); ++at)
            if ((*at)->n_ == n) {
                std::rotate(at, at + 1, kept.end());
                return kept.back();
            }
    }
    auto plan = std::make_shared<const FourierPlan>(n);
    if (n <= kLargestKept) {
        std::lock_guard lock(mutex);
        if (kept.size() == kKept) kept.erase(kept.begin());
        kept.push_back(plan);
    }
    return plan;
}

}  // namespace lunaria::cpu
