// Checkpoint { repeated Value value = 1 }, Value { string tag = 1; TensorProto tensor = 2; MapTensorProto map = 3 },
// TensorProto { repeated int64 dims = 1; string tensor_type = 2; bytes tensor_content = 3 }. An entry with the tag of
// the entry before continues its content. The checksum is "crc_num" and ten bytes, big-endian: CRC-32 of the bytes
// before.
#include "core/io/ckpt.h"

#include <algorithm>
#include <set>

#include "core/base/interrupt.h"
#include "core/io/protobuf.h"

namespace lunaria {
namespace {

constexpr std::string_view kMark = "crc_num";
constexpr uint64_t kTrailer = 17;
constexpr uint64_t kLargestPiece = uint64_t{512} << 20;
constexpr std::string_view kEncrypted("\xd8\x5e\x3a\x7f", 4);

struct CkptType {
    std::string_view name;
    DType dtype;
};
constexpr CkptType kCkptTypes[] = {
    {"Float32", DType::f32},         {"Float16", DType::f16},       {"Float64", DType::f64},
    {"BFloat16", DType::bf16},       {"Int8", DType::i8},           {"Int16", DType::i16},
    {"Int32", DType::i32},           {"Int64", DType::i64},         {"UInt8", DType::u8},
    {"Bool", DType::boolean},        {"Complex64", DType::c64},     {"UInt16", DType::u16},
    {"UInt32", DType::u32},          {"UInt64", DType::u64},        {"Complex128", DType::c128},
    {"Float8E4M3FN", DType::f8e4m3}, {"Float8E5M2", DType::f8e5m2}, {"Int4", DType::q4x2}};

// The fields of a message within a source. Small contents are read into memory, large ones stay in the file.
class Fields {
  public:
    Fields(const Source& source, uint64_t begin, uint64_t end) : source_(source), at_(begin), end_(end) {}

    bool next() {
        if (at_ == end_) return false;
        start_ = at_;
        const uint64_t key = varint();
        number = key >> 3;
        if (number == 0 || number > 0x1fffffff) fail(start_, str("there is no field number ", number));
        wire_ = static_cast<int>(key & 7);
        switch (wire_) {
            case 0:
                value_ = varint();
                return true;
            case 1:
                take(8);
                return true;
            case 2:
                take(varint());
                return true;
            case 5:
                take(4);
                return true;
            default:
                fail(start_, str("field ", number, " has the unknown kind ", wire_));
        }
    }

    Fields message() const { return {source_, expect_bytes().offset, content_.offset + content_.bytes}; }
    CkptFile::Piece bytes() const { return expect_bytes(); }
    std::string text() const {
        const CkptFile::Piece piece = expect_bytes();
        std::string text = source_.text(piece.offset, piece.bytes);
        if (!is_utf8(text) || text.find('\0') != std::string::npos)
            fail(start_, "a text is no UTF-8 or has a zero byte");
        return text;
    }
    // One number, or several that are packed.
    void integers(std::vector<int64_t>& list) const {
        if (wire_ == 0) return list.push_back(static_cast<int64_t>(value_));
        const CkptFile::Piece piece = expect_bytes();
        Fields packed(source_, piece.offset, piece.offset + piece.bytes);
        while (packed.at_ != packed.end_) list.push_back(static_cast<int64_t>(packed.varint()));
    }
    [[noreturn]] void fail(uint64_t offset, std::string_view what) const {
        throw source_.error(str("corrupt at offset ", offset, ": ", what));
    }
    uint64_t start() const { return start_; }
    uint64_t number = 0;

  private:
    const CkptFile::Piece& expect_bytes() const {
        if (wire_ != 2) fail(start_, str("field ", number, " is not of the kind that it must be"));
        return content_;
    }

    void take(uint64_t count) {
        if (count > end_ - at_)
            throw source_.error(str("truncated or corrupt at offset ", start_, ": field ", number, " has ", count,
                                    " bytes, but ", end_ - at_, " are left"));
        content_ = {at_, count};
        at_ += count;
    }

    uint64_t varint() {
        uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            if (at_ == end_) throw source_.error(str("truncated at offset ", at_, ": a number is cut off"));
            const auto byte = byte_at(at_++);
            if (shift == 63 && byte > 1) break;
            value |= static_cast<uint64_t>(byte & 0x7f) << shift;
            if (byte < 0x80) return value;
        }
        fail(start_, "a number is longer than 64 bits");
    }

    // Bytes come in small blocks, and one system call for each would take most of the time.
    unsigned char byte_at(uint64_t at) {
        if (at < block_at_ || at >= block_at_ + block_.size()) {
            constexpr uint64_t kBlock = 64;
            block_at_ = at;
            block_ = source_.text(at, std::min(kBlock, end_ - at));
        }
        return static_cast<unsigned char>(block_[at - block_at_]);
    }

    const Source& source_;
    uint64_t at_, end_, start_ = 0;
    int wire_ = 0;
    uint64_t value_ = 0;
    CkptFile::Piece content_;
    std::string block_;
    uint64_t block_at_ = 0;
};

void read_tensor(Fields tensor, CkptFile::Entry& entry) {
    bool has_content = false;
    while (tensor.next()) {
        if (tensor.number == 1) tensor.integers(entry.dims);
        if (tensor.number == 2) entry.type = tensor.text();
        if (tensor.number == 3) {
            if (has_content) tensor.fail(tensor.start(), "a tensor has two contents");
            has_content = true;
            entry.pieces.push_back(tensor.bytes());
        }
        if (entry.dims.size() > 64) tensor.fail(tensor.start(), "a tensor has more than 64 axes");
    }
    if (!has_content) entry.pieces.push_back({tensor.start(), 0});
    if (entry.type.empty()) tensor.fail(entry.offset, "a tensor has no type");
}

CkptFile::Entry read_entry(Fields value, uint64_t offset) {
    CkptFile::Entry entry;
    entry.offset = offset;
    bool has_tag = false, has_tensor = false;
    while (value.next()) {
        if (value.number == 1) {
            entry.name = value.text();
            has_tag = true;
        } else if (value.number == 2) {
            if (has_tensor) value.fail(value.start(), "an entry has two tensors");
            has_tensor = true;
            read_tensor(value.message(), entry);
        } else if (value.number == 3) {
            value.fail(value.start(), "the entry is a map of tensors, which is not read here");
        }
    }
    if (!has_tag || !has_tensor) value.fail(offset, "an entry has no name or no tensor");
    return entry;
}

uint32_t checksum_of(const Source& source, uint64_t end) {
    constexpr uint64_t kBlock = uint64_t{1} << 20;
    uint32_t sum = 0;
    for (uint64_t at = 0; at < end; at += kBlock) {
        poll_interrupt();
        sum = crc32_of(source.text(at, std::min(kBlock, end - at)), sum);
    }
    return sum;
}

// The end of the messages; compares the checksum.
uint64_t end_of_messages(const Source& source, CkptCheck check) {
    const uint64_t size = source.size();
    const bool present = size >= kTrailer && source.text(size - kTrailer, kMark.size()) == kMark;
    if (!present) {
        if (check == CkptCheck::required)
            throw source.error("has no checksum (crc): it was saved without, or is truncated");
        return size;
    }
    if (check == CkptCheck::never) return size - kTrailer;
    // Ten bytes, of which the last eight are the number.
    const std::string digits = source.text(size - kTrailer + kMark.size(), kTrailer - kMark.size());
    uint64_t stored = 0;
    for (size_t i = 2; i < digits.size(); ++i) stored = stored << 8 | static_cast<unsigned char>(digits[i]);
    if (digits[0] != 0 || digits[1] != 0) stored = UINT64_MAX;
    const uint32_t computed = checksum_of(source, size - kTrailer);
    if (stored != computed)
        throw source.error(str("corrupt: the checksum (crc) of the ", size - kTrailer, " bytes before offset ",
                               size - kTrailer, " is ", computed, ", but ", stored, " is stored"));
    return size - kTrailer;
}

// The stretches of an entry, one after the other.
class PieceStream final : public Stream {
  public:
    PieceStream(const Source& source, const CkptFile::Entry& entry)
        : Stream(str(source.name(), ": '", entry.name, "'")), source_(source), entry_(entry), left_(entry.bytes()) {}
    void read(void* to, size_t bytes) override {
        char* out = static_cast<char*>(to);
        while (bytes > 0) {
            if (piece_ == entry_.pieces.size()) throw error("truncated");
            const CkptFile::Piece& piece = entry_.pieces[piece_];
            const auto part = static_cast<size_t>(std::min<uint64_t>(bytes, piece.bytes - done_));
            source_.read(piece.offset + done_, out, part);
            out += part;
            bytes -= part;
            done_ += part;
            left_ -= part;
            if (done_ == piece.bytes) {
                ++piece_;
                done_ = 0;
            }
        }
    }
    uint64_t most() const override { return left_; }
    void finish() override {
        if (left_ > 0) throw error(str("corrupt: ", left_, " bytes are left over"));
    }

  private:
    const Source& source_;
    const CkptFile::Entry& entry_;
    size_t piece_ = 0;
    uint64_t done_ = 0, left_;
};

void append_utf8(std::string& text, uint32_t code) {
    if (code < 0x80) {
        text += static_cast<char>(code);
    } else if (code < 0x800) {
        text += static_cast<char>(0xc0 | code >> 6);
        text += static_cast<char>(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        text += static_cast<char>(0xe0 | code >> 12);
        text += static_cast<char>(0x80 | (code >> 6 & 0x3f));
        text += static_cast<char>(0x80 | (code & 0x3f));
    } else {
        text += static_cast<char>(0xf0 | code >> 18);
        text += static_cast<char>(0x80 | (code >> 12 & 0x3f));
        text += static_cast<char>(0x80 | (code >> 6 & 0x3f));
        text += static_cast<char>(0x80 | (code & 0x3f));
    }
}

// The code points of valid UTF-8 text, four bytes each.
std::string to_utf32(std::string_view text) {
    std::string result;
    for (size_t i = 0; i < text.size();) {
        const auto first = static_cast<unsigned char>(text[i]);
        const size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
        uint32_t code = length == 1 ? first : first & (0x7fU >> length);
        for (size_t k = 1; k < length; ++k) code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3f);
        for (int byte = 0; byte < 4; ++byte) result += static_cast<char>(code >> (8 * byte) & 0xff);
        i += length;
    }
    return result;
}

std::string varint_bytes(uint64_t value) {
    std::string bytes;
    do {
        bytes += static_cast<char>((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value != 0);
    return bytes;
}

// The start of a length-delimited field, up to its content.
std::string field_start(uint32_t field, uint64_t bytes) { return varint_bytes(field << 3 | 2) + varint_bytes(bytes); }

// Passes bytes on and adds them to a checksum.
class Summed {
  public:
    Summed(Sink& sink, bool summed) : sink_(sink), summed_(summed) {}
    void write(std::string_view bytes) {
        if (summed_) sum_ = crc32_of(bytes, sum_);
        sink_.write(bytes);
    }
    uint32_t sum() const { return sum_; }

  private:
    Sink& sink_;
    bool summed_;
    uint32_t sum_ = 0;
};

void write_piece(Summed& out, const std::string& name, std::span<const int64_t> dims, std::string_view type,
                 std::string_view content) {
    std::string tensor;
    for (int64_t size : dims) tensor += varint_bytes(1 << 3) + varint_bytes(static_cast<uint64_t>(size));
    tensor += field_start(2, type.size());
    tensor += type;
    tensor += field_start(3, content.size());
    const uint64_t tensor_bytes = tensor.size() + content.size();
    const std::string tag = field_start(1, name.size()) + name, head = field_start(2, tensor_bytes);
    out.write(field_start(1, tag.size() + head.size() + tensor_bytes) + tag + head + tensor);
    out.write(content);
}

void write_value(Summed& out, const std::string& name, std::span<const int64_t> dims, std::string_view type,
                 std::string_view content) {
    do {
        const std::string_view piece = content.substr(0, kLargestPiece);
        write_piece(out, name, dims, type, piece);
        content.remove_prefix(piece.size());
    } while (!content.empty());
}

}  // namespace

uint64_t CkptFile::Entry::bytes() const {
    uint64_t sum = 0;
    for (const Piece& piece : pieces) sum += piece.bytes;
    return sum;
}

CkptFile::CkptFile(std::unique_ptr<Source> source, CkptCheck check) : source_(std::move(source)) {
    if (source_->size() == 0) throw source_->error("is empty, not a checkpoint");
    if (source_->size() >= 4 && source_->text(0, 4) == kEncrypted)
        throw source_->error("is an encrypted checkpoint, which is not read here");
    if (source_->text(0, 1) != "\x0a")
        throw source_->error("has an unknown format: a checkpoint (.ckpt) begins with its first tensor");
    Fields fields(*source_, 0, end_of_messages(*source_, check));
    while (fields.next()) {
        poll_interrupt();
        if (fields.number == 1) add(read_entry(fields.message(), fields.start()));
    }
    if (entries_.empty()) throw source_->error("has no tensors: it is not a checkpoint");
}

void CkptFile::add(Entry entry) {
    if (!entries_.empty() && entries_.back().name == entry.name) {
        Entry& last = entries_.back();
        if (last.dims != entry.dims || last.type != entry.type)
            throw source_->error(str("corrupt at offset ", entry.offset, ": '", entry.name,
                                     "' goes on with another shape or type than it began with"));
        last.pieces.insert(last.pieces.end(), entry.pieces.begin(), entry.pieces.end());
        return;
    }
    if (!places_.emplace(entry.name, entries_.size()).second)
        throw source_->error(str("corrupt at offset ", entry.offset, ": '", entry.name, "' is there twice"));
    entries_.push_back(std::move(entry));
}

std::vector<std::string> CkptFile::names() const {
    std::vector<std::string> list;
    for (const Entry& entry : entries_) list.push_back(entry.name);
    return list;
}

CkptValue CkptFile::read(const Entry& entry) const {
    PieceStream stream(*source_, entry);
    if (entry.type == "str") {
        std::string units(entry.bytes(), '\0'), text;
        stream.read(units.data(), units.size());
        if (units.size() % 4 != 0) throw stream.error("corrupt: the text is not of whole letters");
        for (size_t i = 0; i < units.size(); i += 4) {
            uint32_t code = 0;
            for (size_t k = 0; k < 4; ++k)
                code |= static_cast<uint32_t>(static_cast<unsigned char>(units[i + k])) << (8 * k);
            if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
                throw stream.error("corrupt: the text has a letter that does not exist");
            append_utf8(text, code);
        }
        return text;
    }
    const auto* type = std::ranges::find(kCkptTypes, entry.type, &CkptType::name);
    if (type == std::end(kCkptTypes))
        throw stream.error(str("has the type '", entry.type, "', which tensors do not have"));
    std::vector<int64_t> dims = entry.dims;
    // Old files write scalars without a shape.
    if (dims.size() == 1 && dims[0] == 0 && entry.bytes() == size_of(type->dtype)) dims.clear();
    Tensor tensor = read_elements(stream, type->dtype, dims);
    stream.finish();
    return tensor;
}

CkptValue CkptFile::read(const std::string& name) const {
    const auto found = places_.find(name);
    if (found == places_.end()) throw source_->error(str("has no tensor '", name, "'"));
    return read(entries_[found->second]);
}

std::vector<NamedCkptValue> CkptFile::read_all() const {
    std::vector<NamedCkptValue> values;
    for (const Entry& entry : entries_) values.emplace_back(entry.name, read(entry));
    return values;
}

void write_ckpt(Sink& sink, std::span<const NamedCkptValue> values, bool checksum) {
    std::set<std::string_view> names;
    for (const auto& [name, value] : values) {
        if (!is_utf8(name) || name.find('\0') != std::string::npos)
            throw value_error("write_ckpt", str("the name '", name, "' is no UTF-8 or has a zero byte"));
        if (!names.insert(name).second) throw value_error("write_ckpt", str("the name '", name, "' is given twice"));
        const std::string* text = std::get_if<std::string>(&value);
        if (text && !is_utf8(*text)) throw value_error("write_ckpt", str("the text '", name, "' is no UTF-8"));
    }
    Summed out(sink, checksum);
    for (const auto& [name, value] : values) {
        if (const std::string* text = std::get_if<std::string>(&value)) {
            const int64_t none[] = {0};
            write_value(out, name, none, "str", to_utf32(*text));
            continue;
        }
        const Tensor dense = std::get<Tensor>(value).contiguous().to_host();
        const auto* type = std::ranges::find(kCkptTypes, dense.dtype(), &CkptType::dtype);
        if (type == std::end(kCkptTypes))
            throw dtype_error("write_ckpt",
                              str("'", name, "' is ", name_of(dense.dtype()), ", which a .ckpt cannot hold"));
        const std::vector<int64_t> dims(dense.shape().begin(), dense.shape().end());
        write_value(out, name, dims, type->name, {static_cast<const char*>(dense.raw()), dense.nbytes()});
    }
    if (!checksum) return;
    std::string trailer(kMark);
    for (int byte = 9; byte >= 0; --byte) trailer += static_cast<char>(byte < 4 ? out.sum() >> (8 * byte) & 0xff : 0);
    sink.write(trailer);
}

void write_ckpt(const std::string& path, std::span<const NamedCkptValue> values, bool checksum) {
    FileSink sink(path);
    write_ckpt(sink, values, checksum);
    sink.commit();
}

}  // namespace lunaria
