// Rows for which an operation fails, in pipelines that go on: the operation marks the row as bad, and the next step
// leaves it out or replaces it.
#pragma once

#include <algorithm>

#include "core/data/node.h"

namespace lunaria::data {

inline Row bad_row(size_t columns) { return Row(columns); }
inline bool is_bad(const Row& row) {
    return std::all_of(row.begin(), row.end(), [](const Value& v) { return v.is_nil(); });
}

// The rows without the bad ones; with `replace` the last good row before, or the first one after, comes in place of
// each bad one. `where`: the operation, for messages.
NodePtr without_bad_rows(NodePtr child, std::string where, bool replace);

}  // namespace lunaria::data
