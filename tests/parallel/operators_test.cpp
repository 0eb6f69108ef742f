// Operators that ask other ranks, on simulated ones.
#include "core/parallel/operators.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/devices.h"
#include "core/base/error.h"
#include "core/operator/op.h"
#include "core/ops/families.h"
#include "core/parallel/simulated.h"

namespace lunaria::parallel {
namespace {

class Operators : public ::testing::Test {
  protected:
    static void SetUpTestSuite() { set_up_devices(); }
    void SetUp() override { serve_operators(); }
    void TearDown() override { set_ranks(nullptr); }
};

Tensor numbers(const Shape& shape, double first) {
    Tensor t = Tensor::empty(DType::f32, shape);
    for (int64_t i = 0; i < t.size(); ++i) t.set_at(i, first + static_cast<double>(i));
    return t;
}

Tensor ask(std::string_view op, const Tensor& x, std::initializer_list<Arg> more = {}) {
    std::vector<Arg> args = {Arg(Value(x))};
    args.insert(args.end(), more.begin(), more.end());
    return eager_builder().call_args(op, args).value().tensor();
}

std::string text(const Tensor& t) {
    std::string s = str(t.shape(), ":");
    for (int64_t i = 0; i < t.size(); ++i) s += str(" ", t.at(i));
    return s;
}

TEST_F(Operators, ask_all_ranks) {
    run_simulated(2, [](Communicator& c) {
        const bool first = c.rank() == 0;
        const Tensor x = numbers({2, 2}, first ? 0 : 10);
        EXPECT_EQ(text(ask("all_reduce", x)), "(2, 2): 10 12 14 16");
        EXPECT_EQ(text(ask("all_reduce", x, {"avg"})), "(2, 2): 5 6 7 8");
        EXPECT_EQ(text(ask("all_gather", x)), "(4, 2): 0 1 2 3 10 11 12 13");
        EXPECT_EQ(text(ask("all_gather", x, {int64_t{1}})), "(2, 4): 0 1 10 11 2 3 12 13");
        EXPECT_EQ(text(ask("all_gather", x, {int64_t{-1}})), "(2, 4): 0 1 10 11 2 3 12 13");
        EXPECT_EQ(text(ask("reduce_scatter", x)), first ? "(1, 2): 10 12" : "(1, 2): 14 16");
        EXPECT_EQ(text(ask("reduce_scatter", x, {"max", int64_t{1}})), first ? "(2, 1): 10 12" : "(2, 1): 11 13");
        EXPECT_EQ(text(ask("all_to_all", x)), first ? "(2, 2): 0 1 10 11" : "(2, 2): 2 3 12 13");
        EXPECT_EQ(text(ask("all_to_all", x, {int64_t{0}, int64_t{1}})),
                  first ? "(1, 4): 0 1 10 11" : "(1, 4): 2 3 12 13");
        EXPECT_EQ(text(ask("all_to_all", x, {int64_t{1}, int64_t{0}})),
                  first ? "(4, 1): 0 2 10 12" : "(4, 1): 1 3 11 13");
        EXPECT_EQ(text(ask("broadcast_from", x, {int64_t{1}})), "(2, 2): 10 11 12 13");
        EXPECT_EQ(text(ask("reduce_to", x, {int64_t{1}})), first ? "(2, 2): 0 0 0 0" : "(2, 2): 10 12 14 16");
        EXPECT_EQ(text(ask("gather_to", x)), first ? "(4, 2): 0 1 2 3 10 11 12 13" : "(4, 2): 0 0 0 0 0 0 0 0");
        EXPECT_EQ(text(ask("scatter_from", x, {int64_t{1}})), first ? "(1, 2): 10 11" : "(1, 2): 12 13");
        EXPECT_EQ(text(ask("barrier", x)), text(x));
    });
}

TEST_F(Operators, move_pieces_of_different_sizes) {
    run_simulated(2, [](Communicator& c) {
        const bool first = c.rank() == 0;
        const Value sizes = Value::ints(Shape{3, 1});
        const Tensor x = numbers({first ? 3 : 1, 2}, first ? 0 : 10);
        EXPECT_EQ(text(ask("all_gather", x, {int64_t{0}, sizes})), "(4, 2): 0 1 2 3 4 5 10 11");
        const Tensor wide = numbers({1, 4}, 0);
        EXPECT_EQ(text(ask("reduce_scatter", wide, {"sum", int64_t{1}, sizes})), first ? "(1, 3): 0 2 4" : "(1, 1): 6");
        // The first keeps one row and sends two; the second sends its only row.
        const Tensor got = first ? ask("all_to_all_v", x, {Value::ints(Shape{1, 2}), Value::ints(Shape{1, 1})})
                                 : ask("all_to_all_v", x, {Value::ints(Shape{1, 0}), Value::ints(Shape{2, 0})});
        EXPECT_EQ(text(got), first ? "(2, 2): 0 1 10 11" : "(2, 2): 2 3 4 5");
    });
}

TEST_F(Operators, send_and_receive_in_groups) {
    run_simulated(3, [](Communicator& c) {
        c.name_group("pair", std::vector<int>{2, 0});
        EXPECT_THROW(c.name_group("pair", std::vector<int>{0, 1}), Error);
        EXPECT_THROW(ask("all_reduce", numbers({1}, 0), {"sum", "another"}), Error);
        if (c.rank() == 1) {
            EXPECT_THROW(ask("all_reduce", numbers({1}, 0), {"sum", "pair"}), Error);
        } else {
            const Tensor x = numbers({2}, c.rank());
            EXPECT_EQ(text(ask("all_gather", x, {int64_t{0}, Value(), "pair"})), "(4): 2 3 0 1");
            // Place 1 of the group is rank 0.
            if (c.rank() == 2)
                EXPECT_EQ(ask("send", x, {int64_t{1}, int64_t{7}, "pair"}).at(0), 0);
            else
                EXPECT_EQ(text(ask("recv", x, {int64_t{0}, int64_t{7}, "pair"})), "(2): 2 3");
        }
        EXPECT_EQ(text(ask("all_reduce", numbers({1}, 1), {"sum", "hccl_world_group"})), "(1): 3");
    });
}

// The cotangent of the operand, where every rank has the same one of the result.
std::string cotangent(std::string_view name, const Tensor& x, std::initializer_list<Arg> more, const Tensor& dout) {
    const Op& op = registry().get(name);
    std::vector<Arg> given = {Arg(Value(x))};
    given.insert(given.end(), more.begin(), more.end());
    std::vector<Value> args;
    for (const Param& parameter : op.signature.params) args.push_back(parameter.default_value);
    size_t i = 0;
    for (const Arg& arg : given) args[i++] = arg.value;
    Builder& builder = eager_builder();
    const Expr out(builder, Value(ask(name, x, more))), d(builder, Value(dout));
    const Grads grads = op.grad_fn(GradRule(Call(op, args, DType::f32), builder, {&out, 1}, {&d, 1}));
    return text(grads[0].value().tensor());
}

TEST_F(Operators, have_gradients) {
    run_simulated(2, [](Communicator& c) {
        const bool first = c.rank() == 0;
        const Tensor x = numbers({2, 2}, first ? 0 : 10);
        const Tensor own = numbers({2, 2}, first ? 1 : 5), row = numbers({1, 2}, first ? 1 : 5);
        const Tensor all = numbers({4, 2}, first ? 1 : 10);
        EXPECT_EQ(cotangent("all_reduce", x, {}, own), "(2, 2): 6 8 10 12");
        EXPECT_EQ(cotangent("all_reduce", x, {"avg"}, own), "(2, 2): 3 4 5 6");
        EXPECT_EQ(cotangent("all_reduce", x, {"max"}, own), first ? "(2, 2): 0 0 0 0" : "(2, 2): 6 8 10 12");
        EXPECT_EQ(cotangent("all_gather", x, {}, all), first ? "(2, 2): 11 13 15 17" : "(2, 2): 19 21 23 25");
        EXPECT_EQ(cotangent("reduce_scatter", x, {}, row), "(2, 2): 1 2 5 6");
        EXPECT_EQ(cotangent("reduce_scatter", x, {"avg"}, row), "(2, 2): 0.5 1 2.5 3");
        EXPECT_EQ(cotangent("all_to_all", x, {int64_t{0}, int64_t{1}}, numbers({1, 4}, first ? 1 : 5)),
                  first ? "(2, 2): 1 2 5 6" : "(2, 2): 3 4 7 8");
        EXPECT_EQ(cotangent("broadcast_from", x, {}, own), first ? "(2, 2): 6 8 10 12" : "(2, 2): 0 0 0 0");
        EXPECT_EQ(cotangent("reduce_to", x, {int64_t{1}}, own), "(2, 2): 5 6 7 8");
        EXPECT_EQ(cotangent("gather_to", x, {}, all), first ? "(2, 2): 1 2 3 4" : "(2, 2): 5 6 7 8");
        EXPECT_EQ(cotangent("scatter_from", x, {}, row), first ? "(2, 2): 1 2 5 6" : "(2, 2): 0 0 0 0");
        EXPECT_THROW(cotangent("all_reduce", x, {"prod"}, own), Error);
        // The gradient travels against the message.
        if (first)
            EXPECT_EQ(cotangent("send", x, {int64_t{1}}, numbers({}, 1)), "(2, 2): 5 6 7 8");
        else
            EXPECT_EQ(cotangent("recv", x, {int64_t{0}}, own), "(2, 2): 0 0 0 0");
    });
}

TEST_F(Operators, work_on_one_rank) {
    const Tensor x = numbers({2, 2}, 1);
    for (const char* op : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast_from", "reduce_to",
                           "gather_to", "scatter_from", "barrier"})
        EXPECT_EQ(text(ask(op, x)), text(x)) << op;
    EXPECT_THROW(ask("send", x), Error);
    set_ranks(nullptr);  // without the library of ranks
    for (const char* op : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast_from", "reduce_to",
                           "gather_to", "scatter_from", "barrier"})
        EXPECT_EQ(text(ask(op, x)), text(x)) << op;
    EXPECT_THROW(ask("all_reduce", x, {"sum", "pair"}), Error);
    EXPECT_THROW(ask("all_to_all_v", x, {Value::ints(Shape{2}), Value::ints(Shape{3})}), Error);
}

}  // namespace
}  // namespace lunaria::parallel
