#include "core/io/onnx.h"
#include "core/io/protobuf.h"

namespace lunaria::onnx {

namespace {

ProtoWriter type_message(const TypeEntry& t) {
    ProtoWriter w;
    if (t.kind != TypeEntry::Kind::tensor) return w;
    ProtoWriter tensor;
    tensor.integer(1, t.element);
    if (t.shape) {
        ProtoWriter shape;
        for (const TypeEntry::Dim& d : *t.shape) {
            ProtoWriter dim;
            if (d.size >= 0)
                dim.integer(1, d.size);
            else if (!d.name.empty())
                dim.bytes(2, d.name);
            shape.message(1, dim);
        }
        tensor.message(2, shape);
    }
    return w.message(1, tensor);
}

ProtoWriter value_message(const ValueInfo& v) {
    ProtoWriter w;
    return w.bytes(1, v.name).message(2, type_message(v.type));
}

ProtoWriter tensor_message(const std::string& name, const Tensor& tensor) {
    ProtoWriter w;
    for (int64_t d : tensor.shape()) w.integer(1, d);
    w.integer(2, type_number(tensor.dtype()));
    if (!name.empty()) w.bytes(8, name);
    const Tensor dense = tensor.contiguous().to_host();
    const size_t size = static_cast<size_t>(dense.size()) * size_of(dense.dtype());
    return w.bytes(9, std::string_view(static_cast<const char*>(dense.raw()), size));
}

ProtoWriter graph_message(const Graph& g);

ProtoWriter attribute_message(const Attribute& a) {
    using Kind = Attribute::Kind;
    ProtoWriter w;
    w.bytes(1, a.name);
    switch (a.kind) {
        case Kind::number:
            w.float32(2, static_cast<float>(a.numbers.at(0)));
            break;
        case Kind::integer:
            w.integer(3, a.integers.at(0));
            break;
        case Kind::string:
            w.bytes(4, a.strings.at(0));
            break;
        case Kind::tensor:
            w.message(5, tensor_message("", a.tensors.at(0).value));
            break;
        case Kind::graph:
            w.message(6, graph_message(a.graphs.at(0)));
            break;
        case Kind::numbers:
            for (double d : a.numbers) w.float32(7, static_cast<float>(d));
            break;
        case Kind::integers:
            for (int64_t i : a.integers) w.integer(8, i);
            break;
        default:
            for (const std::string& s : a.strings) w.bytes(9, s);
            break;
    }
    return w.integer(20, static_cast<int64_t>(a.kind));
}

ProtoWriter node_message(const Node& n) {
    ProtoWriter w;
    for (const std::string& input : n.inputs) w.bytes(1, input);
    for (const std::string& output : n.outputs) w.bytes(2, output);
    w.bytes(3, n.name).bytes(4, n.op);
    for (const Attribute& a : n.attributes) w.message(5, attribute_message(a));
    if (!n.domain.empty()) w.bytes(7, n.domain);
    return w;
}

ProtoWriter graph_message(const Graph& g) {
    ProtoWriter w;
    for (const Node& n : g.nodes) w.message(1, node_message(n));
    w.bytes(2, g.name);
    for (const NamedTensor& t : g.initializers) w.message(5, tensor_message(t.name, t.value));
    for (const ValueInfo& v : g.inputs) w.message(11, value_message(v));
    for (const ValueInfo& v : g.outputs) w.message(12, value_message(v));
    return w;
}

}  // namespace

std::string write_model(const Model& m) {
    ProtoWriter w;
    w.integer(1, m.ir_version).bytes(2, m.producer).bytes(3, m.producer_version).message(7, graph_message(m.graph));
    for (const Opset& o : m.opsets) {
        ProtoWriter opset;
        w.message(8, opset.bytes(1, o.domain).integer(2, o.version));
    }
    return w.text();
}

// TensorProto, SequenceProto or OptionalProto, of which the last two number their content by what it is.
static ProtoWriter test_value_message(const TestValue& value, const TypeEntry& type) {
    if (type.inner.empty()) {
        if (!value.tensor) throw state_error("onnx-run", str("the output '", value.name, "' is no tensor"));
        return tensor_message(value.name, *value.tensor);
    }
    const TypeEntry& inner = type.inner[0];
    const bool optional = type.kind == TypeEntry::Kind::optional;
    // elem_type, and where a value is: a tensor is 1 and in field 3, a sequence 3 and in field 5.
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

std::string write_test_value(const TestValue& value, const TypeEntry& type) {
    return test_value_message(value, type).text();
}

}  // namespace lunaria::onnx
