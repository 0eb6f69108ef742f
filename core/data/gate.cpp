#include "core/data/gate.h"

#include <atomic>

#include "core/base/error.h"

namespace lunaria::data {

namespace {

class Gate final : public Node {
  public:
    Gate(const NodePtr& child, std::string name, int64_t count, uint64_t function)
        : Node(child->columns(), {child}), name_(std::move(name)), count_(count), function_(function), left_(count) {}
    std::string title() const override { return "sync_wait " + name_; }
    int64_t rows() const override { return child().rows(); }
    bool is_native() const override { return false; }
    bool is_lazy() const override { return true; }
    int64_t batch_size() const override { return child().batch_size(); }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override;

    const std::string& name() const { return name_; }
    uint64_t function() const { return function_; }
    void add(std::optional<int64_t> count) const { left_ = count.value_or(count_); }
    void pass() const {
        if (left_-- > 0) return;
        left_ = 0;
        throw state_error("sync_wait", str("the condition '", name_, "' was not updated after ", count_,
                                           count_ == 1 ? " row" : " rows"))
            .hint("call ds:sync_update(\"" + name_ + "\") before the next row is asked for");
    }

  private:
    std::string name_;
    int64_t count_;
    uint64_t function_;
    mutable std::atomic<int64_t> left_;  // rows that may still pass
};

class GateCursor final : public Cursor {
  public:
    GateCursor(std::unique_ptr<Cursor> child, const Gate& gate) : child_(std::move(child)), gate_(gate) {}
    bool next(Row& row) override {
        // The end needs no consent, where it is known.
        if (rows_ != kUnknownRows && at_ >= rows_) return false;
        gate_.pass();
        ++at_;
        return child_->next(row);
    }
    int64_t skip(int64_t count) override {
        const int64_t n = child_->skip(count);
        at_ += n;
        return n;
    }

  private:
    std::unique_ptr<Cursor> child_;
    const Gate& gate_;
    const int64_t rows_ = gate_.rows();
    int64_t at_ = 0;
};

std::unique_ptr<Cursor> Gate::make_cursor(const Epoch& epoch) const {
    left_ = count_;
    return std::make_unique<GateCursor>(child().open(epoch), *this);
}

}  // namespace

NodePtr gate(NodePtr child, std::string name, int64_t count, uint64_t function) {
    return std::make_shared<Gate>(child, std::move(name), count, function);
}

bool consent(const Node& node, std::string_view name, std::optional<int64_t> count, uint64_t& function) {
    if (const auto* gate = dynamic_cast<const Gate*>(&node); gate && gate->name() == name) {
        gate->add(count);
        function = gate->function();
        return true;
    }
    for (const NodePtr& child : node.children())
        if (consent(*child, name, count, function)) return true;
    return false;
}

}  // namespace lunaria::data
