#include "core/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "core/base/error.h"
#include "core/memory/watched_memory.h"
#include "core/tensor/turned.h"
#include "core/tensor/value.h"

namespace lunaria {
namespace {

Tensor counting(const Shape& shape) {
    Tensor t = Tensor::empty(DType::f32, shape);
    for (int64_t i = 0; i < t.size(); ++i) t.set_at(i, static_cast<double>(i));
    return t;
}

TEST(Tensor, a_view_shares_storage_until_one_side_writes) {
    Tensor t = counting({2, 3});
    Tensor row = t.view({3}, {1}, 3);
    EXPECT_TRUE(row.shares_storage(t));
    EXPECT_EQ(row.at(0), 3);
    row.own_storage();
    row.set_at(0, 99);
    EXPECT_EQ(t.at(3), 3);
    EXPECT_FALSE(row.shares_storage(t));
}

TEST(Tensor, transposed_views_become_dense_on_demand) {
    Tensor t = counting({2, 3});
    Tensor v = t.view({3, 2}, {1, 3});
    EXPECT_FALSE(v.is_contiguous());
    Tensor dense = v.contiguous();
    EXPECT_TRUE(dense.is_contiguous());
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(dense.at(i), v.at(i));
    EXPECT_EQ(dense.at(1), 3);
    EXPECT_EQ(v.reshaped({6}).at(1), 3);
}

TEST(Tensor, a_turned_tensor_shows_row_major_strides_and_keeps_one_dense_copy) {
    Tensor t = turned(counting({2, 3}), {3, 2}, {1, 3});
    EXPECT_TRUE(is_turned(t));
    EXPECT_EQ(shown_strides(t), (Strides{2, 1}));
    const Tensor dense = row_major(t);
    EXPECT_FALSE(is_turned(dense));
    EXPECT_TRUE(dense.is_contiguous());
    EXPECT_TRUE(dense.shares_storage(row_major(t)));
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(dense.at(i), t.at(i));
    EXPECT_EQ(part_of(t, 0, 1).strides(), (Strides{1}));
    EXPECT_TRUE(t.reshaped({6}).is_contiguous());
    EXPECT_TRUE(is_turned(t.apart()));
    // A write to either shows in it alone.
    Tensor other = row_major(t);
    other.own_storage();
    other.set_at(0, 99);
    EXPECT_EQ(t.at(0), 0);
    EXPECT_EQ(row_major(t).at(0), 0);
    t.assign("test", Tensor::full(DType::f32, {}, 7));
    EXPECT_FALSE(is_turned(t));
    EXPECT_EQ(row_major(t).at(5), 7);
    EXPECT_EQ(dense.at(5), 5);
    // One order of axes of size 1 is as good as another.
    EXPECT_FALSE(is_turned(turned(counting({1, 3}), {3, 1}, {1, 3})));
}

TEST(Tensor, casts_saturate_into_int64_and_map_nan_to_zero) {
    Tensor t = Tensor::empty(DType::f64, {4});
    double values[] = {1e300, -1e300, std::nan(""), -2.9};
    for (int i = 0; i < 4; ++i) t.set_at(i, values[i]);
    Tensor i = t.cast(DType::i64);
    EXPECT_EQ(i.integer_at(0), std::numeric_limits<int64_t>::max());
    EXPECT_EQ(i.integer_at(1), std::numeric_limits<int64_t>::min());
    EXPECT_EQ(i.integer_at(2), 0);
    EXPECT_EQ(i.integer_at(3), -2);
    EXPECT_EQ(t.cast(DType::boolean).at(2), 1);  // NaN is not zero
}

TEST(Tensor, large_integers_stay_exact) {
    int64_t big = (int64_t{1} << 62) + 1;
    EXPECT_EQ(Tensor::scalar(big).integer_at(0), big);
}

TEST(Tensor, tensors_may_die_on_another_thread) {
    Tensor t = counting({100});
    std::thread([moved = std::move(t)]() mutable { moved = Tensor(); }).join();
}

TEST(Tensor, several_threads_count_references_to_the_same_one) {
    const Tensor t = Tensor::zeros(DType::f32, {4});
    const Value list = Value::ints(Shape{1, 2, 3});
    const Tensor before = t;  // counted while there may have been one thread only
    auto copy = [&] {
        std::vector<Tensor> tensors;
        std::vector<Value> values;
        for (int k = 0; k < 100000; ++k) {
            tensors.push_back(t);
            values.push_back(list);
            if (k % 16 == 0) {
                tensors.clear();
                values.clear();
            }
        }
    };
    std::thread first(copy), second(copy);
    copy();
    first.join();
    second.join();
    EXPECT_EQ(t.body()->refs.load(), 2);
    EXPECT_EQ(list.object()->refs.load(), 1);
}

TEST(Tensor, every_write_counts_the_version_up) {
    Tensor t = counting({4});
    uint32_t before = t.version();
    auto expect_counted = [&](const char* what) {
        EXPECT_GT(t.version(), before) << what;
        before = t.version();
    };
    t.set_at(0, 2.0);
    expect_counted("set_at");
    t.own_storage();
    expect_counted("own_storage");
    t.assign("test", counting({4}));
    expect_counted("assign");
    t.become(counting({2, 3}));
    expect_counted("become");
    t.begin_export();
    EXPECT_EQ(t.version(), before) << "it is what it was";
    t.assign("test", counting({2, 3}));
    expect_counted("assign to what is exported");
    t.own_storage();
    expect_counted("own_storage of what is exported");
    t.end_export();
    Tensor view = t.view(t.shape(), t.strides());
    EXPECT_EQ(view.version(), 0u) << "counted by body";
}

TEST(Tensor, what_is_exported_is_written_in_its_place_and_nobody_elses_view_of_it_changes) {
    Tensor t = counting({2, 3}), row = t.view({3}, {1}, 3);
    t.begin_export();
    EXPECT_FALSE(row.shares_storage(t)) << "its own from here on";
    const Tensor outside = t.view({2, 3}, {3, 1}), before = t.apart();
    EXPECT_FALSE(before.shares_storage(t));
    t.assign("test", Tensor::scalar(DType::f64, 7));
    EXPECT_EQ(outside.at(4), 7);
    t.become(counting({2, 3}));
    EXPECT_EQ(outside.at(4), 4);
    t.own_storage();
    t.set_at(5, 9);
    EXPECT_EQ(outside.at(5), 9);
    EXPECT_EQ(before.at(5), 5);
    EXPECT_EQ(row.at(2), 5);
    Tensor other = counting({6});
    other.assign("test", t.reshaped({6}));
    EXPECT_FALSE(other.shares_storage(t));
    // Another shape has no room there.
    t.become(counting({4}));
    EXPECT_FALSE(outside.shares_storage(t));
    EXPECT_EQ(outside.at(5), 9);
    outside.end_export();
    EXPECT_TRUE(outside.apart().shares_storage(outside));
}

TEST(Tensor, a_parameter_stays_one_under_every_write_and_its_copies_are_none) {
    Tensor p = counting({3});
    EXPECT_EQ(p.parameter(), nullptr);
    p.set_parameter({"w", false});
    Tensor same = p;
    p.assign("test", Tensor::scalar(DType::f32, 2.0));
    p.become(counting({2}));
    ASSERT_NE(same.parameter(), nullptr);
    EXPECT_EQ(same.parameter()->name, "w");
    EXPECT_FALSE(same.parameter()->requires_grad);
    EXPECT_EQ(same.shape(), Shape({2}));
    EXPECT_EQ(p.copy().parameter(), nullptr);
    EXPECT_EQ(p.view(p.shape(), p.strides()).parameter(), nullptr);
}

TEST(Memory, live_bytes_return_to_where_they_were) {
    int64_t before = memory_stats().live_bytes;
    {
        Tensor a = counting({1000, 10}), b = a.view({10}, {1});
        EXPECT_GE(memory_stats().live_bytes, before + 40000);
    }
    EXPECT_EQ(memory_stats().live_bytes, before);
}

TEST(Memory, huge_pages_leave_what_is_around_them) {
    constexpr size_t kBytes = 9u << 20, kAround = 5000;
    auto* block = static_cast<unsigned char*>(allocate(kBytes));
    std::fill_n(block, kBytes, 7);
    use_huge_pages(block + kAround, kBytes - 2 * kAround);
    EXPECT_EQ(std::count(block, block + kAround, 7), kAround);
    EXPECT_EQ(std::count(block + kBytes - kAround, block + kBytes, 7), kAround);
    std::fill_n(block, kBytes, 8);
    EXPECT_EQ(std::count(block, block + kBytes, 8), kBytes);
    release(block, kBytes);
}

TEST(Memory, blocks_are_aligned_and_reused) {
    for (size_t bytes : {0u, 1u, 64u, 65u, 1000u, 1025u, 40000u, 5000000u}) {
        void* block = allocate(bytes);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % kAlignment, 0u);
        release(block, bytes);
        void* again = allocate(bytes);
        // What is watched is not given out again at once.
        EXPECT_TRUE(kMemoryIsWatched || again == block) << bytes;
        release(again, bytes);
    }
}

TEST(Memory, more_than_there_is_raises_an_error_and_calls_the_pressure_handler) {
    int calls = 0;
    set_memory_pressure_handler([&] { return ++calls, false; });
    EXPECT_THROW(allocate(size_t{1} << 50), Error);
    EXPECT_EQ(calls, 1);
    set_memory_pressure_handler(nullptr);
    EXPECT_THROW(allocate(SIZE_MAX), Error);
}

TEST(Value, lists_take_over_what_they_are_made_of) {
    for (int round = 0; round < 100; ++round) {
        Tensor t = Tensor::zeros(DType::f32, {2});
        {
            std::vector<Value> items(static_cast<size_t>(round % 20));
            for (size_t k = 0; k < items.size(); ++k) items[k] = k % 3 == 0 ? Value(t) : Value(static_cast<int64_t>(k));
            const Value list = Value::list_of(items);
            ASSERT_EQ(list.items().size(), items.size());
            for (size_t k = 0; k < items.size(); ++k) {
                EXPECT_TRUE(items[k].is_nil());
                EXPECT_TRUE(k % 3 == 0 ? list.items()[k].tensor().same_body(t)
                                       : list.items()[k].integer() == static_cast<int64_t>(k));
            }
            Value outer[] = {list, Value("text"), Value::list_of({})};
            const Value nested = Value::list_of(outer);
            EXPECT_TRUE(same_value(nested.items()[0], list));
            EXPECT_TRUE(nested.items()[2].items().empty());
        }
        EXPECT_TRUE(t.is_sole_owner());
    }
}

TEST(Value, is_counted_and_compares_by_content) {
    Tensor t = counting({3});
    Value a(t), b(t.copy());
    EXPECT_TRUE(same_value(a, b));
    EXPECT_FALSE(same_value(a, Value(t.cast(DType::f64))));
    Value list = Value::list({Value(1), Value("two"), Value(2.5), Value(true), Value()});
    Value copy = list;
    EXPECT_TRUE(same_value(list, copy));
    EXPECT_EQ(to_string(list), "{1, \"two\", 2.5, true, nil}");
    EXPECT_FALSE(same_value(Value(1), Value(1.0)));
}

}  // namespace
}  // namespace lunaria
