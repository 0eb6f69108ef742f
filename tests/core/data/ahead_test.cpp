// Rows that come next are brought to a device by the threads that make rows, a few at a time.
#include "core/data/ahead.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "core/data/batch.h"
#include "core/data/operations.h"
#include "core/data/records.h"
#include "core/tensor/device.h"

namespace lunaria::data {
namespace {

// Memory of its own, which records the threads that copied into it.
class Distant final : public Device {
  public:
    std::string_view name() const override { return "Distant"; }
    void* allocate(size_t bytes) override {
        const std::lock_guard lock(mutex_);
        if (allocations_ == fails_at) throw memory_error(name(), "full");
        ++allocations_;
        most_ = std::max(most_, ++live_);
        return std::malloc(std::max<size_t>(bytes, 1));
    }
    void release(void* block, size_t) noexcept override {
        const std::lock_guard lock(mutex_);
        --live_;
        std::free(block);
    }
    void copy_from_host(void* device, const void* host, size_t bytes) override {
        const std::lock_guard lock(mutex_);
        std::memcpy(device, host, bytes);
        threads_.insert(std::this_thread::get_id());
    }
    void copy_to_host(void* host, const void* device, size_t bytes) override { std::memcpy(host, device, bytes); }
    void copy_elements(const Tensor&, const Tensor&) override { ADD_FAILURE() << "nothing is copied on the device"; }
    std::span<const Kernel> kernels(const Op&) const override { return {}; }
    DeviceMemory memory() const override { return {}; }
    void reset_peak_memory() override {}
    void empty_cache() override {}

    int live() {
        const std::lock_guard lock(mutex_);
        return live_;
    }
    int most() {
        const std::lock_guard lock(mutex_);
        return most_;
    }
    bool is_used_by_others() {
        const std::lock_guard lock(mutex_);
        return threads_.size() > threads_.count(std::this_thread::get_id());
    }

    int fails_at = -1;

  private:
    std::mutex mutex_;
    std::set<std::thread::id> threads_;
    int live_ = 0, most_ = 0, allocations_ = 0;
};

Epoch epoch_for(Device& device) {
    Epoch epoch;
    epoch.workers = 2;
    epoch.prefetch = 8;
    epoch.device = &device;
    return epoch;
}

NodePtr batches() { return batch(source(range_records("x", 120), random_sampler(false, {}, 7)), {4, false, {}}); }

TEST(AheadTest, RowsAreBroughtToADeviceBeforeTheirTurn) {
    Distant device;
    const NodePtr node = batches();
    auto plain = node->open({});
    auto cursor = ahead(node->open(epoch_for(device)), *node, epoch_for(device));
    int brought = 0, count = 0;
    for (Row row, expected; cursor->next(row); ++count) {
        ASSERT_TRUE(plain->next(expected));
        brought += row[0].tensor().device() == &device;
        const Tensor back = row[0].tensor().to(nullptr);
        for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(back.integer_at(i), expected[0].tensor().integer_at(i));
        // The next one comes while this one is in use; a thread that is late must not fail the test.
        for (int wait = 0; wait < 500 && count < 25 && device.live() < 2; ++wait)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(count, 30);
    EXPECT_GT(brought, 15);
    EXPECT_TRUE(device.is_used_by_others());
    // The one in use and those that come next, not the whole ring of 16.
    EXPECT_LE(device.most(), 4);
    cursor.reset();
    EXPECT_EQ(device.live(), 0);
}

TEST(AheadTest, AFullDeviceIsAnErrorInTheRowsTurn) {
    Distant device;
    device.fails_at = 3;
    const NodePtr node = batches();
    auto cursor = ahead(node->open(epoch_for(device)), *node, epoch_for(device));
    int count = 0;
    const auto all = [&] {
        for (Row row; cursor->next(row); ++count) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    };
    EXPECT_THROW(all(), Error);
    EXPECT_GE(count, 3);
    EXPECT_THROW(all(), Error);
}

}  // namespace
}  // namespace lunaria::data
