// Transforms of sounds that compute sample by sample; those that combine whole operators are in Lua.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/interrupt.h"
#include "core/data/transforms/step.h"

namespace lunaria::audio {

namespace {

using transforms::Arguments;
using transforms::Row;
using transforms::RowDraws;

struct Waves {
    Tensor samples;  // float32, dense, the last axis is the time
    int64_t rows, length;
    DType dtype;  // of the samples as they came
};

Waves wave_of(const Value& value, const Arguments& a) {
    if (!value.is_tensor() || value.tensor().rank() == 0 || !is_float(value.tensor().dtype()))
        throw argument_error(a.where, str("a tensor of floats (..., time) is expected, got ", to_string(value)));
    const Tensor& t = value.tensor();
    if (t.size() == 0) throw shape_error(a.where, str("there are no samples: ", to_string(value)));
    return {t.cast(DType::f32).contiguous(), t.size() / t.shape().back(), t.shape().back(), t.dtype()};
}

// Passes each row of the last axis through `run`, from samples to `length` others.
template <class Run>
void each_row(Row& row, const Arguments& a, int64_t (*length)(const Arguments&, int64_t), const Run& run) {
    for (Value& value : row) {
        const Waves wave = wave_of(value, a);
        Shape shape = wave.samples.shape();
        const int64_t out_length = length ? length(a, wave.length) : wave.length;
        shape[shape.rank() - 1] = out_length;
        const Tensor out = Tensor::empty(DType::f32, shape);
        for (int64_t i = 0; i < wave.rows; ++i) {
            poll_interrupt();
            run(wave.samples.data<float>() + i * wave.length, wave.length, out.data<float>() + i * out_length,
                out_length);
        }
        value = Value(out.cast(wave.dtype));
    }
}

void filter(const double* feedback, const double* forward, size_t order, const float* from, float* to, int64_t length,
            bool clamp) {
    // Direct form II, transposed; in double, because the poles of low frequencies lie beside the unit circle.
    std::vector<double> state(order, 0.0);
    for (int64_t i = 0; i < length; ++i) {
        const double x = from[i], y = forward[0] / feedback[0] * x + state[0];
        for (size_t k = 1; k < order; ++k)
            state[k - 1] =
                forward[k] / feedback[0] * x - feedback[k] / feedback[0] * y + (k < order - 1 ? state[k] : 0);
        to[i] = static_cast<float>(clamp ? std::clamp(y, -1.0, 1.0) : y);
    }
}

// clamp, both directions, order; then all a, then all b
void run_filter(Row& row, const Arguments& a, RowDraws&) {
    const auto order = static_cast<size_t>(a.integer(2));
    const double *feedback = a.numbers.data() + 3, *forward = feedback + order;
    each_row(row, a, nullptr, [&](const float* from, int64_t length, float* to, int64_t) {
        if (!a.flag(1)) return filter(feedback, forward, order, from, to, length, a.flag(0));
        std::vector<float> back(static_cast<size_t>(length));
        filter(feedback, forward, order, from, to, length, false);
        std::reverse_copy(to, to + length, back.begin());
        filter(feedback, forward, order, back.data(), to, length, a.flag(0));
        std::reverse(to, to + length);
    });
}

// Frames (..., frames, width) added up, each `hop` later: (..., time).
void run_overlap_add(Row& row, const Arguments& a, RowDraws&) {
    const int64_t hop = a.integer(0);
    for (Value& value : row) {
        const Waves wave = wave_of(value, a);
        Shape shape = wave.samples.shape();
        if (shape.rank() < 2) throw shape_error(a.where, "frames (..., frames, width) are expected");
        const int64_t width = wave.length, frames = shape[shape.rank() - 2], length = (frames - 1) * hop + width;
        shape.erase(shape.rank() - 1);
        shape[shape.rank() - 1] = length;
        const Tensor out = Tensor::zeros(DType::f32, shape);
        for (int64_t i = 0; i < wave.rows; ++i) {
            const float* from = wave.samples.data<float>() + i * width;
            float* to = out.data<float>() + i / frames * length + i % frames * hop;
            for (int64_t k = 0; k < width; ++k) to[k] += from[k];
        }
        value = Value(out);
    }
}

// Bessel's function of order 0 by its series.
double bessel(double x) {
    double sum = 1, term = 1;
    for (int k = 1; k < 200 && term > 1e-17 * sum; ++k) sum += term *= (x / (2 * k)) * (x / (2 * k));
    return sum;
}

int64_t resampled_length(const Arguments& a, int64_t length) {
    const int64_t g = std::gcd(a.integer(0), a.integer(1)), from = a.integer(0) / g, to = a.integer(1) / g;
    return (to * length + from - 1) / from;
}

// old rate, new rate, width of the filter in zero crossings, roll-off, Kaiser's beta (negative: a Hann window)
void run_resample(Row& row, const Arguments& a, RowDraws&) {
    const int64_t g = std::gcd(a.integer(0), a.integer(1)), old_rate = a.integer(0) / g, new_rate = a.integer(1) / g;
    const double lobes = a.number(2), base = static_cast<double>(std::min(old_rate, new_rate)) * a.number(3),
                 beta = a.number(4);
    // For each phase between two samples the few weights that are not 0, and the input sample at which they begin.
    const double reach = lobes * static_cast<double>(old_rate) / base;
    const auto taps = static_cast<int64_t>(std::floor(2 * reach)) + 2;
    if (reach > 1e6 || taps > (int64_t{1} << 25) / new_rate)
        throw value_error(a.where, "the filter of these rates is too large");
    std::vector<double> kernel(static_cast<size_t>(taps * new_rate));
    std::vector<int64_t> firsts;
    for (int64_t p = 0; p < new_rate; ++p) {
        const double centre = static_cast<double>(p) * static_cast<double>(old_rate) / static_cast<double>(new_rate);
        firsts.push_back(static_cast<int64_t>(std::ceil(centre - reach)));
        for (int64_t k = 0; k < taps; ++k) {
            const double t = (static_cast<double>(firsts.back() + k) - centre) / static_cast<double>(old_rate) * base;
            if (std::abs(t) >= lobes) continue;
            const double part = t / lobes;
            const double window = beta < 0 ? std::pow(std::cos(part * M_PI / 2), 2)
                                           : bessel(beta * std::sqrt(1 - part * part)) / bessel(beta);
            const double sinc = t == 0 ? 1 : std::sin(t * M_PI) / (t * M_PI);
            kernel[static_cast<size_t>(p * taps + k)] = sinc * window * base / static_cast<double>(old_rate);
        }
    }
    each_row(row, a, resampled_length, [&](const float* from, int64_t length, float* to, int64_t made) {
        for (int64_t i = 0; i < made; ++i) {
            const int64_t p = i % new_rate, begin = i / new_rate * old_rate + firsts[static_cast<size_t>(p)];
            const double* weights = kernel.data() + p * taps;
            double sum = 0;
            for (int64_t k = std::max<int64_t>(0, -begin); k < std::min(taps, length - begin); ++k)
                sum += weights[k] * from[begin + k];
            to[i] = static_cast<float>(sum);
        }
    });
}

// start, width, value, axis from the end (1 or 2), at random up to that, for each row of the first axes by itself
void run_mask(Row& row, const Arguments& a, RowDraws& draws) {
    for (Value& value : row) {
        const Waves wave = wave_of(value, a);
        if (wave.samples.rank() < 2) throw shape_error(a.where, "a spectrogram (..., frequency, time) is expected");
        const Tensor out = wave.samples.copy();
        const int64_t time = wave.length, bands = out.dim(out.rank() - 2), images = out.size() / (time * bands);
        const bool bands_axis = a.integer(3) == 2;
        const int64_t size = bands_axis ? bands : time;
        int64_t begin = a.integer(0), width = a.integer(1);
        if (!a.flag(4) && begin + width > size)
            throw value_error(a.where, str("the mask from ", begin, " on, ", width, " wide, does not fit into ", size));
        for (int64_t image = 0; image < images; ++image) {
            if (a.flag(4) && (image == 0 || a.flag(5))) {
                width = static_cast<int64_t>(draws.unit() * static_cast<double>(std::min(a.integer(1), size)));
                begin = static_cast<int64_t>(draws.unit() * static_cast<double>(size - width));
            }
            float* at = out.data<float>() + image * bands * time;
            for (int64_t b = 0; b < bands; ++b)
                for (int64_t t = 0; t < time; ++t) {
                    const int64_t place = bands_axis ? b : t;
                    if (place >= begin && place < begin + width) at[b * time + t] = static_cast<float>(a.number(2));
                }
        }
        value = Value(out.cast(wave.dtype));
    }
}

}  // namespace

}  // namespace lunaria::audio

namespace lunaria::transforms {

std::span<const Entry> audio_entries() {
    using namespace audio;
    static const Entry entries[] = {
        {"filter", 7, run_filter},
        {"overlap_add", 1, run_overlap_add},
        {"resample", 5, run_resample},
        {"mask_along", 6, run_mask},
    };
    return entries;
}

}  // namespace lunaria::transforms
