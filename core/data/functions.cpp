#include "core/data/functions.h"

#include <exception>
#include <optional>

#include "core/base/interrupt.h"
#include "core/data/ahead.h"
#include "core/data/layout.h"
#include "core/data/tolerant.h"

namespace lunaria::data {

namespace {

struct Call {
    std::string where;
    uint64_t function;
    std::vector<size_t> inputs;
    Names input_names;
    uint64_t seed;
    bool numbered = false, tolerant = false;

    void gather(const Row& row, Row& arguments) const {
        arguments.clear();
        for (size_t at : inputs) arguments.push_back(row[at]);
    }
    Place place(const Epoch& epoch, int64_t row) const { return {where, &input_names, seed, epoch.number, row}; }
};

class MapCursor final : public Cursor {
  public:
    MapCursor(const Node& child, const Call& call, const Layout& layout, size_t results, const Epoch& epoch)
        : feed_(child, epoch), call_(call), layout_(layout), results_(results), epoch_(epoch) {}
    bool next(Row& row) override {
        int64_t id = 0;
        return next(row, id);
    }
    int64_t skip(int64_t count) override {
        const int64_t n = feed_.skip(count);
        at_ += n;
        return n;
    }
    bool has_ids() const override { return feed_.has_ids(); }
    bool next_id(int64_t& id) override { return feed_.next_id(id); }
    void fetch(int64_t id, Row& row) override {
        feed_.fetch(id, whole_);
        apply(id, row);
    }
    // Functions run when and where rows are drawn: on the host's thread, in order.
    bool draw(Draft& draft) override { return next(draft.row, draft.id); }
    void prepare(int64_t id, Draft& draft) override {
        draft.id = id;
        fetch(id, draft.row);
    }
    void finish(Draft& draft, Row& row) override { row = std::move(draft.row); }

  private:
    bool next(Row& row, int64_t& id) {
        if (!feed_.next(whole_, id)) return false;
        const int64_t number = feed_.has_ids() ? id : at_;
        ++at_;
        apply(number, row);
        return true;
    }
    void apply(int64_t number, Row& row) {
        call_.gather(whole_, arguments_);
        if (call_.numbered) {
            arguments_.emplace_back(number);
            arguments_.emplace_back(static_cast<int64_t>(epoch_.number));
        }
        made_.clear();
        try {
            epoch_.host->call(call_.function, arguments_, results_, made_, call_.place(epoch_, number));
        } catch (const std::exception&) {
            if (!call_.tolerant || interrupt_requested()) throw;
            row = bad_row(layout_.names.size());
            return;
        }
        row.clear();
        layout_.place(whole_, made_, row);
    }

    Feed feed_;
    const Call& call_;
    const Layout& layout_;
    size_t results_;
    Epoch epoch_;
    int64_t at_ = 0;
    Row whole_, arguments_, made_;
};

class Map final : public Node {
  public:
    Map(const NodePtr& child, Call call, Layout layout, size_t results)
        : Node(layout.names, {child}), call_(std::move(call)), layout_(std::move(layout)), results_(results) {}
    std::string title() const override { return call_.where; }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        return std::make_unique<MapCursor>(child(), call_, layout_, results_, epoch);
    }
    int64_t rows() const override { return child().rows(); }
    bool is_native() const override { return false; }
    bool has_work() const override { return false; }
    int64_t batch_size() const override { return child().batch_size(); }
    uint64_t functions() const override { return child().functions() + 1; }

  private:
    Call call_;
    Layout layout_;
    size_t results_;
};

class FilterCursor final : public Cursor {
  public:
    FilterCursor(const Node& child, const Call& call, const Epoch& epoch)
        : feed_(child, epoch), call_(call), epoch_(epoch) {}
    bool next(Row& row) override {
        for (;;) {
            poll_interrupt();
            int64_t number = 0;
            if (!feed_.next(row, number)) return false;
            if (!feed_.has_ids()) number = at_;
            ++at_;
            call_.gather(row, arguments_);
            if (epoch_.host->test(call_.function, arguments_, call_.place(epoch_, number))) return true;
        }
    }

  private:
    Feed feed_;
    const Call& call_;
    Epoch epoch_;
    int64_t at_ = 0;
    Row arguments_;
};

class Filter final : public Node {
  public:
    Filter(const NodePtr& child, Call call) : Node(child->columns(), {child}), call_(std::move(call)) {}
    std::string title() const override { return "filter"; }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        return std::make_unique<FilterCursor>(child(), call_, epoch);
    }
    int64_t rows() const override { return kUnknownRows; }
    bool is_native() const override { return false; }
    bool has_work() const override { return false; }
    int64_t batch_size() const override { return child().batch_size(); }
    uint64_t functions() const override { return child().functions() + 1; }

  private:
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
    Stream(Call call, int64_t rows) : Node(call.input_names, {}), call_(std::move(call)), rows_(rows) {}
    std::string title() const override { return call_.where; }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        return std::make_unique<StreamCursor>(call_, columns().size(), rows_ == kUnknownRows ? kEndless : rows_, epoch);
    }
    int64_t rows() const override { return rows_; }
    bool is_native() const override { return false; }
    uint64_t functions() const override { return 1; }

  private:
    Call call_;
    int64_t rows_;
};

}  // namespace

NodePtr map(NodePtr child, std::string where, uint64_t function, std::vector<size_t> inputs, Names outputs,
            uint64_t seed, bool numbered, bool tolerant) {
    seed += kSeedStep * child->functions();
    Layout layout(child->columns(), inputs, outputs);
    Call call{std::move(where), function, inputs, chosen(child->columns(), inputs), seed, numbered, tolerant};
    return std::make_shared<Map>(child, std::move(call), std::move(layout), outputs.size());
}

NodePtr filter(NodePtr child, uint64_t function, std::vector<size_t> inputs, uint64_t seed) {
    seed += kSeedStep * child->functions();
    Call call{"filter", function, inputs, chosen(child->columns(), inputs), seed, false};
    return std::make_shared<Filter>(child, std::move(call));
}

NodePtr stream(std::string where, uint64_t function, Names columns, int64_t rows, uint64_t seed) {
    return std::make_shared<Stream>(Call{std::move(where), function, {}, std::move(columns), seed, false}, rows);
}

}  // namespace lunaria::data
