// What pipelines are made of; see README.md for how the parts work together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/value.h"

namespace lunaria {
class Device;
}

namespace lunaria::data {

using Row = std::vector<Value>;  // one for each column: a tensor, a text, or a list of texts (in batches)
using Names = std::vector<std::string>;

inline constexpr int64_t kUnknownRows = -1;
inline constexpr int64_t kEndless = INT64_MAX;
// Between the seeds of functions of one pipeline.
inline constexpr uint64_t kSeedStep = 0x9E3779B97F4A7C15;

// Where a function of the host language is called, for messages and random numbers.
struct Place {
    std::string_view operation;
    const Names* columns;  // of its arguments
    uint64_t seed = 0, epoch = 0;
    int64_t row = 0;  // in the source where there are ids, else in the order in which rows come
};

class StageTimes;

// Runs functions of the host language, which are known here by a number.
class Host {
  public:
    virtual ~Host() = default;
    // Appends `results` values to `out`. Throws when the function gives something else.
    virtual void call(uint64_t function, std::span<const Value> in, size_t results, Row& out, const Place& place) = 0;
    virtual bool test(uint64_t function, std::span<const Value> in, const Place& place) = 0;
    // A stream of rows: begun by calling the function, which gives one for the rows one after the other.
    virtual int64_t start(uint64_t function, const Place& place) = 0;
    virtual bool step(int64_t stream, size_t results, Row& out, const Place& place) = 0;
    // By any thread.
    virtual void stop(int64_t stream) noexcept = 0;
    // The function will be run by call_anywhere, for the operation `where`: copies are made of it.
    virtual void prepare(uint64_t /*function*/, std::string_view /*where*/) {}
    // Behind prepare: whether this is the host's thread and there is use for arguments that the function may be called
    // with; and such ones. `owner`: what calls it.
    virtual bool wants_example(uint64_t /*function*/, const void* /*owner*/) { return false; }
    virtual void show_example(uint64_t /*function*/, const void* /*owner*/, std::span<const Value> /*in*/) {}
    // As call, but by any thread, several at once: copies of the function run.
    virtual void call_anywhere(uint64_t function, std::span<const Value> in, size_t results, Row& out,
                               const Place& place) {
        call(function, in, results, out, place);
    }
    // The same for several rows, whose results come to theirs in `out`; place.row is that of `rows`.
    virtual void call_together(uint64_t function, std::span<Row> in, size_t results, std::span<Row> out,
                               const Place& place, std::span<const int64_t> rows) {
        for (size_t i = 0; i < in.size(); ++i) {
            Place own = place;
            own.row = rows[i];
            call_anywhere(function, in[i], results, out[i], own);
        }
    }
};

struct Epoch {
    uint64_t number = 0;          // decides what functions of rows draw
    uint64_t order = 0;           // decides the order of rows
    Host* host = nullptr;         // outlives the cursor
    int workers = 0;              // threads that make rows before they are asked for
    int prefetch = 2;             // rows or batches that wait for each of them
    bool is_bounded = false;      // fewer of them wait, two at least, where they would take too much memory
    StageTimes* times = nullptr;  // takes times; outlives the cursor
    Device* device = nullptr;     // where the rows that come next are brought, null: they stay in host memory
};

class Cursor;

// A row that was drawn and has still to be made. What is in it is known to the cursors that it went through.
struct Draft {
    int64_t id = 0;                              // the number of the row where the cursor has ids
    Row row;                                     // the row itself where it was made when it was drawn
    std::vector<int64_t> numbers;                // of the row in operations that count, the last one on top
    std::vector<std::shared_ptr<Cursor>> turns;  // the cursors that go on with it, the last one on top
    std::vector<Draft> parts;                    // the rows of a batch, or side by side

    // Before it is drawn again. Parts are kept for the sake of their memory.
    void clear() {
        numbers.clear();
        turns.clear();
    }
};

// Goes once through the rows of an epoch. Used by one thread at a time, but for finish.
class Cursor {
  public:
    virtual ~Cursor() = default;
    // Replaces `row` by the next one; false at the end, and from then on.
    virtual bool next(Row& row) = 0;
    // Leaves out up to `count` rows: how many there were.
    virtual int64_t skip(int64_t count);
    // Whether rows have numbers by which they can be made at any time. If so, next is next_id and fetch.
    virtual bool has_ids() const { return false; }
    virtual bool next_id(int64_t&) { return false; }
    // How many ids are still to come, none of them negative, where that is known and skip takes no time.
    virtual std::optional<int64_t> ids_left() const { return std::nullopt; }
    virtual void fetch(int64_t, Row&) {}
    // The same as next in two steps: what has to be done in order, and the rest, which threads do for several rows at
    // once, in any order.
    virtual bool draw(Draft& draft);
    // What draw does for the row of an id.
    virtual void prepare(int64_t id, Draft& draft) { draft.id = id; }
    virtual void finish(Draft& draft, Row& row);
    // Whether it is worth while to finish the rows of a batch together, and that.
    virtual bool finishes_together() const { return false; }
    virtual void finish_together(std::span<Draft> drafts, std::span<Row> rows) {
        for (size_t i = 0; i < drafts.size(); ++i) finish(drafts[i], rows[i]);
    }
};

// Base of cursors that have ids.
class IdCursor : public Cursor {
  public:
    bool next(Row& row) override;
    int64_t skip(int64_t count) override;
    bool has_ids() const override { return true; }
};

class Node {
  public:
    // `children`: the nodes that it draws from.
    Node(Names columns, std::vector<std::shared_ptr<const Node>> children)
        : columns_(std::move(columns)), children_(std::move(children)) {}
    virtual ~Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    // What ds:show and ds:profile call it.
    virtual std::string title() const = 0;
    const Names& columns() const { return columns_; }
    const std::vector<std::shared_ptr<const Node>>& children() const { return children_; }
    // The node must outlive the cursor.
    std::unique_ptr<Cursor> open(const Epoch& epoch) const;
    // Before an epoch, on the host's thread.
    virtual void prepare(Host& host) const;
    // Rows of an epoch, kUnknownRows where they have to be drawn to be known, or kEndless.
    virtual int64_t rows() const = 0;
    // Whether rows may be drawn by other threads than the host's. They may finish rows anyway.
    virtual bool is_native() const;
    // Whether no row may be drawn before it is asked for.
    virtual bool is_lazy() const;
    // Whether it takes time worth a thread to finish a row.
    virtual bool has_work() const;
    // Threads asked for, by this node or one of those below.
    virtual std::optional<int> workers() const;
    // Functions and transforms of rows, here and below: what makes their random numbers different.
    virtual uint64_t functions() const;
    // Rows in one row: the size of batches below, else 1.
    virtual int64_t batch_size() const { return 1; }

  protected:
    virtual std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const = 0;
    const Node& child() const { return *children_.front(); }

  private:
    const Names columns_;
    const std::vector<std::shared_ptr<const Node>> children_;
};

// Owners: the nodes above, handles in the host language, iterators. Nodes never change.
using NodePtr = std::shared_ptr<const Node>;

}  // namespace lunaria::data
