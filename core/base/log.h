// Messages on the standard error stream about Lunaria's own decisions. The environment variable LUNARIA_LOG asks for
// them: a comma-separated list of the topics below, or "all".
#pragma once

#include <string_view>

namespace lunaria {

enum class LogTopic : unsigned {
    compiles,    // a function or a graph was compiled, and how long it took
    recompiles,  // a compiled function was called with something new, and what it was
    fallbacks,   // a function, or an operator of a graph, is left to Lua or to its own kernel, and why
    cache,       // kernels that were in no cache
    library      // Lunaria's own functions, also among the lines of an error's trace
};

// Whether the user asked for this topic. Callers check it before they make a text.
bool logs(LogTopic topic);
// Writes "lunaria: TOPIC: text" and the end of the line at once.
void log(LogTopic topic, std::string_view text);

}  // namespace lunaria
