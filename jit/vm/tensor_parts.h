// Brackets and properties of a tensor as functions of it: t[i], t[i] = v, t.T.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/ops/indexing.h"
#include "jit/vm/host.h"

namespace lunaria::vm {

// Whether what an operator gives can take the place of the old value, as in x:add_(y).
bool fits_in_place(const Tensor& old, const Tensor& value);

class TensorParts {
  public:
    // tensor[index], or what the tensor is after tensor[index] = *value.
    Host::Part indexed(const Value& tensor, Index index, const Value* value);
    // The properties that are functions of the elements: the transposed matrix.
    Host::Part property(const Value& tensor, const std::string& name);

  private:
    std::map<std::string, std::shared_ptr<const ir::Graph>> parts_;
};

}  // namespace lunaria::vm
