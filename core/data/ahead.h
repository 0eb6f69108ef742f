// Rows made by the threads of the pool before they are asked for.
#pragma once

#include "core/data/node.h"

namespace lunaria::data {

// The rows of the cursor, which is of the node, in their order. Where the node is native the threads draw rows too, one
// at a time, else only the one who asks for rows does. At most workers * prefetch rows wait (more, if they take next to
// no time); those that come next are brought to the device of the epoch. An error comes where its row would, and again
// when asked again. Gives the cursor back where there is nothing to gain.
std::unique_ptr<Cursor> ahead(std::unique_ptr<Cursor> cursor, const Node& node, const Epoch& epoch);

// What a cursor that takes whole rows draws from. Rows are made ahead if their ids are never asked for.
class Feed {
  public:
    Feed(const Node& node, const Epoch& epoch) : node_(node), epoch_(epoch), cursor_(node.open(epoch)) {
        epoch_.device = nullptr;
    }
    // The next row, and its id where there are ids.
    bool next(Row& row, int64_t& id);
    int64_t skip(int64_t count) { return cursor_->skip(count); }
    bool has_ids() const { return has_ids_; }
    // By id, or ahead, not both.
    bool next_id(int64_t& id) { return cursor_->next_id(id); }
    void fetch(int64_t id, Row& row) { cursor_->fetch(id, row); }

  private:
    const Node& node_;
    Epoch epoch_;
    std::unique_ptr<Cursor> cursor_;
    bool has_ids_ = cursor_->has_ids(), begun_ = false, is_ahead_ = false;
};

}  // namespace lunaria::data
