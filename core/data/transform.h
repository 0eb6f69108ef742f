// Transforms: operations on the values of a row without the host language.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/data/draws.h"
#include "core/data/node.h"

namespace lunaria::data {

// The random numbers for one row in one epoch and one transform: the same at any time and on any thread.
class RowDraws {
  public:
    // `step`: the number of the transform among those of its operation.
    RowDraws(uint64_t seed, uint64_t epoch, int64_t row, uint64_t step)
        : numbers_(Draws(Draws(seed, epoch, Purpose::row).bits(static_cast<uint64_t>(row)), step, Purpose::row)) {}

    uint64_t bits() { return numbers_.next(); }
    // 0 .. bound - 1.
    int64_t below(int64_t bound) { return static_cast<int64_t>(Draws::below(bits(), static_cast<uint64_t>(bound))); }
    // In (0, 1).
    double unit() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }
    double between(double low, double high) { return low + (high - low) * unit(); }
    // True with probability p.
    bool chance(double p) { return unit() < p; }
    // With mean 0 and deviation 1.
    double normal();

  private:
    Draws::InOrder numbers_;
};

// A transform never changes after it was made; several threads use it at once.
class Transform {
  public:
    explicit Transform(std::string name) : name_(std::move(name)) {}
    virtual ~Transform() = default;
    Transform(const Transform&) = delete;
    Transform& operator=(const Transform&) = delete;

    // The transform's name in messages.
    const std::string& name() const { return name_; }
    // The number of values that it makes from `inputs` values. Throws where it takes another number.
    virtual size_t results(size_t inputs) const { return inputs; }
    // Replaces the values by the results.
    virtual void apply(Row& row, RowDraws& draws) const = 0;

  private:
    std::string name_;
};

// Owners: nodes, transforms made of others, handles in the host language.
using TransformPtr = std::shared_ptr<const Transform>;

// Passes the columns at `inputs` through the transforms, one after the other; the results are called `outputs` and come
// at the place of the first input. `workers`: the number of threads, without it as many as the epoch says. `tolerant`:
// a row that fails is a bad one (tolerant.h).
NodePtr transform(NodePtr child, std::vector<TransformPtr> transforms, std::vector<size_t> inputs, Names outputs,
                  uint64_t seed, std::optional<int> workers, bool tolerant = false);

}  // namespace lunaria::data
