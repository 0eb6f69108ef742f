// Layout: u64 length of the header, the header in JSON, the data. The header maps names to {dtype, shape,
// data_offsets}; the ranges of the data must follow each other from 0 to the end of the file without a hole.
#include "core/io/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace lunaria {
namespace {

using nlohmann::json;
using Entry = SafetensorsFile::Entry;

constexpr uint64_t kLongestHeader = 100000000;  // the format's limit

struct SafetensorsType {
    std::string_view name;
    uint64_t bytes;
    DType dtype;
    bool supported;
};
constexpr SafetensorsType kSafetensorsTypes[] = {
    {"BOOL", 1, DType::boolean, true},   {"U8", 1, DType::u8, true},          {"I8", 1, DType::i8, true},
    {"I16", 2, DType::i16, true},        {"I32", 4, DType::i32, true},        {"I64", 8, DType::i64, true},
    {"F16", 2, DType::f16, true},        {"BF16", 2, DType::bf16, true},      {"F32", 4, DType::f32, true},
    {"F64", 8, DType::f64, true},        {"C64", 8, DType::c64, true},        {"C128", 16, DType::c128, true},
    {"U16", 2, DType::u16, true},        {"U32", 4, DType::u32, true},        {"U64", 8, DType::u64, true},
    {"F8_E5M2", 1, DType::f8e5m2, true}, {"F8_E4M3", 1, DType::f8e4m3, true}, {"F8_E8M0", 1, DType::u8, false}};

const SafetensorsType* type_of(std::string_view name) {
    for (const SafetensorsType& type : kSafetensorsTypes)
        if (type.name == name) return &type;
    return nullptr;
}

const SafetensorsType* type_of(DType dtype) {
    return std::find_if(std::begin(kSafetensorsTypes), std::end(kSafetensorsTypes),
                        [dtype](const SafetensorsType& type) { return type.supported && type.dtype == dtype; });
}

// Reads the header as a stream of events, so that nothing but the allowed structure is built: nesting deeper than an
// array in an object in the header is an error at once, and repeated keys are seen.
class HeaderReader final : public nlohmann::json_sax<json> {
  public:
    explicit HeaderReader(const Source& source) : source_(source) {}
    std::vector<Entry> entries;
    Metadata metadata;

    bool start_object(size_t) override {
        if (depth_ == 0) {
            depth_ = 1;
            return true;
        }
        if (depth_ != 1) fail("an object where none may be");
        depth_ = 2;
        in_metadata_ = name_ == "__metadata__";
        keys_.clear();
        if (!in_metadata_) {
            entries.emplace_back();
            entries.back().name = name_;
        }
        return true;
    }
    bool key(std::string& text) override {
        if (depth_ == 1) {
            if (!names_.insert(text).second) fail(str("the name ", quoted(text), " twice"));
            name_ = text;
        } else {
            key_ = text;
            if (!keys_.insert(text).second) fail(str("the key ", quoted(text), " twice in ", quoted(name_)));
        }
        return true;
    }
    bool end_object() override {
        if (depth_ == 2 && !in_metadata_)
            for (std::string_view needed : {"dtype", "shape", "data_offsets"})
                if (!keys_.contains(std::string(needed))) fail(str("no '", needed, "' for tensor ", quoted(name_)));
        --depth_;
        return true;
    }
    bool start_array(size_t) override {
        if (depth_ != 2 || in_metadata_ || (key_ != "shape" && key_ != "data_offsets"))
            fail("an array where none may be");
        depth_ = 3;
        numbers_.clear();
        return true;
    }
    bool end_array() override {
        depth_ = 2;
        Entry& entry = entries.back();
        if (key_ == "shape") {
            for (uint64_t n : numbers_) {
                if (n > static_cast<uint64_t>(INT64_MAX)) fail(str("a size beyond 63 bits for tensor ", quoted(name_)));
                entry.shape.push_back(static_cast<int64_t>(n));
            }
        } else {
            if (numbers_.size() != 2) fail(str("data_offsets that are not two numbers for tensor ", quoted(name_)));
            entry.begin = numbers_[0];
            entry.end = numbers_[1];
        }
        return true;
    }
    bool string(std::string& text) override {
        if (depth_ == 2 && in_metadata_)
            metadata.emplace_back(key_, text);
        else if (depth_ == 2 && key_ == "dtype")
            entries.back().dtype = text;
        else
            fail("a string where none may be");
        return true;
    }
    bool number_unsigned(uint64_t n) override {
        if (depth_ != 3) fail("a number where none may be");
        // A shape has at most eight axes; a long list is refused before it fills the memory.
        if (numbers_.size() >= 64) fail(str("more than 64 axes for tensor ", quoted(name_)));
        numbers_.push_back(n);
        return true;
    }
    bool number_integer(int64_t n) override { fail(str("the negative number ", n, " for tensor ", quoted(name_))); }
    bool number_float(double, const std::string& text) override {
        fail(str("the number ", text.substr(0, 40), ", where only whole numbers within 64 bits may be"));
    }
    bool null() override { fail("a null"); }
    bool boolean(bool) override { fail("a true or false"); }
    bool binary(json::binary_t&) override { fail("binary data"); }
    bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
        fail(str("a mistake in its JSON at byte ", position, " (cut off, or not UTF-8?)"));
    }

  private:
    [[noreturn]] void fail(std::string_view what) const {
        throw source_.error(str("corrupt: the safetensors header has ", what));
    }
    static std::string quoted(const std::string& text) { return "'" + text.substr(0, 60) + "'"; }

    const Source& source_;
    int depth_ = 0;
    bool in_metadata_ = false;
    std::string name_, key_;
    std::set<std::string> names_, keys_;
    std::vector<uint64_t> numbers_;
};

void check_entry(const Source& source, const Entry& entry) {
    auto refuse = [&](std::string_view what) {
        throw source.error(str("corrupt: tensor '", entry.name.substr(0, 60), "' has ", what));
    };
    const SafetensorsType* type = type_of(entry.dtype);
    if (!type) refuse(str("the unknown dtype '", entry.dtype.substr(0, 40), "'"));
    if (entry.begin > entry.end) refuse("data offsets in the wrong order");
    uint64_t bytes = type->bytes;
    bool overflow = false, empty = false;
    for (int64_t dim : entry.shape) {
        empty |= dim == 0;
        overflow |= __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes);
    }
    if (empty) bytes = 0;
    if (overflow && !empty) refuse("a shape that is too large: its size overflows 64 bits");
    if (bytes != entry.end - entry.begin)
        refuse(str("a shape that needs ", bytes, " bytes, but offsets for ", entry.end - entry.begin));
}

void check_ranges(const Source& source, std::vector<Entry>& entries, uint64_t data_size) {
    std::vector<const Entry*> order;
    for (const Entry& entry : entries) {
        check_entry(source, entry);
        order.push_back(&entry);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](auto* a, auto* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
    uint64_t at = 0;
    for (const Entry* entry : order) {
        if (entry->end > data_size)
            throw source.error(str("truncated or corrupt: tensor '", entry->name.substr(0, 60), "' ends at byte ",
                                   entry->end, " of the data, which has ", data_size));
        if (entry->begin != at)
            throw source.error(str("corrupt: the data of tensor '", entry->name.substr(0, 60), "' starts at ",
                                   entry->begin, " instead of ", at, ": tensors overlap or leave a hole"));
        at = entry->end;
    }
    if (at != data_size) throw source.error(str("corrupt: ", data_size - at, " bytes of the data belong to no tensor"));
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::unique_ptr<Source> source) : source_(std::move(source)) {
    const Source& file = *source_;
    if (file.size() < 9) throw file.error("is not a safetensors file: it is too short (truncated or empty)");
    uint64_t length;
    file.read(0, &length, sizeof length);
    char first;
    file.read(8, &first, 1);
    if (first != '{') throw file.error("is not a safetensors file: it has another format (no '{' at byte 8)");
    if (length > kLongestHeader)
        throw file.error(str("corrupt: a header of ", length, " bytes; at most ", kLongestHeader, " are allowed"));
    if (length > file.size() - 8)
        throw file.error(str("truncated: its header should have ", length, " bytes, ", file.size() - 8, " are there"));
    std::string text = file.text(8, static_cast<size_t>(length));
    HeaderReader reader(file);
    json::sax_parse(text, &reader);
    entries_ = std::move(reader.entries);
    metadata_ = std::move(reader.metadata);
    data_ = 8 + length;
    check_ranges(file, entries_, file.size() - data_);
    for (size_t i = 0; i < entries_.size(); ++i) places_.emplace(entries_[i].name, i);
}

void SafetensorsFile::map() {
    if (source_->size() == data_) return;
    mapping_ = Mapping::of(source_->name());
    if (mapping_->size() != source_->size()) throw source_->error("was changed while it was being read");
}

std::vector<std::string> SafetensorsFile::names() const {
    std::vector<std::string> names;
    for (const Entry& entry : entries_) names.push_back(entry.name);
    return names;
}

DType SafetensorsFile::dtype_of(const Entry& entry) const {
    const std::string name = source_->name() + ", tensor '" + entry.name + "'";
    const SafetensorsType* type = type_of(entry.dtype);
    if (!type->supported)
        throw file_error(name, str("has dtype ", entry.dtype, ", which tensors do not have"))
            .hint("convert it to one of BOOL, U8, I8, I16, I32, I64, F16, BF16, F32, F64, C64 before saving it");
    if (entry.shape.size() > kMaxRank)
        throw file_error(name, str("has ", entry.shape.size(), " axes; tensors have at most ", kMaxRank));
    return type->dtype;
}

Tensor SafetensorsFile::read(const Entry& entry) const {
    const std::string name = source_->name() + ", tensor '" + entry.name + "'";
    const DType dtype = dtype_of(entry);
    if (mapping_ && entry.end > entry.begin && dtype != DType::boolean)
        if (Tensor tensor = mapping_->tensor(dtype, checked_shape(name, entry.shape, size_of(dtype)),
                                             static_cast<size_t>(data_ + entry.begin)))
            return tensor;
    auto stream = plain_stream(*source_, name, data_ + entry.begin, entry.end - entry.begin);
    return read_elements(*stream, dtype, entry.shape);
}

Tensor SafetensorsFile::read(const std::string& name) const {
    const auto found = places_.find(name);
    if (found != places_.end()) return read(entries_[found->second]);
    throw source_->error(str("has no tensor named '", name, "' among its ", entries_.size()));
}

std::vector<NamedTensor> SafetensorsFile::read_all() const {
    std::vector<NamedTensor> tensors;
    for (const Entry& entry : entries_) tensors.emplace_back(entry.name, read(entry));
    return tensors;
}

void write_safetensors(Sink& sink, std::span<const NamedTensor> tensors, const Metadata& metadata) {
    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    for (const auto& [key, text] : metadata) header["__metadata__"][key] = text;
    uint64_t at = 0;
    std::set<std::string_view> names;
    for (const auto& [name, tensor] : tensors) {
        if (name == "__metadata__") throw file_error(sink.name(), "a tensor cannot be named '__metadata__'");
        if (!names.insert(name).second) throw file_error(sink.name(), str("two tensors are named '", name, "'"));
        const SafetensorsType* type = type_of(tensor.dtype());
        if (type == std::end(kSafetensorsTypes))
            throw dtype_error("write_safetensors",
                              str("'", name, "' is ", name_of(tensor.dtype()), ", which a .safetensors cannot hold"))
                .hint("a .ckpt can; or convert it, for example with x:astype(ms.int8)");
        uint64_t end = at + tensor.nbytes();
        // Pushed rather than assigned by key: looking a key up in an ordered object is linear.
        header.get_ref<nlohmann::ordered_json::object_t&>().emplace_back(
            name, nlohmann::ordered_json{{"dtype", type->name},
                                         {"shape", std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end())},
                                         {"data_offsets", {at, end}}});
        at = end;
    }
    std::string text;
    try {
        text = header.dump();
    } catch (const json::type_error&) {
        throw file_error(sink.name(), "a name or a metadata string is not valid UTF-8");
    }
    // The data starts at a multiple of eight, so that it can be mapped.
    text.append((8 - text.size() % 8) % 8, ' ');
    uint64_t length = text.size();
    sink.write(&length, sizeof length);
    sink.write(text);
    for (const auto& [name, tensor] : tensors) write_elements(sink, tensor);
}

void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors, const Metadata& metadata) {
    FileSink sink(path);
    write_safetensors(sink, tensors, metadata);
    sink.commit();
}

}  // namespace lunaria
