// Requests whose operands lie on a device. The ranks compare them by way of the host, with all checks that other
// requests have; then the device's library moves the data. A thread looks after the ranks meanwhile: the library itself
// would wait for ever for one that is dead.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/operator/device_link.h"
#include "core/parallel/communicator.h"

namespace lunaria::parallel {

class DeviceRequests {
  public:
    DeviceRequests(Communicator& communicator, DeviceLinks& links);
    ~DeviceRequests();
    DeviceRequests(const DeviceRequests&) = delete;
    DeviceRequests& operator=(const DeviceRequests&) = delete;

    // Whether requests of this group go by the library: all its members decide the same. The first call for a group is
    // a request of all of them. LUNARIA_DEVICE_ENGINE says otherwise than what there is: "host", or "nccl", which is an
    // error where the library cannot be used.
    bool serves(const Group& group);
    bool takes(DType dtype) const { return links_.takes(dtype); }
    void run(const Request& request, std::string_view what);

  private:
    std::unique_ptr<DeviceLink> join(const Group& group);
    void look_after();

    Communicator& communicator_;
    DeviceLinks& links_;
    std::mutex mutex_;
    std::map<const Group*, std::unique_ptr<DeviceLink>> joined_;  // null: by way of the host
    std::condition_variable changed_;
    bool ends_ = false;
    std::thread thread_;
};

// The calls of the library that a request consists of, for the member of `group` that makes it. None for a barrier.
std::vector<LinkStep> link_steps(const Request& request);

}  // namespace lunaria::parallel
