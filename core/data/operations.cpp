#include "core/data/operations.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/data/draws.h"

namespace lunaria::data {

namespace {

// A buffer of rows, or of their ids. Each step draws one of them at random and puts the next item in its place.
template <class Item>
class Buffer {
  public:
    Buffer(int64_t size, Draws draws) : size_(static_cast<size_t>(size)), draws_(draws) {}
    // `refill(item)` gives the next item or false.
    template <class Refill>
    bool next(Item& item, Refill refill) {
        while (!ended_ && items_.size() < size_) {
            if (items_.size() % 65536 == 0) poll_interrupt();
            Item fresh{};
            if (refill(fresh))
                items_.push_back(std::move(fresh));
            else
                ended_ = true;
        }
        if (items_.empty()) return false;
        const size_t at = Draws::below(draws_.next(), items_.size());
        std::swap(items_[at], items_.back());
        item = std::move(items_.back());
        items_.pop_back();
        return true;
    }
    std::vector<Item>& items() { return items_; }

  private:
    size_t size_;
    Draws::InOrder draws_;
    std::vector<Item> items_;
    bool ended_ = false;
};

class ShuffledRows final : public Cursor {
  public:
    ShuffledRows(std::unique_ptr<Cursor> child, int64_t size, Draws draws)
        : child_(std::move(child)), buffer_(size, draws) {}
    bool next(Row& row) override {
        if (!draw(draft_)) return false;
        finish(draft_, row);
        return true;
    }
    bool draw(Draft& draft) override {
        return buffer_.next(draft, [&](Draft& fresh) { return child_->draw(fresh); });
    }
    void finish(Draft& draft, Row& row) override { child_->finish(draft, row); }

  private:
    std::unique_ptr<Cursor> child_;
    Buffer<Draft> buffer_;
    Draft draft_;
};

class ShuffledIds final : public IdCursor {
  public:
    ShuffledIds(std::unique_ptr<Cursor> child, int64_t size, Draws draws)
        : child_(std::move(child)), buffer_(size, draws) {}
    bool next_id(int64_t& id) override {
        return buffer_.next(id, [&](int64_t& fresh) { return child_->next_id(fresh); });
    }
    // Rows go through the buffer by their places in the child, as ~place; only the places that stay in it are turned
    // into ids.
    int64_t skip(int64_t count) override {
        const std::optional<int64_t> left = child_->ids_left();
        if (!left) return IdCursor::skip(count);
        int64_t skipped = 0, places = 0, item = 0;
        const auto refill = [&](int64_t& fresh) {
            fresh = ~places;
            return places < *left && ++places > 0;
        };
        for (; skipped < count && buffer_.next(item, refill); ++skipped)
            if (skipped % 65536 == 0) poll_interrupt();
        std::vector<int64_t*> fresh;
        for (int64_t& id : buffer_.items())
            if (id < 0) fresh.push_back(&id);
        std::ranges::sort(fresh, std::greater(), [](const int64_t* id) { return *id; });
        int64_t at = 0;
        for (int64_t* id : fresh) {
            const int64_t place = ~*id;
            child_->skip(place - at);
            child_->next_id(*id);
            at = place + 1;
        }
        child_->skip(places - at);
        return skipped;
    }
    void fetch(int64_t id, Row& row) override { child_->fetch(id, row); }
    void prepare(int64_t id, Draft& draft) override { child_->prepare(id, draft); }
    void finish(Draft& draft, Row& row) override { child_->finish(draft, row); }

  private:
    std::unique_ptr<Cursor> child_;
    Buffer<int64_t> buffer_;
};

// Base of the nodes with one child whose columns they keep.
class Unary : public Node {
  public:
    Unary(NodePtr child, Names columns) : Node(std::move(columns), {child}) {}
    explicit Unary(NodePtr child) : Unary(child, child->columns()) {}
    int64_t rows() const override { return child().rows(); }
    int64_t batch_size() const override { return child().batch_size(); }
};

std::unique_ptr<Cursor> shuffled(std::unique_ptr<Cursor> child, int64_t size, Draws draws) {
    if (child->has_ids()) return std::make_unique<ShuffledIds>(std::move(child), size, draws);
    return std::make_unique<ShuffledRows>(std::move(child), size, draws);
}

class Shuffle final : public Unary {
  public:
    Shuffle(NodePtr child, int64_t buffer, uint64_t seed) : Unary(std::move(child)), buffer_(buffer), seed_(seed) {}
    std::string title() const override { return str("shuffle ", buffer_); }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        return shuffled(child().open(epoch), buffer_, Draws(seed_, epoch.order, Purpose::buffer));
    }

  private:
    int64_t buffer_;
    uint64_t seed_;
};

// Finishes a draft by the cursor that drew it, one of several.
void finish_turn(Draft& draft, Row& row) {
    const std::shared_ptr<Cursor> turn = std::move(draft.turns.back());
    draft.turns.pop_back();
    turn->finish(draft, row);
}

class RepeatCursor final : public Cursor {
  public:
    RepeatCursor(const Node& child, int64_t count, const Epoch& epoch) : child_(child), count_(count), epoch_(epoch) {}
    bool next(Row& row) override {
        while (enter()) {
            if (current_->next(row)) {
                any_ = true;
                return true;
            }
            leave();
        }
        return false;
    }
    bool draw(Draft& draft) override {
        while (enter()) {
            if (current_->draw(draft)) {
                any_ = true;
                draft.turns.push_back(current_);
                return true;
            }
            leave();
        }
        return false;
    }
    void finish(Draft& draft, Row& row) override { finish_turn(draft, row); }
    int64_t skip(int64_t count) override {
        int64_t done = 0;
        while (done < count && enter()) {
            const int64_t n = current_->skip(count - done);
            any_ |= n > 0;
            done += n;
            if (done < count) leave();
        }
        return done;
    }

  private:
    // Opens the next turn if none is open. Ends where a turn had no rows, which could go on for ever.
    bool enter() {
        if (current_) return true;
        if (turn_ == count_ || (turn_ > 0 && !any_)) return false;
        poll_interrupt();
        Epoch epoch = epoch_;
        const uint64_t turns = count_ == kEndless ? uint64_t{1} << 32 : static_cast<uint64_t>(count_);
        epoch.number = epoch_.number * turns + static_cast<uint64_t>(turn_);
        epoch.order = epoch_.order * turns + static_cast<uint64_t>(turn_);
        current_ = child_.open(epoch);
        any_ = false;
        return true;
    }
    void leave() {
        current_.reset();
        ++turn_;
    }

    const Node& child_;
    int64_t count_, turn_ = 0;
    Epoch epoch_;
    std::shared_ptr<Cursor> current_;  // shared with the drafts that it has drawn
    bool any_ = false;
};

class Repeat final : public Unary {
  public:
    Repeat(NodePtr child, int64_t count) : Unary(std::move(child)), count_(count) {}
    std::string title() const override { return count_ == kEndless ? "repeat" : str("repeat ", count_); }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        return std::make_unique<RepeatCursor>(child(), count_, epoch);
    }
    int64_t rows() const override {
        const int64_t n = child().rows();
        if (n == kUnknownRows || n == 0) return n;
        return count_ > kEndless / n ? kEndless : n * count_;
    }

  private:
    int64_t count_;
};

// The cursor of skip and take: passes on the rows and ids of another cursor, up to a number of rows.
class Limited final : public Cursor {
  public:
    Limited(std::unique_ptr<Cursor> child, int64_t left) : child_(std::move(child)), left_(left) {}
    bool next(Row& row) override { return left_ > 0 && (--left_, child_->next(row)); }
    int64_t skip(int64_t count) override {
        count = std::min(count, left_);
        left_ -= count;
        return child_->skip(count);
    }
    bool has_ids() const override { return child_->has_ids(); }
    bool next_id(int64_t& id) override { return left_ > 0 && (--left_, child_->next_id(id)); }
    void fetch(int64_t id, Row& row) override { child_->fetch(id, row); }
    void prepare(int64_t id, Draft& draft) override { child_->prepare(id, draft); }
    bool draw(Draft& draft) override { return left_ > 0 && (--left_, child_->draw(draft)); }
    void finish(Draft& draft, Row& row) override { child_->finish(draft, row); }

  private:
    std::unique_ptr<Cursor> child_;
    int64_t left_;
};

class Skip final : public Unary {
  public:
    Skip(NodePtr child, int64_t count) : Unary(std::move(child)), count_(count) {}
    std::string title() const override { return str("skip ", count_); }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        auto cursor = child().open(epoch);
        cursor->skip(count_);
        return cursor;
    }
    int64_t rows() const override {
        const int64_t n = child().rows();
        return n == kUnknownRows || n == kEndless ? n : std::max<int64_t>(0, n - count_);
    }

  private:
    int64_t count_;
};

class Take final : public Unary {
  public:
    Take(NodePtr child, int64_t count) : Unary(std::move(child)), count_(count) {}
    std::string title() const override { return str("take ", count_); }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        return std::make_unique<Limited>(child().open(epoch), count_);
    }
    int64_t rows() const override {
        const int64_t n = child().rows();
        return n == kUnknownRows ? n : std::min(n, count_);
    }

  private:
    int64_t count_;
};

class SelectCursor final : public Cursor {
  public:
    SelectCursor(std::unique_ptr<Cursor> child, const std::vector<size_t>& positions)
        : child_(std::move(child)), positions_(positions) {}
    bool next(Row& row) override {
        Row whole;
        if (!child_->next(whole)) return false;
        choose(whole, row);
        return true;
    }
    int64_t skip(int64_t count) override { return child_->skip(count); }
    bool has_ids() const override { return child_->has_ids(); }
    bool next_id(int64_t& id) override { return child_->next_id(id); }
    void fetch(int64_t id, Row& row) override {
        Row whole;
        child_->fetch(id, whole);
        choose(whole, row);
    }
    bool draw(Draft& draft) override { return child_->draw(draft); }
    void prepare(int64_t id, Draft& draft) override { child_->prepare(id, draft); }
    void finish(Draft& draft, Row& row) override {
        Row whole;
        child_->finish(draft, whole);
        choose(whole, row);
    }

  private:
    void choose(const Row& whole, Row& row) const {
        row.clear();
        for (size_t at : positions_) row.push_back(whole[at]);
    }
    std::unique_ptr<Cursor> child_;
    const std::vector<size_t>& positions_;
};

class Select final : public Unary {
  public:
    Select(NodePtr child, std::vector<size_t> positions, Names names)
        : Unary(std::move(child), std::move(names)), positions_(std::move(positions)) {}
    std::string title() const override { return "project"; }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        return std::make_unique<SelectCursor>(child().open(epoch), positions_);
    }

  private:
    std::vector<size_t> positions_;
};

using Cursors = std::vector<std::unique_ptr<Cursor>>;

class ZipCursor final : public Cursor {
  public:
    explicit ZipCursor(Cursors children) : children_(std::move(children)) {}
    bool next(Row& row) override {
        row.clear();
        for (auto& child : children_) {
            if (!child->next(part_)) return false;
            for (Value& v : part_) row.push_back(std::move(v));
        }
        return true;
    }
    bool draw(Draft& draft) override {
        draft.parts.resize(children_.size());
        for (size_t i = 0; i < children_.size(); ++i) {
            draft.parts[i].clear();
            if (!children_[i]->draw(draft.parts[i])) return false;
        }
        return true;
    }
    void finish(Draft& draft, Row& row) override {
        row.clear();
        Row part;
        for (size_t i = 0; i < children_.size(); ++i) {
            children_[i]->finish(draft.parts[i], part);
            for (Value& v : part) row.push_back(std::move(v));
        }
    }
    int64_t skip(int64_t count) override {
        for (auto& child : children_) count = std::min(count, child->skip(count));
        return count;
    }

  private:
    Cursors children_;
    Row part_;
};

class ConcatCursor final : public Cursor {
  public:
    ConcatCursor(const std::vector<NodePtr>& children, const Epoch& epoch) : children_(children), epoch_(epoch) {}
    bool next(Row& row) override {
        while (enter()) {
            if (current_->next(row)) return true;
            leave();
        }
        return false;
    }
    bool draw(Draft& draft) override {
        while (enter()) {
            if (current_->draw(draft)) {
                draft.turns.push_back(current_);
                return true;
            }
            leave();
        }
        return false;
    }
    void finish(Draft& draft, Row& row) override { finish_turn(draft, row); }
    int64_t skip(int64_t count) override {
        int64_t done = 0;
        while (done < count && enter()) {
            done += current_->skip(count - done);
            if (done < count) leave();
        }
        return done;
    }

  private:
    bool enter() {
        if (!current_ && at_ < children_.size()) current_ = children_[at_]->open(epoch_);
        return current_ != nullptr;
    }
    void leave() {
        current_.reset();
        ++at_;
    }
    const std::vector<NodePtr>& children_;
    Epoch epoch_;
    size_t at_ = 0;
    std::shared_ptr<Cursor> current_;  // shared with the drafts that they have drawn
};

Names joined_names(const std::vector<NodePtr>& children) {
    Names names;
    std::set<std::string> seen;
    for (const NodePtr& child : children)
        for (const std::string& name : child->columns()) {
            if (!seen.insert(name).second)
                throw argument_error("zip", str("two of the data sets have a column '", name, "'"))
                    .hint("give one of them another name: ds:rename(\"" + name + "\", \"" + name + "2\")");
            names.push_back(name);
        }
    return names;
}

class Zip final : public Node {
  public:
    explicit Zip(const std::vector<NodePtr>& children) : Node(joined_names(children), children) {}
    std::string title() const override { return "zip"; }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        Cursors cursors;
        for (const NodePtr& child : children()) cursors.push_back(child->open(epoch));
        return std::make_unique<ZipCursor>(std::move(cursors));
    }
    int64_t rows() const override {
        int64_t least = kEndless;
        for (const NodePtr& child : children()) {
            const int64_t n = child->rows();
            if (n == kUnknownRows) return n;
            least = std::min(least, n);
        }
        return least;
    }
    int64_t batch_size() const override { return child().batch_size(); }
};

class Concat final : public Node {
  public:
    explicit Concat(const std::vector<NodePtr>& list_of) : Node(list_of.front()->columns(), list_of) {
        for (const NodePtr& child : children())
            if (child->columns() != columns())
                throw argument_error("concat", str("the data sets have different columns: ", list(columns()), " and ",
                                                   list(child->columns())))
                    .hint("ds:project and ds:rename make them the same");
    }
    std::string title() const override { return "concat"; }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        return std::make_unique<ConcatCursor>(children(), epoch);
    }
    int64_t rows() const override {
        int64_t sum = 0;
        for (const NodePtr& child : children()) {
            const int64_t n = child->rows();
            if (n == kUnknownRows) return n;
            sum = n > kEndless - sum ? kEndless : sum + n;
        }
        return sum;
    }
    int64_t batch_size() const override { return child().batch_size(); }

  private:
    static std::string list(const Names& names) {
        std::string text;
        for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
        return text;
    }
};

class Part final : public Unary {
  public:
    Part(NodePtr child, int64_t begin, int64_t count, bool shuffled, uint64_t seed)
        : Unary(std::move(child)), begin_(begin), count_(count), shuffled_(shuffled), seed_(seed) {}
    std::string title() const override { return str("split ", count_); }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        Epoch fixed = epoch;
        fixed.order = 0;
        auto cursor = child().open(fixed);
        if (shuffled_) cursor = shuffled(std::move(cursor), INT64_MAX, Draws(seed_, 0, Purpose::classes));
        cursor->skip(begin_);
        return std::make_unique<Limited>(std::move(cursor), count_);
    }
    int64_t rows() const override { return count_; }

  private:
    int64_t begin_, count_;
    bool shuffled_;
    uint64_t seed_;
};

}  // namespace

NodePtr shuffle(NodePtr child, int64_t buffer, uint64_t seed) {
    return std::make_shared<Shuffle>(std::move(child), buffer, seed);
}
NodePtr repeat(NodePtr child, int64_t count) { return std::make_shared<Repeat>(std::move(child), count); }
NodePtr skip(NodePtr child, int64_t count) { return std::make_shared<Skip>(std::move(child), count); }
NodePtr take(NodePtr child, int64_t count) { return std::make_shared<Take>(std::move(child), count); }
NodePtr select(NodePtr child, std::vector<size_t> positions, Names names) {
    return std::make_shared<Select>(std::move(child), std::move(positions), std::move(names));
}
NodePtr zip(std::vector<NodePtr> children) { return std::make_shared<Zip>(std::move(children)); }
NodePtr concat(std::vector<NodePtr> children) { return std::make_shared<Concat>(std::move(children)); }
NodePtr part(NodePtr child, int64_t begin, int64_t count, bool shuffled, uint64_t seed) {
    return std::make_shared<Part>(std::move(child), begin, count, shuffled, seed);
}

}  // namespace lunaria::data
