#include "core/data/records.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/io/file.h"

namespace lunaria::data {

namespace {

Names names_of(const std::vector<Column>& columns) {
    Names names;
    for (const Column& c : columns) names.push_back(c.name);
    return names;
}

class Table final : public Records {
  public:
    explicit Table(std::vector<Column> columns)
        : Records(names_of(columns)), columns_(std::move(columns)), rows_(columns_.front().rows()) {}
    std::string title() const override { return "table"; }
    bool has_work() const override { return false; }
    int64_t rows() const override { return rows_; }
    void read(int64_t row, Row& out) const override {
        for (const Column& c : columns_) {
            if (!c.tensor) {
                out.push_back(c.texts[static_cast<size_t>(row)]);
                continue;
            }
            Shape shape = c.tensor.shape();
            Strides strides = c.tensor.strides();
            const int64_t offset = row * strides[0];
            shape.erase(0);
            strides.erase(0);
            out.emplace_back(c.tensor.view(shape, strides, offset));
        }
    }

  private:
    std::vector<Column> columns_;
    int64_t rows_;
};

class Range final : public Records {
  public:
    Range(std::string name, int64_t count) : Records({std::move(name)}), count_(count) {}
    std::string title() const override { return "range"; }
    bool has_work() const override { return false; }
    int64_t rows() const override { return count_; }
    void read(int64_t row, Row& out) const override { out.emplace_back(Tensor::scalar(row)); }

  private:
    int64_t count_;
};

class Files final : public Records {
  public:
    Files(Names names, std::vector<std::string> paths, RecordsPtr rest)
        : Records(std::move(names)), paths_(std::move(paths)), rest_(std::move(rest)) {}
    std::string title() const override { return "files"; }
    int64_t rows() const override { return static_cast<int64_t>(paths_.size()); }
    void read(int64_t row, Row& out) const override {
        const auto source = open_source(paths_[static_cast<size_t>(row)]);
        constexpr uint64_t kMost = uint64_t{1} << 31;
        if (source->size() > kMost)
            throw source->error(str("has ", source->size(), " bytes; at most ", kMost, " are read as one row"));
        const Tensor bytes = Tensor::empty(DType::u8, {static_cast<int64_t>(source->size())});
        source->read(0, bytes.raw(), source->size());
        out.push_back(bytes);
        if (rest_) rest_->read(row, out);
    }

  private:
    std::vector<std::string> paths_;
    RecordsPtr rest_;
};

class SourceCursor final : public IdCursor {
  public:
    SourceCursor(const Records& records, Order order) : records_(records), order_(std::move(order)) {}
    bool next_id(int64_t& id) override {
        if (at_ >= order_.count) return false;
        id = order_.at(at_++);
        return true;
    }
    std::optional<int64_t> ids_left() const override { return order_.count - at_; }
    int64_t skip(int64_t count) override {
        count = std::min(count, order_.count - at_);
        at_ += count;
        return count;
    }
    void fetch(int64_t id, Row& row) override {
        row.clear();
        records_.read(id, row);
    }

  private:
    const Records& records_;
    Order order_;
    int64_t at_ = 0;
};

class SourceNode final : public Node {
  public:
    SourceNode(RecordsPtr records, SamplerPtr sampler)
        : Node(records->columns(), {}), records_(std::move(records)), sampler_(std::move(sampler)) {
        rows_ = sampler_->count(records_->rows());
    }
    std::string title() const override { return records_->title(); }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        return std::make_unique<SourceCursor>(*records_, sampler_->order(records_->rows(), epoch.order));
    }
    int64_t rows() const override { return rows_; }
    bool has_work() const override { return records_->has_work(); }

  private:
    RecordsPtr records_;
    SamplerPtr sampler_;
    int64_t rows_;
};

}  // namespace

RecordsPtr table_records(std::string_view where, std::vector<Column> columns) {
    if (columns.empty()) throw argument_error(where, "there are no columns");
    for (const Column& c : columns) {
        if (c.tensor && c.tensor.rank() == 0)
            throw shape_error(where, str("column '", c.name, "' is a scalar: its first axis must be the rows"));
        if (c.rows() != columns.front().rows())
            throw shape_error(where, str("column '", columns.front().name, "' has ", columns.front().rows(),
                                         " rows and column '", c.name, "' has ", c.rows()));
    }
    return std::make_shared<Table>(std::move(columns));
}

RecordsPtr range_records(std::string name, int64_t count) { return std::make_shared<Range>(std::move(name), count); }

RecordsPtr file_records(std::string name, std::vector<std::string> paths, RecordsPtr rest) {
    Names names{std::move(name)};
    if (rest) {
        names.insert(names.end(), rest->columns().begin(), rest->columns().end());
        if (rest->rows() != static_cast<int64_t>(paths.size()))
            throw argument_error("dataset", str("there are ", paths.size(), " files and ", rest->rows(), " rows"));
    }
    return std::make_shared<Files>(std::move(names), std::move(paths), std::move(rest));
}

NodePtr source(RecordsPtr records, SamplerPtr sampler) {
    return std::make_shared<SourceNode>(std::move(records), std::move(sampler));
}

}  // namespace lunaria::data
