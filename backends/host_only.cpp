// The devices of a program that has none but the host.
#include "backends/cpu/device.h"
#include "backends/devices.h"

namespace lunaria {

void set_up_devices() {
    static Device* const all[] = {&cpu::device()};
    set_devices(all);
    set_current_device(all[0]);
}

}  // namespace lunaria
