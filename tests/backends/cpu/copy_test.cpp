#include "backends/cpu/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/random/random.h"

namespace lunaria::cpu {
namespace {

Tensor noise(DType dtype, const Shape& shape) {
    Tensor t = Tensor::empty(dtype, shape);
    auto* bytes = static_cast<unsigned char*>(t.raw());
    for (size_t i = 0; i < t.nbytes(); ++i) bytes[i] = static_cast<unsigned char>(philox(1, i, 2)[0]);
    return t;
}

// Both copies give the same bytes.
void expect_same_copy(const Tensor& source, const Tensor& target, const std::string& what) {
    Tensor a = target, b = target.view(target.shape(), target.strides());
    size_t bytes = target.body()->storage->bytes;
    auto* storage = static_cast<unsigned char*>(target.body()->storage->data);
    std::memset(storage, 7, bytes);
    plain_copy_elements(source, a);
    std::vector<unsigned char> want(storage, storage + bytes);
    std::memset(storage, 7, bytes);
    ASSERT_TRUE(fast_copy(source, b)) << what;
    ASSERT_EQ(std::memcmp(want.data(), storage, bytes), 0) << what;
}

class Copy : public ::testing::TestWithParam<Isa> {
  protected:
    void SetUp() override {
        before_ = current_isa();
        if (!isa_available(GetParam())) GTEST_SKIP() << "the processor lacks " << name_of(GetParam());
        set_isa(GetParam());
    }
    void TearDown() override { set_isa(before_); }
    Isa before_ = Isa::v2;
};

TEST_P(Copy, of_any_order_of_axes_equals_the_plain_copy) {
    for (DType dtype : {DType::u8, DType::bf16, DType::f32, DType::f64}) {
        for (Shape shape : {Shape{1, 1, 1}, Shape{2, 3, 5}, Shape{17, 33, 4}, Shape{3, 64, 48}, Shape{130, 1, 150},
                            Shape{2, 160, 144}}) {
            Tensor x = noise(dtype, shape);
            int order[3] = {0, 1, 2};
            do {
                Shape permuted;
                Strides strides;
                for (int k : order) {
                    permuted.push_back(shape[k]);
                    strides.push_back(x.strides()[k]);
                }
                std::string what = str(name_of(dtype), shape, " as ", permuted);
                expect_same_copy(x.view(permuted, strides), Tensor::empty(dtype, permuted), what);
                // And the other way round: into a view.
                Tensor target = Tensor::empty(dtype, shape);
                expect_same_copy(noise(dtype, permuted), target.view(permuted, strides), "into " + what);
            } while (std::next_permutation(order, order + 3));
        }
    }
}

TEST_P(Copy, of_steps_repeats_and_reversals_equals_the_plain_copy) {
    Tensor x = noise(DType::f32, {12, 20});
    expect_same_copy(x.view({6, 5}, {40, 4}, 3), Tensor::empty(DType::f32, {6, 5}), "steps");
    expect_same_copy(x.view({12, 20}, {20, -1}, 19), Tensor::empty(DType::f32, {12, 20}), "columns reversed");
    expect_same_copy(x.view({12, 20}, {-20, 1}, 220), Tensor::empty(DType::f32, {12, 20}), "rows reversed");
    expect_same_copy(x.view({9, 20}, {0, 1}), Tensor::empty(DType::f32, {9, 20}), "one row repeated");
    expect_same_copy(x.view({12, 9}, {20, 0}), Tensor::empty(DType::f32, {12, 9}), "one column repeated");
    expect_same_copy(x.view({100000}, {0}), Tensor::empty(DType::f32, {100000}), "one element repeated");
    Tensor wide = Tensor::empty(DType::f32, {12, 50});
    expect_same_copy(x, wide.view({12, 20}, {50, 2}, 5), "into every second column");
    expect_same_copy(noise(DType::f32, {240}), wide.view({12, 20}, {50, 1}), "a flat tensor into a block");
}

// Pieces of a few elements, up to the last byte of the source, and rows that are repeated in place.
TEST_P(Copy, of_short_rows_equals_the_plain_copy) {
    for (DType dtype : {DType::u8, DType::bf16, DType::f32, DType::f64})
        for (int64_t rows : {1, 2, 7, 37, 64, 512})
            for (int64_t width : {1, 2, 3, 4, 5, 6, 7, 9, 13, 24, 31}) {
                const std::string what = str(name_of(dtype), ' ', rows, " rows of ", width);
                Tensor wide = noise(dtype, {rows, width + 2}), x = noise(dtype, {rows, width});
                expect_same_copy(wide.view({rows, width}, {width + 2, 1}, 2), Tensor::empty(dtype, {rows, width}),
                                 what);
                for (int64_t times : {2, 5, 9})
                    expect_same_copy(x.view({rows, times, width}, {width, 0, 1}),
                                     Tensor::empty(dtype, {rows, times, width}), str(what, ", each ", times, " times"));
                Tensor gaps = Tensor::empty(dtype, {rows, width + 1});
                expect_same_copy(x, gaps.view({rows, width}, {width + 1, 1}, 1), "into gaps: " + what);
            }
}

TEST_P(Copy, of_every_other_element_equals_the_plain_copy) {
    for (DType dtype : {DType::u8, DType::bf16, DType::f32, DType::f64})
        for (int64_t count : {5, 31, 32, 33, 64, 100, 1000}) {
            // Nothing lies behind the last one.
            Tensor x = noise(dtype, {3, 2 * count - 1});
            expect_same_copy(x.view({3, count}, {2 * count - 1, 2}), Tensor::empty(dtype, {3, count}),
                             str(name_of(dtype), ' ', count));
        }
}

TEST_P(Copy, converts_strided_tensors) {
    Tensor x = Tensor::empty(DType::f32, {40, 30});
    for (int64_t i = 0; i < x.size(); ++i) x.set_at(i, 0.37 * static_cast<double>(i) - 100);
    for (DType to : {DType::f64, DType::f16, DType::bf16, DType::i64, DType::boolean}) {
        Tensor turned = x.view({30, 40}, {1, 30}), want = Tensor::empty(to, {30, 40}),
               got = Tensor::empty(to, {30, 40});
        plain_copy_elements(turned, want);
        copy_elements(turned, got);
        if (fast_copy(turned, got)) {
            EXPECT_EQ(std::memcmp(want.raw(), got.raw(), want.nbytes()), 0) << name_of(to);
        }
    }
}

// Everything from what no integer holds to what the narrowest one does, alone among others and in blocks of its like.
TEST_P(Copy, between_all_dtypes_equals_the_plain_copy) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    const double special[] = {0.0,    -0.0,  0.5,   -0.99,        127.6,         -128.9,       300,
                              -70000, 1e-40, 2.1e9, 2147483648.0, -2147483648.0, 4294967297.0, -9.3e18,
                              9.3e18, 1e30,  inf,   -inf,         std::nan(""),  65504,        -1e-8};
    Tensor numbers = Tensor::empty(DType::f64, {1500});
    for (int64_t i = 0; i < numbers.size(); ++i) {
        const bool plain = i / 300 % 2 == 0 && i % 149 != 0;
        numbers.data<double>()[i] =
            plain ? 0.73 * static_cast<double>(i % 300) - 110 : special[static_cast<size_t>(i) % std::size(special)];
    }
    const DType all[] = {DType::boolean, DType::u8,  DType::i8,   DType::i16, DType::i32,
                         DType::i64,     DType::f16, DType::bf16, DType::f32, DType::f64};
    for (const DType from : all)
        for (const DType to : all) {
            if (from == to) continue;
            Tensor source = Tensor::empty(from, numbers.shape());
            plain_copy_elements(numbers, source);
            for (const int64_t count : {1, 7, 64, 300, 1500}) {
                const Tensor part = source.view({count}, {1});
                const Tensor want = Tensor::empty(to, {count}), got = Tensor::empty(to, {count});
                plain_copy_elements(part, want);
                ASSERT_TRUE(fast_copy(part, got)) << name_of(from) << " to " << name_of(to);
                ASSERT_EQ(std::memcmp(want.raw(), got.raw(), want.nbytes()), 0)
                    << name_of(from) << " to " << name_of(to) << ", " << count;
            }
        }
}

TEST_P(Copy, of_large_tensors_goes_around_the_cache_and_through_threads_unharmed) {
    Tensor x = noise(DType::f32, {1600, 1040});
    expect_same_copy(x.view({1040, 1600}, {1, 1040}), Tensor::empty(DType::f32, {1040, 1600}), "transposed");
    expect_same_copy(x, Tensor::empty(DType::f32, {1600, 1040}), "dense");
    for (const auto& [dtype, rows, columns] :
         {std::tuple(DType::u8, 2112, 2080), {DType::bf16, 1600, 1500}, {DType::f64, 824, 1041}})
        expect_same_copy(noise(dtype, {rows, columns}).view({columns, rows}, {1, columns}),
                         Tensor::empty(dtype, {columns, rows}), str(name_of(dtype), " transposed"));
}

INSTANTIATE_TEST_SUITE_P(All, Copy, ::testing::Values(Isa::v2, Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace lunaria::cpu
