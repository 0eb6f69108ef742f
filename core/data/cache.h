// A cache of rows that were made once.
#pragma once

#include "core/data/node.h"

namespace lunaria::data {

class Cache {
  public:
    virtual ~Cache() = default;
    virtual int64_t rows() const = 0;   // rows in the cache
    virtual int64_t bytes() const = 0;  // the bytes of them
    virtual int64_t hits() const = 0;   // requests that found their row
};
// Owners: nodes, handles in the host language.
using CachePtr = std::shared_ptr<Cache>;

// Keeps rows in memory up to `most_bytes`, then, with `spilling`, in a temporary file.
CachePtr make_cache(int64_t most_bytes, bool spilling);

// The rows of the child, each made once. Rows are known by their ids, or without ids by their positions, so that the
// rows of the first epoch come again. A cache serves one node.
NodePtr cached(NodePtr child, CachePtr cache);

}  // namespace lunaria::data
