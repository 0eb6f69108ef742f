// The graphs that were looked at last: a file is read, and a graph searched for equal parts, once for many questions.
#pragma once

#include <list>

#include "core/insight/graph/graph_page.h"

namespace lunaria::insight {

class GraphShelf {
  public:
    // The graph of the file. `name`: what it is called; another size or time of the file means that it was written
    // anew. Throws what reading throws.
    std::shared_ptr<GraphPage> page(const std::string& path, const std::string& name);

  private:
    static constexpr size_t kMost = 6;
    struct Kept {
        std::string path;
        std::pair<uint64_t, int64_t> stamp;  // size, and when it was written
        std::shared_ptr<GraphPage> page;
    };
    std::mutex mutex_;
    std::list<Kept> kept_;  // the one that was asked for last comes first
};

}  // namespace lunaria::insight
