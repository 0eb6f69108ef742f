// Readers of a session's cells from a terminal or a file.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "interpreter/session/completion.h"
#include "interpreter/session/session.h"

namespace lunaria {

class LineReader {
  public:
    struct Hooks {
        std::function<Completions(const std::string& text, size_t cursor)> complete;
        std::function<InputCheck(const std::string& text)> check;
    };
    enum class Event { text, interrupt, end };
    struct Input {
        Event event = Event::text;
        std::string text;
    };

    virtual ~LineReader() = default;
    // A whole cell: reads on while the text is incomplete, beginning with `initial`.
    virtual Input read_cell(const std::string& prompt, const std::string& initial) = 0;
    // One line, without history and completion.
    virtual Input read_line(const std::string& prompt) = 0;
    // One line of another language than cells, with editing, a history of its own while the program runs, and
    // completion.
    virtual Input read_command(const std::string& prompt, const decltype(Hooks::complete)& complete) = 0;
    virtual void remember(const std::string& cell) = 0;
};

// Whether Ctrl-C came since the last call. Readers call it; the signal handler of the terminal sets it.
bool take_interrupt() noexcept;
void note_interrupt() noexcept;

// With editing, history in a file (empty path: none) and completion. Null when the program was built without readline.
// At most one at a time.
std::unique_ptr<LineReader> make_readline_reader(LineReader::Hooks hooks, const std::string& history_file, bool color);
// Lines as they come from standard input.
std::unique_ptr<LineReader> make_plain_reader(LineReader::Hooks hooks);

}  // namespace lunaria
