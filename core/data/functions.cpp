#include "core/data/functions.h"

#include <algorithm>
#include <optional>

#include "core/interrupt.h"

namespace lunaria::data {

namespace {

struct Call {
    std::string where;
    uint64_t function;
    std::vector<size_t> inputs;
    Names input_names;
    uint64_t seed;
    bool numbered = false;

    void gather(const Row& row, Row& arguments) const {
        arguments.clear();
        for (size_t at : inputs) arguments.push_back(row[at]);
    }
    Place place(const Epoch& epoch, int64_t row) const { return {where, &input_names, seed, epoch.number, row}; }
};

Names chosen(const Names& names, const std::vector<size_t>& positions) {
    Names list;
    for (size_t at : positions) list.push_back(names[at]);
    return list;
}

// Columns that are not among the inputs keep their places; the results come where the first input was.
struct Layout {
    static constexpr size_t kResults = SIZE_MAX;
    std::vector<size_t> order;  // a column of the row, or kResults
    Names names;

    Layout(const Names& before, const std::vector<size_t>& inputs, const Names& outputs) {
        for (size_t i = 0; i < before.size(); ++i) {
            if (std::find(inputs.begin(), inputs.end(), i) == inputs.end()) {
                order.push_back(i);
                names.push_back(before[i]);
            } else if (i == inputs.front()) {
                order.push_back(kResults);
                names.insert(names.end(), outputs.begin(), outputs.end());
            }
        }
    }
};

class MapCursor final : public Cursor {
  public:
    MapCursor(std::unique_ptr<Cursor> child, const Call& call, const Layout& layout, size_t results, const Epoch& epoch)
        : child_(std::move(child)), call_(call), layout_(layout), results_(results), epoch_(epoch) {}
    bool next(Row& row) override {
        if (child_->has_ids()) {
            int64_t id = 0;
            if (!child_->next_id(id)) return false;
            fetch(id, row);
            return true;
        }
        if (!child_->next(whole_)) return false;
        apply(at_++, row);
        return true;
    }
    int64_t skip(int64_t count) override {
        const int64_t n = child_->skip(count);
        at_ += n;
        return n;
    }
    bool has_ids() const override { return child_->has_ids(); }
    bool next_id(int64_t& id) override { return child_->next_id(id); }
    void fetch(int64_t id, Row& row) override {
        child_->fetch(id, whole_);
        apply(id, row);
    }

  private:
    void apply(int64_t number, Row& row) {
        call_.gather(whole_, arguments_);
        if (call_.numbered) {
            arguments_.emplace_back(number);
            arguments_.emplace_back(static_cast<int64_t>(epoch_.number));
        }
        made_.clear();
        epoch_.host->call(call_.function, arguments_, results_, made_, call_.place(epoch_, number));
        row.clear();
        for (size_t at : layout_.order) {
            if (at == Layout::kResults)
                for (Value& v : made_) row.push_back(std::move(v));
            else
                row.push_back(std::move(whole_[at]));
        }
    }

    std::unique_ptr<Cursor> child_;
    const Call& call_;
    const Layout& layout_;
    size_t results_;
    Epoch epoch_;
    int64_t at_ = 0;
    Row whole_, arguments_, made_;
};

class Map final : public Node {
  public:
    Map(NodePtr child, Call call, Layout layout, size_t results)
        : Node(layout.names),
          child_(std::move(child)),
          call_(std::move(call)),
          layout_(std::move(layout)),
          results_(results) {}
    std::unique_ptr<Cursor> open(const Epoch& epoch) const override {
        return std::make_unique<MapCursor>(child_->open(epoch), call_, layout_, results_, epoch);
    }
    int64_t rows() const override { return child_->rows(); }
    bool is_native() const override { return false; }
    int64_t batch_size() const override { return child_->batch_size(); }

  private:
    NodePtr child_;
    Call call_;
    Layout layout_;
    size_t results_;
};

class FilterCursor final : public Cursor {
  public:
    FilterCursor(std::unique_ptr<Cursor> child, const Call& call, const Epoch& epoch)
        : child_(std::move(child)), call_(call), epoch_(epoch) {}
    bool next(Row& row) override {
        for (;;) {
            poll_interrupt();
            int64_t number = at_++;
            if (child_->has_ids()) {
                if (!child_->next_id(number)) return false;
                child_->fetch(number, row);
            } else if (!child_->next(row)) {
                return false;
            }
            call_.gather(row, arguments_);
            if (epoch_.host->test(call_.function, arguments_, call_.place(epoch_, number))) return true;
        }
    }

  private:
    std::unique_ptr<Cursor> child_;
    const Call& call_;
    Epoch epoch_;
    int64_t at_ = 0;
    Row arguments_;
};

class Filter final : public Node {
  public:
    Filter(NodePtr child, Call call) : Node(child->columns()), child_(std::move(child)), call_(std::move(call)) {}
    std::unique_ptr<Cursor> open(const Epoch& epoch) const override {
        return std::make_unique<FilterCursor>(child_->open(epoch), call_, epoch);
    }
    int64_t rows() const override { return kUnknownRows; }
    bool is_native() const override { return false; }
    int64_t batch_size() const override { return child_->batch_size(); }

  private:
    NodePtr child_;
    Call call_;
};

class StreamCursor final : public Cursor {
  public:
    StreamCursor(const Call& call, size_t columns, int64_t most, const Epoch& epoch)
        : call_(call), columns_(columns), most_(most), epoch_(epoch) {}
    ~StreamCursor() override {
        if (stream_) epoch_.host->stop(*stream_);
    }
    bool next(Row& row) override {
        if (ended_) return false;
        const Place place = call_.place(epoch_, at_);
        if (!stream_) stream_ = epoch_.host->start(call_.function, place);
        row.clear();
        ended_ = at_ == most_ || !epoch_.host->step(*stream_, columns_, row, place);
        ++at_;
        return !ended_;
    }

  private:
    const Call& call_;
    size_t columns_;
    int64_t most_;
    Epoch epoch_;
    std::optional<int64_t> stream_;
    int64_t at_ = 0;
    bool ended_ = false;
};

class Stream final : public Node {
  public:
    Stream(Call call, int64_t rows) : Node(call.input_names), call_(std::move(call)), rows_(rows) {}
    std::unique_ptr<Cursor> open(const Epoch& epoch) const override {
        return std::make_unique<StreamCursor>(call_, columns().size(), rows_ == kUnknownRows ? kEndless : rows_, epoch);
    }
    int64_t rows() const override { return rows_; }
    bool is_native() const override { return false; }

  private:
    Call call_;
    int64_t rows_;
};

}  // namespace

NodePtr map(NodePtr child, std::string where, uint64_t function, std::vector<size_t> inputs, Names outputs,
            uint64_t seed, bool numbered) {
    Layout layout(child->columns(), inputs, outputs);
    Call call{std::move(where), function, inputs, chosen(child->columns(), inputs), seed, numbered};
    return std::make_shared<Map>(std::move(child), std::move(call), std::move(layout), outputs.size());
}

NodePtr filter(NodePtr child, uint64_t function, std::vector<size_t> inputs, uint64_t seed) {
    Call call{"filter", function, inputs, chosen(child->columns(), inputs), seed, false};
    return std::make_shared<Filter>(std::move(child), std::move(call));
}

NodePtr stream(std::string where, uint64_t function, Names columns, int64_t rows, uint64_t seed) {
    return std::make_shared<Stream>(Call{std::move(where), function, {}, std::move(columns), seed, false}, rows);
}

}  // namespace lunaria::data
