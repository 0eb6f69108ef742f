#include "backends/cpu/graph_loops.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "backends/cpu/machine_code.h"
#include "core/loops/generator.h"
#include "core/loops/kernels.h"
#include "core/loops/sum_order.h"
#include "core/memory/memory.h"
#include "core/tensor/tensor.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

using graph::LoopProgram;
using graph::LoopTask;

// The amount of work for one more thread, in additions of floats: as in the elementwise kernels.
constexpr int64_t kThreadWork = 48 * 1024;

struct HostLoop final : graph::LoopCode {
    HostLoop(const LoopTask& task, graph::LoopFunction code);

    const graph::LoopFunction function;
    const std::vector<int64_t> sizes;
    const int64_t rows, inner;
    const int64_t part;    // number of elements that are worth a thread
    const size_t scratch;  // bytes
    const bool has_rows;
    // Operands that rows add to: they are accumulated in memory of their own, in the order of core/loops/sum_order.h.
    struct Sum {
        size_t operand = 0;
        DType dtype = DType::f32;  // of the result
    };
    std::vector<Sum> sums;
};

HostLoop::HostLoop(const LoopTask& task, graph::LoopFunction code)
    : function(code),
      sizes(task.sizes),
      rows(task.rows),
      inner(task.inner),
      part(std::max<int64_t>(1, kThreadWork / loop_cost(*task.program, task.sizes))),
      scratch(scratch_values(*task.program).size() * static_cast<size_t>(task.inner + 64) * 8),
      has_rows(task.program->has_rows) {
    for (const graph::LoopInstruction& i : task.program->code)
        if (i.kind == graph::LoopInstruction::Kind::add) sums.push_back({i.index, i.operand});
}

// The instruction sets for which kernels are built elsewhere too; LUNARIA_ISA chooses a lower one.
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

// Sums of rows: threads share the blocks of rows, or the columns where there is only one block.
class RowSums {
  public:
    RowSums(const HostLoop& loop, std::span<void* const> operands)
        : loop_(loop),
          operands_(operands),
          blocks_((loop.rows + kSumRows - 1) / kSumRows),
          room_((loop.inner + 7) / 8 * 8),  // whole cache lines: threads write to different ones
          pitch_(loop.inner + 64),
          totals_(Tensor::empty(DType::f64, Shape{room_ * count() * blocks_})) {}

    void run() {
        const int64_t rows = loop_.rows, inner = loop_.inner;
        if (blocks_ == 1) {
            const int64_t part = rows * inner <= loop_.part ? inner : std::max<int64_t>(64, loop_.part / rows);
            parallel_for(inner, part, 64, [&](int64_t begin, int64_t end) { add_block(0, begin, end); });
        } else {
            parallel_for(blocks_, std::max<int64_t>(1, loop_.part / (kSumRows * inner)),
                         [&](int64_t begin, int64_t end) {
                             for (int64_t block = begin; block < end; ++block) add_block(block, 0, inner);
                         });
        }
        for (size_t s = 0; s < loop_.sums.size(); ++s) {
            void* const result = operands_[loop_.sums[s].operand];
            if (loop_.sums[s].dtype == DType::f32)
                finish(s, static_cast<float*>(result));
            else
                finish(s, static_cast<double*>(result));
        }
    }

  private:
    int64_t count() const { return static_cast<int64_t>(loop_.sums.size()); }
    double* total(int64_t block, size_t sum) const {
        return totals_.data<double>() + (block * count() + static_cast<int64_t>(sum)) * room_;
    }

    void add_block(int64_t block, int64_t begin, int64_t end) {
        const int64_t first = block * kSumRows, last = std::min(loop_.rows, first + kSumRows);
        // Partial leaves between rows: single numbers and pairs.
        const size_t bytes = static_cast<size_t>(2 * count() * pitch_) * sizeof(double);
        void* const scratch = allocate(bytes);
        std::vector<void*> pointers(operands_.begin(), operands_.end());
        for (size_t s = 0; s < loop_.sums.size(); ++s) {
            pointers[loop_.sums[s].operand] = total(block, s);
            std::fill(total(block, s) + begin, total(block, s) + end, 0.0);
        }
        loop_.function(pointers.data(), loop_.sizes.data(), first, last, begin, end, scratch);
        for (size_t s = 0; s < loop_.sums.size(); ++s) {
            auto* const kept = static_cast<double*>(scratch) + 2 * static_cast<int64_t>(s) * pitch_;
            if (loop_.sums[s].dtype == DType::f32)
                add_rest<float>((last - first) % kSumLeaf, kept, begin, end, total(block, s));
            else
                add_rest<double>((last - first) % kSumLeaf, kept, begin, end, total(block, s));
        }
        release(scratch, bytes);
    }
    template <class T>
    void add_rest(int64_t rows, const double* kept, int64_t begin, int64_t end, double* to) const {
        const auto *single = reinterpret_cast<const T*>(kept), *pair = reinterpret_cast<const T*>(kept + pitch_);
        for (int64_t i = begin; i < end && rows > 0; ++i)
            to[i] += static_cast<double>(rows == 1 ? single[i] : rows == 2 ? pair[i] : pair[i] + single[i]);
    }
    template <class T>
    void finish(size_t sum, T* result) const {
        for (int64_t i = 0; i < loop_.inner; ++i) {
            double all = 0;
            for (int64_t block = 0; block < blocks_; ++block) all += total(block, sum)[i];
            result[i] = static_cast<T>(all);
        }
    }

    const HostLoop& loop_;
    const std::span<void* const> operands_;
    const int64_t blocks_, room_, pitch_;
    const Tensor totals_;
};

class Loops final : public graph::Backend {
  public:
    bool can_compile() const override { return graph::can_generate(); }
    std::vector<graph::LoopRef> compile(std::span<const LoopTask> loops) override {
        static const graph::CodeTarget target{instruction_set(), &load_machine_code};
        std::vector<graph::KernelRequest> requests;
        for (const LoopTask& loop : loops) requests.push_back({loop.program});
        const std::vector<void*> kernels = find_kernels(target, requests);
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
        if (!loop.sums.empty()) return RowSums(loop, operands).run();
        if (loop.rows * inner <= loop.part) return rows(0, loop.rows);
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
