#include "interpreter/debugger/debugger_variables.h"

#include <algorithm>

#include "core/tensor/tensor_text.h"
#include "interpreter/display/pretty.h"
#include "interpreter/loader/prologue.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

constexpr size_t kMostText = 300, kMostParts = 2000;

bool is_name(const std::string& text) {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    return !text.empty() && is_letter(text[0]) &&
           std::all_of(text.begin(), text.end(), [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

std::string on_one_line(const std::string& text) {
    std::string line;
    for (char c : text) {
        const bool space = c == ' ' || c == '\n' || c == '\t';
        if (!space)
            line += c;
        else if (!line.empty() && line.back() != ' ')
            line += ' ';
    }
    if (line.size() > kMostText) line = line.substr(0, kMostText) + "...";
    return line;
}

std::string shape_text(const Tensor& t) {
    std::string text;
    for (int64_t n : t.shape()) text += str(text.empty() ? "" : ", ", n);
    return "[" + text + "]";
}

std::string type_text(lua_State* T, int index) {
    // Front ends with little room show the type alone.
    if (const Tensor* t = tensor_at(T, index))
        return str("Tensor ", t->rank() == 0 ? elements_text(*t, {}) : shape_text(*t), " ", dtype_text(t->dtype()));
    const bool named = luaL_getmetafield(T, index, "__name") != LUA_TNIL;
    if (named) lua_pop(T, 1);
    if (lua_istable(T, index) && !named) {
        size_t count = 0;
        for (lua_pushnil(T); lua_next(T, index < 0 ? index - 1 : index); lua_pop(T, 1)) ++count;
        return str("table (", count, ")");
    }
    std::string type = luaL_typename(T, index);
    if (lua_type(T, index) == LUA_TNUMBER) return lua_isinteger(T, index) ? "integer" : "float";
    if (luaL_getmetafield(T, index, "__name") != LUA_TNIL) {
        if (lua_type(T, -1) == LUA_TSTRING) type = lua_tostring(T, -1);
        lua_pop(T, 1);
    }
    return type;
}

// A key in the form after a table, and by itself.
std::pair<std::string, std::string> key_texts(lua_State* T, int index) {
    if (lua_type(T, index) == LUA_TSTRING && is_name(lua_tostring(T, index))) {
        const std::string name = lua_tostring(T, index);
        return {"." + name, name};
    }
    const bool plain =
        lua_type(T, index) == LUA_TSTRING || lua_type(T, index) == LUA_TNUMBER || lua_type(T, index) == LUA_TBOOLEAN;
    const std::string text = on_one_line(pretty(T, index));
    return {plain ? "[" + text + "]" : "", "[" + text + "]"};
}

}  // namespace

std::string value_line(lua_State* T, int index) {
    if (const Tensor* t = tensor_at(T, index)) {
        PrintOptions options;
        options.threshold = 24;
        options.edge_items = 2;
        return on_one_line(
            str("Tensor(shape=", shape_text(*t), ", dtype=", dtype_text(t->dtype()), ") ", elements_text(*t, options)));
    }
    PrettyOptions options;
    options.depth = 2;
    options.entries = 10;
    options.total = 30;
    options.text = kMostText;
    return on_one_line(pretty(T, index, options));
}

DebugVariables::DebugVariables(State& state) : state_(state) {
    guarded([&](lua_State* T) {
        lua_newtable(T);
        values_ = luaL_ref(T, LUA_REGISTRYINDEX);
        lua_pushglobaltable(T);
        for (lua_pushnil(T); lua_next(T, -2); lua_pop(T, 1))
            if (lua_type(T, -2) == LUA_TSTRING) before_.insert(lua_tostring(T, -2));
    });
}

DebugVariables::~DebugVariables() { luaL_unref(state_.lua(), LUA_REGISTRYINDEX, values_); }

void DebugVariables::guarded(const std::function<void(lua_State*)>& body) {
    std::string problem;
    if (!state_.debugger().guarded(body, problem)) throw state_error("", problem);
}

void DebugVariables::clear() {
    references_.clear();
    guarded([&](lua_State* T) {
        lua_newtable(T);
        lua_rawseti(T, LUA_REGISTRYINDEX, values_);
    });
}

const DebugVariables::Reference& DebugVariables::at(int reference) const {
    if (reference < 1 || static_cast<size_t>(reference) > references_.size())
        throw argument_error("variables", str("there is nothing with the number ", reference));
    return references_[static_cast<size_t>(reference) - 1];
}

std::vector<std::string> DebugVariables::global_names(lua_State* T) {
    std::vector<std::string> names;
    lua_pushglobaltable(T);
    for (lua_pushnil(T); lua_next(T, -2); lua_pop(T, 1)) {
        if (lua_type(T, -2) != LUA_TSTRING) continue;
        std::string name = lua_tostring(T, -2);
        if (!before_.contains(name) && name != "_") names.push_back(std::move(name));
    }
    lua_pop(T, 1);
    std::sort(names.begin(), names.end());
    return names;
}

std::vector<DebugVariables::Scope> DebugVariables::scopes(size_t frame) {
    std::vector<Scope> list;
    guarded([&](lua_State* T) {
        const DebugStack& stack = state_.debugger().stack();
        if (frame >= stack.frames().size()) throw argument_error("scopes", str("there is no frame ", frame));
        auto add = [&](const char* name, Kind kind, size_t count) {
            references_.push_back({kind, frame, "", 0});
            list.push_back({name, static_cast<int>(references_.size()), count});
        };
        const size_t own = stack.variables(T, frame, VariableKind::local).size() +
                           stack.variables(T, frame, VariableKind::vararg).size();
        const size_t outer = stack.variables(T, frame, VariableKind::upvalue).size();
        add("Locals", Kind::locals, own);
        if (outer > 0) add("Upvalues", Kind::upvalues, outer);
        add("Globals", Kind::globals, global_names(T).size());
    });
    return list;
}

ShownValue DebugVariables::shown(lua_State* T, std::string name, std::string evaluate, size_t frame) {
    ShownValue v;
    v.name = std::move(name);
    v.value = value_line(T, -1);
    v.type = type_text(T, -1);
    v.evaluate = evaluate;
    if (const Tensor* t = tensor_at(T, -1)) {
        v.named = 2;
        v.indexed = t->shape().size() > 0 ? static_cast<size_t>(t->shape()[0]) : 0;
    } else if (lua_istable(T, -1)) {
        v.indexed = lua_rawlen(T, -1);
        for (lua_pushnil(T); lua_next(T, -2); lua_pop(T, 1)) ++v.named;
        v.named -= std::min(v.named, v.indexed);
        if (lua_getmetatable(T, -1)) {
            ++v.named;
            lua_pop(T, 1);
        }
    } else if (lua_isfunction(T, -1)) {
        for (int i = 1; get_upvalue(T, -1, i); ++i) {
            ++v.named;
            lua_pop(T, 1);
        }
    }
    if (v.named + v.indexed == 0) return v;
    lua_rawgeti(T, LUA_REGISTRYINDEX, values_);
    lua_pushvalue(T, -2);
    references_.push_back({Kind::value, frame, std::move(evaluate), luaL_ref(T, -2)});
    lua_pop(T, 1);
    v.reference = static_cast<int>(references_.size());
    return v;
}

void DebugVariables::push_kept(lua_State* T, const Reference& r) {
    lua_rawgeti(T, LUA_REGISTRYINDEX, values_);
    lua_rawgeti(T, -1, r.slot);
    lua_remove(T, -2);
}

void DebugVariables::for_each_part(lua_State* T, const Reference& r, const std::string& filter, const Visit& visit) {
    const DebugStack& stack = state_.debugger().stack();
    auto variables = [&](VariableKind kind) {
        for (const StackVariable& v : stack.variables(T, r.frame, kind)) {
            stack.push(T, r.frame, v);
            const bool more = visit(v.name, kind == VariableKind::vararg ? "" : v.name);
            lua_pop(T, 1);
            if (!more) return;
        }
    };
    luaL_checkstack(T, 20, "variables");
    if (r.kind != Kind::value && filter == "indexed") return;
    switch (r.kind) {
        case Kind::locals:
            variables(VariableKind::local);
            return variables(VariableKind::vararg);
        case Kind::upvalues:
            return variables(VariableKind::upvalue);
        case Kind::globals:
            for (const std::string& name : global_names(T)) {
                lua_pushglobaltable(T);
                lua_pushstring(T, name.c_str());
                lua_rawget(T, -2);
                const bool more = visit(name, is_name(name) ? name : "");
                lua_pop(T, 2);
                if (!more) return;
            }
            return;
        case Kind::value:
            push_kept(T, r);
            for_each_field(T, r.evaluate, filter, visit);
            lua_pop(T, 1);
    }
}

// For the value on top of the stack, which stays.
void DebugVariables::for_each_field(lua_State* T, const std::string& path, const std::string& filter,
                                    const Visit& visit) {
    const int object = lua_gettop(T);
    auto inner = [&](const std::string& key) { return path.empty() || key.empty() ? std::string() : path + key; };
    auto give = [&](const std::string& name, const std::string& evaluate) {
        const bool more = visit(name, evaluate);
        lua_settop(T, object);
        return more;
    };
    if (const Tensor* t = tensor_at(T, object)) {
        const auto size = t->shape().size() > 0 ? t->shape()[0] : 0;
        for (int64_t i = 0; filter != "named" && i < size; ++i) {
            lua_pushinteger(T, i);
            lua_gettable(T, object);
            if (!give(str("[", i, "]"), inner(str("[", i, "]")))) return;
        }
        for (const char* name : {"shape", "dtype"}) {
            if (filter == "indexed") return;
            lua_getfield(T, object, name);
            if (!give(name, inner(str(".", name)))) return;
        }
        return;
    }
    if (lua_isfunction(T, object)) {
        for (int i = 1; filter != "indexed"; ++i) {
            const char* name = get_upvalue(T, object, i);
            if (!name || !give(*name ? name : str("(upvalue ", i, ")"), "")) return;
        }
        return;
    }
    if (!lua_istable(T, object)) return;
    const auto length = static_cast<lua_Integer>(lua_rawlen(T, object));
    for (lua_Integer i = 1; filter != "named" && i <= length; ++i) {
        lua_rawgeti(T, object, i);
        if (!give(str("[", i, "]"), inner(str("[", i, "]")))) return;
    }
    if (filter == "indexed") return;
    // In the order of their names, since a table has no order.
    lua_newtable(T);
    std::vector<std::pair<std::string, std::string>> keys;
    std::vector<lua_Integer> order;
    for (lua_pushnil(T); lua_next(T, object); lua_pop(T, 1)) {
        if (lua_isinteger(T, -2) && lua_tointeger(T, -2) >= 1 && lua_tointeger(T, -2) <= length) continue;
        keys.push_back(key_texts(T, lua_gettop(T) - 1));
        order.push_back(static_cast<lua_Integer>(keys.size()));
        lua_pushvalue(T, -2);
        lua_rawseti(T, object + 1, order.back());
    }
    std::sort(order.begin(), order.end(), [&](lua_Integer a, lua_Integer b) {
        return keys[static_cast<size_t>(a) - 1].second < keys[static_cast<size_t>(b) - 1].second;
    });
    for (lua_Integer i : order) {
        lua_rawgeti(T, object + 1, i);
        lua_rawget(T, object);
        const auto& [suffix, name] = keys[static_cast<size_t>(i) - 1];
        const bool more = visit(name, inner(suffix));
        lua_settop(T, object + 1);
        if (!more) return lua_settop(T, object);
    }
    lua_settop(T, object);
    if (lua_getmetatable(T, object)) give("(metatable)", "");
}

std::vector<ShownValue> DebugVariables::parts(int reference, const std::string& filter, size_t start, size_t count) {
    const Reference r = at(reference);
    std::vector<ShownValue> list;
    const size_t most = count > 0 ? std::min(count, kMostParts) : kMostParts;
    guarded([&](lua_State* T) {
        size_t number = 0;
        for_each_part(T, r, filter, [&](const std::string& name, const std::string& evaluate) {
            if (number++ >= start) list.push_back(shown(T, name, evaluate, r.frame));
            return list.size() < most;
        });
    });
    return list;
}

std::vector<ShownValue> DebugVariables::globals() {
    references_.push_back({Kind::globals, npos, "", 0});
    return parts(static_cast<int>(references_.size()));
}

ShownValue DebugVariables::evaluate(size_t frame, const std::string& code) {
    ShownValue result;
    guarded([&](lua_State* T) {
        const int count = state_.debugger().evaluate(T, frame, code);
        for (int i = 2; i <= count; ++i) result.value += ", " + value_line(T, i);
        lua_settop(T, 1);
        const std::string rest = result.value;
        if (count == 0) return;
        result = shown(T, "", code, frame);
        result.value += rest;
    });
    return result;
}

ShownValue DebugVariables::set(int reference, const std::string& name, const std::string& code) {
    const Reference r = at(reference);
    ShownValue result;
    guarded([&](lua_State* T) {
        lua_settop(T, 0);
        if (state_.debugger().evaluate(T, r.frame, code) < 1) lua_pushnil(T);
        lua_settop(T, 1);
        const DebugStack& stack = state_.debugger().stack();
        if (r.kind == Kind::globals) {
            lua_pushglobaltable(T);
            lua_pushvalue(T, 1);
            lua_setfield(T, -2, name.c_str());
        } else if (r.kind == Kind::value) {
            push_kept(T, r);
            bool found = false;
            const int object = lua_gettop(T);
            if (tensor_at(T, object) || lua_istable(T, object)) {
                // The key is given by the name: [1], ["a b"], a name.
                const bool bracket = name.starts_with('[') && name.ends_with(']');
                if (bracket)
                    found = state_.debugger().evaluate(T, npos, name.substr(1, name.size() - 2)) > 0;
                else
                    lua_pushstring(T, name.c_str());
                found |= !bracket;
            }
            if (!found || lua_isnil(T, -1)) throw argument_error("setVariable", str("'", name, "' cannot be changed"));
            lua_settop(T, object + 1);
            lua_pushvalue(T, 1);
            lua_settable(T, object);
        } else {
            const VariableKind kind = r.kind == Kind::upvalues ? VariableKind::upvalue : VariableKind::local;
            auto all = stack.variables(T, r.frame, kind);
            if (r.kind == Kind::locals)
                for (const StackVariable& v : stack.variables(T, r.frame, VariableKind::vararg)) all.push_back(v);
            const auto found = std::find_if(all.begin(), all.end(), [&](const auto& v) { return v.name == name; });
            if (found == all.end()) throw argument_error("setVariable", str("there is no variable '", name, "'"));
            lua_pushvalue(T, 1);
            stack.assign(T, r.frame, *found);
        }
        lua_settop(T, 1);
        result = shown(T, name, "", r.frame);
    });
    return result;
}

void DebugVariables::copy_to_globals(size_t frame, const std::string& code, const std::string& name) {
    guarded([&](lua_State* T) {
        if (state_.debugger().evaluate(T, frame, code) < 1) lua_pushnil(T);
        lua_settop(T, 1);
        lua_setglobal(T, name.c_str());
    });
}

MimeBundle DebugVariables::rich(size_t frame, const std::string& code) {
    MimeBundle bundle;
    guarded([&](lua_State* T) {
        if (state_.debugger().evaluate(T, frame, code) < 1) lua_pushnil(T);
        lua_settop(T, 1);
        bundle = mime_bundle(T, 1);
    });
    return bundle;
}

}  // namespace lunaria
