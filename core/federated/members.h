// The marks of the devices that take part in a federated job: of each device what it has done in an iteration.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace lunaria::federated {

// A device: 64 bits of a hash of its name, of which the store keeps the name as well.
using DeviceId = uint64_t;

// The phases of an iteration in their order; which of them a job has, its settings say (core/federated/rounds.h).
enum class Phase : uint8_t {
    starting,
    exchanging_keys,
    sharing_secrets,
    updating,
    signing_lists,
    reconstructing,
    aggregating,
    finished,  // all iterations are over, or the job was stopped
};
inline constexpr int kPhases = static_cast<int>(Phase::finished) + 1;

struct Mark {
    uint64_t digest = 0;  // of the update that was taken
    // In which the device started, from 1; of an asynchronous job, once its update was taken, that in which it was.
    uint32_t iteration = 0;
    uint32_t done = 0;  // a bit for each phase in which its request was taken
    bool has(Phase phase) const { return done >> static_cast<int>(phase) & 1; }
    void add(Phase phase) { done |= 1u << static_cast<int>(phase); }
    bool operator==(const Mark&) const = default;
};

// The marks: in memory, or in a store that several servers share.
class Members {
  public:
    virtual ~Members() = default;
    virtual std::optional<Mark> find(DeviceId device) const = 0;
    virtual void put(DeviceId device, const Mark& mark) = 0;
    // Forgets the devices that started before an iteration.
    virtual void forget_before(int64_t iteration) = 0;
    virtual int64_t size() const = 0;
    // All devices with their marks, by id.
    virtual std::vector<std::pair<DeviceId, Mark>> all() const = 0;
};

std::unique_ptr<Members> members_in_memory();

}  // namespace lunaria::federated
