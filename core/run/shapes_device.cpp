#include "core/run/shapes_device.h"

#include "core/base/error.h"
#include "core/memory/unfilled_memory.h"
#include "core/operator/op.h"
#include "core/tensor/usable_device.h"

namespace lunaria {

namespace {

constinit thread_local bool open = false;

class ShapesDevice final : public Device, public OptionalDevice {
  public:
    std::string_view name() const override { return "Shapes"; }
    // Programs that make no such tensor need not know of the device.
    std::string missing() const override { return used_ ? "" : "ms.no_init_parameters makes its tensors"; }

    // Blocks have addresses of their own, since views and copies are told apart by them; nothing lies there.
    void* allocate(size_t bytes) override {
        used_ = true;
        constexpr uintptr_t kGap = 64;
        return reinterpret_cast<void*>(next_.fetch_add(bytes + kGap));
    }
    void release(void*, size_t) noexcept override {}

    void copy_from_host(void*, const void*, size_t) override {
        if (!computes_nothing()) refuse_elements("assign");
    }
    void copy_to_host(void*, const void*, size_t) override {
        if (!computes_nothing() || open) refuse_elements("tensor");
    }
    void copy_elements(const Tensor&, const Tensor&) override {
        if (!computes_nothing()) refuse_elements("assign");
    }
    std::span<const Kernel> kernels(const Op&) const override {
        static constexpr Kernel kNothing[] = {&ShapesDevice::leave_out};
        return kNothing;
    }
    bool takes_halves(const Op&) const override { return true; }

    DeviceMemory memory() const override { return {}; }
    void reset_peak_memory() override {}
    void empty_cache() override {}

  private:
    // Outlines (backends/ascend/outline.h) take such tensors to the host, where they have no elements either.
    static bool computes_nothing() { return open || UnfilledMemory::is_wanted(); }

    static bool leave_out(const KernelCall& call) {
        if (!open) refuse_elements(call.op.name());
        for (const Tensor& out : call.out)
            if (!out)
                throw state_error(call.op.name(),
                                  "the size of its result depends on values, and there are none in "
                                  "ms.no_init_parameters");
        return true;
    }

    // No memory lies at such addresses: reading one ends the program.
    std::atomic<uintptr_t> next_{uintptr_t{1} << 61};
    std::atomic<bool> used_ = false;
};

}  // namespace

void refuse_elements(std::string_view where) {
    throw state_error(where, "a tensor that was made in ms.no_init_parameters has a shape and no elements")
        .hint("ms.load_param_into_net gives parameters their values; plans, estimates and counts need none");
}

Device& shapes_device() {
    static auto* device = new ShapesDevice;
    return *device;
}

ShapesScope::ShapesScope() : before_(current_place()), open_before_(open) {
    set_current_device(&shapes_device());
    open = true;
}

ShapesScope::~ShapesScope() {
    detail::current_place = before_;
    open = open_before_;
}

}  // namespace lunaria
