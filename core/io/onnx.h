// The contents of an ONNX file, message by message: the parts of onnx.proto that models need, with its field numbers
// (given in onnx.cpp). interpreter/lua/lunaria/onnx/ gives the messages their meaning as a function.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/io/file.h"
#include "core/io/proto_fields.h"
#include "core/io/proto_tensor.h"

namespace lunaria::onnx {

using proto::dtype_of;
using proto::type_name;
using proto::type_number;

struct TypeEntry {
    enum class Kind : uint8_t { unknown, tensor, sequence, optional, map, sparse } kind = Kind::unknown;
    int64_t element = 0;  // of a tensor: TensorProto.DataType
    struct Dim {
        int64_t size = -1;  // -1: not given
        std::string name;
        static proto::Fields<Dim> fields();
    };
    std::optional<std::vector<Dim>> shape;
    std::vector<TypeEntry> inner;  // of a sequence or an optional: one
    static proto::Fields<TypeEntry> fields();
};

struct ValueInfo {
    std::string name;
    TypeEntry type;
    static proto::Fields<ValueInfo> fields();
};

struct NamedTensor {
    std::string name;
    Tensor value;
    static NamedTensor read(ProtoReader p);
    ProtoWriter message() const;
};

struct Graph;

struct Attribute {
    enum class Kind : uint8_t { none, number, integer, string, tensor, graph, numbers, integers, strings, other };
    std::string name, reference;  // reference: the function's attribute whose value it takes
    Kind kind = Kind::none;
    int64_t type = 0;  // AttributeProto.AttributeType as a file says it
    std::vector<double> numbers;
    std::vector<int64_t> integers;
    std::vector<std::string> strings;
    std::vector<NamedTensor> tensors;
    std::vector<Graph> graphs;
    static Attribute read(ProtoReader p);
    static proto::Fields<Attribute> fields();
};

struct Node {
    std::string op, domain, overload, name;
    std::vector<std::string> inputs, outputs;
    std::vector<Attribute> attributes;
    static proto::Fields<Node> fields();
};

struct Graph {
    std::string name;
    std::vector<Node> nodes;
    std::vector<NamedTensor> initializers;
    std::vector<ValueInfo> inputs, outputs;
    static proto::Fields<Graph> fields();
};

struct Opset {
    std::string domain;
    int64_t version = 0;
    static proto::Fields<Opset> fields();
};

struct Function {
    std::string name, domain, overload;
    std::vector<std::string> inputs, outputs, attributes;
    std::vector<Attribute> defaults;
    std::vector<Node> nodes;
    std::vector<Opset> opsets;
    static proto::Fields<Function> fields();
};

struct Model {
    int64_t ir_version = 0;
    std::string producer, producer_version;
    std::optional<Graph> graph;
    std::vector<Opset> opsets;
    std::vector<Function> functions;
    static proto::Fields<Model> fields();
};

// Throws file_error, which begins with the file's name, for damaged files and for contents that have no form here
// (tensors of strings and other types that tensors do not have). External data is looked for in the folder; without a
// folder it is refused.
Model read_model(const Source& source, const std::optional<std::string>& folder);
std::string write_model(const Model& model);

// The value in a file of the ONNX tests' inputs and outputs: a tensor, a list of them, or nothing, according to the
// type that the model gives.
struct TestValue {
    std::string name;
    bool missing = false;          // an optional without a value
    std::optional<Tensor> tensor;  // otherwise a sequence
    std::vector<TestValue> items;
};
TestValue read_test_value(const Source& source, const TypeEntry& type);
std::string write_test_value(const TestValue& value, const TypeEntry& type);

}  // namespace lunaria::onnx
