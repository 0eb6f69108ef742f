// ms.load_gguf and ms.save_gguf.
#include <algorithm>

#include "core/io/gguf.h"
#include "core/operator/op.h"
#include "core/tensor/device.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

constexpr const char* kLoad = "load_gguf";
constexpr const char* kSave = "save_gguf";

std::string gguf_text(lua_State* L, int index) {
    size_t size = 0;
    const char* text = lua_tolstring(L, index, &size);
    return {text, size};
}

bool flag(lua_State* L, int options, const char* name, bool otherwise) {
    if (!lua_istable(L, options) || !push_option(L, options, name)) return otherwise;
    if (!lua_isboolean(L, -1)) throw argument_error(kLoad, str(name, " must be true or false, got ", describe(L, -1)));
    const bool value = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return value;
}

std::vector<const GgufFile::Entry*> wanted(lua_State* L, int options, const GgufFile& file) {
    std::vector<const GgufFile::Entry*> entries;
    if (!lua_istable(L, options) || !push_option(L, options, "names")) {
        for (const GgufFile::Entry& entry : file.entries()) entries.push_back(&entry);
        return entries;
    }
    if (!lua_istable(L, -1)) throw argument_error(kLoad, str("names must be a list, got ", describe(L, -1)));
    for (lua_Integer i = 1; lua_geti(L, -1, i) != LUA_TNIL; ++i) {
        if (lua_type(L, -1) != LUA_TSTRING)
            throw argument_error(kLoad, str("names must be a list of strings, it has ", describe(L, -1)));
        entries.push_back(&file.entry(gguf_text(L, -1)));
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
    return entries;
}

// The numbers of blocks.
Tensor decoded(const GgufFile::Entry& entry, const Tensor& blocks) {
    const PlaceScope host(nullptr);
    return run(registry().get("dequantize_blocks"), {Value(blocks), Value(entry.form->name)}).tensor();
}

void push_value(lua_State* L, const GgufValue& value) {
    if (!value.is_array) return value.each([L](const Value& x) { push(L, x); });
    lua_createtable(L, static_cast<int>(std::min<uint64_t>(value.count, 1 << 20)), 0);
    lua_Integer i = 0;
    value.each([&](const Value& x) {
        push(L, x);
        lua_rawseti(L, -2, ++i);
    });
}

}  // namespace

// load_gguf(path [, options]): tensors, metadata and forms by name.
int load_gguf(lua_State* L) {
    const std::string path = path_at(L, 1, kLoad);
    if (!lua_isnoneornil(L, 2)) check_options(L, 2, kLoad, {"names", "mmap", "float"});
    const bool mapped = flag(L, 2, "mmap", true), as_floats = flag(L, 2, "float", false);
    const GgufFile file(path, mapped ? GgufFile::Contents::mapped : GgufFile::Contents::read);
    const auto entries = wanted(L, 2, file);
    lua_createtable(L, 0, static_cast<int>(entries.size()));
    for (const GgufFile::Entry* entry : entries) {
        push(L, std::string_view(entry->name));
        const Tensor tensor = file.read(*entry);
        push(L, Value((entry->form && as_floats ? decoded(*entry, tensor) : tensor).to(current_place())));
        lua_rawset(L, -3);
    }
    lua_createtable(L, 0, static_cast<int>(file.metadata().size()));
    for (const auto& [key, value] : file.metadata()) {
        push(L, std::string_view(key));
        push_value(L, value);
        lua_rawset(L, -3);
    }
    lua_newtable(L);
    if (as_floats) return 3;
    for (const GgufFile::Entry* entry : entries) {
        if (!entry->form) continue;
        push(L, std::string_view(entry->name));
        push(L, entry->form->name);
        lua_rawset(L, -3);
    }
    return 3;
}

namespace {

// The plain value at the top of the stack, for the metadata under `key`.
Value plain_value(lua_State* L, const std::string& key) {
    switch (lua_type(L, -1)) {
        case LUA_TBOOLEAN:
            return Value(static_cast<bool>(lua_toboolean(L, -1)));
        case LUA_TNUMBER:
            return lua_isinteger(L, -1) ? Value(static_cast<int64_t>(lua_tointeger(L, -1)))
                                        : Value(static_cast<double>(lua_tonumber(L, -1)));
        case LUA_TSTRING:
            return Value(std::string_view(gguf_text(L, -1)));
        default:
            throw argument_error(
                kSave, str("metadata '", key, "' must be a text, a number, a boolean or a list of one of these, got ",
                           describe(L, -1)));
    }
}

// The list at the top of the stack.
GgufValue list_value(lua_State* L, const std::string& key) {
    using Type = GgufValue::Type;
    std::vector<Value> items;
    for (lua_Integer i = 1; lua_geti(L, -1, i) != LUA_TNIL; ++i) {
        items.push_back(plain_value(L, key));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    Type type = Type::i32;
    for (const Value& x : items) {
        if (x.is_number() != items[0].is_number() || (!x.is_number() && x.kind() != items[0].kind()))
            throw argument_error(kSave, str("the list of metadata '", key, "' has items of several types"));
        if (x.kind() == Value::Kind::string)
            type = Type::string;
        else if (x.kind() == Value::Kind::boolean)
            type = Type::boolean;
        else if (x.kind() == Value::Kind::number)
            type = Type::f32;
        else if (type == Type::i32 && x.integer() != static_cast<int32_t>(x.integer()))
            type = Type::i64;
    }
    GgufValue value = GgufValue::array(type);
    for (const Value& x : items) value.append(x);
    return value;
}

GgufMetadata metadata_option(lua_State* L, int options) {
    GgufMetadata metadata;
    if (!lua_istable(L, options) || !push_option(L, options, "metadata")) return metadata;
    if (!lua_istable(L, -1)) throw argument_error(kSave, str("metadata must be a table, got ", describe(L, -1)));
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        if (lua_type(L, -2) != LUA_TSTRING) throw argument_error(kSave, "the names of metadata must be strings");
        const std::string key = gguf_text(L, -2);
        if (lua_istable(L, -1)) {
            metadata.emplace_back(key, list_value(L, key));
        } else {
            const Value x = plain_value(L, key);
            metadata.emplace_back(key, x.kind() == Value::Kind::boolean   ? GgufValue::of(x.boolean())
                                       : x.kind() == Value::Kind::integer ? GgufValue::of(x.integer())
                                       : x.kind() == Value::Kind::number  ? GgufValue::of(x.number())
                                                                         : GgufValue::of(std::string_view(x.string())));
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    std::sort(metadata.begin(), metadata.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return metadata;
}

// The form that the table `forms` at the top of the stack gives a tensor.
const BlockForm* form_of(lua_State* L, const std::string& name) {
    lua_pushlstring(L, name.data(), name.size());
    lua_rawget(L, -2);
    const BlockForm* form = nullptr;
    if (!lua_isnil(L, -1)) {
        if (lua_type(L, -1) == LUA_TSTRING) form = find_block_form(gguf_text(L, -1));
        if (!form)
            throw argument_error(
                kSave,
                str("forms['", name, "'] must be \"q8_0\", \"q4_0\", \"q4_k\" or \"q6_k\", got ", describe(L, -1)));
    }
    lua_pop(L, 1);
    return form;
}

// save_gguf(path, tensors [, options])
int save_gguf(lua_State* L) {
    const std::string path = path_at(L, 1, kSave);
    if (!lua_istable(L, 2))
        throw argument_error(kSave, str("a table of tensors by name is expected, got ", describe(L, 2)));
    if (!lua_isnoneornil(L, 3)) check_options(L, 3, kSave, {"metadata", "forms"});
    const GgufMetadata metadata = metadata_option(L, 3);
    std::vector<GgufTensor> tensors;
    lua_pushnil(L);
    while (lua_next(L, 2)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            throw argument_error(kSave, str("a tensor's name must be a string, got ", describe(L, -2)));
        const Tensor* tensor = tensor_at(L, -1);
        if (!tensor)
            throw argument_error(
                kSave, str("the value under '", gguf_text(L, -2), "' must be a tensor, got ", describe(L, -1)));
        tensors.push_back({gguf_text(L, -2), *tensor});
        lua_pop(L, 1);
    }
    std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    if (lua_istable(L, 3) && push_option(L, 3, "forms")) {
        if (!lua_istable(L, -1)) throw argument_error(kSave, str("forms must be a table, got ", describe(L, -1)));
        for (GgufTensor& t : tensors) t.form = form_of(L, t.name);
        lua_pop(L, 1);
    }
    write_gguf(path, tensors, metadata);
    return 0;
}

}  // namespace

void bind_gguf(lua_State* L) {
    lua_pushcfunction(L, protect<load_gguf>);
    lua_setfield(L, -2, "load_gguf");
    lua_pushcfunction(L, protect<save_gguf>);
    lua_setfield(L, -2, "save_gguf");
}

}  // namespace lunaria
