// A cursor over the rows of one child, which it changes or keeps one by one. Rows that have no ids are counted.
#pragma once

#include <memory>
#include <utility>

#include "core/data/node.h"

namespace lunaria::data {

class FollowingCursor : public Cursor {
  public:
    explicit FollowingCursor(std::unique_ptr<Cursor> child) : child_(std::move(child)) {}
    bool next(Row& row) override {
        Draft draft;
        if (!draw(draft)) return false;
        finish(draft, row);
        return true;
    }
    int64_t skip(int64_t count) override {
        const int64_t n = child_->skip(count);
        at_ += n;
        return n;
    }
    bool has_ids() const override { return child_->has_ids(); }
    bool next_id(int64_t& id) override { return child_->next_id(id); }

  protected:
    std::unique_ptr<Cursor> child_;
    int64_t at_ = 0;
};

}  // namespace lunaria::data
