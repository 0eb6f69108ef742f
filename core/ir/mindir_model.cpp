#include "core/ir/mindir_model.h"

#include <algorithm>
#include <cstring>

#include "core/io/protobuf.h"

namespace lunaria::mindir {

namespace {

// TensorProto.DataType of the dtypes that tensors have; 17 is another name of 11.
constexpr std::pair<int64_t, DType> kTypes[] = {
    {1, DType::f32},  {2, DType::u8},      {3, DType::i8},    {4, DType::u16},  {5, DType::i16},  {6, DType::i32},
    {7, DType::i64},  {9, DType::boolean}, {10, DType::f16},  {11, DType::f64}, {12, DType::u32}, {13, DType::u64},
    {14, DType::c64}, {15, DType::c128},   {16, DType::bf16}, {17, DType::f64}};

// The elements of a TensorProto, wherever they are.
struct Contents {
    std::optional<std::string_view> raw;
    std::vector<float> floats;
    std::vector<double> doubles;
    std::vector<int64_t> int32s, int64s;
};

Tensor elements(const ProtoReader& p, const TensorEntry& entry, const Contents& c) {
    const std::optional<DType> dtype = entry.dtype();
    if (!dtype) p.fail(str("tensor '", entry.name, "' has the data type ", entry.type, ", which tensors do not have"));
    Shape shape;
    try {
        shape = checked_shape(p.file(), entry.dims, size_of(*dtype));
    } catch (const Error& e) {
        p.fail(str("tensor '", entry.name, "': ", e.message()));
    }
    const size_t wanted = static_cast<size_t>(shape.size());
    const size_t lists = c.floats.size() + c.doubles.size() + c.int32s.size() + c.int64s.size();
    auto wrong_size = [&](size_t there, std::string_view what) {
        p.fail(str("tensor '", entry.name, "' of shape ", shape, " and dtype ", name_of(*dtype), " has ", there, " ",
                   what));
    };
    if (c.raw) {
        if (lists) p.fail(str("tensor '", entry.name, "' has its elements twice"));
        if (c.raw->size() != wanted * size_of(*dtype)) wrong_size(c.raw->size(), "bytes of data");
        Tensor t = Tensor::empty(*dtype, shape);
        if (*dtype == DType::boolean)
            for (size_t i = 0; i < wanted; ++i) t.data<bool>()[i] = (*c.raw)[i] != 0;
        else if (wanted)
            std::memcpy(t.raw(), c.raw->data(), c.raw->size());
        return t;
    }
    if (lists != wanted || std::max({c.floats.size(), c.doubles.size(), c.int32s.size(), c.int64s.size()}) != wanted)
        wrong_size(lists, "elements");
    Tensor t = Tensor::empty(*dtype, shape);
    visit_dtype(*dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (size_t i = 0; i < wanted; ++i) {
            T& out = t.data<T>()[i];
            if constexpr (kIsComplex<T>) {
                p.fail(str("tensor '", entry.name, "' has complex elements without raw data"));
            } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
                // Half-width floats are in int32_data by their bits.
                if (!c.int32s.empty())
                    out.bits = static_cast<uint16_t>(c.int32s[i]);
                else
                    out = T(c.floats.empty() ? static_cast<float>(c.doubles[i]) : c.floats[i]);
            } else {
                out = !c.floats.empty()    ? static_cast<T>(c.floats[i])
                      : !c.doubles.empty() ? static_cast<T>(c.doubles[i])
                      : !c.int32s.empty()  ? static_cast<T>(c.int32s[i])
                                           : static_cast<T>(c.int64s[i]);
            }
        }
    });
    return t;
}

TensorEntry read_tensor(ProtoReader p, bool with_data) {
    TensorEntry t;
    Contents c;
    bool compressed = false, external = false;
    while (p.next()) switch (p.field()) {
            case 1:
                p.integers(t.dims);
                break;
            case 2:
                t.type = p.integer();
                break;
            case 3:
                p.floats(c.floats);
                break;
            case 4:
                p.integers(c.int32s);
                break;
            case 6:
                p.integers(c.int64s);
                break;
            case 7:
                t.name = p.text();
                break;
            case 9:
                c.raw = p.bytes();
                break;
            case 10:
                p.doubles(c.doubles);
                break;
            case 12:
                external = true;
                break;
            case 13:
                t.key = p.text();
                break;
            case 16:
                compressed = p.integer() != 0;
                break;
            default:
                break;
        }
    if (external)
        throw file_error(p.file(), str("tensor '", t.name, "' is in another file, which is not read"))
            .hint("export the model in one piece (below 1 GiB MindSpore does)");
    if (compressed) throw file_error(p.file(), str("tensor '", t.name, "' is compressed, which is not supported"));
    if (with_data || c.raw || !c.floats.empty() || !c.doubles.empty() || !c.int32s.empty() || !c.int64s.empty())
        t.value = elements(p, t, c);
    return t;
}

Attribute read_attribute(ProtoReader p) {
    Attribute a;
    auto number = [&](double d) { a.numbers.push_back(d); };
    while (p.next()) switch (p.field()) {
            case 1:
                a.name = p.text();
                break;
            case 2:
                number(p.float32());
                break;
            case 3:
                a.integers.push_back(p.integer());
                break;
            case 4:
                number(p.float64());
                break;
            case 5:
            case 11:
                a.strings.emplace_back(p.bytes());
                break;
            case 6:
            case 12:
                a.tensors.push_back(read_tensor(p.message(), false));
                break;
            case 8:
                p.floats(a.numbers);
                break;
            case 9:
                p.doubles(a.numbers);
                break;
            case 10:
                p.integers(a.integers);
                break;
            case 16:
                a.kind = static_cast<Kind>(p.integer());
                break;
            case 17:
                a.values.push_back(read_attribute(p.message()));
                break;
            default:
                break;
        }
    return a;
}

void add_attribute(const ProtoReader& p, std::vector<Attribute>& list, Attribute a, std::string_view of) {
    for (const Attribute& other : list)
        if (other.name == a.name) p.fail(str("'", of, "' has the attribute '", a.name, "' twice"));
    list.push_back(std::move(a));
}

NodeEntry read_node(ProtoReader p) {
    NodeEntry n;
    while (p.next()) switch (p.field()) {
            case 1:
                n.inputs.push_back(p.text());
                break;
            case 2:
                if (!n.output.empty()) p.fail(str("node '", n.output, "' has several outputs"));
                n.output = p.text();
                break;
            case 3:
                n.name = p.text();
                break;
            case 4:
                n.op_type = p.text();
                break;
            case 5:
                add_attribute(p, n.attributes, read_attribute(p.message()), n.name);
                break;
            case 6:
                n.doc = p.text();
                break;
            case 7:
                n.domain = p.text();
                break;
            default:
                break;
        }
    return n;
}

ValueInfo read_value_info(ProtoReader p) {
    ValueInfo v;
    while (p.next()) switch (p.field()) {
            case 1:
                v.name = p.text();
                break;
            case 2:
                v.tensors.push_back(read_tensor(p.message(), false));
                break;
            case 3:
                v.doc = p.text();
                break;
            case 5:
                v.info = read_attribute(p.message());
                break;
            default:
                break;
        }
    return v;
}

GraphEntry read_graph(ProtoReader p) {
    GraphEntry g;
    while (p.next()) switch (p.field()) {
            case 1:
                g.nodes.push_back(read_node(p.message()));
                break;
            case 2:
                g.name = p.text();
                break;
            case 3:
                g.parameters.push_back(read_tensor(p.message(), true));
                break;
            case 5:
                g.inputs.push_back(read_value_info(p.message()));
                break;
            case 6:
                g.outputs.push_back(read_value_info(p.message()));
                break;
            case 8:
                g.attributes.push_back(read_attribute(p.message()));
                break;
            default:
                break;
        }
    return g;
}

PrimitiveEntry read_primitive(ProtoReader p) {
    PrimitiveEntry e;
    while (p.next()) switch (p.field()) {
            case 1:
                e.name = p.text();
                break;
            case 2:
                e.op_type = p.text();
                break;
            case 3:
                add_attribute(p, e.attributes, read_attribute(p.message()), e.name);
                break;
            default:
                break;
        }
    return e;
}

ProtoWriter tensor_message(const TensorEntry& t) {
    ProtoWriter w;
    for (int64_t d : t.dims) w.integer(1, d);
    w.integer(2, t.type);
    if (!t.name.empty()) w.bytes(7, t.name);
    if (t.value) {
        const Tensor dense = t.value.contiguous().to_host();
        w.bytes(9, {static_cast<const char*>(dense.raw()), dense.nbytes()});
    }
    if (!t.key.empty()) w.bytes(13, t.key);
    return w;
}

// What is in a tuple has its content in the repeated fields.
ProtoWriter attribute_message(const Attribute& a, bool in_tuple = false) {
    ProtoWriter w;
    if (!a.name.empty()) w.bytes(1, a.name);
    for (double d : a.numbers)
        a.kind == Kind::float32 ? w.float32(in_tuple ? 8 : 2, static_cast<float>(d)) : w.float64(in_tuple ? 9 : 4, d);
    for (int64_t i : a.integers) w.integer(in_tuple ? 10 : 3, i);
    for (const std::string& s : a.strings) w.bytes(in_tuple ? 11 : 5, s);
    for (const TensorEntry& t : a.tensors) w.message(a.kind == Kind::tensor ? 6 : 12, tensor_message(t));
    w.integer(16, static_cast<int>(a.kind));
    for (const Attribute& v : a.values) w.message(17, attribute_message(v, true));
    return w;
}

ProtoWriter value_info_message(const ValueInfo& v) {
    ProtoWriter w;
    w.bytes(1, v.name);
    for (const TensorEntry& t : v.tensors) w.message(2, tensor_message(t));
    if (!v.doc.empty()) w.bytes(3, v.doc);
    if (v.info) w.message(5, attribute_message(*v.info));
    return w;
}

ProtoWriter graph_message(const GraphEntry& g) {
    ProtoWriter w;
    for (const NodeEntry& n : g.nodes) {
        ProtoWriter node;
        for (const std::string& input : n.inputs) node.bytes(1, input);
        node.bytes(2, n.output).bytes(3, n.name).bytes(4, n.op_type);
        for (const Attribute& a : n.attributes) node.message(5, attribute_message(a));
        if (!n.doc.empty()) node.bytes(6, n.doc);
        if (!n.domain.empty()) node.bytes(7, n.domain);
        w.message(1, node);
    }
    w.bytes(2, g.name);
    for (const TensorEntry& t : g.parameters) w.message(3, tensor_message(t));
    for (const ValueInfo& v : g.inputs) w.message(5, value_info_message(v));
    for (const ValueInfo& v : g.outputs) w.message(6, value_info_message(v));
    for (const Attribute& a : g.attributes) w.message(8, attribute_message(a));
    return w;
}

const Attribute* find_in(const std::vector<Attribute>& list, std::string_view name) {
    for (const Attribute& a : list)
        if (a.name == name) return &a;
    return nullptr;
}

}  // namespace

std::optional<DType> TensorEntry::dtype() const {
    for (auto [t, d] : kTypes)
        if (t == type) return d;
    return std::nullopt;
}

bool TensorEntry::shape_is_valid() const {
    return dims.size() <= kMaxRank && std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d >= kUnknownDim; });
}

TensorType TensorEntry::tensor_type() const { return {*dtype(), Shape(dims)}; }

const Attribute* NodeEntry::find(std::string_view name) const { return find_in(attributes, name); }
const Attribute* GraphEntry::find(std::string_view name) const { return find_in(attributes, name); }

Model read_model(const Source& source) {
    if (source.size() > uint64_t{1} << 31) throw source.error("is larger than 2 GiB, which no MindIR file is");
    const std::string bytes = source.text(0, static_cast<size_t>(source.size()));
    if (bytes.empty()) throw source.error("is empty");
    ProtoReader p(bytes, source.name());
    Model m;
    bool has_graph = false;
    while (p.next()) switch (p.field()) {
            case 1:
                m.ir_version = p.text();
                break;
            case 2:
                m.producer = p.text();
                break;
            case 5:
                m.producer_version = p.text();
                break;
            case 7:
                if (has_graph) p.fail("there are two main graphs");
                has_graph = true;
                m.graph = read_graph(p.message());
                break;
            case 8:
                m.functions.push_back(read_graph(p.message()));
                break;
            case 10:
                if (!p.boolean()) throw source.error("was written in big-endian order, which is not supported");
                break;
            case 12: {
                PrimitiveEntry e = read_primitive(p.message());
                std::string name = e.name;
                if (!m.primitives.try_emplace(std::move(name), std::move(e)).second)
                    p.fail("two primitives have one name");
                break;
            }
            default:
                break;
        }
    if (!has_graph || m.ir_version.empty()) throw source.error("is no MindIR file: there is no graph in it");
    return m;
}

std::string write_model(const Model& m) {
    ProtoWriter w;
    w.bytes(1, m.ir_version).bytes(2, m.producer).bytes(5, m.producer_version).message(7, graph_message(m.graph));
    for (const GraphEntry& g : m.functions) w.message(8, graph_message(g));
    w.integer(10, 1);
    for (const auto& [name, e] : m.primitives) {
        ProtoWriter primitive;
        primitive.bytes(1, e.name).bytes(2, e.op_type);
        for (const Attribute& a : e.attributes) primitive.message(3, attribute_message(a));
        w.message(12, primitive.integer(5, e.type));
    }
    w.integer(13, 3);
    return w.text();
}

int64_t type_number(DType dtype) {
    for (auto [type, d] : kTypes)
        if (d == dtype) return type;
    throw dtype_error("export", str("MindIR has no type for ", name_of(dtype), " that other programs read"))
        .hint("x:float() converts to float32");
}

TensorEntry entry_of(const TensorType& type) {
    TensorEntry t;
    t.type = type_number(type.dtype);
    t.dims.assign(type.shape.begin(), type.shape.end());
    return t;
}

TensorEntry entry_of(const Tensor& tensor) {
    TensorEntry t = entry_of(TensorType{tensor.dtype(), tensor.shape()});
    t.value = tensor;
    return t;
}

Attribute type_attribute(const ir::NodeType& type) {
    using ir::NodeType;
    Attribute a;
    a.name = "shape";
    switch (type.kind) {
        case NodeType::Kind::tensor: {
            a.kind = Kind::tensors;
            a.tensors.push_back(entry_of(type.tensor));
            return a;
        }
        case NodeType::Kind::list: {
            a.kind = Kind::tuple;
            for (const NodeType& item : type.items) a.values.push_back(type_attribute(item));
            return a;
        }
        case NodeType::Kind::host:
            a.kind = Kind::none;
            return a;
        default:
            a.kind = Kind::unknown;
            return a;
    }
}

Attribute attribute_of(std::string name, const Value& v, const ValueForm& form) {
    Attribute a;
    switch (v.kind()) {
        case Value::Kind::nil:
            a.kind = Kind::none;
            break;
        case Value::Kind::boolean:
            a.kind = Kind::boolean;
            a.integers.push_back(v.boolean());
            break;
        case Value::Kind::integer:
            a.kind = Kind::int64;
            a.integers.push_back(v.integer());
            break;
        case Value::Kind::number:
            a.kind = form.floats;
            a.numbers.push_back(v.number());
            break;
        case Value::Kind::string:
            a.kind = Kind::string;
            a.strings.push_back(v.string());
            break;
        case Value::Kind::tensor:
            a.kind = form.tensors;
            a.tensors.push_back(entry_of(v.tensor()));
            if (a.kind == Kind::tensors) a.tensors.back().name = "value0";
            break;
        case Value::Kind::list:
            a.kind = Kind::tuple;
            for (const Value& item : v.items()) a.values.push_back(attribute_of("", item, form));
            break;
        default:
            a = form.other(v);
    }
    a.name = std::move(name);
    return a;
}

}  // namespace lunaria::mindir
