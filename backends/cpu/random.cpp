// CPU kernels: random numbers. Element i of a result is made of words of philox(seed, block, counter) whose block
// follows from i alone, so the numbers depend neither on threads nor on vector width.
#include <cmath>
#include <numbers>

#include "backends/cpu/kernel_table.h"
#include "core/op.h"
#include "core/random.h"

namespace lunaria::cpu {

namespace {

// A call with a seed of its own always gives the same numbers; else the stream is the one that the executor drew.
RandomStream stream_of(const KernelCall& call, size_t seed) {
    if (call.has(seed)) return {static_cast<uint64_t>(call.args[seed].integer()), 0};
    return {call.seed, call.counter};
}

// 24 random bits: every multiple of 2^-24 in [0, 1).
float unit_float(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }
double unit_double(uint32_t high, uint32_t low) {
    return static_cast<double>((static_cast<uint64_t>(high) << 32 | low) >> 11) * 0x1p-53;
}

bool rand(const KernelCall& call) {
    Tensor& out = call.out[0];
    RandomStream stream = stream_of(call, 2);
    uint64_t size = static_cast<uint64_t>(out.size());
    if (out.dtype() == DType::f64) {
        for (uint64_t i = 0; i < size; i += 2) {
            auto w = philox(stream.seed, i / 2, stream.counter);
            out.data<double>()[i] = unit_double(w[0], w[1]);
            if (i + 1 < size) out.data<double>()[i + 1] = unit_double(w[2], w[3]);
        }
        return true;
    }
    for (uint64_t i = 0; i < size; i += 4) {
        auto w = philox(stream.seed, i / 4, stream.counter);
        for (uint64_t k = 0; k < 4 && i + k < size; ++k) out.data<float>()[i + k] = unit_float(w[k]);
    }
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
    RandomStream stream = stream_of(call, 2);
    uint64_t size = static_cast<uint64_t>(out.size());
    if (out.dtype() == DType::f64) {
        for (uint64_t i = 0; i < size; i += 2) {
            auto w = philox(stream.seed, i / 2, stream.counter);
            auto pair = normal_pair(unit_double(w[0], w[1]) + 0x1p-53, unit_double(w[2], w[3]));
            out.data<double>()[i] = pair.first;
            if (i + 1 < size) out.data<double>()[i + 1] = pair.second;
        }
        return true;
    }
    for (uint64_t i = 0; i < size; i += 4) {
        auto w = philox(stream.seed, i / 4, stream.counter);
        for (uint64_t k = 0; k < 4 && i + k < size; k += 2) {
            auto pair = normal_pair((w[k] + 1.0) * 0x1p-32, w[k + 1] * 0x1p-32);
            out.data<float>()[i + k] = static_cast<float>(pair.first);
            if (i + k + 1 < size) out.data<float>()[i + k + 1] = static_cast<float>(pair.second);
        }
    }
    return true;
}

}  // namespace

void add_random_kernels(KernelTable& table) {
    table.plain("rand", rand);
    table.plain("randn", randn);
}

}  // namespace lunaria::cpu
