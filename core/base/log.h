// What Lunaria tells of its own decisions on the standard error stream, for who asked in the environment: LUNARIA_LOG
// is a list, with commas, of the topics below, or "all".
#pragma once

#include <string_view>

namespace lunaria {

enum class LogTopic : unsigned {
    compiles,    // a function or a graph was compiled, and how long it took
    recompiles,  // a compiled function met something else than before, and what
    fallbacks,   // a function, or an operator of a graph, is left to Lua or to its own kernel, and why
    cache,       // kernels that no cache had
    library      // Lunaria's own functions, too, in what is told of the way of an error
};

// Whether somebody wants to know: to be asked before a text is made.
bool logs(LogTopic topic);
// Writes "lunaria: TOPIC: text" and the end of the line at once.
void log(LogTopic topic, std::string_view text);

}  // namespace lunaria
