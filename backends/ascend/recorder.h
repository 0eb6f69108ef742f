// The operators that ran on the device, with the types that the program gave: operands that were widened for a kernel
// count with their original type.
#pragma once

#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backends/ascend/outline.h"
#include "core/tensor/device.h"

namespace lunaria::ascend {

struct Record {
    std::vector<OutlinedCall> calls;
    std::vector<int64_t> rearranged;  // tensors that copies into another order made
    int64_t left_out = 0;             // calls after the first kMostCalls
};

class Recorder {
  public:
    static constexpr size_t kMostCalls = 50'000;

    void launched(const KernelCall& call, bool on_cpu);
    void copied(const Tensor& source, const Tensor& destination);
    // Between this memory of the device and the host's.
    void transferred(const void* device, size_t bytes, bool to_device);
    // The stream of work from now on; returns the previous one.
    int set_stream(int stream);
    // The stream records the event, or waits for it.
    void mark(int stream, int64_t event, bool waits);
    Record take();

  private:
    // The last write to an address.
    struct Written {
        int64_t id = 0;
        bool was_half = false;  // widened
    };
    Written& at(const void* data);
    Written& at(const Tensor& t) { return at(t.body()->storage->data); }
    // A new row, or null where there is no more room.
    OutlinedCall* add();
    OutlinedTensor describe(const Tensor& t, const Written& written) const;

    std::mutex mutex_;
    std::unordered_map<const void*, Written> written_;
    std::unordered_map<int64_t, std::pair<size_t, size_t>> made_by_;  // call and result, by the id of the write
    Record record_;
    int64_t last_ = 0;
    int stream_ = 0;
};

}  // namespace lunaria::ascend
