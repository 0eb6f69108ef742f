#include "backends/gpu/device.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "backends/gpu/driver.h"
#include "backends/gpu/launcher.h"
#include "backends/gpu/library.h"
#include "backends/gpu/loops.h"
#include "backends/gpu/operators.h"
#include "backends/gpu/queue.h"
#include "core/base/error.h"
#include "core/loops/kernels.h"
#include "core/operator/op.h"
#include "core/run/placement.h"
#include "core/tensor/usable_device.h"

namespace lunaria::gpu {

namespace {

Address address(const void* pointer) { return reinterpret_cast<Address>(pointer); }

class Gpu final : public Device, public OptionalDevice, public graph::Backend {
  public:
    std::string_view name() const override { return "GPU"; }
    std::string missing() const override { return open_driver().missing; }
    std::vector<std::string> parts() const override {
        std::vector<std::string> lines;
        for (const LibraryState& state : library_states())
            lines.push_back(state.missing.empty() ? state.name : state.missing);
        return lines;
    }

    void* allocate(size_t bytes) override { return reinterpret_cast<void*>(queue().allocate(bytes)); }
    void release(void* block, size_t) noexcept override {
        if (queue_) queue_->release(address(block));
    }
    void copy_from_host(void* device, const void* host, size_t bytes) override {
        queue().upload(address(device), host, bytes);
    }
    void copy_to_host(void* host, const void* device, size_t bytes) override {
        queue().download(host, address(device), bytes);
    }
    void copy_elements(const Tensor& source, const Tensor& destination) override;

    // One kernel for every operator: it leaves calls without code to the host.
    std::span<const Kernel> kernels(const Op& op) const override {
        static constexpr Kernel kOne[] = {[](const KernelCall&) { return false; }};
        const bool has_one = op.fuses_as != Fusion::none || kernel_table().find(op).kernel;
        return has_one ? std::span<const Kernel>(kOne) : std::span<const Kernel>();
    }
    bool takes_halves(const Op& op) const override { return kernel_table().find(op).takes_halves; }
    size_t launch(std::span<const Kernel> kernels, size_t, KernelCall& call) override {
        if (run_operator(queue(), open_driver().driver->target, call)) return 0;
        return launch_or_fall_back(*this, {}, 0, call) == 0 ? 0 : kernels.size();
    }

    graph::Backend* graphs() override { return this; }
    bool adds_as_host() const override { return false; }
    bool can_compile() const override { return graph::can_generate(); }
    std::vector<graph::LoopRef> compile(std::span<const graph::LoopTask> loops) override {
        return compile_loops(open_driver().driver->target, loops);
    }
    void launch(const graph::LoopRef& loop, std::span<void* const> pointers) override {
        launch_loop(queue(), open_driver().driver->target, *loop, pointers);
    }

    std::unique_ptr<graph::Replay> replay() override { return queue().make_replay(); }

    void synchronize() override {
        if (queue_) queue_->synchronize();
    }
    uint64_t record() override { return queue().record(); }
    double done_at(uint64_t place) override { return queue().done_at(place); }
    void wait(uint64_t place) override { queue().wait(place); }

    DeviceMemory memory() const override { return queue_ ? queue_->memory_stats() : DeviceMemory{}; }
    void reset_peak_memory() override { queue().reset_peak_memory(); }
    void empty_cache() override {
        if (queue_) queue_->empty_cache();
    }

  private:
    Queue& queue() {
        std::call_once(made_, [this] {
            const Opened& opened = open_driver();
            if (!opened.driver) throw state_error(name(), opened.missing);
            queue_ = std::make_unique<Queue>(*opened.driver);
        });
        return *queue_;
    }
    bool copy_by_loop(const Tensor& source, const Tensor& destination);
    Tensor whole_on_host(const Tensor& t);

    std::once_flag made_;
    std::unique_ptr<Queue> queue_;
};

// False where there is no code for it.
bool Gpu::copy_by_loop(const Tensor& source, const Tensor& destination) {
    using graph::LoopInstruction;
    // A dense side may have another shape: its elements are matched with those of the other side in order.
    const bool by_source = !source.is_contiguous() || destination.is_contiguous();
    const Shape& shape = by_source ? source.shape() : destination.shape();
    const Tensor sides[] = {
        source.is_contiguous() ? source.view(shape, contiguous_strides(shape)) : source,
        destination.is_contiguous() ? destination.view(shape, contiguous_strides(shape)) : destination};
    const int rank = shape.rank(), outer = std::max(rank - 1, 0);
    const std::string& target = open_driver().driver->target;
    // Loops write adjacent elements.
    if (rank && sides[1].strides()[rank - 1] != 1) {
        Launcher launcher(queue(), target, "copy");
        return graph::can_generate() && copy_strided(launcher, sides[0], sides[1]);
    }
    graph::LoopProgram program;
    program.outer_rank = outer;
    graph::LoopTask task;
    task.program = &program;
    for (int axis = 0; axis < outer; ++axis) task.sizes.push_back(shape[axis]);
    task.inner = rank ? shape[rank - 1] : 1;
    task.rows = shape.size() / task.inner;
    task.sizes.push_back(task.inner);
    for (const Tensor& side : sides) {
        const int64_t step = rank ? side.strides()[rank - 1] : 1;
        program.operands.push_back({side.dtype(),
                                    step == 1 ? graph::LoopOperand::Step::dense : graph::LoopOperand::Step::wide,
                                    program.operands.size() == 1});
        for (int axis = 0; axis < outer; ++axis) task.sizes.push_back(side.strides()[axis]);
        if (step != 1) task.sizes.push_back(step);
    }
    const DType from = source.dtype(), to = destination.dtype();
    program.code.push_back({.kind = LoopInstruction::Kind::load, .dtype = from, .operand = from});
    if (from != to)
        program.code.push_back({.kind = LoopInstruction::Kind::cast, .dtype = to, .operand = from, .args = {0}});
    const auto last = static_cast<uint16_t>(program.code.size() - 1);
    program.code.push_back(
        {.kind = LoopInstruction::Kind::store, .dtype = to, .operand = to, .index = 1, .args = {last}});
    void* const operands[] = {source.raw(), destination.raw()};
    return run_loop(queue(), target, task, operands, "copy");
}

// The memory between the first and the last element of a tensor, in host memory with the same strides.
Tensor Gpu::whole_on_host(const Tensor& t) {
    int64_t low = 0, high = 0;
    for (int axis = 0; axis < t.rank(); ++axis)
        (t.strides()[axis] < 0 ? low : high) += t.strides()[axis] * (t.dim(axis) - 1);
    const Tensor all = Tensor::empty(t.dtype(), {high - low + 1});
    queue().download(all.raw(), address(t.raw()) + static_cast<Address>(low) * size_of(t.dtype()), all.nbytes());
    return all.view(t.shape(), t.strides(), -low);
}

void Gpu::copy_elements(const Tensor& source, const Tensor& destination) {
    if (source.size() == 0) return;
    if (source.is_contiguous() && destination.is_contiguous() && source.dtype() == destination.dtype())
        return queue().copy(address(destination.raw()), address(source.raw()), source.nbytes());
    if (copy_by_loop(source, destination)) return;
    const Tensor here = whole_on_host(source);
    if (destination.is_contiguous()) {
        const Tensor dense = here.cast(destination.dtype()).contiguous();
        return queue().upload(address(destination.raw()), dense.raw(), dense.nbytes());
    }
    // The bytes between the destination's elements are written back unchanged.
    const Tensor there = whole_on_host(destination);
    lunaria::copy_elements(here, there);
    const Storage& all = *there.body()->storage;
    const auto before = static_cast<size_t>(there.offset()) * size_of(there.dtype());
    queue().upload(address(destination.raw()) - before, all.data, all.bytes);
}

}  // namespace

Device& device() {
    // Never destroyed: tensors may be released after everything else.
    static auto* gpu = new Gpu;
    return *gpu;
}

}  // namespace lunaria::gpu
