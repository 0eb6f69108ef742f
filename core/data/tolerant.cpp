#include "core/data/tolerant.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/data/ahead.h"

namespace lunaria::data {

namespace {

class GoodCursor final : public Cursor {
  public:
    GoodCursor(const Node& child, const std::string& where, bool replace, const Epoch& epoch)
        : feed_(child, epoch), where_(where), replace_(replace) {}
    bool next(Row& row) override {
        for (;;) {
            if (owed_ > 0 && !last_.empty()) {
                --owed_;
                row = last_;
                return true;
            }
            poll_interrupt();
            int64_t id = 0;
            if (!feed_.next(row, id)) {
                if (owed_ > 0)
                    throw value_error(where_,
                                      str("fails for each of the ", owed_, " rows: there is none to replace them"));
                return false;
            }
            const bool bad = is_bad(row);
            if (!bad && (!replace_ || owed_ == 0)) {
                if (replace_) last_ = row;
                return true;
            }
            if (!replace_) continue;
            if (!bad) last_ = row;
            ++owed_;
        }
    }

  private:
    Feed feed_;
    const std::string& where_;
    const bool replace_;
    Row last_;          // the last good one
    int64_t owed_ = 0;  // rows still to be given in place of bad ones, and for the first good one after them
};

class Good final : public Node {
  public:
    Good(const NodePtr& child, std::string where, bool replace)
        : Node(child->columns(), {child}), where_(std::move(where)), replace_(replace) {}
    std::string title() const override { return replace_ ? "replace bad rows" : "skip bad rows"; }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        return std::make_unique<GoodCursor>(child(), where_, replace_, epoch);
    }
    int64_t rows() const override { return replace_ ? child().rows() : kUnknownRows; }
    bool has_work() const override { return false; }
    int64_t batch_size() const override { return child().batch_size(); }

  private:
    const std::string where_;
    const bool replace_;
};

}  // namespace

NodePtr without_bad_rows(NodePtr child, std::string where, bool replace) {
    return std::make_shared<Good>(child, std::move(where), replace);
}

}  // namespace lunaria::data
