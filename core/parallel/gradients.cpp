#include "core/parallel/gradients.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <tuple>

#include "core/base/error.h"
#include "core/parallel/reductions.h"

namespace lunaria::parallel {

namespace {

constexpr std::string_view kWhere = "gradients of ranks";

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void check(const ExchangeOptions& options, int ranks) {
    const auto power = [](int n) { return std::has_single_bit(static_cast<unsigned>(n)); };
    if (options.shards < 1 || !power(options.shards))
        throw value_error(kWhere, str("a rank must have 1, 2, 4, 8 ... shards, not ", options.shards));
    if ((options.combination == Combination::tree || options.combination == Combination::adasum) && !power(ranks))
        throw value_error(kWhere, str(options.combination == Combination::tree ? "shards of one number" : "adasum",
                                      " needs 1, 2, 4, 8 ... ranks, there are ", ranks));
    if (options.packing != Packing::none && options.combination != Combination::sum)
        throw value_error(kWhere, "compressed messages go with the plain sum only");
}

// For each slot whether it is the last of a bucket.
std::vector<int64_t> plan_words(std::span<const size_t> order, const Buckets& ends) {
    std::vector<int64_t> words(order.begin(), order.end());
    words.resize(2 * order.size(), 0);
    for (size_t end : ends) words[order.size() + end - 1] = 1;
    return words;
}

}  // namespace

GradientExchange::GradientExchange(std::vector<GradientType> gradients, ExchangeOptions options)
    : options_(std::move(options)) {
    if (ranks() == 1) options_.communicator = nullptr;
    check(options_, ranks());
    std::vector<int64_t> bytes;
    for (GradientType& gradient : gradients) {
        const DType dtype = gradient.type.dtype;
        if (!is_float(dtype))
            throw dtype_error(kWhere, str("the gradient of ", gradient.name, " is of ", name_of(dtype),
                                          "; gradients of floats only go between ranks"));
        Slot slot;
        slot.dtype = dtype == DType::f64 ? DType::f64 : DType::f32;
        if (slot.dtype == DType::f64 && options_.packing != Packing::none)
            throw dtype_error(kWhere,
                              str("the gradient of ", gradient.name, " is of float64, which is not compressed"));
        bytes.push_back(gradient.type.shape.size() * static_cast<int64_t>(size_of(slot.dtype)));
        slot.gradient = std::move(gradient);
        slots_.push_back(std::move(slot));
    }
    std::vector<size_t> order(slots_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const Buckets ends = options_.ends.empty() ? buckets_of_size(bytes, options_.most_bytes) : options_.ends;
    if (!slots_.empty() && (ends.back() != slots_.size() || !std::ranges::is_sorted(ends, std::less_equal<>())))
        throw value_error(kWhere, str("the buckets must end with the last of ", slots_.size(), " gradients"));
    cut(order, ends);
}

GradientExchange::~GradientExchange() = default;

int GradientExchange::ranks() const {
    if (!options_.communicator) return 1;
    return options_.group ? options_.group->size() : options_.communicator->ranks();
}

void GradientExchange::cut(std::span<const size_t> order, const Buckets& ends) {
    buckets_.clear();
    size_t begin = 0;
    const auto open = [&] { buckets_.emplace_back(); };
    for (size_t end : ends) {
        open();
        for (size_t i = begin; i < end; ++i) {
            Slot& slot = slots_[order[i]];
            // A bucket is a vector of one dtype.
            if (!buckets_.back().slots.empty() && slots_[buckets_.back().slots[0]].dtype != slot.dtype) open();
            Bucket& bucket = buckets_.back();
            slot.bucket = buckets_.size() - 1;
            slot.offset = bucket.size;
            bucket.size += slot.gradient.type.shape.size();
            bucket.slots.push_back(order[i]);
        }
        begin = end;
    }
    for (Bucket& bucket : buckets_) {
        bucket.name = slots_[bucket.slots[0]].gradient.name;
        if (bucket.slots.size() > 1) bucket.name += str(" and ", bucket.slots.size() - 1, " more");
        if (!options_.communicator) continue;
        std::vector<BucketPart> parts;
        for (size_t i : bucket.slots)
            parts.push_back({slots_[i].offset, slots_[i].gradient.type.shape.size(), &slots_[i].left_out});
        bucket.reduction = make_reduction(options_, parts, bucket.name);
    }
}

void GradientExchange::begin() {
    if (options_.communicator && options_.settles_after > 0 && steps_ == options_.settles_after) settle();
    for (Slot& slot : slots_) {
        slot.given = 0;
        slot.taken = false;
        slot.sums.clear();
    }
    for (Bucket& bucket : buckets_) {
        bucket.missing = bucket.slots.size();
        bucket.finished = false;
    }
    sent_ = finished_ = taken_ = 0;
    open_ = true;
    began_ = now();
}

Tensor GradientExchange::place_of(const Slot& slot) const {
    const Shape& shape = slot.gradient.type.shape;
    return buckets_[slot.bucket].data.view(shape, contiguous_strides(shape), slot.offset);
}

void GradientExchange::give(size_t index, const Tensor& gradient) {
    if (deaf_) return;
    if (!open_) begin();
    Slot& slot = slots_.at(index);
    if (!(gradient.shape() == slot.gradient.type.shape))
        throw shape_error(kWhere, str("the gradient of ", slot.gradient.name, " has shape ", gradient.shape(),
                                      " and not ", slot.gradient.type.shape));
    if (slot.given == options_.shards)
        throw state_error(kWhere, str("the gradient of ", slot.gradient.name, " was given before, in the same step"));
    Bucket& bucket = buckets_[slot.bucket];
    if (!bucket.data) {
        const DType dtype = slots_[bucket.slots[0]].dtype;
        const int64_t padding = bucket_padding(options_, bucket.size);
        bucket.data = Tensor::empty(dtype, {bucket.size + padding});
        if (padding > 0)
            std::memset(static_cast<std::byte*>(bucket.data.raw()) + static_cast<size_t>(bucket.size) * size_of(dtype),
                        0, static_cast<size_t>(padding) * size_of(dtype));
    }
    const Tensor dense = gradient.to_host().contiguous();
    ++slot.given;
    if (slot.given < options_.shards || !slot.sums.empty()) {
        // Sums of 1, 2, 4 ... shards, as the digits of a binary number: each pair of equal size becomes one.
        const int64_t size = dense.size();
        Tensor sum = Tensor::empty(slot.dtype, {2, size});
        const auto half = [&](int64_t i) {
            return sum.view(dense.shape(), contiguous_strides(dense.shape()), i * size);
        };
        copy_elements(dense, half(0));
        for (int digit = slot.given; digit % 2 == 0; digit /= 2) {
            copy_elements(slot.sums.back(), half(1));
            slot.sums.pop_back();
            sum_in_pairs(sum, 2);
        }
        if (slot.given < options_.shards) {
            slot.sums.push_back(half(0).copy());
            return;
        }
        copy_elements(half(0), place_of(slot));
    } else {
        copy_elements(dense, place_of(slot));
    }
    slot.seconds = now() - began_;
    --bucket.missing;
    while (sent_ < buckets_.size() && buckets_[sent_].missing == 0) send(buckets_[sent_++]);
}

void GradientExchange::send(Bucket& bucket) {
    if (bucket.reduction) bucket.reduction->start(bucket.data);
}

void GradientExchange::finish(Bucket& bucket) {
    if (bucket.reduction)
        bucket.reduction->finish(bucket.data);
    else
        scale(bucket.data, options_.factor);
    bucket.finished = true;
}

Tensor GradientExchange::take(size_t index) {
    Slot& slot = slots_.at(index);
    if (!open_ || slot.taken)
        throw state_error(kWhere, str("the gradient of ", slot.gradient.name, " was taken before it was given"));
    if (sent_ <= slot.bucket) {
        const Bucket& first = buckets_[sent_];
        const auto lacks = [&](size_t i) { return slots_[i].given < options_.shards; };
        const size_t lacking = *std::ranges::find_if(first.slots, lacks);
        throw state_error(kWhere, str("the gradient of ", slot.gradient.name, " waits for that of ",
                                      slots_[lacking].gradient.name, ", which was not given"));
    }
    while (finished_ <= slot.bucket) finish(buckets_[finished_++]);
    Tensor result = place_of(slot).cast(slot.gradient.type.dtype);
    slot.taken = true;
    if (++taken_ == slots_.size()) {
        // What was taken are views: the next step has buckets of its own.
        for (Bucket& bucket : buckets_) bucket.data = {};
        open_ = false;
        ++steps_;
    }
    return result;
}

void GradientExchange::cancel() {
    if (sent_ > finished_ && options_.communicator)
        throw state_error(kWhere, "a step of which messages were sent cannot be left");
    open_ = false;
    for (Bucket& bucket : buckets_) bucket.data = {};
}

std::vector<std::vector<size_t>> GradientExchange::buckets() const {
    std::vector<std::vector<size_t>> list;
    for (const Bucket& bucket : buckets_) list.push_back(bucket.slots);
    return list;
}

// The times of the fastest of a few messages of each size.
MessageCost GradientExchange::measured() const {
    constexpr int64_t kSizes[] = {1024, 65536, 1 << 20};  // elements
    std::vector<Message> messages;
    for (int64_t size : kSizes) {
        const Tensor data = Tensor::zeros(DType::f32, {size});
        Request request;
        request.operation = Collective::all_reduce;
        request.group = options_.group;
        request.count = size;
        request.in = request.out = data.raw();
        double best = INFINITY;
        for (int i = 0; i < 4; ++i) {
            const double begin = now();
            options_.communicator->run(request);
            best = std::min(best, now() - begin);
        }
        messages.push_back({size * 4, best});
    }
    return fitted_cost(messages);
}

// Buckets by the times of the last step. Those of the group's first rank decide: all ranks must cut alike.
void GradientExchange::settle() {
    cost_ = measured();
    std::vector<size_t> order(slots_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto key = [&](size_t i) { return std::tuple(slots_[i].dtype, slots_[i].seconds, i); };
    std::ranges::sort(order, {}, key);
    std::vector<ReadyGradient> ready;
    for (size_t i : order) {
        const int64_t bytes = slots_[i].gradient.type.shape.size() * static_cast<int64_t>(size_of(slots_[i].dtype));
        ready.push_back({std::max(slots_[i].seconds, ready.empty() ? 0 : ready.back().seconds), bytes});
    }
    std::vector<int64_t> words = plan_words(order, best_buckets(ready, *cost_, options_.most_bytes));
    Request request;
    request.operation = Collective::broadcast;
    request.group = options_.group;
    request.dtype = DType::i64;
    request.count = static_cast<int64_t>(words.size());
    request.in = request.out = words.data();
    options_.communicator->run(request);
    Buckets ends;
    for (size_t i = 0; i < order.size(); ++i) {
        order[i] = static_cast<size_t>(words[i]);
        if (words[order.size() + i]) ends.push_back(i + 1);
    }
    cut(order, ends);
}

namespace {

struct Exchanges {
    std::mutex mutex;
    std::map<int64_t, std::shared_ptr<GradientExchange>> by_number;
    int64_t last = 0;
};
Exchanges& exchanges() {
    static Exchanges all;
    return all;
}

}  // namespace

int64_t add_exchange(std::shared_ptr<GradientExchange> exchange) {
    Exchanges& all = exchanges();
    const std::lock_guard lock(all.mutex);
    all.by_number[++all.last] = std::move(exchange);
    return all.last;
}

std::shared_ptr<GradientExchange> exchange_of(int64_t number) {
    Exchanges& all = exchanges();
    const std::lock_guard lock(all.mutex);
    const auto found = all.by_number.find(number);
    if (found == all.by_number.end()) throw state_error(kWhere, "what reduced them is no longer there");
    return found->second;
}

void remove_exchange(int64_t number) {
    Exchanges& all = exchanges();
    const std::lock_guard lock(all.mutex);
    all.by_number.erase(number);
}

}  // namespace lunaria::parallel
