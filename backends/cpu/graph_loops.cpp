#include "backends/cpu/graph_loops.h"

#include <algorithm>
#include <cstring>

#include "core/memory.h"
#include "core/tensor.h"
#include "core/threads.h"

namespace lunaria::cpu {

namespace {

using graph::LoopLaunch;

template <class T>
void add_row(T* sum, const T* row, int64_t count) {
    for (int64_t i = 0; i < count; ++i) sum[i] += row[i];
}

// The first group adds up in the results, the others in memory of their own, which is added to them in order.
void run_row_groups(const LoopLaunch& loop) {
    // In whole lines of the cache: threads write to different ones.
    auto bytes_of_row = [&](const LoopLaunch::Sum& sum) {
        return (static_cast<size_t>(loop.inner) * size_of(sum.dtype) + 63) / 64 * 64;
    };
    size_t bytes = 0;
    for (const LoopLaunch::Sum& sum : loop.sums) bytes += bytes_of_row(sum);
    const auto others = static_cast<size_t>(loop.row_groups - 1);
    const Tensor memory = Tensor::empty(DType::u8, Shape{static_cast<int64_t>(bytes * others)});
    char* const partial = memory.data<char>();
    std::memset(partial, 0, bytes * others);
    parallel_for(loop.row_groups, 1, [&](int64_t begin, int64_t end) {
        for (int64_t group = begin; group < end; ++group) {
            std::vector<void*> pointers = loop.pointers;
            size_t at = static_cast<size_t>(group - 1) * bytes;
            for (const LoopLaunch::Sum& sum : loop.sums) {
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
        for (const LoopLaunch::Sum& sum : loop.sums) {
            void* const total = loop.pointers[sum.operand];
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
    void launch(const LoopLaunch& loop) override {
        void* const* pointers = loop.pointers.data();
        const int64_t* sizes = loop.sizes.data();
        const int64_t inner = loop.inner;
        auto rows = [&](int64_t begin, int64_t end) {
            void* scratch = loop.scratch ? allocate(loop.scratch) : nullptr;
            loop.function(pointers, sizes, begin, end, 0, inner, scratch);
            if (scratch) release(scratch, loop.scratch);
        };
        if (loop.row_groups > 1) return run_row_groups(loop);
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
