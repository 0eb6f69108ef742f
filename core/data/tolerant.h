// Rows that an operation fails for, where the pipeline is to go on: the operation gives bad ones in their places, which
// are left out or replaced right behind it.
#pragma once

#include <algorithm>

#include "core/data/node.h"

namespace lunaria::data {

inline Row bad_row(size_t columns) { return Row(columns); }
inline bool is_bad(const Row& row) {
    return std::all_of(row.begin(), row.end(), [](const Value& v) { return v.is_nil(); });
}

// The rows without bad ones; with `replace` the last good row before, or the first one behind, comes in their places.
// `where`: the operation, for messages.
NodePtr without_bad_rows(NodePtr child, std::string where, bool replace);

}  // namespace lunaria::data
