#include "core/io/zip.h"

#include <algorithm>
#include <set>

namespace lunaria {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56, kLocator64Size = 20;
constexpr uint32_t kMany = 0xffffffff;  // "see the zip64 field"
constexpr uint64_t kLongestDirectory = uint64_t{64} << 20;

// Little-endian numbers of a record whose length was checked.
class Record {
  public:
    explicit Record(std::string_view bytes) : bytes_(bytes) {}
    uint16_t u16(size_t at) const { return static_cast<uint16_t>(number(at, 2)); }
    uint32_t u32(size_t at) const { return static_cast<uint32_t>(number(at, 4)); }
    uint64_t u64(size_t at) const { return number(at, 8); }

  private:
    uint64_t number(size_t at, size_t width) const {
        uint64_t n = 0;
        for (size_t i = width; i-- > 0;) n = n << 8 | static_cast<unsigned char>(bytes_[at + i]);
        return n;
    }
    std::string_view bytes_;
};

struct Directory {
    uint64_t offset = 0, size = 0, count = 0;
};

// The end record is the last part of the file except for its comment.
Directory find_directory(const Source& source) {
    if (source.size() < kEndSize) throw source.error("is not a zip archive: it is too short (truncated or empty)");
    size_t tail_size = static_cast<size_t>(std::min<uint64_t>(source.size(), kEndSize + 0xffff));
    uint64_t tail_offset = source.size() - tail_size;
    std::string tail = source.text(tail_offset, tail_size);
    Record record(tail);
    size_t at = tail_size - kEndSize;
    while (record.u32(at) != kEnd || at + kEndSize + record.u16(at + 20) != tail_size) {
        if (at == 0)
            throw source.error(
                "is not a zip archive, or a truncated one: no directory ends where the file ends (other format?)");
        --at;
    }
    if (record.u16(at + 4) != 0 || record.u16(at + 6) != 0 || record.u16(at + 8) != record.u16(at + 10))
        throw source.error("is one part of a zip archive in several files, which is not supported");
    Directory directory{record.u32(at + 16), record.u32(at + 12), record.u16(at + 10)};
    uint64_t end = tail_offset + at;
    // Some writers add zip64 records that are not needed; they count only where the end record refers to them.
    std::string locator = end >= kLocator64Size ? source.text(end - kLocator64Size, kLocator64Size) : "";
    if (!locator.empty() && Record(locator).u32(0) == kLocator64) {
        uint64_t where = Record(locator).u64(8);
        if (where > end || end - where < kEnd64Size + kLocator64Size)
            throw source.error("corrupt: the zip64 directory lies outside of the file");
        std::string text = source.text(where, kEnd64Size);
        Record large(text);
        if (large.u32(0) != kEnd64) throw source.error("corrupt: the zip64 directory is missing");
        if (directory.offset == kMany) directory.offset = large.u64(48);
        if (directory.size == kMany) directory.size = large.u64(40);
        if (directory.count == 0xffff) directory.count = large.u64(32);
        end = where;
    }
    if (directory.offset > end || directory.size != end - directory.offset)
        throw source.error("corrupt: the zip directory is not where the archive says");
    if (directory.size > kLongestDirectory || directory.count > directory.size / kCentralSize)
        throw source.error(
            str("corrupt: a zip directory of ", directory.count, " members in ", directory.size, " bytes"));
    return directory;
}

void check_name(const Source& source, const std::string& name) {
    auto refuse = [&](std::string_view why) {
        throw source.error(str("has a member named '", name.substr(0, 60), "', which is refused: ", why));
    };
    if (name.empty() || name.find('\0') != std::string::npos) refuse("it is empty or holds a zero byte");
    if (name[0] == '/' || name.find('\\') != std::string::npos || name.find(':') == 1) refuse("it is an absolute path");
    std::string padded = "/" + name + "/";
    if (padded.find("/../") != std::string::npos) refuse("it leads out of the archive");
}

// Sizes and offsets that do not fit into 32 bits are in the extra field 1, in this order, only those that are needed.
void read_zip64(const Source& source, std::string_view extra, uint64_t* const (&fields)[3]) {
    while (extra.size() >= 4) {
        Record record(extra);
        size_t size = record.u16(2);
        if (size > extra.size() - 4) break;
        if (record.u16(0) == 1) {
            size_t at = 4;
            for (uint64_t* field : fields) {
                if (*field != kMany) continue;
                if (at + 8 > 4 + size) throw source.error("corrupt: a zip64 field of the directory is too short");
                *field = record.u64(at);
                at += 8;
            }
            return;
        }
        extra.remove_prefix(4 + size);
    }
}

ZipMember read_member(const Source& source, const std::string& directory, size_t& at, uint64_t limit) {
    std::string_view rest = std::string_view(directory).substr(at);
    if (rest.size() < kCentralSize || Record(rest).u32(0) != kCentral)
        throw source.error("corrupt: the zip directory breaks off");
    Record record(rest);
    size_t name_size = record.u16(28), extra_size = record.u16(30), comment_size = record.u16(32);
    size_t total = kCentralSize + name_size + extra_size + comment_size;
    if (rest.size() < total) throw source.error("corrupt: the zip directory breaks off");
    at += total;

    ZipMember member;
    member.name = std::string(rest.substr(kCentralSize, name_size));
    check_name(source, member.name);
    Stretch& stretch = member.stretch;
    stretch.name = source.name() + ", member '" + member.name + "'";
    auto refuse = [&](std::string_view why) { throw file_error(stretch.name, why); };
    if (record.u16(8) & 1) refuse("is encrypted, which is not supported");
    uint16_t method = record.u16(10);
    if (method != 0 && method != 8)
        refuse(str("uses compression method ", method, "; only stored and deflate are known"));
    stretch.deflated = method == 8;
    stretch.checksum = record.u32(16);
    stretch.stored = record.u32(20);
    stretch.size = record.u32(24);
    uint64_t local = record.u32(42);
    read_zip64(source, rest.substr(kCentralSize + name_size, extra_size), {&stretch.size, &stretch.stored, &local});

    if (local > limit || limit - local < kLocalSize) refuse("corrupt: lies outside of the archive");
    std::string header = source.text(local, kLocalSize);
    Record start(header);
    if (start.u32(0) != kLocal) refuse("corrupt: no member starts where the directory says");
    stretch.offset = local + kLocalSize + start.u16(26) + start.u16(28);
    if (stretch.offset > limit || stretch.stored > limit - stretch.offset)
        refuse("truncated or corrupt: reaches beyond the archive's data");
    if (start.u16(26) != name_size || source.text(local + kLocalSize, name_size) != member.name)
        refuse("corrupt: has another name in the directory than at its data");
    if (!stretch.deflated && stretch.stored != stretch.size) refuse("corrupt: is stored with two different sizes");
    return member;
}

}  // namespace

std::vector<ZipMember> zip_directory(const Source& source) {
    Directory directory = find_directory(source);
    std::string text = source.text(directory.offset, static_cast<size_t>(directory.size));
    std::vector<ZipMember> members;
    std::set<std::string> names;
    size_t at = 0;
    for (uint64_t i = 0; i < directory.count; ++i) {
        members.push_back(read_member(source, text, at, directory.offset));
        if (!names.insert(members.back().name).second)
            throw source.error(str("corrupt: has two members named '", members.back().name.substr(0, 60), "'"));
    }
    if (at != text.size()) throw source.error("corrupt: the zip directory has bytes left over");

    std::vector<const Stretch*> order;
    for (const ZipMember& member : members) order.push_back(&member.stretch);
    std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
    for (size_t i = 1; i < order.size(); ++i)
        if (order[i - 1]->offset + order[i - 1]->stored > order[i]->offset)
            throw source.error("corrupt: members of the archive overlap");
    return members;
}

namespace {

class RecordWriter {
  public:
    RecordWriter& u16(uint64_t n) { return number(n, 2); }
    RecordWriter& u32(uint64_t n) { return number(n, 4); }
    RecordWriter& u64(uint64_t n) { return number(n, 8); }
    RecordWriter& text(std::string_view t) {
        bytes_ += t;
        return *this;
    }
    const std::string& bytes() const { return bytes_; }

  private:
    RecordWriter& number(uint64_t n, int width) {
        for (int i = 0; i < width; ++i, n >>= 8) bytes_ += static_cast<char>(n & 0xff);
        return *this;
    }
    std::string bytes_;
};

constexpr uint64_t kUtf8 = 0x0800, kEarliestDate = 0x21;  // 1 January 1980: equal contents make equal files

uint64_t clipped(uint64_t n) { return std::min<uint64_t>(n, kMany); }

}  // namespace

void ZipWriter::add(const std::string& name, std::string_view content, bool deflated) {
    std::string packed;
    if (deflated) packed = deflate_bytes(content);
    std::string_view stored = deflated ? std::string_view(packed) : content;
    Entry entry{name, sink_.written(), stored.size(), content.size(), crc32_of(content), deflated};
    bool large = entry.stored >= kMany || entry.size >= kMany;
    RecordWriter header;
    header.u32(kLocal).u16(large ? 45 : 20).u16(kUtf8).u16(deflated ? 8 : 0).u16(0).u16(kEarliestDate);
    header.u32(entry.checksum).u32(large ? kMany : entry.stored).u32(large ? kMany : entry.size);
    header.u16(name.size()).u16(large ? 20 : 0).text(name);
    if (large) header.u16(1).u16(16).u64(entry.size).u64(entry.stored);
    sink_.write(header.bytes());
    sink_.write(stored);
    entries_.push_back(std::move(entry));
}

void ZipWriter::finish() {
    uint64_t start = sink_.written();
    for (const Entry& e : entries_) {
        RecordWriter extra;
        if (e.size >= kMany) extra.u64(e.size);
        if (e.stored >= kMany) extra.u64(e.stored);
        if (e.offset >= kMany) extra.u64(e.offset);
        size_t extra_size = extra.bytes().empty() ? 0 : extra.bytes().size() + 4;
        RecordWriter record;
        record.u32(kCentral).u16(45).u16(extra_size ? 45 : 20).u16(kUtf8).u16(e.deflated ? 8 : 0).u16(0);
        record.u16(kEarliestDate).u32(e.checksum).u32(clipped(e.stored)).u32(clipped(e.size));
        record.u16(e.name.size()).u16(extra_size).u16(0).u16(0).u16(0).u32(0).u32(clipped(e.offset)).text(e.name);
        if (extra_size) record.u16(1).u16(extra_size - 4).text(extra.bytes());
        sink_.write(record.bytes());
    }
    uint64_t end = sink_.written(), size = end - start, count = entries_.size();
    RecordWriter record;
    if (count >= 0xffff || start >= kMany || size >= kMany) {
        record.u32(kEnd64)
            .u64(kEnd64Size - 12)
            .u16(45)
            .u16(45)
            .u32(0)
            .u32(0)
            .u64(count)
            .u64(count)
            .u64(size)
            .u64(start);
        record.u32(kLocator64).u32(0).u64(end).u32(1);
    }
    uint64_t short_count = std::min<uint64_t>(count, 0xffff);
    record.u32(kEnd).u16(0).u16(0).u16(short_count).u16(short_count).u32(clipped(size)).u32(clipped(start)).u16(0);
    sink_.write(record.bytes());
}

}  // namespace lunaria
