// The message TensorProto as ONNX and MindIR have it: the numbers of their fields differ, the numbers of the data types
// and the forms of elements are the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/io/proto_fields.h"
#include "core/tensor/tensor.h"

namespace lunaria::proto {

// TensorProto.DataType by name; empty for a number that has none.
std::string_view type_name(int64_t type);
// The tensor dtype for this number; nothing where there is none.
std::optional<DType> dtype_of(int64_t type);
// 0 where there is none.
int64_t type_number(DType dtype);

// The contents of the message, with its elements wherever they are.
struct TensorContents {
    std::string name, key;
    std::vector<int64_t> dims;
    int64_t type = 0;
    std::optional<std::string_view> raw;
    std::vector<float> floats;
    std::vector<double> doubles;
    std::vector<int64_t> int32s, int64s;  // 64-bit unsigned ones by their bits
    bool has_strings = false, is_segmented = false, is_compressed = false;
    // External data; pairs of texts give its place.
    bool is_external = false;
    struct Entry {
        std::string key, value;
        static Fields<Entry> fields();
    };
    std::vector<Entry> place;

    size_t listed() const { return floats.size() + doubles.size() + int32s.size() + int64s.size(); }
    std::string called() const;  // its name in messages
};

// A message that does not fit is an error of `p`. The sizes are checked before memory is allocated for them.
Shape shape_of(const ProtoReader& p, const TensorContents& c, DType dtype);
// The elements that are in the message itself.
Tensor elements(const ProtoReader& p, const TensorContents& c, DType dtype);
// Any byte but zero means true.
void normalise(Tensor& t);
// The elements as the field raw_data.
ProtoWriter& write_raw(ProtoWriter& w, uint32_t field, const Tensor& tensor);

}  // namespace lunaria::proto
