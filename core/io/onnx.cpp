#include "core/io/onnx.h"

#include <charconv>

#include "core/io/inside.h"

namespace lunaria::onnx {

using namespace proto;

namespace {

constexpr Field<TensorContents> kTensor[] = {
    field<&TensorContents::dims>(1),
    field<&TensorContents::type>(2),
    {3, [](TensorContents& c, const ProtoReader&) { c.is_segmented = true; }},
    field<&TensorContents::floats>(4),
    field<&TensorContents::int32s>(5),
    {6, [](TensorContents& c, const ProtoReader&) { c.has_strings = true; }},
    field<&TensorContents::int64s>(7),
    field<&TensorContents::name>(8),
    bytes<&TensorContents::raw>(9),
    field<&TensorContents::doubles>(10),
    field<&TensorContents::int64s>(11),
    field<&TensorContents::place>(13),
    {14, [](TensorContents& c, const ProtoReader& p) { c.is_external = p.integer() == 1; }}};

uint64_t number_of(const ProtoReader& p, const TensorContents& c, const std::string& text) {
    uint64_t n = 0;
    auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (code != std::errc() || end != text.data() + text.size())
        p.fail(str(c.called(), " has the place '", text.substr(0, 40), "' in its file"));
    return n;
}

// The elements of a tensor that lie in another file.
Tensor external_elements(const ProtoReader& p, const TensorContents& c, DType dtype) {
    const Shape shape = shape_of(p, c, dtype);
    if (c.raw || c.listed()) p.fail(str(c.called(), " has its elements twice"));
    Tensor t = Tensor::empty(dtype, shape);
    if (t.size() == 0) return t;
    if (!p.others()) throw file_error(p.file(), str(c.called(), " is in another file, which is not read here"));
    std::string location;
    uint64_t offset = 0;
    std::optional<uint64_t> length;
    for (const auto& [key, value] : c.place) {
        if (key == "location") location = value;
        if (key == "offset") offset = number_of(p, c, value);
        if (key == "length") length = number_of(p, c, value);
    }
    const Source& source = p.others()->open(location, p.file());
    if (length && *length != t.nbytes())
        p.fail(str(c.called(), " needs ", t.nbytes(), " bytes, but is said to have ", *length, " in '", location, "'"));
    if (offset > source.size() || source.size() - offset < t.nbytes())
        p.fail(str(c.called(), " ends behind the end of '", location, "'"));
    source.read(offset, t.raw(), t.nbytes());
    normalise(t);
    return t;
}

// The shape and the content of a sequence or an optional are messages with one relevant field each.
constexpr Field<TypeEntry> kShape[] = {
    {1, [](TypeEntry& t, const ProtoReader& p) { read_value(*t.shape, p); },
     [](const TypeEntry& t, uint32_t n, ProtoWriter& w) { write_value(*t.shape, n, w); }}};

constexpr Field<TypeEntry> kTensorType[] = {field<&TypeEntry::element>(1),
                                            {2,
                                             [](TypeEntry& t, const ProtoReader& p) {
                                                 t.shape.emplace();
                                                 read_fields(p.message(), t, kShape);
                                             },
                                             [](const TypeEntry& t, uint32_t n, ProtoWriter& w) {
                                                 if (t.shape) w.message(n, written(t, kShape));
                                             }}};

constexpr Field<TypeEntry> kInner[] = {
    {1, [](TypeEntry& t, const ProtoReader& p) { t.inner.assign(1, read_message<TypeEntry>(p.message())); }}};

template <TypeEntry::Kind kind>
constexpr Field<TypeEntry> type_of(uint32_t number) {
    return {number, [](TypeEntry& t, const ProtoReader& p) {
                using Kind = TypeEntry::Kind;
                t.kind = kind;
                if (kind == Kind::sequence || kind == Kind::optional) read_fields(p.message(), t, kInner);
            }};
}

// The attributes of one kind: the member is their value.
template <Attribute::Kind kind, auto member>
constexpr Field<Attribute> value(uint32_t number) {
    return {number,
            [](Attribute& a, const ProtoReader& p) {
                auto& list = a.*member;
                constexpr bool one = kind <= Attribute::Kind::graph;
                using T = typename std::decay_t<decltype(list)>::value_type;
                if (one) list.clear();
                if constexpr (std::is_same_v<T, double>)
                    one ? list.push_back(p.float32()) : p.floats(list);
                else if constexpr (std::is_same_v<T, int64_t>)
                    one ? list.push_back(p.integer()) : p.integers(list);
                else if constexpr (std::is_same_v<T, std::string>)
                    list.emplace_back(p.bytes());
                else
                    read_value(list, p);
                a.kind = kind;
            },
            [](const Attribute& a, uint32_t n, ProtoWriter& w) {
                if (a.kind != kind) return;
                if constexpr (std::is_same_v<decltype(member), std::vector<double> Attribute::*>)
                    for (double d : a.*member) w.float32(n, static_cast<float>(d));
                else
                    write_value(a.*member, n, w);
            }};
}

// Empty lists and zeros are not written: the type tells which value is meant.
void settle(const ProtoReader& p, Attribute& a) {
    using Kind = Attribute::Kind;
    if (a.type > static_cast<int64_t>(Kind::strings)) a.kind = Kind::other;
    if (a.type < 1 || a.type > static_cast<int64_t>(Kind::strings)) return;
    const Kind said = static_cast<Kind>(a.type);
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

}  // namespace

NamedTensor NamedTensor::read(ProtoReader p) {
    TensorContents c;
    read_fields(p, c, kTensor);
    if (c.has_strings || type_name(c.type) == "string")
        throw file_error(p.file(), str(c.called(), " holds strings, which tensors do not"));
    const std::optional<DType> dtype = dtype_of(c.type);
    if (!dtype) {
        const std::string_view known = type_name(c.type);
        throw file_error(p.file(), str(c.called(), " has the type ", known.empty() ? str(c.type) : std::string(known),
                                       ", which tensors do not have"));
    }
    if (c.is_segmented) throw file_error(p.file(), str(c.called(), " is in segments, which is not supported"));
    Tensor value = c.is_external ? external_elements(p, c, *dtype) : elements(p, c, *dtype);
    return {std::move(c.name), std::move(value)};
}

ProtoWriter NamedTensor::message() const {
    ProtoWriter w;
    for (int64_t d : value.shape()) w.integer(1, d);
    w.integer(2, type_number(value.dtype()));
    if (!name.empty()) w.bytes(8, name);
    return write_raw(w, 9, value);
}

Fields<TypeEntry::Dim> TypeEntry::Dim::fields() {
    static constexpr Field<Dim> list[] = {{1, field<&Dim::size>(1).read,
                                           [](const Dim& d, uint32_t n, ProtoWriter& w) {
                                               if (d.size >= 0) w.integer(n, d.size);
                                           }},
                                          filled<&Dim::name>(2)};
    return list;
}

Fields<TypeEntry> TypeEntry::fields() {
    static constexpr Field<TypeEntry> list[] = {{1,
                                                 [](TypeEntry& t, const ProtoReader& p) {
                                                     t.kind = Kind::tensor;
                                                     read_fields(p.message(), t, kTensorType);
                                                 },
                                                 [](const TypeEntry& t, uint32_t n, ProtoWriter& w) {
                                                     if (t.kind == Kind::tensor) w.message(n, written(t, kTensorType));
                                                 }},
                                                type_of<Kind::sequence>(4),
                                                type_of<Kind::map>(5),
                                                type_of<Kind::sparse>(8),
                                                type_of<Kind::optional>(9)};
    return list;
}

Fields<ValueInfo> ValueInfo::fields() {
    static constexpr Field<ValueInfo> list[] = {field<&ValueInfo::name>(1), field<&ValueInfo::type>(2)};
    return list;
}

Attribute Attribute::read(ProtoReader p) {
    Attribute a;
    read_fields(p, a, fields());
    settle(p, a);
    return a;
}

Fields<Attribute> Attribute::fields() {
    static constexpr auto other = [](Attribute& a, const ProtoReader&) { a.kind = Kind::other; };
    static constexpr Field<Attribute> list[] = {
        field<&Attribute::name>(1),
        value<Kind::number, &Attribute::numbers>(2),
        value<Kind::integer, &Attribute::integers>(3),
        value<Kind::string, &Attribute::strings>(4),
        value<Kind::tensor, &Attribute::tensors>(5),
        value<Kind::graph, &Attribute::graphs>(6),
        value<Kind::numbers, &Attribute::numbers>(7),
        value<Kind::integers, &Attribute::integers>(8),
        value<Kind::strings, &Attribute::strings>(9),
        {10, other},
        {11, other},
        {14, other},
        {15, other},
        {20, field<&Attribute::type>(20).read, field<&Attribute::kind>(20).write},
        filled<&Attribute::reference>(21),
        {22, other},
        {23, other}};
    return list;
}

Fields<Node> Node::fields() {
    static constexpr Field<Node> list[] = {
        field<&Node::inputs>(1),
        field<&Node::outputs>(2),
        field<&Node::name>(3),
        field<&Node::op>(4),
        {5,
         [](Node& n, const ProtoReader& p) {
             Attribute a = Attribute::read(p.message());
             for (const Attribute& other : n.attributes)
                 if (other.name == a.name) p.fail(str("node '", n.name, "' has the attribute '", a.name, "' twice"));
             n.attributes.push_back(std::move(a));
         },
         field<&Node::attributes>(5).write},
        filled<&Node::domain>(7),
        filled<&Node::overload>(8)};
    return list;
}

Fields<Graph> Graph::fields() {
    static constexpr Field<Graph> list[] = {field<&Graph::nodes>(1),
                                            field<&Graph::name>(2),
                                            field<&Graph::initializers>(5),
                                            field<&Graph::inputs>(11),
                                            field<&Graph::outputs>(12),
                                            {15, [](Graph&, const ProtoReader& p) {
                                                 throw file_error(p.file(),
                                                                  "has sparse initializers, which are not supported");
                                             }}};
    return list;
}

Fields<Opset> Opset::fields() {
    static constexpr Field<Opset> list[] = {field<&Opset::domain>(1), field<&Opset::version>(2)};
    return list;
}

Fields<Function> Function::fields() {
    static constexpr Field<Function> list[] = {
        field<&Function::name>(1),       field<&Function::inputs>(4),    field<&Function::outputs>(5),
        field<&Function::attributes>(6), field<&Function::nodes>(7),     field<&Function::opsets>(9),
        field<&Function::domain>(10),    field<&Function::defaults>(11), filled<&Function::overload>(13)};
    return list;
}

Fields<Model> Model::fields() {
    static constexpr Field<Model> list[] = {field<&Model::ir_version>(1),
                                            field<&Model::producer>(2),
                                            field<&Model::producer_version>(3),
                                            {7,
                                             [](Model& m, const ProtoReader& p) {
                                                 if (m.graph) p.fail("there are two graphs");
                                                 read_value(m.graph, p);
                                             },
                                             field<&Model::graph>(7).write},
                                            field<&Model::opsets>(8),
                                            field<&Model::functions>(25)};
    return list;
}

namespace {

TestValue test_value(ProtoReader p, const TypeEntry& type) {
    TestValue v;
    if (type.kind == TypeEntry::Kind::tensor) {
        NamedTensor t = NamedTensor::read(p);
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
        TestValue item = test_value(p.message(), inner);
        if (optional) {
            item.name = v.name;
            v = std::move(item);
        } else {
            v.items.push_back(std::move(item));
        }
    }
    return v;
}

// A TensorProto, SequenceProto or OptionalProto. The last two number their content fields by kind.
ProtoWriter test_value_message(const TestValue& value, const TypeEntry& type) {
    if (type.inner.empty()) {
        if (!value.tensor) throw state_error("onnx-run", str("the output '", value.name, "' is no tensor"));
        return NamedTensor{value.name, *value.tensor}.message();
    }
    const TypeEntry& inner = type.inner[0];
    const bool optional = type.kind == TypeEntry::Kind::optional;
    // elem_type, and the number and the field of a value: a tensor is 1 and in field 3, a sequence 3 and in field 5.
    const bool tensors = inner.inner.empty();
    ProtoWriter w;
    if (!value.name.empty()) w.bytes(1, value.name);
    w.integer(2, value.missing ? 0 : tensors ? 1 : inner.kind == TypeEntry::Kind::sequence ? 3 : 5);
    const uint32_t field = tensors ? 3 : inner.kind == TypeEntry::Kind::sequence ? 5 : 7;
    if (optional && !value.missing) {
        TestValue content = value;
        content.name.clear();
        w.message(field, test_value_message(content, inner));
    }
    if (!optional)
        for (const TestValue& item : value.items) w.message(field, test_value_message(item, inner));
    return w;
}

std::string text_of(const Source& source) {
    if (source.size() > uint64_t{1} << 31) throw source.error("is longer than 2 GiB, the most that such a file has");
    return source.text(0, static_cast<size_t>(source.size()));
}

}  // namespace

Model read_model(const Source& source, const std::optional<std::string>& folder) {
    if (source.size() == 0) throw source.error("is empty");
    const std::string bytes = text_of(source);
    FilesInside others(folder.value_or(""));
    Model m = read_message<Model>(ProtoReader(bytes, source.name(), folder ? &others : nullptr));
    if (!m.graph || m.opsets.empty()) throw source.error("is no ONNX file: there is no graph in it");
    return m;
}

std::string write_model(const Model& model) { return message_of(model).text(); }

TestValue read_test_value(const Source& source, const TypeEntry& type) {
    const std::string bytes = text_of(source);
    return test_value(ProtoReader(bytes, source.name()), type);
}

std::string write_test_value(const TestValue& value, const TypeEntry& type) {
    return test_value_message(value, type).text();
}

}  // namespace lunaria::onnx
