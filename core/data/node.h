// The parts of pipelines: nodes, cursors, epochs, drafts of rows. README.md tells how they work together.
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
// The distance between the seeds of functions of one pipeline.
inline constexpr uint64_t kSeedStep = 0x9E3779B97F4A7C15;

// The place from which a function of the host language is called, for messages and random numbers.
struct Place {
    std::string_view operation;
    const Names* columns;  // names of the function's arguments
    uint64_t seed = 0, epoch = 0;
    int64_t row = 0;  // the row's number in the source where there are ids, else in the order in which rows come
};

class StageTimes;

// Runs functions of the host language. A number names each of them here.
class Host {
  public:
    virtual ~Host() = default;
    // Appends `results` values to `out`. Throws when the function gives something else.
    virtual void call(uint64_t function, std::span<const Value> in, size_t results, Row& out, const Place& place) = 0;
    virtual bool test(uint64_t function, std::span<const Value> in, const Place& place) = 0;
    // A stream of rows: start calls the function, which returns a second one that gives the rows one after the other.
    virtual int64_t start(uint64_t function, const Place& place) = 0;
    virtual bool step(int64_t stream, size_t results, Row& out, const Place& place) = 0;
    // Called from any thread.
    virtual void stop(int64_t stream) noexcept = 0;
    // Announces that call_anywhere will run the function for the operation `where`, for which copies are made of it.
    virtual void prepare(uint64_t /*function*/, std::string_view /*where*/) {}
    // Examples of the function's arguments, after prepare. wants_example: whether this is the host's thread and an
    // example is of use. `owner`: the caller.
    virtual bool wants_example(uint64_t /*function*/, const void* /*owner*/) { return false; }
    virtual void show_example(uint64_t /*function*/, const void* /*owner*/, std::span<const Value> /*in*/) {}
    // As call, but from any thread, several at once: copies of the function run.
    virtual void call_anywhere(uint64_t function, std::span<const Value> in, size_t results, Row& out,
                               const Place& place) {
        call(function, in, results, out, place);
    }
    // The same for several rows, whose results go to the same positions of `out`; rows[i] is place.row of the i-th.
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
    uint64_t number = 0;          // decides the random numbers of functions of rows
    uint64_t order = 0;           // decides the order of rows
    Host* host = nullptr;         // must outlive the cursor
    int workers = 0;              // threads that make rows before they are asked for
    int prefetch = 2;             // rows or batches that wait for each of these threads
    bool is_bounded = false;      // fewer rows wait, but at least two, where they would take too much memory
    StageTimes* times = nullptr;  // takes the times, null: none; must outlive the cursor
    Device* device = nullptr;     // the device that the next rows are brought to, null: they stay in host memory
};

class Cursor;

// A row that was drawn and is still to be made. The cursors that it went through know what its members mean.
struct Draft {
    int64_t id = 0;                              // the number of the row where the cursor has ids
    Row row;                                     // the row itself where drawing has made it
    std::vector<int64_t> numbers;                // the row's number in each operation that counts, the last one on top
    std::vector<std::shared_ptr<Cursor>> turns;  // the cursors that finish it, the last one on top
    std::vector<Draft> parts;                    // the rows of a batch, or the rows side by side

    // Prepares the draft for another row. Parts stay, for the sake of their memory.
    void clear() {
        numbers.clear();
        turns.clear();
    }
};

// Goes once through the rows of an epoch. One thread at a time uses it, but finish may run on several.
class Cursor {
  public:
    virtual ~Cursor() = default;
    // Replaces `row` by the next one; false at the end and in later calls.
    virtual bool next(Row& row) = 0;
    // Leaves out up to `count` rows and returns how many it left out.
    virtual int64_t skip(int64_t count);
    // Whether rows have ids, by which they can be made at any time. If so, next is next_id and fetch.
    virtual bool has_ids() const { return false; }
    virtual bool next_id(int64_t&) { return false; }
    // The number of ids still to come, where that is known, skip takes no time and no id is negative.
    virtual std::optional<int64_t> ids_left() const { return std::nullopt; }
    virtual void fetch(int64_t, Row&) {}
    // next in two steps: draw does what must happen in order, finish the rest, which threads do for several rows at
    // once, in any order.
    virtual bool draw(Draft& draft);
    // The draft that draw makes, for the row of an id.
    virtual void prepare(int64_t id, Draft& draft) { draft.id = id; }
    virtual void finish(Draft& draft, Row& row);
    // Whether finishing the rows of a batch together pays, and the function that does it.
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
    // `children`: the nodes whose rows this one draws.
    Node(Names columns, std::vector<std::shared_ptr<const Node>> children)
        : columns_(std::move(columns)), children_(std::move(children)) {}
    virtual ~Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    // The node's name in ds:show and ds:profile.
    virtual std::string title() const = 0;
    const Names& columns() const { return columns_; }
    const std::vector<std::shared_ptr<const Node>>& children() const { return children_; }
    // The node must outlive the cursor.
    std::unique_ptr<Cursor> open(const Epoch& epoch) const;
    // Called before an epoch, on the host's thread.
    virtual void prepare(Host& host) const;
    // The number of rows of an epoch; kUnknownRows where only drawing them would tell, or kEndless.
    virtual int64_t rows() const = 0;
    // Whether threads other than the host's may draw rows. They may finish rows in any case.
    virtual bool is_native() const;
    // Whether no row may be drawn before the program asks for it.
    virtual bool is_lazy() const;
    // Whether finishing a row takes time that is worth a thread.
    virtual bool has_work() const;
    // The number of threads that the user asked for, at this node or one below.
    virtual std::optional<int> workers() const;
    // The number of functions and transforms of rows, here and below: it makes their random numbers differ.
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
