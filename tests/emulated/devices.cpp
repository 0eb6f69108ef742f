// The devices of the tests' program: in place of backends/devices.cpp.
#include "backends/devices.h"

#include "backends/cpu/device.h"
#include "tests/emulated/device.h"

namespace lunaria {

void set_up_devices() {
    Device* const all[] = {&cpu::device(), &emulated::device()};
    set_devices(all);
    set_current_device(all[0]);
}

}  // namespace lunaria
