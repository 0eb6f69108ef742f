// The contents of tensors before a differentiated program wrote into them: backpropagators that were made before a
// write get the content that they captured.
#pragma once

#include <memory>
#include <vector>

#include "jit/vm/object.h"

namespace lunaria::vm {

class WriteLog {
  public:
    // Keeps the content of a tensor that is about to be written into.
    void before_write(const Tensor& tensor, Context& context);
    // Gives the tensors that a backpropagator captured their content at that time; throws when it is unknown.
    void check(Closure& pullback) const;
    // The outermost run has ended: contents that only its backward pass needed are dropped.
    void end_run() { recent_.clear(); }

  private:
    bool restore(uint64_t clock, uint64_t expected, Values& captures) const;

    std::vector<std::weak_ptr<const Overwritten>> overwritten_;  // in the order of the writes
    std::vector<std::shared_ptr<const Overwritten>> recent_;     // of the outermost run in progress
};

}  // namespace lunaria::vm
