#include "backends/cpu/graph_loops.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "backends/cpu/machine_code.h"
#include "core/loops/generator.h"
#include "core/loops/kernels.h"
#include "core/memory.h"
#include "core/tensor.h"
#include "core/threads.h"

namespace lunaria::cpu {

namespace {

using graph::LoopProgram;
using graph::LoopTask;

// What one more thread must be worth, in additions of floats: as the elementwise kernels have it.
constexpr int64_t kThreadWork = 48 * 1024;

struct HostLoop final : graph::LoopCode {
    HostLoop(const LoopTask& task, graph::LoopFunction code);

    const graph::LoopFunction function;
    const std::vector<int64_t> sizes;
    const int64_t rows, inner;
    const int64_t part;    // elements that are worth a thread
    const size_t scratch;  // bytes
    const bool has_rows, has_sums;
    // Of a loop whose sums are one row each: how many groups the rows are shared out in, which are added up on their
    // own first, and the operands that are sums. As many for every number of threads: results are the same bits.
    int64_t row_groups = 1;
    struct Sum {
        size_t operand = 0;
        DType dtype = DType::f32;
    };
    std::vector<Sum> sums;
};

// Whether an operand that rows add to is one row, which all rows add to.
bool is_one_row(const LoopTask& task, size_t operand) {
    const LoopProgram& program = *task.program;
    if (program.operands[operand].step != graph::LoopOperand::Step::dense && task.inner > 1) return false;
    const auto rank = static_cast<size_t>(program.outer_rank);
    size_t at = rank + 1;
    for (size_t k = 0; k < operand; ++k)
        at += rank + (program.operands[k].step == graph::LoopOperand::Step::wide ? 1 : 0);
    for (size_t axis = 0; axis < rank; ++axis)
        if (task.sizes[axis] > 1 && task.sizes[at + axis] != 0) return false;
    return true;
}

HostLoop::HostLoop(const LoopTask& task, graph::LoopFunction code)
    : function(code),
      sizes(task.sizes),
      rows(task.rows),
      inner(task.inner),
      part(std::max<int64_t>(1, kThreadWork / loop_cost(*task.program, task.sizes))),
      scratch(scratch_values(*task.program).size() * static_cast<size_t>(task.inner + 64) * 8),
      has_rows(task.program->has_rows),
      has_sums(task.program->has_sums) {
    // Threads that share out columns read of every row what others have written before, and leave it so to the next
    // step: where there are enough rows, these are shared out instead, as everywhere else.
    constexpr int64_t kFewestRows = 32, kMostGroups = 16;
    if (!has_sums) return;
    for (const graph::LoopInstruction& i : task.program->code) {
        if (i.kind != graph::LoopInstruction::Kind::add) continue;
        if (!is_one_row(task, i.index)) return;
        sums.push_back({i.index, task.program->operands[i.index].dtype});
    }
    const int64_t most = std::min(rows / kFewestRows, rows * inner / part);
    row_groups = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(most, 1, kMostGroups))));
}

// The levels of instruction sets that kernels are built for elsewhere too; LUNARIA_ISA chooses a lower one.
std::string instruction_set() {
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    const char* wish = std::getenv("LUNARIA_ISA");
    const std::string_view wanted = wish ? wish : "";
    if (wanted == "v2" || !avx2) return "x86-64-v2";
    if (wanted == "avx2" || !avx512) return "x86-64-v3";
    return "x86-64-v4";
}

template <class T>
void add_row(T* sum, const T* row, int64_t count) {
    for (int64_t i = 0; i < count; ++i) sum[i] += row[i];
}

// The first group adds up in the results, the others in memory of their own, which is added to them in order.
void run_row_groups(const HostLoop& loop, std::span<void* const> operands) {
    // In whole lines of the cache: threads write to different ones.
    auto bytes_of_row = [&](const HostLoop::Sum& sum) {
        return (static_cast<size_t>(loop.inner) * size_of(sum.dtype) + 63) / 64 * 64;
    };
    size_t bytes = 0;
    for (const HostLoop::Sum& sum : loop.sums) bytes += bytes_of_row(sum);
    const auto others = static_cast<size_t>(loop.row_groups - 1);
    const Tensor memory = Tensor::empty(DType::u8, Shape{static_cast<int64_t>(bytes * others)});
    char* const partial = memory.data<char>();
    std::memset(partial, 0, bytes * others);
    parallel_for(loop.row_groups, 1, [&](int64_t begin, int64_t end) {
        for (int64_t group = begin; group < end; ++group) {
            std::vector<void*> pointers(operands.begin(), operands.end());
            size_t at = static_cast<size_t>(group - 1) * bytes;
            for (const HostLoop::Sum& sum : loop.sums) {
                if (group == 0) break;
                pointers[sum.operand] = partial + at;
                at += bytes_of_row(sum);
            }
            loop.function(pointers.data(), loop.sizes.data(), loop.rows * group / loop.row_groups,
                          loop.rows * (group + 1) / loop.row_groups, 0, loop.inner, nullptr);
        }
    });
    for (size_t other = 0; other < others; ++other) {
        const char* at = partial + other * bytes;
        for (const HostLoop::Sum& sum : loop.sums) {
            void* const total = operands[sum.operand];
            if (sum.dtype == DType::f32)
                add_row(static_cast<float*>(total), reinterpret_cast<const float*>(at), loop.inner);
            else
                add_row(static_cast<double*>(total), reinterpret_cast<const double*>(at), loop.inner);
            at += bytes_of_row(sum);
        }
    }
}

class Loops final : public graph::Backend {
  public:
    bool can_compile() const override { return graph::can_generate(); }
    std::vector<graph::LoopRef> compile(std::span<const LoopTask> loops, bool generate) override {
        static const graph::CodeTarget target{instruction_set(), &load_machine_code};
        std::vector<graph::KernelRequest> requests;
        for (const LoopTask& loop : loops) requests.push_back({loop.program});
        const std::vector<void*> kernels = find_kernels(target, requests, generate);
        std::vector<graph::LoopRef> made(kernels.size());
        for (size_t k = 0; k < kernels.size(); ++k)
            if (kernels[k])
                made[k] = std::make_shared<HostLoop>(loops[k], reinterpret_cast<graph::LoopFunction>(kernels[k]));
        return made;
    }
    void launch(const graph::LoopRef& code, std::span<void* const> operands) override {
        const auto& loop = static_cast<const HostLoop&>(*code);
        void* const* pointers = operands.data();
        const int64_t* sizes = loop.sizes.data();
        const int64_t inner = loop.inner;
        auto rows = [&](int64_t begin, int64_t end) {
            void* scratch = loop.scratch ? allocate(loop.scratch) : nullptr;
            loop.function(pointers, sizes, begin, end, 0, inner, scratch);
            if (scratch) release(scratch, loop.scratch);
        };
        if (loop.row_groups > 1) return run_row_groups(loop, operands);
        if (loop.rows * inner <= loop.part) return rows(0, loop.rows);
        if (loop.has_sums)
            return parallel_for(
                inner, std::max<int64_t>(64, loop.part / loop.rows), 64,
                [&](int64_t begin, int64_t end) { loop.function(pointers, sizes, 0, loop.rows, begin, end, nullptr); });
        if (loop.has_rows || loop.rows >= 4 * num_threads())
            return parallel_for(loop.rows, std::max<int64_t>(1, loop.part / inner), rows);
        for (int64_t row = 0; row < loop.rows; ++row)
            parallel_for(inner, loop.part, 64, [&](int64_t begin, int64_t end) {
                loop.function(pointers, sizes, row, row + 1, begin, end, nullptr);
            });
    }
};

}  // namespace

graph::Backend& graph_backend() {
    static Loops loops;
    return loops;
}

}  // namespace lunaria::cpu
