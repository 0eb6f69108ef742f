// Results of steps that the runner carried out, for a recording that takes over the call where the runner stopped. A
// tensor that nothing needs any more is replaced by a placeholder: a tensor of its type whose elements are never read.
#pragma once

#include <functional>
#include <span>

#include "jit/trace/progress.h"

namespace lunaria::trace {

// `values`: the recorder's values, by slot. Without the numbers of a branch for any sizes.
vm::Values known_results(const Progress& progress, const Step& known, std::span<const Value> values);
// Gives placeholders of any sizes the sizes of this call, which follow from those of the operands: `body` carries out
// the step.
void size_placeholders(const Progress& progress, const Step& known, vm::Values& results,
                       const std::function<void(vm::Values&)>& body);

}  // namespace lunaria::trace
