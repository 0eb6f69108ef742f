#include "jit/lite/device.h"

#include <algorithm>
#include <array>

#include "core/loops/graph_backend.h"
#include "core/loops/loop.h"
#include "core/operator/op.h"

namespace lunaria::lite {

namespace {

// Operators with a kernel on the host that the light runtime has none for: they are written as what they consist of.
constexpr std::array<std::string_view, 10> kComposed{
    "affine",          "attention",       "attention_grad", "conv2d_relu", "conv2d_last",
    "max_window_last", "flash_attention", "layer_norm",     "batch_norm",  "msort"};

class LightLoops final : public graph::Backend {
  public:
    bool can_compile() const override { return true; }
    // Sums of floats are added up in lanes, in their own dtype.
    bool adds_as_host() const override { return false; }
    std::vector<graph::LoopRef> compile(std::span<const graph::LoopTask> loops) override {
        static const auto planned = std::make_shared<const graph::LoopCode>();
        return {loops.size(), planned};
    }
    void launch(const graph::LoopRef&, std::span<void* const>) override {}
};

class LightDevice final : public Device {
  public:
    std::string_view name() const override { return "light"; }
    bool is_host() const override { return true; }
    void* allocate(size_t bytes) override { return host_device()->allocate(bytes); }
    void release(void* block, size_t bytes) noexcept override { host_device()->release(block, bytes); }
    void copy_from_host(void* to, const void* from, size_t bytes) override {
        host_device()->copy_from_host(to, from, bytes);
    }
    void copy_to_host(void* to, const void* from, size_t bytes) override {
        host_device()->copy_to_host(to, from, bytes);
    }
    void copy_elements(const Tensor& source, const Tensor& destination) override {
        host_device()->copy_elements(source, destination);
    }
    std::span<const Kernel> kernels(const Op& op) const override {
        if (!op.belongs_to(registry())) return kPlanned;  // an operator of operators.h
        if (std::ranges::find(kComposed, op.name()) != kComposed.end()) return {};
        return host_device()->kernels(op);
    }
    graph::Backend* graphs() override { return &loops_; }
    DeviceMemory memory() const override { return {}; }
    void reset_peak_memory() override {}
    void empty_cache() override {}

  private:
    static constexpr std::array<Kernel, 1> kPlanned{[](const KernelCall&) { return true; }};
    LightLoops loops_;
};

}  // namespace

Device& light_device() {
    static LightDevice device;
    return device;
}

}  // namespace lunaria::lite
