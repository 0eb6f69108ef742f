#include "jit/runtime/command_line.h"

#include <charconv>
#include <functional>
#include <string_view>

namespace lunaria::runtime {

namespace {

using Set = void (*)(CommandLine&, const std::string& value);

int number_in(std::string_view option, const std::string& text, int most) {
    int n = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (failed != std::errc() || end != text.data() + text.size() || n < 1 || n > most)
        throw UsageError(std::string(option) + " takes a number from 1 to " + std::to_string(most) + ", got '" + text +
                         "'");
    return n;
}

struct Option {
    std::string_view name;
    std::string_view value;  // what it takes, in the help; empty: nothing
    std::string_view help;
    Set set;
};

constexpr int kMostRuns = 1000000000, kMostThreads = 1024;

constexpr Option kOptions[] = {
    {"--out", "PREFIX",
     "write each result to PREFIX_0.npy, PREFIX_1.npy ... (texts: .txt; a folder PREFIX/: output_0.npy ...)",
     [](CommandLine& c, const std::string& v) { c.out = v; }},
    {"--print", "", "print the results; this is what happens without --out",
     [](CommandLine& c, const std::string&) { c.print = true; }},
    {"--repeat", "N", "run N times and tell how long it took; the results are those of the last run",
     [](CommandLine& c, const std::string& v) { c.repeat = number_in("--repeat", v, kMostRuns); }},
    {"--threads", "N", "compute with N threads",
     [](CommandLine& c, const std::string& v) { c.threads = number_in("--threads", v, kMostThreads); }},
    {"--cache", "DIR", "read kernels from DIR/lunaria/kernels (default: $XDG_CACHE_HOME, or ~/.cache)",
     [](CommandLine& c, const std::string& v) { c.cache = v; }},
    {"--no-kernels", "", "run every operator by its own loop",
     [](CommandLine& c, const std::string&) { c.kernels = false; }},
    {"--info", "", "print inputs, results, weights and functions of the program, and do not run it",
     [](CommandLine& c, const std::string&) { c.info = true; }},
    {"--version", "", "print the version", [](CommandLine& c, const std::string&) { c.version = true; }},
    {"--help", "", "print this text", [](CommandLine& c, const std::string&) { c.help = true; }},
};

}  // namespace

CommandLine read_command_line(std::span<const char* const> arguments) {
    CommandLine c;
    bool only_names = false;
    std::vector<std::string> names;
    for (size_t i = 0; i < arguments.size(); ++i) {
        const std::string text = arguments[i];
        if (!only_names && text == "--") {
            only_names = true;
            continue;
        }
        // A number with a minus is an input.
        if (only_names || !text.starts_with("--")) {
            names.push_back(text);
            continue;
        }
        const size_t sign = text.find('=');
        const std::string_view name = std::string_view(text).substr(0, sign);
        const Option* option = nullptr;
        for (const Option& o : kOptions)
            if (o.name == name) option = &o;
        if (!option) throw UsageError("there is no option " + std::string(name) + "; --help lists them");
        if (option->value.empty()) {
            if (sign != text.npos) throw UsageError(std::string(name) + " takes no value");
            option->set(c, {});
        } else if (sign != text.npos) {
            option->set(c, text.substr(sign + 1));
        } else {
            if (i + 1 >= arguments.size()) throw UsageError(std::string(name) + " needs " + std::string(option->value));
            option->set(c, arguments[++i]);
        }
    }
    if (c.help || c.version) return c;
    if (names.empty()) throw UsageError("no program is given; usage: lunaria-run [OPTION ...] FILE.mindir [INPUT ...]");
    c.program = names[0];
    c.inputs.assign(names.begin() + 1, names.end());
    return c;
}

std::string help_text() {
    std::string text =
        "usage: lunaria-run [OPTION ...] FILE.mindir [INPUT ...]\n"
        "Runs a program that was saved by ms.save_mindir or ms.export.\n"
        "\n"
        "An INPUT is a file FILE.npy, FILE.npz (a table of arrays: names that are numbers are places in a list), or\n"
        "a value: nil, true, -2.5, 1e-3, '\"a text\"', or a list '{1, 2, 3}'. A number or list where the program takes "
        "a\n"
        "tensor becomes one.\n"
        "\n";
    constexpr size_t kColumn = 18;
    for (const Option& o : kOptions) {
        std::string line = "  " + std::string(o.name) + (o.value.empty() ? "" : " ") + std::string(o.value);
        line.resize(std::max(line.size() + 1, kColumn), ' ');
        text += line + std::string(o.help) + "\n";
    }
    return text +
           "\n"
           "Kernels that the full program has generated (graph mode) are used where the cache has them. The status is "
           "0, 1\n"
           "for an error of the program or its files, 2 for a mistake on the command line.\n";
}

}  // namespace lunaria::runtime
