// The side of a bench that calls a library with nothing in between: the protocol of bench/harness.lua for C++ programs.
#pragma once

#include <omp.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace direct {

// Makes n calls.
using Run = std::function<void(long)>;

struct Workload {
    std::string name;
    std::function<Run()> setup;
};

// Numbers from a normal distribution, aligned to a cache line; never freed, as inputs live as long as their workload.
// Large arrays get large pages, as frameworks take them.
inline float* randn(std::size_t count) {
    constexpr std::size_t kPage = 2u << 20;
    const std::size_t bytes = count * sizeof(float), unit = bytes < 2 * kPage ? 64 : kPage;
    auto* data = static_cast<float*>(std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit));
    if (unit == kPage) madvise(data, (bytes + unit - 1) / unit * unit, MADV_HUGEPAGE);
    std::mt19937 bits(1);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < count; ++i) data[i] = normal(bits);
    return data;
}

inline double batch_ns(const Run& run, long n) {
    const auto start = std::chrono::steady_clock::now();
    run(n);
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

// The number of calls that takes about 20 ms.
inline long calibrate(const Run& run) {
    run(1);  // makes what later calls find ready
    for (long n = 1;; n *= 2) {
        if (batch_ns(run, n) >= 20e6) return n;
    }
}

// The fastest of several ways to do the same.
inline Run fastest(const std::vector<Run>& ways) {
    const Run* best = nullptr;
    double best_ns = 0;
    for (const Run& way : ways) {
        const long n = calibrate(way);
        double ns = batch_ns(way, n) / n;
        ns = std::min(ns, batch_ns(way, n) / n);
        if (!best || ns < best_ns) best = &way, best_ns = ns;
    }
    return *best;
}

inline int serve(const std::vector<Workload>& workloads) {
    std::string current, line;
    Run run;
    long n = 1;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        std::string command, name;
        long repeats = 0;
        words >> command >> name >> repeats;
        if (command == "threads") {
            omp_set_num_threads(std::stoi(name));
            std::cout << "{\"ok\":true}" << std::endl;
        } else if (command == "list") {
            std::cout << '[';
            for (const Workload& w : workloads) {
                std::cout << (&w == &workloads.front() ? "" : ",") << "{\"workload\":\"" << w.name << "\"}";
            }
            std::cout << ']' << std::endl;
        } else {
            if (name != current) {
                run = nullptr;
                for (const Workload& w : workloads) {
                    if (w.name == name) run = w.setup();
                }
                if (!run) {
                    std::cout << "{\"error\":\"no workload " << name << "\"}" << std::endl;
                    continue;
                }
                n = calibrate(run);
                current = name;
            }
            std::cout << "{\"workload\":\"" << name << "\",\"ns\":[";
            for (long i = 0; i < repeats; ++i) std::cout << (i ? "," : "") << batch_ns(run, n) / n;
            std::cout << "]}" << std::endl;
        }
    }
    return 0;
}

}  // namespace direct
