// Views, short rows and floats of 16 bits have ways of their own through the kernels: the results are those of the
// plain way, bit by bit. About 3 s of processor time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/device.h"
#include "backends/cpu/elementwise.h"
#include "core/operator/op.h"
#include "core/random/random.h"

namespace lunaria {
namespace {

using cpu::Isa;

std::vector<Isa> isas() {
    std::vector<Isa> list;
    for (Isa isa : {Isa::v2, Isa::avx2, Isa::avx512})
        if (cpu::isa_available(isa)) list.push_back(isa);
    return list;
}

class Layout : public testing::Test {
  protected:
    void SetUp() override {
        set_current_device(&cpu::device());
        before_ = cpu::current_isa();
    }
    void TearDown() override {
        cpu::set_isa(before_);
        set_current_device(&cpu::device());
    }

  private:
    Isa before_ = Isa::v2;
};

Tensor numbers(DType dtype, const Shape& shape, uint64_t seed = 1) {
    if (is_complex(dtype))
        return run(registry().get("complex"),
                   {Value(numbers(part_of(dtype), shape, seed)), Value(numbers(part_of(dtype), shape, seed + 1))})
            .tensor();
    Tensor t = Tensor::empty(dtype, shape);
    for (int64_t i = 0; i < t.size(); ++i) {
        const uint32_t draw = philox(seed, static_cast<uint64_t>(i), 5)[0];
        const double number = is_integer(dtype) ? static_cast<double>(draw % 9) - 4 : (draw % 20001 - 10000.0) / 999;
        t.set_at(i, dtype == DType::boolean ? draw % 4 > 0 : dtype == DType::u8 ? draw % 9 : number);
    }
    return t;
}

Value call(std::string_view name, std::vector<Value> given) {
    const Op& op = registry().get(name);
    for (size_t i = given.size(); i < op.signature.params.size(); ++i)
        given.push_back(op.signature.params[i].default_value);
    return run(op, given);
}

void expect_same_bits(const Value& got, const Value& want, const std::string& where) {
    if (got.is_list()) {
        for (size_t i = 0; i < got.items().size(); ++i) expect_same_bits(got.items()[i], want.items()[i], where);
        return;
    }
    const Tensor a = got.tensor().contiguous(), b = want.tensor().contiguous();
    ASSERT_EQ(a.shape(), b.shape()) << where;
    ASSERT_EQ(a.dtype(), b.dtype()) << where;
    ASSERT_EQ(std::memcmp(a.raw(), b.raw(), a.nbytes()), 0) << where;
}

// The tensor with its axes in the order that its memory has not.
Tensor permuted(const Tensor& t, std::initializer_list<int> order) {
    Shape shape;
    Strides strides;
    for (int axis : order) {
        shape.push_back(t.dim(axis));
        strides.push_back(t.strides()[axis]);
    }
    return t.view(shape, strides);
}

TEST_F(Layout, an_elementwise_result_lies_in_the_order_of_its_first_whole_operand) {
    const Tensor x = permuted(numbers(DType::f32, {5, 3, 4}), {2, 0, 1});
    EXPECT_EQ(call("exp", {x}).tensor().strides(), x.strides());
    EXPECT_EQ(call("add", {x, numbers(DType::f32, {4, 5, 3})}).tensor().strides(), x.strides());
    EXPECT_EQ(call("add", {Value(2.0), x}).tensor().strides(), x.strides());
    EXPECT_EQ(call("less", {numbers(DType::f32, {3}), x}).tensor().strides(), x.strides());
    EXPECT_EQ(call("cast", {x, Value(DType::bf16)}).tensor().strides(), x.strides());
    EXPECT_TRUE(call("add", {numbers(DType::f32, {4, 5, 3}), x}).tensor().is_contiguous());
    // Every other column of a transposed matrix: the order stays, the gaps do not.
    const Tensor wide = numbers(DType::f32, {6, 8});
    EXPECT_EQ(call("exp", {wide.view({4, 6}, {2, 8})}).tensor().strides(), (Strides{1, 4}));
}

TEST_F(Layout, elementwise_operators_compute_the_same_from_views_as_from_copies) {
    const Tensor spread = numbers(DType::f32, {1, 6, 1, 8}, 3);
    for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i8, DType::i32, DType::i64}) {
        const Tensor a = numbers(dtype, {7, 6, 5, 8}), b = numbers(dtype, {8, 5, 6, 7}, 2);
        const Tensor wide = numbers(dtype, {7, 6, 5, 16}, 4), row = numbers(dtype, {6, 1, 8}, 5);
        const Tensor turned = permuted(b, {3, 2, 1, 0}), steps = wide.view({7, 6, 5, 8}, {480, 80, 16, 2});
        const Tensor mask = numbers(DType::boolean, {8, 5, 6, 7});
        for (const Tensor& x : {a, turned, steps})
            for (const Tensor& y : {a, turned, steps, row, spread.cast(dtype)})
                for (Isa isa : isas()) {
                    cpu::set_isa(isa);
                    const std::string where = str(name_of(isa), ' ', name_of(dtype), x.strides(), y.strides());
                    const Tensor dx = x.copy(), dy = y.copy();
                    for (const char* op : {"add", "mul", "maximum", "less", "equal"})
                        expect_same_bits(call(op, {x, y}), call(op, {dx, dy}), where + op);
                    for (const char* op : {"relu", "abs", "sign"})
                        expect_same_bits(call(op, {x}), call(op, {dx}), where + op);
                    const Tensor m = permuted(mask, {3, 2, 1, 0});
                    expect_same_bits(call("where", {m, x, y}), call("where", {m.copy(), dx, dy}), where + "where");
                    expect_same_bits(call("cast", {x, Value(DType::bf16)}), call("cast", {dx, Value(DType::bf16)}),
                                     where + "cast");
                }
    }
}

TEST_F(Layout, parts_with_one_element_in_each_row_are_joined) {
    for (Isa isa : isas()) {
        cpu::set_isa(isa);
        for (DType dtype : {DType::i8, DType::bf16, DType::f32, DType::f64, DType::boolean})
            for (size_t parts : {2, 3, 4, 5})
                for (int64_t n : {1, 7, 100, 4000}) {
                    std::vector<Value> list;
                    for (size_t k = 0; k < parts; ++k) list.emplace_back(numbers(dtype, {n}, k));
                    const Tensor got = call("stack", {Value::list(list), Value(-1)}).tensor();
                    for (size_t k = 0; k < parts; ++k)
                        expect_same_bits(
                            Value(got.view({n}, {static_cast<int64_t>(parts)}, static_cast<int64_t>(k)).copy()),
                            list[k], str(name_of(dtype), ' ', parts, " of ", n));
                }
    }
}

TEST_F(Layout, short_rows_have_the_bits_of_the_plain_kernels) {
    for (DType dtype :
         {DType::f32, DType::f64, DType::boolean, DType::u8, DType::i8, DType::i16, DType::i32, DType::i64})
        for (int64_t n = 1; n <= 18; ++n)
            for (int64_t rows : {1, 4, 63, 131}) {
                const Tensor x = numbers(dtype, {rows, n}, static_cast<uint64_t>(n));
                for (const char* op : {"sum", "mean", "var", "nansum", "prod", "amax", "amin", "max", "min", "argmax",
                                       "argmin", "all", "any"}) {
                    const bool floats = std::string_view("mean var nansum").find(op) != std::string_view::npos;
                    if ((floats || (op == std::string_view("prod") && n > 16)) && !is_float(dtype)) continue;
                    if (n > 16 && op == std::string_view("prod")) continue;  // plain products of long rows have leaves
                    set_current_device(&cpu::plain_device());
                    const Value want = call(op, {x, int64_t{1}});
                    set_current_device(&cpu::device());
                    for (Isa isa : isas()) {
                        cpu::set_isa(isa);
                        expect_same_bits(call(op, {x, int64_t{1}}), want,
                                         str(op, ' ', name_of(isa), ' ', name_of(dtype), x.shape()));
                    }
                }
            }
}

TEST_F(Layout, norms_of_short_rows_do_not_depend_on_the_rows_beside_them) {
    Tensor x = numbers(DType::f32, {70, 5});
    for (int64_t j = 0; j < 5; ++j) {
        x.set_at(5 * 7 + j, 0);
        x.set_at(5 * 9 + j, 3e30);
        x.set_at(5 * 11 + j, j == 2 ? std::nan("") : 1);
    }
    for (Isa isa : isas()) {
        cpu::set_isa(isa);
        for (double order : {0.0, 1.0, 2.0, 3.0, -1.0}) {
            const Tensor all = call("vector_norm", {x, order, int64_t{1}}).tensor();
            for (int64_t row = 0; row < 70; ++row)
                expect_same_bits(all.view({1}, {1}, row),
                                 call("vector_norm", {x.view({1, 5}, {5, 1}, 5 * row), order, int64_t{1}}),
                                 str(name_of(isa), " order ", order, " row ", row));
        }
    }
}

TEST_F(Layout, reductions_of_views_have_the_bits_of_those_of_copies) {
    for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::boolean, DType::i8, DType::i32, DType::c64}) {
        const Tensor x = numbers(dtype, {300, 70}), y = numbers(dtype, {9, 20, 33}, 2),
                     few = numbers(dtype, {4700, 9}, 3), short_rows = numbers(dtype, {8, 100}, 4);
        const std::vector<Tensor> views = {
            permuted(x, {1, 0}),       x.view({150, 70}, {140, 1}), x.view({300, 50}, {70, 1}, 3),
            permuted(y, {2, 0, 1}),    permuted(y, {1, 0, 2}),      x.view({300, 35}, {70, 2}),
            x.view({300, 4}, {70, 0}), permuted(few, {1, 0}),       permuted(short_rows, {1, 0})};
        for (const Tensor& view : views)
            for (int axis = 0; axis < view.rank(); ++axis)
                for (const char* op : {"sum", "mean", "amax", "amin", "max", "min", "argmax", "argmin", "all", "any"}) {
                    const bool adds = op == std::string_view("sum") || op == std::string_view("mean");
                    if (is_complex(dtype) ? !adds : op == std::string_view("mean") && !is_float(dtype)) continue;
                    for (Isa isa : isas()) {
                        cpu::set_isa(isa);
                        expect_same_bits(call(op, {view, int64_t{axis}}), call(op, {view.copy(), int64_t{axis}}),
                                         str(op, ' ', name_of(isa), ' ', name_of(dtype), view.shape(), view.strides(),
                                             " axis ", axis));
                    }
                }
    }
}

// Of all 65,536 floats of 16 bits, beside numbers that are and are not of 16 bits.
TEST_F(Layout, floats_of_16_bits_are_computed_in_f32_and_rounded_once) {
    for (DType dtype : {DType::bf16, DType::f16}) {
        Tensor x = Tensor::empty(dtype, {65536});
        for (int64_t i = 0; i < x.size(); ++i) x.data<uint16_t>()[i] = static_cast<uint16_t>(i);
        const Tensor y = numbers(dtype, {65536}, 3);
        // NaN may carry any payload: compare those as one.
        auto plain_nan = [](const Tensor& t) {
            return t.dtype() == DType::boolean
                       ? t
                       : call("where", {call("isnan", {t}), Value(1234.5), t.cast(DType::f32)}).tensor();
        };
        for (Isa isa : isas()) {
            cpu::set_isa(isa);
            auto check = [&](const char* op, const Value& a, const Value& b) {
                auto wide = [](const Value& v) { return v.is_tensor() ? Value(v.tensor().cast(DType::f32)) : v; };
                std::vector<Value> given{a}, widened{wide(a)};
                if (!b.is_nil()) given.push_back(b), widened.push_back(wide(b));
                const Tensor got = call(op, given).tensor(), want = call(op, widened).tensor();
                expect_same_bits(Value(plain_nan(got)), Value(plain_nan(want.cast(got.dtype()))),
                                 str(op, ' ', name_of(isa), ' ', name_of(dtype)));
            };
            for (const char* op : {"abs", "neg", "sign", "square", "sqrt", "relu", "floor", "isnan", "isfinite"})
                check(op, x, Value());
            for (const char* op : {"add", "mul", "div", "maximum", "less", "equal", "greater_equal"})
                for (const Value& b : {Value(y), Value(0.5), Value(0.1), Value(0.0)}) check(op, x, b);
        }
    }
}

}  // namespace
}  // namespace lunaria
