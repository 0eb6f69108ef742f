#include "jit/graph/divided.h"

#include <atomic>

#include "core/operator/op.h"

namespace lunaria::graph {

namespace {
std::atomic<MakeDivided>& maker() {
    static std::atomic<MakeDivided> function{nullptr};
    return function;
}
}  // namespace

void set_make_divided(MakeDivided function) { maker() = function; }

bool is_layout(const Op& op) {
    static const Op& by_number = registry().get("lay_out");
    static const Op& as_another = registry().get("lay_out_as");
    return &op == &by_number || &op == &as_another;
}

std::unique_ptr<Divided> make_divided() {
    const MakeDivided function = maker();
    return function ? function() : nullptr;
}

}  // namespace lunaria::graph
