#include "interpreter/loader/cell.h"

#include <vector>

#include "jit/frontend/interactive.h"

namespace lunaria {

namespace {

constexpr size_t kMostTries = 64;

// Whether there is a semicolon after the last statement, where only semicolons, space and comments can be.
bool ends_silently(std::string_view rest) {
    for (size_t i = 0; i < rest.size(); ++i) {
        if (rest[i] == ';') return true;
        if (rest.substr(i, 2) != "--") continue;
        const bool is_long = rest.substr(i + 2, 1) == "[" && rest.find_first_not_of('=', i + 3) < rest.size() &&
                             rest[rest.find_first_not_of('=', i + 3)] == '[';
        if (is_long) {
            const std::string close = "]" + std::string(rest.find_first_not_of('=', i + 3) - (i + 3), '=') + "]";
            i = std::min(rest.find(close, i), rest.size());
        } else {
            i = std::min(rest.find('\n', i), rest.size());
        }
    }
    return false;
}

std::string with_prefix(std::string_view text, size_t at, size_t end) {
    return std::string(text.substr(0, at)) + kShowPrefix + std::string(text.substr(at, end - at));
}

bool parses(const std::string& text) {
    try {
        lua::parse(text, "cell");
        return true;
    } catch (const lua::SyntaxError&) {
        return false;
    }
}

Cell from_expressions(const lua::Chunk& chunk, size_t offset, const std::string& text) {
    const lua::Span span = chunk.main().body->statements.back()->span;
    return {with_prefix(text, offset + span.begin, offset + span.end), chunk.is_silent()};
}

// `local x = 3` and then `x + 1`: statements with expressions at the end. Tries the possible starts of these, from the
// end of the text. False when there are none.
bool find_last_expressions(const std::string& text, Cell& cell) {
    size_t tries = 0;
    for (size_t at = text.size(); at-- > 1 && tries < kMostTries;) {
        if (text[at - 1] != '\n' && text[at - 1] != ';') continue;
        ++tries;
        try {
            const auto chunk = lua::parse_expression_list(text.substr(at), "cell");
            Cell found = from_expressions(*chunk, at, text);
            if (!parses(found.chunk)) continue;
            cell = std::move(found);
            return true;
        } catch (const lua::SyntaxError&) {
            continue;
        }
    }
    return false;
}

}  // namespace

std::string as_typed(std::string line) {
    constexpr std::string_view kShow = kShowPrefix;
    if (const size_t at = line.find(kMeasuredMark); at != std::string::npos) line.erase(0, at + kMeasuredMark.size());
    if (const size_t at = line.find(kShow); at != std::string::npos) line.erase(at, kShow.size());
    return line;
}

Cell prepare_cell(const std::string& text, const std::string& name) {
    try {
        const auto chunk = lua::parse_interactive(text, name);
        if (chunk->is_expression()) return from_expressions(*chunk, 0, text);
        const auto statements = chunk->main().body->statements;
        if (statements.empty()) return {text, false};
        const lua::Stat& last = *statements.back();
        const bool silent = ends_silently(std::string_view(text).substr(last.span.end));
        // The results of a call at the end are shown as well.
        if (last.kind == lua::StatKind::call && !silent)
            return {with_prefix(text, last.span.begin, text.size()), false};
        return {text, silent};
    } catch (const lua::SyntaxError&) {
        Cell cell;
        if (find_last_expressions(text, cell)) return cell;
        throw;
    }
}

}  // namespace lunaria
