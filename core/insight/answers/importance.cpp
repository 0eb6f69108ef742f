#include "core/insight/answers/importance.h"

#include <algorithm>
#include <cmath>

namespace lunaria::insight {

namespace {

double mean_of(const std::vector<double>& list) {
    double sum = 0;
    for (const double value : list) sum += value;
    return sum / static_cast<double>(list.size());
}

// Nothing where one of them is constant.
std::optional<double> correlation(const std::vector<double>& x, const std::vector<double>& y) {
    const double x_mean = mean_of(x), y_mean = mean_of(y);
    double xx = 0, yy = 0, xy = 0;
    for (size_t i = 0; i < x.size(); ++i) {
        xx += (x[i] - x_mean) * (x[i] - x_mean);
        yy += (y[i] - y_mean) * (y[i] - y_mean);
        xy += (x[i] - x_mean) * (y[i] - y_mean);
    }
    if (xx <= 0 || yy <= 0) return std::nullopt;
    return std::clamp(xy / std::sqrt(xx * yy), -1.0, 1.0);
}

// The group of each run. Few values are groups of their own; many are cut into equal parts of the runs.
std::vector<size_t> groups_of(const std::vector<Json>& settings) {
    std::vector<Json> values = settings;
    std::ranges::sort(values);
    std::vector<Json> distinct = values;
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    const size_t most = std::clamp<size_t>(settings.size() / 10, 3, 10);
    std::vector<Json> ends;  // the first value of each group but the first
    if (distinct.size() <= std::max<size_t>(most, settings.size() / 5) || !distinct.back().is_number()) {
        ends.assign(distinct.begin() + 1, distinct.end());
    } else {
        for (size_t g = 1; g < most; ++g)
            if (const Json& end = values[g * values.size() / most]; ends.empty() || ends.back() != end)
                ends.push_back(end);
    }
    std::vector<size_t> groups;
    for (const Json& setting : settings)
        groups.push_back(static_cast<size_t>(std::ranges::upper_bound(ends, setting) - ends.begin()));
    return groups;
}

double correlation_ratio(const std::vector<Json>& settings, const std::vector<double>& results) {
    const std::vector<size_t> groups = groups_of(settings);
    std::map<size_t, std::pair<double, double>> sums;  // of each group: results, and how many
    for (size_t i = 0; i < groups.size(); ++i) {
        sums[groups[i]].first += results[i];
        sums[groups[i]].second += 1;
    }
    const double mean = mean_of(results);
    double whole = 0, inside = 0;
    for (size_t i = 0; i < groups.size(); ++i) {
        const auto& [sum, count] = sums[groups[i]];
        whole += (results[i] - mean) * (results[i] - mean);
        inside += (results[i] - sum / count) * (results[i] - sum / count);
    }
    const auto n = static_cast<double>(groups.size()), k = static_cast<double>(sums.size());
    if (whole <= 0 || n <= k) return 0;
    return std::sqrt(std::clamp(1 - inside / whole * (n - 1) / (n - k), 0.0, 1.0));
}

}  // namespace

Table table_of(const std::vector<const Run*>& runs) {
    Table table;
    for (size_t i = 0; i < runs.size(); ++i) {
        const auto put = [&](std::map<std::string, Table::Column>& columns, const Json& values) {
            for (const auto& [name, value] : values.items()) {
                if (!value.is_number() && !value.is_string() && !value.is_boolean()) continue;
                Table::Column& column = columns[name];
                column.resize(runs.size());
                column[i] = value;
            }
        };
        put(table.hyper, hyper_of(runs[i]->lineage));
        put(table.metrics, metrics_of(runs[i]->lineage));
        for (const auto& [name, value] : runs[i]->lineage.user.items()) table.user.insert(name);
    }
    return table;
}

Importance importance_of(const Table::Column& setting, const Table::Column& result) {
    Importance importance;
    std::vector<Json> settings;
    std::vector<double> numbers, results;
    for (size_t i = 0; i < setting.size(); ++i) {
        if (setting[i].is_null() || !result[i].is_number()) continue;
        settings.push_back(setting[i]);
        results.push_back(result[i]);
        if (setting[i].is_number()) numbers.push_back(setting[i]);
    }
    importance.n = static_cast<int64_t>(settings.size());
    importance.is_numeric = numbers.size() == settings.size();
    if (importance.n < Importance::kFewest) return importance;
    if (importance.is_numeric) {
        if (const auto r = correlation(numbers, results)) {
            importance.has_pearson = true;
            importance.r = *r;
            importance.pearson = std::abs(*r);
        }
    }
    importance.association = correlation_ratio(settings, results);
    return importance;
}

}  // namespace lunaria::insight
