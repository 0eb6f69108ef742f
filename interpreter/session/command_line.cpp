#include "interpreter/session/command_line.h"

#include "core/base/error.h"
#include "core/base/spelling.h"
#include "interpreter/values/values.h"

namespace lunaria {

const std::string_view kUsage =
    "usage: lunaria [options] [script or notebook.ipynb [args]]\n"
    "  -e STAT      execute the statements in STAT\n"
    "  -i           start a session after the script\n"
    "  -l NAME      require the module NAME into the global NAME; -l g=NAME into the global g\n"
    "  -v           print the version (also --version)\n"
    "  -E           ignore environment variables\n"
    "  -W           turn warnings on\n"
    "  check ...    find mistakes in scripts and notebooks without running them; lunaria check --help\n"
    "  stubs DIR    write annotations of everything that has a name, for editors; lunaria stubs --help\n"
    "  onnx-run ... run an ONNX model on files; lunaria onnx-run --help\n"
    "  ascend ...   estimate a network on the simulated Ascend; lunaria ascend --help\n"
    "  insight ...  show trainings in the browser, look at graphs; lunaria insight --help\n"
    "  lite ...     networks as light models that run without this program; lunaria lite --help\n"
    "  lessons ...  list the lessons, copy them, open one in JupyterLab; lunaria lessons --help\n"
    "  launch ...   run a script as several ranks that work together; lunaria launch --help\n"
    "  ranks ...    what the ranks of a job do or did last; lunaria ranks --help\n"
    "  kernel ...   run the Jupyter kernel; lunaria kernel --help\n"
    "  --debug      stop the script at its first line and ask what to do\n"
    "  --docs DIR   write the reference of everything that has a name to DIR, as Markdown\n"
    "  --html       with --docs: as a site with search, which opens from its index.html\n"
    "  --help       print this text\n"
    "  --           stop handling options\n"
    "  -            run standard input as a script\n"
    "Without a script and with a terminal, a session starts; otherwise standard input is the script.\n";

namespace {

// The flag that an option without an argument sets.
bool* flag_of(CommandLine& line, std::string_view word) {
    const std::pair<std::string_view, bool*> flags[] = {{"--version", &line.version}, {"-v", &line.version},
                                                        {"--help", &line.help},       {"-h", &line.help},
                                                        {"--debug", &line.debug},     {"--html", &line.html},
                                                        {"-i", &line.interactive},    {"-E", &line.ignore_environment}};
    for (auto [name, flag] : flags)
        if (name == word) return flag;
    return nullptr;
}

}  // namespace

CommandLine parse_command_line(int count, const char* const* given) {
    CommandLine result;
    for (int i = 0; i < count; ++i) result.arguments.emplace_back(given[i]);
    int i = 1;
    // The text of an option: the rest of the word or the next one.
    auto text_of = [&](const std::string& word) {
        if (word.size() > 2) return word.substr(2);
        if (++i >= count) throw argument_error("lunaria", str("option ", word, " needs an argument"));
        return std::string(given[i]);
    };
    for (; i < count; ++i) {
        const std::string word = given[i];
        if (word.empty() || word[0] != '-' || word == "-") break;
        if (word == "--") {
            ++i;
            break;
        }
        if (bool* flag = flag_of(result, word)) {
            *flag = true;
        } else if (word == "--docs") {
            if (++i >= count) throw argument_error("lunaria", "option --docs needs a folder");
            result.docs = given[i];
        } else if (word == "-W") {
            result.steps.push_back({CommandLine::Step::Kind::warnings, ""});
        } else if (word.starts_with("-e")) {
            result.steps.push_back({CommandLine::Step::Kind::execute, text_of(word)});
        } else if (word.starts_with("-l")) {
            result.steps.push_back({CommandLine::Step::Kind::require_module, text_of(word)});
        } else {
            constexpr std::string_view kLong[] = {"--version", "--help", "--debug", "--docs", "--html", "--"};
            const std::string near = nearest(word, kLong);
            throw argument_error("lunaria", str("unrecognized option '", word, "'"))
                .hint(str(near, near.empty() ? "" : " ", "lunaria --help lists the options"));
        }
    }
    if (result.debug && i >= count) throw argument_error("lunaria", "option --debug needs a script");
    if (result.html && !result.docs) throw argument_error("lunaria", "option --html goes with --docs DIR");
    result.script_position = i < count ? i : 0;
    if (i < count) result.script = given[i];
    return result;
}

}  // namespace lunaria
