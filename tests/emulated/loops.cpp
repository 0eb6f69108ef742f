#include "tests/emulated/loops.h"

#include <map>
#include <mutex>

#include "backends/cpu/machine_code.h"
#include "core/base/error.h"
#include "core/loops/kernels.h"
#include "tests/jit/graph/fibers.h"

namespace lunaria::emulated {

namespace {

using namespace graph;

// Few, so that threads do several items and rows add up in chunks.
constexpr ThreadLimits kLimits{.most_blocks = 6};

const CodeTarget& target() {
    // The level below has no conversions of float16.
    static const CodeTarget target{"x86-64-v3", &cpu::load_machine_code};
    return target;
}

EmulatedKernel find(const LoopProgram& program, const ThreadShape& shape) {
    const KernelRequest request{&program, shape};
    return reinterpret_cast<EmulatedKernel>(find_kernels(target(), {&request, 1}).at(0));
}

// Memory of a launch beside its operands.
using Words = std::vector<uint64_t>;
uint64_t address(const void* at) { return reinterpret_cast<uintptr_t>(at); }

struct ThreadedLoop final : LoopCode {
    explicit ThreadedLoop(const LoopTask& task)
        : program(*task.program), sizes(task.sizes), rows(task.rows), inner(task.inner) {}

    const LoopProgram program;
    const std::vector<int64_t> sizes;
    const int64_t rows, inner;
    // By the shape that addresses allow.
    mutable std::mutex mutex;
    mutable std::map<std::string, EmulatedKernel> kernels;

    EmulatedKernel kernel(const ThreadShape& shape) const {
        std::lock_guard lock(mutex);
        auto [entry, fresh] = kernels.try_emplace(shape.text(), nullptr);
        if (fresh) entry->second = find(program, shape);
        if (!entry->second) throw state_error("launch", str("no kernel for ", shape.text()));
        return entry->second;
    }

    void run(std::span<void* const> operands) const {
        std::vector<uintptr_t> addresses;
        for (void* at : operands) addresses.push_back(reinterpret_cast<uintptr_t>(at));
        const ThreadLaunch launch = plan_threads(program, sizes, rows, addresses, kLimits);
        Words words(addresses.begin(), addresses.end()), distances;
        std::map<uint16_t, std::vector<std::max_align_t>> chunks;
        for (const LoopInstruction& i : program.code) {
            if (i.kind != LoopInstruction::Kind::add) continue;
            const size_t bytes = static_cast<size_t>(inner) * size_of(program.operands[i.index].dtype);
            distances.push_back(bytes);
            if (launch.chunks == 1) continue;
            auto& memory = chunks[i.index];
            memory.resize(bytes * static_cast<size_t>(launch.chunks) / sizeof(std::max_align_t) + 1);
            words[i.index] = address(memory.data());
        }
        words.insert(words.end(), launch.words.begin(), launch.words.end());
        Words scratch(launch.scratch_bytes / sizeof(uint64_t) + 1, 0x7ff7a5a57ff7a5a5);
        words.push_back(address(scratch.data()));
        words.insert(words.end(), distances.begin(), distances.end());
        const std::string wrong = testing::run_threads(kernel(launch.shape), launch, words, false);
        if (!wrong.empty()) throw state_error("launch", wrong);
        for (auto& [index, memory] : chunks) {
            const LoopProgram sum = sum_of_chunks(program.operands[index].dtype);
            const ThreadedLoop total({&sum, {launch.chunks, inner, inner, 0}, launch.chunks, inner, {}});
            void* const pointers[] = {memory.data(), operands[index]};
            total.run(pointers);
        }
    }
};

class Loops final : public Backend {
  public:
    bool adds_as_host() const override { return false; }
    bool can_compile() const override { return can_generate(); }
    std::vector<LoopRef> compile(std::span<const LoopTask> tasks) override {
        std::vector<LoopRef> made;
        for (const LoopTask& task : tasks) {
            // Tensors start at multiples of more than a thread loads at a time.
            const std::vector<uintptr_t> addresses(task.offsets.begin(), task.offsets.end());
            const ThreadShape shape = plan_threads(*task.program, task.sizes, task.rows, addresses, kLimits).shape;
            const EmulatedKernel kernel = find(*task.program, shape);
            auto loop = kernel ? std::make_shared<ThreadedLoop>(task) : nullptr;
            if (loop) loop->kernels[shape.text()] = kernel;
            made.push_back(std::move(loop));
        }
        return made;
    }
    void launch(const LoopRef& loop, std::span<void* const> pointers) override {
        static_cast<const ThreadedLoop&>(*loop).run(pointers);
    }
};

}  // namespace

Backend& loops() {
    static Loops loops;
    return loops;
}

}  // namespace lunaria::emulated
