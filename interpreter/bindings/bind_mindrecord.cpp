// Functions behind lunaria/mindrecord/: writers of MindRecord files, and the contents of their headers.
#include <algorithm>

#include "core/base/error.h"
#include "core/data/files/mindrecord_secret.h"
#include "core/data/files/mindrecord_writer.h"
#include "core/tensor/element.h"
#include "interpreter/bindings/draft.h"
#include "interpreter/protect.h"
#include "interpreter/values/table_tensor.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

using namespace data;

namespace {

constexpr const char* kWriter = "lunaria.data.mindrecord_writer";
using WriterPtr = std::unique_ptr<MindrecordWriter>;

MindrecordWriter& writer_at(lua_State* L, int index) { return *handle_at<WriterPtr>(L, index, kWriter); }

// A list of { name, type, shape }, in which the shape may be missing.
std::vector<MindrecordField> fields_at(lua_State* L, int index) {
    luaL_checktype(L, index, LUA_TTABLE);
    std::vector<MindrecordField> fields;
    for (lua_Integer i = 1; lua_geti(L, index, i) != LUA_TNIL; ++i) {
        const int entry = lua_gettop(L);
        MindrecordField field;
        lua_geti(L, entry, 1);
        field.name = text_at(L, -1);
        lua_geti(L, entry, 2);
        const std::string type = text_at(L, -1);
        if (type == "string")
            field.is_text = true;
        else if (type == "int32" || type == "int64")
            field.dtype = type == "int32" ? DType::i32 : DType::i64;
        else if (type == "float32" || type == "float64")
            field.dtype = type == "float32" ? DType::f32 : DType::f64;
        else if (type != "bytes")
            throw argument_error("add_schema", str("field '", field.name, "' has the unknown type '", type, "'"))
                .hint("types are bytes, string, int32, int64, float32 and float64");
        if (lua_geti(L, entry, 3) != LUA_TNIL) {
            field.is_array = true;
            field.shape = integers_at(L, -1, "add_schema", "shape");
        }
        fields.push_back(std::move(field));
        lua_settop(L, entry - 1);
    }
    lua_pop(L, 1);
    return mindrecord_fields("add_schema", std::move(fields));
}

// Only checks: mindrecord_check(fields).
int check_fields(lua_State* L) {
    fields_at(L, 1);
    return 0;
}

// mindrecord_writer(paths, description, fields, index, header_size, page_size)
int make_writer(lua_State* L) {
    MindrecordWriter::Options options;
    options.paths = names_at(L, 1);
    options.description = text_at(L, 2);
    options.fields = fields_at(L, 3);
    options.index = names_at(L, 4);
    options.header_size = static_cast<uint64_t>(least_at(L, 5, kLeastHeader));
    options.page_size = static_cast<uint64_t>(least_at(L, 6, kLeastPage));
    push_handle(L, std::make_unique<MindrecordWriter>(options), kWriter);
    return 1;
}

int make_appender(lua_State* L) {
    push_handle(L, std::make_unique<MindrecordWriter>(path_at(L, 1, "open_for_append")), kWriter);
    return 1;
}

Value integer_or_number(lua_State* L, int index) {
    if (lua_isinteger(L, index)) return Value(static_cast<int64_t>(lua_tointeger(L, index)));
    return Value(static_cast<double>(lua_tonumber(L, index)));
}

Value field_value(lua_State* L, int index, const MindrecordField& field, const std::string& where) {
    const auto wrong = [&](std::string_view wanted) {
        throw argument_error("write_raw_data", str(where, " must be ", wanted, ", got ", describe(L, index)));
    };
    const Tensor* tensor = tensor_at(L, index);
    if (field.blob >= 0) {
        if (tensor) return tensor->device() ? tensor->to_host() : tensor->view(tensor->shape(), tensor->strides());
        if (lua_type(L, index) == LUA_TSTRING && field.is_bytes()) return Value(text_at(L, index));
        if (lua_type(L, index) != LUA_TTABLE) wrong(field.is_bytes() ? "a string of bytes" : "a tensor or a table");
        return tensor_from(L, index, field.dtype, "write_raw_data").to_host();
    }
    if (tensor && tensor->size() == 1 && !field.is_text)
        return is_float(tensor->dtype()) ? Value(tensor->at(0)) : element(*tensor, 0);
    if (field.is_text) {
        if (lua_type(L, index) != LUA_TSTRING) wrong("a string");
        return Value(text_at(L, index));
    }
    if (lua_type(L, index) != LUA_TNUMBER) wrong(is_float(field.dtype) ? "a number" : "an integer");
    return integer_or_number(L, index);
}

// A row from the table at `index`, which must have a value for each field and no others.
Row row_at(lua_State* L, int index, const std::vector<MindrecordField>& fields, lua_Integer number) {
    const auto place = [&] { return str("raw_data[", number, "]"); };
    if (lua_type(L, index) != LUA_TTABLE)
        throw argument_error("write_raw_data", str(place(), " must be a table of fields, got ", describe(L, index)));
    Row row;
    for (const MindrecordField& field : fields) {
        if (lua_getfield(L, index, field.name.c_str()) == LUA_TNIL)
            throw argument_error("write_raw_data", str(place(), " has no field '", field.name, "'"));
        row.push_back(field_value(L, lua_gettop(L), field, place() + "." + field.name));
        lua_pop(L, 1);
    }
    lua_pushnil(L);
    while (lua_next(L, index)) {
        lua_pop(L, 1);
        const bool known = lua_type(L, -1) == LUA_TSTRING &&
                           std::any_of(fields.begin(), fields.end(),
                                       [&](const MindrecordField& f) { return f.name == lua_tostring(L, -1); });
        if (!known)
            throw argument_error("write_raw_data",
                                 str(place(), " has ", describe(L, -1), " as a field, which the schema does not have"));
    }
    return row;
}

// mindrecord_write(writer, rows)
int write_rows(lua_State* L) {
    MindrecordWriter& writer = writer_at(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    std::vector<Row> rows;
    for (lua_Integer i = 1; lua_geti(L, 2, i) != LUA_TNIL; ++i) {
        rows.push_back(row_at(L, lua_gettop(L), writer.fields(), i));
        lua_pop(L, 1);
    }
    writer.write(rows, lua_isnoneornil(L, 3) || lua_toboolean(L, 3));
    return 0;
}

int commit(lua_State* L) {
    lua_pushinteger(L, writer_at(L, 1).commit());
    return 1;
}

void push_names(lua_State* L, const std::vector<std::string>& names) {
    lua_createtable(L, static_cast<int>(names.size()), 0);
    for (size_t i = 0; i < names.size(); ++i) {
        push(L, std::string_view(names[i]));
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
}

// mindrecord_header(path): { schema, index, description, header_size, page_size, siblings }
int read_header(lua_State* L) {
    const MindrecordHeader header = MindrecordHeader::read(*open_source(path_at(L, 1, "mindrecord")));
    lua_newtable(L);
    lua_newtable(L);
    for (const MindrecordField& field : header.fields) {
        lua_newtable(L);
        lua_pushstring(L, field.type_name());
        lua_setfield(L, -2, "type");
        if (field.is_array) {
            lua_newtable(L);
            for (size_t i = 0; i < field.shape.size(); ++i) {
                lua_pushinteger(L, field.shape[i]);
                lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
            }
            lua_setfield(L, -2, "shape");
        }
        lua_setfield(L, -2, field.name.c_str());
    }
    lua_setfield(L, -2, "schema");
    push_names(L, header.index);
    lua_setfield(L, -2, "index");
    push_names(L, header.siblings);
    lua_setfield(L, -2, "siblings");
    push(L, std::string_view(header.description));
    lua_setfield(L, -2, "description");
    lua_pushinteger(L, static_cast<lua_Integer>(header.header_size));
    lua_setfield(L, -2, "header_size");
    lua_pushinteger(L, static_cast<lua_Integer>(header.page_size));
    lua_setfield(L, -2, "page_size");
    return 1;
}

// mindrecord_encryption(path): "AES-GCM" or another mark, nil for a plain file.
int encryption(lua_State* L) {
    const std::string mark = encryption_of(path_at(L, 1, "mindrecord"));
    if (mark.empty()) return 0;
    push(L, std::string_view(mark));
    return 1;
}

// mindrecord_encrypt(path, key), mindrecord_decrypt(from, draft, key)
int encrypt(lua_State* L) {
    encrypt_mindrecord(path_at(L, 1, "mindrecord"), text_at(L, 2));
    return 0;
}
int decrypt(lua_State* L) {
    decrypt_mindrecord(path_at(L, 1, "mindrecord"), draft_at(L, 2, "mindrecord"), text_at(L, 3));
    return 0;
}

constexpr std::pair<const char*, lua_CFunction> kMindrecordFunctions[] = {
    {"mindrecord_encryption", protect<encryption>}, {"mindrecord_encrypt", protect<encrypt>},
    {"mindrecord_decrypt", protect<decrypt>},       {"mindrecord_check", protect<check_fields>},
    {"mindrecord_writer", protect<make_writer>},    {"mindrecord_append", protect<make_appender>},
    {"mindrecord_write", protect<write_rows>},      {"mindrecord_commit", protect<commit>},
    {"mindrecord_header", protect<read_header>},
};

}  // namespace

void bind_mindrecord(lua_State* L) {
    make_handle_type(L, kWriter, protect<release_handle<WriterPtr>>);
    for (auto [name, function] : kMindrecordFunctions) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
}

}  // namespace lunaria
