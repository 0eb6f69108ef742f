// Loop programs (loop.h) for processors that run threads in blocks: the distribution of rows and elements over threads,
// and the words that a launch passes. Threads of a warp, 32 neighbours, may hand values to each other without memory;
// threads of a block wait for each other and share a memory of their own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/loops/loop.h"

namespace lunaria::graph {

inline constexpr int kWarp = 32;
inline constexpr int kRowThreads = 256;  // of blocks whose threads have rows of their own

// The properties on which a kernel's code depends beside its program.
struct ThreadShape {
    enum class Row : uint8_t {
        spread,  // rows share nothing: a thread takes neighbouring elements
        warp,    // a warp takes a row
        block,   // a block takes a row
    };
    Row row = Row::spread;
    int threads = 0;          // of a block that takes a row
    int lanes = 1;            // neighbouring elements that a thread loads at a time, from addresses that are multiples
    bool narrow = false;      // all counts fit 31 bits
    bool single_row = false;  // there is one row
    bool near_scratch = false;  // values that are kept from pass to pass lie in the memory of the block
    bool in_chunks = false;     // rows that add up are cut into several chunks with sums of their own
    std::string text() const;
};

// The parameters of a launch. The kernel reads 8-byte words in this order: the operands' addresses, `words`, the
// address of the scratch memory, and for each operand that rows add to the distance in bytes between the sums of two
// chunks.
struct ThreadLaunch {
    ThreadShape shape;
    int64_t blocks = 1;
    int threads = 1;               // of a block
    std::vector<int64_t> words{};  // sizes and strides of the program, then counts of items of work
    size_t near_bytes = 0;         // memory of a block
    size_t scratch_bytes = 0;      // memory of the launch, 0 with near_scratch
    int64_t chunks = 1;            // number of copies that each operand that rows add to must have
};

struct ThreadLimits {
    int64_t most_blocks = 2048;
    size_t most_near_bytes = size_t{48} << 10;
};

// `sizes` as in LoopTask (core/loops/graph_backend.h); `addresses` of the operands, or their known lowest bits.
ThreadLaunch plan_threads(const LoopProgram& program, std::span<const int64_t> sizes, int64_t rows,
                          std::span<const uintptr_t> addresses, const ThreadLimits& limits = {});

// Adds up the chunks of an operand of this dtype: one row per chunk.
LoopProgram sum_of_chunks(DType dtype);

// One thread of a kernel that is compiled for the host instead, for tests without a device; the members replace the
// operations of the device. A kernel is then a function of its words and of this object.
struct EmulatedThread {
    int32_t thread = 0, threads = 1, block = 0, blocks = 1;
    void (*barrier)(EmulatedThread*) = nullptr;
    // The value of the thread of the same warp whose number differs by these bits.
    uint64_t (*exchange)(EmulatedThread*, uint64_t value, int32_t bits) = nullptr;
    // Product of the whole warp: fragments (thread_program.h) of the two factors, and of the sums that it is added to.
    void (*product)(EmulatedThread*, const uint32_t* factors, float* sums, int32_t is_bfloat) = nullptr;
    void* reduction = nullptr;  // of the block: kWarp words of 8 bytes
    void* near = nullptr;       // of the block: near_bytes
};
using EmulatedKernel = void (*)(const void* words, EmulatedThread* thread);

}  // namespace lunaria::graph
