#include "backends/devices.h"

#include "backends/ascend/device.h"
#include "backends/cpu/device.h"
#include "backends/gpu/device.h"
#include "backends/separate/device.h"

namespace lunaria {

void set_up_devices() {
    Device* const all[] = {
        &cpu::device(),
        &separate::device(),
        &gpu::device(),
        &ascend::device(),
    };
    set_devices(all);
    set_current_device(all[0]);
}

}  // namespace lunaria
