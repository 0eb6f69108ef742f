// The waiting policy of the OpenMP pool; see the source for how it gets there.
#pragma once

namespace lunaria {

// True when the pool was told to spin only briefly; false when the environment had a policy of its own, or no room for
// ours. Referring to it makes the linker take the settings in.
bool pool_spin_is_ours();

}  // namespace lunaria
