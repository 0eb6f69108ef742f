// Devices by their names, where a machine may lack some of those that the program knows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/device.h"

namespace lunaria {

// What a device is as well that not every machine has.
class OptionalDevice {
  public:
    virtual ~OptionalDevice() = default;
    // What it takes to use it and this machine lacks; empty: it can be used.
    virtual std::string missing() const = 0;
    // What it makes use of where it is there, a line each: its name and version, or what is missing.
    virtual std::vector<std::string> parts() const { return {}; }
};

// Those of devices() that can be used.
std::vector<Device*> usable_devices();
// The one that `where` was given the name of as its `argument`: throws value_error when there is none, and state_error
// when it cannot be used.
Device& usable_device(std::string_view name, std::string_view where, std::string_view argument);

}  // namespace lunaria
