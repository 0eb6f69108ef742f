#include "backends/gpu/loops.h"

#include <algorithm>
#include <cstdlib>

#include "backends/gpu/launcher.h"
#include "core/base/error.h"
#include "core/loops/kernels.h"

namespace lunaria::gpu {

namespace {

using graph::LoopInstruction;
using graph::LoopOperand;
using graph::LoopProgram;
using graph::LoopTask;
using graph::ThreadLaunch;

// Modules are loaded at their first launch: a kernel that was only planned costs nothing.
void* load(std::string_view code) { return new ModuleFunction{.image = std::string(code)}; }

ModuleFunction* kernel_of(const std::string& target, const LoopProgram& program, const graph::ThreadShape& shape) {
    const graph::KernelRequest request{&program, shape};
    const std::vector<void*> found = graph::find_kernels({target, &load}, {&request, 1});
    return static_cast<ModuleFunction*>(found.at(0));
}

struct Loop final : graph::LoopCode {
    explicit Loop(const LoopTask& task)
        : program(*task.program), sizes(task.sizes), rows(task.rows), inner(task.inner), offsets(task.offsets) {}

    const LoopProgram program;
    const std::vector<int64_t> sizes;
    const int64_t rows, inner;
    const std::vector<size_t> offsets;
    // The plan for operands at these offsets of aligned memory.
    ThreadLaunch planned;
    ModuleFunction* kernel = nullptr;
    std::string name;
};

// The formulas of a kernel, for messages.
std::string name_of(const LoopProgram& program) {
    std::string name;
    for (const LoopInstruction& i : program.code)
        if (!i.name.empty()) name += (name.empty() ? "" : " ") + i.name;
    return name.empty() ? "copy" : name;
}

// The number of elements of a summed operand along the row.
int64_t elements_of_row(const LoopProgram& program, size_t operand, std::span<const int64_t> sizes, int64_t inner) {
    const auto rank = static_cast<size_t>(program.outer_rank);
    size_t at = rank + 1;
    for (size_t k = 0; k < operand; ++k) at += rank + (program.operands[k].step == LoopOperand::Step::wide);
    switch (program.operands[operand].step) {
        case LoopOperand::Step::none:
            return 1;
        case LoopOperand::Step::dense:
            return inner;
        default:
            return 1 + (inner - 1) * std::abs(sizes[at + rank]);
    }
}

struct Run {
    Queue& queue;
    const std::string& target;
    const LoopProgram& program;
    std::span<const int64_t> sizes;
    int64_t rows, inner;
    std::string_view what;

    std::vector<uint64_t> words_of(const ThreadLaunch& launch, std::span<const uintptr_t> addresses, Address scratch,
                                   std::span<const uint64_t> distances) const {
        std::vector<uint64_t> words(addresses.begin(), addresses.end());
        words.insert(words.end(), launch.words.begin(), launch.words.end());
        words.push_back(scratch);
        words.insert(words.end(), distances.begin(), distances.end());
        return words;
    }

    void run(const ThreadLaunch& launch, ModuleFunction& kernel, std::vector<uintptr_t> addresses) const {
        Room room(queue);
        // Rows that are summed in several chunks have partial sums, which are added up afterwards.
        struct Chunks {
            DType dtype;
            int64_t elements;
            uintptr_t sums, total;
        };
        std::vector<Chunks> chunks;
        std::vector<uint64_t> distances;
        for (const LoopInstruction& i : program.code) {
            if (i.kind != LoopInstruction::Kind::add) continue;
            const int64_t elements = elements_of_row(program, i.index, sizes, inner);
            const size_t bytes = static_cast<size_t>(elements) * size_of(program.operands[i.index].dtype);
            distances.push_back(bytes);
            if (launch.chunks == 1) continue;
            const Address sums = room.take(bytes * static_cast<size_t>(launch.chunks));
            chunks.push_back({program.operands[i.index].dtype, elements, sums, addresses[i.index]});
            addresses[i.index] = sums;
        }
        const Address scratch = launch.scratch_bytes ? room.take(launch.scratch_bytes) : 0;
        queue.launch(kernel,
                     {static_cast<unsigned>(launch.blocks), static_cast<unsigned>(launch.threads),
                      static_cast<unsigned>(launch.near_bytes)},
                     words_of(launch, addresses, scratch, distances), addresses.size(), what);
        for (const Chunks& c : chunks) {
            const LoopProgram sum = graph::sum_of_chunks(c.dtype);
            const std::vector<int64_t> shape{launch.chunks, c.elements, c.elements, 0};
            const Run last{queue, target, sum, shape, launch.chunks, c.elements, what};
            last.plan_and_run({c.sums, c.total});
        }
    }

    bool plan_and_run(std::vector<uintptr_t> addresses) const {
        const ThreadLaunch launch = graph::plan_threads(program, sizes, rows, addresses);
        ModuleFunction* kernel = kernel_of(target, program, launch.shape);
        if (kernel) run(launch, *kernel, std::move(addresses));
        return kernel;
    }
};

// An operand that is not a sum adds at least so many words; the last words are counts, scratch memory and distances.
bool fits(const ThreadLaunch& launch, const LoopProgram& program) {
    return launch.words.size() + 2 * program.operands.size() + 1 <= Work::kMostWords;
}

std::vector<uintptr_t> addresses_of(std::span<void* const> operands) {
    std::vector<uintptr_t> addresses;
    for (void* operand : operands) addresses.push_back(reinterpret_cast<uintptr_t>(operand));
    return addresses;
}

}  // namespace

std::vector<graph::LoopRef> compile_loops(const std::string& target, std::span<const LoopTask> loops) {
    std::vector<std::shared_ptr<Loop>> made;
    std::vector<graph::KernelRequest> requests;
    for (const LoopTask& task : loops) {
        auto loop = std::make_shared<Loop>(task);
        const std::vector<uintptr_t> offsets(task.offsets.begin(), task.offsets.end());
        loop->planned = graph::plan_threads(loop->program, loop->sizes, loop->rows, offsets);
        loop->name = name_of(loop->program);
        requests.push_back({&loop->program, loop->planned.shape});
        made.push_back(std::move(loop));
    }
    const std::vector<void*> kernels = graph::find_kernels({target, &load}, requests);
    std::vector<graph::LoopRef> list;
    for (size_t i = 0; i < made.size(); ++i) {
        made[i]->kernel = static_cast<ModuleFunction*>(kernels[i]);
        const bool runs = made[i]->kernel && fits(made[i]->planned, made[i]->program);
        list.push_back(runs ? std::move(made[i]) : nullptr);
    }
    return list;
}

void launch_loop(Queue& queue, const std::string& target, const graph::LoopCode& code,
                 std::span<void* const> operands) {
    const auto& loop = static_cast<const Loop&>(code);
    std::vector<uintptr_t> addresses = addresses_of(operands);
    const Run run{queue, target, loop.program, loop.sizes, loop.rows, loop.inner, loop.name};
    // Views that were passed to the graph may have addresses at which loads of several elements are not allowed.
    constexpr uintptr_t kLoadBytes = 16;
    bool as_planned = true;
    for (size_t k = 0; k < addresses.size(); ++k)
        as_planned &= addresses[k] % kLoadBytes == loop.offsets[k] % kLoadBytes;
    if (as_planned)
        run.run(loop.planned, *loop.kernel, std::move(addresses));
    else if (!run.plan_and_run(std::move(addresses)))
        throw state_error(loop.name, "no code can be made for the device");
}

bool run_loop(Queue& queue, const std::string& target, const LoopTask& task, std::span<void* const> operands,
              std::string_view what) {
    if (!graph::can_generate()) return false;
    return Run{queue, target, *task.program, task.sizes, task.rows, task.inner, what}.plan_and_run(
        addresses_of(operands));
}

}  // namespace lunaria::gpu
