// The contents of a MindIR file, message by message: the parts of MindSpore's mind_ir.proto that graphs need, with its
// field numbers (given in mindir_model.cpp). mindir_read.cpp, mindir_import.cpp and mindir_write.cpp give the messages
// their meaning as a graph.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/io/file.h"
#include "core/io/proto_fields.h"
#include "core/operator/node.h"

namespace lunaria::mindir {

// AttributeProto.AttributeType.
enum class Kind : int {
    undefined = 0,
    float32 = 1,
    uint8 = 2,
    int8 = 3,
    int16 = 5,
    int32 = 6,
    int64 = 7,
    string = 8,
    boolean = 9,
    float16 = 10,
    float64 = 11,
    uint32 = 12,
    tensor = 17,
    graph = 18,
    tensors = 19,
    tuple = 20,
    list = 21,
    umonad = 23,
    iomonad = 24,
    none = 25,
    primitive = 26,
    graph_closure = 27,  // FUNCGRAPHCLOSURE
    union_closure = 29,  // UNIONFUNCCLOSURE
    dtype = 33,          // CLASS_TYPE
    unknown = 36         // TYPE_NULL
};

struct TensorEntry {
    std::string name, key;
    int64_t type = 0;  // TensorProto.DataType
    std::vector<int64_t> dims;
    Tensor value;  // none: only dtype and shape are given

    std::optional<DType> dtype() const;  // nothing for a type that tensors do not have
    bool shape_is_valid() const;
    TensorType tensor_type() const;  // requires a valid dtype and shape
    // Without elements the entry states only a dtype and a shape.
    static TensorEntry read(ProtoReader p);
    ProtoWriter message() const;
};

struct Attribute {
    std::string name;
    Kind kind = Kind::undefined;
    std::vector<int64_t> integers;  // i, or ints
    std::vector<double> numbers;    // f, d, floats or doubles
    std::vector<std::string> strings;
    std::vector<TensorEntry> tensors;
    std::vector<Attribute> values;
    static proto::Fields<Attribute> fields();
    ProtoWriter message(bool in_tuple = false) const;
};

struct NodeEntry {
    std::vector<std::string> inputs;
    std::string output, name, op_type, doc, domain;
    std::vector<Attribute> attributes;
    const Attribute* find(std::string_view name) const;
    static proto::Fields<NodeEntry> fields();
};

struct ValueInfo {
    std::string name, doc;
    std::vector<TensorEntry> tensors;
    std::optional<Attribute> info;
    static proto::Fields<ValueInfo> fields();
};

struct GraphEntry {
    std::string name;
    std::vector<NodeEntry> nodes;
    std::vector<TensorEntry> parameters;
    std::vector<ValueInfo> inputs, outputs;
    std::vector<Attribute> attributes;
    const Attribute* find(std::string_view name) const;
    static proto::Fields<GraphEntry> fields();
};

struct PrimitiveEntry {
    std::string name, op_type;
    std::vector<Attribute> attributes;
    int type = 1;  // PrimitiveProto.PrimType
    static proto::Fields<PrimitiveEntry> fields();
};

struct Model {
    std::string ir_version, producer, producer_version;
    std::optional<GraphEntry> graph;
    std::vector<GraphEntry> functions;
    std::map<std::string, PrimitiveEntry> primitives;  // by name
    static proto::Fields<Model> fields();
};

int64_t type_number(DType dtype);  // TensorProto.DataType
TensorEntry entry_of(const TensorType& type);
TensorEntry entry_of(const Tensor& tensor);
Attribute type_attribute(const ir::NodeType& type);  // "shape"

// The form in which values are written: the kinds of floats and tensors, and other choices.
struct ValueForm {
    Kind floats, tensors;
    Attribute (*other)(const Value&);
};
Attribute attribute_of(std::string name, const Value& v, const ValueForm& form);

// Throws file_error for files that are no models; the graph's rules are not checked.
Model read_model(const Source& source);
std::string write_model(const Model& model);

}  // namespace lunaria::mindir
