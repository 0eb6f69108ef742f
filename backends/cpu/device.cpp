#include "backends/cpu/device.h"

#include <cstring>
#include <map>
#include <mutex>

#include "backends/cpu/copy.h"
#include "backends/cpu/element_chain.h"
#include "backends/cpu/graph_loops.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/reduce_views.h"
#include "core/operator/op.h"
#include "core/run/operand_layouts.h"

namespace lunaria::cpu {

namespace {

class Cpu final : public Device {
  public:
    explicit Cpu(bool plain_only) : plain_only_(plain_only) {
        if (plain_only) return;
        set_fast_copy(fast_copy);
        set_chain_compiler(this, compile_element_chain);
        set_operand_layouts(
            this, [](const Op& op) { return reduces_views(op); }, [](const Op& op) { return reduces_halves(op); });
    }
    std::string_view name() const override { return "CPU"; }
    bool is_host() const override { return true; }
    void* allocate(size_t bytes) override { return lunaria::allocate(bytes); }
    void release(void* block, size_t bytes) noexcept override { lunaria::release(block, bytes); }
    void copy_from_host(void* device, const void* host, size_t bytes) override { std::memcpy(device, host, bytes); }
    void copy_to_host(void* host, const void* device, size_t bytes) override { std::memcpy(host, device, bytes); }
    void copy_elements(const Tensor& source, const Tensor& destination) override {
        lunaria::copy_elements(source, destination);
    }
    graph::Backend* graphs() override { return &graph_backend(); }
    DeviceMemory memory() const override {
        const MemoryStats stats = memory_stats();
        return {stats.live_bytes, stats.peak_bytes, stats.cached_bytes, stats.allocations};
    }
    void reset_peak_memory() override { lunaria::reset_peak_memory(); }
    void empty_cache() override { empty_memory_cache(); }
    std::span<const Kernel> kernels(const Op& op) const override {
        std::lock_guard lock(mutex_);
        auto [entry, fresh] = lists_.try_emplace(op.id);
        if (fresh) entry->second = kernel_table().kernels(op.name(), plain_only_);
        return entry->second;
    }

  private:
    bool plain_only_;
    mutable std::mutex mutex_;
    mutable std::map<int, std::vector<Kernel>> lists_;
};

}  // namespace

Device& device() {
    static Cpu cpu(false);
    return cpu;
}

Device& plain_device() {
    static Cpu cpu(true);
    return cpu;
}

}  // namespace lunaria::cpu
