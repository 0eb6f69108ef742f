#include "core/tensor/usable_device.h"

#include "core/base/error.h"

namespace lunaria {

namespace {
std::string missing(const Device& device) {
    const auto* optional = dynamic_cast<const OptionalDevice*>(&device);
    return optional ? optional->missing() : std::string();
}
}  // namespace

std::vector<Device*> usable_devices() {
    std::vector<Device*> list;
    for (Device* device : devices())
        if (missing(*device).empty()) list.push_back(device);
    return list;
}

Device& usable_device(std::string_view name, std::string_view where, std::string_view argument) {
    Device* device = find_device(name);
    const std::string lacks = device ? missing(*device) : std::string();
    if (device && lacks.empty()) return *device;
    std::string names;
    for (const Device* known : usable_devices()) names += str(names.empty() ? "" : ", ", known->name());
    const std::string given = str(argument, " '", name, "'");
    if (device) throw state_error(where, str(given, " cannot be used: ", lacks)).hint("there are: " + names);
    const bool is_nvidia = name.starts_with("cuda") || name.starts_with("CUDA") || name.starts_with("gpu");
    const bool is_ascend = name == "npu" || name == "NPU" || name == "ascend";
    throw value_error(where, str(given, " is not available; there are: ", names))
        .hint(is_ascend   ? "\"Ascend\" is its name here"
              : is_nvidia ? "\"GPU\" is the name of NVIDIA's; without one, tensors are on the CPU: leave it out"
                          : "tensors are on the host where nothing else is said: leave it out");
}

}  // namespace lunaria
