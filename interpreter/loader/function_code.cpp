#include "interpreter/loader/function_code.h"

#include <algorithm>
#include <cstring>

namespace lunaria {

namespace {

// Types of constants in a dump, from Lua's lobject.h.
enum : uint8_t { kNil = 0, kFalse = 1, kTrue = 17, kInteger = 3, kFloat = 19, kShortString = 4, kLongString = 20 };

constexpr size_t kUpvalueSize = 3;  // in stack or not, index, kind

// Reads within the dump only: past its end, or at bytes that no dump holds, everything is zero and good() false.
class DumpReader {
  public:
    explicit DumpReader(std::string_view dump) : dump_(dump) {}

    bool good() const { return good_; }
    bool at_end() const { return at_ == dump_.size(); }
    const std::vector<std::string>& names() const { return names_; }

    void header() {
        constexpr std::string_view kStart = LUA_SIGNATURE
            "\x54"
            "\0"
            "\x19\x93\r\n\x1a\n";
        constexpr size_t kStartSize = 12;
        if (take(kStartSize) != std::string_view(kStart.data(), kStartSize)) good_ = false;
        instruction_size_ = byte();
        if (byte() != sizeof(lua_Integer) || byte() != sizeof(lua_Number)) good_ = false;
        take(sizeof(lua_Integer) + sizeof(lua_Number));  // samples of both
        byte();                                          // number of upvalues
    }

    void function(std::vector<FunctionCode>& list) {
        string();  // the chunk's name, if it differs from the outer function's
        const size_t begin = at_, place = list.size();
        list.emplace_back();
        list[place].first_line = static_cast<uint32_t>(number());
        list[place].last_line = static_cast<uint32_t>(number());
        byte();  // parameters
        const bool variadic = byte() != 0;
        byte();  // registers
        const std::string_view instructions = take_items(instruction_size_);
        const std::vector<std::string_view> texts = constants();
        look_up(instructions, texts);
        take_items(kUpvalueSize);
        for (size_t n = number(); n > 0 && good_; --n) function(list);
        lines(list[place], variadic);
        for (size_t n = number(); n > 0 && good_; --n) {
            string();  // a local variable and its scope
            number();
            number();
        }
        for (size_t n = number(); n > 0 && good_; --n) string();  // names of upvalues
        if (good_) list[place].bytes = dump_.substr(begin, at_ - begin);
    }

  private:
    std::string_view take(size_t size) {
        if (!good_ || size > dump_.size() - at_) {
            good_ = false;
            return {};
        }
        at_ += size;
        return dump_.substr(at_ - size, size);
    }

    std::string_view take_items(size_t size) {
        const size_t count = number();
        if (size != 0 && count > dump_.size() / size) {
            good_ = false;
            return {};
        }
        return take(count * size);
    }

    // Looks up fields of upvalues by their names, which are constants. A constant after the first 256 is loaded by
    // another instruction: in a function with so many, all texts may be names.
    void look_up(std::string_view instructions, const std::vector<std::string_view>& texts) {
        constexpr uint32_t kGetField = 11, kSetField = 15;  // OP_GETTABUP, OP_SETTABUP
        constexpr size_t kNamed = 256;
        if (texts.size() > kNamed)
            for (const std::string_view text : texts) names_.emplace_back(text);
        for (size_t at = 0; at + sizeof(uint32_t) <= instructions.size(); at += sizeof(uint32_t)) {
            uint32_t code = 0;
            std::memcpy(&code, instructions.data() + at, sizeof code);
            const uint32_t kind = code & 0x7f, b = code >> 16 & 0xff, c = code >> 24;
            if (kind != kGetField && kind != kSetField) continue;
            if (const uint32_t name = kind == kGetField ? c : b; name < texts.size()) names_.emplace_back(texts[name]);
        }
    }

    uint8_t byte() {
        const std::string_view b = take(1);
        return b.empty() ? 0 : static_cast<uint8_t>(b[0]);
    }

    // Seven bits a byte, the highest first; the last byte is marked.
    size_t number() {
        size_t n = 0;
        while (good_) {
            const uint8_t b = byte();
            n = n << 7 | (b & 0x7f);
            if (b & 0x80) return n;
        }
        return 0;
    }

    // The length is stored plus one, since zero means no string.
    std::string_view string() {
        const size_t n = number();
        return n > 0 ? take(n - 1) : std::string_view();
    }

    // For each instruction the difference to the line before, or a mark: then the line is in a list of its own. The
    // first instruction of a variadic function only sorts arguments, and no debugger stops there.
    void lines(FunctionCode& f, bool variadic) {
        constexpr signed char kMark = -0x80;
        const size_t count = number();
        const std::string_view differences = take(count);
        std::vector<size_t> absolute;
        for (size_t n = number(); n > 0 && good_; --n) {
            number();
            absolute.push_back(number());
        }
        size_t next = 0;
        int line = static_cast<int>(f.first_line);
        for (size_t i = 0; i < differences.size(); ++i) {
            const auto difference = static_cast<signed char>(differences[i]);
            if (difference != kMark)
                line += difference;
            else if (next < absolute.size())
                line = static_cast<int>(absolute[next++]);
            if (i > 0 || !variadic) f.lines.push_back(line);
        }
    }

    // The texts among them; other constants give empty texts.
    std::vector<std::string_view> constants() {
        std::vector<std::string_view> texts;
        for (size_t n = number(); n > 0 && good_; --n) {
            texts.emplace_back();
            switch (byte()) {
                case kNil:
                case kFalse:
                case kTrue:
                    break;
                case kInteger:
                    take(sizeof(lua_Integer));
                    break;
                case kFloat:
                    take(sizeof(lua_Number));
                    break;
                case kShortString:
                case kLongString:
                    texts.back() = string();
                    break;
                default:
                    good_ = false;
            }
        }
        return texts;
    }

    std::string_view dump_;
    std::vector<std::string> names_;
    size_t at_ = 0, instruction_size_ = 0;
    bool good_ = true;
};

}  // namespace

std::string dump_function(lua_State* L, int index) {
    std::string dump;
    const lua_Writer append = [](lua_State*, const void* piece, size_t size, void* to) {
        static_cast<std::string*>(to)->append(static_cast<const char*>(piece), size);
        return 0;
    };
    lua_pushvalue(L, index);
    if (lua_dump(L, append, &dump, 0) != 0) dump.clear();
    lua_pop(L, 1);
    return dump;
}

std::vector<FunctionCode> read_dump(std::string_view dump) {
    DumpReader reader(dump);
    std::vector<FunctionCode> list;
    reader.header();
    if (reader.good()) reader.function(list);
    if (!reader.good() || !reader.at_end()) list.clear();
    return list;
}

std::vector<std::string> names_looked_up(std::string_view dump) {
    DumpReader reader(dump);
    std::vector<FunctionCode> list;
    reader.header();
    if (reader.good()) reader.function(list);
    std::vector<std::string> names = reader.names();
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

}  // namespace lunaria
