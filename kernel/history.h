// The cells of this and earlier sessions, in a file of JSON lines that several kernels may append to at a time. Without
// a file that can be written the history lives as long as the kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>
#include <xeus/xhistory_manager.hpp>

namespace lunaria::jupyter {

class History final : public xeus::xhistory_manager {
  public:
    // The file need not exist; "" means none. Nothing is read before the history is first asked for. `line` returns the
    // number of the cell that ran last: xeus calls every cell the first.
    History(std::string path, std::function<int()> line);

    // The place of the user's history by freedesktop.org's rules; "" when there is no home.
    static std::string user_file();

  private:
    struct Entry {
        int session;
        int line;
        std::string code;
    };

    void configure_impl() override {}
    void store_inputs_impl(int session, int line, const std::string& code, const std::string& output) override;
    nl::json get_tail_impl(int n, bool raw, bool output) const override;
    nl::json get_range_impl(int session, int start, int stop, bool raw, bool output) const override;
    nl::json search_impl(const std::string& pattern, bool raw, bool output, int n, bool unique) const override;

    // The file's entries, oldest first, and this session's; where the file fails, this session's alone.
    std::vector<Entry> all() const;
    void open_session();
    void append(const std::string& line);

    std::string path_;
    std::function<int()> line_;
    int session_ = 0;  // 0: nothing stored yet
    std::vector<Entry> own_;
};

// Whether the text matches a pattern of `*` (any text) and `?` (any character).
bool glob_matches(std::string_view pattern, std::string_view text);

}  // namespace lunaria::jupyter
