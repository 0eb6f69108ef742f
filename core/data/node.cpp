#include "core/data/node.h"

#include <algorithm>

#include "core/base/interrupt.h"
#include "core/data/stage_times.h"

namespace lunaria::data {

namespace {
constexpr int64_t kRowsBetweenLooks = 4096;
}

int64_t Cursor::skip(int64_t count) {
    Row row;
    for (int64_t i = 0; i < count; ++i) {
        if (i % kRowsBetweenLooks == 0) poll_interrupt();
        if (!next(row)) return i;
    }
    return count;
}

bool Cursor::draw(Draft& draft) {
    if (!has_ids()) return next(draft.row);
    int64_t id = 0;
    if (!next_id(id)) return false;
    prepare(id, draft);
    return true;
}

void Cursor::finish(Draft& draft, Row& row) {
    if (has_ids())
        fetch(draft.id, row);
    else
        row = std::move(draft.row);
}

bool IdCursor::next(Row& row) {
    int64_t id = 0;
    if (!next_id(id)) return false;
    fetch(id, row);
    return true;
}

int64_t IdCursor::skip(int64_t count) {
    int64_t id = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (i % kRowsBetweenLooks == 0) poll_interrupt();
        if (!next_id(id)) return i;
    }
    return count;
}

std::unique_ptr<Cursor> Node::open(const Epoch& epoch) const {
    auto cursor = make_cursor(epoch);
    return epoch.times ? timed(std::move(cursor), epoch.times->of(*this)) : std::move(cursor);
}

void Node::prepare(Host& host) const {
    for (const auto& c : children_) c->prepare(host);
}

bool Node::is_native() const {
    return std::all_of(children_.begin(), children_.end(), [](const auto& c) { return c->is_native(); });
}

bool Node::is_lazy() const {
    return std::any_of(children_.begin(), children_.end(), [](const auto& c) { return c->is_lazy(); });
}

bool Node::has_work() const {
    return std::any_of(children_.begin(), children_.end(), [](const auto& c) { return c->has_work(); });
}

std::optional<int> Node::workers() const {
    std::optional<int> most;
    for (const auto& c : children_)
        if (const auto n = c->workers()) most = std::max(most.value_or(0), *n);
    return most;
}

uint64_t Node::functions() const {
    uint64_t sum = 0;
    for (const auto& c : children_) sum += c->functions();
    return sum;
}

}  // namespace lunaria::data
