// Results of steps that the runner carried out, for a recording that takes the call up where the runner stopped. Of a
// tensor that nothing needs any more a placeholder is given: one of its type, at whose elements nothing looks.
#pragma once

#include <functional>
#include <span>

#include "jit/trace/progress.h"

namespace lunaria::trace {

// `values`: what the recorder knows, by slot. Without the numbers of a way for any sizes.
vm::Values known_results(const Progress& progress, const Step& known, std::span<const Value> values);
// Placeholders of any sizes must have the sizes of this call, which those of the operands tell: `body` carries the step
// out.
void size_placeholders(const Progress& progress, const Step& known, vm::Values& results,
                       const std::function<void(vm::Values&)>& body);

}  // namespace lunaria::trace
