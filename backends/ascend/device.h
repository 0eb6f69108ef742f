// The simulated Ascend 910 as a device: tensors of its own memory, which is accounted as the chip's is, and operators
// that compute what its units would. Products take their operands as float16 and add up in float32; results that are
// too large or no numbers are handled as the chip's overflow mode says, and are remembered. What ran is written down
// with its types, so that the model of interpreter/lua/lunaria/ascend/ can tell how long the chip would have taken.
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

// Numbers of interpreter/lua/lunaria/ascend/parameters.lua.
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

// Which part of the chip runs an operator on float32 or float16: "cube", "vector", "AI CPU", "none" (it is a view or
// asks for types), "others" (it is made of other operators) or "host".
std::string_view unit_of(const Op& op);

// Whether a result was too large or no number since it was asked the last time; waits for the device.
bool take_overflow();

// What ran since the last time, or the first of it.
Record take_record();

// Of what is written down: the stream that work belongs to from now on (gives the one before), and events of streams.
int set_stream(int stream);
void mark_event(int stream, int64_t event, bool waits);

}  // namespace lunaria::ascend
