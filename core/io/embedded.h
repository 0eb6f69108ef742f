// Files that the build puts into a program (embedded.S.in): each has the Lua files (of interpreter/lua/) that it needs.
#pragma once

#include <span>
#include <string_view>

namespace lunaria {

// One file; `name` of a Lua file is its path below interpreter/lua/, such as "lunaria/nn/dense.lua".
struct EmbeddedFile {
    const char* name;
    const char* begin;
    const char* end;

    std::string_view text() const { return {begin, static_cast<std::size_t>(end - begin)}; }
};

// All Lua files of this program, sorted by name; they live as long as it runs.
std::span<const EmbeddedFile> embedded_files();

// The text of one file. An empty view with a null pointer means that there is no file of that name; an empty file has a
// view of length 0 whose pointer is not null.
std::string_view embedded_text(std::string_view name);

}  // namespace lunaria
