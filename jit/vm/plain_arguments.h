// Values of a plain host as arguments of operators: by name in a trailing table, lists of tensors and sizes in
// tables, indices of tensors. The messages are those of the interpreter (interpreter/values).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/ops/indexing.h"
#include "jit/vm/host.h"

namespace lunaria::vm {

Host::Bound bind_plain(const Op& op, std::span<const Value> args);
// What stands in the brackets of tensor[key].
Index plain_index(const Value& key);
// A new tensor of a number, a boolean, a tensor or nested tables of these.
Tensor plain_tensor(const Value& data, std::optional<DType> dtype, std::string_view where = "tensor");
// The dtype that a value is or names.
std::optional<DType> plain_dtype(const Value& v);
// For messages: "the integer 3", "a tensor of shape (2, 3) and dtype float32", "a table".
std::string describe_plain(const Value& v);

// Tables that stand for a slice or for None in an index have these metatables.
const Value& slice_metatable();
const Value& new_axis_metatable();

}  // namespace lunaria::vm
