#include "core/data/stage_times.h"

#include <chrono>

namespace lunaria::data {

namespace {

class Clock {
  public:
    explicit Clock(std::atomic<int64_t>& sum) : sum_(sum) {}
    ~Clock() {
        sum_ += std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin_).count();
    }
    Clock(const Clock&) = delete;

  private:
    std::atomic<int64_t>& sum_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

class Timed final : public Cursor {
  public:
    Timed(std::unique_ptr<Cursor> cursor, StageTime& time) : cursor_(std::move(cursor)), time_(time) {}
    bool next(Row& row) override {
        const Clock clock(time_.making);
        const bool more = cursor_->next(row);
        time_.rows += more;
        return more;
    }
    int64_t skip(int64_t count) override { return cursor_->skip(count); }
    bool has_ids() const override { return cursor_->has_ids(); }
    bool next_id(int64_t& id) override {
        const Clock clock(time_.drawing);
        return cursor_->next_id(id);
    }
    void fetch(int64_t id, Row& row) override {
        const Clock clock(time_.making);
        cursor_->fetch(id, row);
        ++time_.rows;
    }
    bool draw(Draft& draft) override {
        const Clock clock(time_.drawing);
        return cursor_->draw(draft);
    }
    void prepare(int64_t id, Draft& draft) override {
        const Clock clock(time_.drawing);
        cursor_->prepare(id, draft);
    }
    void finish(Draft& draft, Row& row) override {
        const Clock clock(time_.making);
        cursor_->finish(draft, row);
        ++time_.rows;
    }
    bool finishes_together() const override { return cursor_->finishes_together(); }
    void finish_together(std::span<Draft> drafts, std::span<Row> rows) override {
        const Clock clock(time_.making);
        cursor_->finish_together(drafts, rows);
        time_.rows += static_cast<int64_t>(drafts.size());
    }

  private:
    std::unique_ptr<Cursor> cursor_;
    StageTime& time_;
};

}  // namespace

std::unique_ptr<Cursor> timed(std::unique_ptr<Cursor> cursor, StageTime& time) {
    return std::make_unique<Timed>(std::move(cursor), time);
}

}  // namespace lunaria::data
