#include "backends/ascend/outline.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "backends/ascend/device.h"
#include "core/base/error.h"
#include "core/operator/op.h"
#include "core/run/profile.h"

namespace lunaria::ascend {

namespace {

constexpr size_t kSmall = 64 * 1024;

}  // namespace

OutlinedTensor::Layout layout_of(const Tensor& t) {
    using Layout = OutlinedTensor::Layout;
    if (t.is_contiguous()) return Layout::dense;
    for (int axis = 0; axis < t.rank(); ++axis)
        if (t.dim(axis) > 1 && t.strides()[axis] == 0) return Layout::broadcast;
    // Dense, up to the order of the last two axes: each stride is the size of the axes after it.
    int64_t step = 1;
    for (int i = 0; i < t.rank(); ++i) {
        const int last = t.rank() - 1;
        const int axis = i > 1 ? last - i : i == 0 ? last - 1 : last;
        if (axis < 0) return Layout::permuted;
        if (t.dim(axis) > 1 && t.strides()[axis] != step) return Layout::permuted;
        step *= t.dim(axis);
    }
    return Layout::swapped;
}

class Outline::OutlineDevice final : public Device {
  public:
    explicit OutlineDevice(Device& model) : model_(model) {}
    std::string_view name() const override { return model_.name(); }
    bool is_host() const override { return true; }
    void* allocate(size_t bytes) override { return model_.allocate(bytes); }
    void release(void* block, size_t bytes) noexcept override { model_.release(block, bytes); }
    void copy_from_host(void* device, const void* host, size_t bytes) override {
        model_.copy_from_host(device, host, bytes);
    }
    void copy_to_host(void* host, const void* device, size_t bytes) override {
        model_.copy_to_host(host, device, bytes);
    }
    void copy_elements(const Tensor& source, const Tensor& destination) override {
        lunaria::copy_elements(source, destination);
    }
    graph::Backend* graphs() override { return model_.graphs(); }
    DeviceMemory memory() const override { return model_.memory(); }
    void reset_peak_memory() override { model_.reset_peak_memory(); }
    void empty_cache() override { model_.empty_cache(); }
    std::span<const Kernel> kernels(const Op& op) const override {
        static constexpr Kernel kNote[] = {&Outline::note};
        return model_.kernels(op).empty() ? std::span<const Kernel>() : std::span<const Kernel>(kNote);
    }

  private:
    Device& model_;
};

std::atomic<Outline*> Outline::open_ = nullptr;
std::atomic<Device*> Outline::host_ = nullptr;
std::atomic<CopyFn> Outline::copy_ = nullptr;

Outline::Outline(Device& model, CopyFn copy, std::function<std::string()> place)
    : before_(current_device()), place_(std::move(place)) {
    if (is_open()) throw state_error("outline", "another outline is being made");
    // Operators keep the lists of kernels of the devices that they have met, by address: all outlines share one device.
    static std::map<Device*, std::unique_ptr<OutlineDevice>> devices;
    auto& device = devices[&model];
    if (!device) device = std::make_unique<OutlineDevice>(model);
    open_ = this;
    host_ = &model;
    copy_ = copy;
    set_fast_copy(&Outline::leave_out_copy);
    set_current_device(device.get());
}

Outline::~Outline() {
    set_current_device(before_);
    set_fast_copy(copy_);
    open_ = nullptr;
}

OutlinedTensor Outline::describe(const Tensor& t) {
    const auto [entry, fresh] = ids_.try_emplace(t.body()->storage, static_cast<int64_t>(ids_.size()) + 1);
    if (fresh) kept_.push_back(t);
    return {entry->second, t.dtype(), t.shape(), layout_of(t), t.parameter() ? t.parameter()->name : std::string(), 0};
}

void Outline::note_collective(OutlinedCall::Collective collective, std::string place, const Tensor& in,
                              const Tensor& out) {
    OutlinedCall row;
    row.kind = OutlinedCall::Kind::collective;
    row.collective = std::move(collective);
    row.place = std::move(place);
    row.inputs.push_back(describe(in));
    row.outputs.push_back(describe(out));
    calls.push_back(std::move(row));
}

// The elements of large tensors are never read, so that copies into them are skipped.
bool Outline::leave_out_copy(const Tensor& source, const Tensor& destination) {
    const Outline* open = open_;
    if (open && open->thread_ == std::this_thread::get_id() && destination.nbytes() > kSmall) return true;
    const CopyFn copy = copy_;
    return copy && copy(source, destination);
}

bool Outline::note(const KernelCall& call) {
    Outline* open = open_;
    if (!open || open->thread_ != std::this_thread::get_id()) {
        const auto kernels = host_.load()->kernels(call.op);
        return std::ranges::any_of(kernels, [&](Kernel kernel) { return kernel(call); });
    }
    Outline& self = *open;
    OutlinedCall row;
    row.op = &call.op;
    row.place = self.place_();
    row.on_cpu = unit_of(call.op) == "AI CPU" || call.dtype == DType::f64 || !is_lane(call.dtype);
    std::vector<TensorType> results;
    auto add = [&](const Value& v) {
        if (v.is_tensor() && v.tensor()) row.inputs.push_back(self.describe(v.tensor()));
    };
    for (const Value& v : call.args) {
        add(v);
        if (v.is_list())
            for (const Value& item : v.items()) add(item);
    }
    for (Tensor& out : call.out) {
        if (!out)
            throw state_error("estimate", str("how many elements ", call.op.name(),
                                              " gives depends on values, which an estimate "
                                              "does not compute"))
                .hint("leave such operators out of the step that is estimated");
        // Zeros where the elements may be read; larger results are address space that is never filled.
        if (out.nbytes() <= kSmall) std::memset(out.raw(), 0, out.nbytes());
        results.push_back({out.dtype(), out.shape()});
        row.outputs.push_back(self.describe(out));
    }
    row.flops = flops_of(call.op, call.args, results);
    self.calls.push_back(std::move(row));
    return true;
}

}  // namespace lunaria::ascend
