// Rows made by the threads of the pool before they are asked for.
#pragma once

#include "core/data/node.h"

namespace lunaria::data {

// A cursor over the same rows in the same order, made ahead by threads. `cursor` is a cursor of `node`. Where the node
// is native the threads draw rows too, one at a time; otherwise only the calling thread draws. At most workers *
// prefetch rows wait (more, if they take next to no time); the next ones are brought to the epoch's device. An error
// comes in place of its row, and again when asked again. Returns `cursor` itself where there is nothing to gain.
std::unique_ptr<Cursor> ahead(std::unique_ptr<Cursor> cursor, const Node& node, const Epoch& epoch);

// The source of rows for a cursor that takes whole rows. Rows are made ahead unless their ids are asked for.
class Feed {
  public:
    Feed(const Node& node, const Epoch& epoch) : node_(node), epoch_(epoch), cursor_(node.open(epoch)) {
        epoch_.device = nullptr;
    }
    // The next row, and its id where there are ids.
    bool next(Row& row, int64_t& id);
    int64_t skip(int64_t count) { return cursor_->skip(count); }
    bool has_ids() const { return has_ids_; }
    // Exactly one of the two: rows by id, or rows made ahead.
    bool next_id(int64_t& id) { return cursor_->next_id(id); }
    void fetch(int64_t id, Row& row) { cursor_->fetch(id, row); }

  private:
    const Node& node_;
    Epoch epoch_;
    std::unique_ptr<Cursor> cursor_;
    bool has_ids_ = cursor_->has_ids(), begun_ = false, is_ahead_ = false;
};

}  // namespace lunaria::data
