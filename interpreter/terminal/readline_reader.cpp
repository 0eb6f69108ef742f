// GNU readline as a reader of whole cells: one buffer with line breaks. Enter breaks the line while the text is
// incomplete and accepts it otherwise, the arrows move within the buffer before they move in the history, pasted lines
// arrive together. Driven by callbacks, so that Ctrl-C can end a read whatever readline is doing.
#include "interpreter/terminal/line_reader.h"

#ifdef LUNARIA_WITH_READLINE

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <vector>

// After <cstdio>, on which they rely.
#include <readline/history.h>
#include <readline/readline.h>

#include "interpreter/terminal/colours.h"

namespace lunaria {

namespace {

constexpr int kHistoryLength = 10000;
constexpr size_t kMostShown = 300;

class ReadlineReader;
// The reader for readline's callbacks, which are plain functions.
ReadlineReader* active = nullptr;

std::string_view buffer() { return {rl_line_buffer, static_cast<size_t>(rl_end)}; }

class ReadlineReader final : public LineReader {
  public:
    ReadlineReader(Hooks hooks, std::string history_file, bool color)
        : hooks_(std::move(hooks)), history_file_(std::move(history_file)), color_(color) {
        active = this;
        rl_readline_name = "lunaria";
        rl_catch_signals = 0;
        rl_outstream = stdout;
        rl_initialize();
        if (color_) rl_redisplay_function = [] { active->redisplay(); };
        rl_variable_bind("enable-bracketed-paste", "on");
        rl_variable_bind("enable-active-region", "off");
        rl_variable_bind("page-completions", "off");
        rl_variable_bind("blink-matching-paren", "off");
        for (int key : {'\r', '\n'}) rl_bind_key(key, [](int count, int k) { return active->on_enter(count, k); });
        rl_bind_keyseq("\\e\\r", [](int, int) { return rl_insert_text("\n"); });
        rl_bind_key('\t', [](int, int) { return active->on_tab(); });
        for (const char* up : {"\\e[A", "\\eOA"})
            rl_bind_keyseq(up,
                           [](int count, int key) { return move_line(-1) ? 0 : rl_get_previous_history(count, key); });
        for (const char* down : {"\\e[B", "\\eOB"})
            rl_bind_keyseq(down, [](int count, int key) { return move_line(1) ? 0 : rl_get_next_history(count, key); });
        open_history();
    }
    ~ReadlineReader() override {
        if (!history_file_.empty()) history_truncate_file(history_file_.c_str(), kHistoryLength);
        clear_history();
        HISTORY_STATE* cells = history_get_history_state();
        history_set_history_state(&commands_);
        clear_history();
        history_set_history_state(cells);
        std::free(commands_.entries);
        std::free(cells);
        active = nullptr;
    }
    ReadlineReader(const ReadlineReader&) = delete;
    ReadlineReader& operator=(const ReadlineReader&) = delete;

    Input read_cell(const std::string& prompt, const std::string& initial) override {
        cell_ = true;
        prompt_width_ = static_cast<int>(prompt.size());
        painted_ = false;
        return read(color_ ? "\001\033[1;34m\002" + prompt + "\001\033[0m\002" : prompt, initial);
    }
    Input read_line(const std::string& prompt) override {
        cell_ = false;
        return read(prompt, "");
    }

    Input read_command(const std::string& prompt, const decltype(Hooks::complete)& complete) override {
        cell_ = false;
        complete_ = &complete;
        HISTORY_STATE* cells = history_get_history_state();
        history_set_history_state(&commands_);
        using_history();
        Input input = read(prompt, "");
        complete_ = nullptr;
        const bool seen = history_length > 0 && input.text == history_get(history_base + history_length - 1)->line;
        if (input.event == Event::text && !input.text.empty() && !seen) add_history(input.text.c_str());
        HISTORY_STATE* commands = history_get_history_state();
        commands_ = *commands;
        history_set_history_state(cells);
        std::free(commands);
        std::free(cells);
        using_history();
        return input;
    }

    void remember(const std::string& cell) override {
        if (cell.find_first_not_of(" \t\n") == std::string::npos) return;
        if (history_length > 0) {
            const HIST_ENTRY* last = history_get(history_base + history_length - 1);
            if (last && cell == last->line) return;
        }
        add_history(cell.c_str());
        if (!history_file_.empty()) append_history(1, history_file_.c_str());
    }

  private:
    void open_history() {
        using_history();
        stifle_history(kHistoryLength);
        // Entries of several lines need all three: without them they come back as one entry per line.
        history_write_timestamps = 1;
        history_comment_char = '#';
        history_multiline_entries = 1;
        if (history_file_.empty()) return;
        const int file = open(history_file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (file < 0) {
            history_file_.clear();
            return;
        }
        close(file);
        read_history(history_file_.c_str());
    }

    // Ctrl-C is blocked except while waiting, so that it cannot come between the check and the wait.
    Input read(const std::string& prompt, const std::string& initial) {
        sigset_t only_interrupt, before, waiting;
        sigemptyset(&only_interrupt);
        sigaddset(&only_interrupt, SIGINT);
        pthread_sigmask(SIG_BLOCK, &only_interrupt, &before);
        waiting = before;
        sigdelset(&waiting, SIGINT);
        take_interrupt();
        done_ = false;
        result_ = {};
        std::fflush(stdout);
        rl_callback_handler_install(prompt.c_str(), [](char* line) { active->on_line(line); });
        if (!initial.empty()) {
            rl_insert_text(initial.c_str());
            rl_redisplay();
        }
        while (!done_) {
            pollfd input{STDIN_FILENO, POLLIN, 0};
            const int ready = ppoll(&input, 1, nullptr, &waiting);
            if (take_interrupt())
                on_interrupt();
            else if (ready < 0 && errno == EINTR)
                rl_resize_terminal();
            else
                rl_callback_read_char();
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        return std::move(result_);
    }

    void on_line(char* line) {
        rl_callback_handler_remove();
        result_.event = line ? Event::text : Event::end;
        if (line) result_.text = line;
        if (!line) std::fputs("\n", stdout);
        std::free(line);
        done_ = true;
    }

    void on_interrupt() {
        const bool was_empty = rl_end == 0;
        rl_callback_sigcleanup();
        rl_free_line_state();
        rl_replace_line("", 0);
        rl_callback_handler_remove();
        std::fputs(was_empty && cell_ ? "^C (Ctrl-D or exit leaves)\n" : "^C\n", stdout);
        std::fflush(stdout);
        result_.event = Event::interrupt;
        done_ = true;
    }

    int on_enter(int count, int key) {
        if (!cell_) return rl_newline(count, key);
        const InputCheck check = hooks_.check(std::string(buffer()));
        // The text may be complete while lines are inserted in the middle of it; Enter accepts only at its end.
        if (check.kind != InputKind::incomplete) {
            rl_point = rl_end;
            align_closing_line("");
            rl_redisplay_function();
            return rl_newline(count, key);
        }
        align_closing_line(rl_point == rl_end ? check.indent : "");
        rl_insert_text(("\n" + (rl_point == rl_end ? check.indent : "")).c_str());
        return 0;
    }

    // `end` and similar words are indented like the start of their block; `indent` is that of the next line.
    static void align_closing_line(const std::string& indent) {
        const std::string_view text = buffer();
        const size_t begin = text.rfind('\n') + 1;  // 0 when there is none
        const std::string_view line = text.substr(begin);
        const size_t margin = std::min(line.find_first_not_of(' '), line.size());
        const std::string_view rest = line.substr(margin);
        const std::string_view word = rest.substr(0, rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
        const bool goes_on = word == "else" || word == "elseif";  // and opens the block of the next line
        const bool closes =
            goes_on || word == "end" || word == "until" || rest.starts_with('}') || rest.starts_with(')');
        const size_t wanted = indent.size() - (goes_on ? std::min<size_t>(2, indent.size()) : 0);
        if (begin == 0 || rl_point != rl_end || !closes || margin <= wanted) return;
        const int surplus = static_cast<int>(margin - wanted);
        rl_delete_text(static_cast<int>(begin), static_cast<int>(begin) + surplus);
        rl_point = rl_end;
    }

    // Readline's display with colours: it puts the characters, and here they are written once more where they are.
    void redisplay() {
        rl_redisplay();
        // Not while the prompt is that of a search.
        if (!cell_ || done_ || rl_display_prompt != rl_prompt) return;
        const std::string text(buffer());
        if (!has_colours(text) && !painted_) return;
        painted_ = true;
        int rows = 0, columns = 0;
        rl_get_screen_size(&rows, &columns);
        const std::string codes = coloured_in_place(text, static_cast<size_t>(rl_point), prompt_width_, columns, rows);
        std::fwrite(codes.data(), 1, codes.size(), rl_outstream);
        std::fflush(rl_outstream);
    }

    // To the same column of the line above or below; false at the edge of the buffer.
    static bool move_line(int direction) {
        const std::string_view text = buffer();
        const size_t point = static_cast<size_t>(rl_point);
        const size_t begin = point == 0 ? 0 : text.rfind('\n', point - 1) + 1;
        const size_t column = point - begin;
        size_t target = 0;
        if (direction < 0) {
            if (begin == 0) return false;
            target = begin < 2 ? 0 : text.rfind('\n', begin - 2) + 1;
        } else {
            const size_t end = text.find('\n', point);
            if (end == std::string_view::npos) return false;
            target = end + 1;
        }
        const size_t target_end = std::min(text.find('\n', target), text.size());
        rl_point = static_cast<int>(std::min(target + column, target_end));
        return true;
    }

    int on_tab() {
        const std::string text(buffer());
        const size_t cursor = static_cast<size_t>(rl_point);
        const size_t line = cursor == 0 ? 0 : text.rfind('\n', cursor - 1) + 1;
        const bool can_complete = cell_ || complete_;
        if (!can_complete || text.find_first_not_of(" \t", line) >= cursor) return rl_insert_text("  ");
        const Completions found = cell_ ? hooks_.complete(text, cursor) : (*complete_)(text, cursor);
        if (found.items.empty()) return rl_ding();
        std::string common = found.items.front().text;
        for (const CompletionItem& item : found.items) {
            size_t same = 0;
            while (same < common.size() && same < item.text.size() && common[same] == item.text[same]) ++same;
            common.resize(same);
        }
        if (common.size() > cursor - found.begin) {
            rl_begin_undo_group();
            rl_delete_text(static_cast<int>(found.begin), rl_point);
            rl_point = static_cast<int>(found.begin);
            rl_insert_text(common.c_str());
            rl_end_undo_group();
        } else if (found.items.size() > 1) {
            show(found.items);
        }
        return 0;
    }

    static void show(const std::vector<CompletionItem>& items) {
        const size_t count = std::min(items.size(), kMostShown);
        std::vector<std::string> texts{""};
        size_t longest = 0;
        for (size_t i = 0; i < count; ++i) {
            texts.push_back(items[i].text);
            longest = std::max(longest, items[i].text.size());
        }
        std::vector<char*> rows;
        for (std::string& text : texts) rows.push_back(text.data());
        rows.push_back(nullptr);
        rl_display_match_list(rows.data(), static_cast<int>(count), static_cast<int>(longest));
        if (count < items.size()) std::fprintf(rl_outstream, "... and %zu more\n", items.size() - count);
        rl_on_new_line();
        rl_redisplay();
    }

    Hooks hooks_;
    std::string history_file_;
    const decltype(Hooks::complete)* complete_ = nullptr;  // of read_command
    HISTORY_STATE commands_{};
    bool color_, cell_ = true, done_ = false;
    int prompt_width_ = 0;
    bool painted_ = false;  // the text has or had colours
    Input result_;
};

}  // namespace

std::unique_ptr<LineReader> make_readline_reader(LineReader::Hooks hooks, const std::string& history_file, bool color) {
    return std::make_unique<ReadlineReader>(std::move(hooks), history_file, color);
}

}  // namespace lunaria

#else

namespace lunaria {

std::unique_ptr<LineReader> make_readline_reader(LineReader::Hooks, const std::string&, bool) { return nullptr; }

}  // namespace lunaria

#endif
