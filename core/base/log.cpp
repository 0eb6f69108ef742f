#include "core/base/log.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "core/base/printable.h"

namespace lunaria {

namespace {

constexpr std::array<std::string_view, 5> kTopics = {"compiles", "recompiles", "fallbacks", "cache", "library"};

void write(std::string_view text) {
    const std::string line = printable(text);
    std::fwrite(line.data(), 1, line.size(), stderr);
}

unsigned read_topics() {
    const char* wish = std::getenv("LUNARIA_LOG");
    std::string_view rest = wish ? wish : "";
    unsigned topics = 0;
    while (!rest.empty()) {
        const std::string_view word = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), word.size() + 1));
        bool known = word == "all" || word.empty();
        if (word == "all") topics = (1u << kTopics.size()) - 1;
        for (size_t i = 0; i < kTopics.size(); ++i) {
            if (word != kTopics[i]) continue;
            topics |= 1u << i;
            known = true;
        }
        if (!known)
            write(str("lunaria: LUNARIA_LOG: there is no topic '", word,
                      "'; there are: all, compiles, recompiles, fallbacks, cache, library\n"));
    }
    return topics;
}

}  // namespace

bool logs(LogTopic topic) {
    static const unsigned topics = read_topics();
    return topics >> static_cast<unsigned>(topic) & 1;
}

void log(LogTopic topic, std::string_view text) {
    write(str("lunaria: ", kTopics[static_cast<size_t>(topic)], ": ", text, "\n"));
}

}  // namespace lunaria
