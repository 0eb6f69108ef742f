// A cursor over the rows of one child, which it changes or leaves out one by one. Rows without ids are counted.
#pragma once

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "core/base/interrupt.h"
#include "core/data/node.h"
#include "core/data/place_in_batch.h"
#include "core/data/tolerant.h"

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

// Makes each row from the child's by plan.apply(whole, row, epoch, number), on any thread.
template <class Plan>
class MadeCursor final : public FollowingCursor {
  public:
    MadeCursor(std::unique_ptr<Cursor> child, const Plan& plan, const Epoch& epoch)
        : FollowingCursor(std::move(child)), plan_(plan), epoch_(epoch) {}
    void fetch(int64_t id, Row& row) override {
        Row whole;
        child_->fetch(id, whole);
        make(whole, row, id);
    }
    bool draw(Draft& draft) override {
        if (!child_->draw(draft)) return false;
        draft.numbers.push_back(has_ids() ? draft.id : at_++);
        // Results of the host's functions exist as soon as the row is drawn.
        if constexpr (requires { plan_.drawn(draft.row, epoch_); }) plan_.drawn(draft.row, epoch_);
        return true;
    }
    void prepare(int64_t id, Draft& draft) override {
        child_->prepare(id, draft);
        draft.numbers.push_back(id);
    }
    void finish(Draft& draft, Row& row) override {
        const int64_t number = draft.numbers.back();
        draft.numbers.pop_back();
        Row whole;
        {
            const PlaceInBatch::Hidden hidden;
            child_->finish(draft, whole);
        }
        make(whole, row, number);
    }
    bool finishes_together() const override {
        return requires(const Plan& p, std::span<Row> rows, std::span<const int64_t> n) {
            p.apply_together(rows, rows, epoch_, n);
        };
    }
    void finish_together(std::span<Draft> drafts, std::span<Row> rows) override {
        if constexpr (requires(std::span<const int64_t> n) { plan_.apply_together(rows, rows, epoch_, n); }) {
            std::vector<int64_t> numbers;
            for (Draft& draft : drafts) {
                numbers.push_back(draft.numbers.back());
                draft.numbers.pop_back();
            }
            std::vector<Row> whole(drafts.size());
            {
                const PlaceInBatch::Hidden hidden;
                if (child_->finishes_together())
                    child_->finish_together(drafts, whole);
                else
                    for (size_t i = 0; i < drafts.size(); ++i) child_->finish(drafts[i], whole[i]);
            }
            try {
                plan_.apply_together(whole, rows, epoch_, numbers);
            } catch (const std::exception&) {
                if (!plan_.tolerant) throw;
                for (size_t i = 0; i < whole.size(); ++i) make(whole[i], rows[i], numbers[i]);
            }
        } else {
            Cursor::finish_together(drafts, rows);
        }
    }

  private:
    void make(Row& whole, Row& row, int64_t number) {
        try {
            plan_.apply(whole, row, epoch_, number);
        } catch (const std::exception&) {
            if (!plan_.tolerant || interrupt_requested()) throw;
            row = bad_row(plan_.layout.names.size());
        }
    }

    const Plan& plan_;
    const Epoch epoch_;
};

// Base of the nodes of such cursors.
class MakingNode : public Node {
  public:
    MakingNode(Names columns, const NodePtr& child, std::optional<int> workers)
        : Node(std::move(columns), {child}), workers_(workers) {}
    int64_t rows() const override { return child().rows(); }
    bool has_work() const override { return true; }
    std::optional<int> workers() const override {
        const auto below = child().workers();
        return workers_ && below ? std::max(*workers_, *below) : workers_ ? workers_ : below;
    }
    int64_t batch_size() const override { return child().batch_size(); }
    uint64_t functions() const override { return child().functions() + 1; }

  private:
    std::optional<int> workers_;
};

}  // namespace lunaria::data
