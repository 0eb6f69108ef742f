// A division into one part is one value: a graph only has lists of several values.
#pragma once

#include "core/ir/builder.h"
#include "jit/trace/trace.h"

namespace lunaria::trace {

inline bool is_undivided(const Step& step) {
    return step.list && step.expected.size() == 1 && !step.expected[0].open && step.op().view_fn;
}
// The part, from the operands as the graph has them.
inline Value undivided(ir::GraphBuilder& builder, const Step& step, const std::vector<Value>& args) {
    const Value parts[] = {args[0], Value::ints(step.expected[0].type.shape)};
    return builder.emit(registry().get("reshape"), parts);
}

}  // namespace lunaria::trace
