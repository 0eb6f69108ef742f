#include "interpreter/loader/prologue.h"

#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "interpreter/loader/function_code.h"
#include "interpreter/protect.h"
#include "interpreter/values/callables.h"

namespace lunaria {

namespace {

constexpr int kMostParameters = 100;
constexpr size_t kMostUpvalues = 255;
// The parts of a header: signature, version, format and a sample of bytes; sizes, an integer, a float; then the number
// of the chunk's upvalues.
constexpr size_t kUpvaluesAt = 12 + 3 + sizeof(lua_Integer) + sizeof(lua_Number), kHeaderSize = kUpvaluesAt + 1;
constexpr size_t kInstruction = 4, kUpvalue = 3;
// The form of instructions' lines: differences, or a mark with a separate list beside it, which has an entry at least
// for every 128 instructions.
constexpr int kMark = -0x80, kLargest = 0x7f, kRun = 128;

}  // namespace

// A function of a dump: the parts that change with other instructions are decoded, the others are kept as they are.
struct Prologues::Proto {
    std::string_view source, constants;
    size_t first_line = 0, last_line = 0;
    unsigned char parameters = 0, registers = 0;
    bool variadic = false;
    std::string code, upvalues;
    std::vector<Proto> inner;
    std::vector<int> lines;  // of each instruction; empty: unknown
    struct Local {
        std::string_view name;
        size_t begin, end;
    };
    std::vector<Local> locals;
    std::vector<std::string> names;  // of upvalues, with their sizes as in the dump
};

class Prologues::Reader {
  public:
    explicit Reader(std::string_view dump) : dump_(dump) {}
    bool good() const { return good_ && at_ == dump_.size(); }

    std::string_view take(size_t size) {
        if (!good_ || size > dump_.size() - at_) {
            good_ = false;
            return {};
        }
        at_ += size;
        return dump_.substr(at_ - size, size);
    }

    void function(Proto& f) {
        f.source = string();
        f.first_line = number();
        f.last_line = number();
        f.parameters = byte();
        f.variadic = byte() != 0;
        f.registers = byte();
        f.code = take_items(kInstruction);
        const size_t constants = at_;
        for (size_t n = number(); n > 0 && good_; --n) constant();
        f.constants = dump_.substr(constants, at_ - constants);
        f.upvalues = take_items(kUpvalue);
        for (size_t n = number(); n > 0 && good_; --n) function(f.inner.emplace_back());
        lines(f);
        for (size_t n = number(); n > 0 && good_; --n) {
            Proto::Local local;
            local.name = string();
            local.begin = number();
            local.end = number();
            f.locals.push_back(local);
        }
        for (size_t n = number(); n > 0 && good_; --n) f.names.emplace_back(string());
    }

  private:
    unsigned char byte() {
        const std::string_view b = take(1);
        return b.empty() ? 0 : static_cast<unsigned char>(b[0]);
    }

    size_t number() {
        size_t n = 0;
        while (good_) {
            const unsigned char b = byte();
            n = n << 7 | (b & 0x7f);
            if (b & 0x80) return n;
        }
        return 0;
    }

    std::string_view take_items(size_t size) {
        const size_t count = number();
        if (count > dump_.size() / size) good_ = false;
        return take(good_ ? count * size : 0);
    }

    // Includes its size.
    std::string_view string() {
        const size_t begin = at_;
        if (const size_t n = number()) take(n - 1);
        return dump_.substr(begin, at_ - begin);
    }

    void constant() {
        // Types of constants, from Lua's lobject.h.
        enum : unsigned char { kNil = 0, kFalse = 1, kTrue = 17, kInteger = 3, kFloat = 19, kShort = 4, kLong = 20 };
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
            case kShort:
            case kLong:
                string();
                break;
            default:
                good_ = false;
        }
    }

    void lines(Proto& f) {
        const std::string_view differences = take(number());
        std::vector<int> marked;
        for (size_t n = number(); n > 0 && good_; --n) {
            number();
            marked.push_back(static_cast<int>(number()));
        }
        int line = static_cast<int>(f.first_line);
        size_t next = 0;
        for (const char c : differences) {
            const int difference = static_cast<signed char>(c);
            if (difference != kMark)
                line += difference;
            else if (next < marked.size())
                line = marked[next++];
            f.lines.push_back(line);
        }
        if (!f.lines.empty() && f.lines.size() * kInstruction != f.code.size()) good_ = false;
    }

    std::string_view dump_;
    size_t at_ = 0;
    bool good_ = true;
};

class Prologues::Writer {
  public:
    std::string text;

    void function(const Proto& f) {
        text += f.source;
        number(f.first_line);
        number(f.last_line);
        byte(f.parameters);
        byte(f.variadic);
        byte(f.registers);
        number(f.code.size() / kInstruction);
        text += f.code;
        text += f.constants;
        number(f.upvalues.size() / kUpvalue);
        text += f.upvalues;
        number(f.inner.size());
        for (const Proto& inner : f.inner) function(inner);
        lines(f);
        number(f.locals.size());
        for (const Proto::Local& local : f.locals) {
            text += local.name;
            number(local.begin);
            number(local.end);
        }
        number(f.names.size());
        for (const std::string& name : f.names) text += name;
    }

    void number(size_t n) {
        char bytes[10];
        size_t size = 0;
        do {
            bytes[size++] = static_cast<char>(n & 0x7f);
            n >>= 7;
        } while (n > 0);
        bytes[0] = static_cast<char>(bytes[0] | 0x80);
        while (size > 0) text += bytes[--size];
    }

    static std::string string(std::string_view s) {
        Writer writer;
        writer.number(s.size() + 1);
        return writer.text.append(s);
    }

  private:
    void byte(unsigned char b) { text += static_cast<char>(b); }

    void lines(const Proto& f) {
        std::string differences;
        std::vector<std::pair<size_t, int>> marked;
        int before = static_cast<int>(f.first_line), run = 0;
        for (size_t i = 0; i < f.lines.size(); ++i) {
            int difference = f.lines[i] - before;
            if (std::abs(difference) > kLargest || run++ >= kRun) {
                marked.emplace_back(i, f.lines[i]);
                difference = kMark;
                run = 1;
            }
            differences += static_cast<char>(difference);
            before = f.lines[i];
        }
        number(differences.size());
        text += differences;
        number(marked.size());
        for (auto [at, line] : marked) {
            number(at);
            number(static_cast<size_t>(line));
        }
    }
};

// Lua itself compiles the prologue.
const Prologues::Code* Prologues::code_for(lua_State* L, Kind kind) {
    auto found = codes_.find(kind);
    if (found == codes_.end()) {
        found = codes_.emplace(kind, std::nullopt).first;
        std::string parameters, arguments;
        for (int i = 0; i < kind.first; ++i) parameters += str(i > 0 ? ", " : "", "p", i);
        if (kind.second) parameters += kind.first > 0 ? ", ..." : "...";
        if (!parameters.empty()) arguments = ", " + parameters;
        const std::string text = str("local entry\nreturn function(", parameters,
                                     ")\nlocal ask = entry\nif ask then\nlocal done = ask(false", arguments,
                                     ")\nif done then return ask(done) end\nend\nend");
        if (luaL_loadbufferx(L, text.data(), text.size(), "=prologue", "t") == LUA_OK) {
            const std::string dump = dump_function(L, -1);
            Reader reader(dump);
            reader.take(kHeaderSize);
            Proto chunk;
            reader.function(chunk);
            // Without the instruction that sorts the arguments of a variadic function, and without the return at the
            // end.
            const size_t skipped = kind.second ? kInstruction : 0;
            if (reader.good() && chunk.inner.size() == 1 && chunk.inner[0].code.size() > skipped + kInstruction) {
                const Proto& f = chunk.inner[0];
                found->second = Code{f.code.substr(skipped, f.code.size() - skipped - kInstruction), f.registers};
            }
        }
        lua_pop(L, 1);
    }
    return found->second ? &*found->second : nullptr;
}

// Whether it may run operators on tensors: by arithmetic, which may call metamethods, by calls, or by indexing with
// other keys than names. A function that only reads fields, compares and passes values on has nothing to compile.
bool Prologues::may_compute(const Proto& f) {
    static_assert(LUA_VERSION_NUM == 504);
    // From Lua's lopcodes.h.
    enum : unsigned char {
        kGetTable = 12,
        kGetInteger = 13,
        kSetTable = 16,
        kSetInteger = 17,
        kBinary = 46,
        kBinaryInteger = 47,
        kBinaryConstant = 48,
        kMinus = 49,
        kNot = 50,
        kCall = 68,
        kTailCall = 69,
        kForCall = 76
    };
    for (size_t i = 0; i < f.code.size(); i += kInstruction) switch (f.code[i] & 0x7f) {
            case kGetTable:
            case kGetInteger:
            case kSetTable:
            case kSetInteger:
            case kBinary:
            case kBinaryInteger:
            case kBinaryConstant:
            case kMinus:
            case kNot:
            case kCall:
            case kTailCall:
            case kForCall:
                return true;
            default:
                break;
        }
    return false;
}

void Prologues::add_upvalue(Proto& f, const char* name, bool of_stack, unsigned char outer) {
    const char described[kUpvalue] = {of_stack, static_cast<char>(outer), 0};
    f.upvalues.append(described, kUpvalue);
    f.names.push_back(Writer::string(name));
}

// `outer_text`, `outer_entry`: the places of the variables in the enclosing function, which may lack the one of the
// text.
void Prologues::extend(lua_State* L, Proto& f, size_t outer_text, size_t outer_entry) {
    const size_t count = f.upvalues.size() / kUpvalue;
    if (count >= kMostUpvalues || f.names.size() != count) return;
    const bool computes = may_compute(f), has_text = outer_text < kMostUpvalues && count + 1 < kMostUpvalues;
    const Code* code = nullptr;
    if ((computes || !f.inner.empty()) && f.parameters <= kMostParameters)
        code = code_for(L, {f.parameters, f.variadic});
    if (has_text) add_upvalue(f, kTextVariable, false, static_cast<unsigned char>(outer_text));
    if (!code) return;
    const auto position = static_cast<unsigned char>(count + (has_text ? 1 : 0));
    add_upvalue(f, f.inner.empty() ? kEntryVariable : kOuterEntryVariable, false,
                static_cast<unsigned char>(outer_entry));
    for (Proto& inner : f.inner) extend(L, inner, has_text ? count : kMostUpvalues, position);
    if (!computes) return;

    // All instructions that read an upvalue read this one: the first instruction shows which instructions those are,
    // and their operand B is the place.
    std::string prologue = code->instructions;
    for (size_t i = 0; i < prologue.size(); i += kInstruction)
        if ((prologue[i] & 0x7f) == (prologue[0] & 0x7f)) prologue[i + 2] = static_cast<char>(position);
    const size_t at = f.variadic ? kInstruction : 0, added = prologue.size() / kInstruction;
    f.code.insert(at, prologue);
    if (!f.lines.empty()) {
        const auto place = f.lines.begin() + static_cast<ptrdiff_t>(at / kInstruction);
        f.lines.insert(place, added, *place);
    }
    f.registers = std::max(f.registers, code->registers);
    for (size_t i = 0; i < f.locals.size(); ++i) {
        if (i >= f.parameters) f.locals[i].begin += added;
        f.locals[i].end += added;
    }
}

std::string Prologues::add(lua_State* L, std::string_view dump) {
    Reader reader(dump);
    std::string header(reader.take(kHeaderSize));
    Proto chunk;
    reader.function(chunk);
    if (!reader.good() || header[kUpvaluesAt] != 1 || chunk.names.size() != 1) return {};
    add_upvalue(chunk, kTextVariable, true, 1);
    add_upvalue(chunk, kOuterEntryVariable, true, 2);
    for (Proto& inner : chunk.inner) extend(L, inner, 1, 2);
    header[kUpvaluesAt] = 3;
    Writer writer;
    writer.text = header;
    writer.function(chunk);
    return std::move(writer.text);
}

namespace {

bool is_entry(const char* name) {
    return name && (std::strcmp(name, kEntryVariable) == 0 || std::strcmp(name, kOuterEntryVariable) == 0);
}

bool is_hidden(const char* name) {
    return name && name[0] == '(' && (is_entry(name) || std::strcmp(name, kTextVariable) == 0);
}

// Two functions that have the variable: the one shared by all functions, and one whose variable is nil forever.
int shared_key, released_key;

void push_holder(lua_State* L, int* key) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, key) != LUA_TNIL) return;
    lua_pop(L, 1);
    constexpr std::string_view kText = "local entry return function() return entry end";
    if (luaL_loadbufferx(L, kText.data(), kText.size(), "=entry", "t") != LUA_OK) lua_error(L);
    lua_call(L, 0, 1);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

}  // namespace

int upvalue_count(lua_State* L, int function) {
    lua_Debug info;
    lua_pushvalue(L, function);
    lua_getinfo(L, ">u", &info);
    return info.nups;
}

// In the form of lua_getinfo for "n".
bool is_entry_call(const lua_Debug& frame) {
    return frame.name && std::strcmp(frame.namewhat, "upvalue") == 0 && is_entry(frame.name);
}

const char* get_upvalue(lua_State* L, int function, int position) {
    const char* name = lua_getupvalue(L, function, position);
    if (!is_hidden(name)) return name;
    lua_pop(L, 1);
    return nullptr;
}

const char* set_upvalue(lua_State* L, int function, int position) {
    const int hidden = hidden_upvalues(L, function);
    return hidden && position > upvalue_count(L, function) - hidden ? nullptr : lua_setupvalue(L, function, position);
}

int entry_position(lua_State* L, int function) {
    if (!lua_isfunction(L, function) || lua_iscfunction(L, function)) return 0;
    luaL_checkstack(L, 3, "function");
    const int last = upvalue_count(L, function);
    if (last == 0) return 0;
    const char* name = lua_getupvalue(L, function, last);
    lua_pop(L, 1);
    return is_entry(name) ? last : 0;
}

int hidden_upvalues(lua_State* L, int function) {
    if (!lua_isfunction(L, function) || lua_iscfunction(L, function)) return 0;
    luaL_checkstack(L, 3, "function");
    int hidden = 0;
    for (int i = upvalue_count(L, function); i > 0; --i, ++hidden) {
        const char* name = lua_getupvalue(L, function, i);
        lua_pop(L, 1);
        if (!is_hidden(name)) break;
    }
    return hidden;
}

void bind_text(lua_State* L, std::string_view text) {
    luaL_checkstack(L, 2, "text of a chunk");
    // The collector knows the text's size.
    std::memcpy(lua_newuserdatauv(L, text.size(), 0), text.data(), text.size());
    if (!lua_setupvalue(L, -2, 2)) lua_pop(L, 1);
}

std::optional<std::string_view> text_of(lua_State* L, int function) {
    function = lua_absindex(L, function);
    const int hidden = hidden_upvalues(L, function);
    if (hidden == 0) return std::nullopt;
    std::optional<std::string_view> text;
    const char* name = lua_getupvalue(L, function, upvalue_count(L, function) - hidden + 1);
    if (std::strcmp(name, kTextVariable) == 0 && lua_type(L, -1) == LUA_TUSERDATA)
        text.emplace(static_cast<const char*>(lua_touserdata(L, -1)), lua_rawlen(L, -1));
    lua_pop(L, 1);
    return text;
}

void set_entry(lua_State* L) {
    luaL_checkstack(L, 2, "entry");
    push_holder(L, &shared_key);
    lua_insert(L, -2);
    lua_setupvalue(L, -2, 1);
    lua_pop(L, 1);
}

void bind_entry(lua_State* L) {
    luaL_checkstack(L, 2, "entry");
    const int position = entry_position(L, -1);
    push_holder(L, &shared_key);
    if (position != 0) lua_upvaluejoin(L, -2, position, -1, 1);
    lua_pop(L, 1);
}

bool is_entry_function(lua_State* L, int index) {
    luaL_checkstack(L, 2, "entry");
    index = lua_absindex(L, index);
    push_holder(L, &shared_key);
    lua_getupvalue(L, -1, 1);
    const bool is_entry = lua_rawequal(L, -1, index) != 0;
    lua_pop(L, 2);
    return is_entry;
}

bool release_entry(lua_State* L, int function) {
    luaL_checkstack(L, 3, "entry");
    function = lua_absindex(L, function);
    const int position = entry_position(L, function);
    if (position == 0) return false;
    const bool outer = std::strcmp(lua_getupvalue(L, function, position), kEntryVariable) != 0;
    lua_pop(L, 1);
    if (outer) return false;
    push_holder(L, &released_key);
    lua_upvaluejoin(L, function, position, -1, 1);
    lua_pop(L, 1);
    return true;
}

}  // namespace lunaria
