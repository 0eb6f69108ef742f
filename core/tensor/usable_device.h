// Devices by their names, where a machine may lack some of the known ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/device.h"

namespace lunaria {

// The interface of devices that not every machine has.
class OptionalDevice {
  public:
    virtual ~OptionalDevice() = default;
    // The requirement that this machine lacks; empty: the device can be used.
    virtual std::string missing() const = 0;
    // Optional parts that it uses where they are there, a line each: name and version, or what is missing.
    virtual std::vector<std::string> parts() const { return {}; }
};

// The devices of devices() that can be used.
std::vector<Device*> usable_devices();
// The device named by the `argument` of `where`: throws value_error when there is none of that name, and state_error
// when it cannot be used.
Device& usable_device(std::string_view name, std::string_view where, std::string_view argument);

}  // namespace lunaria
