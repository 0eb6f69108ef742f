#include "core/data/node.h"

#include "core/interrupt.h"

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

}  // namespace lunaria::data
