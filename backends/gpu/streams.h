// Flags for the driver's streams and events.
#pragma once

namespace lunaria::gpu {

inline constexpr unsigned kNoWaitForOthers = 1;  // of a stream: for the driver's own
inline constexpr unsigned kNoTiming = 2;         // of an event

}  // namespace lunaria::gpu
