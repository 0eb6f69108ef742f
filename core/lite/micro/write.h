// A light model as a program in C99, for processors without an operating system: see README.md.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/lite/format/model.h"

namespace lunaria::lite::micro {

enum class Target : uint8_t {
    generic,   // any C99 compiler
    cortex_m,  // also a start and a linker script for Arm's MPS2 board with a Cortex-M4, which QEMU simulates
};

// Inputs and the outputs that they give, in the order of the model: what the test program checks.
struct Sample {
    std::vector<std::span<const std::byte>> inputs{}, outputs{};
};

struct Options {
    Target target = Target::generic;
    std::string title{};      // for the comments
    double tolerance = 1e-5;  // of floats in the test program, relative to the largest of the output
};

struct File {
    std::string name{}, text{};
};

struct Written {
    std::vector<File> files{};
    uint64_t arena_bytes = 0;   // the exact size of the working memory
    uint64_t live_bytes = 0;    // the largest number of bytes of it that are in use at once
    uint64_t weight_bytes = 0;  // of constants
};

// Throws value_error, which names step, node and operator, where there is no C for a step.
Written write_c(const Model& model, std::span<const Sample> samples, const Options& options);

}  // namespace lunaria::lite::micro
