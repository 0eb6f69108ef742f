// Lines of a dense tensor along one axis, each the work of a block of threads, for softmax, scans and sorts.
#pragma once

#include <algorithm>
#include <limits>
#include <string>

#include "backends/gpu/launcher.h"
#include "core/loops/thread_loop.h"
#include "core/tensor/device.h"

namespace lunaria::gpu {

struct Lines {
    int64_t outer = 1, n = 1, inner = 1;

    // Along the axis given by argument i, counted from the end if it is negative.
    Lines(const KernelCall& c, size_t i, const Shape& shape) {
        int64_t axis = c.has(i) ? c.args[i].integer() : shape.rank() - 1;
        if (axis < 0) axis += shape.rank();
        for (int k = 0; k < shape.rank(); ++k) (k < axis ? outer : k == axis ? n : inner) *= shape[k];
    }
    int64_t count() const { return outer * inner; }
    // The number of threads for a line; a power of 2.
    int threads() const {
        constexpr int kMost = 256;
        int threads = graph::kWarp;
        while (threads < kMost && threads * 4 < n) threads *= 2;
        return threads;
    }
};

// The line of a block.
struct Line {
    Number start, inner, n;
    int threads;
    Number at(Number k) const { return start + k * inner; }
};

// `begin(writer)` takes the arguments in `words` and returns a function that writes the code for a line.
template <class F>
bool run_lines(Launcher& launcher, const std::string& name, const Lines& lines, Words words, F begin) {
    constexpr int64_t kMostBlocks = 8192;
    words.size(lines.count()).size(lines.n).size(lines.inner);
    const int threads = lines.threads();
    return launcher.run(name + ' ' + std::to_string(threads), std::min(lines.count(), kMostBlocks), threads, words,
                        [&](Writer& w) {
                            auto body = begin(w);
                            const Number count = w.size(), n = w.size(), inner = w.size();
                            w.loop(w.block(), count, w.blocks(), [&](Number line) {
                                const Number start = quotient(line, inner) * n * inner + remainder(line, inner);
                                body(w, Line{start, inner, n, threads});
                            });
                        });
}

}  // namespace lunaria::gpu
