#include "core/memory/memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <thread>
#include <vector>

#include "core/memory/watched_memory.h"

using namespace lunaria;

namespace {

int64_t live() { return memory_stats().live_bytes; }

// Bytes of this process that are in memory.
int64_t resident() {
    std::ifstream file("/proc/self/statm");
    int64_t whole = 0, pages = 0;
    file >> whole >> pages;
    return pages * 4096;
}

}  // namespace

TEST(Memory, BlocksOfEverySizeAreAlignedApartAndLargeEnough) {
    struct Block {
        unsigned char* address;
        size_t bytes;
    };
    std::vector<Block> blocks;
    const int64_t before = live();
    for (size_t bytes = 1; bytes < 300'000; bytes += 1 + bytes / 23)
        for (size_t near : {bytes, bytes + 1}) blocks.push_back({static_cast<unsigned char*>(allocate(near)), near});
    for (size_t i = 0; i < blocks.size(); ++i) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks[i].address) % kAlignment, 0u);
        std::memset(blocks[i].address, static_cast<int>(i % 251), blocks[i].bytes);
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
        EXPECT_EQ(blocks[i].address[0], i % 251);
        EXPECT_EQ(blocks[i].address[blocks[i].bytes - 1], i % 251);
    }
    for (const Block& block : blocks) release(block.address, block.bytes);
    EXPECT_EQ(live(), before);
    empty_memory_cache();
}

TEST(Memory, ABlockComesBackForTheNextOneOfItsSize) {
    if (kMemoryIsWatched) GTEST_SKIP() << "blocks are watched, none is kept";
    for (size_t bytes : {100u, 5'000u, 40'000u, 65'536u, 131'072u, 200'000u}) {
        void* first = allocate(bytes);
        release(first, bytes);
        void* second = allocate(bytes);
        EXPECT_EQ(second, first) << bytes;
        release(second, bytes);
    }
}

TEST(Memory, CountsAreExactWhenThreadsHandBlocksToEachOther) {
    const MemoryStats before = memory_stats();
    constexpr int kBlocks = 1000;
    constexpr size_t kBytes = 1024;
    std::vector<void*> blocks;
    std::thread([&] {
        for (int i = 0; i < kBlocks; ++i) blocks.push_back(allocate(kBytes));
    }).join();
    EXPECT_EQ(live() - before.live_bytes, int64_t{kBlocks * kBytes});
    for (void* block : blocks) release(block, kBytes);
    EXPECT_EQ(live(), before.live_bytes);
    EXPECT_EQ(memory_stats().allocations - before.allocations, kBlocks);
}

TEST(Memory, ThePeakIsThatOfAllThreadsTogether) {
    constexpr size_t kBytes = 1 << 20;
    void* mine = allocate(kBytes);
    reset_peak_memory();
    const int64_t start = memory_stats().peak_bytes;
    EXPECT_EQ(start, live());
    std::promise<void> allocated, seen;
    std::thread other([&] {
        void* block = allocate(kBytes);
        allocated.set_value();
        seen.get_future().wait();
        release(block, kBytes);
    });
    allocated.get_future().wait();
    EXPECT_EQ(memory_stats().peak_bytes, start + int64_t{kBytes});
    seen.set_value();
    other.join();
    EXPECT_EQ(memory_stats().peak_bytes, start + int64_t{kBytes});
    release(allocate(3 * kBytes), 3 * kBytes);
    EXPECT_EQ(memory_stats().peak_bytes, start + 3 * int64_t{kBytes});
    reset_peak_memory();
    EXPECT_EQ(memory_stats().peak_bytes, start);
    // After a reset a lower top counts again.
    release(allocate(kBytes), kBytes);
    EXPECT_EQ(memory_stats().peak_bytes, start + int64_t{kBytes});
    release(mine, kBytes);
}

TEST(Memory, AddressSanitizerSeesUsesBehindABlockAndAfterItsEnd) {
    if (!kMemoryIsWatched) GTEST_SKIP() << "not built with AddressSanitizer";
    for (size_t bytes : {1u, 60u, 5'000u, 40'000u, 200'000u, 3'000'000u}) {
        volatile auto* block = static_cast<unsigned char*>(allocate(bytes));
        EXPECT_DEATH(block[bytes] = 1, "buffer-overflow") << bytes;
        release(const_cast<unsigned char*>(block), bytes);
        EXPECT_DEATH(block[0] = 1, "use-after-free") << bytes;
    }
}

TEST(Memory, FreedBlocksOfMiddleSizeAreKeptOnlyUpToAFewMegabytes) {
    if (kMemoryIsWatched) GTEST_SKIP() << "blocks are watched, none is kept";
    empty_memory_cache();
    constexpr size_t kBytes = 100'000;
    std::vector<void*> blocks;
    for (int i = 0; i < 200; ++i) blocks.push_back(allocate(kBytes));
    for (void* block : blocks) release(block, kBytes);
    // The rest is in the shared list, which counts as cached and gives everything back.
    EXPECT_GT(memory_stats().cached_bytes, 10 << 20);
    empty_memory_cache();
    EXPECT_EQ(memory_stats().cached_bytes, 0);
}

// As batches are, which one thread makes between its small blocks, and another gives back.
TEST(Memory, BlocksOfAnotherThreadLeaveNoHolesBetweenItsSmallOnes) {
    if (kMemoryIsWatched) GTEST_SKIP() << "blocks are watched, none is kept";
    constexpr size_t kBytes = 100'000, kSmall = 3000;
    constexpr int kCount = 400;
    empty_memory_cache();
    const int64_t before = resident();
    std::vector<void*> blocks, small;
    std::thread maker([&] {
        for (int i = 0; i < kCount; ++i) {
            blocks.push_back(std::memset(allocate(kBytes), 1, kBytes));
            small.push_back(std::memset(allocate(kSmall), 1, kSmall));
        }
    });
    maker.join();
    EXPECT_GT(resident() - before, 35 << 20);
    for (void* block : blocks) release(block, kBytes);
    empty_memory_cache();
    EXPECT_LT(resident() - before, 8 << 20);
    for (void* block : small) release(block, kSmall);
}

TEST(Memory, WhatALoopTakesAndGivesBackInOneGoIsKeptUntilItTakesLess) {
    if (kMemoryIsWatched) GTEST_SKIP() << "blocks are watched, none is kept";
    empty_memory_cache();
    constexpr size_t kBytes = 16 << 20;
    auto turn = [](int count) {
        std::vector<void*> blocks;
        for (int i = 0; i < count; ++i) blocks.push_back(allocate(kBytes));
        for (void* block : blocks) release(block, kBytes);
    };
    auto cached = [] { return memory_stats().cached_bytes / static_cast<int64_t>(kBytes); };
    turn(8);
    EXPECT_EQ(cached(), 8);
    turn(8);
    EXPECT_EQ(cached(), 8);
    for (int i = 0; i < 100; ++i) turn(1);
    EXPECT_EQ(cached(), 3);
    turn(8);
    trim_memory_cache();
    EXPECT_EQ(cached(), 3);
    empty_memory_cache();
}

namespace {

// Takes what memory this process can have, to the last small block.
void use_up_memory() {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_AS, &none);
    for (size_t bytes = size_t{1} << 20; bytes >= 16; bytes /= 2)
        while (std::malloc(bytes)) continue;
}

void release_without_memory() {
    std::vector<std::pair<void*, size_t>> blocks;
    const int64_t before = live();
    for (size_t i = 0; i < 400; ++i)
        for (size_t bytes : {40'000 + 3'000 * i, 200'000 + 20'000 * i}) blocks.emplace_back(allocate(bytes), bytes);
    use_up_memory();
    // Every second one first, which has no neighbour that is free.
    for (size_t first : {0u, 1u})
        for (size_t i = first; i < blocks.size(); i += 2) release(blocks[i].first, blocks[i].second);
    void* again = allocate(300'000);
    release(again, 300'000);
    std::_Exit(live() == before ? 0 : 2);
}

}  // namespace

TEST(MemoryDeathTest, GivingBackTakesNoMemory) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
    GTEST_SKIP() << "the sanitizer itself needs memory";
#endif
#endif
    if (kMemoryIsWatched) GTEST_SKIP() << "the sanitizer itself needs memory";
    EXPECT_EXIT(release_without_memory(), testing::ExitedWithCode(0), "");
}
