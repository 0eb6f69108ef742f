// Batches of rows of similar length.
#include <algorithm>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/data/ahead.h"
#include "core/data/batch.h"

namespace lunaria::data {

namespace {

class BucketCursor final : public Cursor {
  public:
    BucketCursor(const Node& child, const BucketOptions& options, const Epoch& epoch)
        : feed_(child, epoch), options_(options), columns_(child.columns()), buckets_(options.sizes.size()) {}
    // A batch is drawn as the list of its rows and put together later.
    bool draw(Draft& draft) override {
        for (Row row; !ended_;) {
            int64_t id = 0;
            poll_interrupt();
            if (!feed_.next(row, id)) {
                ended_ = true;
                break;
            }
            const size_t at = bucket_of(row);
            buckets_[at].push_back(std::move(row));
            row = Row();
            ++rows_;
            if (static_cast<int64_t>(buckets_[at].size()) == options_.sizes[at]) return give(at, draft);
        }
        for (; !options_.drop_remainder && left_ < buckets_.size(); ++left_)
            if (!buckets_[left_].empty()) return give(left_, draft);
        return false;
    }
    void finish(Draft& draft, Row& row) override {
        std::vector<Row> rows;
        for (Draft& part : draft.parts) rows.push_back(std::move(part.row));
        const size_t bucket = static_cast<size_t>(draft.numbers.back());
        draft.numbers.pop_back();
        Paddings pads = options_.pads;
        if (options_.to_boundary) {
            if (bucket == options_.boundaries.size())
                throw value_error(
                    "bucket_batch_by_length",
                    str("row ", draft.id, " is longer than the last boundary, to which it would be padded"));
            for (auto& padding : pads)
                if (padding)
                    for (int64_t& size : padding->shape)
                        if (size < 0) size = options_.boundaries[bucket] - 1;
        }
        row = join("bucket_batch_by_length", columns_, rows, draft.id, pads);
    }
    bool next(Row& row) override {
        Draft draft;
        if (!draw(draft)) return false;
        finish(draft, row);
        return true;
    }

  private:
    size_t bucket_of(const Row& row) const {
        const Value& v = row[options_.length];
        int64_t length = 0;
        if (!v.is_tensor() || (options_.by_value && v.tensor().size() != 1))
            throw value_error("bucket_batch_by_length",
                              str("row ", rows_, " has no length: column '", columns_[options_.length], "' is ",
                                  v.is_tensor() ? "no single number" : "a text"));
        if (options_.by_value)
            length = v.tensor().integer_at(0);
        else
            length = v.tensor().rank() == 0 ? 1 : v.tensor().dim(0);
        const auto& list = options_.boundaries;
        return static_cast<size_t>(std::upper_bound(list.begin(), list.end(), length) - list.begin());
    }
    bool give(size_t at, Draft& draft) {
        draft.id = rows_ - 1;
        draft.numbers.push_back(static_cast<int64_t>(at));
        draft.parts.resize(buckets_[at].size());
        for (size_t i = 0; i < draft.parts.size(); ++i) draft.parts[i].row = std::move(buckets_[at][i]);
        buckets_[at].clear();
        return true;
    }

    Feed feed_;
    const BucketOptions& options_;
    const Names& columns_;
    std::vector<std::vector<Row>> buckets_;
    size_t left_ = 0;
    int64_t rows_ = 0;
    bool ended_ = false;
};

class Bucket final : public Node {
  public:
    Bucket(const NodePtr& child, BucketOptions options)
        : Node(child->columns(), {child}), options_(std::move(options)) {}
    std::string title() const override { return "bucket_batch_by_length"; }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        return std::make_unique<BucketCursor>(child(), options_, epoch);
    }
    int64_t rows() const override { return kUnknownRows; }
    bool has_work() const override { return true; }
    int64_t batch_size() const override { return *std::max_element(options_.sizes.begin(), options_.sizes.end()); }

  private:
    BucketOptions options_;
};

}  // namespace

NodePtr bucket(NodePtr child, BucketOptions options) { return std::make_shared<Bucket>(child, std::move(options)); }

}  // namespace lunaria::data
