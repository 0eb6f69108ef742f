// The loader turns Lua text into functions. All of it passes through here (load, loadfile, dofile, require, the
// session's cells and scripts): our own parser checks it, so that messages about syntax are ours, Lua compiles it, and
// the text is kept for code that needs the source of a function later. Compiled chunks are refused: Lua does not check
// them, and a damaged one crashes the process.
#pragma once

#include <deque>
#include <list>
#include <lua.hpp>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interpreter/loader/function_code.h"
#include "interpreter/loader/prologue.h"

namespace lunaria {

namespace lua {
class Chunk;
struct Function;
}  // namespace lua

// The tree of a Lua function: its node in the tree of its chunk. Both null when there is no source.
struct FunctionSource {
    std::shared_ptr<const lua::Chunk> chunk;  // shared by users of the node and the loader's cache
    const lua::Function* function = nullptr;
    std::string problem;  // the reason why there is none: a clause for a message, such as "its source is not known"
};

class Loader {
  public:
    Loader();
    ~Loader();

    // Replaces load, loadfile, dofile and the searcher of require for Lua files.
    void install(lua_State* L);

    // Pushes the function that the text compiles to. `name` in Lua's form: "@file", "=name" or the text itself. Throws
    // Error(ErrorKind::syntax).
    void compile(lua_State* L, std::string_view text, const std::string& name);
    // Pushes the function of a file; `path` null: standard input. A first line that starts with '#' is skipped.
    // Throws file_error and syntax errors.
    void compile_file(lua_State* L, const char* path);

    // The text that a chunk of this name (lua_Debug::source) was compiled from, the latest first. For a chunk named by
    // its own text, that text.
    std::vector<std::string_view> sources(std::string_view name) const;

    // Keeps the text of a chunk that was compiled elsewhere.
    void keep(const std::string& name, std::string_view text);

    // Whether a text of the user's mentions the global `breakpoint`.
    bool mentions_breakpoint() const { return mentions_breakpoint_; }
    // Whether the program may have weak tables: a text of the user's mentions `__mode`, or a part of the library said
    // so.
    bool has_weak_tables() const { return has_weak_tables_; }
    void note_weak_tables() { has_weak_tables_ = true; }

    // The tree of the function at `index`. It is looked for in the text that its chunk keeps as long as one of its
    // functions lives or, without one, in the known texts of the chunk's name: by lines, parameters and upvalues, and
    // if several match, by its compiled code. The tree of a Lua function is never another function's, except of one
    // with the same code and upvalues that are treated alike.
    FunctionSource source_of(lua_State* L, int index);

  private:
    struct Tree {
        std::shared_ptr<const lua::Chunk> chunk;
        std::string dump;                               // once it was needed
        std::optional<std::vector<FunctionCode>> code;  // of its functions, in the dump; empty if unknown
    };
    Tree& tree_of(std::string_view text, const std::string& name);
    std::span<const FunctionCode> code_of(lua_State* L, Tree& tree, const std::string& name);
    std::vector<std::string_view> candidates(const std::string& name, bool& certain) const;
    // luaL_loadbufferx of a text, whose functions get their prologues.
    int load_text(lua_State* L, std::string_view text, const std::string& name);

    // Texts by chunk name. For a name that is used over and over (load in a loop) the last few are kept.
    struct Versions {
        std::list<std::string> texts;  // the latest first
        bool complete = true;          // none was dropped
    };
    using Texts = std::map<std::string, Versions, std::less<>>;
    void make_room(Texts::iterator latest);

    Texts texts_;
    // The texts that make_room() drops, the oldest first: cells and loaded texts, then files. The library's are kept.
    std::deque<Texts::iterator> droppable_, droppable_files_;
    size_t kept_bytes_ = 0;
    bool dropped_names_ = false;
    bool mentions_breakpoint_ = false, has_weak_tables_ = false;
    Prologues prologues_;
    // Recently used trees, the latest first.
    std::deque<Tree> trees_;
};

// The lines of a cell or file on which Lua code begins, in order: where a debugger can stop. None where the text is not
// Lua. From any thread.
std::vector<int> lines_with_code(const std::string& text);

// The name of a chunk in messages: lua_Debug::short_src for a given name, uncut.
std::string display_name(const std::string& name);

// The whole file; throws file_error with the system's reason.
std::string read_text_file(const std::string& path);

}  // namespace lunaria
