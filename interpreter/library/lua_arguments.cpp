#include "interpreter/library/lua_arguments.h"

#include <cmath>
#include <string>

#include "interpreter/library/library_functions.h"
#include "interpreter/values/lua_reference.h"
#include "jit/frontend/literals.h"

namespace lunaria {

namespace {

bool is_whole(double x) { return std::trunc(x) == x && std::abs(x) < 0x1p63; }
bool is_whole(const std::optional<lua::NumberValue>& x) {
    return x && (std::holds_alternative<int64_t>(*x) || is_whole(std::get<double>(*x)));
}

// Whether the value may be of this Lua type; a value that is still unknown may be of any.
bool is(const Value& v, char kind) {
    const auto* reference = v.kind() == Value::Kind::object ? dynamic_cast<const LuaReference*>(v.object()) : nullptr;
    const bool known = v.kind() != Value::Kind::object || reference;
    const auto refers_to = [&](int type) { return reference ? reference->type == type : !known; };
    switch (kind) {
        case 'N':
            return v.is_number() || v.is_tensor() || !known;
        case 'I':
            return v.kind() == Value::Kind::number ? is_whole(v.number()) : is(v, 'N');
        case 'L':
            return v.kind() == Value::Kind::string ? is_whole(lua::read_number(v.string())) : is(v, 'I');
        case '#':
            return v.kind() == Value::Kind::string ? v.string() == "#" : is(v, 'I');
        case 'S':
            return v.kind() == Value::Kind::string || !known;
        case 'X':
            return v.is_tensor() || refers_to(LUA_TTABLE);
        case 'T':
            return refers_to(LUA_TTABLE);
        case 'F':
            return refers_to(LUA_TFUNCTION);
        default:
            return true;
    }
}

}  // namespace

void LuaArguments::note_library(lua_State* L) {
    for_each_library_function([&](const LibraryFunction& row, std::string_view name) {
        if (row.arguments.empty()) return;
        push_library_function(L, row, name);
        if (lua_CFunction f = lua_tocfunction(L, -1)) kinds_.emplace(f, row.arguments);
        lua_pop(L, 1);
    });
}

void LuaArguments::note(lua_State* L, lua_CFunction f, std::string_view kinds) {
    if (kinds_.empty()) note_library(L);
    kinds_[f] = kinds;
}

std::string_view LuaArguments::of(lua_State* L, lua_CFunction f) {
    if (kinds_.empty()) note_library(L);
    auto found = kinds_.find(f);
    return found == kinds_.end() ? std::string_view() : found->second;
}

bool LuaArguments::fit(std::string_view kinds, std::span<const Value> args) {
    char kind = 0;
    for (size_t at = 0, k = 0;; ++at) {
        const bool more = k < kinds.size() && kinds[k] == '*';
        if (!more) {
            if (k == kinds.size()) return true;
            kind = kinds[k++];
        } else if (at >= args.size()) {
            return true;
        }
        const bool optional = (kind >= 'a' && kind <= 'z') || kind == '-';
        if (at >= args.size() || (args[at].is_nil() && kind != 'A')) {
            if (optional) continue;
            return false;
        }
        if (kind == '-') return false;
        if (!is(args[at], optional ? static_cast<char>(kind - 'a' + 'A') : kind)) return false;
    }
}

}  // namespace lunaria
