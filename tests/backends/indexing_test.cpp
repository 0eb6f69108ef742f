// Indexing by operators, run eagerly on the CPU.
#include "core/ops/indexing.h"

#include <gtest/gtest.h>

#include <numeric>

#include "backends/cpu/device.h"
#include "core/base/error.h"
#include "core/operator/op.h"

namespace lunaria {
namespace {

Tensor counting(const Shape& shape) {
    std::vector<float> values(static_cast<size_t>(shape.size()));
    std::iota(values.begin(), values.end(), 0.0f);
    return Tensor::from<float>(values, shape);
}

Tensor indices(std::vector<int64_t> values, const Shape& shape) { return Tensor::from<int64_t>(values, shape); }

Tensor mask(std::vector<int> values, const Shape& shape) {
    Tensor t = Tensor::empty(DType::boolean, shape);
    for (size_t i = 0; i < values.size(); ++i) t.data<bool>()[i] = values[i] != 0;
    return t;
}

std::vector<double> elements(const Tensor& t) {
    std::vector<double> list;
    for (int64_t i = 0; i < t.size(); ++i) list.push_back(t.at(i));
    return list;
}

class Indexing : public ::testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }
    static Tensor get(const Tensor& x, const Index& index) {
        return index_get(eager_builder(), Value(x), index).tensor();
    }
    static Tensor get(const Tensor& x, std::string_view text) { return get(x, parse_index("tensor", text)); }
    static std::string error_of(const Tensor& x, const Index& index) {
        try {
            get(x, index);
        } catch (const Error& e) {
            return e.what();
        }
        return "no error";
    }
    static std::string error_of(const Tensor& x, std::string_view text) {
        return error_of(x, parse_index("tensor", text));
    }
};

TEST_F(Indexing, slices_are_views_of_the_same_storage) {
    Tensor x = counting({3, 4});
    Tensor y = get(x, "1:, ::2");
    EXPECT_TRUE(y.shares_storage(x));
    EXPECT_EQ(y.shape(), (Shape{2, 2}));
    EXPECT_EQ(elements(y), (std::vector<double>{4, 6, 8, 10}));
    EXPECT_EQ(elements(get(x, "-1")), (std::vector<double>{8, 9, 10, 11}));
    EXPECT_EQ(get(x, "None, 0, ..., None").shape(), (Shape{1, 4, 1}));
    EXPECT_EQ(elements(get(x, "::-2, 1")), (std::vector<double>{9, 1}));
    EXPECT_EQ(get(x, "5:, :").shape(), (Shape{0, 4}));
}

TEST_F(Indexing, one_index_tensor_takes_its_axis) {
    Tensor x = counting({2, 3, 4});
    Index index{{IndexItem::of(IndexItem::Kind::ellipsis), IndexItem::positions(Value(indices({3, 0}, {2}))),
                 IndexItem::slice(1, 2)}};
    EXPECT_THROW(get(x, index), Error);  // 3 is out of range for an axis of 3
    index.items[1] = IndexItem::positions(Value(indices({2, 0, -1}, {3})));
    Tensor y = get(x, index);
    EXPECT_EQ(y.shape(), (Shape{2, 3, 1}));
    EXPECT_EQ(elements(y), (std::vector<double>{9, 1, 9, 21, 13, 21}));
}

TEST_F(Indexing, several_index_tensors_select_element_by_element) {
    Tensor x = counting({2, 3, 4});
    auto rows = IndexItem::positions(Value(indices({0, 1}, {2}))),
         columns = IndexItem::positions(Value(indices({2, 0}, {2})));
    Tensor adjacent = get(x, {{IndexItem::slice({}, {}), rows, columns}});
    EXPECT_EQ(adjacent.shape(), (Shape{2, 2}));
    EXPECT_EQ(elements(adjacent), (std::vector<double>{2, 4, 14, 16}));
    // Separated by a slice, their axes go to the front.
    Tensor apart = get(x, {{rows, IndexItem::slice({}, {}), columns}});
    EXPECT_EQ(apart.shape(), (Shape{2, 3}));
    EXPECT_EQ(elements(apart), (std::vector<double>{2, 6, 10, 12, 16, 20}));
    Tensor with_integer = get(x, {{IndexItem::at(1), IndexItem::slice({}, {}), columns}});
    EXPECT_EQ(with_integer.shape(), (Shape{2, 3}));
    EXPECT_EQ(elements(with_integer), (std::vector<double>{14, 18, 22, 12, 16, 20}));
}

TEST_F(Indexing, masks_select_along_as_many_axes_as_they_have) {
    Tensor x = counting({2, 3});
    EXPECT_EQ(elements(get(x, {{IndexItem::positions(Value(mask({1, 0, 0, 0, 1, 1}, {2, 3})))}})),
              (std::vector<double>{0, 4, 5}));
    Tensor rows = get(x, {{IndexItem::positions(Value(mask({0, 1}, {2})))}});
    EXPECT_EQ(rows.shape(), (Shape{1, 3}));
    EXPECT_EQ(elements(rows), (std::vector<double>{3, 4, 5}));
    EXPECT_EQ(elements(get(x, {{IndexItem::slice({}, {}), IndexItem::positions(Value(mask({0, 1, 1}, {3})))}})),
              (std::vector<double>{1, 2, 4, 5}));
}

TEST_F(Indexing, mistakes_say_what_is_allowed) {
    Tensor x = counting({3, 4});
    EXPECT_EQ(
        error_of(x, "3"),
        "tensor: index 3 is out of range for axis 0 with 3 rows: tensor indices start at 0, the last row is x[2] or "
        "x[-1]");
    EXPECT_EQ(
        error_of(x, ":, -5"),
        "tensor: index -5 is out of range for axis 1 of size 4: tensor indices start at 0, the last one is 3 or -1");
    EXPECT_EQ(error_of(x, "0, 0, 0"), "tensor: too many indices: 3 for a tensor of rank 2 (shape (3, 4))");
    EXPECT_EQ(error_of(x, "..., ..."), "tensor: an index holds at most one '...'");
    EXPECT_EQ(error_of(x, {{IndexItem::positions(Value(mask({1, 1}, {2})))}}),
              "tensor: a mask of shape (2) does not fit axes 0 .. 0 of a tensor of shape (3, 4)");
    EXPECT_EQ(error_of(x, {{IndexItem::positions(Value(counting({2})))}}),
              "tensor: an index tensor must hold integers or bools, not float32");
    EXPECT_NE(error_of(x, {{IndexItem::positions(Value(indices({7}, {1})))}}).find("tensor: index 7 is out of range"),
              std::string::npos);
}

TEST_F(Indexing, writing_is_seen_by_all_handles_of_a_tensor_and_by_no_other) {
    Tensor x = counting({2, 3});
    Tensor handle = x, other = get(x, "0");
    index_set(x, parse_index("tensor", "0, 1:"), Value(9.0));
    EXPECT_EQ(elements(handle), (std::vector<double>{0, 9, 9, 3, 4, 5}));
    EXPECT_EQ(elements(other), (std::vector<double>{0, 1, 2}));
    // A value that is a part of the tensor itself is read before anything is written.
    index_set(x, parse_index("tensor", ":, 1:"), Value(get(x, ":, :-1")));
    EXPECT_EQ(elements(x), (std::vector<double>{0, 0, 9, 3, 3, 4}));
    index_set(x, parse_index("tensor", ":"), Value(indices({7, 8, 9}, {3})));
    EXPECT_EQ(elements(handle), (std::vector<double>{7, 8, 9, 7, 8, 9}));
    EXPECT_THROW(index_set(x, parse_index("tensor", "0"), Value(counting({2}))), Error);
    EXPECT_EQ(elements(handle), (std::vector<double>{7, 8, 9, 7, 8, 9}));
}

TEST_F(Indexing, writing_in_place_keeps_the_memory_of_a_sole_owner) {
    Tensor x = counting({1000});
    void* before = x.raw();
    for (int64_t i = 0; i < 10; ++i) index_set(x, {{IndexItem::at(i)}}, Value(1.0));
    EXPECT_EQ(x.raw(), before);
}

TEST_F(Indexing, writing_through_index_tensors_puts_values_where_reading_finds_them) {
    auto rows = IndexItem::positions(Value(indices({1, 0}, {2}))),
         columns = IndexItem::positions(Value(indices({2, 0}, {2})));
    auto all = IndexItem::slice({}, {});
    for (const Index& index : {Index{{rows}}, Index{{all, rows, columns}}, Index{{rows, all, columns}},
                               Index{{IndexItem::at(1), all, columns}}, Index{{IndexItem::slice(0, 2), columns}},
                               Index{{all, all, rows, IndexItem::of(IndexItem::Kind::new_axis)}}}) {
        Tensor x = counting({2, 3, 4}), picked = get(x, index);
        Tensor value = counting(picked.shape());
        for (int64_t i = 0; i < value.size(); ++i) value.set_at(i, 100 + i);
        Value put = index_put(eager_builder(), Value(x), index, Value(value));
        EXPECT_EQ(elements(get(put.tensor(), index)), elements(value));
        EXPECT_EQ(elements(x), elements(counting({2, 3, 4})));
        double changed = 0;
        for (int64_t i = 0; i < x.size(); ++i) changed += put.tensor().at(i) != x.at(i);
        EXPECT_EQ(changed, value.size());
    }
}

TEST_F(Indexing, assign_shares_until_somebody_writes) {
    Tensor x = counting({3}), value = counting({3}), handle = x;
    value.set_at(0, 5);
    x.assign("assign", value);
    EXPECT_TRUE(handle.shares_storage(value));
    index_set(x, parse_index("tensor", "1"), Value(8.0));
    EXPECT_EQ(elements(handle), (std::vector<double>{5, 8, 2}));
    EXPECT_EQ(elements(value), (std::vector<double>{5, 1, 2}));
    x.assign("assign", Tensor::scalar(DType::i64, 4));
    EXPECT_EQ(elements(handle), (std::vector<double>{4, 4, 4}));
    EXPECT_EQ(handle.dtype(), DType::f32);
    EXPECT_THROW(x.assign("assign", counting({2, 3})), Error);
}

}  // namespace
}  // namespace lunaria
