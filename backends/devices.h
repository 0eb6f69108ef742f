// The devices of this program.
#pragma once

namespace lunaria {

// Makes them known to set_devices(), the host's first, and that one current.
void set_up_devices();

}  // namespace lunaria
