#include "core/ir/node.h"

namespace lunaria::ir {

const TensorType& Node::type() const {
    if (inferred.kind != NodeType::Kind::tensor)
        throw state_error("ir", str("node %", id, " ", name, " is not known to be a tensor"));
    return inferred.tensor;
}

}  // namespace lunaria::ir
