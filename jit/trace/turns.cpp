#include "jit/trace/turns.h"

#include <algorithm>

namespace lunaria::trace {

void Turns::begin(const Step& loop, const Place& place) {
    const auto open = static_cast<size_t>(std::ranges::count_if(loop.expected, &Expected::open));
    loops_.push_back({&loop, place.at, progress_.path.size(), progress_.done, progress_.sizes.size() - open,
                      progress_.bodies.count(), progress_.tables.count()});
}

const Step& Turns::loop_of(const Step& again) {
    while (!is_loop_of(*loops_.back().step, again)) loops_.pop_back();
    return *loops_.back().step;
}

bool Turns::fits(const Step& again) {
    const Step& loop = loop_of(again);
    next_.clear();
    for (size_t k = 0; k < loop.expected.size(); ++k) {
        const Value& v = again.rest()[k];
        next_.push_back(v.is_node() ? progress_.slots[static_cast<size_t>(v.node()->slot)] : v);
        if (!trace::fits(host_, loop.expected[k], next_.back(), progress_.slots)) return false;
    }
    return true;
}

void Turns::go_back(const Step& again, Place& place) {
    const Step& loop = loop_of(again);
    const Loop& here = loops_.back();
    progress_.path.resize(here.path);
    progress_.done = here.done;
    progress_.sizes.resize(here.sizes);
    progress_.bodies.forget_from(here.bodies);
    progress_.tables.forget_from(here.tables);
    const auto first = static_cast<size_t>(loop.expected[0].slot);
    for (size_t k = first; k < progress_.handles.size(); ++k) progress_.handles[k] = Value();
    for (size_t k = 0; k < loop.expected.size(); ++k) {
        const Expected& e = loop.expected[k];
        if (e.open) progress_.sizes.emplace_back(e.slot, next_[k].tensor().shape());
        progress_.slots[static_cast<size_t>(e.slot)] = std::move(next_[k]);
    }
    place = {progress_.path.back(), here.at + 1, 0, 0};
}

}  // namespace lunaria::trace
