// CPU kernels: random numbers. Element i of a result is computed from words of philox(seed, block, counter), whose
// block follows from i alone, so that the numbers depend neither on threads nor on vector width.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "backends/cpu/copy.h"
#include "backends/cpu/row_loops.h"
#include "backends/cpu/scratch.h"
#include "core/base/interrupt.h"
#include "core/operator/infer.h"
#include "core/operator/op.h"
#include "core/random/formulas_wide.h"
#include "core/random/random.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

RandomStream stream_of(const KernelCall& call) { return {call.seed, call.counter}; }

// 24 random bits: every multiple of 2^-24 in [0, 1).
float unit_float(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }
uint64_t wide(uint32_t high, uint32_t low) { return static_cast<uint64_t>(high) << 32 | low; }
double unit_double(uint32_t high, uint32_t low) { return static_cast<double>(wide(high, low) >> 11) * 0x1p-53; }

// The upper bits of a call's counter tell the blocks of an element apart.
RandomStream block_of_elements(const RandomStream& stream, uint64_t block) {
    return {stream.seed, stream.counter ^ (block << 40)};
}

// Any number of words for one element.
class ElementStream {
  public:
    // `first` holds what the first calls of bits() return, `normal` what normal() does as the first call.
    ElementStream(const RandomStream& stream, int64_t element, std::span<const uint64_t> first = {},
                  const double* normal = nullptr)
        : stream_(stream), element_(static_cast<uint64_t>(element)), first_(first), normal_(normal) {}
    uint64_t bits() {
        const size_t at = used_++;
        if (at < first_.size()) return first_[at];
        if (at % 2) return second_;
        const RandomStream block = block_of_elements(stream_, at / 2 + 1);
        const auto words = philox(block.seed, element_, block.counter);
        second_ = wide(words[2], words[3]);
        return wide(words[0], words[1]);
    }
    double unit() { return formula::unit_of(bits()); }                     // [0, 1)
    double positive_unit() { return formula::unit_of(bits()) + 0x1p-53; }  // (0, 1]
    // 0 … range - 1 without bias: the draws that would make some numbers more likely are thrown away (Lemire 2019).
    uint64_t below(uint64_t range) {
        if (range == 0) return bits();  // 2^64
        for (;;) {
            auto product = static_cast<unsigned __int128>(bits()) * range;
            const auto low = static_cast<uint64_t>(product);
            // The remainder is below the range, and a division takes long.
            if (low >= range || low >= (0 - range) % range) return static_cast<uint64_t>(product >> 64);
        }
    }
    double normal() {
        if (used_ == 0 && normal_) {
            used_ = 2;
            return *normal_;
        }
        const uint64_t u = bits();
        double first, second;
        formula::normal_pair(u, bits(), first, second);
        return first;
    }

  private:
    const RandomStream& stream_;
    uint64_t element_;
    std::span<const uint64_t> first_;
    const double* normal_;
    size_t used_ = 0;
    uint64_t second_ = 0;
};

// Elements whose first words are made together.
constexpr int64_t kDrawnTogether = 128;

// Calls draw(element, its stream) for elements begin .. end - 1, with the words of their first blocks made together,
// and with kNormal what these are as normal numbers.
template <int kBlocks, bool kNormal = false, class F>
void draw_in_turn(const RandomStream& stream, int64_t begin, int64_t end, F draw) {
    constexpr int64_t kStride = 2 * kBlocks;
    uint64_t bits[kDrawnTogether * kStride];
    double normals[kNormal ? 2 * kDrawnTogether : 1];
    for (int64_t from = begin; from < end; from += kDrawnTogether) {
        const int64_t count = std::min(kDrawnTogether, end - from);
        for (int block = 0; block < kBlocks; ++block) {
            const RandomStream words = block_of_elements(stream, static_cast<uint64_t>(block) + 1);
            copy_loops().bits(bits + 2 * block, kStride, words.seed, words.counter, static_cast<uint64_t>(from), count);
        }
        if constexpr (kNormal) {
            const RandomStream words = block_of_elements(stream, 1);
            copy_loops().normal_f64(normals, words.seed, words.counter, static_cast<uint64_t>(from), count);
        }
        for (int64_t i = 0; i < count; ++i) {
            ElementStream own(stream, from + i, {bits + i * kStride, static_cast<size_t>(kStride)},
                              kNormal ? normals + 2 * i : nullptr);
            draw(from + i, own);
        }
    }
}

int64_t blocks_of(uint64_t size, uint64_t elements) { return static_cast<int64_t>((size + elements - 1) / elements); }

// Each element by itself, several threads at once.
template <int kBlocks = 1, bool kNormal = false, class F>
void draw_elements(const RandomStream& stream, int64_t count, F draw) {
    constexpr int64_t kWorthwhile = 4096;
    parallel_for(count, kWorthwhile, 64,
                 [&](int64_t begin, int64_t end) { draw_in_turn<kBlocks, kNormal>(stream, begin, end, draw); });
}

// A number below 1 that would be rounded to 1 as a half, outside of the interval, becomes the last half before 1.
void stay_below_one(const KernelCall& call) {
    if (!call.has(1) || !is_half(call.args[1].dtype())) return;
    Tensor& out = call.out[0];
    const float last = 1 - (call.args[1].dtype() == DType::f16 ? 0x1p-11f : 0x1p-8f);
    for (int64_t i = 0; i < out.size(); ++i) out.data<float>()[i] = std::min(out.data<float>()[i], last);
}

bool rand(const KernelCall& call) {
    Tensor& out = call.out[0];
    RandomStream stream = stream_of(call);
    uint64_t size = static_cast<uint64_t>(out.size());
    if (out.dtype() == DType::f64) {
        for_elements(blocks_of(size, 2), [&](int64_t block) {
            const auto i = static_cast<uint64_t>(block) * 2;
            auto w = philox(stream.seed, i / 2, stream.counter);
            out.data<double>()[i] = unit_double(w[0], w[1]);
            if (i + 1 < size) out.data<double>()[i + 1] = unit_double(w[2], w[3]);
        });
        return true;
    }
    for_elements(blocks_of(size, 4), [&](int64_t block) {
        const auto i = static_cast<uint64_t>(block) * 4;
        auto w = philox(stream.seed, i / 4, stream.counter);
        for (uint64_t k = 0; k < 4 && i + k < size; ++k) out.data<float>()[i + k] = unit_float(w[k]);
    });
    stay_below_one(call);
    return true;
}

// Box-Muller on (0, 1] x [0, 1): 32 bits in the radius reach 6.6 standard deviations.
struct NormalPair {
    double first, second;
};
NormalPair normal_pair(double u, double v) {
    double radius = std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * v;
    return {radius * std::cos(angle), radius * std::sin(angle)};
}

bool randn(const KernelCall& call) {
    Tensor& out = call.out[0];
    RandomStream stream = stream_of(call);
    uint64_t size = static_cast<uint64_t>(out.size());
    if (out.dtype() == DType::f64) {
        for_elements(blocks_of(size, 2), [&](int64_t block) {
            const auto i = static_cast<uint64_t>(block) * 2;
            auto w = philox(stream.seed, i / 2, stream.counter);
            double first, second;
            formula::normal_pair(wide(w[0], w[1]), wide(w[2], w[3]), first, second);
            out.data<double>()[i] = first;
            if (i + 1 < size) out.data<double>()[i + 1] = second;
        });
        return true;
    }
    for_elements(blocks_of(size, 4), [&](int64_t block) {
        const auto i = static_cast<uint64_t>(block) * 4;
        auto w = philox(stream.seed, i / 4, stream.counter);
        for (uint64_t k = 0; k < 4 && i + k < size; k += 2) {
            auto pair = normal_pair((w[k] + 1.0) * 0x1p-32, w[k + 1] * 0x1p-32);
            out.data<float>()[i + k] = static_cast<float>(pair.first);
            if (i + k + 1 < size) out.data<float>()[i + k + 1] = static_cast<float>(pair.second);
        }
    });
    return true;
}

bool standard_laplace(const KernelCall& call) {
    RandomStream stream = stream_of(call);
    float* out = call.out[0].data<float>();
    for_elements(call.out[0].size(), [&](int64_t i) {
        ElementStream words(stream, i);
        const auto magnitude = static_cast<float>(-formula::log_of_bits(words.bits()));
        out[i] = words.bits() >> 63 ? magnitude : -magnitude;
    });
    return true;
}

// More than half of the draws below are accepted. If none is, the numbers are beyond the resolution of the comparison,
// and the distribution is as narrow as its mean.
constexpr int kMostTries = 1000;

// Marsaglia and Tsang 2000; below 1 the shape is raised by one and the draw multiplied by u^(1/alpha).
class Gamma {
  public:
    static constexpr bool kNormal = true;  // a draw begins with a normal number, mostly

    explicit Gamma(double alpha)
        : alpha_(alpha), d_((alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3), c_(1 / std::sqrt(9 * d_)) {}

    double operator()(ElementStream& words) const {
        if (!(alpha_ > 0)) return alpha_ == 0 ? 0.0 : std::numeric_limits<double>::quiet_NaN();
        if (!std::isfinite(alpha_)) return alpha_;
        const double boost = alpha_ < 1 ? std::pow(words.positive_unit(), 1 / alpha_) : 1;
        for (int tries = 0; tries < kMostTries; ++tries) {
            double x = words.normal(), v = 1 + c_ * x;
            if (v <= 0) continue;
            v = v * v * v;
            const double u = words.positive_unit(), square = x * x;
            // What lies below this bound lies below the exact one, which takes two logarithms.
            if (u < 1 - 0.0331 * square * square) return boost * d_ * v;
            if (std::log(u) < square / 2 + d_ - d_ * v + d_ * std::log(v)) return boost * d_ * v;
        }
        return boost * d_;
    }

  private:
    double alpha_, d_, c_;
};

// Counting exponential gaps for small means; for large ones transformed rejection (Hormann 1993, PTRS).
class Poisson {
  public:
    static constexpr bool kNormal = false;

    explicit Poisson(double mean)
        : mean_(mean), limit_(std::exp(-mean)), log_mean_(std::log(mean)), b_(0.931 + 2.53 * std::sqrt(mean)) {}

    double operator()(ElementStream& words) const {
        if (!(mean_ > 0)) return mean_ == 0 ? 0.0 : std::numeric_limits<double>::quiet_NaN();
        if (!std::isfinite(mean_)) return mean_;
        if (mean_ < 10) {
            double product = words.positive_unit(), count = 0;
            for (; product > limit_; ++count) product *= words.positive_unit();
            return count;
        }
        const double a = -0.059 + 0.02483 * b_, inverse_alpha = 1.1239 + 1.1328 / (b_ - 3.4);
        const double v_r = 0.9277 - 3.6224 / (b_ - 2);
        for (int tries = 0; tries < kMostTries; ++tries) {
            double u = words.unit() - 0.5, v = words.positive_unit(), us = 0.5 - std::abs(u);
            double k = std::floor((2 * a / us + b_) * u + mean_ + 0.43);
            if (us >= 0.07 && v <= v_r) return k;
            if (k < 0 || (us < 0.013 && v > us)) continue;
            if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b_) <=
                -mean_ + k * log_mean_ - std::lgamma(k + 1))
                return k;
        }
        return mean_;
    }

  private:
    double mean_, limit_, log_mean_, b_;
};

// Throws the error about the first number of a parameter that is out of its range.
void expect_within(std::string_view where, std::string_view name, std::string_view range, const Tensor& t) {
    visit_dtype(t.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_arithmetic_v<T>)
            for (int64_t i = 0; i < t.size(); ++i)
                if (const auto number = static_cast<double>(t.data<T>()[i]); !is_within(range, number))
                    throw parameter_error(where, name, range, number, t.size() > 1 ? str(" (element ", i, ")") : "");
    });
}

bool valid_parameter(const KernelCall& call) {
    expect_within(call.args[3].string(), call.args[2].string(), call.args[1].string(), call.tensor(0));
    copy_elements(call.tensor(0), call.out[0]);
    return true;
}

template <class Draw>
bool draw_each(const KernelCall& call) {
    RandomStream stream = stream_of(call);
    Tensor parameters = call.tensor(1).cast(DType::f64);
    expect_within(call.op.name(), param_name(Call(call.op, call.args, call.dtype), 1), "not negative", parameters);
    Tensor& out = call.out[0];
    Tensor draws = Tensor::empty(DType::f64, out.shape());
    const double* parameter = parameters.data<double>();
    double* draw = draws.data<double>();
    const int64_t period = parameters.size();
    if (period == 1) {
        const Draw one(parameter[0]);
        draw_elements<2, Draw::kNormal>(stream, out.size(),
                                        [&](int64_t i, ElementStream& words) { draw[i] = one(words); });
    } else {
        draw_elements<2, Draw::kNormal>(
            stream, out.size(), [&](int64_t i, ElementStream& words) { draw[i] = Draw(parameter[i % period])(words); });
    }
    copy_elements(draws, out);
    return true;
}

bool randint(const KernelCall& call) {
    RandomStream stream = stream_of(call);
    uint64_t low = static_cast<uint64_t>(call.args[0].integer());
    uint64_t range = static_cast<uint64_t>(call.args[1].integer()) - low;
    Tensor& out = call.out[0];
    Tensor draws = out.dtype() == DType::i64 ? out : Tensor::empty(DType::i64, out.shape());
    int64_t* draw = draws.data<int64_t>();
    draw_elements(stream, out.size(),
                  [&](int64_t i, ElementStream& words) { draw[i] = static_cast<int64_t>(low + words.below(range)); });
    if (!draws.same_body(out)) copy_elements(draws, out);
    return true;
}

// Shuffles the first `count` of `size` things into random order.
void shuffle(std::span<int64_t> things, size_t count, RandomStream stream) {
    // The partners of many places are known before the first exchange, so that they are fetched together.
    size_t partner[kDrawnTogether];
    in_ranges(static_cast<int64_t>(std::min(count, things.size())), kDrawnTogether, [&](int64_t begin, int64_t end) {
        draw_in_turn<1>(stream, begin, end, [&](int64_t place, ElementStream& words) {
            const auto i = static_cast<size_t>(place);
            const size_t other = i + words.below(things.size() - i);
            __builtin_prefetch(&things[other], 1);
            partner[place - begin] = other;
        });
        for (int64_t i = begin; i < end; ++i) std::swap(things[static_cast<size_t>(i)], things[partner[i - begin]]);
    });
}

bool randperm(const KernelCall& call) {
    Tensor& out = call.out[0];
    Tensor order = out.dtype() == DType::i64 ? out : Tensor::empty(DType::i64, out.shape());
    std::span<int64_t> numbers(order.data<int64_t>(), static_cast<size_t>(order.size()));
    // Unsigned, so that an offset near the end of the range wraps around.
    uint64_t next = static_cast<uint64_t>(call.args[2].integer());
    for_elements(order.size(), [&](int64_t i) { numbers[static_cast<size_t>(i)] = static_cast<int64_t>(next++); });
    shuffle(numbers, numbers.size(), stream_of(call));
    if (!order.same_body(out)) copy_elements(order, out);
    return true;
}

bool multinomial(const KernelCall& call) {
    Tensor weights = call.tensor(0).cast(DType::f64);
    int64_t classes = weights.shape().back(), draws = call.args[1].integer();
    bool replacement = call.args[2].boolean();
    RandomStream stream = stream_of(call);
    int64_t* out = call.out[0].data<int64_t>();
    for (int64_t row = 0, rows = weights.size() / classes; row < rows; ++row) {
        const double* w = weights.data<double>() + row * classes;
        Scratch<double> sums(static_cast<size_t>(classes));
        double total = 0;
        int64_t possible = 0;
        for_elements(classes, [&](int64_t i) {
            if (!(w[i] >= 0) || std::isinf(w[i]))
                throw value_error(call.op.name(), str("weight ", i, " is ", w[i],
                                                      ": probabilities must be finite and not "
                                                      "negative"));
            possible += w[i] > 0;
            sums[static_cast<size_t>(i)] = total += w[i];
        });
        if (possible == 0) throw value_error(call.op.name(), "all probabilities of a row are zero");
        if (!replacement && draws > possible)
            throw value_error(call.op.name(), str("cannot draw ", draws, " different classes from the ", possible,
                                                  " that have a positive probability"));
        if (replacement) {
            in_ranges(draws, kElementsBetweenLooks, [&](int64_t begin, int64_t end) {
                draw_in_turn<1>(stream, row * draws + begin, row * draws + end, [&](int64_t, ElementStream& words) {
                    double at = words.unit() * total;
                    auto found = std::upper_bound(sums.begin(), sums.end(), at);
                    // Rounding may move `at` to the total; the last class that can be drawn is then meant.
                    if (found == sums.end()) found = std::lower_bound(sums.begin(), sums.end(), total);
                    *out++ = found - sums.begin();
                });
            });
            continue;
        }
        // The smallest of independent exponential times with rates w are a sample without replacement.
        using Time = std::pair<double, int64_t>;
        Scratch<Time> times;
        times.reserve(static_cast<size_t>(possible));
        in_ranges(classes, kElementsBetweenLooks, [&](int64_t begin, int64_t end) {
            draw_in_turn<1>(stream, row * classes + begin, row * classes + end, [&](int64_t at, ElementStream& words) {
                const int64_t i = at - row * classes;
                if (w[i] > 0) times.emplace_back(-formula::log_of_bits(words.bits()) / w[i], i);
            });
        });
        std::partial_sort(times.begin(), times.begin() + draws, times.end(), InterruptibleLess(std::less<Time>()));
        for (int64_t k = 0; k < draws; ++k) *out++ = times[static_cast<size_t>(k)].second;
    }
    return true;
}

bool choice_with_mask(const KernelCall& call) {
    const Tensor& in = call.tensor(0);
    std::vector<int64_t> chosen;
    for (int64_t i = 0; i < in.size(); ++i)
        if (in.data<bool>()[i]) chosen.push_back(i);
    int64_t count = call.args[1].integer();
    size_t taken = std::min(chosen.size(), static_cast<size_t>(count));
    shuffle(chosen, taken, stream_of(call));
    int64_t* index = call.out[0].data<int64_t>();
    bool* real = call.out[1].data<bool>();
    std::fill(index, index + call.out[0].size(), 0);
    std::fill(real, real + count, false);
    for (size_t k = 0; k < taken; ++k) {
        int64_t rest = chosen[k];
        for (int axis = in.rank() - 1; axis >= 0; --axis) {
            index[static_cast<int64_t>(k) * in.rank() + axis] = rest % in.dim(axis);
            rest /= in.dim(axis);
        }
        real[k] = true;
    }
    return true;
}

// Element i is dropped when word i of the stream, as a number in [0, 1), lies below p.
bool dropout(const KernelCall& call) {
    const Tensor& in = call.tensor(0);
    RandomStream stream = stream_of(call);
    double p = call.args[1].number();
    uint64_t limit = static_cast<uint64_t>(std::ldexp(p, 32));
    bool* mask = call.out[1].data<bool>();
    return with_real(in.dtype(), [&](auto zero) {
        using T = decltype(zero);
        const T* x = in.data<T>();
        T* out = call.out[0].template data<T>();
        T keep = static_cast<T>(1 - p);
        for (int64_t i = 0; i < in.size(); i += 4) {
            auto words = philox(stream.seed, static_cast<uint64_t>(i / 4), stream.counter);
            for (int64_t k = i; k < std::min(i + 4, in.size()); ++k) {
                mask[k] = words[static_cast<size_t>(k - i)] >= limit;
                out[k] = mask[k] ? x[k] / keep : T(0);
            }
        }
        return true;
    });
}

// The vector loops compute whole blocks of four elements; the elements after the last whole block come from one more
// block.
template <class T>
using BlockLoop = void (*)(T* out, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks);

template <int64_t kOfBlock, class T>
void fill_blocks(const Tensor& out, const RandomStream& stream, BlockLoop<T> loop) {
    T* to = out.data<T>();
    int64_t blocks = out.size() / kOfBlock, rest = out.size() % kOfBlock;
    parallel_for(blocks, 4096, 128, [&](int64_t begin, int64_t end) {
        loop(to + kOfBlock * begin, stream.seed, stream.counter, static_cast<uint64_t>(begin), end - begin);
    });
    if (rest == 0) return;
    T last[kOfBlock];
    loop(last, stream.seed, stream.counter, static_cast<uint64_t>(blocks), 1);
    std::copy(last, last + rest, to + kOfBlock * blocks);
}

bool fill_fast(const KernelCall& call, BlockLoop<double> wide, BlockLoop<float> narrow) {
    if (call.out[0].dtype() == DType::f64)
        fill_blocks<2>(call.out[0], stream_of(call), wide);
    else if (call.out[0].dtype() == DType::f32)
        fill_blocks<4>(call.out[0], stream_of(call), narrow);
    else
        return false;
    return true;
}

bool rand_fast(const KernelCall& call) {
    if (!fill_fast(call, copy_loops().uniform_f64, copy_loops().uniform)) return false;
    stay_below_one(call);
    return true;
}
bool randn_fast(const KernelCall& call) { return fill_fast(call, copy_loops().normal_f64, copy_loops().normal); }
bool laplace_fast(const KernelCall& call) {
    fill_blocks<1>(call.out[0], block_of_elements(stream_of(call), 1), copy_loops().laplace);
    return true;
}

bool dropout_fast(const KernelCall& call) {
    const Tensor& in = call.tensor(0);
    double p = call.args[1].number();
    if (in.dtype() != DType::f32 || p >= 1) return false;
    RandomStream stream = stream_of(call);
    const float* x = in.data<float>();
    float* out = call.out[0].data<float>();
    auto* mask = reinterpret_cast<uint8_t*>(call.out[1].data<bool>());
    auto limit = static_cast<uint32_t>(std::ldexp(p, 32));
    auto keep = static_cast<float>(1 - p);
    int64_t blocks = in.size() / 4, rest = in.size() % 4;
    auto loop = copy_loops().dropout;
    parallel_for(blocks, 4096, 128, [&](int64_t begin, int64_t end) {
        loop(x + 4 * begin, out + 4 * begin, mask + 4 * begin, stream.seed, stream.counter,
             static_cast<uint64_t>(begin), end - begin, limit, keep);
    });
    if (rest == 0) return true;
    float last_x[4] = {}, last[4];
    uint8_t last_mask[4];
    std::copy(x + 4 * blocks, x + in.size(), last_x);
    loop(last_x, last, last_mask, stream.seed, stream.counter, static_cast<uint64_t>(blocks), 1, limit, keep);
    std::copy(last, last + rest, out + 4 * blocks);
    std::copy(last_mask, last_mask + rest, mask + 4 * blocks);
    return true;
}

}  // namespace

void add_random_kernels(KernelTable& table) {
    table.fast("rand", rand_fast);
    table.fast("randn", randn_fast);
    table.fast("standard_laplace", laplace_fast);
    table.fast("dropout_with_mask", dropout_fast);
    table.plain("rand", rand);
    table.plain("randn", randn);
    table.plain("standard_laplace", standard_laplace);
    table.plain("random_gamma", draw_each<Gamma>);
    table.plain("random_poisson", draw_each<Poisson>);
    table.plain("valid_parameter", valid_parameter);
    table.plain("randint", randint);
    table.plain("randperm", randperm);
    table.plain("multinomial", multinomial);
    table.plain("choice_with_mask", choice_with_mask);
    table.plain("dropout_with_mask", dropout);
}

}  // namespace lunaria::cpu
