// A function that runs once for a whole batch: tensors stand for one sample each, and every operator on them is applied
// to the batch (core/batching/batching.h).
//
// What is differentiated around the run sees the operators on whole batches, what is differentiated within it sees
// those on samples: cotangents of samples in the contexts around are tensors of the batch, and where all samples share
// a tensor its cotangent there is the sum over them. So an operator is first followed by the contexts that began
// within, then applied to the batch, then followed by those around.
#pragma once

#include "jit/vm/machine.h"
#include "jit/vm/watcher.h"

namespace lunaria::vm {

class Region : public Object, public Watcher {
  public:
    using Watcher::Watcher;

    // What stands for a sample of a tensor of the batch.
    virtual Value enter(const Value& batched) = 0;
    // The tensor of the batch that a value stands for; nil: it stands for itself.
    virtual Value taken(const Value& v) const = 0;
    virtual int64_t size() const = 0;
    // Throws when the operator, which is about to be applied to the batch, must not be.
    virtual void admit(const Op& op) = 0;
    // Runs the body; what it fails with.
    virtual Host::Protected attempt(const std::function<void()>& body) = 0;

    bool holds(const Value& v) const;
    size_t order() const { return contexts.size(); }

    Values contexts;  // of the differentiations around it
    Host* host_around = nullptr;
    Watcher* watcher_around = nullptr;
    Region* region_around = nullptr;
};

// A function of the program, run once for so many samples: its arguments are tensors with the batch axis in front. It
// gives its results, then for each of them whether it has the batch axis or is the same for all samples, then true.
// Where it cannot be run so it gives the error and false; nothing where it was not tried.
class BatchedFunction final : public Object {
  public:
    BatchedFunction(int64_t size, Value f) : size_(size), f_(std::move(f)) {}
    void call(Machine& m, std::span<const Value> contexts, Values args, const Destination& to) const;

  private:
    int64_t size_;
    Value f_;
};

// For as long as it lives the machine is within the batch, or with what is around it.
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
