// The weight of settings for a result, by the runs that have both.
#pragma once

#include <map>
#include <set>

#include "core/insight/store/run.h"

namespace lunaria::insight {

// Settings and results of runs, one place for each run; null where it has none.
struct Table {
    using Column = std::vector<Json>;
    std::map<std::string, Column> hyper, metrics;
    std::set<std::string> user;  // names of settings that programs gave
    bool is_user_defined(const std::string& name) const { return user.contains(name); }
};
Table table_of(const std::vector<const Run*>& runs);

struct Importance {
    static constexpr int64_t kFewest = 3;  // runs
    int64_t n = 0;                         // runs that have both
    bool is_numeric = false;               // both are numbers
    bool has_pearson = false;
    double pearson = 0;  // |r|
    double r = 0;
    // The correlation ratio: the share of the result's variance that knowing the setting's group takes away, adjusted
    // for the number of groups, and its root. Groups are values, or equal parts of the runs by a number. It sees what
    // is not monotone, and texts.
    double association = 0;
};
Importance importance_of(const Table::Column& setting, const Table::Column& result);

}  // namespace lunaria::insight
