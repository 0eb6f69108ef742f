// A function that runs once for a whole batch: tensors represent one sample each, and every operator on them is applied
// to the batch (core/batching/batching.h).
//
// Differentiations around the run see the operators on whole batches, those within it see the operators on samples:
// cotangents of samples in the contexts around are tensors of the batch, and where all samples share a tensor its
// cotangent there is the sum over them. So an operator is first recorded by the contexts that began within, then
// applied to the batch, then recorded by those around.
#pragma once

#include "jit/vm/machine.h"
#include "jit/vm/watcher.h"

namespace lunaria::vm {

class Region : public Object, public Watcher {
  public:
    using Watcher::Watcher;

    // The value that represents a sample of a tensor of the batch.
    virtual Value enter(const Value& batched) = 0;
    // The tensor of the batch that a value represents; nil: the value is none.
    virtual Value taken(const Value& v) const = 0;
    virtual int64_t size() const = 0;
    // Throws when the operator, which is about to be applied to the batch, is not allowed.
    virtual void admit(const Op& op) = 0;
    // Runs the body and returns its error.
    virtual Host::Protected attempt(const std::function<void()>& body) = 0;

    bool holds(const Value& v) const;
    size_t order() const { return contexts.size(); }

    Values contexts;  // of the differentiations around it
    Host* host_around = nullptr;
    Watcher* watcher_around = nullptr;
    Region* region_around = nullptr;
};

// A function of the program, run once for so many samples: its arguments are tensors with the batch axis in front. It
// returns its results, then for each of them whether it has the batch axis or is the same for all samples, then true.
// Where it cannot be run in this way it returns the error and false; nothing where it was not tried.
class BatchedFunction final : public Object {
  public:
    BatchedFunction(int64_t size, Value f) : size_(size), f_(std::move(f)) {}
    void call(Machine& m, std::span<const Value> contexts, Values args, const Destination& to) const;

  private:
    int64_t size_;
    Value f_;
};

// While it lives the machine works within the batch, or for its surroundings.
class RegionScope {
  public:
    RegionScope(Machine& m, Host& host, Watcher* w, Region* region)
        : machine_(m), host_(std::exchange(m.host_, &host)), region_(std::exchange(m.region_, region)), watch_(w) {}
    ~RegionScope() {
        machine_.host_ = host_;
        machine_.region_ = region_;
    }
    RegionScope(const RegionScope&) = delete;
    RegionScope& operator=(const RegionScope&) = delete;
    static RegionScope around(Machine& m, const Region& r) {
        return {m, *r.host_around, r.watcher_around, r.region_around};
    }

  private:
    Machine& machine_;
    Host* host_;
    Region* region_;
    Watch watch_;
};

}  // namespace lunaria::vm
