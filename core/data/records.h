// Rows at random positions, and the source that gives them in a sampler's order.
#pragma once

#include "core/data/node.h"
#include "core/data/sampler.h"

namespace lunaria::data {

// Fixed rows, which any thread may read.
class Records {
  public:
    explicit Records(Names columns) : columns_(std::move(columns)) {}
    virtual ~Records() = default;
    const Names& columns() const { return columns_; }
    // The source's name in ds:show.
    virtual std::string title() const = 0;
    // Whether reading a row takes time that is worth a thread.
    virtual bool has_work() const { return true; }
    virtual int64_t rows() const = 0;
    // Appends the row's values.
    virtual void read(int64_t row, Row& out) const = 0;

  private:
    Names columns_;
};

// Owners: sources, and handles in the host language that make other sources of the same records.
using RecordsPtr = std::shared_ptr<const Records>;

struct Column {
    std::string name;
    Tensor tensor;             // its first axis counts the rows; empty if the column has texts
    std::vector<Value> texts;  // one for each row

    int64_t rows() const { return tensor ? tensor.dim(0) : static_cast<int64_t>(texts.size()); }
};

// Columns in memory. Throws, in the name of `where`, when their numbers of rows differ. Rows are views.
RecordsPtr table_records(std::string_view where, std::vector<Column> columns);
// One column of int64: 0 .. count - 1.
RecordsPtr range_records(std::string name, int64_t count);

// Whole files as tensors of uint8, beside the columns of `rest`, if any, which must have as many rows. A file is read
// when its row is.
RecordsPtr file_records(std::string name, std::vector<std::string> paths, RecordsPtr rest);

NodePtr source(RecordsPtr records, SamplerPtr sampler);

}  // namespace lunaria::data
