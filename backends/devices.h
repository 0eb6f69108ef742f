// The devices of this program.
#pragma once

namespace lunaria {

// Registers them with set_devices(), the host's first, and makes that one current.
void set_up_devices();

}  // namespace lunaria
