// Sorts of every length at which they change their ways, against the standard library's stable sort, and what is
// derived from them; about 2 s.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "backends/cpu/device.h"
#include "backends/cpu/elementwise.h"
#include "backends/cpu/sort_keys.h"
#include "core/operator/op.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::f64, DType::i32, DType::i64, DType::i8, DType::u8};

// Elements with repetitions, zeros of both signs and NaN.
Tensor elements_of(DType dtype, const Shape& shape, std::mt19937& random) {
    Tensor t = Tensor::empty(dtype, shape);
    std::uniform_int_distribution<int> kind(0, 19), few(-9, 9);
    std::normal_distribution<double> many(0, 1e6);
    for (int64_t i = 0; i < t.size(); ++i) {
        const int k = kind(random);
        double x = k < 10 ? many(random) : few(random);
        if (!is_float(dtype)) x = dtype == DType::u8 ? std::abs(few(random)) : size_of(dtype) == 1 ? few(random) : x;
        if (is_float(dtype) && k == 10) x = std::nan("");
        if (is_float(dtype) && k == 11) x = -0.0;
        if (is_float(dtype) && k == 12) x = -HUGE_VAL;
        t.set_at(i, x);
    }
    return t;
}

class Sort : public testing::Test {
  protected:
    void SetUp() override { set_current_device(&device()); }
    static std::vector<Tensor> call(const char* op, std::initializer_list<Arg> args) {
        const Value v = eager_builder().call(op, args).value();
        if (!v.is_list()) return {v.tensor()};
        std::vector<Tensor> all;
        for (const Value& item : v.items()) all.push_back(item.tensor());
        return all;
    }
    // The places of a line in stable order.
    template <class T>
    static std::vector<int64_t> places(const T* line, int64_t n, int64_t step, bool descending) {
        std::vector<int64_t> order(static_cast<size_t>(n));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
            const auto x = sort_key(line[a * step]), y = sort_key(line[b * step]);
            return descending ? y < x : x < y;
        });
        return order;
    }
    // Compares sort and msort of x along the axis 0 or 1 with the places above, bit by bit.
    static void check(const Tensor& x, int axis, bool descending) {
        const auto both = call("sort", {x, axis, descending});
        const Tensor alone = call("msort", {x, axis, descending})[0];
        ASSERT_EQ(std::memcmp(both[0].raw(), alone.raw(), alone.nbytes()), 0);
        const int64_t n = x.dim(axis), lines = n ? x.size() / n : 0, step = axis == 0 ? x.dim(1) : 1;
        visit_dtype(x.dtype(), [&](auto tag) {
            using T = typename decltype(tag)::type;
            if constexpr (std::is_arithmetic_v<T>)
                for (int64_t l = 0; l < lines; ++l) {
                    const int64_t start = axis == 0 ? l : l * n;
                    const T* line = x.data<T>() + start;
                    const auto order = places(line, n, step, descending);
                    for (int64_t k = 0; k < n; ++k) {
                        const int64_t at = start + k * step, from = order[static_cast<size_t>(k)];
                        ASSERT_EQ(both[1].data<int64_t>()[at], from) << name_of(x.dtype()) << ' ' << n << ' ' << k;
                        ASSERT_EQ(std::memcmp(&alone.data<T>()[at], &line[from * step], sizeof(T)), 0);
                    }
                }
        });
    }
};

TEST_F(Sort, every_length_is_sorted_as_the_standard_library_does) {
    std::mt19937 random(3);
    const Isa before = current_isa();
    for (const Isa isa : {Isa::v2, Isa::avx2, Isa::avx512}) {
        if (!isa_available(isa)) continue;
        set_isa(isa);
        for (const DType dtype : kTypes)
            for (const int64_t n : {0, 1, 2, 3, 7, 16, 31, 32, 33, 100, 256, 257, 300})
                for (const int64_t lines : {1, 5, 17})
                    for (const bool descending : {false, true}) {
                        check(elements_of(dtype, {lines, n}, random), 1, descending);
                        check(elements_of(dtype, {n, lines}, random), 0, descending);
                    }
    }
    set_isa(before);
}

TEST_F(Sort, long_lines_are_sorted_alike_by_any_number_of_threads) {
    std::mt19937 random(4);
    const int before = num_threads();
    for (const int threads : {1, 2}) {
        set_num_threads(threads);
        for (const DType dtype : {DType::f32, DType::f64, DType::i64}) {
            check(elements_of(dtype, {1, 300001}, random), 1, false);
            // All elements in one group.
            Tensor equal = Tensor::empty(dtype, {1, 300001});
            for (int64_t i = 0; i < equal.size(); ++i) equal.set_at(i, i % 3 == 0 ? -0.0 : 0.0);
            check(equal, 1, true);
        }
    }
    set_num_threads(before);
}

TEST_F(Sort, an_element_by_its_rank_is_that_of_the_sorted_line) {
    std::mt19937 random(5);
    const Isa before = current_isa();
    auto check_ranks = [](const Tensor& x) {
        const int64_t lines = x.dim(0), n = x.dim(1);
        const auto sorted = call("sort", {x, 1});
        for (const int64_t k : {int64_t{1}, (n + 3) / 4, (n + 1) / 2, n}) {
            const auto found = call("kthvalue", {x, k, 1});
            for (int64_t l = 0; l < lines; ++l)
                ASSERT_EQ(found[1].data<int64_t>()[l], sorted[1].data<int64_t>()[l * n + k - 1])
                    << name_of(x.dtype()) << ' ' << n << ' ' << k;
        }
    };
    for (const Isa isa : {Isa::v2, Isa::avx2, Isa::avx512}) {
        if (!isa_available(isa)) continue;
        set_isa(isa);
        for (const DType dtype : kTypes) {
            for (const int64_t n : {1, 2, 8, 31, 32, 33, 100, 4096, 4097, 20000})
                check_ranks(elements_of(dtype, {3, n}, random));
            // Two values, the rarer one in all places of a sample; and a sorted line.
            Tensor two = Tensor::zeros(dtype, {1, 3200}), sorted = Tensor::empty(dtype, {1, 3200});
            for (int64_t i = 0; i < two.size(); i += 100) two.set_at(i, 1.0);
            for (int64_t i = 0; i < sorted.size(); ++i) sorted.set_at(i, static_cast<double>(i / 30));
            check_ranks(two);
            check_ranks(sorted);
        }
    }
    set_isa(before);
}

}  // namespace
}  // namespace lunaria::cpu
