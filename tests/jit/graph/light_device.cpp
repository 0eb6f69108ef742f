#include "tests/jit/graph/light_device.h"

#include <cstdlib>
#include <vector>

#include "backends/cpu/device.h"
#include "core/base/error.h"
#include "core/lite/runtime/loop_code.h"
#include "core/loops/graph_backend.h"
#include "core/threads/threads.h"

namespace lunaria::testing {

namespace {

struct LightLoop final : graph::LoopCode {
    std::unique_ptr<lite::LoopCode> code;
};

class LightLoops final : public graph::Backend {
  public:
    bool can_compile() const override { return true; }
    std::vector<graph::LoopRef> compile(std::span<const graph::LoopTask> tasks) override {
        std::vector<graph::LoopRef> made;
        for (const graph::LoopTask& task : tasks) {
            std::string fault;
            auto loop = std::make_shared<LightLoop>();
            loop->code = lite::make_loop(*task.program, task.sizes, fault);
            if (!loop->code) throw state_error("light loops", str(fault, "\n", task.program->text()));
            made.push_back(std::move(loop));
        }
        return made;
    }
    void launch(const graph::LoopRef& loop, std::span<void* const> pointers) override {
        const lite::LoopCode& code = *static_cast<const LightLoop&>(*loop).code;
        const int parts = lite::parts_of(code, 3);
        parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
            // Not zeros: nothing may depend on what the memory held before.
            std::vector<char> memory(code.scratch + 64, 0x7f);
            char* const scratch = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
            for (int64_t k = begin; k < end; ++k)
                lite::run_loop(code, pointers.data(), lite::part_of(code, parts, static_cast<int>(k)), scratch);
        });
    }
};

class LightDevice final : public Device {
  public:
    std::string_view name() const override { return cpu().name(); }
    bool is_host() const override { return true; }
    void* allocate(size_t bytes) override { return cpu().allocate(bytes); }
    void release(void* block, size_t bytes) noexcept override { cpu().release(block, bytes); }
    void copy_from_host(void* device, const void* host, size_t bytes) override {
        cpu().copy_from_host(device, host, bytes);
    }
    void copy_to_host(void* host, const void* device, size_t bytes) override {
        cpu().copy_to_host(host, device, bytes);
    }
    void copy_elements(const Tensor& source, const Tensor& destination) override {
        cpu().copy_elements(source, destination);
    }
    graph::Backend* graphs() override { return &loops_; }
    DeviceMemory memory() const override { return cpu().memory(); }
    void reset_peak_memory() override { cpu().reset_peak_memory(); }
    void empty_cache() override { cpu().empty_cache(); }
    std::span<const Kernel> kernels(const Op& op) const override { return cpu().kernels(op); }

  private:
    static Device& cpu() { return lunaria::cpu::device(); }
    LightLoops loops_;
};

}  // namespace

Device& light_device() {
    static LightDevice device;
    return device;
}

Device& graph_device() {
    const char* const loops = std::getenv("LUNARIA_TEST_LOOPS");
    return loops && std::string_view(loops) == "light" ? light_device() : cpu::device();
}

}  // namespace lunaria::testing
