#include "core/data/files/mindrecord_shard.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "core/base/interrupt.h"
#include "core/io/crc32c.h"

namespace lunaria::data {

namespace {

constexpr size_t kMostKept = 64 << 20;

// A reader of bytes front to back that checks every step against the bytes that are left.
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

Value scalar_value(const MindrecordField& field, const Scalar& scalar, const Bytes& place) {
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

Shape array_shape(const MindrecordField& field, int64_t count, const Bytes& place) {
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

Value blob_value(const MindrecordField& field, std::string_view bytes, const std::string& place_name) {
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

std::string_view view(const Tensor& bytes) { return {bytes.data<char>(), static_cast<size_t>(bytes.size())}; }

}  // namespace

MindrecordShard::MindrecordShard(const std::string& path, bool skip_damaged, bool undo)
    : source_(open_source(path)), header_(MindrecordHeader::read(*source_)) {
    if (undo) header_.undo_commit();
    blob_fields_ = static_cast<size_t>(
        std::count_if(header_.fields.begin(), header_.fields.end(), [](const auto& f) { return f.blob >= 0; }));
    checked_.resize(header_.pages.size());
    find_groups();
    if (skip_damaged) leave_out_damaged();
}

void MindrecordShard::find_groups() {
    std::map<uint64_t, size_t> blobs;
    for (size_t i = 0; i < header_.pages.size(); ++i)
        if (header_.pages[i].is_blob) blobs[header_.pages[i].type_id] = i;
    for (size_t i = 0; i < header_.pages.size(); ++i) {
        for (const auto& group : header_.pages[i].groups) {
            const size_t blob = blobs.at(group.id);
            const int64_t begin = rows(),
                          count = static_cast<int64_t>(header_.pages[blob].end - header_.pages[blob].begin);
            // Groups without rows would hide the groups after them.
            if (count > 0) groups_.push_back({begin, begin + count, i, blob, group.offset});
        }
    }
    offsets_.resize(groups_.size());
}

void MindrecordShard::leave_out_damaged() {
    std::vector<Group> whole;
    int64_t rows = 0;
    for (const Group& group : groups_) {
        poll_interrupt();
        try {
            offsets(group);
            Group moved = group;
            moved.begin = rows;
            moved.end = rows += group.end - group.begin;
            whole.push_back(moved);
        } catch (const Error& e) {
            if (e.kind() != ErrorKind::file) throw;
            skipped_ += group.end - group.begin;
        }
    }
    groups_ = std::move(whole);
    offsets_.clear();
    offsets_.resize(groups_.size());
    kept_ = 0;
}

std::string MindrecordShard::where(size_t page) const {
    const MindrecordPage& p = header_.pages[page];
    return p.is_blob ? str("page ", page, " (rows ", p.begin, " to ", p.end, ")") : str("page ", page);
}

// The bytes of a page. The memory is not cleared before it is read into, and comes in large pieces: most of the time
// for a large page is the system's, for new memory. The check sum is compared once.
Tensor MindrecordShard::checked_page(size_t page) const {
    const MindrecordPage& p = header_.pages[page];
    const Tensor bytes = Tensor::empty(DType::u8, {static_cast<int64_t>(p.used)});
    source_->read(header_.start_of(page), bytes.raw(), bytes.nbytes());
    if (p.crc && !checked_[page]) {
        if (crc32c(view(bytes)) != *p.crc) throw source_->error(str("corrupt: the crc of ", where(page), " is wrong"));
        checked_[page] = 1;
    }
    return bytes;
}

// The places of the rows that follow each other from `begin` on, and the end of the last one.
std::vector<uint32_t> MindrecordShard::walk(std::string_view rows, uint64_t begin, int64_t count, size_t page) const {
    std::vector<uint32_t> list;
    // Bounded by the page's bytes, whatever the header says.
    list.reserve(std::min(static_cast<size_t>(count), rows.size() / 8) + 1);
    list.push_back(static_cast<uint32_t>(begin));
    for (int64_t i = 0; i < count; ++i) {
        uint64_t length = 0;
        if (begin > rows.size() || rows.size() - begin < 8)
            throw source_->error(str("corrupt: a row goes past the end of ", where(page)));
        std::memcpy(&length, rows.data() + begin, 8);
        if (length > rows.size() - begin - 8)
            throw source_->error(str("corrupt: a row goes past the end of ", where(page)));
        list.push_back(static_cast<uint32_t>(begin += 8 + length));
    }
    return list;
}

const MindrecordShard::Group& MindrecordShard::group_of(int64_t row) const {
    return *std::upper_bound(groups_.begin(), groups_.end(), row, [](int64_t r, const Group& g) { return r < g.end; });
}

const MindrecordShard::Offsets& MindrecordShard::offsets(const Group& group) const {
    const std::lock_guard lock(mutex_);
    Offsets& found = offsets_[static_cast<size_t>(&group - groups_.data())];
    if (found.known) return found;
    const int64_t count = group.end - group.begin;
    Tensor raw = checked_page(group.raw);
    found.raw = walk(view(raw), group.raw_offset, count, group.raw);
    found.blob = walk(view(checked_page(group.blob)), 0, count, group.blob);
    std::string_view rows = view(raw).substr(found.raw.front(), found.raw.back() - found.raw.front());
    // Of a page with many groups only the bytes of this group.
    if (rows.size() < raw.nbytes() / 2) {
        const Tensor part = Tensor::empty(DType::u8, {static_cast<int64_t>(rows.size())});
        std::memcpy(part.raw(), rows.data(), rows.size());
        raw = part;
        rows = view(raw);
    }
    if (kept_ + raw.nbytes() <= kMostKept) {
        kept_ += raw.nbytes();
        found.kept = raw;
        found.raw_rows = rows;
    }
    found.known = true;
    return found;
}

MindrecordShard::Place MindrecordShard::place(int64_t row) const {
    const Group& group = group_of(row);
    const Offsets& found = offsets(group);
    const size_t at = static_cast<size_t>(row - group.begin);
    return {group.raw,      group.blob,        header_.pages[group.blob].type_id, found.raw[at], found.raw[at + 1],
            found.blob[at], found.blob[at + 1]};
}

void MindrecordShard::read(int64_t row, const std::vector<int>& wanted, const std::function<void(Value)>& take) const {
    const Group& group = group_of(row);
    const Offsets& found = offsets(group);
    const size_t at = static_cast<size_t>(row - group.begin);
    std::string raw_copy;
    std::string_view raw;
    const size_t raw_length = found.raw[at + 1] - found.raw[at] - 8;
    if (!found.raw_rows.empty()) {
        raw = found.raw_rows.substr(found.raw[at] - found.raw[0] + 8, raw_length);
    } else {
        raw_copy = source_->text(header_.start_of(group.raw) + found.raw[at] + 8, raw_length);
        raw = raw_copy;
    }
    const std::string blob =
        source_->text(header_.start_of(group.blob) + found.blob[at] + 8, found.blob[at + 1] - found.blob[at] - 8);
    const std::string place = str(source_->name(), ": row ", row);
    Bytes map_bytes(raw, place), blob_bytes(blob, place);
    const auto values = read_map(map_bytes);
    std::vector<std::string_view> blobs;
    for (size_t i = 0; i < blob_fields_; ++i)
        blobs.push_back(blob_fields_ == 1 ? std::string_view(blob) : blob_bytes.take(blob_bytes.big_endian(8)));
    for (int number : wanted) {
        const MindrecordField& field = header_.fields[static_cast<size_t>(number)];
        if (field.blob >= 0) {
            take(blob_value(field, blobs[static_cast<size_t>(field.blob)], place));
            continue;
        }
        const auto value = values.find(field.name);
        if (value == values.end()) map_bytes.fail("there is no field '" + field.name + "'");
        take(scalar_value(field, value->second, map_bytes));
    }
}

}  // namespace lunaria::data
