// lunaria-run: runs a saved program from the command line.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "backends/devices.h"
#include "core/loops/kernels.h"
#include "core/threads/threads.h"
#include "jit/runtime/command_line.h"
#include "jit/runtime/values.h"

namespace {

using namespace lunaria;
using namespace lunaria::runtime;

void print(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
        throw file_error("standard output", "cannot be written");
}

void set_up(const CommandLine& c) {
    set_up_devices();
    if (!c.cache.empty()) setenv("XDG_CACHE_HOME", std::filesystem::absolute(c.cache).c_str(), 1);
    graph::set_kernel_origin(c.kernels ? graph::KernelOrigin::cache : graph::KernelOrigin::none);
    if (c.threads > 0) set_num_threads(c.threads);
}

// "5 runs: the first 3.21 ms, the others 0.12 ms at the median, 0.11 ms at least; ..."
std::string times_text(std::vector<double> times, const Counts& counts) {
    const auto ms = [](double seconds) {
        char text[32];
        std::snprintf(text, sizeof text, "%.3f ms", seconds * 1e3);
        return std::string(text);
    };
    std::string text = str(times.size(), " runs: the first ", ms(times[0]));
    std::sort(times.begin() + 1, times.end());
    if (times.size() > 1)
        text +=
            str(", the others ", ms(times[1 + (times.size() - 1) / 2]), " at the median, ", ms(times[1]), " at least");
    text += str("; ", counts.recorded, " recorded, ", counts.from_records, " from records with ", counts.graphs,
                " compiled graphs, ", counts.kernels, " kernels from the cache\n");
    if (!counts.refusal.empty()) text += "not all is compiled: " + counts.refusal + "\n";
    return text;
}

void run(const CommandLine& c, std::optional<Program>& loaded) {
    set_up(c);
    Program& program = loaded.emplace(*open_source(c.program));
    const auto& signature = program.signature();
    if (c.info) return print(describe(signature));
    std::vector<Value> inputs;
    for (size_t i = 0; i < c.inputs.size(); ++i)
        inputs.push_back(
            input_of(c.inputs[i], i < signature.inputs.size() ? signature.inputs[i].type : ir::NodeType()));
    std::vector<Value> results;
    std::vector<double> times;
    for (int i = 0; i < c.repeat; ++i) {
        const auto start = std::chrono::steady_clock::now();
        results = program.run(inputs);
        times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    if (!c.out.empty()) write_results(results, c.out);
    if (c.print || c.out.empty())
        for (const Value& v : results) print(Program::text(v) + "\n");
    if (c.repeat > 1) std::fputs(times_text(std::move(times), program.counts()).c_str(), stderr);
}

}  // namespace

int main(int count, char** arguments) {
    std::string file;
    try {
        const CommandLine c = read_command_line({arguments + 1, static_cast<size_t>(std::max(count - 1, 0))});
        file = c.program;
        if (c.help) {
            print(help_text());
        } else if (c.version) {
            print("lunaria-run " LUNARIA_VERSION "\n");
        } else {
            std::optional<Program> program;
            run(c, program);
            if (std::fflush(stdout) != 0) throw file_error("standard output", "cannot be written");
            // The system takes the memory back sooner than the program would free the values in it.
            std::_Exit(0);
        }
        return 0;
    } catch (const UsageError& e) {
        std::fprintf(stderr, "lunaria-run: %s\n", e.what());
        return 2;
    } catch (const Error& e) {
        // Errors of the program itself have its place; those of files have the file's name.
        const std::string place = e.place().empty() ? "" : e.place() + ": ";
        const bool named = std::string_view(e.what()).starts_with(file);
        std::fflush(stdout);
        std::fprintf(stderr, "lunaria-run: %s%s%s\n", named ? "" : (file + ": ").c_str(), place.c_str(), e.what());
    } catch (const std::exception& e) {
        std::fflush(stdout);
        std::fprintf(stderr, "lunaria-run: %s: %s\n", file.c_str(), e.what());
    }
    return 1;
}
