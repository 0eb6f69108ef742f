#include "core/parallel/reductions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/parallel/gradients.h"

namespace lunaria::parallel {

namespace {

template <class F>
void visit_float(DType dtype, F&& f) {
    if (dtype == DType::f64)
        f(double{});
    else
        f(float{});
}

Tensor slice(const Tensor& vector, int64_t offset, int64_t size) { return vector.view({size}, Strides{1}, offset); }

class Message : public Reduction {
  public:
    Message(const ExchangeOptions& options, const std::string& name)
        : communicator_(*options.communicator),
          group_(options.group ? *options.group : options.communicator->world()),
          name_(name),
          factor_(options.factor) {}

  protected:
    Request request(Collective operation, const Tensor& in, const Tensor& out, int64_t count) const {
        Request r;
        r.operation = operation;
        r.group = &group_;
        r.dtype = in.dtype();
        r.count = count;
        r.in = in.raw();
        r.out = out.raw();
        r.label.parameter = name_;
        return r;
    }
    int ranks() const { return group_.size(); }

    Communicator& communicator_;
    const Group& group_;
    const std::string name_;
    const double factor_;
};

class Sum : public Message {
  public:
    using Message::Message;
    void start(const Tensor& bucket) override {
        Request r = request(Collective::all_reduce, bucket, bucket, bucket.size());
        if (is_mean()) r.combine = Combine::mean;
        pending_ = communicator_.start(r);
    }
    void finish(const Tensor& bucket) override {
        pending_.wait();
        if (!is_mean()) scale(bucket, factor_);
    }

  private:
    bool is_mean() const { return factor_ == 1.0 / ranks(); }
    Pending pending_;
};

// The same with messages of 16 bits.
class HalfSum : public Message {
  public:
    HalfSum(const ExchangeOptions& options, const std::string& name) : Message(options, name), dtype_(options.half) {}
    void start(const Tensor& bucket) override {
        message_ = bucket.cast(dtype_);
        pending_ = communicator_.start(request(Collective::all_reduce, message_, message_, message_.size()));
    }
    void finish(const Tensor& bucket) override {
        pending_.wait();
        copy_elements(message_, bucket);
        scale(bucket, factor_);
        message_ = {};
    }

  private:
    DType dtype_;
    Tensor message_;
    Pending pending_;
};

// Each rank gets its piece of all buckets, adds them up in pairs, and gives the sum to all.
class TreeSum : public Message {
  public:
    using Message::Message;
    void start(const Tensor& bucket) override {
        pieces_ = Tensor::like(bucket);
        pending_ = communicator_.start(request(Collective::all_to_all, bucket, pieces_, bucket.size() / ranks()));
    }
    void finish(const Tensor& bucket) override {
        pending_.wait();
        sum_in_pairs(pieces_, ranks());
        const int64_t size = bucket.size() / ranks();
        const Tensor own = slice(pieces_, 0, size);
        scale(own, factor_);
        communicator_.run(request(Collective::all_gather, own, bucket, size));
        pieces_ = {};
    }

  private:
    Tensor pieces_;
    Pending pending_;
};

// The largest elements of each rank's bucket, with their places, go to all; what a rank leaves out it adds the next
// time.
class TopK : public Message {
  public:
    TopK(const ExchangeOptions& options, std::span<const BucketPart> parts, const std::string& name)
        : Message(options, name), parts_(parts.begin(), parts.end()), fraction_(options.fraction) {}

    void start(const Tensor& bucket) override {
        auto* const data = bucket.data<float>();
        int64_t size = 0;
        for (const BucketPart& part : parts_) {
            size = std::max(size, part.offset + part.size);
            if (!*part.left_out) continue;
            const auto* left = part.left_out->data<float>();
            for (int64_t i = 0; i < part.size; ++i) data[part.offset + i] += left[i];
        }
        const int64_t chosen = std::clamp<int64_t>(std::llround(fraction_ * static_cast<double>(size)), 1, size);
        const std::vector<int32_t> places = largest(data, size, chosen);
        sent_ = Tensor::empty(DType::i32, {2 * chosen});
        got_ = Tensor::empty(DType::i32, {2 * chosen * ranks()});
        auto* const words = sent_.data<int32_t>();
        for (int64_t k = 0; k < chosen; ++k) {
            words[k] = places[static_cast<size_t>(k)];
            words[chosen + k] = std::bit_cast<int32_t>(std::exchange(data[words[k]], 0.0F));
        }
        for (const BucketPart& part : parts_) *part.left_out = slice(bucket, part.offset, part.size).copy();
        pending_ = communicator_.start(request(Collective::all_gather, sent_, got_, 2 * chosen));
    }
    void finish(const Tensor& bucket) override {
        pending_.wait();
        auto* const data = bucket.data<float>();
        std::fill_n(data, bucket.size(), 0.0F);
        const int64_t chosen = sent_.size() / 2;
        for (int rank = 0; rank < ranks(); ++rank) {
            const auto* words = got_.data<int32_t>() + rank * 2 * chosen;
            for (int64_t k = 0; k < chosen; ++k) data[words[k]] += std::bit_cast<float>(words[chosen + k]);
        }
        scale(bucket, factor_);
        sent_ = got_ = {};
    }

  private:
    // Their places, in order. An element that is not a number is larger than all others, so that it is seen.
    static std::vector<int32_t> largest(const float* data, int64_t size, int64_t count) {
        std::vector<int32_t> places(static_cast<size_t>(size));
        std::iota(places.begin(), places.end(), 0);
        const auto rank_of = [&](int32_t i) { return std::isnan(data[i]) ? INFINITY : std::fabs(data[i]); };
        const auto end = places.begin() + count;
        if (count < size)
            std::nth_element(places.begin(), end - 1, places.end(), [&](int32_t a, int32_t b) {
                const float x = rank_of(a), y = rank_of(b);
                return x != y ? x > y : a < b;
            });
        places.erase(end, places.end());
        std::ranges::sort(places);
        return places;
    }

    std::vector<BucketPart> parts_;
    double fraction_;
    Tensor sent_, got_;
    Pending pending_;
};

// Neighbours join their vectors, then neighbouring pairs theirs. Both partners compute the same.
class Adasum : public Message {
  public:
    Adasum(const ExchangeOptions& options, std::span<const BucketPart> parts, const std::string& name)
        : Message(options, name), parts_(parts.begin(), parts.end()) {}
    void start(const Tensor&) override {}
    void finish(const Tensor& bucket) override {
        const Tensor other = Tensor::like(bucket);
        for (int distance = 1; distance < ranks(); distance *= 2) {
            const int partner = group_.rank() ^ distance;
            Request both[] = {request(Collective::send, bucket, bucket, bucket.size()),
                              request(Collective::recv, other, other, bucket.size())};
            for (Request& r : both) {
                r.root = partner;
                r.tag = distance;
            }
            communicator_.run_together(both);
            const bool first = group_.rank() < partner;
            for (const BucketPart& part : parts_) {
                const Tensor own = slice(bucket, part.offset, part.size), theirs = slice(other, part.offset, part.size);
                add_adasum(first ? own : theirs, first ? theirs : own);
                if (!first) copy_elements(theirs, own);
            }
        }
        scale(bucket, factor_);
    }

  private:
    std::vector<BucketPart> parts_;
};

}  // namespace

void sum_in_pairs(const Tensor& values, int64_t count) {
    const int64_t size = values.size() / count;
    visit_float(values.dtype(), [&](auto zero) {
        auto* const data = values.data<decltype(zero)>();
        for (int64_t half = count / 2; half > 0; half /= 2)
            for (int64_t i = 0; i < half * size; ++i) data[i] += data[half * size + i];
    });
}

void scale(const Tensor& vector, double factor) {
    if (factor == 1) return;
    visit_float(vector.dtype(), [&](auto zero) {
        using T = decltype(zero);
        auto* const data = vector.data<T>();
        const auto by = static_cast<T>(factor);
        for (int64_t i = 0; i < vector.size(); ++i) data[i] *= by;
    });
}

void add_adasum(const Tensor& a, const Tensor& b) {
    visit_float(a.dtype(), [&](auto zero) {
        using T = decltype(zero);
        auto* const x = a.data<T>();
        const auto* y = b.data<T>();
        // In double: the products of millions of small elements vanish beside a sum in float.
        double dot = 0, of_x = 0, of_y = 0;
        for (int64_t i = 0; i < a.size(); ++i) {
            const double u = x[i], v = y[i];
            dot += u * v;
            of_x += u * u;
            of_y += v * v;
        }
        const auto keep = [&](double norm) { return static_cast<T>(norm > 0 ? 1 - dot / (2 * norm) : 1); };
        const T left = keep(of_x), right = keep(of_y);
        for (int64_t i = 0; i < a.size(); ++i) x[i] = left * x[i] + right * y[i];
    });
}

int64_t bucket_padding(const ExchangeOptions& options, int64_t size) {
    if (options.combination != Combination::tree || !options.communicator) return 0;
    const int64_t ranks = options.group ? options.group->size() : options.communicator->ranks();
    return (ranks - size % ranks) % ranks;
}

std::unique_ptr<Reduction> make_reduction(const ExchangeOptions& options, std::span<const BucketPart> parts,
                                          const std::string& name) {
    if (options.combination == Combination::tree) return std::make_unique<TreeSum>(options, name);
    if (options.combination == Combination::adasum) return std::make_unique<Adasum>(options, parts, name);
    if (options.packing == Packing::half) return std::make_unique<HalfSum>(options, name);
    if (options.packing == Packing::top_k) return std::make_unique<TopK>(options, parts, name);
    return std::make_unique<Sum>(options, name);
}

}  // namespace lunaria::parallel
