// What pipelines are made of; see README.md for how the parts work together.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace lunaria::data {

using Row = std::vector<Value>;  // one for each column: a tensor, a text, or a list of texts (in batches)
using Names = std::vector<std::string>;

inline constexpr int64_t kUnknownRows = -1;
inline constexpr int64_t kEndless = INT64_MAX;

// Where a function of the host language is called, for messages and random numbers.
struct Place {
    std::string_view operation;
    const Names* columns;  // of its arguments
    uint64_t seed = 0, epoch = 0;
    int64_t row = 0;  // in the source where there are ids, else in the order in which rows come
};

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
    virtual void stop(int64_t stream) noexcept = 0;
};

struct Epoch {
    uint64_t number = 0;   // decides what functions of rows draw
    uint64_t order = 0;    // decides the order of rows
    Host* host = nullptr;  // outlives the cursor
    int workers = 0;       // threads that fill batches
    int prefetch = 2;      // batches that wait for each of them
};

// Goes once through the rows of an epoch. Used by one thread at a time.
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
    virtual void fetch(int64_t, Row&) {}
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
    explicit Node(Names columns) : columns_(std::move(columns)) {}
    virtual ~Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    const Names& columns() const { return columns_; }
    // The node must outlive the cursor.
    virtual std::unique_ptr<Cursor> open(const Epoch& epoch) const = 0;
    // Rows of an epoch, kUnknownRows where they have to be drawn to be known, or kEndless.
    virtual int64_t rows() const = 0;
    // Whether cursors may be used by other threads than the host's.
    virtual bool is_native() const = 0;
    // Rows in one row: the size of batches below, else 1.
    virtual int64_t batch_size() const { return 1; }

  private:
    const Names columns_;
};

// Owners: the nodes above, handles in the host language, iterators. Nodes never change.
using NodePtr = std::shared_ptr<const Node>;

}  // namespace lunaria::data
