// Times of the light runtime's kernels, layer by layer and in sequence, for bench/lite/kernels.py. It reads commands
// from the standard input and answers each with one line:
//   net ISA             a new network; answers its number
//   conv TYPE batch channels height width out kernel stride pad groups activation residual method
//   gemm TYPE m n k activation residual
//   bmm batch m n k transposed_b
//   end
//   run NUMBER count    the smallest time of all layers in sequence, in nanoseconds
//   layers NUMBER count the smallest time of each layer, while they run in sequence
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/lite/kernels/blocks.h"
#include "core/lite/kernels/integer.h"

namespace {

using namespace lunaria::lite::kernels;

struct Memory {
    explicit Memory(int64_t bytes)
        : place(std::aligned_alloc(64, static_cast<size_t>((bytes + 127) / 64 * 64)), &std::free) {
        std::memset(place.get(), 0, static_cast<size_t>(bytes));
    }
    template <class T>
    T* as() const {
        return static_cast<T*>(place.get());
    }
    std::unique_ptr<void, decltype(&std::free)> place;
};

// Nanoseconds of this thread, which other programs on the same cores do not lengthen.
double now() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

std::mt19937 engine(1);
void fill(float* x, int64_t count, float scale = 1) {
    std::normal_distribution<float> normal(0, scale);
    for (int64_t i = 0; i < count; ++i) x[i] = normal(engine);
}
void fill(int8_t* x, int64_t count, int largest) {
    std::uniform_int_distribution<int> uniform(-largest, largest);
    for (int64_t i = 0; i < count; ++i) x[i] = static_cast<int8_t>(uniform(engine));
}
Activation activation_of(const std::string& name) {
    if (name == "relu") return Activation::relu;
    if (name == "relu6") return Activation::relu6;
    if (name == "gelu") return Activation::gelu;
    return Activation::none;
}
WeightType type_of(const std::string& name) {
    if (name == "f16") return WeightType::f16;
    if (name == "bf16") return WeightType::bf16;
    if (name == "q8_0") return WeightType::q8_0;
    if (name == "q4_0") return WeightType::q4_0;
    return WeightType::f32;
}

class Net {
  public:
    explicit Net(Isa isa) : isa_(isa) {}
    void conv(std::istream& in) {
        std::string type, activation, method;
        int64_t kernel, stride, pad;
        int residual;
        ConvolutionShape s;
        in >> type >> s.batch >> s.channels >> s.in[1] >> s.in[2] >> s.out_channels >> kernel >> stride >> pad >>
            s.groups >> activation >> residual >> method;
        for (int d = 1; d < 3; ++d) {
            s.kernel[d] = kernel;
            s.stride[d] = stride;
            s.pad[d] = pad;
            s.out[d] = (s.in[d] + 2 * pad - kernel) / stride + 1;
        }
        const int64_t inputs = s.batch * s.in[1] * s.in[2] * s.channels,
                      outputs = s.batch * s.out[1] * s.out[2] * s.out_channels;
        const int64_t weights = s.out_channels * s.channels / s.groups * kernel * kernel;
        if (type == "s8" || type == "s7") {
            reach_ = type == "s8" ? 127 : 63;
            IntegerConvolution c;
            c.shape = s;
            c.x = input<uint8_t>(inputs);
            Memory raw(weights);
            fill(raw.as<int8_t>(), weights, reach_);
            void* packed = bytes(integer_convolution_weight_bytes(s));
            pack_integer_convolution(s, raw.as<int8_t>(), packed);
            c.weight = packed;
            c.y = output<uint8_t>(outputs);
            c.type = c.epilogue.type = IntegerType::u8;
            c.x_zero = 128;
            end(c.epilogue, s.out_channels, activation, residual ? bytes(outputs) : nullptr);
            void* scratch = bytes(integer_convolution_scratch(c, 1));
            layers_.emplace_back([=, this] { integer_convolution(isa_, c, scratch); });
            return;
        }
        Convolution c;
        c.shape = s;
        c.type = type_of(type);
        c.method = convolution_method(s);
        if (method == "direct") c.method = ConvolutionMethod::direct;
        if (method == "winograd2") c.method = ConvolutionMethod::winograd2;
        if (method == "winograd4") c.method = ConvolutionMethod::winograd4;
        c.x = input<float>(inputs);
        Memory raw(weights * 4);
        fill(raw.as<float>(), weights, 0.05f);
        void* packed = bytes(convolution_weight_bytes(s, c.method, c.type));
        pack_convolution(s, c.method, c.type, raw.as<float>(), packed);
        c.weight = packed;
        c.y = output<float>(outputs);
        c.epilogue.bias = floats(s.out_channels);
        c.epilogue.activation = activation_of(activation);
        if (residual) {
            c.epilogue.residual = floats(outputs);
            c.epilogue.residual_row = s.out_channels;
        }
        void* scratch = bytes(convolution_scratch(c, 1));
        layers_.emplace_back([=, this] { convolution(isa_, c, scratch); });
    }
    void gemm(std::istream& in) {
        std::string type, activation;
        int64_t m, n, k;
        int residual;
        in >> type >> m >> n >> k >> activation >> residual;
        if (type == "s8" || type == "s7") {
            reach_ = type == "s8" ? 127 : 63;
            IntegerProduct p;
            p.m = m;
            p.n = n;
            p.k = k;
            p.a = input<uint8_t>(m * k);
            p.a_row = k;
            p.type = p.epilogue.type = IntegerType::u8;
            p.a_zero = 128;
            Memory raw(n * k);
            fill(raw.as<int8_t>(), n * k, reach_);
            void* packed = bytes(integer_weight_bytes(k, n));
            pack_integer_weight(k, n, raw.as<int8_t>(), n, 1, packed);
            p.b = packed;
            p.c = output<uint8_t>(m * n);
            p.c_row = n;
            end(p.epilogue, n, activation, residual ? bytes(m * n) : nullptr);
            void* scratch = bytes(integer_product_scratch(p, 1));
            layers_.emplace_back([=, this] { integer_product(isa_, p, scratch); });
            return;
        }
        Product p;
        p.m = m;
        p.n = n;
        p.k = k;
        p.type = type_of(type);
        p.a = input<float>(m * k);
        p.a_row = k;
        Memory raw(n * k * 4);
        fill(raw.as<float>(), n * k, 0.05f);
        void* packed = bytes(weight_bytes(p.type, k, n));
        pack_weight(p.type, k, n, raw.as<float>(), 1, k, packed);
        p.b = packed;
        p.c = output<float>(m * n);
        p.c_row = n;
        p.epilogue.bias = floats(n);
        p.epilogue.activation = activation_of(activation);
        if (residual) {
            p.epilogue.residual = floats(m * n);
            p.epilogue.residual_row = n;
        }
        void* scratch = bytes(product_scratch(p, 1));
        layers_.emplace_back([=, this] { product(isa_, p, scratch); });
    }
    void bmm(std::istream& in) {
        BatchedProduct p;
        int transposed;
        in >> p.batch >> p.m >> p.n >> p.k >> transposed;
        p.a = floats(p.batch * p.m * p.k);
        p.b = floats(p.batch * p.k * p.n);
        p.c = floats(p.batch * p.m * p.n);
        p.a_batch = p.m * p.k;
        p.a_row = p.k;
        p.b_batch = p.k * p.n;
        p.b_row = transposed ? 1 : p.n;
        p.b_column = transposed ? p.k : 1;
        p.c_batch = p.m * p.n;
        p.c_row = p.n;
        void* scratch = bytes(batched_product_scratch(p, 1));
        layers_.emplace_back([=, this] { batched_product(isa_, p, scratch); });
    }
    double run(int count) const {
        double best = 1e30;
        for (int i = 0; i < count; ++i) {
            const double begin = now();
            for (const auto& layer : layers_) layer();
            best = std::min(best, now() - begin);
        }
        return best;
    }
    std::vector<double> layers(int count) const {
        std::vector<double> best(layers_.size(), 1e30);
        for (int i = 0; i < count; ++i)
            for (size_t k = 0; k < layers_.size(); ++k) {
                const double begin = now();
                layers_[k]();
                best[k] = std::min(best[k], now() - begin);
            }
        return best;
    }

  private:
    void* bytes(int64_t count) {
        memory_.emplace_back(count);
        return memory_.back().as<void>();
    }
    float* floats(int64_t count) {
        auto* p = static_cast<float*>(bytes(count * 4));
        fill(p, count);
        return p;
    }
    uint8_t* integers(int64_t count) {
        auto* p = static_cast<uint8_t*>(bytes(count));
        fill(reinterpret_cast<int8_t*>(p), count, 127);
        return p;
    }
    void end(IntegerEpilogue& e, int64_t n, const std::string& activation, const void* residual) {
        auto* multiplier = static_cast<float*>(bytes(n * 4));
        for (int64_t j = 0; j < n; ++j) multiplier[j] = 1e-4f;
        e.multiplier = multiplier;
        e.bias = static_cast<const int32_t*>(bytes(n * 4));
        e.zero = activation == "none" ? 128 : 0;
        e.low = 0;
        e.high = 255;
        e.residual = residual;
        e.residual_row = n;
        e.residual_multiplier = 1;
        e.residual_zero = 128;
    }

    // The last result, where it has the right size; results take turns in a few places, as in an arena.
    template <class T>
    T* input(int64_t count) {
        if (last_ && last_count_ == count) return static_cast<T*>(last_);
        if constexpr (sizeof(T) == 4)
            return floats(count);
        else
            return integers(count);
    }
    template <class T>
    T* output(int64_t count) {
        const auto bytes = static_cast<size_t>(count) * sizeof(T);
        auto& place = places_[turn_++ % 3];
        if (place.second < bytes) {
            // Layers before this one keep the smaller place.
            memory_.emplace_back(static_cast<int64_t>(bytes));
            place = {memory_.back().as<void>(), bytes};
        }
        last_ = place.first;
        last_count_ = count;
        return static_cast<T*>(last_);
    }

    Isa isa_;
    int reach_ = 127;  // of 8-bit weights
    void* last_ = nullptr;
    int64_t last_count_ = 0;
    std::pair<void*, size_t> places_[3] = {};
    int turn_ = 0;
    std::vector<Memory> memory_;
    std::vector<std::function<void()>> layers_;
};

}  // namespace

int main() {
    std::vector<std::unique_ptr<Net>> nets;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream in(line);
        std::string word;
        in >> word;
        if (word == "net") {
            std::string name;
            in >> name;
            Isa isa = best_isa();
            for (int i = 0; i < kIsas; ++i)
                if (name == name_of(static_cast<Isa>(i))) isa = static_cast<Isa>(i);
            if (!has(isa)) {
                std::cout << -1 << std::endl;
                continue;
            }
            nets.push_back(std::make_unique<Net>(isa));
            std::cout << nets.size() - 1 << std::endl;
        } else if (word == "run" || word == "layers") {
            size_t number;
            int count;
            in >> number >> count;
            if (word == "run") {
                std::cout << nets.at(number)->run(count) << std::endl;
                continue;
            }
            for (double t : nets.at(number)->layers(count)) std::cout << t << " ";
            std::cout << std::endl;
        } else {
            if (word == "conv") nets.back()->conv(in);
            if (word == "gemm") nets.back()->gemm(in);
            if (word == "bmm") nets.back()->bmm(in);
            if (!in) {
                std::cerr << "cannot read: " << line << "\n";
                return 1;
            }
            std::cout << "ok" << std::endl;
        }
    }
}
