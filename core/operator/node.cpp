#include "core/operator/node.h"

namespace lunaria::ir {

const TensorType& Node::tensor_type() const {
    if (type.kind != NodeType::Kind::tensor)
        throw state_error("ir", str("node %", id, name.empty() ? "" : " ", name, " is not known to be a tensor"));
    return type.tensor;
}

}  // namespace lunaria::ir
