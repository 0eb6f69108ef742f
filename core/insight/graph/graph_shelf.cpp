#include "core/insight/graph/graph_shelf.h"

#include <algorithm>
#include <filesystem>

namespace lunaria::insight {

std::shared_ptr<GraphPage> GraphShelf::page(const std::string& path, const std::string& name) {
    std::error_code problem;
    const uint64_t size = std::filesystem::file_size(path, problem);
    const auto written = std::filesystem::last_write_time(path, problem).time_since_epoch().count();
    const std::pair stamp(size, static_cast<int64_t>(written));
    // Two questions for a new graph would read it twice: the second one waits.
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(kept_, path, &Kept::path);
    if (found != kept_.end() && found->stamp == stamp) {
        kept_.splice(kept_.begin(), kept_, found);
        return found->page;
    }
    if (found != kept_.end()) kept_.erase(found);
    auto page = std::make_shared<GraphPage>(read_operator_graph(*open_source(path)), name);
    kept_.push_front({path, stamp, page});
    if (kept_.size() > kMost) kept_.pop_back();
    return page;
}

}  // namespace lunaria::insight
