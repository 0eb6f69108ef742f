// The mesh device: a table from addresses, which are never read, to the content of laid-out tensors. The addresses let
// views, copies and writes of single elements find the tensor that they belong to.

#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "core/base/error.h"
#include "core/operator/op.h"
#include "core/parallel/dispatch.h"
#include "core/parallel/laid.h"
#include "core/parallel/laid_views.h"
#include "core/run/placement.h"
#include "core/tensor/usable_device.h"

namespace lunaria::parallel {

namespace {

// A block of the device: the content of the tensor that was made there. Bytes that are copied there before anything
// tells their dtype wait in `raw`.
struct Block {
    size_t bytes = 0;
    Laid content;
    std::vector<char> raw;
};

class Blocks {
  public:
    void* add(size_t bytes) {
        std::unique_lock lock(mutex_);
        const uintptr_t at = next_;
        next_ += std::max<size_t>(bytes, 1) + kGap;
        blocks_.emplace(at, Block{bytes, {}, {}});
        memory_.live += static_cast<int64_t>(bytes);
        memory_.peak = std::max(memory_.peak, memory_.live);
        ++memory_.allocations;
        return reinterpret_cast<void*>(at);
    }
    void remove(const void* address) {
        Block last;  // its tensors are released without the lock
        std::unique_lock lock(mutex_);
        const auto found = blocks_.find(reinterpret_cast<uintptr_t>(address));
        memory_.live -= static_cast<int64_t>(found->second.bytes);
        last = std::move(found->second);
        blocks_.erase(found);
        lock.unlock();
    }
    // The block with the address, and the address's place in it.
    Block& find(const void* address, size_t& place) {
        std::shared_lock lock(mutex_);
        const auto at = reinterpret_cast<uintptr_t>(address);
        const auto found = std::prev(blocks_.upper_bound(at));
        place = at - found->first;
        return found->second;
    }
    DeviceMemory memory() const {
        std::shared_lock lock(mutex_);
        return memory_;
    }
    void reset_peak() {
        std::unique_lock lock(mutex_);
        memory_.peak = memory_.live;
    }

  private:
    static constexpr size_t kGap = 64;
    // No memory lies at such addresses: reading one ends the program.
    uintptr_t next_ = uintptr_t{1} << 62;
    std::map<uintptr_t, Block> blocks_;
    DeviceMemory memory_;
    mutable std::shared_mutex mutex_;
};

// Not destroyed, since tensors may be released last of all.
Blocks& blocks() {
    static auto* all = new Blocks;
    return *all;
}

Block& block_of(const Tensor& t) {
    size_t place = 0;
    return blocks().find(t.body()->storage->data, place);
}

// Gives bytes, or memory that was never written, the dtype and shape with which the block is read.
void settle(Block& block, DType dtype, const Shape& shape) {
    if (!block.content.pieces.empty()) return;
    const auto count = static_cast<int64_t>(block.bytes / size_of(dtype));
    const Tensor one = Tensor::empty(dtype, shape.size() == count ? shape : Shape{count});
    if (!block.raw.empty()) std::memcpy(one.raw(), block.raw.data(), block.raw.size());
    block.raw = {};
    block.content = {nullptr, dtype, one.shape(), {one}};
}

bool is_whole(const Tensor& t, const Block& block) {
    return t.is_contiguous() && t.offset() == 0 && t.nbytes() == block.bytes;
}

// Replaces the whole tensor in a block, which keeps its layout.
void write_whole(Block& block, Tensor whole) {
    Laid written{nullptr, block.content.dtype, block.content.shape, {std::move(whole)}};
    if (const Distribution* layout = block.content.layout) written = in_layout(written, *layout->complete());
    block.content = std::move(written);
}

class MeshDevice final : public Device, public WholeOperators, public OptionalDevice {
  public:
    std::string_view name() const override { return "Mesh"; }
    // Programs that lay out no tensor need not know of the device.
    std::string missing() const override { return blocks().memory().allocations ? "" : "there is no mesh"; }
    void* allocate(size_t bytes) override { return blocks().add(bytes); }
    void release(void* block, size_t) noexcept override { blocks().remove(block); }

    void copy_from_host(void* device, const void* host, size_t bytes) override {
        size_t place = 0;
        Block& block = blocks().find(device, place);
        const auto* from = static_cast<const char*>(host);
        if (bytes == block.bytes && block.content.pieces.empty()) {
            block.raw.assign(from, from + bytes);
            return;
        }
        if (block.content.pieces.empty()) {
            block.raw.resize(block.bytes);
            std::memcpy(block.raw.data() + place, from, bytes);
            return;
        }
        const Tensor all = whole(block.content).copy();
        std::memcpy(static_cast<char*>(all.raw()) + place, from, bytes);
        write_whole(block, all);
    }
    void copy_to_host(void* host, const void* device, size_t bytes) override {
        size_t place = 0;
        Block& block = blocks().find(device, place);
        if (block.content.pieces.empty()) {
            block.raw.resize(block.bytes);
            std::memcpy(host, block.raw.data() + place, bytes);
            return;
        }
        // Sums stay complete once they were read.
        if (const Distribution* layout = block.content.layout; layout && layout->partial())
            block.content = in_layout(block.content, *layout->complete());
        const Tensor all = whole(block.content).contiguous();
        std::memcpy(host, static_cast<const char*>(all.raw()) + place, bytes);
    }
    void copy_elements(const Tensor& source, const Tensor& destination) override {
        Block& to = block_of(destination);
        if (is_whole(destination, to)) {
            Laid value = converted(content(source), destination.dtype(), destination.shape());
            if (const Distribution* layout = to.content.layout; layout && to.content.shape == destination.shape())
                value = in_layout(value, *layout->complete());
            to.raw = {};
            to.content = std::move(value);
            return;
        }
        settle(to, destination.dtype(), destination.shape());
        const Tensor all = whole(to.content).copy();
        lunaria::copy_elements(whole(content(source)),
                               all.view(destination.shape(), destination.strides(), destination.offset()));
        write_whole(to, all);
    }

    std::span<const Kernel> kernels(const Op&) const override { return {}; }
    bool run(const Op& op, std::span<const Value> given, Value& result) override {
        return parallel::run(op, given, result);
    }

    DeviceMemory memory() const override { return blocks().memory(); }
    void reset_peak_memory() override { blocks().reset_peak(); }
    void empty_cache() override {}
};

}  // namespace

Device& mesh_device() {
    static auto* device = new MeshDevice;
    return *device;
}

Laid content(const Tensor& t) {
    // Another body, since this one may be given another content.
    if (!is_laid_out(t)) return {nullptr, t.dtype(), t.shape(), {t.to_host().apart()}};
    Block& block = block_of(t);
    settle(block, t.dtype(), t.shape());
    if (is_whole(t, block) && t.shape() == block.content.shape) return block.content;
    const Tensor base = t.view(block.content.shape, contiguous_strides(block.content.shape), -t.offset());
    return content_of_view(t, base);
}

const Distribution* layout_of(const Tensor& t) { return is_laid_out(t) ? block_of(t).content.layout : nullptr; }

bool is_whole(const Tensor& t) { return is_whole(t, block_of(t)) && t.shape() == block_of(t).content.shape; }

void replace_content(const Tensor& t, Laid content) {
    Block& block = block_of(t);
    block.raw = {};
    block.content = std::move(content);
}

Tensor tensor_of(Laid content) {
    const Tensor t = Tensor::empty(content.dtype, content.shape, &mesh_device());
    replace_content(t, std::move(content));
    return t;
}

}  // namespace lunaria::parallel
