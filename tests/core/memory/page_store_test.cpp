#include "core/memory/page_store.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "core/memory/memory.h"

using namespace lunaria;

namespace {

constexpr size_t kPage = PageStore::kPage;

class PageStoreTest : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!store.is_there()) GTEST_SKIP() << "no range of addresses for it";
    }
    PageStore store;
};

TEST_F(PageStoreTest, what_was_given_back_in_pieces_is_one_block) {
    char* blocks[3];
    for (char*& block : blocks) block = static_cast<char*>(store.take_fresh(4 * kPage));
    EXPECT_EQ(store.take(kPage), nullptr);
    for (int i : {0, 2, 1}) store.give_back(blocks[i], 4 * kPage);
    EXPECT_EQ(store.kept(), 12 * kPage);
    EXPECT_EQ(store.take(12 * kPage), blocks[0]);
    EXPECT_EQ(store.kept(), 0u);
}

TEST_F(PageStoreTest, the_smallest_range_that_is_large_enough_is_taken) {
    auto* large = static_cast<char*>(store.take_fresh(8 * kPage));
    store.take_fresh(kPage);
    auto* small = static_cast<char*>(store.take_fresh(2 * kPage));
    store.take_fresh(kPage);
    store.give_back(large, 8 * kPage);
    store.give_back(small, 2 * kPage);
    EXPECT_EQ(store.take(2 * kPage), small);
    EXPECT_EQ(store.take(3 * kPage), large);
    EXPECT_EQ(store.take(5 * kPage), large + 3 * kPage);
}

TEST_F(PageStoreTest, dropped_pages_go_to_the_system_and_their_addresses_come_back) {
    auto* block = static_cast<char*>(store.take_fresh(8 * kPage));
    std::memset(block, 1, 8 * kPage);
    store.give_back(block, 8 * kPage);
    store.drop(3 * kPage);
    EXPECT_EQ(store.kept(), 3 * kPage);
    EXPECT_EQ(store.take(4 * kPage), nullptr);
    auto* fresh = static_cast<char*>(store.take_fresh(5 * kPage));
    EXPECT_EQ(fresh, block + 3 * kPage);
    EXPECT_EQ(fresh[0], 0);
    EXPECT_EQ(store.take(3 * kPage), block);
    EXPECT_EQ(block[0], 1);
}

TEST_F(PageStoreTest, living_blocks_never_overlap) {
    std::mt19937 random(7);
    std::map<char*, size_t> living;
    for (int i = 0; i < 5000; ++i) {
        if (living.size() > 40 || (!living.empty() && random() % 3 == 0)) {
            auto it = std::next(living.begin(), static_cast<ptrdiff_t>(random() % living.size()));
            store.give_back(it->first, it->second);
            living.erase(it);
        } else {
            const size_t size = (1 + random() % 30) * kPage;
            void* block = store.take(size);
            if (!block) block = store.take_fresh(size);
            ASSERT_TRUE(block && store.owns(block));
            auto [at, added] = living.emplace(static_cast<char*>(block), size);
            ASSERT_TRUE(added);
            if (at != living.begin()) {
                ASSERT_LE(std::prev(at)->first + std::prev(at)->second, at->first);
            }
            if (std::next(at) != living.end()) {
                ASSERT_LE(at->first + size, std::next(at)->first);
            }
        }
        if (i % 500 == 0) store.drop(20 * kPage);
    }
}

TEST(Memory, FreedMemoryServesBlocksOfOtherSizes) {
    empty_memory_cache();
    if (!PageStore().is_there()) GTEST_SKIP() << "no range of addresses for it";
    constexpr size_t kBytes = 1 << 20;
    void* whole = allocate(8 * kBytes);
    release(whole, 8 * kBytes);
    const int64_t cached = memory_stats().cached_bytes;
    EXPECT_EQ(cached, int64_t{8 * kBytes});
    void* blocks[8];
    for (void*& block : blocks) block = allocate(kBytes);
    EXPECT_EQ(memory_stats().cached_bytes, 0);
    for (void* block : blocks) release(block, kBytes);
    EXPECT_EQ(memory_stats().cached_bytes, cached);
    EXPECT_EQ(allocate(8 * kBytes), whole);
    release(whole, 8 * kBytes);
    empty_memory_cache();
    EXPECT_EQ(memory_stats().cached_bytes, 0);
}

}  // namespace
