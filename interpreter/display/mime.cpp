#include "interpreter/display/mime.h"

#include <algorithm>

#include "core/base/error.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

// The value at `index` as JSON, by ms.json. Errors are Lua's.
std::string json_text(lua_State* L, int index) {
    index = lua_absindex(L, index);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "lunaria");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "json");
    lua_getfield(L, -1, "encode");
    lua_pushvalue(L, index);
    lua_call(L, 1, 1);
    std::string text = lua_tostring(L, -1);
    lua_pop(L, 3);
    return text;
}

// Fills the bundle at 2 from the value at 1, under lua_pcall: by the value's own __mime, else by lua/lunaria/rich.
int read_mime(lua_State* L) {
    auto& bundle = *static_cast<MimeBundle*>(lua_touserdata(L, 2));
    const bool own = luaL_getmetafield(L, 1, "__mime") != LUA_TNIL;
    if (!own) {
        lua_getglobal(L, "require");
        lua_pushliteral(L, "lunaria.rich");
        lua_call(L, 1, 1);
    }
    lua_pushvalue(L, 1);
    lua_call(L, 1, 2);
    if (!own && lua_isnil(L, -2)) return 0;
    if (!lua_istable(L, -2)) return luaL_error(L, "__mime must return a table of texts by type");
    bundle = mime_table(L, lua_gettop(L) - 1, lua_gettop(L));
    return 0;
}

int protected_read_mime(lua_State* L) {
    try {
        return read_mime(L);
    } catch (const std::exception& e) {
        lua_pushstring(L, e.what());
    }
    return lua_error(L);
}

}  // namespace

const std::string* MimeBundle::find(std::string_view type) const {
    const auto found = std::ranges::find(parts, type, &MimePart::type);
    return found == parts.end() ? nullptr : &found->data;
}

void MimeBundle::set(std::string_view type, std::string data) {
    const auto found = std::ranges::find(parts, type, &MimePart::type);
    if (found != parts.end())
        found->data = std::move(data);
    else
        parts.push_back({std::string(type), std::move(data)});
}

bool is_binary_type(std::string_view type) {
    if (type == "image/svg+xml") return false;
    return type.starts_with("image/") || type.starts_with("audio/") || type.starts_with("video/") ||
           type == "application/pdf" || type == "application/octet-stream";
}

bool is_json_type(std::string_view type) { return type == "application/json" || type.ends_with("+json"); }

MimeBundle mime_table(lua_State* L, int index, int metadata) {
    index = lua_absindex(L, index);
    if (!lua_istable(L, index))
        throw argument_error("display", str("a table of texts by type was expected, got ", describe(L, index)));
    MimeBundle bundle;
    if (!lua_isnoneornil(L, metadata)) bundle.metadata = json_text(L, metadata);
    luaL_checkstack(L, 8, "display");
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            throw argument_error("display", str("the key of a format must be its type, such as \"text/html\", got ",
                                                describe(L, lua_gettop(L) - 1)));
        const std::string type = lua_tostring(L, -2);
        if (is_json_type(type) && lua_type(L, -1) != LUA_TSTRING) {
            bundle.set(type, json_text(L, -1));
            continue;
        }
        if (lua_type(L, -1) != LUA_TSTRING)
            throw argument_error("display", str(type, " must be a string, got ", describe(L, lua_gettop(L))));
        size_t size = 0;
        const char* data = lua_tolstring(L, -1, &size);
        bundle.set(type, {data, size});
    }
    std::ranges::sort(bundle.parts, {}, &MimePart::type);
    return bundle;
}

MimeBundle mime_bundle(lua_State* L, int index, const PrettyOptions& options) {
    index = lua_absindex(L, index);
    MimeBundle bundle;
    std::string failure;
    // Numbers, strings and functions have no other form than text.
    if (lua_istable(L, index) || lua_isuserdata(L, index)) {
        lua_pushcfunction(L, protected_read_mime);
        lua_pushvalue(L, index);
        lua_pushlightuserdata(L, &bundle);
        if (lua_pcall(L, 2, 0, 0) != LUA_OK) {
            const char* text = lua_tostring(L, -1);
            failure = str("\n(__mime failed: ", text ? text : "error without a message", ")");
            lua_pop(L, 1);
            bundle = {};
        }
    }
    if (!bundle.find("text/plain")) bundle.set("text/plain", pretty(L, index, options) + failure);
    return bundle;
}

}  // namespace lunaria
