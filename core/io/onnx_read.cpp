#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/io/inside.h"
#include "core/io/onnx.h"
#include "core/io/protobuf.h"
#include "core/shape.h"

namespace lunaria::onnx {

namespace {

// TensorProto.DataType, with the names that dtypes have in Lua.
constexpr std::pair<int64_t, std::string_view> kTypes[] = {{1, "float32"},        {2, "uint8"},
                                                           {3, "int8"},           {4, "uint16"},
                                                           {5, "int16"},          {6, "int32"},
                                                           {7, "int64"},          {8, "string"},
                                                           {9, "bool"},           {10, "float16"},
                                                           {11, "float64"},       {12, "uint32"},
                                                           {13, "uint64"},        {14, "complex64"},
                                                           {15, "complex128"},    {16, "bfloat16"},
                                                           {17, "float8_e4m3fn"}, {18, "float8_e4m3fnuz"},
                                                           {19, "float8_e5m2"},   {20, "float8_e5m2fnuz"},
                                                           {21, "uint4"},         {22, "int4"},
                                                           {23, "float4_e2m1"},   {24, "float8_e8m0"},
                                                           {25, "uint2"},         {26, "int2"}};

// The elements of a TensorProto, wherever they are.
struct Contents {
    std::vector<int64_t> dims;
    int64_t type = 0;
    std::optional<std::string_view> raw;
    std::vector<float> floats;
    std::vector<double> doubles;
    std::vector<int64_t> int32s, int64s;  // 64-bit unsigned ones by their bits
    std::vector<std::pair<std::string, std::string>> external;
    bool is_external = false, has_strings = false, segmented = false;
};

class Reader {
  public:
    explicit Reader(const std::optional<std::string>& folder) : folder_(folder) {}

    Model model(ProtoReader p) {
        Model m;
        bool has_graph = false;
        while (p.next()) switch (p.field()) {
                case 1:
                    m.ir_version = p.integer();
                    break;
                case 2:
                    m.producer = p.text();
                    break;
                case 3:
                    m.producer_version = p.text();
                    break;
                case 7:
                    if (has_graph) p.fail("there are two graphs");
                    has_graph = true;
                    m.graph = graph(p.message());
                    break;
                case 8:
                    m.opsets.push_back(opset(p.message()));
                    break;
                case 25:
                    m.functions.push_back(function(p.message()));
                    break;
                default:
                    break;
            }
        if (!has_graph || m.opsets.empty()) throw file_error(p.file(), "is no ONNX file: there is no graph in it");
        return m;
    }

    NamedTensor tensor(ProtoReader p) {
        NamedTensor t;
        Contents c;
        while (p.next()) switch (p.field()) {
                case 1:
                    p.integers(c.dims);
                    break;
                case 2:
                    c.type = p.integer();
                    break;
                case 3:
                    c.segmented = true;
                    break;
                case 4:
                    p.floats(c.floats);
                    break;
                case 5:
                    p.integers(c.int32s);
                    break;
                case 6:
                    c.has_strings = true;
                    break;
                case 7:
                case 11:
                    p.integers(c.int64s);
                    break;
                case 8:
                    t.name = p.text();
                    break;
                case 9:
                    c.raw = p.bytes();
                    break;
                case 10:
                    p.doubles(c.doubles);
                    break;
                case 13:
                    c.external.push_back(entry(p.message()));
                    break;
                case 14:
                    c.is_external = p.integer() == 1;
                    break;
                default:
                    break;
            }
        t.value = elements(p, t.name, c);
        return t;
    }

    TypeEntry type(ProtoReader p) {
        TypeEntry t;
        while (p.next()) switch (p.field()) {
                case 1:
                    t.kind = TypeEntry::Kind::tensor;
                    tensor_type(p.message(), t);
                    break;
                case 4:
                case 9: {
                    t.kind = p.field() == 4 ? TypeEntry::Kind::sequence : TypeEntry::Kind::optional;
                    ProtoReader inner = p.message();
                    while (inner.next())
                        if (inner.field() == 1) t.inner.assign(1, type(inner.message()));
                    break;
                }
                case 5:
                    t.kind = TypeEntry::Kind::map;
                    break;
                case 8:
                    t.kind = TypeEntry::Kind::sparse;
                    break;
                default:
                    break;
            }
        return t;
    }

  private:
    static std::pair<std::string, std::string> entry(ProtoReader p) {
        std::pair<std::string, std::string> e;
        while (p.next()) {
            if (p.field() == 1) e.first = p.text();
            if (p.field() == 2) e.second = p.text();
        }
        return e;
    }

    static void tensor_type(ProtoReader p, TypeEntry& t) {
        while (p.next()) {
            if (p.field() == 1) t.element = p.integer();
            if (p.field() != 2) continue;
            t.shape.emplace();
            ProtoReader shape = p.message();
            while (shape.next()) {
                if (shape.field() != 1) continue;
                TypeEntry::Dim d;
                ProtoReader dim = shape.message();
                while (dim.next()) {
                    if (dim.field() == 1) d.size = dim.integer();
                    if (dim.field() == 2) d.name = dim.text();
                }
                t.shape->push_back(std::move(d));
            }
        }
    }

    static uint64_t number_of(const ProtoReader& p, const std::string& name, const std::string& text) {
        uint64_t n = 0;
        auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), n);
        if (code != std::errc() || end != text.data() + text.size())
            p.fail(str("tensor '", name, "' has the place '", text.substr(0, 40), "' in its file"));
        return n;
    }

    // The bytes of a tensor that lie in another file.
    void read_external(const ProtoReader& p, const std::string& name, const Contents& c, Tensor& t) {
        if (!folder_) throw file_error(p.file(), str("tensor '", name, "' is in another file, which is not read here"));
        std::string location;
        uint64_t offset = 0;
        std::optional<uint64_t> length;
        for (const auto& [key, value] : c.external) {
            if (key == "location") location = value;
            if (key == "offset") offset = number_of(p, name, value);
            if (key == "length") length = number_of(p, name, value);
        }
        if (!opened_ || location != opened_path_) {
            opened_ = open_inside(*folder_, location, p.file());
            opened_path_ = location;
        }
        const uint64_t size = static_cast<uint64_t>(t.size()) * size_of(t.dtype());
        if (length && *length != size)
            p.fail(str("tensor '", name, "' needs ", size, " bytes, but is said to have ", *length, " in '", location,
                       "'"));
        if (offset > opened_->size() || opened_->size() - offset < size)
            p.fail(str("tensor '", name, "' ends behind the end of '", location, "'"));
        opened_->read(offset, t.raw(), size);
    }

    Tensor elements(const ProtoReader& p, const std::string& name, const Contents& c) {
        auto called = [&] {
            return name.empty() ? std::string("a tensor without a name") : str("tensor '", name, "'");
        };
        if (c.has_strings || c.type == 8)
            throw file_error(p.file(), str(called(), " holds strings, which tensors do not"));
        const std::optional<DType> dtype = dtype_of(c.type);
        if (!dtype) {
            const std::string_view known = type_name(c.type);
            throw file_error(p.file(), str(called(), " has the type ", known.empty() ? str(c.type) : std::string(known),
                                           ", which tensors do not have"));
        }
        if (c.segmented) throw file_error(p.file(), str(called(), " is in segments, which is not supported"));
        Shape shape;
        try {
            shape = checked_shape(p.file(), c.dims, size_of(*dtype));
        } catch (const Error& e) {
            p.fail(str(called(), ": ", e.message()));
        }
        const auto wanted = static_cast<size_t>(shape.size());
        const size_t lists = c.floats.size() + c.doubles.size() + c.int32s.size() + c.int64s.size();
        if (c.is_external) {
            if (c.raw || lists) p.fail(str(called(), " has its elements twice"));
            Tensor t = Tensor::empty(*dtype, shape);
            if (wanted) read_external(p, name, c, t);
            normalise(t);
            return t;
        }
        auto wrong_size = [&](size_t there, std::string_view what) {
            p.fail(str(called(), " of shape ", shape, " and dtype ", name_of(*dtype), " has ", there, " ", what));
        };
        if (c.raw && (lists == 0 || !c.raw->empty())) {
            if (lists) p.fail(str(called(), " has its elements twice"));
            if (c.raw->size() != wanted * size_of(*dtype)) wrong_size(c.raw->size(), "bytes of data");
            Tensor t = Tensor::empty(*dtype, shape);
            if (wanted) std::memcpy(t.raw(), c.raw->data(), c.raw->size());
            normalise(t);
            return t;
        }
        // Complex numbers are pairs of floats.
        const size_t numbers = is_complex(*dtype) ? 2 * wanted : wanted;
        const size_t most = std::max({c.floats.size(), c.doubles.size(), c.int32s.size(), c.int64s.size()});
        if (lists != numbers || most != numbers) wrong_size(lists, "elements");
        Tensor t = Tensor::empty(*dtype, shape);
        visit_stored(*dtype, [&](auto tag) { fill<typename decltype(tag)::type>(p, name, c, t, wanted); });
        return t;
    }

    template <class T>
    static void fill(const ProtoReader& p, const std::string& name, const Contents& c, Tensor& t, size_t wanted) {
        for (size_t i = 0; i < wanted; ++i) {
            T& out = t.data<T>()[i];
            if constexpr (requires { typename T::value_type; }) {
                using Part = typename T::value_type;
                if (!c.floats.empty())
                    out = T(static_cast<Part>(c.floats[2 * i]), static_cast<Part>(c.floats[2 * i + 1]));
                else if (!c.doubles.empty())
                    out = T(static_cast<Part>(c.doubles[2 * i]), static_cast<Part>(c.doubles[2 * i + 1]));
                else
                    p.fail(str("tensor '", name, "' has complex elements as integers"));
            } else if constexpr (requires { out.bits; }) {
                // Floats of 16 and fewer bits are in int32_data by their bits.
                if (c.int32s.empty()) p.fail(str("tensor '", name, "' has its elements in the wrong field"));
                out.bits = static_cast<decltype(out.bits)>(c.int32s[i]);
            } else if constexpr (std::is_floating_point_v<T>) {
                if (!c.floats.empty())
                    out = static_cast<T>(c.floats[i]);
                else if (!c.doubles.empty())
                    out = static_cast<T>(c.doubles[i]);
                else
                    p.fail(str("tensor '", name, "' has floats as integers"));
            } else {
                if (!c.floats.empty() || !c.doubles.empty()) p.fail(str("tensor '", name, "' has integers as floats"));
                const int64_t v = c.int32s.empty() ? c.int64s[i] : c.int32s[i];
                if constexpr (std::is_same_v<T, bool>)
                    out = v != 0;
                else
                    out = static_cast<T>(v);
            }
        }
    }

    // Any byte but zero means true.
    static void normalise(Tensor& t) {
        if (t.dtype() != DType::boolean) return;
        auto* bytes = static_cast<unsigned char*>(t.raw());
        for (int64_t i = 0; i < t.size(); ++i) bytes[i] = bytes[i] != 0;
    }

    Attribute attribute(ProtoReader p) {
        Attribute a;
        int64_t type = 0;
        auto is = [&](Attribute::Kind kind) { a.kind = kind; };
        using Kind = Attribute::Kind;
        while (p.next()) switch (p.field()) {
                case 1:
                    a.name = p.text();
                    break;
                case 2:
                    a.numbers.assign(1, p.float32());
                    is(Kind::number);
                    break;
                case 3:
                    a.integers.assign(1, p.integer());
                    is(Kind::integer);
                    break;
                case 4:
                    a.strings.assign(1, std::string(p.bytes()));
                    is(Kind::string);
                    break;
                case 5:
                    a.tensors.assign(1, tensor(p.message()));
                    is(Kind::tensor);
                    break;
                case 6:
                    a.graphs.assign(1, graph(p.message()));
                    is(Kind::graph);
                    break;
                case 7:
                    p.floats(a.numbers);
                    is(Kind::numbers);
                    break;
                case 8:
                    p.integers(a.integers);
                    is(Kind::integers);
                    break;
                case 9:
                    a.strings.emplace_back(p.bytes());
                    is(Kind::strings);
                    break;
                case 10:
                case 11:
                case 14:
                case 15:
                case 22:
                case 23:
                    is(Kind::other);
                    break;
                case 20:
                    type = p.integer();
                    break;
                case 21:
                    a.reference = p.text();
                    break;
                default:
                    break;
            }
        settle(p, a, type);
        return a;
    }

    // Empty lists and zeros are not written: the type says what there is.
    static void settle(const ProtoReader& p, Attribute& a, int64_t type) {
        using Kind = Attribute::Kind;
        constexpr Kind kKinds[] = {Kind::none,  Kind::number,  Kind::integer,  Kind::string, Kind::tensor,
                                   Kind::graph, Kind::numbers, Kind::integers, Kind::strings};
        if (type < 1 || type > 8) {
            if (type > 8) a.kind = Kind::other;
            return;
        }
        const Kind said = kKinds[type];
        if (a.kind != Kind::none && a.kind != said)
            p.fail(str("the attribute '", a.name, "' has a value that is not of its type"));
        a.kind = said;
        if (!a.reference.empty()) return;
        if (said == Kind::number && a.numbers.empty()) a.numbers.push_back(0);
        if (said == Kind::integer && a.integers.empty()) a.integers.push_back(0);
        if (said == Kind::string && a.strings.empty()) a.strings.emplace_back();
        if ((said == Kind::tensor && a.tensors.empty()) || (said == Kind::graph && a.graphs.empty()))
            p.fail(str("the attribute '", a.name, "' has no value"));
    }

    Node node(ProtoReader p) {
        Node n;
        while (p.next()) switch (p.field()) {
                case 1:
                    n.inputs.push_back(p.text());
                    break;
                case 2:
                    n.outputs.push_back(p.text());
                    break;
                case 3:
                    n.name = p.text();
                    break;
                case 4:
                    n.op = p.text();
                    break;
                case 5: {
                    Attribute a = attribute(p.message());
                    for (const Attribute& other : n.attributes)
                        if (other.name == a.name)
                            p.fail(str("node '", n.name, "' has the attribute '", a.name, "' twice"));
                    n.attributes.push_back(std::move(a));
                    break;
                }
                case 7:
                    n.domain = p.text();
                    break;
                case 8:
                    n.overload = p.text();
                    break;
                default:
                    break;
            }
        return n;
    }

    ValueInfo value_info(ProtoReader p) {
        ValueInfo v;
        while (p.next()) {
            if (p.field() == 1) v.name = p.text();
            if (p.field() == 2) v.type = type(p.message());
        }
        return v;
    }

    Graph graph(ProtoReader p) {
        Graph g;
        while (p.next()) switch (p.field()) {
                case 1:
                    g.nodes.push_back(node(p.message()));
                    break;
                case 2:
                    g.name = p.text();
                    break;
                case 5:
                    g.initializers.push_back(tensor(p.message()));
                    break;
                case 11:
                    g.inputs.push_back(value_info(p.message()));
                    break;
                case 12:
                    g.outputs.push_back(value_info(p.message()));
                    break;
                case 15:
                    throw file_error(p.file(), "has sparse initializers, which are not supported");
                default:
                    break;
            }
        return g;
    }

    static Opset opset(ProtoReader p) {
        Opset o;
        while (p.next()) {
            if (p.field() == 1) o.domain = p.text();
            if (p.field() == 2) o.version = p.integer();
        }
        return o;
    }

    Function function(ProtoReader p) {
        Function f;
        while (p.next()) switch (p.field()) {
                case 1:
                    f.name = p.text();
                    break;
                case 4:
                    f.inputs.push_back(p.text());
                    break;
                case 5:
                    f.outputs.push_back(p.text());
                    break;
                case 6:
                    f.attributes.push_back(p.text());
                    break;
                case 7:
                    f.nodes.push_back(node(p.message()));
                    break;
                case 9:
                    f.opsets.push_back(opset(p.message()));
                    break;
                case 10:
                    f.domain = p.text();
                    break;
                case 11:
                    f.defaults.push_back(attribute(p.message()));
                    break;
                case 13:
                    f.overload = p.text();
                    break;
                default:
                    break;
            }
        return f;
    }

    const std::optional<std::string>& folder_;
    std::unique_ptr<Source> opened_;
    std::string opened_path_;
};

TestValue test_value(Reader& reader, ProtoReader p, const TypeEntry& type) {
    TestValue v;
    if (type.kind == TypeEntry::Kind::tensor) {
        NamedTensor t = reader.tensor(p);
        v.name = std::move(t.name);
        v.tensor = std::move(t.value);
        return v;
    }
    if (type.inner.size() != 1) throw file_error(p.file(), "is of a type that is not supported");
    const TypeEntry& inner = type.inner[0];
    const bool optional = type.kind == TypeEntry::Kind::optional;
    v.missing = optional;
    while (p.next()) {
        if (p.field() == 1) v.name = p.text();
        const bool tensor = p.field() == 3 && inner.kind == TypeEntry::Kind::tensor;
        const bool sequence = p.field() == 5 && inner.kind != TypeEntry::Kind::tensor;
        if (!tensor && !sequence) continue;
        TestValue item = test_value(reader, p.message(), inner);
        if (optional) {
            item.name = v.name;
            v = std::move(item);
        } else {
            v.items.push_back(std::move(item));
        }
    }
    return v;
}

}  // namespace

std::string_view type_name(int64_t type) {
    for (auto [number, name] : kTypes)
        if (number == type) return name;
    return {};
}

std::optional<DType> dtype_of(int64_t type) {
    const std::string_view name = type_name(type);
    return name.empty() || name == "string" ? std::nullopt : parse_dtype(name);
}

int64_t type_number(DType dtype) {
    for (auto [number, name] : kTypes)
        if (name == name_of(dtype)) return number;
    return 0;
}

Model read_model(const Source& source, const std::optional<std::string>& folder) {
    if (source.size() == 0) throw source.error("is empty");
    if (source.size() > uint64_t{1} << 31) throw source.error("is longer than 2 GiB, the most that such a file has");
    const std::string bytes = source.text(0, static_cast<size_t>(source.size()));
    return Reader(folder).model(ProtoReader(bytes, source.name()));
}

TestValue read_test_value(const Source& source, const TypeEntry& type) {
    if (source.size() > uint64_t{1} << 31) throw source.error("is longer than 2 GiB, the most that such a file has");
    const std::string bytes = source.text(0, static_cast<size_t>(source.size()));
    const std::optional<std::string> none;
    Reader reader(none);
    return test_value(reader, ProtoReader(bytes, source.name()), type);
}

}  // namespace lunaria::onnx
