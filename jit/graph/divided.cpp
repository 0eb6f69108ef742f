#include "jit/graph/divided.h"

#include <atomic>

namespace lunaria::graph {

namespace {
std::atomic<MakeDivided>& maker() {
    static std::atomic<MakeDivided> function{nullptr};
    return function;
}
}  // namespace

void set_make_divided(MakeDivided function) { maker() = function; }

std::unique_ptr<Divided> make_divided() {
    const MakeDivided function = maker();
    return function ? function() : nullptr;
}

}  // namespace lunaria::graph
