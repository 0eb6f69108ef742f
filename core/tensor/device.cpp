#include "core/tensor/device.h"

#include <algorithm>
#include <cctype>
#include <mutex>

#include "core/base/error.h"

namespace lunaria {

namespace {

std::atomic<Device*>& host_slot() {
    static constinit std::atomic<Device*> device{nullptr};
    return device;
}

std::vector<Device*>& known_devices() {
    static auto* known = new std::vector<Device*>;
    return *known;
}

struct Fallbacks {
    std::mutex mutex;
    std::vector<Fallback> list;
    std::atomic<bool> allowed{true};
};
Fallbacks& fallbacks_so_far() {
    static auto* instance = new Fallbacks;
    return *instance;
}

}  // namespace

Device* host_device() {
    if (Device* device = host_slot().load(std::memory_order_relaxed)) [[likely]]
        return device;
    throw state_error("device", "no device has been set up");
}

void set_current_device(Device* device) {
    if (!device || device->is_host()) {
        if (device) host_slot().store(device, std::memory_order_relaxed);
        detail::current_place = nullptr;
        return;
    }
    detail::has_places.store(true, std::memory_order_relaxed);
    detail::current_place = device;
}

void set_devices(std::span<Device* const> devices) { known_devices().assign(devices.begin(), devices.end()); }
std::span<Device* const> devices() { return known_devices(); }

Device* find_device(std::string_view name) {
    if (name == "host") return host_device();
    for (Device* device : devices())
        if (std::ranges::equal(device->name(), name,
                               [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); }))
            return device;
    return nullptr;
}

std::vector<Fallback> fallbacks() {
    std::lock_guard lock(fallbacks_so_far().mutex);
    return fallbacks_so_far().list;
}

void add_fallback(const Op& op, Device& device, int64_t bytes) {
    Fallbacks& all = fallbacks_so_far();
    std::lock_guard lock(all.mutex);
    auto found = std::ranges::find_if(all.list, [&](const Fallback& f) { return f.op == &op && f.device == &device; });
    if (found == all.list.end()) found = all.list.insert(found, {&op, &device, 0, 0});
    ++found->calls;
    found->bytes += bytes;
}

void forget_fallbacks() {
    std::lock_guard lock(fallbacks_so_far().mutex);
    fallbacks_so_far().list.clear();
}

bool allows_fallback() { return fallbacks_so_far().allowed.load(std::memory_order_relaxed); }
void allow_fallback(bool allowed) { fallbacks_so_far().allowed.store(allowed, std::memory_order_relaxed); }

}  // namespace lunaria
