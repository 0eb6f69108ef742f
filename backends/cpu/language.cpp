// CPU kernels: weights in blocks, and attention to a cache of keys and values.
#include <omp.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <vector>

#include "backends/cpu/language.h"

#include "backends/cpu/blas.h"
#include "backends/cpu/elementwise.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/row_loops.h"
#include "backends/cpu/simd/block_loops.h"
#include "core/lite/kernels/product.h"
#include "core/operator/op.h"
#include "core/tensor/blocks.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

// Blocks that are worth a thread of their own.
constexpr int64_t kBlocksAtOnce = 256;

bool dequantize(const KernelCall& c) {
    const BlockForm& form = *find_block_form(c.args[1].string());
    const uint8_t* from = c.tensor(0).data<uint8_t>();
    float* to = c.out[0].data<float>();
    parallel_for(c.out[0].size() / form.elements, kBlocksAtOnce, [&](int64_t begin, int64_t end) {
        form.decode(from + begin * form.bytes, end - begin, to + begin * form.elements);
    });
    return true;
}

bool quantize(const KernelCall& c) {
    const BlockForm& form = *find_block_form(c.args[1].string());
    const Tensor x = c.tensor(0).cast(DType::f32).contiguous();
    const float* from = x.data<float>();
    uint8_t* to = c.out[0].data<uint8_t>();
    parallel_for(x.size() / form.elements, kBlocksAtOnce, [&](int64_t begin, int64_t end) {
        form.encode(from + begin * form.elements, end - begin, to + begin * form.bytes);
    });
    return true;
}

// Decodes some of the weight's rows at a time, which then are in a near cache, and multiplies by them.
template <class T>
bool block_dense(const KernelCall& c) {
    const BlockForm& form = *find_block_form(c.args[2].string());
    const Tensor &x = c.tensor(0), &weight = c.tensor(1), &out = c.out[0];
    const int64_t outputs = weight.dim(0), inputs = x.dim(x.rank() - 1), row_bytes = weight.dim(1);
    if (out.size() == 0) return true;
    const int64_t rows = out.size() / outputs;
    const T* bias = c.has(3) ? c.tensor(3).data<T>() : nullptr;
    constexpr int64_t kTile = 32;
    const int64_t part = std::max<int64_t>(1, (int64_t{1} << 16) / (inputs * kTile * std::min<int64_t>(rows, 8) + 1));
    parallel_for((outputs + kTile - 1) / kTile, part, [&](int64_t from, int64_t to) {
        std::vector<float> decoded(static_cast<size_t>(kTile * inputs));
        std::vector<T> numbers(decoded.size()), result(static_cast<size_t>(rows * kTile));
        for (int64_t tile = from; tile < to; ++tile) {
            const int64_t begin = tile * kTile, count = std::min(kTile, outputs - begin);
            form.decode(weight.data<uint8_t>() + begin * row_bytes, count * inputs / form.elements, decoded.data());
            std::copy_n(decoded.data(), count * inputs, numbers.data());
            gemm<T>({x.data<T>(), rows, inputs, inputs, 1},
                    MatrixRef<T>{numbers.data(), count, inputs, inputs, 1}.transposed(), result.data(), T(0));
            for (int64_t i = 0; i < rows; ++i)
                for (int64_t j = 0; j < count; ++j)
                    out.data<T>()[i * outputs + begin + j] =
                        result[static_cast<size_t>(i * count + j)] + (bias ? bias[begin + j] : T(0));
        }
    });
    return true;
}

// The threads of parallel_for for kernels of the light library, through which nothing may be thrown.
class Threads {
  public:
    lite::kernels::Workers workers() { return {run, this, num_threads()}; }
    void rethrow() const {
        if (error_) std::rethrow_exception(error_);
    }

  private:
    static void run(void* pool, int64_t count, lite::kernels::Workers::Task task, void* closure) {
        try {
            parallel_for(count, 1, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) task(closure, i, omp_get_thread_num());
            });
        } catch (...) {
            static_cast<Threads*>(pool)->error_ = std::current_exception();
        }
    }
    std::exception_ptr error_;
};

// Large products by blocks in place, with the input's rows rounded to blocks of 8 bits: the sums of a block are those
// of integers, and the speed of a single row is that of memory.
bool product_of_blocks(const KernelCall& c) {
    namespace kernels = lite::kernels;
    const std::string& form = c.args[2].string();
    const Tensor &x = c.tensor(0), &weight = c.tensor(1), &out = c.out[0];
    // Less is done in no time, and then exactly.
    constexpr int64_t kFewest = 16384;
    if (c.dtype != DType::f32 || (form != "q8_0" && form != "q4_0") || weight.size() < kFewest) return false;
    kernels::Product p;
    p.n = weight.dim(0);
    p.k = x.dim(x.rank() - 1);
    p.m = out.size() / p.n;
    if (p.m == 0) return true;
    p.a = x.data<float>();
    p.a_row = p.k;
    p.b = weight.raw();
    p.type = form == "q8_0" ? kernels::WeightType::q8_0 : kernels::WeightType::q4_0;
    p.c = out.data<float>();
    p.c_row = p.n;
    if (c.has(3)) p.epilogue.bias = c.tensor(3).data<float>();
    Threads threads;
    // Other threads are woken for what takes longer than the waking.
    constexpr int64_t kWorthWaking = int64_t{1} << 18;
    const auto bytes = static_cast<int64_t>(weight.nbytes());
    const kernels::Workers workers = p.m * bytes < kWorthWaking ? kernels::Workers{} : threads.workers();
    const Tensor scratch = Tensor::empty(DType::u8, {std::max<int64_t>(1, product_scratch(p, workers.workers))});
    kernels::product(kernels::best_isa(), p, scratch.raw(), workers);
    threads.rethrow();
    return true;
}

const BlockLoops& block_loops() {
    const Isa isa = current_isa();
    return isa == Isa::avx512 ? avx512::block_loops : isa == Isa::avx2 ? avx2::block_loops : v2::block_loops;
}

// The same for a few rows and weights in blocks of 256; many rows are worth decoding the weights.
bool product_of_long_blocks(const KernelCall& c) {
    const std::string& form = c.args[2].string();
    const Tensor &x = c.tensor(0), &weight = c.tensor(1), &out = c.out[0];
    constexpr int64_t kFewest = 16384, kMostRows = 8;
    if (c.dtype != DType::f32 || (form != "q4_k" && form != "q6_k") || weight.size() < kFewest) return false;
    const int64_t outputs = weight.dim(0), inputs = x.dim(x.rank() - 1), rows = out.size() / outputs;
    if (rows > kMostRows) return false;
    const int64_t blocks = inputs / kLongBlock, row_bytes = weight.dim(1);
    const BlockLoops& loops = block_loops();
    const auto multiply = form == "q4_k" ? loops.q4_k : loops.q6_k;
    const float* bias = c.has(3) ? c.tensor(3).data<float>() : nullptr;
    std::vector<int8_t> numbers(static_cast<size_t>(inputs));
    std::vector<int16_t> sums(static_cast<size_t>(inputs / kSummed));
    std::vector<float> scales(static_cast<size_t>(blocks));
    const RoundedRow rounded{numbers.data(), sums.data(), scales.data()};
    for (int64_t r = 0; r < rows; ++r) {
        loops.round(x.data<float>() + r * inputs, blocks, rounded);
        float* to = out.data<float>() + r * outputs;
        parallel_for(outputs, std::max<int64_t>(1, (int64_t{1} << 17) / row_bytes), [&](int64_t begin, int64_t end) {
            multiply(weight.data<uint8_t>() + begin * row_bytes, end - begin, blocks, rounded, to + begin);
            for (int64_t j = begin; bias && j < end; ++j) to[j] += bias[j];
        });
    }
    return true;
}

bool block_product(const KernelCall& c) {
    return with_real(c.dtype, [&](auto zero) { return block_dense<decltype(zero)>(c); });
}

// The queries of a group of heads that share keys and values, some of their rows at a time: row r is the query
// r % length of a head.
template <class T>
bool cache_attention(const KernelCall& c) {
    const Tensor &query = c.tensor(0), &key = c.tensor(1), &value = c.tensor(2), &out = c.out[0];
    if (out.size() == 0) return true;
    const int64_t heads = key.dim(0) * key.dim(1), group = query.dim(1) / key.dim(1), length = query.dim(2);
    const int64_t size = query.dim(3), places = key.dim(2), columns = value.dim(3), rows = group * length;
    const int64_t first = c.tensor(3).integer_at(0);
    if (first < 0 || first > places - length)
        throw index_error(c.op.name(), str(length, " places from ", first, " on are outside of a cache of ", places));
    constexpr int64_t kRows = 32;
    const int64_t parts = (rows + kRows - 1) / kRows, most = first + length;
    const T scale = static_cast<T>(c.args[4].number());
    const int64_t work = std::min(rows, kRows) * most * (size + columns) / 8;
    parallel_for(heads * parts, worthwhile_rows(work), [&](int64_t from, int64_t to) {
        std::vector<T> scaled(static_cast<size_t>(kRows * size)), weights(static_cast<size_t>(kRows * most));
        for (int64_t item = from; item < to; ++item) {
            const int64_t head = item / parts, begin = item % parts * kRows, count = std::min(kRows, rows - begin);
            const T* q = query.data<T>() + (head * rows + begin) * size;
            for (int64_t i = 0; i < count * size; ++i) scaled[static_cast<size_t>(i)] = q[i] * scale;
            int64_t seen = 0;
            for (int64_t i = 0; i < count; ++i) seen = std::max(seen, first + (begin + i) % length + 1);
            const MatrixRef<T> keys{key.data<T>() + head * places * size, seen, size, size, 1};
            gemm<T>({scaled.data(), count, size, size, 1}, keys.transposed(), weights.data(), T(0));
            for (int64_t i = 0; i < count; ++i) {
                T* row = weights.data() + i * seen;
                std::fill(row + first + (begin + i) % length + 1, row + seen, -std::numeric_limits<T>::infinity());
                softmax_loops<T>().softmax(row, row, seen);
            }
            gemm<T>({weights.data(), count, seen, seen, 1},
                    {value.data<T>() + head * places * columns, seen, columns, columns, 1},
                    out.data<T>() + (head * rows + begin) * columns, T(0));
        }
    });
    return true;
}

bool attend_to_cache(const KernelCall& c) {
    return with_real(c.dtype, [&](auto zero) { return cache_attention<decltype(zero)>(c); });
}

}  // namespace

void add_language_kernels(KernelTable& table) {
    table.plain("dequantize_blocks", dequantize);
    table.plain("quantize_blocks", quantize);
    table.fast("block_dense", product_of_blocks);
    table.fast("block_dense", product_of_long_blocks);
    table.fast("block_dense", block_product);
    table.fast("cache_attention", attend_to_cache);
}

}  // namespace lunaria::cpu
