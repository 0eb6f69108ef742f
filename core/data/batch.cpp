#include "core/data/batch.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "core/interrupt.h"

namespace lunaria::data {

namespace {

Value join_column(std::string_view where, const std::string& name, std::span<Row> rows, size_t column, int64_t number) {
    const Value& first = rows.front()[column];
    if (!first.is_tensor()) {
        std::vector<Value> list;
        for (size_t i = 0; i < rows.size(); ++i) {
            if (rows[i][column].is_tensor())
                throw shape_error(where, str("column '", name, "' has a text in row ", number, " and a tensor in row ",
                                             number + static_cast<int64_t>(i)));
            list.push_back(std::move(rows[i][column]));
        }
        return Value::list(std::move(list));
    }
    const Tensor& model = first.tensor();
    Shape shape = model.shape();
    if (shape.rank() == kMaxRank)
        throw shape_error(where, str("column '", name, "' has ", kMaxRank, " axes: a batch would have one more"));
    shape.insert(0, static_cast<int64_t>(rows.size()));
    for (size_t i = 1; i < rows.size(); ++i) {
        const Value& v = rows[i][column];
        const int64_t at = number + static_cast<int64_t>(i);
        if (!v.is_tensor())
            throw shape_error(where,
                              str("column '", name, "' has a tensor in row ", number, " and a text in row ", at));
        const Tensor& t = v.tensor();
        if (t.shape() != model.shape())
            throw shape_error(where, str("column '", name, "' has shape ", model.shape(), " in row ", number, " and ",
                                         t.shape(), " in row ", at, ": the rows of a batch must have one shape"))
                .hint("make them equal with ds:map before, or use a per_batch_map that pads them");
        if (t.dtype() != model.dtype())
            throw dtype_error(where, str("column '", name, "' has dtype ", name_of(model.dtype()), " in row ", number,
                                         " and ", name_of(t.dtype()), " in row ", at));
    }
    const Tensor joined = Tensor::empty(model.dtype(), shape);
    const size_t bytes = model.nbytes();
    char* to = joined.data<char>();
    for (Row& row : rows) {
        const Tensor& t = row[column].tensor();
        if (bytes > 0) {
            const Tensor dense = t.contiguous();
            std::memcpy(to, dense.raw(), bytes);
        }
        to += bytes;
    }
    return joined;
}

Row lists(const Names& columns, std::span<Row> rows) {
    Row batch;
    for (size_t c = 0; c < columns.size(); ++c) {
        std::vector<Value> list;
        for (Row& row : rows) list.push_back(std::move(row[c]));
        batch.push_back(Value::list(std::move(list)));
    }
    return batch;
}

// What decides the batches of an epoch: the rows of each come from here, one batch after the other.
class RowsOfBatches {
  public:
    RowsOfBatches(std::unique_ptr<Cursor> child, const BatchOptions& options)
        : child_(std::move(child)), options_(options) {}
    // The rows of the next batch; empty at the end. `number`: that of the first.
    void next(std::vector<Row>& rows, int64_t& number) {
        number = at_;
        rows.clear();
        while (static_cast<int64_t>(rows.size()) < options_.size) {
            Row row;
            if (!child_->next(row)) break;
            rows.push_back(std::move(row));
        }
        at_ += static_cast<int64_t>(rows.size());
        if (options_.drop_remainder && static_cast<int64_t>(rows.size()) < options_.size) rows.clear();
    }
    int64_t skip(int64_t count) {
        const int64_t wanted = count > kEndless / options_.size ? kEndless : count * options_.size;
        const int64_t n = child_->skip(wanted);
        at_ += n;
        return n / options_.size + (!options_.drop_remainder && n % options_.size > 0);
    }

  private:
    std::unique_ptr<Cursor> child_;
    BatchOptions options_;
    int64_t at_ = 0;
};

class BatchCursor final : public Cursor {
  public:
    BatchCursor(RowsOfBatches source, const Names& columns, bool joined)
        : source_(std::move(source)), columns_(columns), joined_(joined) {}
    bool next(Row& row) override {
        int64_t number = 0;
        source_.next(rows_, number);
        if (rows_.empty()) return false;
        row = joined_ ? join("batch", columns_, rows_, number) : lists(columns_, rows_);
        return true;
    }
    int64_t skip(int64_t count) override { return source_.skip(count); }

  private:
    RowsOfBatches source_;
    const Names& columns_;
    bool joined_;
    std::vector<Row> rows_;
};

// Batches made by threads. Each takes the rows of the next batch under the lock, so that the order is the cursor's own,
// joins them outside of it and puts the batch into the place of its number in a ring.
class ThreadedBatches final : public Cursor {
  public:
    ThreadedBatches(RowsOfBatches source, const Names& columns, int workers, int prefetch)
        : source_(std::move(source)),
          columns_(columns),
          workers_(workers),
          ring_(static_cast<size_t>(workers) * static_cast<size_t>(prefetch)) {}
    ~ThreadedBatches() override { stop(); }

    bool next(Row& row) override {
        if (threads_.empty() && !ended_) start();
        std::unique_lock lock(mutex_);
        Slot& slot = ring_[static_cast<size_t>(given_) % ring_.size()];
        while (!slot.full) {
            if (ended_) return false;
            poll_interrupt();
            filled_.wait_for(lock, std::chrono::milliseconds(50));
        }
        if (slot.problem) {
            // What follows an error is not drawn, and asking again gives it again.
            lock.unlock();
            std::rethrow_exception(slot.problem);
        }
        if (slot.batch.empty()) {
            ended_ = true;
            lock.unlock();
            stop();
            return false;
        }
        row = std::move(slot.batch);
        slot.full = false;
        ++given_;
        lock.unlock();
        emptied_.notify_one();
        return true;
    }
    int64_t skip(int64_t count) override {
        if (threads_.empty()) return source_.skip(count);
        return Cursor::skip(count);
    }

  private:
    struct Slot {
        bool full = false;
        Row batch;  // without values: the end
        std::exception_ptr problem;
    };

    void start() {
        // Signals are for the threads that wait for them.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        try {
            for (int i = 0; i < workers_; ++i) threads_.emplace_back([this] { work(); });
        } catch (const std::system_error&) {
            // Fewer threads than wished for do as well.
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        if (threads_.empty()) throw state_error("batch", "the system gives no more threads");
    }
    void stop() noexcept {
        {
            const std::lock_guard lock(mutex_);
            stopped_ = true;
        }
        emptied_.notify_all();
        for (std::thread& thread : threads_) thread.join();
        threads_.clear();
    }
    void work() {
        std::vector<Row> rows;
        for (;;) {
            int64_t ticket = 0, number = 0;
            Row batch;
            std::exception_ptr problem;
            {
                const std::lock_guard turn(drawing_);
                {
                    std::unique_lock lock(mutex_);
                    emptied_.wait(lock,
                                  [&] { return stopped_ || drawn_ < given_ + static_cast<int64_t>(ring_.size()); });
                    if (stopped_ || finished_) return;
                    ticket = drawn_++;
                }
                try {
                    source_.next(rows, number);
                } catch (const std::exception&) {
                    problem = std::current_exception();
                }
                finished_ = problem || rows.empty();
            }
            if (!problem && !rows.empty()) {
                try {
                    batch = join("batch", columns_, rows, number);
                } catch (const std::exception&) {
                    problem = std::current_exception();
                }
            }
            rows.clear();
            {
                const std::lock_guard lock(mutex_);
                Slot& slot = ring_[static_cast<size_t>(ticket) % ring_.size()];
                slot = {true, std::move(batch), problem};
            }
            filled_.notify_one();
        }
    }

    RowsOfBatches source_;  // used under drawing_
    const Names& columns_;
    const int workers_;
    std::mutex drawing_;     // taken before mutex_
    bool finished_ = false;  // under drawing_
    std::mutex mutex_;       // the rest
    std::condition_variable filled_, emptied_;
    std::vector<Slot> ring_;
    int64_t drawn_ = 0, given_ = 0;
    bool stopped_ = false, ended_ = false;
    std::vector<std::thread> threads_;
};

class Batch final : public Node {
  public:
    Batch(NodePtr child, BatchOptions options, bool joined)
        : Node(child->columns()), child_(std::move(child)), options_(options), joined_(joined) {}
    std::unique_ptr<Cursor> open(const Epoch& epoch) const override {
        RowsOfBatches source(child_->open(epoch), options_);
        const int64_t batches = rows();
        int64_t workers = options_.workers < 0 ? epoch.workers : std::min(options_.workers, epoch.workers);
        if (batches != kUnknownRows) workers = std::min(workers, batches);
        if (joined_ && workers > 0 && batches != 1 && child_->is_native())
            return std::make_unique<ThreadedBatches>(std::move(source), columns(), static_cast<int>(workers),
                                                     std::max(1, epoch.prefetch));
        return std::make_unique<BatchCursor>(std::move(source), columns(), joined_);
    }
    int64_t rows() const override {
        const int64_t n = child_->rows();
        if (n == kUnknownRows || n == kEndless) return n;
        return n / options_.size + (!options_.drop_remainder && n % options_.size > 0);
    }
    bool is_native() const override { return child_->is_native(); }
    int64_t batch_size() const override { return options_.size; }

  private:
    NodePtr child_;
    BatchOptions options_;
    bool joined_;
};

}  // namespace

Row join(std::string_view where, const Names& columns, std::span<Row> rows, int64_t number) {
    Row batch;
    for (size_t c = 0; c < columns.size(); ++c) batch.push_back(join_column(where, columns[c], rows, c, number));
    return batch;
}

NodePtr batch(NodePtr child, BatchOptions options) { return std::make_shared<Batch>(std::move(child), options, true); }
NodePtr gather(NodePtr child, BatchOptions options) {
    return std::make_shared<Batch>(std::move(child), options, false);
}

}  // namespace lunaria::data
