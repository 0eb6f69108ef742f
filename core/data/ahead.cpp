#include "core/data/ahead.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/data/pool.h"
#include "core/data/stage_times.h"

namespace lunaria::data {

namespace {

using Time = std::chrono::steady_clock;

constexpr int64_t kMostRows = 64;                             // rows in a piece
constexpr auto kWorthAPiece = std::chrono::microseconds(50);  // time to make a piece
// The time to make a piece that the host has drawn, from which on a second thread helps: a shorter piece is done before
// that thread would have begun.
constexpr int64_t kWorthAThread = 20'000;  // nanoseconds
// The bytes of waiting rows where memory is bounded, and the number of pieces that wait for each thread in any case.
constexpr int64_t kMostBytes = 64 << 20;
constexpr int64_t kLeastWaiting = 2;
// The time between two looks at an interrupt.
constexpr auto kLook = std::chrono::milliseconds(50);
// The number of pieces that are brought to a device before their turn: its memory is scarce.
constexpr int64_t kMostBrought = 2;

// Pieces of rows go through a ring of slots. A slot is free, drawn (a ticket for each row, in order), taken by the
// thread that makes the rows, made, brought to a device where there is one, and given out in order. Drawing has a lock
// of its own.
class Ahead final : public Cursor, private Job {
  public:
    Ahead(std::unique_ptr<Cursor> cursor, bool native, bool single, int workers, const Epoch& epoch, StageTimes* times)
        : cursor_(std::move(cursor)),
          native_(native),
          single_(single),
          workers_(workers),
          times_(times),
          device_(epoch.device),
          is_bounded_(epoch.is_bounded),
          ring_(static_cast<size_t>(workers) * static_cast<size_t>(std::max(1, epoch.prefetch))),
          places_(static_cast<int64_t>(ring_.size())) {}
    ~Ahead() override { stop(); }

    bool next(Row& row) override {
        int64_t id = 0;
        return next(row, id);
    }
    bool next(Row& row, int64_t& id) {
        if (ended_) return false;
        if (!begun_) {
            begun_ = true;
            start(workers_);
        }
        Slot& slot = ring_[static_cast<size_t>(given_) % ring_.size()];
        if (at_ == 0 && !wait_for(slot)) {
            ended_ = true;
            stop();
            return false;
        }
        if (at_ < slot.made) {
            row = std::move(slot.rows[at_]);
            id = slot.drafts[at_].id;
            if (++at_ == slot.count && !slot.problem) release(slot);
            return true;
        }
        std::rethrow_exception(slot.problem);
    }
    int64_t skip(int64_t count) override { return begun_ ? Cursor::skip(count) : cursor_->skip(count); }

  private:
    enum class State { free, drawn, taken, made, given };
    struct Slot {
        State state = State::free;
        bool is_brought = false;  // its rows are on the device, as far as there are any
        std::vector<Draft> drafts;
        std::vector<Row> rows;
        size_t count = 0, made = 0;  // rows that were drawn, and rows made without a problem; no rows: the end
        std::exception_ptr problem;  // raised by the row behind those that were made
    };

    void release(Slot& slot) {
        at_ = 0;
        note_time();
        {
            const std::lock_guard lock(mutex_);
            slot.state = State::free;
            ++given_;
            // Without native drawing only the host's thread draws: a free slot is no work for other threads.
            if (!native_ && !device_) return;
            // Threads look for work by themselves when half of the ring should be free. Waking a thread takes longer
            // than giving out a row, and with all processors busy the woken thread takes the caller's. So threads are
            // woken only when three quarters of the ring are free.
            const int64_t waiting = drawn_ - given_;
            if (!device_ && waiting > std::max<int64_t>(1, places_ / 4)) return;
        }
        wake();
    }
    std::chrono::nanoseconds pause() const override {
        return native_ ? std::chrono::nanoseconds(interval_.load(std::memory_order_relaxed) * half()) : Job::pause();
    }
    int64_t half() const { return (places_.load(std::memory_order_relaxed) + 1) / 2; }
    // Updates interval_, the recent mean time between two requests for a slot.
    void note_time() {
        const auto now = Time::now();
        const int64_t passed = (now - std::exchange(asked_, now)).count();
        const int64_t before = interval_.load(std::memory_order_relaxed);
        interval_.store(before + (std::min(passed, 2 * before + 1000) - before) / 4, std::memory_order_relaxed);
    }

    // Waits until the slot is made; false at the end of the rows. Meanwhile the calling thread works too, first on the
    // pieces that it needs first.
    bool wait_for(Slot& slot) {
        if (times_) look();
        for (;;) {
            if (!native_) draw_some();
            {
                std::unique_lock lock(mutex_);
                if (slot.state == State::made) slot.state = State::given;
                // An error that was given out is given out again.
                if (slot.state == State::given) return true;
                if (finished_ && given_ == drawn_) return false;
            }
            poll_interrupt();
            if (work()) continue;
            std::unique_lock lock(mutex_);
            const auto begin = Time::now();
            // No work is left for this thread: another thread is making the slot, or there are no more rows.
            made_.wait_for(lock, kLook, [&] { return slot.state == State::made || (finished_ && given_ == drawn_); });
            if (times_) times_->waiting += (Time::now() - begin).count();
        }
    }
    void look() {
        const std::lock_guard lock(mutex_);
        int64_t full = 0;
        for (const Slot& slot : ring_) full += slot.state == State::made;
        ++times_->asked;
        times_->full += full;
        times_->places = places_.load();
        times_->waits += ring_[static_cast<size_t>(given_) % ring_.size()].state != State::made;
    }

    // Draws rows on the host's thread: the one that is needed and one more, so that threads always have one to make.
    void draw_some() {
        for (int i = 0; i < 2; ++i) {
            if (Slot* slot = free_slot()) {
                fill(*slot);
                if (making_.load(std::memory_order_relaxed) > kWorthAThread) wake();
            }
        }
    }
    // Called under drawing_, or by the host's thread where only that draws.
    Slot* free_slot() {
        const std::lock_guard lock(mutex_);
        if (finished_ || drawn_ >= given_ + places_) return nullptr;
        return &ring_[static_cast<size_t>(drawn_) % ring_.size()];
    }
    void fill(Slot& slot) {
        slot.count = slot.made = 0;
        slot.problem = nullptr;
        // The host draws pieces of one row, so that each error has a slot.
        const size_t rows = native_ ? static_cast<size_t>(piece_.load(std::memory_order_relaxed)) : 1;
        bool last = false;
        try {
            slot.drafts.resize(std::max(rows, slot.drafts.size()));
            while (slot.count < rows && !last) {
                Draft& draft = slot.drafts[slot.count];
                draft.clear();
                last = !cursor_->draw(draft);
                if (!last) ++slot.count;
            }
        } catch (const std::exception&) {
            slot.problem = std::current_exception();
            last = true;
        }
        const std::lock_guard lock(mutex_);
        finished_ = last;
        if (slot.count == 0 && !slot.problem) return;
        slot.state = State::drawn;
        slot.is_brought = false;
        ++drawn_;
    }

    bool work() override {
        if (device_ && bring()) return true;
        Slot* slot = taken();
        if (!slot && native_) {
            const std::lock_guard turn(drawing_);
            if ((slot = free_slot())) fill(*slot);
            // Another thread may take the slot that this one filled.
            slot = taken();
        }
        if (!slot) return false;
        make(*slot);
        {
            const std::lock_guard lock(mutex_);
            slot->state = State::made;
        }
        made_.notify_one();
        return true;
    }
    // Brings one of the next pieces to the device while an earlier one is in use: copies go on beside the device's
    // work.
    bool bring() {
        Slot* slot = nullptr;
        {
            const std::lock_guard lock(mutex_);
            for (int64_t i = given_; i < std::min(drawn_, given_ + kMostBrought) && !slot; ++i) {
                Slot& next = ring_[static_cast<size_t>(i) % ring_.size()];
                if (next.state == State::made && !next.is_brought) slot = &next;
            }
            if (!slot) return false;
            slot->state = State::taken;
        }
        size_t there = 0;
        try {
            for (; there < slot->made; ++there)
                for (Value& v : slot->rows[there])
                    if (v.is_tensor()) v = Value(v.tensor().to(device_));
        } catch (const std::exception&) {
            slot->made = there;
            slot->problem = std::current_exception();
        }
        {
            const std::lock_guard lock(mutex_);
            slot->is_brought = true;
            slot->state = State::made;
        }
        made_.notify_one();
        return true;
    }
    Slot* taken() {
        const std::lock_guard lock(mutex_);
        if (taken_ == drawn_) return nullptr;
        Slot& slot = ring_[static_cast<size_t>(taken_++) % ring_.size()];
        slot.state = State::taken;
        return &slot;
    }
    void make(Slot& slot) {
        const auto begin = Time::now();
        try {
            slot.rows.resize(std::max(slot.count, slot.rows.size()));
            for (; slot.made < slot.count; ++slot.made) cursor_->finish(slot.drafts[slot.made], slot.rows[slot.made]);
        } catch (const std::exception&) {
            slot.problem = std::current_exception();
        }
        const auto took = Time::now() - begin;
        making_.store((making_.load(std::memory_order_relaxed) + took.count()) / 2, std::memory_order_relaxed);
        if (slot.made == 0) return;
        if (is_bounded_) bound(slot);
        if (single_) return;
        const auto each = took / static_cast<int64_t>(slot.made);
        const int64_t now = piece_.load(std::memory_order_relaxed);
        if (each * now < kWorthAPiece)
            piece_ = std::min(kMostRows, now * 2);
        else if (each * now > 2 * kWorthAPiece)
            piece_ = std::max<int64_t>(1, now / 2);
    }

    // Limits the ring to as many pieces of this size as the memory allows.
    void bound(const Slot& slot) {
        int64_t bytes = 1;
        for (size_t i = 0; i < slot.made; ++i)
            for (const Value& v : slot.rows[i])
                if (v.is_tensor()) bytes += static_cast<int64_t>(v.tensor().nbytes());
        const auto all = static_cast<int64_t>(ring_.size());
        places_ = std::clamp(kMostBytes / bytes, std::min(kLeastWaiting * workers_, all), all);
    }

    std::unique_ptr<Cursor> cursor_;  // drawn from under drawing_
    const bool native_, single_;
    const int workers_;
    StageTimes* const times_;
    Device* const device_;
    const bool is_bounded_;
    std::mutex drawing_;  // taken before mutex_
    std::mutex mutex_;
    std::condition_variable made_;
    std::vector<Slot> ring_;
    int64_t drawn_ = 0, taken_ = 0, given_ = 0;
    bool finished_ = false;
    std::atomic<int64_t> piece_{1}, interval_{1000};
    std::atomic<int64_t> places_;     // slots of the ring that are used
    std::atomic<int64_t> making_{0};  // nanoseconds to make a piece, recent mean
    // Members that only the thread that asks for rows uses.
    Time::time_point asked_ = Time::now();
    size_t at_ = 0;
    bool begun_ = false, ended_ = false;
};

std::unique_ptr<Ahead> ahead_or_null(std::unique_ptr<Cursor>& cursor, const Node& node, const Epoch& epoch,
                                     StageTimes* times) {
    if (epoch.workers < 1 || !node.has_work() || node.is_lazy()) return nullptr;
    const int64_t rows = node.rows();
    int64_t workers = node.workers().value_or(epoch.workers);
    if (rows != kUnknownRows) workers = std::min(workers, rows);
    if (workers < 1 || rows == 1) return nullptr;
    return std::make_unique<Ahead>(std::move(cursor), node.is_native(), node.batch_size() > 1,
                                   static_cast<int>(workers), epoch, times);
}

}  // namespace

std::unique_ptr<Cursor> ahead(std::unique_ptr<Cursor> cursor, const Node& node, const Epoch& epoch) {
    if (auto made = ahead_or_null(cursor, node, epoch, epoch.times)) return made;
    return cursor;
}

bool Feed::next(Row& row, int64_t& id) {
    if (!begun_) {
        begun_ = true;
        if (auto made = ahead_or_null(cursor_, node_, epoch_, nullptr)) {
            cursor_ = std::move(made);
            is_ahead_ = true;
        }
    }
    if (is_ahead_) return static_cast<Ahead&>(*cursor_).next(row, id);
    if (!has_ids_) return cursor_->next(row);
    if (!cursor_->next_id(id)) return false;
    cursor_->fetch(id, row);
    return true;
}

}  // namespace lunaria::data
