// Rows that are kept when they were made once.
#pragma once

#include "core/data/node.h"

namespace lunaria::data {

class Cache {
  public:
    virtual ~Cache() = default;
    virtual int64_t rows() const = 0;   // that are kept
    virtual int64_t bytes() const = 0;  // of them
    virtual int64_t hits() const = 0;   // rows that were found
};
// Owners: nodes, handles in the host language.
using CachePtr = std::shared_ptr<Cache>;

// Keeps rows in memory up to `most_bytes`, then, with `spilling`, in a temporary file.
CachePtr make_cache(int64_t most_bytes, bool spilling);

// The rows of the child, each made once: by their ids, or where there are none by their positions, so that the rows of
// the first epoch come again. A cache serves one node.
NodePtr cached(NodePtr child, CachePtr cache);

}  // namespace lunaria::data
