#include "core/watch/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/base/error.h"

namespace lunaria::watch {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kBlock = 4096;  // elements for which a result is kept in registers

// Loops over float32, which every tensor of a watched program goes through, are compiled for AVX2 as well.
bool has_avx2() {
    static const bool has = __builtin_cpu_supports("avx2");
    return has;
}

// Sums in lanes are written with vectors: the compiler's own choice for an array of lanes moves them about at each
// step.
constexpr int kLanes = 8;
typedef float Floats __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));
typedef int32_t Words __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));
constexpr int32_t kMagnitude = 0x7fffffff;  // the bits of a float without its sign

// The largest magnitude, as bits: of floats without their signs the order is that of integers, and what is not finite
// is above all finite ones.
[[gnu::always_inline]] inline uint32_t largest_bits(const uint32_t* x, int64_t count) {
    uint32_t most = 0;
    for (int64_t i = 0; i < count; ++i) most = std::max(most, x[i] & static_cast<uint32_t>(kMagnitude));
    return most;
}
[[gnu::target("avx2")]] uint32_t largest_bits_avx2(const uint32_t* x, int64_t count) { return largest_bits(x, count); }

[[gnu::always_inline]] inline int32_t count_within(const float* x, int64_t count, float low, float high) {
    int32_t within = 0;
    for (int64_t i = 0; i < count; ++i)
        within += static_cast<int32_t>(x[i] >= low) & static_cast<int32_t>(x[i] <= high);
    return within;
}
[[gnu::target("avx2")]] int32_t count_within_avx2(const float* x, int64_t count, float low, float high) {
    return count_within(x, count, low, high);
}

// The sum of |x|, in lanes, so that the compiler may add several at once.
[[gnu::always_inline]] inline double absolute_sum_of(const float* x, int64_t count) {
    Floats lanes[2] = {};
    int64_t i = 0;
    for (; i + 2 * kLanes <= count; i += 2 * kLanes)
        for (int v = 0; v < 2; ++v) {
            const Words bits = *reinterpret_cast<const Words*>(x + i + v * kLanes) & kMagnitude;
            lanes[v] += __builtin_bit_cast(Floats, bits);
        }
    double sum = 0;
    for (const Floats& lane : lanes)
        for (int k = 0; k < kLanes; ++k) sum += static_cast<double>(lane[k]);
    for (; i < count; ++i) sum += std::abs(static_cast<double>(x[i]));
    return sum;
}
[[gnu::target("avx2")]] double absolute_sum_avx2(const float* x, int64_t count) { return absolute_sum_of(x, count); }
double absolute_sum(const float* x, int64_t count) {
    return has_avx2() ? absolute_sum_avx2(x, count) : absolute_sum_of(x, count);
}

struct Sums {
    double changed = 0, old = 0;
};
// |now - before| and |before| added up.
[[gnu::always_inline]] inline Sums differences_of(const float* now, const float* before, int64_t count) {
    Floats changed[2] = {}, old[2] = {};
    int64_t i = 0;
    for (; i + 2 * kLanes <= count; i += 2 * kLanes)
        for (int v = 0; v < 2; ++v) {
            const Floats a = *reinterpret_cast<const Floats*>(now + i + v * kLanes),
                         b = *reinterpret_cast<const Floats*>(before + i + v * kLanes), distance = a - b;
            changed[v] += __builtin_bit_cast(Floats, __builtin_bit_cast(Words, distance) & kMagnitude);
            old[v] += __builtin_bit_cast(Floats, __builtin_bit_cast(Words, b) & kMagnitude);
        }
    Sums sums;
    for (int v = 0; v < 2; ++v)
        for (int k = 0; k < kLanes; ++k) {
            sums.changed += static_cast<double>(changed[v][k]);
            sums.old += static_cast<double>(old[v][k]);
        }
    for (; i < count; ++i) {
        sums.changed += std::abs(static_cast<double>(now[i]) - static_cast<double>(before[i]));
        sums.old += std::abs(static_cast<double>(before[i]));
    }
    return sums;
}
[[gnu::target("avx2")]] Sums differences_avx2(const float* now, const float* before, int64_t count) {
    return differences_of(now, before, count);
}

Tensor readable(const Tensor& t) { return t.to_host().contiguous(); }

// Calls f with a pointer to the elements of a dense tensor in host memory.
template <class F>
auto with_elements(const Tensor& t, F&& f) {
    return visit_dtype(t.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        return f(t.data<T>());
    });
}

template <class T>
double number(T x) {
    if constexpr (kIsComplex<T>)
        return static_cast<double>(x.real());
    else if constexpr (std::is_arithmetic_v<T>)
        return static_cast<double>(x);
    else
        return static_cast<double>(static_cast<float>(x));
}

void add(Statistics& s, double x) {
    if (std::isfinite(x)) {
        s.min = std::min(s.min, x);
        s.max = std::max(s.max, x);
        s.sum += x;
        s.absolute_sum += std::abs(x);
        s.zeros += x == 0 ? 1 : 0;
    } else if (std::isnan(x)) {
        ++s.nan;
    } else if (x > 0) {
        ++s.positive_infinity;
    } else {
        ++s.negative_infinity;
    }
}

}  // namespace

double Statistics::mean() const { return finite() ? sum / static_cast<double>(finite()) : kNaN; }
double Statistics::absolute_mean() const { return finite() ? absolute_sum / static_cast<double>(finite()) : kNaN; }

bool has_statistics(const Tensor& t) { return t && !is_complex(t.dtype()); }

Statistics statistics_of(const Tensor& given) {
    const Tensor t = readable(given);
    Statistics s;
    s.count = t.size();
    s.min = kInfinity;
    s.max = -kInfinity;
    with_elements(t, [&](const auto* x) {
        for (int64_t i = 0; i < s.count; ++i) add(s, number(x[i]));
    });
    if (s.finite() == 0) s.min = s.max = kNaN;
    return s;
}

double absolute_mean_of(const Tensor& given) {
    if (given.dtype() != DType::f32 || given.size() == 0) return statistics_of(given).absolute_mean();
    const Tensor t = readable(given);
    const auto* x = t.data<float>();
    double sum = 0;
    for (int64_t i = 0; i < t.size(); i += kBlock) {
        const int64_t count = std::min(kBlock, t.size() - i);
        sum += absolute_sum(x + i, count);
    }
    return std::isfinite(sum) ? sum / static_cast<double>(t.size()) : statistics_of(t).absolute_mean();
}

int64_t first_not_finite(const Tensor& given) {
    const Tensor t = readable(given);
    return with_elements(t, [&](const auto* x) {
        int64_t i = 0;
        while (i < t.size() && std::isfinite(number(x[i]))) ++i;
        return i < t.size() ? i : int64_t{-1};
    });
}

bool are_zero(const Tensor& given) {
    const Tensor t = readable(given);
    return with_elements(t, [&](const auto* x) {
        int64_t i = 0;
        while (i < t.size() && number(x[i]) == 0) ++i;
        return i == t.size();
    });
}

bool reaches_absolute_mean(const Tensor& given, double bound) {
    if (given.dtype() != DType::f32) return false;
    const Tensor t = readable(given);
    double sum = 0;
    const double enough = bound * static_cast<double>(t.size());
    for (int64_t i = 0; i < t.size() && sum < enough; i += kBlock) {
        const double block = absolute_sum(t.data<float>() + i, std::min(kBlock, t.size() - i));
        if (!std::isfinite(block)) return false;
        sum += block;
    }
    return sum >= enough;
}

Glance glance_at(const Tensor& given) {
    const Tensor t = readable(given);
    if (t.dtype() == DType::f32) {
        const auto* x = t.data<uint32_t>();
        const uint32_t most = has_avx2() ? largest_bits_avx2(x, t.size()) : largest_bits(x, t.size());
        return {.all_finite = most < 0x7f800000u, .all_zero = most == 0};
    }
    Glance glance;
    with_elements(t, [&](const auto* x) {
        for (int64_t i = 0; i < t.size(); ++i) {
            const double v = number(x[i]);
            glance.all_zero &= v == 0;
            glance.all_finite &= std::isfinite(v);
        }
    });
    return glance;
}

namespace {

// Counts block by block, until enough(count) says that it has enough.
template <class F>
int64_t within(const Tensor& t, double low, double high, F&& enough) {
    int64_t found = 0;
    for (int64_t i = 0; i < t.size() && !enough(found); i += kBlock) {
        const int64_t count = std::min(kBlock, t.size() - i);
        if (t.dtype() == DType::f32) {
            const float* x = t.data<float>() + i;
            // A bound that is no float32 lies between two of them.
            auto from = static_cast<float>(low), to = static_cast<float>(high);
            if (static_cast<double>(from) < low) from = std::nextafter(from, std::numeric_limits<float>::infinity());
            if (static_cast<double>(to) > high) to = std::nextafter(to, -std::numeric_limits<float>::infinity());
            found += has_avx2() ? count_within_avx2(x, count, from, to) : count_within(x, count, from, to);
            continue;
        }
        with_elements(t, [&](const auto* x) {
            for (int64_t k = i; k < i + count; ++k) {
                const double v = number(x[k]);
                found += v >= low && v <= high ? 1 : 0;
            }
        });
    }
    return found;
}

}  // namespace

bool lie_within(const Tensor& given, double low, double high, double percent) {
    const Tensor t = readable(given);
    const double enough = percent / 100 * static_cast<double>(t.size());
    const auto is_enough = [&](int64_t found) { return static_cast<double>(found) >= enough; };
    return is_enough(within(t, low, high, is_enough));
}

double percentage_within(const Tensor& given, double low, double high) {
    const Tensor t = readable(given);
    if (t.size() == 0) return 100;
    return 100.0 * static_cast<double>(within(t, low, high, [](int64_t) { return false; })) /
           static_cast<double>(t.size());
}

namespace {

void check_same_type(const Tensor& now, const Tensor& before) {
    if (now.dtype() != before.dtype() || !(now.shape() == before.shape()))
        throw shape_error("compare", str("the tensor is ", name_of(now.dtype()), now.shape(), " and was ",
                                         name_of(before.dtype()), before.shape(), " a step before"));
}

}  // namespace

double update_ratio(const Tensor& now, const Tensor& before, double epsilon) {
    check_same_type(now, before);
    const Tensor a = readable(now), b = readable(before);
    if (a.size() == 0) return 0;
    if (a.dtype() != DType::f32) {
        const Change change = change_of(a, b, {});
        return change.absolute_sum / (change.old_sum + epsilon * static_cast<double>(a.size()));
    }
    Sums all;
    for (int64_t i = 0; i < a.size(); i += kBlock) {
        const int64_t count = std::min(kBlock, a.size() - i);
        const float *x = a.data<float>() + i, *y = b.data<float>() + i;
        const Sums sums = has_avx2() ? differences_avx2(x, y, count) : differences_of(x, y, count);
        all.changed += sums.changed;
        all.old += sums.old;
    }
    return all.changed / (all.old + epsilon * static_cast<double>(a.size()));
}

Change change_of(const Tensor& now, const Tensor& before, const Tolerance& tolerance) {
    check_same_type(now, before);
    const Tensor a = readable(now), b = readable(before);
    Change change;
    change.count = a.size();
    with_elements(a, [&](const auto* x) {
        const auto* y = b.data<std::remove_cv_t<std::remove_pointer_t<decltype(x)>>>();
        for (int64_t i = 0; i < change.count; ++i) {
            const double p = number(x[i]), q = number(y[i]), d = std::abs(p - q);
            if (std::isfinite(q)) change.old_sum += std::abs(q);
            if (p == q || (tolerance.equal_nan && std::isnan(p) && std::isnan(q))) continue;
            if (std::isfinite(d)) change.absolute_sum += d;
            if (std::isfinite(d)) change.largest = std::max(change.largest, d);
            if (!(d <= tolerance.atol + tolerance.rtol * std::abs(q))) ++change.unequal;
        }
    });
    return change;
}

}  // namespace lunaria::watch
