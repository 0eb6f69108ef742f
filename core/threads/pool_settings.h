// The waiting policy of the OpenMP pool; the source explains how it is set.
#pragma once

namespace lunaria {

// True when the pool was told to spin only briefly; false when the environment had a policy of its own, or no room for
// ours. A reference to this function makes the linker include the settings.
bool pool_spin_is_ours();

}  // namespace lunaria
