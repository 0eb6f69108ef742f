#include "core/loops/operator_loop.h"

#include <atomic>

namespace lunaria::graph {

namespace {
using Write = std::optional<OperatorLoop> (*)(const KernelCall&);
constinit std::atomic<Write> writer{nullptr};
}  // namespace

std::optional<OperatorLoop> operator_loop(const KernelCall& call) {
    const Write write = writer.load(std::memory_order_relaxed);
    return write ? write(call) : std::nullopt;
}

void set_operator_loops(Write write) { writer.store(write, std::memory_order_relaxed); }

}  // namespace lunaria::graph
