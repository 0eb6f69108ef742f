#include "jit/frontend/syntax_error.h"

#include <algorithm>
#include <cctype>

#include "core/base/spelling.h"

namespace lunaria::lua {

namespace {

constexpr std::size_t kLongestQuote = 60, kLongestLine = 100;

std::string_view without_line_end(std::string_view text) { return text.substr(0, text.find_first_of("\r\n")); }

bool is_continuation_byte(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// The line around a span, cut to a window when it is very long, and the caret below its first byte. A tab stays a tab
// below, so that the caret is in place whatever the terminal's tab width.
std::string excerpt(std::string_view line, std::uint32_t column) {
    std::size_t at = std::min<std::size_t>(column - 1, line.size());
    if (line.size() > kLongestLine) {
        std::size_t begin = at > kLongestLine / 2 ? at - kLongestLine / 2 : 0;
        while (begin < at && is_continuation_byte(line[begin])) ++begin;
        line = line.substr(begin, kLongestLine);
        at -= begin;
    }
    std::string text = "\n    ", caret = "\n    ";
    for (const char c : line) text += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? '?' : c;
    for (const char c : line.substr(0, at)) {
        if (c == '\t')
            caret += c;
        else if (!is_continuation_byte(c))
            caret += ' ';
    }
    return text + caret + '^';
}

Error describe(std::string_view chunk_name, const Problem& problem, std::string_view line) {
    std::string message = problem.message;
    if (!problem.found.empty()) message += " near " + problem.found;
    message += excerpt(line, problem.span.column);
    const Error error(ErrorKind::syntax, str(chunk_name, ":", problem.span.line), message);
    return problem.hint.empty() ? error : error.hint(problem.hint);
}

std::string_view line_at(std::string_view source, const Span& span) {
    const std::size_t begin = std::min<std::size_t>(span.begin, source.size());
    const std::size_t back = std::min<std::size_t>(span.column - 1, begin);
    return without_line_end(source.substr(begin - back));
}

struct Slip {
    std::string_view text, hint;
};

// If one text begins another, the longer one comes first.
constexpr Slip kSlips[] = {
    {"===", "equality is written == in Lua"},
    {"!==", "inequality is written ~= in Lua"},
    {"!=", "inequality is written ~= in Lua"},
    {"!", "negation is written 'not x' in Lua"},
    {"&&", "write 'and' instead of '&&'"},
    {"||", "write 'or' instead of '||'"},
    {"?\?", "Lua has no '?\?': write 'a == nil and b or a', or 'a or b'"},
    {"?", "Lua has no 'c ? a : b': write 'c and a or b', or an if statement"},
    {"**", "the power operator is ^ in Lua"},
    {"...=", "Lua has no assignment operators: write x = x .. y"},
    {"..=", "Lua has no assignment operators: write x = x .. y"},
    {"//=", "Lua has no assignment operators: write x = x // y"},
    {"<<=", "Lua has no assignment operators: write x = x << y"},
    {">>=", "Lua has no assignment operators: write x = x >> y"},
    {"+=", "Lua has no assignment operators: write x = x + y"},
    {"-=", "Lua has no assignment operators: write x = x - y"},
    {"*=", "Lua has no assignment operators: write x = x * y"},
    {"/=", "Lua has no assignment operators: write x = x / y"},
    {"%=", "Lua has no assignment operators: write x = x % y"},
    {"^=", "Lua has no assignment operators: write x = x ^ y"},
    {"&=", "Lua has no assignment operators: write x = x & y"},
    {"|=", "Lua has no assignment operators: write x = x | y"},
    {"++", "Lua has no '++': write x = x + 1"},
    {"=>", "write an anonymous function as function(x) return … end"},
    {"->", "write an anonymous function as function(x) return … end"},
    {":=", "assignment is written = in Lua, with 'local' before a new variable"},
    {"/*", "comments begin with -- in Lua, or stand in --[[ ]]"},
    {"@", "there is no '@': the product of matrices is ops.matmul(a, b)"},
    {"`", "a string is written with \" or ', or in [[ ]]"},
    {"\xE2\x80\x9C", "this is a typographic quote: use \" or '"},
    {"\xE2\x80\x9D", "this is a typographic quote: use \" or '"},
    {"\xE2\x80\x98", "this is a typographic quote: use \" or '"},
    {"\xE2\x80\x99", "this is a typographic quote: use \" or '"},
    {"\xC2\xA0", "this is a non-breaking space: use a plain one"},
    {"[", "a list is written in braces: {1, 2}"},
    {"#", "comments begin with -- in Lua"},
    {"\\", "a backslash has a meaning in strings only; Lua needs none at the end of a line"},
};

struct BareName {
    std::string_view name, hint;
};

constexpr std::string_view kLongKeywords[] = {"function", "local", "return", "while", "repeat", "until", "elseif"};

// Words of a line, surrounded by what is no part of a name.
constexpr Slip kWordsOfLines[] = {
    {"is not", "inequality is written ~= in Lua, and None is nil: x ~= nil"},
    {"is", "equality is written == in Lua, and None is nil: x == nil"},
    {"not in", "whether a table has a key is t[key] ~= nil"},
};

bool is_part_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool has_words(std::string_view line, std::string_view words) {
    for (size_t at = line.find(words); at != line.npos; at = line.find(words, at + 1)) {
        const size_t end = at + words.size();
        if ((at == 0 || !is_part_of_name(line[at - 1])) && (end == line.size() || !is_part_of_name(line[end])))
            return true;
    }
    return false;
}

// "lambda x" and "lambda:", but no variable of this name.
bool has_lambda(std::string_view line) {
    constexpr std::string_view kWord = "lambda";
    const size_t at = line.find(kWord);
    if (at == line.npos || (at > 0 && is_part_of_name(line[at - 1]))) return false;
    const std::string_view rest = line.substr(at + kWord.size());
    return rest.starts_with(':') || (rest.size() > 1 && rest[0] == ' ' &&
                                     std::isalpha(static_cast<unsigned char>(rest[1])) && rest.find(':') != rest.npos);
}

constexpr std::string_view kListByLoop = "a list is made by a loop: for i = 1, n do t[i] = … end";

constexpr std::string_view kCaught = "errors are caught with pcall(f, …)";

// Words that open a block in Python; `begins`: the word behind the condition in Lua.
struct PythonBlock {
    std::string_view word, begins, hint;
};

constexpr PythonBlock kPythonBlocks[] = {
    {"if", "then", {}},      {"for", "do", {}},
    {"while", "do", {}},     {"elif", {}, "write 'elseif … then'"},
    {"try", {}, kCaught},    {"else", {}, "'else' has no ':', and the block ends with 'end'"},
    {"except", {}, kCaught}, {"finally", {}, kCaught},
};

std::string_view trimmed(std::string_view line) {
    const size_t begin = line.find_first_not_of(" \t"), end = line.find_last_not_of(" \t\r\n");
    return begin == line.npos ? std::string_view() : line.substr(begin, end - begin + 1);
}

// The colon of "if c: f()" and "if c:", which stands behind the condition with a blank or nothing behind it and calls
// no method; npos: there is none.
size_t python_colon(std::string_view line) {
    int depth = 0;
    for (size_t i = 0; i < line.size() && !line.substr(i).starts_with("--"); ++i) {
        const char c = line[i];
        if (c == '"' || c == '\'') {
            i = std::min(line.find(c, i + 1), line.size());
            continue;
        }
        depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
        if (c != ':' || depth != 0 || i == 0) continue;
        const char before = line[i - 1], behind = i + 1 == line.size() ? ' ' : line[i + 1];
        if (before == ' ' || before == ':' || (behind != ' ' && behind != '\t')) continue;
        const std::string_view header = line.substr(0, i);
        return has_words(header, "then") || has_words(header, "do") ? line.npos : i;
    }
    return line.npos;
}

// The word of Python with which the line begins, where it opens a block; null: it is no such line.
const PythonBlock* python_block(std::string_view line) {
    line = trimmed(line);
    const auto end = std::ranges::find_if_not(line, is_part_of_name);
    const std::string_view word = line.substr(0, static_cast<size_t>(end - line.begin()));
    const auto block = std::ranges::find(kPythonBlocks, word, &PythonBlock::word);
    return block == std::end(kPythonBlocks) || python_colon(line) == line.npos ? nullptr : block;
}

std::string hint_for(const PythonBlock& block) {
    return block.begins.empty() ? std::string(block.hint) : hint_for_colon(block.begins);
}

// The line that ends before a place, without empty ones.
std::string_view line_before(std::string_view source, size_t place) {
    std::string_view above = source.substr(0, std::min(place, source.size()));
    const size_t begin_of_line = above.find_last_of('\n');
    above = above.substr(0, begin_of_line == above.npos ? 0 : begin_of_line);
    const size_t end = above.find_last_not_of(" \t\r\n");
    if (end == above.npos) return {};
    above = above.substr(0, end + 1);
    const size_t begin = above.find_last_of('\n');
    return begin == above.npos ? above : above.substr(begin + 1);
}

// "[x * 2 for x in t": a loop within brackets.
bool has_comprehension(std::string_view line) {
    const size_t at = line.find(" for ");
    if (at == line.npos || !has_words(line.substr(at), "in")) return false;
    int depth = 0;
    for (const char c : line.substr(0, at))
        depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    return depth > 0;
}

// "f(*list)", "f(**options)" and "print(x, end=text)"; before: the byte before.
std::string_view hint_for_argument(char before, std::string_view rest) {
    if (rest.starts_with('*') && std::string_view("(,={").find(before) != std::string_view::npos)
        return rest.starts_with("**") ? "named arguments go into a table: f{name = value}"
                                      : "the elements of a list as arguments are table.unpack(t)";
    if (before == ',' && rest.starts_with("end")) return "a text without a line's end is written by io.write(text)";
    return {};
}

constexpr BareName kBareNames[] = {
    {"continue", "Lua has no 'continue': write 'goto continue' and put '::continue::' at the end of the loop's body"},
    {"elif", "write 'elseif' in one word"},
    {"elsif", "write 'elseif' in one word"},
    {"elseIf", "write 'elseif' in one word"},
    {"var", "declare a variable with 'local'"},
    {"let", "declare a variable with 'local'"},
    {"const", "declare a constant with 'local name <const> = value'"},
    {"int", "declare a variable with 'local', without a type"},
    {"float", "declare a variable with 'local', without a type"},
    {"double", "declare a variable with 'local', without a type"},
    {"auto", "declare a variable with 'local'"},
    {"def", "define a function with 'function name(…) … end'"},
    {"fn", "define a function with 'function name(…) … end'"},
    {"func", "define a function with 'function name(…) … end'"},
    {"fun", "define a function with 'function name(…) … end'"},
    {"lambda", "write an anonymous function as function(x) return … end"},
    {"import", "load a module with local name = require \"name\""},
    {"from", "load a module with local name = require \"name\""},
    {"include", "load a module with local name = require \"name\""},
    {"switch", "Lua has no 'switch': use if … elseif … else … end"},
    {"match", "Lua has no 'match': use if … elseif … else … end"},
    {"try", kCaught},
    {"throw", "raise an error with error(message)"},
    {"raise", "raise an error with error(message)"},
    {"pass", "an empty block needs nothing between its keywords"},
    {"foreach", "write 'for k, v in pairs(t) do … end'"},
    {"class", "a class is a table: local Net = nn.Cell:extend(\"Net\")"},
    {"unless", "write 'if not … then … end'"},
    {"with",
     "Lua has no 'with': gradients are recorded only where ms.grad asks for them; a file is opened by "
     "local file <close> = io.open(name)"},
    {"del", "a variable is emptied by x = nil"},
    {"global", "a variable without 'local' is global"},
    {"except", kCaught},
    {"catch", kCaught},
    {"finally", kCaught},
    {"yield", "a coroutine gives values by coroutine.yield(…)"},
    {"async", "coroutines are made by coroutine.wrap(f)"},
    {"await", "coroutines are made by coroutine.wrap(f)"},
    {"assert", "assert is a function: assert(condition, message)"},
};

}  // namespace

SyntaxError::SyntaxError(std::string_view chunk_name, std::string_view source, Problem problem)
    : Error(describe(chunk_name, problem, line_at(source, problem.span))),
      chunk_name_(chunk_name),
      source_line_(line_at(source, problem.span)),
      problem_(std::move(problem)) {}

std::string SyntaxError::headline() const { return std::string(without_line_end(message())); }

std::string quoted_for_message(std::string_view text) {
    const bool cut = text.size() > kLongestQuote;
    if (cut) {
        std::size_t size = kLongestQuote;
        while (size > 0 && is_continuation_byte(text[size])) --size;
        text = text.substr(0, size);
    }
    std::string out = "'";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7F)
            out += str("<\\", int{byte}, ">");
        else
            out += c;
    }
    return out + (cut ? "...'" : "'");
}

// What follows a text that ended with the quote, or a list in brackets; adjacent: without a blank.
static std::string hint_behind_text(char quote, char found, bool adjacent) {
    const bool is_text = quote == '"' || quote == '\'';
    if (is_text && (found == ':' || found == '.'))
        return "a text stands in parentheses before a method: (\"a b\"):upper()";
    if (quote == '[' && found == ':') return "a slice is a text: x[\":, 0\"]";
    if (is_text && adjacent && is_part_of_name(found))
        return str("the text ends at the quote before: write it as \\", quote, " inside, or use other quotes");
    return {};
}

std::string hint_for_slip(std::string_view source, const Span& previous, const Span& found) {
    const auto byte_at = [&](std::size_t at) { return at < source.size() ? source[at] : ' '; };
    const char quote = previous.begin < previous.end ? byte_at(previous.begin) : ' ';
    const std::string of_text = hint_behind_text(quote, byte_at(found.begin), previous.end == found.begin);
    if (!of_text.empty()) return of_text;
    const std::string_view rest = without_line_end(source.substr(std::min<std::size_t>(found.begin, source.size())));
    const char before = previous.begin < previous.end ? byte_at(previous.end - 1) : ' ';
    if (rest.starts_with('@') && found.column == 1)
        return "there are no decorators: the function goes through a call, f = ms.jit(f)";
    if (rest.starts_with("==") && before != '=') return "a value is given by one '=': == compares";
    if (const std::string_view hint = hint_for_argument(before, rest); !hint.empty()) return std::string(hint);
    if (rest.starts_with('[') && has_words(rest, "for") && has_words(rest, "in")) return std::string(kListByLoop);
    // The parser stops at the second '&' of '&&' but at the first byte of '!=', so both starts are tried.
    const bool adjacent = previous.end == found.begin && previous.begin < previous.end;
    for (const std::size_t start : {adjacent ? previous.begin : found.begin, found.begin}) {
        const std::string_view text = source.substr(std::min<std::size_t>(start, source.size()), 8);
        for (const Slip& slip : kSlips)
            if (text.starts_with(slip.text)) return std::string(slip.hint);
    }
    if (found.begin < source.size() && static_cast<unsigned char>(source[found.begin]) >= 0x80)
        return "names consist of the letters A-Z and a-z, digits and '_'; other characters belong in strings";
    return {};
}

std::string hint_for_line(std::string_view source, const Span& found) {
    const std::string_view line = line_at(source, found);
    if (has_words(line, "switch") && line.find('{') != line.npos)
        return "Lua has no 'switch': write if x == 1 then … elseif x == 2 then … end";
    if (has_lambda(line)) return "write an anonymous function as function(x) return … end";
    for (const std::string_view of : {line, line_before(source, found.begin)})
        if (const PythonBlock* block = python_block(of)) return hint_for(*block);
    if (line.find("\"\"\"") != line.npos || line.find("'''") != line.npos)
        return "a text of several lines stands in [[ ]], a comment behind --";
    if (has_comprehension(line)) return std::string(kListByLoop);
    if (has_words(line, "if") && has_words(line, "in") && !has_words(line, "for"))
        return "whether a table has a key is t[key] ~= nil; whether a list has a value is seen by a loop";
    if (has_words(line, "if") && has_words(line, "else") && !has_words(line, "then"))
        return "Lua has no 'a if c else b': write 'c and a or b', or an if statement";
    if (found.column == 1 && line.starts_with('=') && !line.starts_with("=="))
        return str("an expression alone shows its value: ", line.substr(1));
    for (const Slip& slip : kWordsOfLines)
        if (has_words(line, slip.text)) return std::string(slip.hint);
    return {};
}

std::string hint_for_colon(std::string_view begins) {
    return str("write '", begins, "' instead of ':', and 'end' after the block");
}

void blame_python_colon(std::string_view source, std::uint32_t line, Problem& problem) {
    size_t begin = 0;
    for (std::uint32_t i = 1; i < line && begin != source.npos; ++i) begin = source.find('\n', begin) + 1;
    const std::string_view header = without_line_end(source.substr(std::min(begin, source.size())));
    const PythonBlock* block = python_block(header);
    if (!block || block->begins.empty()) return;
    const auto column = static_cast<std::uint32_t>(python_colon(header));
    const auto place = static_cast<std::uint32_t>(begin) + column;
    if (place > problem.span.begin) return;
    problem = {{place, place + 1, line, column + 1},
               str("'", block->begins, "' expected"),
               "':'",
               str("'", block->begins, "'"),
               hint_for(*block)};
}

std::string hint_for_bare_name(std::string_view name, TokenKind next) {
    for (const BareName& slip : kBareNames)
        if (slip.name == name) return std::string(slip.hint);
    for (const std::string_view keyword : kLongKeywords)
        if (edit_distance(name, keyword) == 1) return str("did you mean '", keyword, "'?");
    if (next == TokenKind::name || next == TokenKind::integer || next == TokenKind::number)
        return str("a call needs parentheses: ", name, "(…)");
    return {};
}

}  // namespace lunaria::lua
