// Random operands and threads for the tests of the light runtime's kernels.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "core/lite/kernels/blocks.h"
#include "core/lite/kernels/integer.h"

namespace lunaria::lite::kernels {

// Memory of exactly the size that was asked for: a step over its end is seen when it is given back.
class Bytes {
  public:
    explicit Bytes(int64_t size)
        : size_(static_cast<size_t>(size)),
          memory_(static_cast<char*>(std::aligned_alloc(64, (size_ + 127) / 64 * 64)), &std::free) {
        std::memset(memory_.get(), 0x5a, (size_ + 127) / 64 * 64);
    }
    ~Bytes() {
        for (size_t i = size_; i < (size_ + 127) / 64 * 64; ++i)
            EXPECT_EQ(memory_.get()[i], 0x5a) << "after " << size_ << " bytes";
    }
    void* get() const { return memory_.get(); }

  private:
    size_t size_;
    std::unique_ptr<char, decltype(&std::free)> memory_;
};

class Random {
  public:
    explicit Random(unsigned seed) : engine_(seed) {}
    int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }
    template <class T>
    T pick(std::initializer_list<T> list) {
        return list.begin()[between(0, static_cast<int64_t>(list.size()) - 1)];
    }
    std::vector<float> floats(int64_t count, double deviation = 1) {
        std::vector<float> x(static_cast<size_t>(count));
        for (float& v : x) v = std::normal_distribution<float>(0, static_cast<float>(deviation))(engine_);
        return x;
    }
    template <class T>
    std::vector<T> integers(int64_t count, int low, int high) {
        std::vector<T> x(static_cast<size_t>(count));
        for (T& v : x) v = static_cast<T>(between(low, high));
        return x;
    }

    // Weights whose sums of k products have the magnitude 1.
    std::vector<float> weights(int64_t count, int64_t k) {
        return floats(count, 1 / std::sqrt(static_cast<double>(k)));
    }

  private:
    std::mt19937 engine_;
};

// Threads that are started for each loop.
inline Workers threads(int count) {
    Workers w;
    w.workers = count;
    static int counts[] = {0, 1, 2, 3, 4};
    w.pool = counts + count;
    w.run = [](void* pool, int64_t n, Workers::Task task, void* closure) {
        std::vector<std::thread> team;
        std::atomic<int64_t> next{0};
        for (int i = 0; i < *static_cast<int*>(pool); ++i)
            team.emplace_back([&, i] {
                for (int64_t k = next++; k < n; k = next++) task(closure, k, i);
            });
        for (auto& t : team) t.join();
    };
    return w;
}

inline std::vector<Isa> instruction_sets() {
    std::vector<Isa> all;
    for (int i = 0; i < kIsas; ++i)
        if (has(static_cast<Isa>(i))) all.push_back(static_cast<Isa>(i));
    return all;
}

inline double activate(const Epilogue& e, double x) {
    const auto logistic = [](double v) { return 1 / (1 + std::exp(-v)); };
    switch (e.activation) {
        case Activation::none:
            return x;
        case Activation::relu:
            return std::fmax(x, 0);
        case Activation::relu6:
            return std::fmin(std::fmax(x, 0), 6);
        case Activation::clip:
            return std::fmin(std::fmax(x, e.alpha), e.beta);
        case Activation::leaky_relu:
            return x > 0 ? x : e.alpha * x;
        case Activation::elu:
            return x > 0 ? x : e.alpha * std::expm1(x);
        case Activation::hard_sigmoid:
            return std::fmin(std::fmax(x / 6 + 0.5, 0), 1);
        case Activation::hard_swish:
            return x * std::fmin(std::fmax(x / 6 + 0.5, 0), 1);
        case Activation::sigmoid:
            return logistic(x);
        case Activation::silu:
            return x * logistic(x);
        case Activation::gelu:
            return 0.5 * x * std::erfc(-x / std::sqrt(2));
        case Activation::gelu_tanh:
            return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
        case Activation::tanh:
            return std::tanh(x);
        case Activation::mish:
            return x * std::tanh(std::log1p(std::exp(x)));
    }
    return 0;
}

// An epilogue of random parts, with its operands.
struct RandomEpilogue {
    RandomEpilogue(Random& random, int64_t rows, int64_t columns)
        : bias(random.floats(columns)), scale(random.floats(columns)), residual(random.floats(rows * columns)) {
        if (random.between(0, 1)) e.bias = bias.data();
        if (random.between(0, 3) == 0) e.scale = scale.data();
        if (random.between(0, 2) == 0) {
            e.residual = residual.data();
            e.residual_row = columns;
            e.residual_last = random.between(0, 1) != 0;
        }
        if (random.between(0, 1)) e.activation = static_cast<Activation>(random.between(0, 13));
        e.alpha = e.activation == Activation::clip ? -0.5f : 0.25f;
        e.beta = 1.5f;
    }
    double end(double sum, int64_t row, int64_t column) const {
        double y =
            sum * (e.scale ? scale[static_cast<size_t>(column)] : 1) + (e.bias ? bias[static_cast<size_t>(column)] : 0);
        const double r = e.residual ? residual[static_cast<size_t>(row * e.residual_row + column)] : 0;
        return e.residual_last ? activate(e, y) + r : activate(e, y + r);
    }
    std::vector<float> bias, scale, residual;
    Epilogue e;
};

// The largest difference relative to the largest magnitude.
class Difference {
  public:
    void add(double value, double expected) {
        if (!(std::fabs(value - expected) <= error_)) error_ = std::isnan(value) ? 1e30 : std::fabs(value - expected);
        scale_ = std::fmax(scale_, std::fabs(expected));
    }
    double relative() const { return scale_ > 0 ? error_ / std::fmax(scale_, 0.1) : error_; }

  private:
    double error_ = 0, scale_ = 0;
};

}  // namespace lunaria::lite::kernels
