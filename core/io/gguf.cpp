// Layout: "GGUF", u32 version, u64 number of tensors, u64 number of values, the values (key, u32 type, value), the
// tensors (name, u32 number of axes, u64 sizes with the innermost first, u32 type, u64 offset), zeros up to a multiple
// of the alignment, the data. A text is a u64 length and its bytes.
#include "core/io/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

namespace lunaria {
namespace {

using Entry = GgufFile::Entry;

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kDataAlignment = 32, kMostAlignment = 1 << 20;
constexpr uint32_t kMostAxes = 4;  // the format's limit

struct TensorTypeName {
    uint32_t code;
    std::string_view name;
    DType dtype;
    std::string_view form;  // of blocks; empty: numbers of `dtype`
};
constexpr TensorTypeName kGgufTypes[] = {
    {0, "F32", DType::f32, ""},     {1, "F16", DType::f16, ""},      {2, "Q4_0", DType::u8, "q4_0"},
    {8, "Q8_0", DType::u8, "q8_0"}, {12, "Q4_K", DType::u8, "q4_k"}, {14, "Q6_K", DType::u8, "q6_k"},
    {24, "I8", DType::i8, ""},      {25, "I16", DType::i16, ""},     {26, "I32", DType::i32, ""},
    {27, "I64", DType::i64, ""},    {28, "F64", DType::f64, ""},     {30, "BF16", DType::bf16, ""}};
// Types of files that are opened, whose tensors are refused when they are asked for.
constexpr std::pair<uint32_t, std::string_view> kOtherTypes[] = {
    {3, "Q4_1"}, {6, "Q5_0"}, {7, "Q5_1"}, {9, "Q8_1"}, {10, "Q2_K"}, {11, "Q3_K"}, {13, "Q5_K"}, {15, "Q8_K"}};

// Bytes of an item; 0 for texts, whose length varies.
size_t width_of(GgufValue::Type type) {
    switch (type) {
        case GgufValue::Type::u8:
        case GgufValue::Type::i8:
        case GgufValue::Type::boolean:
            return 1;
        case GgufValue::Type::u16:
        case GgufValue::Type::i16:
            return 2;
        case GgufValue::Type::u32:
        case GgufValue::Type::i32:
        case GgufValue::Type::f32:
            return 4;
        case GgufValue::Type::u64:
        case GgufValue::Type::i64:
        case GgufValue::Type::f64:
            return 8;
        default:
            return 0;
    }
}

template <class T>
T number_at(const char* at) {
    T x;
    std::memcpy(&x, at, sizeof x);
    return x;
}

template <class T>
void put(std::string& bytes, T x) {
    bytes.append(reinterpret_cast<const char*>(&x), sizeof x);
}

void put_text(std::string& bytes, std::string_view text) {
    put<uint64_t>(bytes, text.size());
    bytes += text;
}

Value item_at(GgufValue::Type type, const char* at) {
    auto integer = [](auto x) { return Value(static_cast<int64_t>(x)); };
    switch (type) {
        case GgufValue::Type::u8:
            return integer(number_at<uint8_t>(at));
        case GgufValue::Type::i8:
            return integer(number_at<int8_t>(at));
        case GgufValue::Type::u16:
            return integer(number_at<uint16_t>(at));
        case GgufValue::Type::i16:
            return integer(number_at<int16_t>(at));
        case GgufValue::Type::u32:
            return integer(number_at<uint32_t>(at));
        case GgufValue::Type::i32:
            return integer(number_at<int32_t>(at));
        case GgufValue::Type::u64:
            return integer(number_at<uint64_t>(at));
        case GgufValue::Type::i64:
            return integer(number_at<int64_t>(at));
        case GgufValue::Type::f32:
            return Value(static_cast<double>(number_at<float>(at)));
        case GgufValue::Type::f64:
            return Value(number_at<double>(at));
        default:
            return Value(*at != 0);
    }
}

// The header's bytes in order, by large reads.
class Cursor {
  public:
    explicit Cursor(const Source& source) : source_(source) {}

    uint64_t at() const { return at_; }
    uint64_t left() const { return source_.size() - at_; }
    [[noreturn]] void fail(uint64_t where, std::string_view what) const {
        throw source_.error(str("corrupt at byte ", where, ": ", what));
    }
    void read(void* to, size_t bytes) {
        need(bytes);
        char* out = static_cast<char*>(to);
        while (bytes > 0) {
            if (at_ >= begin_ + window_.size() || at_ < begin_) refill();
            const size_t from = static_cast<size_t>(at_ - begin_), count = std::min(bytes, window_.size() - from);
            std::memcpy(out, window_.data() + from, count);
            out += count;
            bytes -= count;
            at_ += count;
        }
    }
    template <class T>
    T number() {
        T x;
        read(&x, sizeof x);
        return x;
    }
    std::string text(uint64_t bytes) {
        need(bytes);
        std::string result(static_cast<size_t>(bytes), '\0');
        read(result.data(), result.size());
        return result;
    }
    std::string text() {
        const uint64_t where = at_, bytes = number<uint64_t>();
        if (bytes > left()) fail(where, str("a text of ", bytes, " bytes; ", left(), " are there"));
        return text(bytes);
    }

  private:
    void need(uint64_t bytes) const {
        if (bytes > left())
            throw source_.error(
                str("truncated: ", bytes, " bytes are expected at byte ", at_, ", ", left(), " are there"));
    }
    void refill() {
        begin_ = at_;
        window_ = source_.text(begin_, static_cast<size_t>(std::min<uint64_t>(uint64_t{1} << 20, left())));
    }

    const Source& source_;
    uint64_t at_ = 0, begin_ = 0;
    std::string window_;
};

GgufValue read_value(Cursor& in) {
    auto type_here = [&in] {
        const uint64_t where = in.at();
        const uint32_t code = in.number<uint32_t>();
        if (code > static_cast<uint32_t>(GgufValue::Type::f64))
            in.fail(where, str("a value of the unknown type ", code));
        return static_cast<GgufValue::Type>(code);
    };
    GgufValue value;
    value.type = type_here();
    if (value.type == GgufValue::Type::array) {
        value.is_array = true;
        const uint64_t where = in.at();
        value.type = type_here();
        if (value.type == GgufValue::Type::array) in.fail(where, "an array of arrays");
        value.count = in.number<uint64_t>();
        const uint64_t each = std::max<uint64_t>(width_of(value.type), value.type == GgufValue::Type::string ? 8 : 1);
        if (value.count > in.left() / each)
            in.fail(where, str("an array of ", value.count, " items; ", in.left(), " bytes are there"));
    }
    if (value.type != GgufValue::Type::string) {
        value.bytes = in.text(value.count * width_of(value.type));
    } else if (!value.is_array) {
        value.bytes = in.text();
    } else {
        for (uint64_t i = 0; i < value.count; ++i) put_text(value.bytes, in.text());
    }
    return value;
}

std::string quoted(std::string_view name) { return str("'", name.substr(0, 60), "'"); }

Entry read_gguf_entry(Cursor& in) {
    Entry entry;
    entry.name = in.text();
    const uint64_t where = in.at();
    const uint32_t axes = in.number<uint32_t>();
    if (axes > kMostAxes)
        in.fail(where, str("tensor ", quoted(entry.name), " has ", axes, " axes, at most ", kMostAxes, " are allowed"));
    uint64_t count = 1;
    bool overflow = false, empty = false;
    for (uint32_t i = 0; i < axes; ++i) {
        const uint64_t size = in.number<uint64_t>();
        empty |= size == 0;
        overflow |= size > INT64_MAX / 8 || __builtin_mul_overflow(count, size, &count);
        entry.shape.insert(entry.shape.begin(), static_cast<int64_t>(size));
    }
    if (overflow || count > INT64_MAX / 8)
        in.fail(where, str("tensor ", quoted(entry.name), " has a shape that is too large"));
    if (empty) count = 0;
    const uint32_t code = in.number<uint32_t>();
    entry.begin = in.number<uint64_t>();
    for (const TensorTypeName& type : kGgufTypes) {
        if (type.code != code) continue;
        entry.type = type.name;
        entry.dtype = type.dtype;
        entry.supported = true;
        entry.bytes = count * size_of(type.dtype);
        if (type.form.empty()) return entry;
        entry.form = find_block_form(type.form);
        const int64_t row = entry.shape.empty() ? 1 : entry.shape.back();
        if (row % entry.form->elements != 0)
            in.fail(where, str("tensor ", quoted(entry.name), " has rows of ", row, " numbers in blocks of ",
                               entry.form->elements));
        entry.bytes = static_cast<uint64_t>(entry.form->row_bytes(static_cast<int64_t>(count)));
        return entry;
    }
    for (const auto& [other, name] : kOtherTypes)
        if (other == code) entry.type = name;
    if (entry.type.empty()) entry.type = str("type ", code);
    return entry;
}

constexpr std::string_view kAlignmentKey = "general.alignment";

// Of the data, by the value of kAlignmentKey, which may be missing; 0: there is no such alignment.
uint64_t alignment_of(const GgufValue* value) {
    if (!value) return kDataAlignment;
    if (value->is_array || value->type != GgufValue::Type::u32) return 0;
    const uint64_t alignment = number_at<uint32_t>(value->bytes.data());
    return std::has_single_bit(alignment) && alignment <= kMostAlignment ? alignment : 0;
}

}  // namespace

void GgufValue::each(const std::function<void(const Value&)>& f) const {
    const char *at = bytes.data(), *const end = at + bytes.size();
    if (type == GgufValue::Type::string && !is_array) return f(Value(std::string_view(bytes)));
    while (at < end) {
        if (type == GgufValue::Type::string) {
            const auto length = static_cast<size_t>(number_at<uint64_t>(at));
            f(Value(std::string_view(at + sizeof(uint64_t), length)));
            at += sizeof(uint64_t) + length;
        } else {
            f(item_at(type, at));
            at += width_of(type);
        }
    }
}

GgufValue GgufValue::of(bool x) { return {GgufValue::Type::boolean, false, 1, std::string(1, x ? '\1' : '\0')}; }

GgufValue GgufValue::of(int64_t x) {
    GgufValue value;
    if (x >= 0 && x <= UINT32_MAX) {
        put<uint32_t>(value.bytes, static_cast<uint32_t>(x));
    } else {
        value.type = GgufValue::Type::i64;
        put<int64_t>(value.bytes, x);
    }
    return value;
}

GgufValue GgufValue::of(double x) {
    GgufValue value{GgufValue::Type::f32, false, 1, {}};
    put<float>(value.bytes, static_cast<float>(x));
    return value;
}

GgufValue GgufValue::of(std::string_view text) { return {GgufValue::Type::string, false, 1, std::string(text)}; }

void GgufValue::append(const Value& x) {
    ++count;
    if (type == GgufValue::Type::string)
        put_text(bytes, x.string());
    else if (type == GgufValue::Type::boolean)
        put<uint8_t>(bytes, x.boolean());
    else if (type == GgufValue::Type::i32)
        put<int32_t>(bytes, static_cast<int32_t>(x.integer()));
    else if (type == GgufValue::Type::i64)
        put<int64_t>(bytes, x.integer());
    else
        put<float>(bytes, static_cast<float>(x.number()));
}

GgufFile::GgufFile(const std::string& path, Contents contents) : GgufFile(open_source(path)) {
    if (contents != Contents::mapped || source_->size() == data_) return;
    mapping_ = Mapping::of(source_->name());
    if (mapping_->size() != source_->size()) throw source_->error("was changed while it was being read");
}

GgufFile::GgufFile(std::unique_ptr<Source> source) : source_(std::move(source)) {
    const Source& file = *source_;
    if (file.size() < 24) throw file.error("is not a GGUF file: it is too short (truncated or empty)");
    Cursor in(file);
    if (in.number<uint32_t>() != kMagic) throw file.error("is not a GGUF file: it does not begin with GGUF");
    const uint32_t version = in.number<uint32_t>();
    if (version != 2 && version != 3)
        throw file.error(version % 65536 == 0 ? "is a big-endian GGUF file, which is not supported"
                                              : str("is a GGUF file of version ", version, "; 2 and 3 are supported"));
    const uint64_t tensors = in.number<uint64_t>(), values = in.number<uint64_t>();
    constexpr uint64_t kLeastTensor = 8 + 4 + 4 + 8, kLeastValue = 8 + 4 + 1;
    if (tensors > in.left() / kLeastTensor) in.fail(8, str(tensors, " tensors in ", in.left(), " bytes"));
    if (values > in.left() / kLeastValue) in.fail(16, str(values, " values in ", in.left(), " bytes"));
    std::set<std::string, std::less<>> keys;
    for (uint64_t i = 0; i < values; ++i) {
        const uint64_t where = in.at();
        std::string key = in.text();
        if (!keys.insert(key).second) in.fail(where, str("the value ", quoted(key), " twice"));
        GgufValue value = read_value(in);
        metadata_.emplace_back(std::move(key), std::move(value));
    }
    for (uint64_t i = 0; i < tensors; ++i) {
        const uint64_t where = in.at();
        entries_.push_back(read_gguf_entry(in));
        if (!places_.emplace(entries_.back().name, entries_.size() - 1).second)
            in.fail(where, str("the tensor ", quoted(entries_.back().name), " twice"));
    }
    const uint64_t alignment = alignment_of(find(kAlignmentKey));
    if (alignment == 0) throw file.error(str("corrupt: ", kAlignmentKey, " is not a power of two"));
    data_ = std::min((in.at() + alignment - 1) / alignment * alignment, file.size());
    for (const Entry& entry : entries_)
        if (entry.begin % alignment != 0)
            throw file.error(str("corrupt: the data of tensor ", quoted(entry.name), " starts at ", entry.begin,
                                 " of the data, no multiple of ", alignment));
    check_ranges();
}

void GgufFile::check_ranges() {
    const uint64_t size = source_->size() - data_;
    std::vector<const Entry*> order;
    for (const Entry& entry : entries_) {
        if (entry.begin > size || entry.bytes > size - entry.begin)
            throw source_->error(str("truncated or corrupt: tensor ", quoted(entry.name), " has ", entry.bytes,
                                     " bytes from byte ", entry.begin, " of the data, which begins at byte ", data_,
                                     " and has ", size));
        if (entry.bytes > 0) order.push_back(&entry);
    }
    std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->begin < b->begin; });
    for (size_t i = 1; i < order.size(); ++i)
        if (order[i - 1]->begin + order[i - 1]->bytes > order[i]->begin)
            throw source_->error(str("corrupt: tensors ", quoted(order[i - 1]->name), " and ", quoted(order[i]->name),
                                     " overlap at byte ", data_ + order[i]->begin));
}

const Entry& GgufFile::entry(const std::string& name) const {
    const auto found = places_.find(name);
    if (found != places_.end()) return entries_[found->second];
    throw source_->error(str("has no tensor named '", name, "' among its ", entries_.size()));
}

const GgufValue* GgufFile::find(std::string_view key) const {
    for (const auto& [name, value] : metadata_)
        if (name == key) return &value;
    return nullptr;
}

Tensor GgufFile::read(const Entry& entry) const {
    const std::string name = source_->name() + ", tensor '" + entry.name + "'";
    if (!entry.supported)
        throw file_error(name, str("is in ", entry.type, ", which is not supported"))
            .hint("F32, F16, BF16, Q8_0, Q4_0, Q4_K and Q6_K are read");
    std::vector<int64_t> shape = entry.shape;
    if (entry.form && !shape.empty()) shape.back() = entry.form->row_bytes(shape.back());
    if (mapping_ && entry.bytes > 0)
        if (Tensor tensor = mapping_->tensor(entry.dtype, checked_shape(name, shape, size_of(entry.dtype)),
                                             static_cast<size_t>(data_ + entry.begin)))
            return tensor;
    auto stream = plain_stream(*source_, name, data_ + entry.begin, entry.bytes);
    return read_elements(*stream, entry.dtype, shape);
}

namespace {

struct GgufLaid {
    const TensorTypeName* type;
    std::vector<int64_t> shape;  // of the numbers
    uint64_t bytes;
};

GgufLaid laid_out(const GgufTensor& t) {
    GgufLaid laid{nullptr, {t.tensor.shape().begin(), t.tensor.shape().end()}, t.tensor.nbytes()};
    auto refuse = [&t](std::string_view what) { return argument_error("save_gguf", str("'", t.name, "' ", what)); };
    if (laid.shape.size() > kMostAxes)
        throw refuse(str("has ", laid.shape.size(), " axes; the format has at most ", kMostAxes));
    for (const TensorTypeName& type : kGgufTypes)
        if (t.form ? type.form == t.form->name : type.form.empty() && type.dtype == t.tensor.dtype()) laid.type = &type;
    if (!laid.type)
        throw dtype_error("save_gguf", str("'", t.name, "' is ", name_of(t.tensor.dtype()),
                                           ", which a .gguf cannot hold without the name of its blocks' form"));
    if (!t.form) return laid;
    const bool in_blocks = t.tensor.dtype() == DType::u8;
    if (laid.shape.empty()) throw refuse("has no axes, but a form of blocks");
    int64_t& row = laid.shape.back();
    const int64_t unit = in_blocks ? t.form->bytes : t.form->elements;
    if (row % unit != 0)
        throw refuse(str("has rows of ", row, in_blocks ? " bytes" : " numbers", ", no multiple of the ", unit,
                         " of a block of ", t.form->name));
    if (in_blocks) {
        row = t.form->row_elements(row);
    } else {
        if (!t.form->encode) throw refuse(str("cannot be written as ", t.form->name, ": q8_0 and q4_0 are written"));
        if (!is_float(t.tensor.dtype()))
            throw refuse(str("is ", name_of(t.tensor.dtype()), ": floats are written in blocks"));
        laid.bytes = static_cast<uint64_t>(t.form->row_bytes(t.tensor.size()));
    }
    return laid;
}

void write_data(Sink& sink, const GgufTensor& t) {
    if (!t.form || t.tensor.dtype() == DType::u8) return write_elements(sink, t.tensor);
    // Rows lie one after the other and are whole blocks: all of them are one long row.
    const Tensor numbers = t.tensor.to_host().cast(DType::f32).contiguous();
    constexpr int64_t kAtOnce = 4096;
    std::vector<uint8_t> blocks(static_cast<size_t>(kAtOnce * t.form->bytes));
    const int64_t count = numbers.size() / t.form->elements;
    for (int64_t i = 0; i < count; i += kAtOnce) {
        const int64_t here = std::min(kAtOnce, count - i);
        t.form->encode(numbers.data<float>() + i * t.form->elements, here, blocks.data());
        sink.write(blocks.data(), static_cast<size_t>(here * t.form->bytes));
    }
}

void pad(Sink& sink, uint64_t alignment) {
    sink.write(std::string(static_cast<size_t>((alignment - sink.written() % alignment) % alignment), '\0'));
}

}  // namespace

void write_gguf(Sink& sink, std::span<const GgufTensor> tensors, const GgufMetadata& metadata) {
    // Data is aligned as the file says. Ours are multiples of 32; a file that was read may ask for more.
    const GgufValue* given = nullptr;
    std::string header;
    put<uint32_t>(header, kMagic);
    put<uint32_t>(header, 3);
    put<uint64_t>(header, tensors.size());
    put<uint64_t>(header, metadata.size());
    std::set<std::string_view> names;
    for (const auto& [key, value] : metadata) {
        if (!names.insert(key).second) throw file_error(sink.name(), str("two values are named '", key, "'"));
        put_text(header, key);
        if (value.is_array) put<uint32_t>(header, static_cast<uint32_t>(GgufValue::Type::array));
        put<uint32_t>(header, static_cast<uint32_t>(value.type));
        if (value.is_array || value.type == GgufValue::Type::string)
            put<uint64_t>(header, value.is_array ? value.count : value.bytes.size());
        header += value.bytes;
        if (key == kAlignmentKey) given = &value;
    }
    const uint64_t alignment = alignment_of(given);
    if (alignment == 0) throw file_error(sink.name(), str(kAlignmentKey, " is not a power of two"));
    names.clear();
    uint64_t at = 0;
    for (const GgufTensor& t : tensors) {
        if (!names.insert(t.name).second) throw file_error(sink.name(), str("two tensors are named '", t.name, "'"));
        const GgufLaid laid = laid_out(t);
        put_text(header, t.name);
        put<uint32_t>(header, static_cast<uint32_t>(laid.shape.size()));
        for (auto size = laid.shape.rbegin(); size != laid.shape.rend(); ++size)
            put<uint64_t>(header, static_cast<uint64_t>(*size));
        put<uint32_t>(header, laid.type->code);
        put<uint64_t>(header, at);
        at += (laid.bytes + alignment - 1) / alignment * alignment;
    }
    sink.write(header);
    pad(sink, alignment);
    for (const GgufTensor& t : tensors) {
        write_data(sink, t);
        pad(sink, alignment);
    }
}

void write_gguf(const std::string& path, std::span<const GgufTensor> tensors, const GgufMetadata& metadata) {
    FileSink sink(path);
    write_gguf(sink, tensors, metadata);
    sink.commit();
}

}  // namespace lunaria
