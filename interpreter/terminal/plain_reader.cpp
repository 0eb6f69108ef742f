#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "interpreter/terminal/line_reader.h"

namespace lunaria {

namespace {

// A global, since a signal handler sets it.
std::atomic<bool> interrupted{false};

class PlainReader final : public LineReader {
  public:
    explicit PlainReader(Hooks hooks) : hooks_(std::move(hooks)) {}

    Input read_cell(const std::string& prompt, const std::string& initial) override {
        std::string text = initial;
        if (!initial.empty()) std::printf("%s\n", initial.c_str());
        for (std::string current = prompt;; current = prompt.empty() ? "" : ">> ") {
            Input line = read_line(current);
            if (line.event == Event::interrupt) return line;
            if (line.event == Event::end) return text.empty() ? line : Input{Event::text, text};
            text += (text.empty() ? "" : "\n") + line.text;
            if (hooks_.check(text).kind != InputKind::incomplete) return {Event::text, text};
        }
    }

    Input read_line(const std::string& prompt) override {
        std::fputs(prompt.c_str(), stdout);
        std::fflush(stdout);
        std::string line;
        for (;;) {
            const int c = std::getc(stdin);
            if (c == '\n') return {Event::text, line};
            if (c != EOF) {
                line += static_cast<char>(c);
                continue;
            }
            if (take_interrupt()) {
                std::clearerr(stdin);
                std::fputs("\n", stdout);
                return {Event::interrupt, ""};
            }
            if (std::ferror(stdin) && errno == EINTR) {
                std::clearerr(stdin);
                continue;
            }
            if (!prompt.empty()) std::fputs("\n", stdout);
            return line.empty() ? Input{Event::end, ""} : Input{Event::text, line};
        }
    }

    Input read_command(const std::string& prompt, const decltype(Hooks::complete)&) override {
        return read_line(prompt);
    }

    void remember(const std::string&) override {}

  private:
    Hooks hooks_;
};

}  // namespace

bool take_interrupt() noexcept { return interrupted.exchange(false); }
void note_interrupt() noexcept { interrupted.store(true); }

std::unique_ptr<LineReader> make_plain_reader(LineReader::Hooks hooks) {
    return std::make_unique<PlainReader>(std::move(hooks));
}

}  // namespace lunaria
