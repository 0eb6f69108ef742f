#include "core/data/files/mindrecord_format.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>

#include "core/io/crc32c.h"
#include "core/tensor/shape.h"

namespace lunaria::data {

namespace {

using nlohmann::json;

constexpr size_t kMostFields = 100;
constexpr const char* kCrcKey = ",\"x_lunaria_header_crc32c\":\"";

std::string hex(uint32_t crc) {
    char text[9];
    std::snprintf(text, sizeof text, "%08x", crc);
    return text;
}

// Reads the parts of a header; any part may be missing or of another kind.
class Reader {
  public:
    explicit Reader(const Source& source) : source_(source) {}

    uint64_t count(const json& object, const char* key, uint64_t most) const {
        const auto value = object.is_object() ? object.find(key) : object.end();
        if (!object.is_object() || value == object.end() || !value->is_number_integer() || value->get<int64_t>() < 0 ||
            value->get<uint64_t>() > most)
            throw source_.error(str("corrupt: the header has no valid '", key, "'"));
        return value->get<uint64_t>();
    }
    std::string text(const json& object, const char* key) const {
        const auto value = object.is_object() ? object.find(key) : object.end();
        if (!object.is_object() || value == object.end() || !value->is_string())
            throw source_.error(str("corrupt: the header has no valid '", key, "'"));
        return value->get<std::string>();
    }
    const json& part(const json& object, const char* key) const {
        const auto value = object.is_object() ? object.find(key) : object.end();
        if (!object.is_object() || value == object.end())
            throw source_.error(str("corrupt: the header has no '", key, "'"));
        return *value;
    }

    void schema(const json& header, MindrecordHeader& out) const {
        const json& list = part(header, "schema");
        if (!list.is_array() || list.size() != 1) throw source_.error("corrupt: the header has not one schema");
        const json& schema = part(list[0], "schema");
        const json& blobs = part(list[0], "blob_fields");
        if (!schema.is_object() || schema.empty() || !blobs.is_array())
            throw source_.error("corrupt: the schema is none");
        if (list[0].contains("desc") && list[0]["desc"].is_string()) out.description = list[0]["desc"];
        for (const auto& [name, type] : schema.items()) {
            MindrecordField field{name, DType::u8, false, type.is_object() && type.contains("shape"), {}, -1};
            const std::string kind = text(type, "type");
            if (kind == "string")
                field.is_text = true;
            else if (kind == "int32" || kind == "int64")
                field.dtype = kind == "int32" ? DType::i32 : DType::i64;
            else if (kind == "float32" || kind == "float64")
                field.dtype = kind == "float32" ? DType::f32 : DType::f64;
            else if (kind != "bytes")
                throw source_.error(str("corrupt: field '", name, "' has the unknown type '", kind, "'"));
            if (field.is_array) shape(type["shape"], field);
            for (size_t i = 0; i < blobs.size(); ++i)
                if (blobs[i] == name) field.blob = static_cast<int>(i);
            if ((field.blob >= 0) != (kind == "bytes" || field.is_array))
                throw source_.error(str("corrupt: field '", name, "' is among the wrong fields"));
            out.fields.push_back(std::move(field));
        }
        // Each indexed entry is the name of one field.
        if (std::count_if(out.fields.begin(), out.fields.end(), [](const auto& f) { return f.blob >= 0; }) !=
            static_cast<std::ptrdiff_t>(blobs.size()))
            throw source_.error("corrupt: the list of blob fields has other names than the schema");
    }
    void pages(const json& header, MindrecordHeader& out) const {
        const json& list = part(header, "page");
        if (list.is_null()) return;
        if (!list.is_array()) throw source_.error("corrupt: the pages are no list");
        std::map<uint64_t, size_t> blobs;
        for (const json& page : list) out.pages.push_back(one_page(page, out));
        for (size_t i = 0; i < out.pages.size(); ++i)
            if (out.pages[i].is_blob) blobs[out.pages[i].type_id] = i;
        for (const MindrecordPage& page : out.pages)
            for (const auto& group : page.groups)
                if (!blobs.contains(group.id)) throw source_.error("corrupt: a row group has no page of its blobs");
        if (!header.contains("x_lunaria_page_crc32c")) return;
        const json& sums = header["x_lunaria_page_crc32c"];
        if (!sums.is_array() || sums.size() != out.pages.size())
            throw source_.error("corrupt: the pages have not one check sum each");
        for (size_t i = 0; i < sums.size(); ++i) {
            if (!sums[i].is_number_unsigned() || sums[i].get<uint64_t>() > UINT32_MAX)
                throw source_.error("corrupt: a check sum is none");
            out.pages[i].crc = sums[i].get<uint32_t>();
        }
    }

  private:
    void shape(const json& shape, MindrecordField& field) const {
        bool right = shape.is_array() && shape.size() <= kMaxRank;
        for (size_t i = 0; right && i < shape.size(); ++i) {
            right = shape[i].is_number_integer() && shape[i].get<int64_t>() >= -1 &&
                    shape[i].get<int64_t>() <= static_cast<int64_t>(kMostPage);
            if (right) field.shape.push_back(shape[i].get<int64_t>());
        }
        if (!right || std::count(field.shape.begin(), field.shape.end(), -1) > 1)
            throw source_.error(str("corrupt: the shape of field '", field.name, "' is not possible"));
    }
    MindrecordPage one_page(const json& page, const MindrecordHeader& out) const {
        const size_t number = out.pages.size();
        MindrecordPage p;
        p.used = count(page, "page_size", out.page_size);
        if (count(page, "page_id", UINT32_MAX) != number) throw source_.error("corrupt: the pages are not in order");
        const uint64_t start = out.start_of(number);
        if (start > source_.size() || p.used > source_.size() - start)
            throw source_.error(str("corrupt: page ", number, " goes past the end of the file"));
        const std::string type = text(page, "page_type");
        p.is_blob = type == "BLOB_DATA";
        p.type_id = count(page, "page_type_id", UINT32_MAX);
        if (p.is_blob) {
            p.begin = count(page, "start_row_id", INT64_MAX);
            p.end = count(page, "end_row_id", INT64_MAX);
            // Each row takes at least its length in the page.
            if (p.end < p.begin || p.end - p.begin > p.used / 8)
                throw source_.error("corrupt: a page has more rows than bytes");
        } else if (type == "RAW_DATA") {
            const json& groups = part(page, "row_group_ids");
            if (!groups.is_array()) throw source_.error("corrupt: the row groups are no list");
            for (const json& group : groups)
                p.groups.push_back({count(group, "id", UINT32_MAX), count(group, "offset", out.page_size)});
        }
        return p;
    }
    const Source& source_;
};

bool is_name(std::string_view name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
    });
}

json schema_of(const MindrecordHeader& header) {
    json schema = json::object(), blobs = json::array();
    for (const MindrecordField& field : header.fields) {
        json type = {{"type", field.type_name()}};
        if (field.is_array) type["shape"] = field.shape;
        schema[field.name] = std::move(type);
        if (field.blob >= 0) blobs.push_back(field.name);
    }
    return json::array({{{"blob_fields", blobs}, {"desc", header.description}, {"schema", schema}}});
}

json pages_of(const MindrecordHeader& header) {
    json list = json::array();
    for (size_t i = 0; i < header.pages.size(); ++i) {
        const MindrecordPage& page = header.pages[i];
        json groups = json::array();
        for (const auto& group : page.groups) groups.push_back({{"id", group.id}, {"offset", group.offset}});
        if (page.is_blob) groups.push_back({{"id", page.type_id}, {"offset", 0}});
        list.push_back({{"end_row_id", page.end},
                        {"page_id", i},
                        {"page_size", page.used},
                        {"page_type", page.is_blob ? "BLOB_DATA" : "RAW_DATA"},
                        {"page_type_id", page.type_id},
                        {"row_group_ids", groups},
                        {"shard_id", header.shard},
                        {"start_row_id", page.begin}});
    }
    return list;
}

}  // namespace

const char* MindrecordField::type_name() const {
    if (is_text) return "string";
    switch (dtype) {
        case DType::i32:
            return "int32";
        case DType::i64:
            return "int64";
        case DType::f32:
            return "float32";
        case DType::f64:
            return "float64";
        default:
            return "bytes";
    }
}

std::vector<MindrecordField> mindrecord_fields(std::string_view where, std::vector<MindrecordField> fields) {
    if (fields.empty() || fields.size() > kMostFields)
        throw argument_error(where, str("a schema has 1 to ", kMostFields, " fields, got ", fields.size()));
    std::sort(fields.begin(), fields.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    int blobs = 0;
    for (MindrecordField& field : fields) {
        if (!is_name(field.name))
            throw argument_error(where, str("the field name '", field.name,
                                            "' must consist of letters, digits, underscores and hyphens"));
        if (field.is_array && (field.shape.empty() || field.shape.size() > kMaxRank ||
                               std::count(field.shape.begin(), field.shape.end(), -1) > 1))
            throw argument_error(where, str("the shape of field '", field.name, "' must have 1 to ", kMaxRank,
                                            " sizes, of which one may be -1"));
        for (const int64_t size : field.shape)
            if (size < -1 || size > static_cast<int64_t>(kMostPage))
                throw argument_error(where, str("the shape of field '", field.name, "' has a size of ", size));
        if (field.is_array && (field.is_text || field.dtype == DType::u8))
            throw argument_error(where, str("field '", field.name, "' has a shape, which only numbers have"));
        const bool is_blob = field.is_array || (!field.is_text && field.dtype == DType::u8);
        field.blob = is_blob ? blobs++ : -1;
    }
    return fields;
}

MindrecordHeader MindrecordHeader::read(const Source& source) {
    if (source.size() < 8) throw source.error("corrupt: is shorter than 8 bytes");
    uint64_t length = 0;
    source.read(0, &length, 8);
    if (length > kMostHeader || length > source.size() - 8)
        throw source.error(str("corrupt: a header of ", length, " bytes goes past the end of the file"));
    const std::string text = source.text(8, static_cast<size_t>(length));
    const json header = json::parse(text, nullptr, false);
    const Reader reader(source);
    if (const size_t at = text.rfind(kCrcKey); at != std::string::npos) {
        const std::string sum = reader.text(header, "x_lunaria_header_crc32c");
        if (sum != hex(crc32c(std::string_view(text).substr(0, at))))
            throw source.error("corrupt: the crc of its header is wrong");
    }
    const std::string version = reader.text(header, "version");
    if (version != "2.0" && version != "3.0") throw source.error("corrupt: has no version that is known");
    MindrecordHeader out;
    out.header_size = reader.count(header, "header_size", kMostHeader);
    out.page_size = reader.count(header, "page_size", kMostPage);
    if (out.header_size < kLeastHeader || out.page_size < kLeastPage || length + 8 > out.header_size)
        throw source.error("corrupt: the sizes of header and pages are not possible");
    if (header.contains("compression_size")) out.compression = reader.count(header, "compression_size", INT64_MAX);
    if (header.contains("shard_id")) out.shard = reader.count(header, "shard_id", UINT32_MAX);
    reader.schema(header, out);
    reader.pages(header, out);
    if (const auto commit = header.find("x_lunaria_commit"); commit != header.end()) {
        out.commit = MindrecordHeader::Commit{reader.count(*commit, "files", INT64_MAX),
                                              reader.count(*commit, "number", INT64_MAX),
                                              reader.count(*commit, "pages_before", out.pages.size())};
    }
    if (header.contains("shard_addresses"))
        for (const json& name : header["shard_addresses"])
            if (name.is_string()) out.siblings.push_back(name.get<std::string>());
    if (header.contains("index_fields") && header["index_fields"].is_array())
        for (const json& field : header["index_fields"])
            if (field.is_object() && field.contains("index_field") && field["index_field"].is_string())
                out.index.push_back(field["index_field"].get<std::string>());
    return out;
}

void MindrecordHeader::undo_commit() {
    pages.resize(commit->pages_before);
    --commit->number;
}

std::optional<uint64_t> common_commit(const std::string& path, const std::vector<const MindrecordHeader*>& headers) {
    uint64_t least = UINT64_MAX;
    for (const MindrecordHeader* header : headers) {
        if (!header->commit) return std::nullopt;
        if (header->commit->files != headers.front()->commit->files)
            throw file_error(path, "the shards were not written together: some were replaced and others not");
        least = std::min(least, header->commit->number);
    }
    for (const MindrecordHeader* header : headers)
        if (header->commit->number > least + 1)
            throw file_error(path, "the shards were not written together: some have commits that others lack");
    return least;
}

std::string MindrecordHeader::area(const std::string& path) const {
    json index_fields;
    for (const std::string& name : index) index_fields.push_back({{"index_field", name}, {"schema_id", 0}});
    json sums = json::array();
    for (const MindrecordPage& page : pages)
        if (page.crc) sums.push_back(*page.crc);
    // The order of the keys is the one that other programs write.
    std::string text =
        str("{\"header_size\":", header_size, ",\"index_fields\":", index_fields.dump(),
            ",\"page\":", pages_of(*this).dump(), ",\"page_size\":", page_size, ",\"compression_size\":", compression,
            ",\"schema\":", schema_of(*this).dump(), ",\"shard_addresses\":", json(siblings).dump(),
            ",\"shard_id\":", shard, ",\"statistics\":null,\"version\":\"3.0\"");
    // Pages of other programs have no check sums.
    if (sums.size() == pages.size()) text += ",\"x_lunaria_page_crc32c\":" + sums.dump();
    if (commit)
        text += str(",\"x_lunaria_commit\":{\"files\":", commit->files, ",\"number\":", commit->number,
                    ",\"pages_before\":", commit->pages_before, "}");
    text += kCrcKey + hex(crc32c(text)) + "\"}";
    if (text.size() + 8 > header_size)
        throw file_error(path, str("a header of ", text.size() + 8, " bytes does not fit into the ", header_size,
                                   " bytes that are kept for it"))
            .hint("set_header_size, before anything is written, gives it more");
    const uint64_t length = text.size();
    return std::string(reinterpret_cast<const char*>(&length), 8) + text;
}

}  // namespace lunaria::data
