#include "core/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/error.h"

namespace lunaria::data {

namespace {

int64_t limited(Samples samples, int64_t most) { return samples ? std::min(*samples, most) : most; }

class Sequential final : public Sampler {
  public:
    Sequential(int64_t start, Samples samples) : start_(start), samples_(samples) {}
    Order order(int64_t rows, uint64_t) const override { return Order::range(start_, count(rows)); }
    int64_t count(int64_t rows) const override {
        if (start_ > 0 && start_ >= rows)
            throw value_error("SequentialSampler",
                              str("start_index is ", start_, ", but the data set has ", rows, " rows"));
        return limited(samples_, rows - start_);
    }

  private:
    int64_t start_;
    Samples samples_;
};

class Random final : public Sampler {
  public:
    Random(bool replacement, Samples samples, uint64_t seed)
        : replacement_(replacement), samples_(samples), seed_(seed) {}
    Order order(int64_t rows, uint64_t epoch) const override {
        const Draws draws(seed_, epoch, Purpose::order);
        const int64_t n = count(rows);
        if (!replacement_) return Order::random(draws, rows, n);
        std::vector<int64_t> list(static_cast<size_t>(n));
        Draws::InOrder numbers(draws);
        for_elements(n, [&](int64_t i) {
            list[static_cast<size_t>(i)] =
                static_cast<int64_t>(Draws::below(numbers.next(), static_cast<uint64_t>(rows)));
        });
        return Order::of(std::move(list));
    }
    int64_t count(int64_t rows) const override {
        if (rows == 0) return 0;
        return replacement_ && samples_ ? *samples_ : limited(samples_, rows);
    }

  private:
    bool replacement_;
    Samples samples_;
    uint64_t seed_;
};

class Subset final : public Sampler {
  public:
    Subset(std::vector<int64_t> positions, Samples samples, bool shuffled, uint64_t seed)
        : positions_(std::move(positions)), samples_(samples), shuffled_(shuffled), seed_(seed) {}
    Order order(int64_t rows, uint64_t epoch) const override {
        for (int64_t p : positions_)
            if (p < 0 || p >= rows)
                throw index_error("SubsetSampler", str("the index ", p, " is out of range: the data set has ", rows,
                                                       " rows, which count from 0"));
        std::vector<int64_t> list = positions_;
        if (shuffled_) {
            const auto places = Draws(seed_, epoch, Purpose::order).permutation(static_cast<int64_t>(list.size()));
            for (size_t i = 0; i < list.size(); ++i) list[i] = positions_[static_cast<size_t>(places[i])];
        }
        list.resize(static_cast<size_t>(count(rows)));
        return Order::of(std::move(list));
    }
    int64_t count(int64_t) const override { return limited(samples_, static_cast<int64_t>(positions_.size())); }

  private:
    std::vector<int64_t> positions_;
    Samples samples_;
    bool shuffled_;
    uint64_t seed_;
};

class Weighted final : public Sampler {
  public:
    Weighted(std::vector<double> weights, Samples samples, bool replacement, uint64_t seed)
        : weights_(std::move(weights)), samples_(samples), replacement_(replacement), seed_(seed) {
        positive_ = std::count_if(weights_.begin(), weights_.end(), [](double w) { return w > 0; });
        if (positive_ == 0) throw value_error("WeightedRandomSampler", "weights has no weight above 0");
        if (!replacement_ && samples_ && *samples_ > positive_)
            throw value_error("WeightedRandomSampler", str("num_samples is ", *samples_, ", but only ", positive_,
                                                           " weights are above 0 and replacement is false"));
    }
    Order order(int64_t rows, uint64_t epoch) const override {
        const int64_t n = count(rows);
        if (static_cast<int64_t>(weights_.size()) > rows)
            throw value_error("WeightedRandomSampler",
                              str("there are ", weights_.size(), " weights, but the data set has ", rows, " rows"));
        const Draws draws(seed_, epoch, Purpose::order);
        std::vector<int64_t> list(static_cast<size_t>(n));
        if (replacement_) {
            std::vector<double> sums(weights_.size());
            double sum = 0;
            for (size_t i = 0; i < sums.size(); ++i) sums[i] = sum += weights_[i];
            for_elements(n, [&](int64_t i) {
                const double u = draws.unit(static_cast<uint64_t>(i)) * sum;
                // Takes the first position whose sum is above u, which has a weight above 0; rounding may put u on the
                // last sum.
                size_t at = static_cast<size_t>(std::upper_bound(sums.begin(), sums.end(), u) - sums.begin());
                at = std::min(at, sums.size() - 1);
                while (weights_[at] <= 0) --at;
                list[static_cast<size_t>(i)] = static_cast<int64_t>(at);
            });
            return Order::of(std::move(list));
        }
        // Efraimidis and Spirakis 2006: the largest log(u) / w are a weighted sample without replacement.
        std::vector<std::pair<double, int64_t>> keys;
        for (size_t i = 0; i < weights_.size(); ++i)
            if (weights_[i] > 0) keys.emplace_back(-std::log(draws.unit(i)) / weights_[i], static_cast<int64_t>(i));
        std::sort(keys.begin(), keys.end());
        for (size_t i = 0; i < list.size(); ++i) list[i] = keys[i].second;
        return Order::of(std::move(list));
    }
    int64_t count(int64_t) const override {
        const int64_t all = static_cast<int64_t>(weights_.size());
        return samples_ ? *samples_ : replacement_ ? all : positive_;
    }

  private:
    std::vector<double> weights_;
    Samples samples_;
    bool replacement_;
    uint64_t seed_;
    int64_t positive_ = 0;
};

class Distributed final : public Sampler {
  public:
    Distributed(int64_t shards, int64_t shard, bool shuffled, Samples samples, uint64_t seed)
        : shards_(shards), shard_(shard), shuffled_(shuffled), samples_(samples), seed_(seed) {}
    Order order(int64_t rows, uint64_t epoch) const override {
        const int64_t n = count(rows);
        std::vector<int64_t> list(static_cast<size_t>(n));
        const Order all =
            shuffled_ ? Order::random(Draws(seed_, epoch, Purpose::order), rows, rows) : Order::range(0, rows);
        for (int64_t i = 0; i < n; ++i) list[static_cast<size_t>(i)] = all.at((i * shards_ + shard_) % rows);
        return Order::of(std::move(list));
    }
    int64_t count(int64_t rows) const override { return limited(samples_, rows / shards_ + (rows % shards_ > 0)); }

  private:
    int64_t shards_, shard_;
    bool shuffled_;
    Samples samples_;
    uint64_t seed_;
};

class Classes final : public Sampler {
  public:
    Classes(const std::vector<int64_t>& labels, int64_t each, std::optional<int64_t> classes, bool shuffled,
            Samples samples, uint64_t seed)
        : each_(each), shuffled_(shuffled), samples_(samples), seed_(seed) {
        std::map<int64_t, std::vector<int64_t>> by_label;
        for (size_t i = 0; i < labels.size(); ++i) by_label[labels[i]].push_back(static_cast<int64_t>(i));
        for (auto& [label, places] : by_label)
            if (static_cast<int64_t>(places.size()) >= each) groups_.push_back(std::move(places));
        taken_ = classes.value_or(static_cast<int64_t>(groups_.size()));
        if (groups_.empty() || taken_ > static_cast<int64_t>(groups_.size()))
            throw value_error("PKSampler", str("num_class is ", taken_, ", but only ", groups_.size(),
                                               " classes have num_val = ", each, " rows or more"));
    }
    Order order(int64_t rows, uint64_t epoch) const override {
        std::vector<int64_t> list, classes;
        if (shuffled_)
            classes = Draws(seed_, epoch, Purpose::classes).permutation(static_cast<int64_t>(groups_.size()));
        for (int64_t c = 0; c < taken_; ++c) {
            const int64_t label = shuffled_ ? classes[static_cast<size_t>(c)] : c;
            const auto& group = groups_[static_cast<size_t>(label)];
            std::vector<int64_t> places;
            if (shuffled_)
                places = Draws(seed_ + static_cast<uint64_t>(label), epoch, Purpose::order)
                             .permutation(static_cast<int64_t>(group.size()));
            for (int64_t i = 0; i < each_; ++i)
                list.push_back(group[static_cast<size_t>(shuffled_ ? places[static_cast<size_t>(i)] : i)]);
        }
        list.resize(static_cast<size_t>(count(rows)));
        return Order::of(std::move(list));
    }
    int64_t count(int64_t) const override { return limited(samples_, taken_ * each_); }

  private:
    std::vector<std::vector<int64_t>> groups_;
    int64_t each_, taken_ = 0;
    bool shuffled_;
    Samples samples_;
    uint64_t seed_;
};

class Chained final : public Sampler {
  public:
    Chained(SamplerPtr first, SamplerPtr second) : first_(std::move(first)), second_(std::move(second)) {}
    Order order(int64_t rows, uint64_t epoch) const override {
        const Order inner = first_->order(rows, epoch);
        Order outer = second_->order(inner.count, epoch);
        if (outer.is_range() && inner.is_range()) return Order::range(inner.begin + outer.begin, outer.count);
        std::vector<int64_t> list(static_cast<size_t>(outer.count));
        for (int64_t i = 0; i < outer.count; ++i) list[static_cast<size_t>(i)] = inner.at(outer.at(i));
        return Order::of(std::move(list));
    }
    int64_t count(int64_t rows) const override { return second_->count(first_->count(rows)); }

  private:
    SamplerPtr first_, second_;
};

}  // namespace

SamplerPtr sequential_sampler(int64_t start, Samples samples) { return std::make_shared<Sequential>(start, samples); }

SamplerPtr random_sampler(bool replacement, Samples samples, uint64_t seed) {
    return std::make_shared<Random>(replacement, samples, seed);
}

SamplerPtr subset_sampler(std::vector<int64_t> positions, Samples samples, bool shuffled, uint64_t seed) {
    return std::make_shared<Subset>(std::move(positions), samples, shuffled, seed);
}

SamplerPtr weighted_sampler(std::vector<double> weights, Samples samples, bool replacement, uint64_t seed) {
    return std::make_shared<Weighted>(std::move(weights), samples, replacement, seed);
}

SamplerPtr distributed_sampler(int64_t shards, int64_t shard, bool shuffled, Samples samples, uint64_t seed) {
    return std::make_shared<Distributed>(shards, shard, shuffled, samples, seed);
}

SamplerPtr class_sampler(std::vector<int64_t> labels, int64_t each, std::optional<int64_t> classes, bool shuffled,
                         Samples samples, uint64_t seed) {
    return std::make_shared<Classes>(labels, each, classes, shuffled, samples, seed);
}

SamplerPtr chained_sampler(SamplerPtr first, SamplerPtr second) {
    return std::make_shared<Chained>(std::move(first), std::move(second));
}

}  // namespace lunaria::data
