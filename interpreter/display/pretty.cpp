#include "interpreter/display/pretty.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/printable.h"
#include "interpreter/values/operators.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

constexpr const char* kCodes[] = {"32", "36", "35", "34", "2", "1;31", "1;34", "1"};

bool is_name(std::string_view text) {
    static constexpr std::string_view kReserved[] = {
        "and", "break", "do",  "else", "elseif", "end",    "false",  "for",  "function", "goto",  "if",
        "in",  "local", "nil", "not",  "or",     "repeat", "return", "then", "true",     "until", "while"};
    if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
    for (char c : text)
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return false;
    return std::find(std::begin(kReserved), std::end(kReserved), text) == std::end(kReserved);
}

int to_text(lua_State* L) {
    luaL_tolstring(L, 1, nullptr);
    return 1;
}

// The result of tostring; an error in a __tostring is shown instead of the text.
std::string safe_tostring(lua_State* L, int index) {
    index = lua_absindex(L, index);
    lua_pushcfunction(L, to_text);
    lua_pushvalue(L, index);
    const bool ok = lua_pcall(L, 1, 1, 0) == LUA_OK;
    size_t size = 0;
    const char* text = lua_tolstring(L, -1, &size);
    std::string result = text ? std::string(text, size) : "an error without text";
    lua_pop(L, 1);
    return ok ? result : str("<error in __tostring: ", result, ">");
}

size_t visible_length(std::string_view text) {
    size_t count = 0;
    bool escape = false;
    for (char c : text) {
        if (c == '\033') escape = true;
        if (!escape && (static_cast<unsigned char>(c) & 0xc0) != 0x80) ++count;
        if (escape && c == 'm') escape = false;
    }
    return count;
}

class Printer {
  public:
    Printer(lua_State* L, const PrettyOptions& options) : L_(L), options_(options), left_(options.total) {}

    std::string value(int index, int depth, int indent) {
        switch (lua_type(L_, index)) {
            case LUA_TSTRING:
                return string(index);
            case LUA_TNUMBER:
                return styled(options_.color, Style::number, safe_tostring(L_, index));
            case LUA_TNIL:
            case LUA_TBOOLEAN:
                return styled(options_.color, Style::word, safe_tostring(L_, index));
            case LUA_TFUNCTION:
                return styled(options_.color, Style::dim, "<" + describe_function(L_, index) + ">");
            case LUA_TTABLE:
                return table(index, depth, indent);
            default:
                return other(index, depth);
        }
    }

  private:
    std::string string(int index) {
        size_t size = 0;
        const char* text = lua_tolstring(L_, index, &size);
        const std::string_view whole(text, size);
        std::string shown = styled(options_.color, Style::string, quoted(whole.substr(0, options_.text)));
        return size > options_.text ? shown + str(" ... (", size, " bytes)") : shown;
    }

    // A tensor within a table is described in one line.
    std::string other(int index, int depth) {
        TensorBody** place = State::of(L_).memory().handle(lua_touserdata(L_, index));
        if (depth > 0 && place && *place) {
            const Tensor& t = reinterpret_cast<const Tensor&>(*place);
            if (!t.parameter() && (t.size() > 8 || t.rank() > 1))
                return str("Tensor(shape=", t.shape(), ", dtype=", name_of(t.dtype()), ")");
        }
        std::string text = safe_tostring(L_, index);
        if (depth > 0) std::replace(text.begin(), text.end(), '\n', ' ');
        return text;
    }

    bool has_own_text(int index) {
        if (!lua_getmetatable(L_, index)) return false;
        lua_pushliteral(L_, "__tostring");
        const bool has = lua_rawget(L_, -2) != LUA_TNIL;
        lua_pop(L_, 2);
        return has;
    }

    std::string table(int index, int depth, int indent) {
        index = lua_absindex(L_, index);
        if (has_own_text(index)) return other(index, depth);
        const void* address = lua_topointer(L_, index);
        if (std::find(open_.begin(), open_.end(), address) != open_.end())
            return styled(options_.color, Style::dim, "<cycle>");
        if (!lua_checkstack(L_, 8)) return "{...}";
        lua_pushnil(L_);
        if (!lua_next(L_, index)) return "{}";
        lua_pop(L_, 2);
        if (depth >= options_.depth || left_ <= 0) return "{...}";
        open_.push_back(address);
        const std::vector<std::string> entries = entries_of(index, depth, indent + 2);
        open_.pop_back();
        return join(entries, indent);
    }

    std::vector<std::string> entries_of(int index, int depth, int indent) {
        std::vector<std::string> entries;
        lua_Integer length = 0;
        auto full = [&] { return static_cast<int>(entries.size()) >= options_.entries || left_ <= 0; };
        while (!full() && lua_rawgeti(L_, index, length + 1) != LUA_TNIL) {
            --left_;
            entries.push_back(value(-1, depth + 1, indent));
            lua_pop(L_, 1);
            ++length;
        }
        if (!full()) lua_pop(L_, 1);
        add_named(index, length, depth, indent, entries);
        return entries;
    }

    // The entries beside the list 1..length: names first, in order; then all other keys.
    void add_named(int index, lua_Integer length, int depth, int indent, std::vector<std::string>& entries) {
        struct Row {
            int group;
            std::string key;
            std::string text;
        };
        std::vector<Row> rows;
        size_t more = 0;
        lua_pushnil(L_);
        while (lua_next(L_, index)) {
            if (interrupt_requested()) {
                lua_pop(L_, 2);
                break;
            }
            const bool in_list = lua_isinteger(L_, -2) && lua_tointeger(L_, -2) >= 1 && lua_tointeger(L_, -2) <= length;
            if (!in_list) {
                if (static_cast<int>(entries.size() + rows.size()) >= options_.entries || left_ <= 0) {
                    ++more;
                } else {
                    --left_;
                    std::string key = key_text(-2, depth, indent);
                    std::string shown = value(-1, depth + 1, indent);
                    rows.push_back({lua_type(L_, -2) == LUA_TSTRING ? 0 : 1, std::move(key), std::move(shown)});
                }
            }
            lua_pop(L_, 1);
        }
        std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
            return std::pair(a.group, std::string_view(a.key)) < std::pair(b.group, std::string_view(b.key));
        });
        for (const Row& row : rows) entries.push_back(row.key + " = " + row.text);
        if (more > 0) entries.push_back(str("... ", more, " more"));
    }

    std::string key_text(int index, int depth, int indent) {
        if (lua_type(L_, index) == LUA_TSTRING) {
            size_t size = 0;
            const char* text = lua_tolstring(L_, index, &size);
            const std::string_view key(text, size);
            return styled(options_.color, Style::key, is_name(key) ? std::string(key) : "[" + quoted(key) + "]");
        }
        return "[" + value(lua_absindex(L_, index), depth + 1, indent) + "]";
    }

    std::string join(const std::vector<std::string>& entries, int indent) const {
        size_t length = static_cast<size_t>(indent) + 2;
        bool one_line = true;
        for (const std::string& e : entries) {
            length += visible_length(e) + 2;
            one_line &= e.find('\n') == std::string::npos;
        }
        one_line &= length <= static_cast<size_t>(options_.width);
        const std::string margin(static_cast<size_t>(indent) + 2, ' ');
        std::string text = "{";
        size_t column = 0;
        for (size_t i = 0; i < entries.size(); ++i) {
            const bool last = i + 1 == entries.size();
            const size_t width = visible_length(entries[i]) + 2;
            // Short entries share lines; a list of a hundred numbers is not a hundred lines.
            const bool short_entry = width <= 14 && entries[i].find('=') == std::string::npos;
            if (!one_line && (i == 0 || !short_entry || column + width > static_cast<size_t>(options_.width))) {
                text += "\n" + margin;
                column = margin.size();
            } else if (i > 0) {
                text += " ";
            }
            text += entries[i] + (last ? "" : ",");
            column += width;
        }
        return text + (one_line ? "}" : "\n" + std::string(static_cast<size_t>(indent), ' ') + "}");
    }

    lua_State* L_;
    const PrettyOptions& options_;
    int left_;
    std::vector<const void*> open_;
};

}  // namespace

std::string pretty(lua_State* L, int index, const PrettyOptions& options) {
    return Printer(L, options).value(lua_absindex(L, index), 0, 0);
}

std::string describe_function(lua_State* L, int index) {
    if (const Op* op = operator_at(L, index)) return str("operator ", op->signature.text);
    lua_Debug info;
    lua_pushvalue(L, index);
    lua_getinfo(L, ">Su", &info);
    if (*info.what == 'C') return "builtin function";
    std::string parameters;
    lua_pushvalue(L, index);
    for (int i = 1; i <= info.nparams; ++i) {
        const char* name = lua_getlocal(L, nullptr, i);
        parameters += str(i > 1 ? ", " : "", name ? name : "?");
    }
    lua_pop(L, 1);
    if (info.isvararg) parameters += parameters.empty() ? "..." : ", ...";
    return str("function(", parameters, ") ", info.short_src, ":", info.linedefined);
}

std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (size_t i = 0; i < text.size();) {
        if (const size_t length = printable_length(text.substr(i)); length > 1) {
            result += text.substr(i, length);
            i += length;
            continue;
        }
        const char c = text[i++];
        const bool digit_follows = i < text.size() && text[i] >= '0' && text[i] <= '9';
        if (c == '"' || c == '\\')
            result += str('\\', c);
        else if (c == '\n')
            result += "\\n";
        else if (c == '\t')
            result += "\\t";
        else if (c == '\r')
            result += "\\r";
        else if (c >= ' ' && c != 127)
            result += c;
        else {
            std::string code = std::to_string(static_cast<unsigned char>(c));
            if (digit_follows) code.insert(0, 3 - code.size(), '0');
            result += "\\" + code;
        }
    }
    return result + "\"";
}

std::string styled(bool color, Style style, std::string_view text) {
    if (!color) return std::string(text);
    return str("\033[", kCodes[static_cast<size_t>(style)], "m", text, "\033[0m");
}

}  // namespace lunaria
