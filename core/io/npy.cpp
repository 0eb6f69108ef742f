// The header of an .npy file is a Python dictionary as text. We read exactly the three keys that the format has with a
// grammar of their literals: nothing in a file is ever evaluated.
#include "core/io/npy.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace lunaria {
namespace {

// NumPy's own limit.
constexpr size_t kLongestHeader = 10000;

struct Header {
    std::optional<std::string> descr;
    std::optional<bool> fortran;
    std::optional<std::vector<int64_t>> shape;
};

class HeaderParser {
  public:
    HeaderParser(Stream& stream, std::string_view text) : stream_(stream), rest_(text) {}

    Header parse() {
        Header header;
        expect('{');
        while (!accept('}')) {
            std::string key = quoted();
            expect(':');
            if (key == "descr" && !header.descr)
                header.descr = descr();
            else if (key == "fortran_order" && !header.fortran)
                header.fortran = boolean();
            else if (key == "shape" && !header.shape)
                header.shape = shape();
            else
                fail(str("an unknown or repeated key '", key, "'"));
            if (!accept(',')) {
                expect('}');
                break;
            }
        }
        skip_space();
        if (!rest_.empty()) fail("text after the dictionary");
        if (!header.descr) fail("no 'descr'");
        if (!header.fortran) fail("no 'fortran_order'");
        if (!header.shape) fail("no 'shape'");
        return header;
    }

  private:
    [[noreturn]] void fail(std::string_view what) const {
        throw stream_.error(str("corrupt: the header of the .npy file has ", what));
    }
    void skip_space() {
        while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t' || rest_[0] == '\r'))
            rest_.remove_prefix(1);
    }
    bool accept(char c) {
        skip_space();
        if (rest_.empty() || rest_[0] != c) return false;
        rest_.remove_prefix(1);
        return true;
    }
    void expect(char c) {
        if (!accept(c)) fail(str("no '", c, "' where one must be"));
    }
    bool accept_word(std::string_view word) {
        skip_space();
        if (!rest_.starts_with(word)) return false;
        rest_.remove_prefix(word.size());
        return true;
    }
    std::string quoted() {
        char quote = accept('\'') ? '\'' : '"';
        if (quote == '"') expect('"');
        size_t end = rest_.find(quote);
        if (end == std::string_view::npos) fail("a string without an end");
        std::string text(rest_.substr(0, end));
        if (text.find('\\') != std::string::npos) fail("a string with an escape in it");
        rest_.remove_prefix(end + 1);
        return text;
    }
    std::string descr() {
        skip_space();
        if (rest_.starts_with('['))
            throw stream_.error("holds records (a structured dtype), which tensors cannot represent")
                .hint(
                    "save each field as an array of its own: np.savez(\"out.npz\", **{n: a[n] for n in "
                    "a.dtype.names})");
        return quoted();
    }
    bool boolean() {
        if (accept_word("True")) return true;
        if (!accept_word("False")) fail("a 'fortran_order' that is neither True nor False");
        return false;
    }
    std::vector<int64_t> shape() {
        std::vector<int64_t> dims;
        expect('(');
        while (!accept(')')) {
            skip_space();
            int64_t dim = 0;
            auto [end, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), dim);
            if (code == std::errc::result_out_of_range) fail("a size that is too large for 64 bits");
            if (code != std::errc()) fail("a 'shape' that is not a tuple of integers");
            rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
            if (rest_.starts_with('L')) rest_.remove_prefix(1);  // Python 2 wrote long integers so
            dims.push_back(dim);
            if (accept(',')) continue;
            if (!accept(')')) fail("a 'shape' that is not a tuple of integers");
            break;
        }
        return dims;
    }

    Stream& stream_;
    std::string_view rest_;
};

struct Element {
    DType dtype;
    bool big_endian;
    // The bytes of a character and of the whole text; 0: the dtype is a number.
    size_t character = 0, width = 0;
};

constexpr std::pair<std::string_view, DType> kNpyTypes[] = {
    {"b1", DType::boolean}, {"u1", DType::u8},  {"i1", DType::i8},  {"u2", DType::u16},  {"i2", DType::i16},
    {"u4", DType::u32},     {"i4", DType::i32}, {"u8", DType::u64}, {"i8", DType::i64},  {"f2", DType::f16},
    {"f4", DType::f32},     {"f8", DType::f64}, {"c8", DType::c64}, {"c16", DType::c128}};

// "<U5", five characters of four bytes, or "|S5", five bytes.
std::optional<Element> text_of(char order, std::string_view kind) {
    if (kind.empty() || (kind[0] != 'U' && kind[0] != 'S')) return std::nullopt;
    uint32_t length = 0;
    auto [end, code] = std::from_chars(kind.data() + 1, kind.data() + kind.size(), length);
    if (code != std::errc() || end != kind.data() + kind.size() || length > 1 << 28) return std::nullopt;
    const size_t character = kind[0] == 'U' ? 4 : 1;
    return Element{DType::u8, order == '>', character, length * character};
}

void append_character(Stream& stream, std::string& text, uint32_t c) {
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) throw stream.error(str("corrupt: ", c, " is no character"));
    const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (c >> shift & 0x3F)); };
    if (c < 0x80) {
        text += static_cast<char>(c);
    } else if (c < 0x800) {
        text += static_cast<char>(0xC0 | c >> 6);
        tail(0);
    } else if (c < 0x10000) {
        text += static_cast<char>(0xE0 | c >> 12);
        tail(6), tail(0);
    } else {
        text += static_cast<char>(0xF0 | c >> 18);
        tail(12), tail(6), tail(0);
    }
}

std::string next_text(Stream& stream, const Element& element) {
    std::string bytes(element.width, '\0');
    stream.read(bytes.data(), bytes.size());
    std::string text;
    if (element.character == 1) {
        text = std::move(bytes);
    } else {
        for (size_t at = 0; at < bytes.size(); at += 4) {
            uint32_t c = 0;
            for (size_t i = 0; i < 4; ++i)
                c = c << 8 | static_cast<uint8_t>(bytes[at + (element.big_endian ? i : 3 - i)]);
            append_character(stream, text, c);
        }
    }
    text.resize(text.find_last_not_of('\0') + 1);
    return text;
}

// Texts along the axes from this one on, with neighbours `step` texts apart on the last axis, or on the first.
Value nested(std::span<const int64_t> dims, const std::vector<std::string>& texts, int64_t at, int64_t step,
             bool fortran) {
    if (dims.empty()) return Value(std::string_view(texts[static_cast<size_t>(at)]));
    int64_t apart = step;
    if (!fortran)
        for (int64_t size : dims.subspan(1)) apart *= size;
    std::vector<Value> items;
    for (int64_t i = 0; i < dims[0]; ++i)
        items.push_back(nested(dims.subspan(1), texts, at + i * apart, fortran ? step * dims[0] : step, fortran));
    return Value::list(std::move(items));
}

Value read_texts(Stream& stream, const Element& element, std::span<const int64_t> dims, bool fortran) {
    const Shape shape = checked_shape(stream.name(), dims, std::max<size_t>(element.width, 1));
    const auto count = static_cast<uint64_t>(shape.size());
    // Texts without characters take no bytes, so their number needs a bound of its own.
    if (count * element.width > stream.most() || count > uint64_t{1} << 26)
        throw stream.error(str("truncated or corrupt: ", count, " texts of ", element.width, " bytes cannot be there"));
    std::vector<std::string> texts;
    for (uint64_t i = 0; i < count; ++i) texts.push_back(next_text(stream, element));
    stream.finish();
    return count == 0 ? Value::list({}) : nested(dims, texts, 0, 1, fortran);
}

Element element_of(Stream& stream, const std::string& descr) {
    char order = descr.empty() ? '?' : descr[0];
    std::string_view kind = std::string_view(descr).substr(descr.empty() ? 0 : 1);
    if (std::string_view("<>|=").find(order) != std::string_view::npos)
        for (auto [name, dtype] : kNpyTypes)
            if (name == kind) return {dtype, order == '>'};
    if (std::optional<Element> text = text_of(order, kind)) return *text;
    if (kind.starts_with('O'))
        throw stream.error("holds Python objects (dtype object), which are pickles and could run any code: refused")
            .hint("in Python, save an array of numbers: np.save(file, a.astype(\"float32\"))");
    if (kind == "f16" || kind == "c32")
        throw stream.error(str("has dtype '", descr, "', which tensors do not have"))
            .hint("in Python, convert it first, for example with a.astype(\"float64\") or \"complex128\"");
    throw stream.error(str("has dtype '", descr.substr(0, 40), "', which is not supported"))
        .hint(
            "supported are bool, integers of 8 to 64 bits, float16, float32, float64, complex64, complex128 and texts; "
            "dates become integers with a.astype(\"int64\")");
}

std::string descr_of(Sink& sink, DType dtype) {
    for (auto [name, type] : kNpyTypes)
        if (type == dtype) return (size_of(dtype) == 1 ? "|" : "<") + std::string(name);
    throw file_error(sink.name(), str("a ", name_of(dtype), " tensor cannot be stored as .npy: NumPy lacks the type"))
        .hint("cast it to float32, or save it as .safetensors");
}

}  // namespace

Value read_npy_value(Stream& stream) {
    char start[8];
    if (stream.most() < 10) throw stream.error("is not an .npy file: it is too short (truncated or empty)");
    stream.read(start, sizeof start);
    if (std::string_view(start, 6) != kNpyMagic)
        throw stream.error("is not an .npy file: it has another format (no \\x93NUMPY at its start)");
    int major = start[6], minor = start[7];
    if (major < 1 || major > 3 || minor != 0)
        throw stream.error(str("has version ", major, ".", minor, " of the .npy format; 1.0, 2.0 and 3.0 are known"));
    uint8_t length[4] = {};
    stream.read(length, major == 1 ? 2 : 4);
    uint32_t bytes = length[0] | length[1] << 8 | length[2] << 16 | static_cast<uint32_t>(length[3]) << 24;
    if (bytes > stream.most())
        throw stream.error(str("truncated: its header should have ", bytes, " bytes, ", stream.most(), " are there"));
    if (bytes > kLongestHeader)
        throw stream.error(str("corrupt: its header has ", bytes, " bytes; at most ", kLongestHeader, " are allowed"));
    std::string text(bytes, '\0');
    stream.read(text.data(), text.size());

    Header header = HeaderParser(stream, text).parse();
    Element element = element_of(stream, *header.descr);
    std::vector<int64_t>& dims = *header.shape;
    if (dims.size() > kMaxRank) throw stream.error(str("has ", dims.size(), " axes; tensors have at most ", kMaxRank));
    if (element.character) return read_texts(stream, element, dims, *header.fortran);
    // Fortran order is row-major order of the reversed shape.
    if (*header.fortran) std::reverse(dims.begin(), dims.end());
    Tensor tensor = read_elements(stream, element.dtype, dims, element.big_endian);
    stream.finish();
    if (!*header.fortran || tensor.rank() < 2) return tensor;
    Shape shape = tensor.shape();
    Strides strides = tensor.strides();
    std::reverse(&shape[0], &shape[0] + shape.rank());
    std::reverse(&strides[0], &strides[0] + strides.rank());
    return tensor.view(shape, strides).contiguous();
}

Value read_npy_value(const Source& source) { return read_npy_value(*plain_stream(source)); }

Tensor read_npy(Stream& stream) {
    Value value = read_npy_value(stream);
    if (!value.is_tensor()) throw stream.error("holds texts, which tensors cannot represent");
    return value.tensor();
}

Tensor read_npy(const Source& source) { return read_npy(*plain_stream(source)); }
Tensor read_npy(const std::string& path) { return read_npy(*open_source(path)); }

void write_npy(Sink& sink, const Tensor& tensor) {
    std::string header = "{'descr': '" + descr_of(sink, tensor.dtype()) + "', 'fortran_order': False, 'shape': (";
    for (int i = 0; i < tensor.rank(); ++i) header += (i ? ", " : "") + std::to_string(tensor.dim(i));
    header += tensor.rank() == 1 ? ",), }" : "), }";
    // The data starts at a multiple of 64 bytes; the header ends with a newline.
    size_t start = kNpyMagic.size() + 4;
    header.append(63 - (start + header.size()) % 64, ' ');
    header += '\n';
    sink.write(kNpyMagic);
    const char version_and_length[4] = {1, 0, static_cast<char>(header.size() & 0xff),
                                        static_cast<char>(header.size() >> 8)};
    sink.write(version_and_length, sizeof version_and_length);
    sink.write(header);
    write_elements(sink, tensor);
}

void write_npy(const std::string& path, const Tensor& tensor) {
    FileSink sink(path);
    write_npy(sink, tensor);
    sink.commit();
}

}  // namespace lunaria
