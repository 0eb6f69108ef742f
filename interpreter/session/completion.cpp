#include "interpreter/session/completion.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "core/io/embedded.h"
#include "interpreter/display/pretty.h"
#include "interpreter/session/inspection.h"
#include "interpreter/values/operators.h"
#include "interpreter/values/parts.h"
#include "interpreter/values/values.h"
#include "jit/frontend/cursor.h"

namespace lunaria {

namespace {

constexpr int kChain = 32;  // metatables followed
constexpr size_t kMostItems = 2000;

bool is_name(std::string_view text) {
    if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
    return std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
}

int get_field(lua_State* L) {
    lua_gettable(L, 1);
    return 1;
}

// Replaces the table on top of the stack, below a key, by the field of that key. Follows __index tables; calls an
// __index only when it is a C function, since those are the library's own.
void get_safely(lua_State* L) {
    for (int i = 0; i < kChain; ++i) {
        const bool is_table = lua_istable(L, -2);
        if (is_table) {
            lua_pushvalue(L, -1);
            if (lua_rawget(L, -3) != LUA_TNIL) {
                lua_replace(L, -3);
                lua_pop(L, 1);
                return;
            }
            lua_pop(L, 1);
        }
        if (luaL_getmetafield(L, -2, "__index") == LUA_TNIL) break;
        if (lua_iscfunction(L, -1)) {
            lua_pop(L, 1);
            lua_pushcfunction(L, get_field);
            lua_insert(L, -3);
            if (lua_pcall(L, 2, 1, 0) != LUA_OK) {
                lua_pop(L, 1);
                lua_pushnil(L);
            }
            return;
        }
        if (lua_isfunction(L, -1)) {
            lua_pop(L, 1);
            break;
        }
        lua_replace(L, -3);
    }
    lua_pop(L, 2);
    lua_pushnil(L);
}

class Completer {
  public:
    Completer(State& state, const lua::CursorContext& context, const CompletionScope* scope)
        : state_(state), L_(state.running()), context_(context), scope_(scope) {}

    std::vector<CompletionItem> run() {
        using lua::CursorPlace;
        if (context_.place == CursorPlace::string && context_.separator != '[') {
            add_files();
        } else if (context_.place == CursorPlace::code || context_.separator == '[') {
            if (context_.separator) {
                add_fields();
            } else {
                add_options();
                if (items_.empty() || !context_.call || !context_.call->at_key) add_names();
            }
        }
        std::sort(items_.begin(), items_.end(), [](const auto& a, const auto& b) { return a.text < b.text; });
        items_.erase(
            std::unique(items_.begin(), items_.end(), [](const auto& a, const auto& b) { return a.text == b.text; }),
            items_.end());
        return std::move(items_);
    }

  private:
    void add(std::string text, std::string kind, std::string signature = {}) {
        if (items_.size() < kMostItems && text.starts_with(context_.word))
            items_.push_back({std::move(text), std::move(kind), std::move(signature)});
    }

    // The name with kind and signature of the value on top of the stack.
    void add_value(std::string name) {
        if (!name.starts_with(context_.word)) return;
        if (const Op* op = operator_at(L_, -1))
            add(std::move(name), "operator", std::string(op->signature.text));
        else if (lua_isfunction(L_, -1))
            add(std::move(name), "function", signature_text(L_, -1));
        else if (state_.memory().handle(lua_touserdata(L_, -1)))
            add(std::move(name), "tensor");
        else
            add(std::move(name), luaL_typename(L_, -1));
    }

    // The string keys of the table at the top. Only functions: for a word after a colon.
    void add_keys(bool only_functions) {
        lua_pushnil(L_);
        while (lua_next(L_, -2)) {
            if (lua_type(L_, -2) == LUA_TSTRING && (!only_functions || lua_isfunction(L_, -1))) {
                size_t size = 0;
                const char* text = lua_tolstring(L_, -2, &size);
                const std::string_view name(text, size);
                const bool shown = !name.starts_with("__") || context_.word.starts_with("_");
                if (shown && (context_.separator == '[' || is_name(name))) add_value(std::string(name));
            }
            lua_pop(L_, 1);
        }
    }

    void add_fields() {
        const int top = lua_gettop(L_);
        if (!context_.base.path.empty() && push_path(L_, context_.base.path, scope_)) {
            const bool calls = context_.separator == ':';
            if (TensorBody** place = state_.memory().handle(lua_touserdata(L_, -1)); place && *place)
                add_tensor_fields(calls);
            else
                add_chain(calls);
        } else if (context_.separator == ':' && context_.base.text.ends_with(")")) {
            add_any_methods();
        }
        lua_settop(L_, top);
    }

    void add_chain(bool only_functions) {
        for (int i = 0; i < kChain; ++i) {
            if (lua_istable(L_, -1)) {
                load_parts(L_, -1);
                if (is_library()) add_library_modules(only_functions);
                add_keys(only_functions);
            }
            if (luaL_getmetafield(L_, -1, "__index") == LUA_TNIL) return;
            if (lua_isfunction(L_, -1)) return;
        }
    }

    bool is_library() {
        luaL_getsubtable(L_, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
        lua_getfield(L_, -1, "lunaria");
        const bool same = lua_rawequal(L_, -1, -3);
        lua_pop(L_, 2);
        return same;
    }

    // Parts of ms that are loaded when they are first used.
    void add_library_modules(bool only_functions) {
        if (only_functions) return;
        constexpr std::string_view kFolder = "lunaria/";
        for (const EmbeddedFile& file : embedded_files()) {
            std::string_view name = file.name;
            if (!name.starts_with(kFolder) || name.starts_with("lunaria/zoo/")) continue;
            name = name.substr(kFolder.size(), name.size() - kFolder.size() - 4);
            name = name.substr(0, name.find('/'));
            if (name != "commands") add(std::string(name), "module");
        }
    }

    void add_tensor_fields(bool only_functions) {
        add_any_methods();
        if (!only_functions)
            for (const char* name :
                 {"shape", "dtype", "ndim", "size", "T", "mT", "itemsize", "nbytes", "device", "layout", "strides"})
                add(name, "property");
    }

    // The methods of tensors: operators, and other methods of the handle.
    void add_any_methods() {
        for (const auto& op : registry().all())
            if (op->is_method) add(std::string(op->name()), "operator", std::string(op->signature.text));
        const int top = lua_gettop(L_);
        if (state_.tensor_metatable != LUA_NOREF) {
            lua_rawgeti(L_, LUA_REGISTRYINDEX, state_.tensor_metatable);
            lua_getfield(L_, -1, "__index");
            if (lua_iscfunction(L_, -1) && lua_getupvalue(L_, -1, 1) && lua_istable(L_, -1)) add_keys(true);
        }
        lua_settop(L_, top);
    }

    void add_options() {
        if (!context_.call || !context_.call->in_table || !context_.call->at_key) return;
        const Op* op = nullptr;
        const auto& call = *context_.call;
        const int top = lua_gettop(L_);
        if (!call.method.empty()) {
            op = registry().find(call.method);
        } else if (!call.callee.path.empty() && push_path(L_, call.callee.path, scope_)) {
            op = operator_at(L_, -1);
            if (!op) add_options_of_value(call.keys);
        }
        lua_settop(L_, top);
        if (!op) return;
        for (const Param& parameter : op->signature.params) {
            const std::string name(parameter.name == "end" ? "stop" : parameter.name);
            if (std::find(call.keys.begin(), call.keys.end(), name) == call.keys.end())
                add(name + " = ", "option", std::string(op->signature.text));
        }
    }

    // Names for the table of a class or function of the library that is on top of the stack
    // (lua/lunaria/help/options.lua).
    void add_options_of_value(const std::vector<std::string>& given) {
        const int value = lua_gettop(L_);
        lua_getglobal(L_, "require");
        lua_pushliteral(L_, "lunaria.help.options");
        if (!lua_isfunction(L_, -2) || lua_pcall(L_, 1, 1, 0) != LUA_OK) return;
        lua_pushvalue(L_, value);
        if (lua_pcall(L_, 1, 1, 0) != LUA_OK || !lua_istable(L_, -1)) return;
        for (lua_Integer i = 1, n = luaL_len(L_, -1); i <= n; ++i) {
            lua_rawgeti(L_, -1, i);
            const std::string name = lua_tostring(L_, -1);
            if (std::find(given.begin(), given.end(), name) == given.end()) add(name + " = ", "option");
            lua_pop(L_, 1);
        }
    }

    void add_names() {
        static constexpr const char* kKeywords[] = {
            "and", "break", "do",  "else", "elseif", "end",    "false",  "for",  "function", "goto",  "if",
            "in",  "local", "nil", "not",  "or",     "repeat", "return", "then", "true",     "until", "while"};
        for (const std::string& name : context_.locals) add(name, "local");
        if (scope_)
            for (const std::string& name : scope_->names()) add(name, "local");
        if (!context_.word.empty())
            for (const char* keyword : kKeywords) add(keyword, "keyword");
        lua_pushglobaltable(L_);
        add_keys(false);
        lua_pop(L_, 1);
    }

    void add_files() {
        namespace fs = std::filesystem;
        const std::string& word = context_.word;
        const size_t slash = word.rfind('/');
        const std::string folder = slash == std::string::npos ? "" : word.substr(0, slash + 1);
        std::string place = folder.empty() ? "." : folder;
        const char* home = std::getenv("HOME");
        if (place.starts_with("~/") && home) place.replace(0, 1, home);
        std::error_code failure;
        for (fs::directory_iterator it(place, failure), end; !failure && it != end; it.increment(failure)) {
            const std::string name = it->path().filename().string();
            if (name.starts_with('.') && word.substr(folder.size()).empty()) continue;
            std::error_code ignored;
            const bool is_folder = it->is_directory(ignored);
            add(folder + name + (is_folder ? "/" : ""), is_folder ? "folder" : "file");
        }
    }

    State& state_;
    lua_State* L_;
    const lua::CursorContext& context_;
    const CompletionScope* scope_;
    std::vector<CompletionItem> items_;
};

// "%ti|", "?ms.op|", "!ls src/ma|".
bool complete_command(const std::string& text, size_t cursor, const std::vector<std::string>& commands,
                      Completions& result) {
    const size_t start = text.find_first_not_of(" \t");
    if (start == std::string::npos || start >= cursor || text[start] != '%') return false;
    const std::string word = text.substr(start, cursor - start);
    if (word.find_first_of(" \t\n") != std::string::npos) return false;
    result.begin = start;
    for (const std::string& command : commands)
        if (command.starts_with(word)) result.items.push_back({command, "command", ""});
    std::sort(result.items.begin(), result.items.end(), [](const auto& a, const auto& b) { return a.text < b.text; });
    return true;
}

// Commands that take a path: the word is completed as within a string.
bool takes_path(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    if (text.starts_with('!')) return true;
    for (std::string_view command : {"%run ", "%cd ", "%ls ", "%load ", "%save ", "%edit "})
        if (text.starts_with(command)) return true;
    return false;
}

}  // namespace

bool push_path(lua_State* L, const NamePath& path, const CompletionScope* scope) {
    if (path.empty() || !lua_checkstack(L, 10)) return false;
    const auto* first = std::get_if<std::string>(&path[0]);
    const bool found = scope && first && scope->push(L, *first);
    if (!found) lua_pushglobaltable(L);
    for (size_t i = found ? 1 : 0; i < path.size(); ++i) {
        const auto& key = path[i];
        if (const auto* name = std::get_if<std::string>(&key))
            push(L, std::string_view(*name));
        else
            lua_pushinteger(L, std::get<std::int64_t>(key));
        get_safely(L);
    }
    if (!lua_isnil(L, -1)) return true;
    lua_pop(L, 1);
    return false;
}

Completions complete(State& state, const std::string& text, size_t cursor, const std::vector<std::string>& commands,
                     const CompletionScope* scope) {
    cursor = std::min(cursor, text.size());
    Completions result;
    result.begin = result.end = cursor;
    if (complete_command(text, cursor, commands, result)) return result;
    lua::CursorContext context;
    if (takes_path(std::string_view(text).substr(0, cursor))) {
        const size_t space = text.find_last_of(" \t!", cursor ? cursor - 1 : 0);
        context.place = lua::CursorPlace::string;
        context.word_begin = space == std::string::npos ? 0 : space + 1;
        context.word = text.substr(context.word_begin, cursor - context.word_begin);
    } else {
        // The start of a command line before its Lua is not Lua: `?ms.ops.`, `%time f(`.
        std::string code = text;
        if (const size_t start = code.find_first_not_of(" \t"); start != std::string::npos) {
            if (code[start] == '%')
                for (size_t i = start; i < code.size() && code[i] != ' ' && code[i] != '\n'; ++i) code[i] = ' ';
            for (size_t i = start; i < code.size() && code[i] == '?'; ++i) code[i] = ' ';
        }
        context = lua::cursor_context(code, cursor);
    }
    result.begin = context.word_begin;
    // A local may hide a global of the same name, and its value is not known.
    const bool hidden = !context.base.path.empty() && std::holds_alternative<std::string>(context.base.path[0]) &&
                        std::find(context.locals.begin(), context.locals.end(),
                                  std::get<std::string>(context.base.path[0])) != context.locals.end();
    if (hidden && context.separator) return result;
    result.items = Completer(state, context, scope).run();
    return result;
}

}  // namespace lunaria
