// The columns of a row after an operation has replaced some of them.
#pragma once

#include <algorithm>

#include "core/data/node.h"

namespace lunaria::data {

inline Names chosen(const Names& names, const std::vector<size_t>& positions) {
    Names list;
    for (size_t at : positions) list.push_back(names[at]);
    return list;
}

// Columns that are not among the inputs keep their places; the results come at the place of the first input.
struct Layout {
    static constexpr size_t kResults = SIZE_MAX;
    std::vector<size_t> order;  // a column of the row, or kResults
    Names names;

    Layout(const Names& before, const std::vector<size_t>& inputs, const Names& outputs) {
        for (size_t i = 0; i < before.size(); ++i) {
            if (std::find(inputs.begin(), inputs.end(), i) == inputs.end()) {
                order.push_back(i);
                names.push_back(before[i]);
            } else if (i == inputs.front()) {
                order.push_back(kResults);
                names.insert(names.end(), outputs.begin(), outputs.end());
            }
        }
    }
    // Appends the columns of `whole` that are kept, and `made` at its place.
    void place(Row& whole, Row& made, Row& row) const {
        for (size_t at : order) {
            if (at == kResults)
                for (Value& v : made) row.push_back(std::move(v));
            else
                row.push_back(std::move(whole[at]));
        }
    }
};

}  // namespace lunaria::data
