// Light models for the tests of the micro writer, built step by step, and the compilers that their C goes through.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/base/error.h"
#include "core/lite/format/file.h"
#include "core/lite/kernels/integer.h"
#include "core/lite/micro/write.h"
#include "core/lite/runtime/executor.h"

namespace lunaria::lite::micro {

class Net {
  public:
    explicit Net(unsigned seed) : engine_(seed) {}
    Model model;

    std::vector<float> random(int64_t count, double deviation = 1) {
        std::vector<float> x(static_cast<size_t>(count));
        for (float& v : x) v = std::normal_distribution<float>(0, static_cast<float>(deviation))(engine_);
        return x;
    }
    std::vector<int8_t> random_bytes(int64_t count, int least = -127) {
        std::vector<int8_t> x(static_cast<size_t>(count));
        for (int8_t& v : x) v = static_cast<int8_t>(std::uniform_int_distribution<int>(least, 127)(engine_));
        return x;
    }

    uint32_t value(Value::Home home, DType dtype, const std::vector<int64_t>& shape, std::string name = {}) {
        Value v;
        v.name = std::move(name);
        v.home = home;
        v.dtype = dtype;
        v.shape.assign(shape.begin(), shape.end());
        const auto number = static_cast<uint32_t>(model.values.size());
        if (home == Value::Home::input) model.inputs.push_back(number);
        if (home == Value::Home::output) model.outputs.push_back(number);
        model.values.push_back(std::move(v));
        return number;
    }
    uint32_t temporary(DType dtype, const std::vector<int64_t>& shape) {
        return value(Value::Home::arena, dtype, shape);
    }
    template <class T>
    uint32_t constant(DType dtype, const std::vector<int64_t>& shape, const std::vector<T>& elements) {
        const uint32_t v = value(Value::Home::constant, dtype, shape);
        auto& bytes = memory_.emplace_back(elements.size() * sizeof(T));
        std::memcpy(bytes.data(), elements.data(), bytes.size());
        model.values[v].data = bytes.data();
        model.values[v].bytes = bytes.size();
        return v;
    }
    // The bytes that `pack` fills.
    template <class F>
    uint32_t packed(int64_t bytes, F pack) {
        std::vector<std::byte> to(static_cast<size_t>(bytes));
        pack(to.data());
        return constant(DType::u8, {bytes}, to);
    }

    Step& step(std::string kind, const std::vector<uint32_t>& operands, uint32_t result) {
        Step s;
        s.kind = s.label = std::move(kind);
        for (const uint32_t o : operands) s.operands.push_back({o});
        s.results.push_back({result});
        model.steps.push_back(std::move(s));
        return model.steps.back();
    }
    static void set(Step& s, std::string name, std::vector<int64_t> integers) {
        Attribute a;
        a.name = std::move(name);
        a.integers.assign(integers.begin(), integers.end());
        s.attributes.push_back(std::move(a));
    }
    static void set(Step& s, std::string name, double number) {
        Attribute a;
        a.name = std::move(name);
        a.kind = Attribute::Kind::numbers;
        a.numbers = {number};
        s.attributes.push_back(std::move(a));
    }
    static void set(Step& s, std::string name, std::string text) {
        Attribute a;
        a.name = std::move(name);
        a.kind = Attribute::Kind::text;
        a.text = std::move(text);
        s.attributes.push_back(std::move(a));
    }

    // What the runtime computes, by output.
    std::vector<std::vector<std::byte>> outputs(const std::vector<std::vector<std::byte>>& inputs) const {
        std::vector<std::byte> file;
        const std::string wrong = write_model(model, [&](std::span<const std::byte> part) {
            file.insert(file.end(), part.begin(), part.end());
            return true;
        });
        EXPECT_EQ(wrong, "");
        auto* const aligned = static_cast<std::byte*>(std::aligned_alloc(64, (file.size() + 63) / 64 * 64));
        std::memcpy(aligned, file.data(), file.size());
        std::string fault;
        std::vector<std::vector<std::byte>> results;
        {
            const auto executor =
                Executor::make({aligned, file.size()}, std::make_shared<Threads>(1, Affinity(), std::vector<int>()),
                               std::make_shared<Workspace>(), fault);
            EXPECT_EQ(fault, "");
            std::vector<const void*> in;
            std::vector<void*> out;
            for (const auto& x : inputs) in.push_back(x.data());
            for (const uint32_t v : model.outputs)
                out.push_back(results.emplace_back(executor ? executor->bytes(v) : 0).data());
            EXPECT_TRUE(executor && executor->run(in, out, {}, fault)) << fault;
        }
        std::free(aligned);
        return results;
    }

    // The model as C, with this sample.
    Written written(const std::vector<std::vector<std::byte>>& inputs,
                    const std::vector<std::vector<std::byte>>& outputs, Options options = {}) const {
        Sample sample;
        for (const auto& x : inputs) sample.inputs.emplace_back(x);
        for (const auto& y : outputs) sample.outputs.emplace_back(y);
        return write_c(model, std::span(&sample, 1), options);
    }

  private:
    std::mt19937 engine_;
    std::deque<std::vector<std::byte>> memory_;
};

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& x) {
    const auto* const first = reinterpret_cast<const std::byte*>(x.data());
    return {first, first + x.size() * sizeof(T)};
}

// A folder with the files, which is removed at the end.
class Folder {
  public:
    explicit Folder(const Written& written)
        : path_(std::filesystem::temp_directory_path() / ("lunaria_micro_" + std::to_string(::getpid()))) {
        std::filesystem::remove_all(path_);
        std::filesystem::create_directories(path_);
        for (const File& f : written.files) std::ofstream(path_ / f.name) << f.text;
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    // The output of a shell command in the folder, and whether it succeeded.
    std::pair<bool, std::string> run(const std::string& command) const {
        const std::string line = "cd '" + path_.string() + "' && (" + command + ") >output.txt 2>&1";
        const bool good = std::system(line.c_str()) == 0;
        std::ifstream in(path_ / "output.txt");
        return {good, {std::istreambuf_iterator<char>(in), {}}};
    }
    static bool has(const std::string& command) {
        return std::system(("command -v " + command + " >/dev/null 2>&1").c_str()) == 0;
    }

  private:
    std::filesystem::path path_;
};

}  // namespace lunaria::lite::micro
