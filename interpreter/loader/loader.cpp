#include "interpreter/loader/loader.h"

#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>

#include "core/base/error.h"
#include "core/base/warning.h"
#include "interpreter/loader/cell.h"
#include "interpreter/protect.h"
#include "interpreter/state.h"
#include "interpreter/values/callables.h"
#include "jit/frontend/advice.h"
#include "jit/frontend/parser.h"

namespace lunaria {

namespace {

constexpr size_t kVersionsKept = 16;
// The number of bytes of kept texts; texts that are their own names need no keeping. A session of a hundred thousand
// cells fits.
constexpr size_t kBytesKept = size_t{1} << 25;
constexpr size_t kBytesOfName = 256;  // bytes for a name beside its characters and texts
constexpr size_t kTreesKept = 64;

// A file without end, such as /dev/zero, is not a program.
constexpr size_t kLongestText = size_t{1} << 30;

std::string read_stream(std::FILE* file) {
    std::string text;
    char buffer[65536];
    while (size_t n = std::fread(buffer, 1, sizeof buffer, file)) {
        if (text.size() > kLongestText) throw file_error("", "the text of the program is longer than 1 GiB");
        text.append(buffer, n);
    }
    return text;
}

// A byte order mark and a first line for the shell are not Lua; the line's end stays, so that lines keep their numbers.
void skip_comment(std::string& text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
    if (text.starts_with('#')) text.erase(0, std::min(text.find('\n'), text.size()));
}

// The kind of the value of a global, without asking its metatable.
lua::Known known_global(lua_State* L, std::string_view name) {
    const int top = lua_gettop(L);
    lua_pushglobaltable(L);
    lua_pushlstring(L, name.data(), name.size());
    lua::Known known = lua::Known::any;
    const int type = lua_rawget(L, -2);
    if (type == LUA_TNIL) {
        known = lua::Known::nothing;
    } else if (type == LUA_TTABLE) {
        luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
        lua_pushliteral(L, "lunaria");
        lua_rawget(L, -2);
        if (lua_rawequal(L, -1, -3)) known = lua::Known::library;
    } else if (TensorBody** place = State::of(L).memory().handle(lua_touserdata(L, -1)); place && *place) {
        known = lua::Known::tensor;
    }
    lua_settop(L, top);
    return known;
}

void advise(lua_State* L, const lua::Chunk& chunk) {
    const lua::KnownGlobal global = [L](std::string_view name) { return known_global(L, name); };
    luaL_checkstack(L, 6, "load");
    for (const lua::Advice& advice : lua::advice_on(chunk, global))
        warn(str(chunk.name(), ":", advice.line), advice.text, advice.hint);
}

// The results of load and loadfile in place of an error.
int nil_and_message(lua_State* L) {
    luaL_pushfail(L);
    lua_insert(L, -2);
    return 2;
}

// `file`: the origin of the text; may be empty.
void check_text(std::string_view text, std::string_view file) {
    if (text.starts_with(LUA_SIGNATURE[0]))
        throw Error(ErrorKind::syntax, file, "attempt to load a binary chunk: only Lua text is accepted");
}

void check_mode(const char* mode) {
    if (mode && !std::strchr(mode, 't'))
        throw Error(ErrorKind::syntax, "", str("attempt to load a text chunk (mode is '", mode, "')"));
}

// Compiles; with `environment` (a stack index, 0 for none) as the chunk's _ENV. Leaves the function, or nil and a
// message.
template <class Compile>
int finish_load(lua_State* L, int environment, Compile&& compile) {
    bool ok = true;
    try {
        compile();
    } catch (const Error& e) {
        lua_pushstring(L, e.what());
        ok = false;
    }
    if (!ok) return nil_and_message(L);
    if (environment) {
        lua_pushvalue(L, environment);
        if (!lua_setupvalue(L, -2, 1)) lua_pop(L, 1);
    }
    return 1;
}

// The pieces that a function at index 1 returns, until it returns nil or an empty string.
std::string read_pieces(lua_State* L) {
    std::string text;
    luaL_checktype(L, 1, LUA_TFUNCTION);
    for (;;) {
        lua_pushvalue(L, 1);
        lua_call(L, 0, 1);
        if (lua_isnil(L, -1)) return text;
        size_t size = 0;
        const char* piece = lua_tolstring(L, -1, &size);
        if (!piece) throw Error(ErrorKind::argument, "", "reader function must return a string");
        if (size == 0) return text;
        text.append(piece, size);
        lua_pop(L, 1);
    }
}

int load(lua_State* L) {
    size_t size = 0;
    use_as_function(L, 1);
    const char* given = lua_tolstring(L, 1, &size);
    const char* mode = luaL_optstring(L, 3, nullptr);
    const int environment = lua_isnone(L, 4) ? 0 : 4;
    std::string text = given ? std::string(given, size) : std::string();
    std::string name = luaL_optstring(L, 2, given ? text.c_str() : "=(load)");
    return finish_load(L, environment, [&] {
        if (!given) text = read_pieces(L);
        check_text(text, "");
        check_mode(mode);
        State::of(L).loader().compile(L, text, name);
    });
}

int loadfile(lua_State* L) {
    const char* path = luaL_optstring(L, 1, nullptr);
    const char* mode = luaL_optstring(L, 2, nullptr);
    const int environment = lua_isnone(L, 3) ? 0 : 3;
    return finish_load(L, environment, [&] {
        check_mode(mode);
        State::of(L).loader().compile_file(L, path);
    });
}

// The results of the file's chunk, also after it has yielded.
int results_of_file(lua_State* L, int, lua_KContext) { return lua_gettop(L) - 1; }

int dofile(lua_State* L) {
    const char* path = luaL_optstring(L, 1, nullptr);
    lua_settop(L, 1);
    State::of(L).loader().compile_file(L, path);
    lua_callk(L, 0, LUA_MULTRET, 0, results_of_file);
    return results_of_file(L, LUA_OK, 0);
}

// The second searcher of require: a Lua file on package.path. Upvalue 1 is the package table, so that the search uses
// it even when the global of that name is changed.
int search_file(lua_State* L) {
    const char* name = luaL_checkstring(L, 1);
    lua_getfield(L, lua_upvalueindex(1), "searchpath");
    lua_pushvalue(L, 1);
    if (lua_getfield(L, lua_upvalueindex(1), "path") != LUA_TSTRING)
        return luaL_error(L, "'package.path' must be a string");
    lua_call(L, 2, 2);
    if (lua_isnil(L, -2)) return 1;  // the message: the places that were searched
    const char* path = lua_tostring(L, -2);
    lua_pop(L, 1);
    try {
        State::of(L).loader().compile_file(L, path);
    } catch (const Error& e) {
        throw Error(ErrorKind::syntax, "",
                    str("error loading module '", name, "' from file '", path, "':\n\t", e.what()));
    }
    lua_insert(L, -2);
    return 2;
}

std::string own_code(lua_State* L, int index) {
    const std::string dump = dump_function(L, index);
    const std::vector<FunctionCode> functions = read_dump(dump);
    return functions.empty() ? std::string() : std::string(functions.front().bytes);
}

// Whether two functions with the same code hold their upvalues in the same way: as values, or as variables that others
// change. The code around the functions decides that.
bool treat_alike(lua::List<lua::Upvalue> a, lua::List<lua::Upvalue> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const lua::Upvalue& x, const lua::Upvalue& y) {
        return x.local->assigned_after_capture == y.local->assigned_after_capture;
    });
}

}  // namespace

std::string display_name(const std::string& name) {
    if (name.starts_with('@') || name.starts_with('=')) return name.substr(1);
    const std::string line = name.substr(0, name.find('\n'));
    const bool whole = line.size() == name.size() && line.size() <= 40;
    return str("[string \"", line.substr(0, 40), whole ? "" : "...", "\"]");
}

std::vector<int> lines_with_code(const std::string& text) {
    std::string chunk = text;
    skip_comment(chunk);
    try {
        chunk = prepare_cell(chunk, "cell").chunk;
    } catch (const Error&) {
        return {};
    }
    const std::unique_ptr<lua_State, void (*)(lua_State*)> L(luaL_newstate(), lua_close);
    if (!L || luaL_loadbufferx(L.get(), chunk.data(), chunk.size(), "=", "t") != LUA_OK) return {};
    std::set<int> lines;
    const std::string dump = dump_function(L.get(), -1);
    for (const FunctionCode& f : read_dump(dump)) lines.insert(f.lines.begin(), f.lines.end());
    return {lines.begin(), lines.end()};
}

std::string read_text_file(const std::string& path) {
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
    struct stat info {};
    if (!file || fstat(fileno(file.get()), &info) != 0)
        throw file_error("", str("cannot open ", path, ": ", std::strerror(errno)));
    if (S_ISDIR(info.st_mode)) throw file_error("", str("cannot read ", path, ": it is a directory"));
    std::string text = read_stream(file.get());
    if (std::ferror(file.get())) throw file_error("", str("cannot read ", path, ": ", std::strerror(errno)));
    return text;
}

Loader::Loader() = default;
Loader::~Loader() = default;

void Loader::install(lua_State* L) {
    lua_register(L, "load", protect<load>);
    lua_register(L, "loadfile", protect<loadfile>);
    lua_register(L, "dofile", protect<dofile>);
    lua_getglobal(L, LUA_LOADLIBNAME);
    lua_getfield(L, -1, "searchers");
    lua_pushvalue(L, -2);
    lua_pushcclosure(L, protect<search_file>, 1);
    lua_rawseti(L, -2, 2);
    lua_pop(L, 2);
}

int Loader::load_text(lua_State* L, std::string_view text, const std::string& name) {
    const int status = luaL_loadbufferx(L, text.data(), text.size(), name.c_str(), "t");
    if (status != LUA_OK || name.starts_with(kLibraryChunks)) return status;
    const std::string extended = prologues_.add(L, dump_function(L, -1));
    if (extended.empty() || luaL_loadbufferx(L, extended.data(), extended.size(), name.c_str(), "b") != LUA_OK) {
        if (!extended.empty()) lua_pop(L, 1);
        return status;
    }
    lua_remove(L, -2);
    if (name != text) bind_text(L, text);
    bind_entry(L);
    return status;
}

void Loader::compile(lua_State* L, std::string_view text, const std::string& name) {
    check_text(text, name.starts_with('@') ? display_name(name) : std::string());
    // Also refuses texts that only our parser refuses: later stages read its trees.
    const auto tree = lua::parse(std::string(text), display_name(name));
    if (load_text(L, text, name) != LUA_OK) {
        const char* found = lua_tostring(L, -1);
        std::string message = found ? found : "the chunk cannot be compiled";
        lua_pop(L, 1);
        throw Error(ErrorKind::syntax, "", message);
    }
    keep(name, text);
    if (name.starts_with(kLibraryChunks)) return;
    advise(L, *tree);
    const auto mentions = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
    mentions_breakpoint_ = mentions_breakpoint_ || mentions("breakpoint");
    has_weak_tables_ = has_weak_tables_ || mentions("__mode");
}

void Loader::compile_file(lua_State* L, const char* path) {
    std::string text = path ? read_text_file(path) : read_stream(stdin);
    skip_comment(text);
    compile(L, text, path ? std::string("@") + path : "=stdin");
}

void Loader::keep(const std::string& name, std::string_view text) {
    if (name == text) return;
    const auto [at, is_new] = texts_.try_emplace(name);
    Versions& versions = at->second;
    if (is_new) {
        versions.complete = !dropped_names_;  // otherwise a function of an older text of this name may still exist
        kept_bytes_ += kBytesOfName + name.size();
        if (!name.starts_with(kLibraryChunks)) (name.starts_with('@') ? droppable_files_ : droppable_).push_back(at);
    }
    auto& texts = versions.texts;
    if (const auto known = std::find(texts.begin(), texts.end(), text); known != texts.end()) {
        texts.splice(texts.begin(), texts, known);
        return;
    }
    texts.emplace_front(text);
    kept_bytes_ += text.size();
    if (texts.size() > kVersionsKept) {
        kept_bytes_ -= texts.back().size();
        texts.pop_back();
        versions.complete = false;
    }
    make_room(at);
}

void Loader::make_room(Texts::iterator latest) {
    while (kept_bytes_ > kBytesKept) {
        auto& list = droppable_.empty() || droppable_.front() == latest ? droppable_files_ : droppable_;
        if (list.empty() || list.front() == latest) return;
        const Texts::iterator oldest = list.front();
        list.pop_front();
        kept_bytes_ -= kBytesOfName + oldest->first.size();
        for (const std::string& text : oldest->second.texts) kept_bytes_ -= text.size();
        texts_.erase(oldest);
        dropped_names_ = true;
    }
}

std::vector<std::string_view> Loader::sources(std::string_view name) const {
    std::vector<std::string_view> result;
    if (auto found = texts_.find(name); found != texts_.end())
        result.assign(found->second.texts.begin(), found->second.texts.end());
    else if (!name.starts_with('@') && !name.starts_with('='))
        result.push_back(name);
    return result;
}

// The texts from which a chunk of this name may have been compiled; certain: there is only one possible.
std::vector<std::string_view> Loader::candidates(const std::string& name, bool& certain) const {
    std::vector<std::string_view> texts = sources(name);
    const auto kept = texts_.find(name);
    if (kept == texts_.end()) {
        // Its own text, unless another was loaded under that name and dropped.
        certain = !dropped_names_;
        return texts;
    }
    if (!name.starts_with('@') && !name.starts_with('=')) texts.push_back(name);
    certain = texts.size() == 1 && kept->second.complete;
    return texts;
}

Loader::Tree& Loader::tree_of(std::string_view text, const std::string& name) {
    for (Tree& tree : trees_)
        if (tree.chunk->name() == name && tree.chunk->source() == text) return tree;
    trees_.push_front({lua::parse(std::string(text), name), {}, {}});
    if (trees_.size() > kTreesKept) trees_.pop_back();
    return trees_.front();
}

// The code of the tree's functions, by their ids: compiled once more, not run.
std::span<const FunctionCode> Loader::code_of(lua_State* L, Tree& tree, const std::string& name) {
    if (tree.code) return *tree.code;
    const std::string& text = tree.chunk->source();
    const bool compiles = load_text(L, text, name) == LUA_OK;
    if (compiles) tree.dump = dump_function(L, -1);
    lua_pop(L, 1);
    if (!compiles) return {};  // for lack of memory or stack: the next time it may succeed
    auto& code = tree.code.emplace(read_dump(tree.dump));
    const auto functions = tree.chunk->functions();
    const auto same_lines = [](const FunctionCode& c, const lua::Function* f) {
        return c.first_line == f->first_line && c.last_line == f->last_line;
    };
    if (!std::equal(code.begin(), code.end(), functions.begin(), functions.end(), same_lines)) code.clear();
    return code;
}

FunctionSource Loader::source_of(lua_State* L, int index) {
    if (!lua_isfunction(L, index) || lua_iscfunction(L, index)) return {{}, {}, "it is not written in Lua"};
    luaL_checkstack(L, 4, "source of a function");
    index = lua_absindex(L, index);
    lua_Debug info;
    lua_pushvalue(L, index);
    lua_getinfo(L, ">Su", &info);
    const std::string name(info.source, info.srclen);
    std::vector<std::string_view> upvalues;
    for (int i = 1; const char* upvalue = get_upvalue(L, index, i); ++i) {
        upvalues.emplace_back(upvalue);
        lua_pop(L, 1);
    }
    bool certain = false;
    std::string own;
    FunctionSource result;
    const std::optional<std::string_view> kept = text_of(L, index);
    const auto texts = kept ? std::vector<std::string_view>{*kept} : candidates(name, certain);
    certain |= kept.has_value();
    for (std::string_view text : texts) {
        Tree* tree = nullptr;
        try {
            tree = &tree_of(text, display_name(name));
        } catch (const lua::SyntaxError&) {
            continue;  // a chunk's name that is no chunk
        }
        const lua::Chunk& chunk = *tree->chunk;
        std::vector<const lua::Function*> found{&chunk.main()};
        if (*info.what != 'm')
            found = chunk.find_functions(static_cast<uint32_t>(info.linedefined),
                                         static_cast<uint32_t>(info.lastlinedefined), info.nparams, info.isvararg != 0,
                                         upvalues);
        if (certain && found.size() == 1) return {tree->chunk, found.front(), {}};
        if (found.empty()) continue;
        const auto code = code_of(L, *tree, name);
        if (code.empty()) continue;
        if (own.empty()) own = own_code(L, index);
        for (const lua::Function* f : found) {
            if (code[f->id].bytes != own) continue;
            if (result.function && !treat_alike(result.function->upvalues, f->upvalues))
                return {{},
                        {},
                        "its source cannot be told apart from that of another function on the same line: give each a "
                        "line of its own"};
            if (!result.function) result = {tree->chunk, f, {}};
        }
    }
    if (!result.function)
        result.problem = texts.size() > 1 ? "its source is no longer kept: other texts were loaded under the same name"
                         : dropped_names_ ? "its source is no longer kept: too many other texts were loaded since"
                                          : "its source is not known";
    return result;
}

}  // namespace lunaria
