#include "core/data/mindrecord.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "core/io/file.h"

namespace lunaria::data {

namespace {

using nlohmann::json;

constexpr uint64_t kLeastHeader = 1 << 14, kMostHeader = 1 << 27, kLeastPage = 1 << 15, kMostPage = 1 << 28;

// Bytes front to back; every step is checked against what is left.
class Bytes {
  public:
    Bytes(std::string_view rest, const std::string& place) : rest_(rest), place_(place) {}
    bool empty() const { return rest_.empty(); }
    std::string_view take(uint64_t count) {
        if (count > rest_.size()) fail("a value goes past its end");
        const std::string_view part = rest_.substr(0, static_cast<size_t>(count));
        rest_.remove_prefix(static_cast<size_t>(count));
        return part;
    }
    uint64_t big_endian(int bytes) {
        uint64_t value = 0;
        for (unsigned char c : take(static_cast<uint64_t>(bytes))) value = value << 8 | c;
        return value;
    }
    [[noreturn]] void fail(std::string_view what) const { throw file_error(place_, str("corrupt: ", what)); }

  private:
    std::string_view rest_;
    const std::string& place_;
};

// A scalar of a row: nothing, a number or a text.
struct Scalar {
    enum class Kind { nil, integer, number, text } kind = Kind::nil;
    int64_t integer = 0;
    double number = 0;
    std::string_view text;
};

int64_t sign_extended(uint64_t value, int bytes) {
    const int unused = 64 - 8 * bytes;
    return static_cast<int64_t>(value << unused) >> unused;
}

Scalar read_scalar(Bytes& bytes) {
    const auto integer = [](int64_t v) { return Scalar{Scalar::Kind::integer, v, 0, {}}; };
    const auto number = [](double v) { return Scalar{Scalar::Kind::number, 0, v, {}}; };
    const auto text = [&](uint64_t size) { return Scalar{Scalar::Kind::text, 0, 0, bytes.take(size)}; };
    const int tag = static_cast<int>(bytes.big_endian(1));
    if (tag <= 0x7f) return integer(tag);
    if (tag >= 0xe0) return integer(tag - 256);
    if (tag >= 0xa0 && tag <= 0xbf) return text(static_cast<uint64_t>(tag & 31));
    if (tag >= 0xcc && tag <= 0xcf) {
        const uint64_t value = bytes.big_endian(1 << (tag - 0xcc));
        if (value > INT64_MAX) bytes.fail("an integer is too large");
        return integer(static_cast<int64_t>(value));
    }
    if (tag >= 0xd0 && tag <= 0xd3)
        return integer(sign_extended(bytes.big_endian(1 << (tag - 0xd0)), 1 << (tag - 0xd0)));
    if (tag >= 0xd9 && tag <= 0xdb) return text(bytes.big_endian(1 << (tag - 0xd9)));
    if (tag == 0xca) return number(std::bit_cast<float>(static_cast<uint32_t>(bytes.big_endian(4))));
    if (tag == 0xcb) return number(std::bit_cast<double>(bytes.big_endian(8)));
    if (tag != 0xc0) bytes.fail("a row has a value of an unknown kind");
    return {};
}

std::map<std::string_view, Scalar> read_map(Bytes& bytes) {
    const int tag = static_cast<int>(bytes.big_endian(1));
    uint64_t count = static_cast<uint64_t>(tag & 15);
    if (tag == 0xde || tag == 0xdf)
        count = bytes.big_endian(tag == 0xde ? 2 : 4);
    else if ((tag & 0xf0) != 0x80)
        bytes.fail("a row is no map");
    std::map<std::string_view, Scalar> values;
    for (uint64_t i = 0; i < count; ++i) {
        const Scalar key = read_scalar(bytes);
        if (key.kind != Scalar::Kind::text) bytes.fail("a name is no text");
        values[key.text] = read_scalar(bytes);
    }
    if (!bytes.empty()) bytes.fail("bytes are left behind a row");
    return values;
}

struct Field {
    std::string name;
    DType dtype = DType::u8;
    bool is_text = false;
    bool is_array = false;
    std::vector<int64_t> shape;  // -1: as many as there are
    int blob = -1;               // position among the blob fields
};

Value scalar_value(const Field& field, const Scalar& scalar, const Bytes& place) {
    const auto wrong = [&] { place.fail("field '" + field.name + "' has a value of another type"); };
    if (field.is_text) {
        if (scalar.kind != Scalar::Kind::text) wrong();
        return Value(scalar.text);
    }
    if (is_float(field.dtype)) {
        if (scalar.kind == Scalar::Kind::text || scalar.kind == Scalar::Kind::nil) wrong();
        return Tensor::scalar(
            field.dtype, scalar.kind == Scalar::Kind::number ? scalar.number : static_cast<double>(scalar.integer));
    }
    if (scalar.kind != Scalar::Kind::integer) wrong();
    if (field.dtype == DType::i64) return Tensor::scalar(scalar.integer);
    if (scalar.integer != static_cast<int32_t>(scalar.integer)) wrong();
    return Tensor::scalar(DType::i32, static_cast<double>(scalar.integer));
}

// Integers are stored in as many bytes as each needs: their number, 2 bits for each width, the values.
template <class T>
std::vector<T> unpacked(Bytes bytes) {
    const uint64_t count = bytes.big_endian(4);
    const std::string_view widths = bytes.take((count + 3) / 4);
    std::vector<T> list;
    for (uint64_t i = 0; i < count; ++i) {
        const int width = 1 << (static_cast<unsigned char>(widths[i / 4]) >> (6 - 2 * (i % 4)) & 3);
        if (width > static_cast<int>(sizeof(T))) bytes.fail("an integer is wider than its column");
        uint64_t value = 0;
        std::memcpy(&value, bytes.take(static_cast<uint64_t>(width)).data(), static_cast<size_t>(width));
        list.push_back(static_cast<T>(sign_extended(value, width)));
    }
    if (!bytes.empty()) bytes.fail("bytes are left behind an array");
    return list;
}

Shape array_shape(const Field& field, int64_t count, const Bytes& place) {
    Shape shape;
    int64_t known = 1;
    int open = -1;
    for (size_t i = 0; i < field.shape.size(); ++i) {
        if (field.shape[i] < 0)
            open = static_cast<int>(i);
        else if (__builtin_mul_overflow(known, field.shape[i], &known))
            place.fail("the shape of field '" + field.name + "' is not possible");
        shape.push_back(field.shape[i]);
    }
    if (open >= 0 && known > 0 && count % known == 0) shape[open] = count / known;
    if (!shape.known() || shape.size() != count || (open < 0 && known != count))
        place.fail(str("field '", field.name, "' has ", count, " elements, which do not fit its shape"));
    return shape;
}

Value blob_value(const Field& field, std::string_view bytes, const std::string& place_name) {
    const Bytes place(bytes, place_name);
    if (!field.is_array) {
        const Tensor t = Tensor::empty(DType::u8, {static_cast<int64_t>(bytes.size())});
        std::memcpy(t.raw(), bytes.data(), bytes.size());
        return t;
    }
    if (field.dtype == DType::i32) {
        const auto list = unpacked<int32_t>(place);
        return Tensor::from<int32_t>(list, array_shape(field, static_cast<int64_t>(list.size()), place));
    }
    if (field.dtype == DType::i64) {
        const auto list = unpacked<int64_t>(place);
        return Tensor::from<int64_t>(list, array_shape(field, static_cast<int64_t>(list.size()), place));
    }
    const size_t each = size_of(field.dtype);
    if (bytes.size() % each != 0) place.fail("field '" + field.name + "' has half an element");
    const Tensor t = Tensor::empty(field.dtype, array_shape(field, static_cast<int64_t>(bytes.size() / each), place));
    std::memcpy(t.raw(), bytes.data(), bytes.size());
    return t;
}

class Shard {
  public:
    explicit Shard(const std::string& path) : source_(open_source(path)) {
        if (source_->size() < 8) throw source_->error("corrupt: is shorter than 8 bytes");
        uint64_t length = 0;
        source_->read(0, &length, 8);
        if (length > kMostHeader || length > source_->size() - 8)
            throw source_->error(str("corrupt: a header of ", length, " bytes goes past the end of the file"));
        const json header = json::parse(source_->text(8, static_cast<size_t>(length)), nullptr, false);
        const std::string version = text(header, "version");
        if (version != "2.0" && version != "3.0") throw source_->error("corrupt: has no version that is known");
        header_size_ = count(header, "header_size", kMostHeader);
        page_size_ = count(header, "page_size", kMostPage);
        if (header_size_ < kLeastHeader || page_size_ < kLeastPage || length + 8 > header_size_)
            throw source_->error("corrupt: the sizes of header and pages are not possible");
        read_schema(header);
        read_pages(header);
        if (header.contains("shard_addresses"))
            for (const json& name : header["shard_addresses"])
                if (name.is_string()) siblings_.push_back(name.get<std::string>());
    }

    const std::vector<Field>& fields() const { return fields_; }
    const std::vector<std::string>& siblings() const { return siblings_; }
    int64_t rows() const { return groups_.empty() ? 0 : groups_.back().end; }

    // Calls take(field's number, value) for the fields that `wanted` names.
    template <class Take>
    void read(int64_t row, const std::vector<int>& wanted, Take take) const {
        const auto group =
            std::upper_bound(groups_.begin(), groups_.end(), row, [](int64_t r, const Group& g) { return r < g.end; });
        const auto [raw_at, blob_at] = offsets(*group)[static_cast<size_t>(row - group->begin)];
        const std::string raw = row_at(group->raw, raw_at), blob = row_at(group->blob, blob_at);
        const std::string place = str(source_->name(), ": row ", row);
        Bytes map_bytes(raw, place), blob_bytes(blob, place);
        const auto values = read_map(map_bytes);
        std::vector<std::string_view> blobs;
        for (size_t i = 0; i < blob_fields_; ++i)
            blobs.push_back(blob_fields_ == 1 ? std::string_view(blob) : blob_bytes.take(blob_bytes.big_endian(8)));
        for (int number : wanted) {
            const Field& field = fields_[static_cast<size_t>(number)];
            if (field.blob >= 0) {
                take(blob_value(field, blobs[static_cast<size_t>(field.blob)], place));
                continue;
            }
            const auto value = values.find(field.name);
            if (value == values.end()) map_bytes.fail("there is no field '" + field.name + "'");
            take(scalar_value(field, value->second, map_bytes));
        }
    }

  private:
    struct Page {
        uint64_t start = 0, used = 0;
    };
    // Rows whose scalars follow one another in a raw page and whose blobs fill a page.
    struct Group {
        int64_t begin = 0, end = 0;
        size_t raw = 0, blob = 0;
        uint64_t raw_offset = 0;
    };
    using Offsets = std::vector<std::pair<uint64_t, uint64_t>>;

    uint64_t count(const json& object, const char* key, uint64_t most) const {
        const auto value = object.is_object() ? object.find(key) : object.end();
        if (!object.is_object() || value == object.end() || !value->is_number_integer() || value->get<int64_t>() < 0 ||
            value->get<uint64_t>() > most)
            throw source_->error(str("corrupt: the header has no valid '", key, "'"));
        return value->get<uint64_t>();
    }
    std::string text(const json& object, const char* key) const {
        const auto value = object.is_object() ? object.find(key) : object.end();
        if (!object.is_object() || value == object.end() || !value->is_string())
            throw source_->error(str("corrupt: the header has no valid '", key, "'"));
        return value->get<std::string>();
    }
    const json& part(const json& object, const char* key) const {
        const auto value = object.is_object() ? object.find(key) : object.end();
        if (!object.is_object() || value == object.end())
            throw source_->error(str("corrupt: the header has no '", key, "'"));
        return *value;
    }

    void read_schema(const json& header) {
        const json& list = part(header, "schema");
        if (!list.is_array() || list.size() != 1) throw source_->error("corrupt: the header has not one schema");
        const json& schema = part(list[0], "schema");
        const json& blobs = part(list[0], "blob_fields");
        if (!schema.is_object() || schema.empty() || !blobs.is_array())
            throw source_->error("corrupt: the schema is none");
        for (const auto& [name, type] : schema.items()) {
            Field field{name, DType::u8, false, type.is_object() && type.contains("shape"), {}, -1};
            const std::string kind = text(type, "type");
            if (kind == "string")
                field.is_text = true;
            else if (kind == "int32" || kind == "int64")
                field.dtype = kind == "int32" ? DType::i32 : DType::i64;
            else if (kind == "float32" || kind == "float64")
                field.dtype = kind == "float32" ? DType::f32 : DType::f64;
            else if (kind != "bytes")
                throw source_->error(str("corrupt: field '", name, "' has the unknown type '", kind, "'"));
            if (field.is_array) read_shape(type["shape"], field);
            for (size_t i = 0; i < blobs.size(); ++i)
                if (blobs[i] == name) field.blob = static_cast<int>(i);
            if ((field.blob >= 0) != (kind == "bytes" || field.is_array))
                throw source_->error(str("corrupt: field '", name, "' is among the wrong fields"));
            fields_.push_back(std::move(field));
        }
        blob_fields_ = blobs.size();
    }
    void read_shape(const json& shape, Field& field) const {
        bool right = shape.is_array() && shape.size() <= kMaxRank;
        for (size_t i = 0; right && i < shape.size(); ++i) {
            right = shape[i].is_number_integer() && shape[i].get<int64_t>() >= -1 &&
                    shape[i].get<int64_t>() <= static_cast<int64_t>(kMostPage);
            if (right) field.shape.push_back(shape[i].get<int64_t>());
        }
        if (!right || std::count(field.shape.begin(), field.shape.end(), -1) > 1)
            throw source_->error(str("corrupt: the shape of field '", field.name, "' is not possible"));
    }
    void read_pages(const json& header) {
        const json& list = part(header, "page");
        if (list.is_null()) return;
        if (!list.is_array()) throw source_->error("corrupt: the pages are no list");
        std::map<uint64_t, std::pair<size_t, int64_t>> blobs;  // by its number: the page and its rows
        for (const json& page : list) {
            const size_t number = pages_.size();
            const Page p{header_size_ + number * page_size_, count(page, "page_size", page_size_)};
            if (count(page, "page_id", UINT32_MAX) != number)
                throw source_->error("corrupt: the pages are not in order");
            if (p.start > source_->size() || p.used > source_->size() - p.start)
                throw source_->error(str("corrupt: page ", number, " goes past the end of the file"));
            pages_.push_back(p);
            if (text(page, "page_type") != "BLOB_DATA") continue;
            const uint64_t begin = count(page, "start_row_id", INT64_MAX), end = count(page, "end_row_id", INT64_MAX);
            // Each row has at least its length in the page.
            if (end < begin || (end - begin) > p.used / 8)
                throw source_->error("corrupt: a page has more rows than bytes");
            blobs[count(page, "page_type_id", UINT32_MAX)] = {number, static_cast<int64_t>(end - begin)};
        }
        for (size_t number = 0; number < list.size(); ++number) {
            const json& page = list[number];
            if (page["page_type"] != "RAW_DATA") continue;
            const json& groups = part(page, "row_group_ids");
            if (!groups.is_array()) throw source_->error("corrupt: the row groups are no list");
            for (const json& group : groups) {
                const auto blob = blobs.find(count(group, "id", UINT32_MAX));
                if (blob == blobs.end()) throw source_->error("corrupt: a row group has no page of its blobs");
                const int64_t begin = rows();
                groups_.push_back({begin, begin + blob->second.second, number, blob->second.first,
                                   count(group, "offset", page_size_)});
            }
        }
        // Groups without rows would hide those behind them.
        std::erase_if(groups_, [](const Group& g) { return g.begin == g.end; });
        offsets_.resize(groups_.size());
    }

    // Where the rows of a group are; found out when one of them is first asked for.
    const Offsets& offsets(const Group& group) const {
        const std::lock_guard lock(mutex_);
        Offsets& list = offsets_[static_cast<size_t>(&group - groups_.data())];
        if (!list.empty()) return list;
        Offsets found;
        uint64_t raw = group.raw_offset, blob = 0;
        for (int64_t i = group.begin; i < group.end; ++i) {
            found.emplace_back(raw, blob);
            raw += 8 + length_at(group.raw, raw);
            blob += 8 + length_at(group.blob, blob);
        }
        return list = std::move(found);
    }
    uint64_t length_at(size_t page, uint64_t offset) const {
        const Page& p = pages_[page];
        if (offset > p.used || p.used - offset < 8) fail_row(page);
        uint64_t length = 0;
        source_->read(p.start + offset, &length, 8);
        if (length > p.used - offset - 8) fail_row(page);
        return length;
    }
    std::string row_at(size_t page, uint64_t offset) const {
        const uint64_t length = length_at(page, offset);
        return source_->text(pages_[page].start + offset + 8, static_cast<size_t>(length));
    }
    [[noreturn]] void fail_row(size_t page) const {
        throw source_->error(str("corrupt: a row goes past the end of page ", page));
    }

    std::unique_ptr<Source> source_;
    uint64_t header_size_ = 0, page_size_ = 0;
    std::vector<Field> fields_;
    size_t blob_fields_ = 0;
    std::vector<Page> pages_;
    std::vector<Group> groups_;
    std::vector<std::string> siblings_;
    mutable std::mutex mutex_;
    mutable std::vector<Offsets> offsets_;  // under mutex_ until a group's are found
};

class Mindrecords final : public Records {
  public:
    Mindrecords(std::vector<std::unique_ptr<Shard>> shards, Names names, std::vector<int> wanted)
        : Records(std::move(names)), shards_(std::move(shards)), wanted_(std::move(wanted)) {
        for (const auto& shard : shards_) ends_.push_back(rows_ += shard->rows());
    }
    std::string title() const override { return "MindRecord"; }
    int64_t rows() const override { return rows_; }
    void read(int64_t row, Row& out) const override {
        const size_t s = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), row) - ends_.begin());
        shards_[s]->read(row - (s > 0 ? ends_[s - 1] : 0), wanted_, [&](Value v) { out.push_back(std::move(v)); });
    }

  private:
    std::vector<std::unique_ptr<Shard>> shards_;
    std::vector<int> wanted_;
    std::vector<int64_t> ends_;
    int64_t rows_ = 0;
};

}  // namespace

RecordsPtr mindrecord_records(const std::vector<std::string>& paths, bool whole, Names names) {
    std::vector<std::unique_ptr<Shard>> shards;
    for (const std::string& path : paths) shards.push_back(std::make_unique<Shard>(path));
    if (whole && shards.front()->siblings().size() > 1) {
        const size_t slash = paths.front().rfind('/');
        const std::string folder = slash == std::string::npos ? "" : paths.front().substr(0, slash + 1);
        const std::vector<std::string> siblings = shards.front()->siblings();
        shards.clear();
        for (const std::string& name : siblings) {
            // A header must not lead out of the folder.
            if (name.empty() || name.find('/') != std::string::npos || name == "..")
                throw file_error(paths.front(), "corrupt: the header names a shard outside of the folder");
            shards.push_back(std::make_unique<Shard>(folder + name));
        }
    }
    const auto& fields = shards.front()->fields();
    const auto same = [](const Field& a, const Field& b) {
        return a.name == b.name && a.dtype == b.dtype && a.is_text == b.is_text && a.shape == b.shape &&
               a.blob == b.blob;
    };
    for (const auto& shard : shards)
        if (!std::equal(fields.begin(), fields.end(), shard->fields().begin(), shard->fields().end(), same))
            throw file_error(paths.front(), "the files have different schemas");
    if (names.empty())
        for (const Field& field : fields) names.push_back(field.name);
    std::vector<int> wanted;
    for (const std::string& name : names) {
        const auto field = std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == name; });
        if (field == fields.end()) throw file_error(paths.front(), str("there is no field '", name, "'"));
        wanted.push_back(static_cast<int>(field - fields.begin()));
    }
    return std::make_shared<Mindrecords>(std::move(shards), std::move(names), std::move(wanted));
}

}  // namespace lunaria::data
