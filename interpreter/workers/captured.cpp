#include "interpreter/workers/captured.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "interpreter/loader/function_code.h"
#include "interpreter/loader/loader.h"
#include "interpreter/loader/prologue.h"
#include "interpreter/protect.h"
#include "interpreter/state.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"
#include "interpreter/workers/library_paths.h"

namespace lunaria {

namespace {

// Handles of objects that never change, which any state may share.
constexpr const char* kSharedHandles[] = {kTransformHandle, kWordsHandle, kPiecesHandle};

std::string place_of(lua_State* L, int function) {
    lua_Debug info;
    lua_pushvalue(L, function);
    lua_getinfo(L, ">S", &info);
    return str(info.short_src, ":", info.linedefined);
}

std::string key_text(lua_State* L, int index) {
    if (lua_type(L, index) == LUA_TSTRING) return str(".", lua_tostring(L, index));
    if (lua_isinteger(L, index)) return str("[", lua_tointeger(L, index), "]");
    return "[" + describe(L, index) + "]";
}

}  // namespace

bool Captured::Part::operator==(const Part& o) const {
    return kind == o.kind && integer == o.integer && std::equal(&number, &number + 1, &o.number) && text == o.text &&
           chunk == o.chunk && tensor.body() == o.tensor.body() && version == o.version && object == o.object &&
           fields == o.fields && metatable == o.metatable && variables == o.variables;
}

bool Captured::operator==(const Captured& o) const {
    return parts_ == o.parts_ && variables_ == o.variables_ && globals_ == o.globals_ && modules_ == o.modules_ &&
           refused_ == o.refused_ && path_ == o.path_;
}

// Takes values one after the other, and values found in them later, so that deep nesting needs no stack.
class Taker {
  public:
    Taker(lua_State* L, Captured& to, std::string_view where) : L_(L), to_(to), where_(where), paths_(L) {
        luaL_checkstack(L, 32, "workers");
        lua_newtable(L);
        numbers_ = lua_gettop(L);
        lua_newtable(L);
        values_ = lua_gettop(L);
    }
    ~Taker() { lua_settop(L_, numbers_ - 1); }
    Taker(const Taker&) = delete;
    Taker& operator=(const Taker&) = delete;

    void take(int function) {
        add(function, "the function");
        finish();
        // Further functions bring further names.
        for (size_t i = 0; i < names_.size(); ++i) take_global(std::string(names_[i]));
        take_modules();
        lua_getglobal(L_, LUA_LOADLIBNAME);
        if (lua_istable(L_, -1) && lua_getfield(L_, -1, "path") == LUA_TSTRING) to_.path_ = lua_tostring(L_, -1);
        lua_settop(L_, values_);
    }

  private:
    using Part = Captured::Part;
    using Kind = Captured::Kind;

    std::optional<size_t> number_of(int index) {
        lua_pushvalue(L_, index);
        lua_rawget(L_, numbers_);
        const auto known = static_cast<size_t>(lua_tointeger(L_, -1));
        // The number may belong to a value that was dropped again.
        lua_rawgeti(L_, values_, static_cast<lua_Integer>(known));
        const bool same = known > 0 && known <= to_.parts_.size() && lua_rawequal(L_, -1, index);
        lua_pop(L_, 2);
        return same ? std::optional(known - 1) : std::nullopt;
    }

    // The number of the value at `index`, whose name in messages is `label`.
    size_t add(int index, std::string label) {
        index = lua_absindex(L_, index);
        const bool shared = lua_type(L_, index) >= LUA_TTABLE;
        if (shared)
            if (const auto known = number_of(index)) return *known;
        to_.parts_.emplace_back();
        labels_.push_back(std::move(label));
        const auto number = static_cast<lua_Integer>(to_.parts_.size());
        lua_pushvalue(L_, index);
        lua_rawseti(L_, values_, number);
        if (shared) {
            lua_pushvalue(L_, index);
            lua_pushinteger(L_, number);
            lua_rawset(L_, numbers_);
        }
        return static_cast<size_t>(number) - 1;
    }

    void finish() {
        for (; done_ < to_.parts_.size(); ++done_) {
            lua_rawgeti(L_, values_, static_cast<lua_Integer>(done_) + 1);
            Part part = part_of(lua_gettop(L_), done_);
            to_.parts_[done_] = std::move(part);
            lua_settop(L_, values_);
        }
    }

    Part part_of(int index, size_t at) {
        Part part;
        switch (lua_type(L_, index)) {
            case LUA_TNIL:
                break;
            case LUA_TBOOLEAN:
                part.kind = Kind::boolean;
                part.integer = lua_toboolean(L_, index);
                break;
            case LUA_TNUMBER:
                part.kind = lua_isinteger(L_, index) ? Kind::integer : Kind::number;
                if (part.kind == Kind::integer)
                    part.integer = lua_tointeger(L_, index);
                else
                    part.number = lua_tonumber(L_, index);
                break;
            case LUA_TSTRING:
                part.kind = Kind::text;
                part.text = text_at(L_, index);
                break;
            case LUA_TTABLE:
                take_table(index, at, part);
                break;
            case LUA_TFUNCTION:
                take_function(index, at, part);
                break;
            case LUA_TUSERDATA:
                take_userdata(index, at, part);
                break;
            default:
                refuse(at, describe(L_, index));
        }
        return part;
    }

    bool is_library(int index, Part& part) {
        const auto path = paths_.of(index);
        if (!path) return false;
        part.kind = Kind::library;
        part.text = *path;
        return true;
    }

    void take_table(int index, size_t at, Part& part) {
        lua_pushglobaltable(L_);
        const bool global = lua_rawequal(L_, -1, index);
        lua_pop(L_, 1);
        if (global) {
            part.kind = Kind::globals;
            return;
        }
        if (is_library(index, part)) return;
        part.kind = Kind::table;
        const std::string label = labels_[at];
        lua_pushnil(L_);
        while (lua_next(L_, index)) {
            const std::string name = label + key_text(L_, -2);
            const size_t key = add(-2, "a key of " + label);
            part.fields.emplace_back(key, add(-1, name));
            lua_pop(L_, 1);
        }
        if (lua_getmetatable(L_, index)) part.metatable = add(-1, "the metatable of " + label);
    }

    void take_function(int index, size_t at, Part& part) {
        const bool in_c = lua_iscfunction(L_, index);
        lua_Debug info;
        lua_pushvalue(L_, index);
        lua_getinfo(L_, ">Su", &info);
        const std::string_view chunk(info.source, info.srclen);
        if ((in_c || chunk.starts_with(kLibraryChunks)) && is_library(index, part)) return;
        if (in_c) refuse(at, "a function in C, or made by compiled code");
        part.kind = Kind::function;
        part.text = dump_function(L_, index);
        part.chunk = chunk;
        if (!chunk.starts_with(kLibraryChunks)) {
            for (std::string& name : names_looked_up(part.text))
                if (std::ranges::find(names_, name) == names_.end()) names_.push_back(std::move(name));
            const auto texts = State::of(L_).loader().sources(chunk);
            const std::optional<std::string_view> own = text_of(L_, index);
            if (own)
                to_.sources_.try_emplace(part.chunk, *own);
            else if (!texts.empty() && chunk != texts.front())
                to_.sources_.try_emplace(part.chunk, texts.front());
        }
        const int visible = info.nups - hidden_upvalues(L_, index);
        for (int i = 1; i <= info.nups; ++i) {
            if (i > visible) {
                part.variables.push_back(Captured::kNone);
                continue;
            }
            const void* id = lua_upvalueid(L_, index, i);
            const auto [known, is_new] = variables_.try_emplace(id, to_.variables_.size());
            part.variables.push_back(known->second);
            if (!is_new && known->second < to_.variables_.size()) continue;
            known->second = part.variables.back() = to_.variables_.size();
            const char* name = lua_getupvalue(L_, index, i);
            to_.variables_.push_back(0);
            const size_t value = add(-1, str("'", name, "', which the function at ", place_of(L_, index), " captures"));
            to_.variables_[part.variables.back()] = value;
            lua_pop(L_, 1);
        }
    }

    void take_userdata(int index, size_t at, Part& part) {
        if (const Tensor* tensor = tensor_at(L_, index)) {
            part.kind = Kind::tensor;
            part.tensor = *tensor;
            // Parameters are shared with the network, which goes on learning.
            if (!tensor->parameter()) {
                part.content = tensor->apart();
                part.version = tensor->version();
            }
            return;
        }
        if (const auto dtype = find_dtype(L_, index)) {
            part.kind = Kind::dtype;
            part.integer = static_cast<int64_t>(*dtype);
            return;
        }
        for (const char* type : kSharedHandles) {
            if (!luaL_testudata(L_, index, type)) continue;
            part.kind = Kind::handle;
            part.text = type;
            part.object = type == kTransformHandle ? transform_at(L_, index) : handle_at<SharedObject>(L_, index, type);
            return;
        }
        if (is_library(index, part)) return;
        refuse(at, luaL_testudata(L_, index, LUA_FILEHANDLE) ? "an open file" : describe(L_, index));
    }

    [[noreturn]] void refuse(size_t at, std::string_view what) {
        throw argument_error(where_, str(labels_[at], " is ", what, ", which cannot be copied to workers"))
            .hint("make it within the function, or leave python_multiprocessing out");
    }

    // Results of require: the program's own modules.
    void take_modules() {
        luaL_getsubtable(L_, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
        const int loaded = lua_gettop(L_);
        std::map<std::string, size_t> modules;
        lua_pushnil(L_);
        while (lua_next(L_, loaded)) {
            if (lua_type(L_, -2) == LUA_TSTRING && (lua_istable(L_, -1) || lua_isfunction(L_, -1))) {
                const auto number = number_of(lua_gettop(L_));
                if (number && to_.parts_[*number].kind != Kind::library && to_.parts_[*number].kind != Kind::globals)
                    modules[lua_tostring(L_, -2)] = *number;
            }
            lua_pop(L_, 1);
        }
        to_.modules_.assign(modules.begin(), modules.end());
        lua_settop(L_, values_);
    }

    void take_global(const std::string& name) {
        lua_pushglobaltable(L_);
        lua_pushlstring(L_, name.data(), name.size());
        lua_rawget(L_, -2);
        const int value = lua_gettop(L_);
        Part part;
        if (lua_isnil(L_, value) ||
            (lua_type(L_, value) >= LUA_TTABLE && is_library(value, part) && part.text == LibraryPaths::global(name))) {
            lua_settop(L_, values_);
            return;
        }
        // If a part of it is refused, nothing of it is taken.
        const size_t parts = to_.parts_.size(), variables = to_.variables_.size();
        try {
            const size_t number = add(value, str("the global '", name, "'"));
            finish();
            to_.globals_.emplace_back(name, number);
        } catch (const Error& e) {
            to_.refused_.emplace(name, e.what());
            to_.parts_.resize(parts);
            labels_.resize(parts);
            to_.variables_.resize(variables);
            done_ = parts;
        }
        lua_settop(L_, values_);
    }

    lua_State* L_;
    Captured& to_;
    std::string_view where_;
    LibraryPaths paths_;
    int numbers_ = 0, values_ = 0;  // on the stack: the number + 1 of a value, and values by it
    std::vector<std::string> labels_;
    std::map<const void*, size_t> variables_;  // by their ids
    std::vector<std::string> names_;           // looked up by functions
    size_t done_ = 0;
};

Captured::Captured(lua_State* L, int index, std::string_view where) { Taker(L, *this, where).take(index); }

// Makes all values first, and then fills them.
class Putter {
  public:
    Putter(lua_State* L, const Captured& from) : L_(L), from_(from) {
        luaL_checkstack(L, 32, "workers");
        lua_createtable(L, static_cast<int>(std::min<size_t>(from.parts_.size(), 1 << 20)), 0);
        values_ = lua_gettop(L);
    }

    void put() {
        for (const auto& [name, text] : from_.sources_) State::of(L_).loader().keep(name, text);
        for (size_t i = 0; i < from_.parts_.size(); ++i) {
            make(from_.parts_[i]);
            lua_rawseti(L_, values_, static_cast<lua_Integer>(i) + 1);
        }
        places_.resize(from_.variables_.size());
        for (size_t i = 0; i < from_.parts_.size(); ++i) fill(i);
        lua_pushglobaltable(L_);
        for (const auto& [name, value] : from_.globals_) set_field(name, value);
        luaL_getsubtable(L_, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
        for (const auto& [name, value] : from_.modules_) set_field(name, value);
        refuse_globals();
        if (!from_.path_.empty()) {
            lua_getglobal(L_, LUA_LOADLIBNAME);
            lua_pushlstring(L_, from_.path_.data(), from_.path_.size());
            lua_setfield(L_, -2, "path");
        }
        push_value(0);
        lua_replace(L_, values_);
        lua_settop(L_, values_);
    }

  private:
    using Part = Captured::Part;
    using Kind = Captured::Kind;

    void push_value(size_t number) { lua_rawgeti(L_, values_, static_cast<lua_Integer>(number) + 1); }
    void set_field(const std::string& name, size_t value) {
        lua_pushlstring(L_, name.data(), name.size());
        push_value(value);
        lua_rawset(L_, -3);
    }

    void make(const Part& part) {
        switch (part.kind) {
            case Kind::nil:
                return lua_pushnil(L_);
            case Kind::boolean:
                return lua_pushboolean(L_, part.integer != 0);
            case Kind::integer:
                return lua_pushinteger(L_, part.integer);
            case Kind::number:
                return lua_pushnumber(L_, part.number);
            case Kind::text:
                return push(L_, std::string_view(part.text));
            case Kind::tensor:
                if (!part.content) return push(L_, part.tensor);
                return push(L_, part.content);
            case Kind::dtype:
                return push(L_, static_cast<DType>(part.integer));
            case Kind::handle:
                if (part.text == kTransformHandle)
                    return push_transform(L_, std::static_pointer_cast<const data::Transform>(part.object));
                return push_handle<SharedObject>(L_, part.object, part.text.c_str());
            case Kind::table:
                return lua_newtable(L_);
            case Kind::function:
                if (luaL_loadbufferx(L_, part.text.data(), part.text.size(), part.chunk.c_str(), "b") != LUA_OK)
                    throw state_error("workers", lua_tostring(L_, -1));
                return;
            case Kind::library:
                return LibraryPaths::push(L_, part.text);
            case Kind::globals:
                return lua_pushglobaltable(L_);
        }
    }

    void fill(size_t number) {
        const Part& part = from_.parts_[number];
        if (part.fields.empty() && part.variables.empty() && part.metatable == Captured::kNone) return;
        push_value(number);
        const int at = lua_gettop(L_);
        for (const auto& [key, value] : part.fields) {
            push_value(key);
            push_value(value);
            lua_rawset(L_, at);
        }
        if (part.metatable != Captured::kNone) {
            push_value(part.metatable);
            lua_setmetatable(L_, at);
        }
        for (size_t i = 0; i < part.variables.size(); ++i) join(at, number, i, part.variables[i]);
        lua_settop(L_, at);
        if (std::ranges::find(part.variables, Captured::kNone) != part.variables.end()) bind_entry(L_);
        lua_pop(L_, 1);
    }

    // The first function with a variable has its own; others share it.
    void join(int at, size_t function, size_t position, size_t variable) {
        if (variable == Captured::kNone) return;
        const int n = static_cast<int>(position) + 1;
        auto& place = places_[variable];
        if (place) {
            push_value(place->first);
            lua_upvaluejoin(L_, at, n, -1, place->second);
            lua_pop(L_, 1);
            return;
        }
        place.emplace(function, n);
        push_value(from_.variables_[variable]);
        lua_setupvalue(L_, at, n);
    }

    // Called for globals that could not be copied.
    static int refused_global(lua_State* L) {
        lua_pushvalue(L, 2);
        if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TSTRING) return 0;
        throw Error(ErrorKind::argument, "", lua_tostring(L, -1));
    }
    void refuse_globals() {
        if (from_.refused_.empty()) return;
        lua_pushglobaltable(L_);
        lua_newtable(L_);
        lua_newtable(L_);
        for (const auto& [name, problem] : from_.refused_) {
            push(L_, std::string_view(problem));
            lua_setfield(L_, -2, name.c_str());
        }
        lua_pushcclosure(L_, protect<refused_global>, 1);
        lua_setfield(L_, -2, "__index");
        lua_setmetatable(L_, -2);
    }

    lua_State* L_;
    const Captured& from_;
    int values_ = 0;
    std::vector<std::optional<std::pair<size_t, int>>> places_;  // of variables: a function and the position in it
};

void Captured::put(lua_State* L) const { Putter(L, *this).put(); }

}  // namespace lunaria
