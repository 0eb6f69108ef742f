// The command line: lunaria [options] [script [args]], as in the lua command.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lunaria {

struct CommandLine {
    struct Step {  // -e, -l and -W, in order
        enum class Kind { execute, require_module, warnings } kind;
        std::string text;
    };
    std::vector<Step> steps;
    std::optional<std::string> script;   // "-": standard input
    std::vector<std::string> arguments;  // of the program, all of them; arg[0] is at script_position
    int script_position = 0;
    bool interactive = false, version = false, help = false, ignore_environment = false;
    bool debug = false;               // the script stops at its first line
    std::optional<std::string> docs;  // folder to write the reference to
    bool html = false;                // as a site

    // Nothing to run was named: the program starts a session, if standard input is a terminal.
    bool wants_session() const { return interactive || (!script && steps.empty() && !version && !help && !docs); }
};

// Throws argument_error on an unknown option.
CommandLine parse_command_line(int count, const char* const* arguments);

extern const std::string_view kUsage;

}  // namespace lunaria
