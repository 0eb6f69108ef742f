// Runs a program of one float32 input from several threads, into memory of our own, and compares what they get.
//
//     c++ -std=c++20 run.cpp $(pkg-config --cflags --libs lunaria) -o run && ./run net.onnx
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "lunaria.h"

using Program = std::unique_ptr<lunaria_program, decltype(&lunaria_free)>;

// The first output for an input that is filled with the value; nothing when there is an error.
static std::vector<float> run(lunaria_program* program, float value) {
    lunaria_info info{};
    if (lunaria_input(program, 0, &info) != 0) return {};
    lunaria_tensor input{LUNARIA_FLOAT32, info.rank, {}, nullptr, 0}, output{};
    size_t size = 1;
    for (int i = 0; i < info.rank; ++i)
        size *= static_cast<size_t>(input.shape[i] = info.shape[i] < 0 ? 2 : info.shape[i]);
    std::vector<float> elements(size, value), result(4096);
    input.data = elements.data();
    input.bytes = size * sizeof(float);
    output.data = result.data();
    output.bytes = result.size() * sizeof(float);
    if (lunaria_run(program, &input, 1, &output, 1) != 0) {
        std::fprintf(stderr, "error: %s\n", lunaria_error());
        return {};
    }
    size_t count = 1;
    for (int i = 0; i < output.rank; ++i) count *= static_cast<size_t>(output.shape[i]);
    result.resize(count);
    return result;
}

int main(int count, char** words) {
    const Program program(count > 1 ? lunaria_load(words[1]) : nullptr, &lunaria_free);
    if (!program) {
        std::fprintf(stderr, "error: %s\n", lunaria_error());
        return 1;
    }
    std::vector<std::vector<float>> expected;
    for (int k = 0; k < 4; ++k) expected.push_back(run(program.get(), 0.25f * static_cast<float>(k + 1)));
    std::vector<int> wrong(4);
    std::vector<std::thread> threads;
    for (int k = 0; k < 4; ++k)
        threads.emplace_back([&, k] {
            for (int turn = 0; turn < 25; ++turn)
                wrong[static_cast<size_t>(k)] +=
                    run(program.get(), 0.25f * static_cast<float>(k + 1)) != expected[static_cast<size_t>(k)];
        });
    for (std::thread& thread : threads) thread.join();
    for (float x : expected[1]) std::printf("%.6f\n", static_cast<double>(x));

    // Mistakes are errors.
    float few[1];
    lunaria_tensor input{LUNARIA_FLOAT32, 1, {3}, few, sizeof few}, output{};
    const bool refused = lunaria_run(program.get(), &input, 1, &output, 1) != 0 && std::strlen(lunaria_error()) > 0 &&
                         !lunaria_load("not_there.onnx") && std::strstr(lunaria_error(), "not_there.onnx");
    return expected[0].empty() || wrong != std::vector<int>(4) || !refused;
}
