// The simulated Ascend 910 as a device: tensors in a memory of its own, which is accounted as the chip's is, and
// operators with the results of the chip's units. Products take their operands as float16 and add up in float32;
// results that are too large or not numbers are handled by the chip's overflow mode, and are remembered. The operators
// that ran are recorded with their types, so that the model of interpreter/lua/lunaria/ascend/ can estimate how long
// the chip would have taken.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "backends/ascend/recorder.h"
#include "core/tensor/device.h"

namespace lunaria::ascend {

Device& device();

// The parts that its memory is divided in, in this order.
inline constexpr std::array<const char*, 3> kMemoryParts = {"parameters", "features", "communication"};

// The numbers of interpreter/lua/lunaria/ascend/parameters.lua.
struct DeviceSettings {
    std::array<int64_t, 3> memory = {5'000'000'000, 26'000'000'000, 1'000'000'000};  // bytes, by parts
    bool saturate = true;  // too large becomes the largest number and NaN becomes 0; otherwise as IEEE 754 says
};
void configure(const DeviceSettings& settings);
DeviceSettings settings();

struct PartMemory {
    int64_t live = 0, peak = 0;
};
std::array<PartMemory, 3> memory_parts();

// The part of the chip that runs an operator on float32 or float16: "cube", "vector", "AI CPU", "none" (it is a view or
// asks for types), "others" (it is made of other operators) or "host".
std::string_view unit_of(const Op& op);

// Whether a result was too large or not a number since the last call; waits for the device.
bool take_overflow();
// The same, and it stays so.
bool overflowed();

// The operators that ran since the last call, or the first of them.
Record take_record();

// For the record: the stream of work from now on (returns the previous one), and events of streams.
int set_stream(int stream);
void mark_event(int stream, int64_t event, bool waits);

}  // namespace lunaria::ascend
