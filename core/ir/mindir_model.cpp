#include "core/ir/mindir_model.h"

#include <algorithm>

#include "core/io/proto_tensor.h"

namespace lunaria::mindir {

using namespace proto;

namespace {

// The numbers of TensorProto.DataType up to this one are ONNX's; there is another one for float64.
constexpr int64_t kLastType = 16, kFloat64 = 17;

constexpr Field<TensorContents> kTensor[] = {
    field<&TensorContents::dims>(1),
    field<&TensorContents::type>(2),
    field<&TensorContents::floats>(3),
    field<&TensorContents::int32s>(4),
    field<&TensorContents::int64s>(6),
    field<&TensorContents::name>(7),
    bytes<&TensorContents::raw>(9),
    field<&TensorContents::doubles>(10),
    {12, [](TensorContents& c, const ProtoReader&) { c.is_external = true; }},
    field<&TensorContents::key>(13),
    {16, [](TensorContents& c, const ProtoReader& p) { c.is_compressed = p.integer() != 0; }}};

TensorEntry read_tensor(ProtoReader p, bool with_elements) {
    TensorContents c;
    read_fields(p, c, kTensor);
    if (c.is_external)
        throw file_error(p.file(), str("tensor '", c.name, "' is in another file, which is not read"))
            .hint("export the model in one piece (below 1 GiB MindSpore does)");
    if (c.is_compressed) throw file_error(p.file(), str("tensor '", c.name, "' is compressed, which is not supported"));
    TensorEntry t{c.name, c.key, c.type, c.dims, {}};
    if (!with_elements && !c.raw && !c.listed()) return t;
    const std::optional<DType> dtype = t.dtype();
    if (!dtype) p.fail(str("tensor '", t.name, "' has the data type ", t.type, ", which tensors do not have"));
    t.value = elements(p, c, *dtype);
    return t;
}

// A field that holds the numbers of an attribute, one or several.
template <auto one>
constexpr Field<Attribute> number(uint32_t n) {
    return {n, [](Attribute& a, const ProtoReader& p) { a.numbers.push_back((p.*one)()); }};
}

// A field that holds an attribute under this name.
template <auto name, class M>
constexpr Field<M> attributes_of(uint32_t number, std::string M::*) {
    return {number,
            [](M& m, const ProtoReader& p) {
                Attribute a = read_message<Attribute>(p.message());
                for (const Attribute& other : m.attributes)
                    if (other.name == a.name) p.fail(str("'", m.*name, "' has the attribute '", a.name, "' twice"));
                m.attributes.push_back(std::move(a));
            },
            field<&M::attributes>(number).write};
}

const Attribute* find_in(const std::vector<Attribute>& list, std::string_view name) {
    for (const Attribute& a : list)
        if (a.name == name) return &a;
    return nullptr;
}

}  // namespace

TensorEntry TensorEntry::read(ProtoReader p) { return read_tensor(std::move(p), false); }

ProtoWriter TensorEntry::message() const {
    ProtoWriter w;
    for (int64_t d : dims) w.integer(1, d);
    w.integer(2, type);
    if (!name.empty()) w.bytes(7, name);
    if (value) write_raw(w, 9, value);
    if (!key.empty()) w.bytes(13, key);
    return w;
}

Fields<Attribute> Attribute::fields() {
    static constexpr Field<Attribute> list[] = {
        field<&Attribute::name>(1),
        number<&ProtoReader::float32>(2),
        {3, [](Attribute& a, const ProtoReader& p) { a.integers.push_back(p.integer()); }},
        number<&ProtoReader::float64>(4),
        bytes<&Attribute::strings>(5),
        field<&Attribute::tensors>(6),
        {8, [](Attribute& a, const ProtoReader& p) { p.floats(a.numbers); }},
        field<&Attribute::numbers>(9),
        field<&Attribute::integers>(10),
        bytes<&Attribute::strings>(11),
        field<&Attribute::tensors>(12),
        field<&Attribute::kind>(16),
        field<&Attribute::values>(17)};
    return list;
}

// A value inside a tuple has its content in the repeated fields.
ProtoWriter Attribute::message(bool in_tuple) const {
    ProtoWriter w;
    if (!name.empty()) w.bytes(1, name);
    for (double d : numbers)
        kind == Kind::float32 ? w.float32(in_tuple ? 8 : 2, static_cast<float>(d)) : w.float64(in_tuple ? 9 : 4, d);
    write_value(integers, in_tuple ? 10 : 3, w);
    write_value(strings, in_tuple ? 11 : 5, w);
    write_value(tensors, kind == Kind::tensor ? 6 : 12, w);
    w.integer(16, static_cast<int>(kind));
    for (const Attribute& v : values) w.message(17, v.message(true));
    return w;
}

Fields<NodeEntry> NodeEntry::fields() {
    static constexpr Field<NodeEntry> list[] = {field<&NodeEntry::inputs>(1),
                                                {2,
                                                 [](NodeEntry& n, const ProtoReader& p) {
                                                     if (!n.output.empty())
                                                         p.fail(str("node '", n.output, "' has several outputs"));
                                                     n.output = p.text();
                                                 },
                                                 field<&NodeEntry::output>(2).write},
                                                field<&NodeEntry::name>(3),
                                                field<&NodeEntry::op_type>(4),
                                                attributes_of<&NodeEntry::name>(5, &NodeEntry::name),
                                                filled<&NodeEntry::doc>(6),
                                                filled<&NodeEntry::domain>(7)};
    return list;
}

Fields<ValueInfo> ValueInfo::fields() {
    static constexpr Field<ValueInfo> list[] = {field<&ValueInfo::name>(1), field<&ValueInfo::tensors>(2),
                                                filled<&ValueInfo::doc>(3), field<&ValueInfo::info>(5)};
    return list;
}

Fields<GraphEntry> GraphEntry::fields() {
    static constexpr Field<GraphEntry> list[] = {
        field<&GraphEntry::nodes>(1),
        field<&GraphEntry::name>(2),
        {3, [](GraphEntry& g, const ProtoReader& p) { g.parameters.push_back(read_tensor(p.message(), true)); },
         field<&GraphEntry::parameters>(3).write},
        field<&GraphEntry::inputs>(5),
        field<&GraphEntry::outputs>(6),
        field<&GraphEntry::attributes>(8)};
    return list;
}

Fields<PrimitiveEntry> PrimitiveEntry::fields() {
    static constexpr Field<PrimitiveEntry> list[] = {field<&PrimitiveEntry::name>(1),
                                                     field<&PrimitiveEntry::op_type>(2),
                                                     attributes_of<&PrimitiveEntry::name>(3, &PrimitiveEntry::name),
                                                     {5, nullptr, field<&PrimitiveEntry::type>(5).write}};
    return list;
}

Fields<Model> Model::fields() {
    static constexpr Field<Model> list[] = {
        field<&Model::ir_version>(1),
        field<&Model::producer>(2),
        field<&Model::producer_version>(5),
        {7,
         [](Model& m, const ProtoReader& p) {
             if (m.graph) p.fail("there are two main graphs");
             read_value(m.graph, p);
         },
         field<&Model::graph>(7).write},
        field<&Model::functions>(8),
        // The field that states whether the file is little-endian.
        {10,
         [](Model&, const ProtoReader& p) {
             if (!p.boolean()) throw file_error(p.file(), "was written in big-endian order, which is not supported");
         },
         [](const Model&, uint32_t n, ProtoWriter& w) { w.integer(n, 1); }},
        {12,
         [](Model& m, const ProtoReader& p) {
             PrimitiveEntry e = read_message<PrimitiveEntry>(p.message());
             std::string name = e.name;
             if (!m.primitives.try_emplace(std::move(name), std::move(e)).second)
                 p.fail("two primitives have one name");
         },
         [](const Model& m, uint32_t n, ProtoWriter& w) {
             for (const auto& [name, e] : m.primitives) write_value(e, n, w);
         }},
        // The version of the format.
        {13, nullptr, [](const Model&, uint32_t n, ProtoWriter& w) { w.integer(n, 3); }}};
    return list;
}

Model read_model(const Source& source) {
    if (source.size() > uint64_t{1} << 31) throw source.error("is larger than 2 GiB, which no MindIR file is");
    const std::string bytes = source.text(0, static_cast<size_t>(source.size()));
    if (bytes.empty()) throw source.error("is empty");
    Model m = read_message<Model>(ProtoReader(bytes, source.name()));
    if (!m.graph || m.ir_version.empty()) throw source.error("is no MindIR file: there is no graph in it");
    return m;
}

std::string write_model(const Model& m) { return message_of(m).text(); }

std::optional<DType> TensorEntry::dtype() const {
    if (type == kFloat64) return DType::f64;
    return type > kLastType ? std::nullopt : proto::dtype_of(type);
}

bool TensorEntry::shape_is_valid() const {
    return dims.size() <= kMaxRank && std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d >= kUnknownDim; });
}

TensorType TensorEntry::tensor_type() const { return {*dtype(), Shape(dims)}; }

const Attribute* NodeEntry::find(std::string_view name) const { return find_in(attributes, name); }
const Attribute* GraphEntry::find(std::string_view name) const { return find_in(attributes, name); }

int64_t type_number(DType dtype) {
    const int64_t type = proto::type_number(dtype);
    if (type >= 1 && type <= kLastType) return type;
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
