#include "core/data/cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "core/base/error.h"
#include "core/data/following.h"

namespace lunaria::data {

namespace {

constexpr uint64_t kText = 0x100, kList = 0x101;

void put(std::string& out, uint64_t value) { out.append(reinterpret_cast<const char*>(&value), 8); }

void write_value(std::string& out, const Value& v) {
    if (v.is_tensor()) {
        const Tensor t = v.tensor().contiguous();
        put(out, static_cast<uint64_t>(t.dtype()));
        put(out, static_cast<uint64_t>(t.rank()));
        for (int i = 0; i < t.rank(); ++i) put(out, static_cast<uint64_t>(t.dim(i)));
        out.append(static_cast<const char*>(t.raw()), t.nbytes());
    } else if (v.is_list()) {
        put(out, kList);
        put(out, v.items().size());
        for (const Value& item : v.items()) write_value(out, item);
    } else {
        put(out, kText);
        put(out, v.string().size());
        out += v.string();
    }
}

// Reads a row from bytes that this process has written.
class Reader {
  public:
    explicit Reader(std::string_view rest) : rest_(rest) {}
    bool more() const { return !rest_.empty(); }
    Value value() {
        const uint64_t kind = number();
        if (kind == kText) return Value(bytes(number()));
        if (kind == kList) {
            std::vector<Value> items(number());
            for (Value& item : items) item = value();
            return Value::list(std::move(items));
        }
        Shape shape;
        for (uint64_t rank = number(); rank > 0; --rank) shape.push_back(static_cast<int64_t>(number()));
        const Tensor t = Tensor::empty(static_cast<DType>(kind), shape);
        const std::string_view content = bytes(t.nbytes());
        std::memcpy(t.raw(), content.data(), content.size());
        return t;
    }

  private:
    std::string_view bytes(uint64_t count) {
        const std::string_view part = rest_.substr(0, count);
        rest_.remove_prefix(count);
        return part;
    }
    uint64_t number() {
        uint64_t value = 0;
        std::memcpy(&value, bytes(8).data(), 8);
        return value;
    }
    std::string_view rest_;
};

int64_t bytes_of(const Value& v) {
    if (v.is_tensor()) return static_cast<int64_t>(v.tensor().nbytes()) + 128;
    int64_t sum = 64;
    if (v.is_list())
        for (const Value& item : v.items()) sum += bytes_of(item);
    else
        sum += static_cast<int64_t>(v.string().size());
    return sum;
}

class RowCache final : public Cache {
  public:
    RowCache(int64_t most, bool spilling) : most_(most), spilling_(spilling) {}
    ~RowCache() override {
        if (file_ >= 0) close(file_);
    }
    int64_t rows() const override {
        const std::lock_guard lock(mutex_);
        return static_cast<int64_t>(kept_.size() + spilled_.size());
    }
    int64_t bytes() const override {
        const std::lock_guard lock(mutex_);
        return bytes_ + end_;
    }
    int64_t hits() const override { return hits_; }

    bool find(int64_t key, Row& row) {
        std::pair<int64_t, int64_t> place;
        {
            const std::lock_guard lock(mutex_);
            if (const auto found = kept_.find(key); found != kept_.end()) {
                row = found->second;
                ++hits_;
                return true;
            }
            const auto found = spilled_.find(key);
            if (found == spilled_.end()) return false;
            place = found->second;
        }
        std::string text(static_cast<size_t>(place.second), '\0');
        transfer(place.first, text.size(),
                 [&](off_t at, size_t done, size_t left) { return pread(file_, text.data() + done, left, at); });
        row.clear();
        for (Reader reader(text); reader.more();) row.push_back(reader.value());
        ++hits_;
        return true;
    }
    void keep(int64_t key, const Row& row) {
        int64_t size = 64;
        for (const Value& v : row) size += bytes_of(v);
        const std::lock_guard lock(mutex_);
        if (kept_.contains(key) || spilled_.contains(key)) return;
        if (bytes_ + size <= most_) {
            bytes_ += size;
            // A view would keep the whole tensor in memory.
            Row own;
            for (const Value& v : row) own.push_back(v.is_tensor() ? Value(v.tensor().contiguous()) : v);
            kept_.emplace(key, std::move(own));
        } else if (spilling_) {
            spill(key, row);
        }
    }

  private:
    template <class Do>
    void transfer(int64_t at, size_t count, Do piece) {
        for (size_t done = 0; done < count;) {
            const ssize_t n = piece(static_cast<off_t>(at) + static_cast<off_t>(done), done, count - done);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) throw file_error("cache", str("the temporary file cannot be used: ", std::strerror(errno)));
            done += static_cast<size_t>(n);
        }
    }
    void spill(int64_t key, const Row& row) {
        if (file_ < 0) {
            std::string path = "/tmp/lunaria_cache_XXXXXX";
            file_ = mkostemp(path.data(), O_CLOEXEC);
            if (file_ < 0) throw file_error("cache", str(path, " cannot be made: ", std::strerror(errno)));
            // The file has no name, so that it ends with the process.
            unlink(path.c_str());
        }
        std::string text;
        for (const Value& v : row) write_value(text, v);
        transfer(end_, text.size(),
                 [&](off_t at, size_t done, size_t left) { return pwrite(file_, text.data() + done, left, at); });
        spilled_[key] = {end_, static_cast<int64_t>(text.size())};
        end_ += static_cast<int64_t>(text.size());
    }

    const int64_t most_;
    const bool spilling_;
    mutable std::mutex mutex_;
    std::unordered_map<int64_t, Row> kept_;                             // under mutex_
    std::unordered_map<int64_t, std::pair<int64_t, int64_t>> spilled_;  // place in the file and bytes; under mutex_
    int64_t bytes_ = 0, end_ = 0;
    int file_ = -1;
    std::atomic<int64_t> hits_{0};
};

class CacheCursor final : public FollowingCursor {
  public:
    CacheCursor(std::unique_ptr<Cursor> child, RowCache& cache) : FollowingCursor(std::move(child)), cache_(cache) {}
    void fetch(int64_t id, Row& row) override {
        if (cache_.find(id, row)) return;
        child_->fetch(id, row);
        cache_.keep(id, row);
    }
    void prepare(int64_t id, Draft& draft) override {
        draft.numbers.push_back(id);
        if (!found(id, draft)) child_->prepare(id, draft);
    }
    bool draw(Draft& draft) override {
        int64_t key = at_;
        if (child_->has_ids()) {
            if (!child_->next_id(key)) return false;
            draft.id = key;
            prepare(key, draft);
            return true;
        }
        if (!child_->draw(draft)) return false;
        ++at_;
        draft.numbers.push_back(key);
        return true;
    }
    void finish(Draft& draft, Row& row) override {
        const int64_t key = draft.numbers.back();
        draft.numbers.pop_back();
        if (key < 0) {
            row = std::move(draft.row);
            return;
        }
        if (!child_->has_ids() && cache_.find(key, row)) return;
        child_->finish(draft, row);
        cache_.keep(key, row);
    }

  private:
    // Rows in the cache are not drawn from the child: functions of the host language are not called for them.
    bool found(int64_t id, Draft& draft) {
        if (!cache_.find(id, draft.row)) return false;
        draft.numbers.back() = -1;
        return true;
    }
    RowCache& cache_;
};

class CacheNode final : public Node {
  public:
    CacheNode(const NodePtr& child, CachePtr cache) : Node(child->columns(), {child}), cache_(std::move(cache)) {}
    std::string title() const override { return "cache"; }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        return std::make_unique<CacheCursor>(child().open(epoch), static_cast<RowCache&>(*cache_));
    }
    int64_t rows() const override { return child().rows(); }
    int64_t batch_size() const override { return child().batch_size(); }

  private:
    CachePtr cache_;
};

}  // namespace

CachePtr make_cache(int64_t most_bytes, bool spilling) { return std::make_shared<RowCache>(most_bytes, spilling); }

NodePtr cached(NodePtr child, CachePtr cache) { return std::make_shared<CacheNode>(child, std::move(cache)); }

}  // namespace lunaria::data
