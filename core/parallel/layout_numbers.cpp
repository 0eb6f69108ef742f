// The layouts that have numbers: attributes of operators are plain values.
#include <algorithm>
#include <mutex>

#include "core/base/error.h"
#include "core/parallel/laid.h"

namespace lunaria::parallel {

namespace {
struct Numbers {
    std::mutex mutex;
    std::vector<const Distribution*> layouts;
};
Numbers& numbers() {
    static auto* all = new Numbers;
    return *all;
}
}  // namespace

int64_t number_of(const Distribution& layout) {
    std::lock_guard lock(numbers().mutex);
    auto& list = numbers().layouts;
    const auto found = std::ranges::find(list, &layout);
    if (found != list.end()) return found - list.begin() + 1;
    list.push_back(&layout);
    return static_cast<int64_t>(list.size());
}

const Distribution& layout_numbered(int64_t number, const Shape& shape) {
    std::unique_lock lock(numbers().mutex);
    const auto& list = numbers().layouts;
    if (number < 1 || number > static_cast<int64_t>(list.size()))
        throw value_error("lay_out", str("there is no layout number ", number));
    const Distribution& layout = *list[static_cast<size_t>(number) - 1];
    lock.unlock();
    if (layout.rank() != shape.rank())
        throw shape_error("lay_out", str("the layout ", layout.text(), " is for tensors of rank ", layout.rank(),
                                         ", and this one has shape ", shape));
    if (layout.partial())
        throw value_error("lay_out", str("the layout ", layout.text(), " is that of an incomplete sum"));
    return layout;
}

}  // namespace lunaria::parallel
