// ms.json: tables to JSON and back.
//
// A table with items 1..n and no other keys is an array, one with string keys an object, an empty one an object unless
// it was marked by json.array(t). JSON's null is json.null, so that a table can hold it. A tensor is written as the
// nested arrays of its elements.
#include <algorithm>
#include <cmath>

#include "core/base/interrupt.h"
#include "core/io/json.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/table_tensor.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

constexpr int kMaxDepth = 200;
constexpr const char* kKeys = "keys";
constexpr const char* kArrayMetatable = "lunaria.json.array";
// Registry key of json.null.
constexpr const char* kNull = "lunaria.json.null";

// Builds tables on the stack while the text is read.
class TableBuilder final : public JsonEvents {
  public:
    TableBuilder(lua_State* L, bool ordered) : L_(L), ordered_(ordered) {}

    void null() override {
        lua_getfield(L_, LUA_REGISTRYINDEX, kNull);
        store();
    }
    void boolean(bool value) override {
        lua_pushboolean(L_, value);
        store();
    }
    void integer(int64_t value) override {
        lua_pushinteger(L_, value);
        store();
    }
    void number(double value) override {
        lua_pushnumber(L_, value);
        store();
    }
    void string(const std::string& value) override {
        push(L_, std::string_view(value));
        store();
    }
    void begin_object() override { begin(false); }
    void begin_array() override { begin(true); }
    void key(const std::string& name) override {
        if (ordered_) remember(name);
        push(L_, std::string_view(name));
    }
    void end_object() override { end(); }
    void end_array() override { end(); }

  private:
    struct Open {
        bool is_array;
        lua_Integer count;
    };
    void begin(bool is_array) {
        poll_interrupt();
        luaL_checkstack(L_, 6, "JSON text");
        lua_newtable(L_);
        if (is_array) luaL_setmetatable(L_, kArrayMetatable);
        if (!is_array && ordered_) {
            lua_createtable(L_, 0, 1);
            lua_newtable(L_);
            lua_setfield(L_, -2, kKeys);
            lua_setmetatable(L_, -2);
        }
        open_.push_back({is_array, 0});
    }
    void end() {
        open_.pop_back();
        store();
    }
    // A name of the table on top of the stack, unless the table has it.
    void remember(const std::string& name) {
        luaL_checkstack(L_, 6, "JSON text");
        push(L_, std::string_view(name));
        const bool is_new = lua_rawget(L_, -2) == LUA_TNIL;
        lua_pop(L_, 1);
        if (!is_new) return;
        lua_getmetatable(L_, -1);
        lua_getfield(L_, -1, kKeys);
        push(L_, std::string_view(name));
        lua_rawseti(L_, -2, static_cast<lua_Integer>(lua_rawlen(L_, -2)) + 1);
        lua_pop(L_, 2);
    }
    // Moves the value on top of the stack into the table below, or under the key below.
    void store() {
        poll_interrupt();
        if (open_.empty()) return;
        if (open_.back().is_array)
            lua_rawseti(L_, -2, ++open_.back().count);
        else
            lua_rawset(L_, -3);
    }

    lua_State* L_;
    const bool ordered_;
    std::vector<Open> open_;
};

class Encoder {
  public:
    Encoder(lua_State* L, int indent, bool allow_nan) : L_(L), indent_(indent), allow_nan_(allow_nan) {}

    std::string encode(int index) {
        value(index, 0);
        return std::move(out_);
    }

  private:
    void value(int index, int depth) {
        poll_interrupt();
        switch (lua_type(L_, index)) {
            case LUA_TNIL:
                out_ += "null";
                return;
            case LUA_TBOOLEAN:
                out_ += lua_toboolean(L_, index) ? "true" : "false";
                return;
            case LUA_TNUMBER:
                if (lua_isinteger(L_, index))
                    out_ += std::to_string(lua_tointeger(L_, index));
                else
                    number(lua_tonumber(L_, index));
                return;
            case LUA_TSTRING: {
                size_t size = 0;
                const char* text = lua_tolstring(L_, index, &size);
                out_ += json_string({text, size});
                return;
            }
            case LUA_TTABLE:
                return table(index, depth);
            default:
                break;
        }
        lua_getfield(L_, LUA_REGISTRYINDEX, kNull);
        const bool is_null = lua_rawequal(L_, -1, index);
        lua_pop(L_, 1);
        if (is_null) {
            out_ += "null";
        } else if (const Tensor* t = tensor_at(L_, index)) {
            if (is_complex(t->dtype())) throw dtype_error("json", "complex numbers cannot be written");
            push_table(L_, *t);
            value(lua_gettop(L_), depth);
            lua_pop(L_, 1);
        } else if (auto dtype = find_dtype(L_, index)) {
            out_ += json_string(name_of(*dtype));
        } else {
            throw value_error("json", str(describe(L_, index), " cannot be written as JSON"));
        }
    }

    void number(double x) {
        if (std::isfinite(x)) {
            out_ += json_number(x);
        } else if (allow_nan_) {
            out_ += std::isnan(x) ? "NaN" : x < 0 ? "-Infinity" : "Infinity";
        } else {
            throw value_error("json", str("JSON has no ", std::isnan(x) ? "nan" : "infinity"))
                .hint("replace it by ms.json.null, or pass {allow_nan = true} for readers that accept NaN");
        }
    }

    void new_line(int depth) {
        if (indent_ < 0) return;
        out_ += '\n';
        out_.append(static_cast<size_t>(indent_ * depth), ' ');
    }

    void table(int index, int depth) {
        if (depth >= kMaxDepth)
            throw value_error("json", str("the table is nested deeper than ", kMaxDepth, " levels"))
                .hint("does it contain itself?");
        luaL_checkstack(L_, 8, "nested table");
        const auto length = static_cast<lua_Integer>(lua_rawlen(L_, index));
        lua_Integer keys = 0;
        bool only_strings = true, only_integers = true;
        lua_pushnil(L_);
        while (lua_next(L_, index)) {
            ++keys;
            only_strings &= lua_type(L_, -2) == LUA_TSTRING;
            only_integers &= lua_isinteger(L_, -2) != 0;
            lua_pop(L_, 1);
        }
        const bool marked = is_marked(index);
        if (only_integers && keys == length && (keys > 0 || marked)) return array(index, length, depth);
        if (only_strings) return object(index, depth);
        throw value_error("json", str("a table has ", keys, " keys, of which ", length,
                                      " count from 1: it is neither an array nor an object"))
            .hint("arrays must have no holes (use ms.json.null), objects only string keys");
    }

    bool is_marked(int index) {
        if (!lua_getmetatable(L_, index)) return false;
        luaL_getmetatable(L_, kArrayMetatable);
        const bool same = lua_rawequal(L_, -1, -2);
        lua_pop(L_, 2);
        return same;
    }

    void array(int index, lua_Integer length, int depth) {
        out_ += '[';
        for (lua_Integer i = 1; i <= length; ++i) {
            if (i > 1) out_ += ',';
            new_line(depth + 1);
            lua_rawgeti(L_, index, i);
            value(lua_gettop(L_), depth + 1);
            lua_pop(L_, 1);
        }
        if (length > 0) new_line(depth);
        out_ += ']';
    }

    // The names in the order that the table knows, if that has all of them.
    bool takes_order(int index, std::vector<std::string>& names) {
        if (!lua_getmetatable(L_, index)) return false;
        std::vector<std::string> known;
        if (lua_getfield(L_, -1, kKeys) == LUA_TTABLE)
            for (lua_Integer i = 1; lua_rawgeti(L_, -1, i) == LUA_TSTRING; ++i, lua_pop(L_, 1)) {
                size_t size = 0;
                const char* text = lua_tolstring(L_, -1, &size);
                known.emplace_back(text, size);
                lua_pushvalue(L_, -1);
                if (lua_rawget(L_, index) == LUA_TNIL) known.pop_back();
                lua_pop(L_, 1);
            }
        else
            lua_pushnil(L_);
        lua_pop(L_, 3);
        if (known.size() != names.size()) return false;
        names = std::move(known);
        return true;
    }

    // Keys in alphabetical order, unless the table knows another one: the same table always gives the same text.
    void object(int index, int depth) {
        std::vector<std::string> names;
        lua_pushnil(L_);
        while (lua_next(L_, index)) {
            lua_pop(L_, 1);
            size_t size = 0;
            const char* text = lua_tolstring(L_, -1, &size);
            names.emplace_back(text, size);
        }
        if (!takes_order(index, names)) std::ranges::sort(names);
        out_ += '{';
        bool first = true;
        for (const std::string& name : names) {
            if (!first) out_ += ',';
            first = false;
            new_line(depth + 1);
            out_ += json_string(name);
            out_ += indent_ < 0 ? ":" : ": ";
            push(L_, std::string_view(name));
            lua_rawget(L_, index);
            value(lua_gettop(L_), depth + 1);
            lua_pop(L_, 1);
        }
        if (!first) new_line(depth);
        out_ += '}';
    }

    lua_State* L_;
    int indent_;
    bool allow_nan_;
    std::string out_;
};

// json.encode(value [, {indent = 2, allow_nan = false}])
int encode(lua_State* L) {
    luaL_checkany(L, 1);
    int indent = -1;
    bool allow_nan = false;
    if (!lua_isnoneornil(L, 2)) {
        luaL_checktype(L, 2, LUA_TTABLE);
        check_options(L, 2, "json.encode", {"indent", "allow_nan"});
        if (push_option(L, 2, "indent")) indent = static_cast<int>(integer_at(L, -1, "json.encode", "indent"));
        if (indent > 16) throw value_error("json.encode", str("indent must be at most 16, got ", indent));
        if (push_option(L, 2, "allow_nan")) allow_nan = lua_toboolean(L, -1);
    }
    push(L, std::string_view(Encoder(L, indent, allow_nan).encode(1)));
    return 1;
}

// json.decode(text [, {ordered = false}])
int decode(lua_State* L) {
    size_t size = 0;
    const char* text = luaL_checklstring(L, 1, &size);
    bool ordered = false;
    if (!lua_isnoneornil(L, 2)) {
        luaL_checktype(L, 2, LUA_TTABLE);
        check_options(L, 2, "json.decode", {"ordered"});
        if (push_option(L, 2, "ordered")) ordered = lua_toboolean(L, -1);
        lua_settop(L, 2);
    }
    TableBuilder builder(L, ordered);
    read_json({text, size}, builder, kMaxDepth);
    return 1;
}

// Marks a table as an array even when it is empty.
int array(lua_State* L) {
    lua_settop(L, 1);
    if (lua_isnil(L, 1)) {
        lua_newtable(L);
        lua_replace(L, 1);
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_setmetatable(L, kArrayMetatable);
    return 1;
}

int null_text(lua_State* L) {
    lua_pushliteral(L, "null");
    return 1;
}

}  // namespace

void bind_json(lua_State* L) {
    luaL_newmetatable(L, kArrayMetatable);
    lua_pop(L, 1);
    lua_newuserdatauv(L, 0, 0);
    lua_newtable(L);
    lua_pushcfunction(L, protect<null_text>);
    lua_setfield(L, -2, "__tostring");
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, kNull);

    lua_newtable(L);
    lua_insert(L, -2);
    lua_setfield(L, -2, "null");
    for (auto [name, function] : {std::pair<const char*, lua_CFunction>{"encode", protect<encode>},
                                  {"decode", protect<decode>},
                                  {"array", protect<array>}}) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    lua_setfield(L, -2, "json");
}

}  // namespace lunaria
