#include "core/data/batch.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/base/error.h"
#include "core/data/place_in_batch.h"

namespace lunaria::data {

namespace {

// Bytes that a tensor's memory may have in excess of its elements.
constexpr size_t kMaxSlack = 4096;

// The rows as one tensor without copying, where they are, in order, all the parts of one tensor: rows that were made
// together.
std::optional<Tensor> lying_together(std::span<Row> rows, size_t column, const Shape& shape) {
    const Tensor& first = rows.front()[column].tensor();
    const size_t bytes = first.nbytes();
    if (rows.size() < 2 || bytes == 0 || first.body()->storage->bytes < bytes * rows.size() ||
        first.body()->storage->bytes > bytes * rows.size() + kMaxSlack || first.raw() != first.body()->storage->data)
        return std::nullopt;
    const char* at = first.data<char>();
    for (const Row& row : rows) {
        const Tensor& t = row[column].tensor();
        if (!t.is_contiguous() || !t.shares_storage(first) || t.raw() != at) return std::nullopt;
        at += bytes;
    }
    Strides strides = first.strides();
    strides.insert(0, first.size());
    return first.view(shape, strides);
}

// `given`: a tensor for the result where there is one; some of the rows may already lie in it.
Value join_column(std::string_view where, const std::string& name, std::span<Row> rows, size_t column, int64_t number,
                  const Tensor* given = nullptr) {
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
    if (const auto whole = lying_together(rows, column, shape)) return *whole;
    const Tensor joined = given && given->dtype() == model.dtype() && given->shape() == shape
                              ? *given
                              : Tensor::empty(model.dtype(), shape);
    const size_t bytes = model.nbytes();
    char* to = joined.data<char>();
    for (Row& row : rows) {
        const Tensor& t = row[column].tensor();
        if (bytes > 0 && t.raw() != to) {
            const Tensor dense = t.contiguous();
            std::memcpy(to, dense.raw(), bytes);
        }
        to += bytes;
    }
    return joined;
}

// Copies `from` into the corner of a block that begins at `to`, axis by axis.
void copy_corner(const char* from, const Shape& shape, char* to, const Shape& block, int axis, size_t each) {
    int64_t inner = 1, outer = 1;
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i], outer *= block[i];
    if (axis + 1 >= shape.rank()) {
        std::memcpy(to, from, static_cast<size_t>(axis < shape.rank() ? shape[axis] : 1) * each);
        return;
    }
    for (int64_t i = 0; i < shape[axis]; ++i)
        copy_corner(from + static_cast<size_t>(i * inner) * each, shape, to + static_cast<size_t>(i * outer) * each,
                    block, axis + 1, each);
}

// As join_column, but smaller tensors are padded at their ends.
Value join_padded(std::string_view where, const std::string& name, std::span<Row> rows, size_t column, int64_t number,
                  const Padding& padding) {
    const Value& first = rows.front()[column];
    if (!first.is_tensor()) return join_column(where, name, rows, column, number);
    const Tensor model = first.tensor();
    Shape shape = model.shape();
    if (!padding.shape.empty() && static_cast<int>(padding.shape.size()) != shape.rank())
        throw shape_error(where, str("column '", name, "' has shape ", shape, " in row ", number, ", but pad_info has ",
                                     padding.shape.size(), " sizes for it"));
    for (size_t i = 0; i < rows.size(); ++i) {
        const Value& v = rows[i][column];
        const int64_t at = number + static_cast<int64_t>(i);
        if (!v.is_tensor() || v.tensor().rank() != model.rank() || v.tensor().dtype() != model.dtype())
            throw shape_error(where, str("column '", name, "' has another dtype or number of axes in row ", at,
                                         " than in row ", number));
        for (int axis = 0; axis < shape.rank(); ++axis) {
            const int64_t size = v.tensor().dim(axis);
            const int64_t wanted = padding.shape.empty() ? -1 : padding.shape[static_cast<size_t>(axis)];
            if (wanted >= 0 && size > wanted)
                throw shape_error(where, str("column '", name, "' has shape ", v.tensor().shape(), " in row ", at,
                                             ", which is more than the ", wanted, " of pad_info"));
            shape[axis] = wanted >= 0 ? wanted : std::max(shape[axis], size);
        }
    }
    const size_t each = size_of(model.dtype());
    Shape whole = shape;
    whole.insert(0, static_cast<int64_t>(rows.size()));
    const double value = padding.value.is_number() ? padding.value.number() : 0;
    const Tensor joined = Tensor::full(model.dtype(), whole, value);
    char* to = static_cast<char*>(joined.raw());
    for (Row& row : rows) {
        const Tensor dense = row[column].tensor().contiguous();
        if (dense.size() > 0) copy_corner(static_cast<const char*>(dense.raw()), dense.shape(), to, shape, 0, each);
        to += static_cast<size_t>(shape.size()) * each;
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

// The memory for the largest column of a batch. Its rows are written there directly where the transforms can do that.
class Together {
  public:
    // Chooses the column by the first row.
    void choose(const Row& first, size_t rows) {
        constexpr size_t kWorthIt = 1024;
        size_t most = kWorthIt - 1;
        for (size_t c = 0; c < first.size(); ++c) {
            if (!first[c].is_tensor() || first[c].tensor().nbytes() <= most || first[c].tensor().rank() == kMaxRank)
                continue;
            most = first[c].tensor().nbytes();
            column_ = c;
        }
        if (most < kWorthIt || rows < 2) return;
        const Tensor& model = first[column_].tensor();
        Shape shape = model.shape();
        shape.insert(0, static_cast<int64_t>(rows));
        all_.emplace(Tensor::empty(model.dtype(), shape));
    }
    template <class F>
    void finish(size_t i, Row& row, const F& make) {
        if (!all_) return make();
        Shape shape = all_->shape();
        Strides strides = all_->strides();
        shape.erase(0);
        strides.erase(0);
        const Tensor place = all_->view(shape, strides, static_cast<int64_t>(i) * shape.size());
        {
            const PlaceInBatch here(place);
            make();
        }
        // A tensor that lies in the place but is not the row's value in this column is copied.
        const char *begin = place.data<char>(), *end = begin + place.nbytes();
        for (size_t c = 0; c < row.size(); ++c) {
            if (!row[c].is_tensor()) continue;
            const Tensor& t = row[c].tensor();
            const char* at = static_cast<const char*>(t.raw());
            const bool is_row =
                c == column_ && at == begin && t.shape() == shape && t.dtype() == place.dtype() && t.is_contiguous();
            if (at >= begin && at < end && !is_row) row[c] = Value(t.copy());
        }
    }
    Row join(const Names& columns, std::span<Row> rows, int64_t number) const {
        Row batch;
        for (size_t c = 0; c < columns.size(); ++c)
            batch.push_back(join_column("batch", columns[c], rows, c, number, all_ && c == column_ ? &*all_ : nullptr));
        return batch;
    }

  private:
    std::optional<Tensor> all_;
    size_t column_ = 0;
};

// A batch is drawn row by row and made together with its rows.
class BatchCursor final : public Cursor {
  public:
    BatchCursor(std::unique_ptr<Cursor> child, const BatchOptions& options, const Names& columns, bool joined)
        : child_(std::move(child)), options_(options), columns_(columns), joined_(joined) {}
    bool next(Row& row) override {
        if (!draw(draft_)) return false;
        finish(draft_, row);
        return true;
    }
    bool draw(Draft& draft) override {
        draft.id = at_;
        size_t count = 0;
        while (static_cast<int64_t>(count) < options_.size) {
            if (count == draft.parts.size()) draft.parts.emplace_back();
            draft.parts[count].clear();
            if (!child_->draw(draft.parts[count])) break;
            ++count;
        }
        at_ += static_cast<int64_t>(count);
        draft.parts.resize(count);
        return static_cast<int64_t>(count) == options_.size || (count > 0 && !options_.drop_remainder);
    }
    void finish(Draft& draft, Row& row) override {
        std::vector<Row> rows(draft.parts.size());
        Together together;
        if (joined_ && options_.pads.empty() && child_->finishes_together()) {
            {
                const PlaceInBatch::Hidden hidden;
                child_->finish_together(draft.parts, rows);
            }
            row = together.join(columns_, rows, draft.id);
            return;
        }
        for (size_t i = 0; i < rows.size(); ++i) {
            if (!joined_ || !options_.pads.empty() || i == 0) {
                const PlaceInBatch::Hidden hidden;
                child_->finish(draft.parts[i], rows[i]);
                if (joined_ && options_.pads.empty()) together.choose(rows[i], rows.size());
                continue;
            }
            together.finish(i, rows[i], [&] { child_->finish(draft.parts[i], rows[i]); });
        }
        row = !joined_                ? lists(columns_, rows)
              : options_.pads.empty() ? together.join(columns_, rows, draft.id)
                                      : join("batch", columns_, rows, draft.id, options_.pads);
    }
    int64_t skip(int64_t count) override {
        const int64_t wanted = count > kEndless / options_.size ? kEndless : count * options_.size;
        const int64_t n = child_->skip(wanted);
        at_ += n;
        return n / options_.size + (!options_.drop_remainder && n % options_.size > 0);
    }

  private:
    std::unique_ptr<Cursor> child_;
    const BatchOptions& options_;
    const Names& columns_;
    bool joined_;
    int64_t at_ = 0;
    Draft draft_;
};

class Batch final : public Node {
  public:
    Batch(NodePtr child, BatchOptions options, bool joined)
        : Node(child->columns(), {child}), options_(std::move(options)), joined_(joined) {}
    std::string title() const override { return str("batch ", options_.size); }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        return std::make_unique<BatchCursor>(child().open(epoch), options_, columns(), joined_);
    }
    int64_t rows() const override {
        const int64_t n = child().rows();
        if (n == kUnknownRows || n == kEndless) return n;
        return n / options_.size + (!options_.drop_remainder && n % options_.size > 0);
    }
    bool has_work() const override { return joined_ || child().has_work(); }
    std::optional<int> workers() const override {
        const auto below = child().workers();
        return options_.workers && below ? std::max(*options_.workers, *below)
               : options_.workers        ? options_.workers
                                         : below;
    }
    int64_t batch_size() const override { return options_.size; }

  private:
    BatchOptions options_;
    bool joined_;
};

}  // namespace

Row join(std::string_view where, const Names& columns, std::span<Row> rows, int64_t number, const Paddings& pads) {
    Row batch;
    for (size_t c = 0; c < columns.size(); ++c)
        batch.push_back(c < pads.size() && pads[c] ? join_padded(where, columns[c], rows, c, number, *pads[c])
                                                   : join_column(where, columns[c], rows, c, number));
    return batch;
}

NodePtr batch(NodePtr child, BatchOptions options) {
    return std::make_shared<Batch>(std::move(child), std::move(options), true);
}
NodePtr gather(NodePtr child, BatchOptions options) {
    return std::make_shared<Batch>(std::move(child), std::move(options), false);
}

}  // namespace lunaria::data
