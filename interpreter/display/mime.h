// The formats of a value in a notebook: the front end takes the richest one that it knows.
#pragma once

#include <lua.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "interpreter/display/pretty.h"

namespace lunaria {

struct MimePart {
    std::string type;  // "text/plain", "text/html", "image/png", "application/json" ...
    std::string data;  // text as it is; JSON types as JSON text; images (but SVG), sound and video as their bytes
};

struct MimeBundle {
    std::vector<MimePart> parts;  // each type once; values always have text/plain
    std::string metadata;         // JSON object by type, may be empty

    const std::string* find(std::string_view type) const;
    void set(std::string_view type, std::string data);  // replaces a part of that type
};

// Whether data of the type are bytes rather than text.
bool is_binary_type(std::string_view type);
// Whether data of the type are JSON.
bool is_json_type(std::string_view type);

// The value at `index` in every known format. A metamethod __mime(value) returns a table {[type] = string, or a table
// for JSON types} and, optionally, a table of metadata. Formats that it omits are added, and when it fails text/plain
// holds the message. Raises no error.
MimeBundle mime_bundle(lua_State* L, int index, const PrettyOptions& options = {});

// The table {[type] = data} at `index` as it is, with metadata from the table at `metadata` unless that is nil or none.
// Throws type_error when it is not such a table.
MimeBundle mime_table(lua_State* L, int index, int metadata);

}  // namespace lunaria
