#include "interpreter/terminal/colours.h"

#include <cwchar>
#include <vector>

#include "core/base/error.h"
#include "jit/frontend/loose_scan.h"

namespace lunaria {

namespace {

constexpr const char *kKeyword = "35", *kString = "32", *kNumber = "36", *kComment = "90";

struct Piece {
    size_t begin, end;
    const char* colour;
};

const char* colour_of(lua::TokenKind kind) {
    if (static_cast<int>(kind) < lua::kKeywordCount) return kKeyword;
    if (kind == lua::TokenKind::string) return kString;
    return kind == lua::TokenKind::integer ? kNumber : nullptr;
}

// The coloured parts in order. Between tokens there is nothing but space and comments.
std::vector<Piece> pieces_of(std::string_view text) {
    std::vector<Piece> pieces;
    const lua::LooseScan scan = lua::scan_loosely(text);
    size_t at = 0;
    const auto comment = [&](size_t end) {
        const size_t begin = text.find_first_not_of(" \t\r\n", at);
        if (begin < end) pieces.push_back({begin, end, kComment});
    };
    for (const lua::LooseToken& token : scan.tokens) {
        comment(token.begin);
        if (const char* colour = colour_of(token.kind)) pieces.push_back({token.begin, token.end, colour});
        at = token.end;
    }
    if (scan.cut_off == lua::CutOff::nothing || scan.cut_off == lua::CutOff::comment) {
        comment(text.size());
    } else {
        comment(scan.cut_begin);
        pieces.push_back({scan.cut_begin, text.size(), kString});
    }
    return pieces;
}

// A place on the screen, counted from the row of the prompt.
struct Place {
    int row, column;
};

// The place behind the text, -1 in `row` for characters of unknown width.
Place place_behind(std::string_view text, Place at, int columns) {
    std::mbstate_t state{};
    for (size_t i = 0; i < text.size();) {
        if (text[i] == '\n') {
            at = {at.row + 1, 0};
            ++i;
            continue;
        }
        wchar_t c = 0;
        const size_t size = std::mbrtowc(&c, text.data() + i, text.size() - i, &state);
        const int width = size == 0 || size > 4 ? -1 : wcwidth(c);
        if (width < 0) return {-1, 0};
        if (at.column + width > columns) at = {at.row + 1, 0};
        at.column += width;
        if (at.column == columns) at = {at.row + 1, 0};
        i += size;
    }
    return at;
}

std::string moved(int count, char direction) { return count > 0 ? str("\033[", count, direction) : std::string(); }

}  // namespace

bool has_colours(std::string_view text) { return !pieces_of(text).empty(); }

std::string coloured_in_place(std::string_view text, size_t point, int prompt, int columns, int rows) {
    const Place end = place_behind(text, {0, prompt}, columns);
    const Place cursor = place_behind(text.substr(0, point), {0, prompt}, columns);
    if (end.row < 0 || cursor.row < 0 || end.row >= rows) return {};
    std::string out = "\0337" + moved(cursor.row, 'A') + "\r" + moved(prompt, 'C') + "\033[0m";
    size_t at = 0;
    const auto write = [&](size_t until) {
        for (; at < until; ++at) {
            if (text[at] == '\n') out += '\r';
            out += text[at];
        }
    };
    for (const Piece& piece : pieces_of(text)) {
        write(piece.begin);
        out += str("\033[", piece.colour, "m");
        write(piece.end);
        out += "\033[0m";
    }
    write(text.size());
    return out + "\0338";
}

}  // namespace lunaria
