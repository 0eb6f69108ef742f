// The gradients of a training step on their way to what all ranks make of them together.
//
// Each rank gives its gradients in the order in which its backward pass has them. They are copied into buckets; a full
// bucket leaves at once, while later gradients are still computed, and buckets leave in one order on all ranks. What is
// taken at the end are parts of the buckets.
//
// Results do not depend on the buckets: each element is combined for itself, but for Combination::adasum, which looks
// at whole gradients. With Combination::tree they do not depend on the number of ranks either: a step has a fixed
// number of shards, of which rank r of n has the shards r, r + n, r + 2n ..., and sums are taken in pairs whose numbers
// differ in the highest bit first. Shards of one rank are then added up before its sum meets that of another.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/operator/op.h"
#include "core/parallel/buckets.h"
#include "core/parallel/communicator.h"
#include "core/tensor/tensor.h"
#include "core/tensor/value.h"

namespace lunaria::parallel {

enum class Combination {
    sum,     // in the order of the engine
    tree,    // in pairs, by the numbers of shards
    adasum,  // Maleki et al. 2020: what two updates share counts once
};
enum class Packing {
    none,
    half,   // messages of 16 bits
    top_k,  // the largest elements only; what is left out is added to the gradient of the next step
};

struct ExchangeOptions {
    Communicator* communicator = nullptr;  // null: this rank is alone
    const Group* group = nullptr;          // null: all ranks
    Combination combination = Combination::sum;
    int shards = 1;     // of each rank, whose gradients are given one after the other: a power of two
    double factor = 1;  // results are multiplied by it
    Packing packing = Packing::none;
    DType half = DType::f16;
    double fraction = 0.01;                  // of the elements, for top_k
    int64_t most_bytes = int64_t{64} << 20;  // of a bucket
    // How many steps after which the buckets are chosen by measured times; 0: they stay as they are.
    int settles_after = 0;
    std::vector<size_t> ends;  // the first buckets; empty: by most_bytes
};

struct GradientType {
    TensorType type;
    std::string name;  // of the parameter
};

class Reduction;

class GradientExchange {
  public:
    // The gradients in the order in which they are expected; they may come in another. Throws value_error where the
    // ranks or the dtypes do not go with the options.
    GradientExchange(std::vector<GradientType> gradients, ExchangeOptions options);
    ~GradientExchange();

    size_t size() const { return slots_.size(); }
    const ExchangeOptions& options() const { return options_; }
    // The gradient of this rank; with several shards the next one's. Starts the messages that are complete.
    void give(size_t index, const Tensor& gradient);
    // The combined gradient, a part of a bucket. Waits for its message. All ranks take in the same order.
    Tensor take(size_t index);
    // Forgets a step that has not been taken to its end, of which nothing was sent.
    void cancel();
    // While it is deaf, what is given is ignored: for calls of a step that shall only be compiled.
    void set_deaf(bool deaf) { deaf_ = deaf; }

    // The gradients of each bucket, in the order in which they are expected, for reports.
    std::vector<std::vector<size_t>> buckets() const;
    // What was measured when the buckets were chosen; nothing before.
    std::optional<MessageCost> cost() const { return cost_; }

  private:
    struct Slot {
        GradientType gradient;
        DType dtype = DType::f32;  // in the bucket
        size_t bucket = 0;
        int64_t offset = 0;
        int given = 0;  // in this step
        bool taken = false;
        double seconds = 0;        // when it was complete, since the step's first gradient
        std::vector<Tensor> sums;  // of shards, each of twice as many as the one after it
        Tensor left_out;           // by top_k
    };
    struct Bucket {
        std::vector<size_t> slots;
        int64_t size = 0;  // of all slots
        std::string name;
        Tensor data;
        size_t missing = 0;
        bool finished = false;
        std::unique_ptr<Reduction> reduction;
    };

    int ranks() const;
    void cut(std::span<const size_t> order, const Buckets& ends);
    void begin();
    Tensor place_of(const Slot& slot) const;
    void send(Bucket& bucket);
    void finish(Bucket& bucket);
    void settle();
    MessageCost measured() const;

    ExchangeOptions options_;
    std::vector<Slot> slots_;
    std::vector<Bucket> buckets_;
    size_t sent_ = 0, finished_ = 0, taken_ = 0;
    bool open_ = false, deaf_ = false;
    int steps_ = 0;
    double began_ = 0;
    std::optional<MessageCost> cost_;
};

// Exchanges by number, for operators. A number is not used again.
int64_t add_exchange(std::shared_ptr<GradientExchange> exchange);  // owners: the caller and running operators
std::shared_ptr<GradientExchange> exchange_of(int64_t number);     // throws state_error where it is gone
void remove_exchange(int64_t number);

}  // namespace lunaria::parallel
