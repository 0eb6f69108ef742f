// Compiled graphs give what the same operators give one by one.
#include "jit/graph/executable.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>

#include "backends/cpu/device.h"
#include "core/ir/builder.h"
#include "core/loops/kernels.h"
#include "core/ops/sample.h"
#include "core/random/random.h"
#include "core/threads/threads.h"
#include "tests/jit/graph/compare.h"
#include "tests/jit/graph/light_device.h"
#include "tests/today.h"

namespace lunaria::graph {
namespace {

using lunaria::testing::are_close;
using lunaria::testing::graph_of;
using lunaria::testing::random_tensor;
using lunaria::testing::run_compiled;
using lunaria::testing::run_eagerly;

double tolerance_of(DType t) {
    return t == DType::f64 ? 1e-10 : t == DType::f16 ? 4e-3 : t == DType::bf16 ? 3e-2 : 2e-5;
}

// Whether a case is among those of today, of many that need generated code of their own.
bool is_of_today(size_t number) {
    return lunaria::testing::is_of_today(number, lunaria::testing::parts_of_generated(4));
}

class ExecutableTest : public ::testing::Test {
  protected:
    void SetUp() override { set_current_device(&lunaria::testing::graph_device()); }

    // A graph with parameters of the given types, whose result `make` builds from them.
    template <class Make>
    static std::unique_ptr<ir::Graph> graph_with(std::initializer_list<TensorType> types, Make make) {
        auto graph = std::make_unique<ir::Graph>("f");
        ir::GraphBuilder builder(*graph);
        std::vector<Expr> x;
        for (const TensorType& t : types) x.emplace_back(builder, Value(graph->add_parameter("", ir::NodeType::of(t))));
        graph->result = make(builder, x);
        return graph;
    }
    static std::vector<Tensor> inputs_for(const ir::Graph& graph, uint64_t seed = 1) {
        std::vector<Tensor> inputs;
        for (const ir::Node* p : graph.parameters()) inputs.push_back(random_tensor(p->type.tensor, seed++));
        return inputs;
    }
    static void expect_same(const ir::Graph& graph, double tolerance = 2e-5) {
        auto inputs = inputs_for(graph);
        EXPECT_TRUE(are_close(run_compiled(graph, inputs), run_eagerly(graph, inputs), tolerance));
    }
};

TEST_F(ExecutableTest, every_operator_gives_what_it_gives_eagerly) {
    size_t at = 0;
    for (const auto& op : registry().all()) {
        if (op->host_fn || op->name() == "print_") continue;
        for (const char* sample : op->samples) {
            for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
                if (!is_of_today(at++)) continue;
                bool converted = dtype == DType::f32;
                std::function<Value(const Value&)> convert = [&](const Value& v) -> Value {
                    if (v.is_tensor() && v.tensor().dtype() == DType::f32) {
                        converted = true;
                        return Value(v.tensor().cast(dtype));
                    }
                    if (!v.is_list()) return v;
                    std::vector<Value> items;
                    for (const Value& item : v.items()) items.push_back(convert(item));
                    return Value::list(std::move(items));
                };
                auto copies = [&] {
                    std::vector<Value> args = sample_args(*op, sample, 3);
                    for (Value& v : args) v = convert(v);
                    return args;
                };
                SCOPED_TRACE(str(op->name(), "(", sample, ") in ", name_of(dtype)));
                // State operators look at tensors when they are inferred: they are compiled in graphs of their own.
                std::vector<Value> args = copies();
                if (!converted) continue;
                std::vector<Tensor> inputs, again;
                std::unique_ptr<ir::Graph> graph;
                try {
                    graph = graph_of(*op, args, inputs);
                } catch (const Error&) {
                    continue;
                }
                if (!graph->result.is_node()) continue;
                std::vector<Tensor> want, got;
                graph_of(*op, copies(), again);
                bool fails = false;
                try {
                    default_generator().set_state({7, 0});
                    want = lunaria::testing::run_eagerly(*graph, again);
                } catch (const Error&) {
                    fails = true;
                } catch (const std::bad_function_call&) {
                    fails = true;
                }
                default_generator().set_state({7, 0});
                if (fails) {
                    EXPECT_THROW(run_compiled(*graph, inputs), Error);
                    continue;
                }
                if (want.empty()) continue;
                got = run_compiled(*graph, inputs);
                EXPECT_TRUE(are_close(got, want, tolerance_of(dtype)));
            }
        }
    }
}

TEST_F(ExecutableTest, a_chain_of_elementwise_operators_is_one_kernel) {
    if (!can_generate()) GTEST_SKIP() << "no code generator";
    auto graph = graph_with({{DType::f32, {33, 7}}, {DType::f32, {7}}}, [](auto&, auto& x) {
        Expr s = call("sigmoid", {x[0]}), t = call("tanh", {x[0] * 1.5 + x[1]});
        return (t * s + x[0]).value();
    });
    EXPECT_EQ(compile(*graph)->stats().steps, 1u);
    expect_same(*graph);
}

TEST_F(ExecutableTest, every_formula_of_generated_code_agrees_with_its_kernel) {
    size_t at = 0;
    for (const auto& op : registry().all()) {
        if (!op->is_elementwise) continue;
        for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8,
                            DType::i8, DType::i16, DType::boolean}) {
            for (const char* sample : op->samples) {
                if (!is_of_today(at++)) continue;
                std::vector<Value> args = sample_args(*op, sample, 5);
                auto graph = std::make_unique<ir::Graph>("f");
                ir::GraphBuilder builder(*graph);
                uint64_t seed = 11;
                std::vector<Value> operands;
                for (const Value& v : args) {
                    if (!v.is_tensor()) {
                        operands.push_back(v);
                        continue;
                    }
                    DType t = is_float(v.tensor().dtype()) ? dtype : v.tensor().dtype();
                    operands.emplace_back(graph->add_parameter("", ir::NodeType::of({t, {3, 29}})));
                }
                try {
                    // The second operator makes a generated kernel of it.
                    Expr y(builder, builder.emit(*op, operands));
                    graph->result = call("where", {call("equal", {y, y}), y, y}).value();
                } catch (const Error&) {
                    continue;
                }
                std::vector<Tensor> inputs;
                for (const ir::Node* p : graph->parameters())
                    inputs.push_back(random_tensor(p->type.tensor, seed++, -6, 6));
                std::vector<Tensor> want;
                try {
                    want = run_eagerly(*graph, inputs);
                } catch (const Error&) {
                    continue;
                }
                EXPECT_TRUE(are_close(run_compiled(*graph, inputs), want, tolerance_of(want[0].dtype())))
                    << op->name() << '(' << sample << ") in " << name_of(dtype);
            }
        }
    }
}

TEST_F(ExecutableTest, special_values_pass_through_generated_code) {
    const double inf = HUGE_VAL, nan = NAN;
    const double values[] = {0.0,    -0.0, inf,  -inf,    nan,  1.0,    -1.0, 1e-40,
                             -1e-40, 3e38, 1e-7, 20000.0, 89.0, -104.0, 0.5};
    for (const char* name : {"exp",           "log",      "tanh", "sigmoid", "sin",  "cos",  "tan",  "expm1", "log1p",
                             "erf",           "gelu_erf", "sqrt", "rsqrt",   "silu", "relu", "sign", "abs",   "floor",
                             "round_to_even", "exp2",     "log2", "asinh",   "atan", "sinh", "cosh", "erfc"}) {
        auto graph = graph_with({{DType::f32, {15}}}, [&](auto&, auto& x) {
            Expr y = call(name, {x[0]});
            return call("where", {call("isnan", {y}), y, y * 1.0000001}).value();
        });
        Tensor x = Tensor::empty(DType::f32, {15});
        for (int64_t i = 0; i < 15; ++i) x.set_at(i, values[i]);
        std::vector<Tensor> inputs{x};
        EXPECT_TRUE(are_close(run_compiled(*graph, inputs), run_eagerly(*graph, inputs), 1e-5)) << name;
    }
}

TEST_F(ExecutableTest, rows_are_normalised_in_one_kernel) {
    if (!can_generate()) GTEST_SKIP() << "no code generator";
    for (int64_t inner : {2, 10, 64, 77, 1000}) {
        auto graph = graph_with(
            {{DType::f32, {5, 3, inner}}, {DType::f32, {inner}}, {DType::f32, {inner}}}, [&](auto& b, auto& x) {
                Expr s = call("softmax", {x[0] * 0.5, -1});
                Expr l = call("log_softmax", {x[0], -1});
                Expr n = call("layer_norm", {s + l, Shape{inner}, x[1], x[2]});
                return b.list({{n, call("mean", {n * n, -1}), call("amax", {s, -1, true})}}).value();
            });
        EXPECT_EQ(compile(*graph)->stats().steps, 1u);
        expect_same(*graph, 1e-4);
    }
}

TEST_F(ExecutableTest, values_per_row_come_back_to_the_elements) {
    auto graph = graph_with({{DType::f32, {6, 4, 9}}}, [](auto& b, auto& x) {
        Expr mean = call("mean", {x[0], Shape{1, 2}});
        Expr centred = x[0] - mean.reshape({6, 1, 1});
        Expr sum = call("sum", {centred * centred, Shape{1, 2}, true});
        return b.list({{centred / call("sqrt", {sum}), call("exp", {mean})}}).value();
    });
    expect_same(*graph);
}

TEST_F(ExecutableTest, sums_over_rows_go_along_with_what_they_add_up) {
    if (!can_generate()) GTEST_SKIP() << "no code generator";
    for (int64_t columns : {16, 37, 512}) {
        auto graph = graph_with({{DType::f32, {19, columns}}, {DType::f32, {19, columns}}}, [](auto& b, auto& x) {
            Expr d = call("relu_grad", {x[0] * 0.5, x[1]});
            return b.list({{d, call("sum", {d, 0}), call("sum", {d * x[1], 0, true}) * 2.0}}).value();
        });
        EXPECT_EQ(compile(*graph)->stats().steps, 2u);
        expect_same(*graph);
    }
    auto middle = graph_with({{DType::f32, {3, 5, 4, 18}}}, [](auto& b, auto& x) {
        Expr d = call("tanh", {x[0]});
        return b.list({{call("sum", {d, 1}), call("sum", {d, Shape{0, 2}}), call("sum", {d, Shape{0, 1, 2}, true})}})
            .value();
    });
    // The rows of a result follow each other in the order of sums: only what all rows add to goes along.
    EXPECT_EQ(compile(*middle)->stats().steps, 3u);
    expect_same(*middle);
}

// Whole rows where there are many and one row comes out, else columns.
TEST_F(ExecutableTest, large_sums_over_rows_are_the_same_bits_with_any_number_of_threads) {
    const int threads = num_threads();
    for (DType dtype : {DType::f32, DType::f64}) {
        for (const Shape& shape : {Shape{600, 1000}, Shape{4000, 17}, Shape{1001, 130}, Shape{20, 30000}}) {
            auto graph = graph_with({{dtype, shape}, {dtype, shape}}, [](auto& b, auto& x) {
                Expr d = call("square", {x[0]}) + x[1];
                return b.list({{call("sum", {d, 0}), d, call("sum", {d * x[1], 0, true})}}).value();
            });
            expect_same(*graph, 1e-4);
            const std::vector<Tensor> inputs = {random_tensor({dtype, shape}, 1), random_tensor({dtype, shape}, 2)};
            set_num_threads(1);
            const std::vector<Tensor> alone = run_compiled(*graph, inputs);
            set_num_threads(3);
            EXPECT_TRUE(are_close(run_compiled(*graph, inputs), alone, 0));
            set_num_threads(threads);
        }
        auto planes = graph_with({{dtype, {3, 400, 170}}}, [](auto& b, auto& x) {
            Expr d = call("square", {x[0]});
            return b.list({{call("sum", {d, 1}), call("sum", {d, Shape{0, 1}})}}).value();
        });
        expect_same(*planes, 1e-4);
    }
}

TEST_F(ExecutableTest, an_unrolled_loop_gives_what_its_steps_give) {
    const DType f = DType::f32;
    auto graph = graph_with({{f, {5, 2, 8}}, {f, {8, 16}}, {f, {16, 16}}, {f, {16}}}, [](auto& b, auto& x) {
        std::vector<Expr> steps, states{call("matmul", {call("narrow", {x[0], 0, 0, 1}).reshape({2, 8}), x[1]})};
        for (int64_t t = 0; t < 5; ++t) {
            steps.push_back(call("narrow", {x[0], 0, t, 1}).reshape({2, 8}));
            states.push_back(
                call("tanh", {call("matmul", {steps.back(), x[1]}) + call("matmul", {states.back(), x[2]}) + x[3]}));
        }
        // As the gradients of both weights and of the bias.
        Expr first = call("matmul", {steps[0].transpose({1, 0}), states[1]});
        Expr second = call("matmul", {states[0].transpose({1, 0}), states[1]}), third = states[1].sum({0});
        for (size_t t = 1; t < 5; ++t) {
            first = first + call("matmul", {steps[t].transpose({1, 0}), states[t + 1]});
            second = call("matmul", {states[t].transpose({1, 0}), states[t + 1]}) + second;
            third = third + states[t + 1].sum({0});
        }
        return b.list(std::vector<Expr>{first, second, third, states.back()}).value();
    });
    expect_same(*graph);
    // One by the first weight for all steps, five of states, and one for each gradient.
    auto executable = compile(*graph);
    const std::string text = executable->describe();
    size_t products = 0;
    for (size_t at = text.find(" matmul"); at != std::string::npos; at = text.find(" matmul", at + 1)) ++products;
    EXPECT_EQ(products, 8u) << text;
}

TEST_F(ExecutableTest, small_products_are_part_of_what_follows_them) {
    if (!can_generate()) GTEST_SKIP() << "no code generator";
    size_t at = 0;
    for (DType t : {DType::f32, DType::f64}) {
        for (int64_t rows : {1, 2}) {
            for (int64_t depth : {1, 3, 16, 37}) {
                for (int64_t columns : {5, 32, 100}) {
                    if (!is_of_today(at++)) continue;
                    auto graph =
                        graph_with({{t, {rows, depth}}, {t, {depth, columns}}, {t, {columns}}}, [](auto& b, auto& x) {
                            Expr y = call("tanh", {call("matmul", {x[0], x[1]}) + x[2]});
                            return b.list({{y, call("softmax", {y, int64_t{1}})}}).value();
                        });
                    EXPECT_EQ(compile(*graph)->stats().steps, 1u);
                    expect_same(*graph, tolerance_of(t));
                }
            }
        }
    }
}

TEST_F(ExecutableTest, small_products_wait_for_what_they_read) {
    if (!can_generate()) GTEST_SKIP() << "no code generator";
    const DType f = DType::f32;
    // The second reads all of the first, and part of what is not the first of its rows.
    auto graph = graph_with({{f, {1, 24}}, {f, {24, 24}}, {f, {60, 24}}}, [](auto& b, auto& x) {
        Expr h = call("tanh", {call("matmul", {x[0], x[1]})});
        Expr again = call("matmul", {h, call("narrow", {x[2], 0, 7, 24})}) + h;
        Expr part = call("matmul", {call("narrow", {again, 1, 4, 20}), call("narrow", {x[2], 0, 40, 20})});
        return b.list({{call("relu", {part}) + h, again}}).value();
    });
    EXPECT_EQ(compile(*graph)->stats().steps, 3u);
    expect_same(*graph);
    // Operands that lie the other way are left to kernels that read them so.
    auto turned = graph_with({{f, {24, 2}}, {f, {20, 24}}}, [](auto&, auto& x) {
        return call("tanh", {call("matmul", {x[0].transpose({1, 0}), x[1].transpose({1, 0})})}).value();
    });
    EXPECT_EQ(compile(*turned)->stats().steps, 2u);
    expect_same(*turned);
}

TEST_F(ExecutableTest, views_cost_no_step) {
    auto graph = graph_with({{DType::f32, {4, 6}}, {DType::f32, {4, 6}}}, [](auto&, auto& x) {
        return call("matmul", {x[0], x[1].transpose({1, 0})}).value();
    });
    EXPECT_EQ(compile(*graph)->stats().steps, 1u);
    expect_same(*graph);
}

TEST_F(ExecutableTest, operands_of_any_layout_take_part) {
    auto graph = graph_with({{DType::f32, {7, 5}}, {DType::f32, {5, 7}}, {DType::f32, {5, 1}}}, [](auto&, auto& x) {
        Expr flipped = x[0].transpose({1, 0});
        Expr part = call("narrow", {x[1], 1, 2, 5});
        return call("concat", {x[0].builder().list({{flipped * x[1] + x[2], part * 2.0 - x[2]}}), 1}).value();
    });
    expect_same(*graph);
}

TEST_F(ExecutableTest, large_transposed_operands_are_copied_first) {
    auto graph = graph_with({{DType::f32, {300, 200}}, {DType::f32, {200, 300}}}, [](auto& b, auto& x) {
        Expr t = call("tanh", {x[0].transpose({1, 0})});
        return b.list({{t * x[1] + x[0].transpose({1, 0}), call("softmax", {x[1].transpose({1, 0}) * 2.0, -1})}})
            .value();
    });
    expect_same(*graph);
}

TEST_F(ExecutableTest, strided_inputs_are_taken) {
    auto graph = graph_with({{DType::f32, {7, 5}}}, [](auto&, auto& x) { return (x[0] * 2.0 + 1.0).value(); });
    Tensor stored = random_tensor({DType::f32, {5, 7}}, 4);
    std::vector<Tensor> inputs{stored.view({7, 5}, {1, 7})};
    EXPECT_TRUE(are_close(run_compiled(*graph, inputs), run_eagerly(*graph, inputs), 0));
}

TEST_F(ExecutableTest, a_donated_input_is_updated_in_place) {
    auto graph = graph_with({{DType::f32, {64}}, {DType::f32, {64}}}, [](auto& b, auto& x) {
        Expr moved = x[0] - x[1] * 0.1;
        return b.list({{moved, call("sum", {x[0]})}}).value();
    });
    auto step = compile(*graph, {.donations = {{0, 0}}});
    std::vector<Tensor> inputs = inputs_for(*graph);
    Tensor old = inputs[0].copy(), other = inputs[0].view({64}, {1});
    auto want = run_eagerly(*graph, std::vector<Tensor>{old, inputs[1]});
    std::vector<Tensor> outputs(2);
    step->run(inputs, outputs);
    EXPECT_TRUE(outputs[0].same_body(inputs[0]));
    EXPECT_TRUE(are_close(outputs, want, 1e-6));
    EXPECT_TRUE(are_close(std::vector{other}, std::vector{old}, 0)) << "another tensor of the storage has changed";
}

TEST_F(ExecutableTest, donated_inputs_may_swap_places) {
    auto graph = graph_with({{DType::f32, {8}}, {DType::f32, {8}}}, [](auto& b, auto& x) {
        return b.list({{x[1], x[0]}}).value();
    });
    auto step = compile(*graph, {.donations = {{0, 0}, {1, 1}}});
    std::vector<Tensor> inputs = inputs_for(*graph), outputs(2);
    std::vector<Tensor> want{inputs[1].copy(), inputs[0].copy()};
    step->run(inputs, outputs);
    EXPECT_TRUE(are_close(inputs, want, 0));
}

TEST_F(ExecutableTest, a_donation_of_another_type_is_refused) {
    auto graph = graph_with({{DType::f32, {8}}}, [](auto&, auto& x) { return call("sum", {x[0]}).value(); });
    EXPECT_THROW(compile(*graph, {.donations = {{0, 0}}}), Error);
    EXPECT_THROW(compile(*graph, {.donations = {{3, 0}}}), Error);
}

TEST_F(ExecutableTest, temporaries_share_memory) {
    auto graph = graph_with({{DType::f32, {128, 128}}}, [](auto&, auto& x) {
        Expr y = x[0];
        for (int i = 0; i < 6; ++i) y = call("matmul", {y, x[0]});
        return y.value();
    });
    EXPECT_LE(compile(*graph)->stats().arena_bytes, 2u * 128 * 128 * 4);
    expect_same(*graph, 1e-4);
}

TEST_F(ExecutableTest, assignments_keep_the_order_of_the_program) {
    auto graph = graph_with({{DType::f32, {16}}, {DType::f32, {16}}}, [](auto& b, auto& x) {
        Expr before = x[0] * 2.0 + 1.0;
        Expr view = x[0].reshape({4, 4});
        call("assign", {x[0], x[1] + 3.0});
        Expr after = x[0] * 2.0 + 1.0;
        return b.list({{before, view * 1.5 - 2.0, after}}).value();
    });
    auto inputs = inputs_for(*graph), copies = inputs_for(*graph);
    auto got = run_compiled(*graph, inputs);
    EXPECT_TRUE(are_close(got, run_eagerly(*graph, copies), 1e-6));
    EXPECT_TRUE(are_close(inputs, copies, 1e-6));
}

TEST_F(ExecutableTest, optimizers_step_in_place) {
    auto graph = graph_with(
        {{DType::f32, {5, 3}}, {DType::f32, {5, 3}}, {DType::f32, {5, 3}}, {DType::f32, {5, 3}}}, [](auto& b, auto& x) {
            Expr gradient = call("tanh", {x[1] * x[0]}) * 0.5;
            b.call("apply_adam",
                   {b.list({{x[0]}}), b.list({{gradient}}), b.list({{x[2]}}), b.list({{x[3]}}), Value(), 0.1});
            return b.list({{gradient, x[0] + 1.0}}).value();
        });
    auto positive = [](std::vector<Tensor> t) {
        for (int64_t i = 0; i < t[3].size(); ++i) t[3].set_at(i, std::fabs(t[3].at(i)));
        return t;
    };
    auto inputs = positive(inputs_for(*graph)), copies = positive(inputs_for(*graph));
    auto got = run_compiled(*graph, inputs);
    EXPECT_TRUE(are_close(got, run_eagerly(*graph, copies), 1e-5));
    EXPECT_TRUE(are_close(inputs, copies, 1e-5));
}

TEST_F(ExecutableTest, a_profile_names_every_step) {
    auto graph = graph_with({{DType::f32, {64, 64}}}, [](auto&, auto& x) {
        return (call("matmul", {x[0], x[0]}) * 2.0 + x[0]).value();
    });
    auto executable = compile(*graph);
    std::vector<Tensor> inputs = inputs_for(*graph), outputs(1);
    auto times = executable->profile(inputs, outputs);
    ASSERT_EQ(times.size(), executable->stats().steps);
    EXPECT_EQ(times[0].operators, "matmul");
    EXPECT_EQ(times[0].bytes, 2 * 64 * 64 * 4);
    EXPECT_GE(times[0].seconds, 0);
    EXPECT_TRUE(are_close(outputs, run_eagerly(*graph, inputs), 1e-4));
}

TEST_F(ExecutableTest, parameters_of_networks_are_read_anew) {
    Tensor weight = random_tensor({DType::f32, {4}}, 9);
    weight.set_parameter({.name = "w"});
    auto graph = graph_with({{DType::f32, {4}}},
                            [&](auto& b, auto& x) { return (x[0] * b.constant(Value(weight)) + 1.0).value(); });
    auto executable = compile(*graph);
    std::vector<Tensor> inputs{Tensor::full(DType::f32, {4}, 1)}, outputs(1);
    executable->run(inputs, outputs);
    EXPECT_TRUE(are_close(outputs, run_eagerly(*graph, inputs), 1e-6));
    weight.assign("test", Tensor::full(DType::f32, {4}, 5));
    executable->run(inputs, outputs);
    EXPECT_EQ(outputs[0].at(0), 6);
}

TEST_F(ExecutableTest, random_numbers_are_those_of_eager_mode) {
    auto graph = graph_with({{DType::f32, {40}}}, [](auto& b, auto& x) {
        Expr a = call("dropout", {x[0], 0.5}), c = b.call("randn", {Shape{40}});
        return (a + c * x[0]).value();
    });
    auto inputs = inputs_for(*graph);
    default_generator().set_state({3, 0});
    auto want = run_eagerly(*graph, inputs);
    default_generator().set_state({3, 0});
    EXPECT_TRUE(are_close(run_compiled(*graph, inputs), want, 1e-6));
}

// Convolutions and layers keep their weights in another layout from the third run on, until a write to them.
TEST_F(ExecutableTest, weights_that_kernels_keep_are_followed_when_they_change) {
    const DType f = DType::f32;
    struct Case {
        const char* op;
        Shape x, weight;
    };
    for (const Case& c : {Case{"conv2d", {1, 16, 9, 9}, {16, 16, 3, 3}}, Case{"conv2d", {1, 6, 14, 14}, {16, 6, 5, 5}},
                          Case{"dense", {1, 300}, {150, 300}}, Case{"dense", {40, 500}, {70, 500}},
                          Case{"affine", {1, 300}, {150, 300}}}) {
        auto graph = graph_with({{f, c.x}, {f, c.weight}}, [&](auto&, auto& x) {
            return call(c.op, {x[0], x[1]}).value();
        });
        auto executable = compile(*graph);
        std::vector<Tensor> inputs = inputs_for(*graph), outputs(1);
        inputs[1].set_parameter({});
        auto check = [&](const char* when) {
            for (int i = 0; i < 4; ++i) {
                executable->run(inputs, outputs);
                EXPECT_TRUE(are_close(outputs, run_eagerly(*graph, inputs), 1e-4))
                    << c.op << c.weight << ' ' << when << ", run " << i;
            }
        };
        check("at first");
        inputs[1].own_storage();
        inputs[1].data<float>()[5] += 1;
        check("after a write in place");
        inputs[1].assign("test", random_tensor({f, c.weight}, 7));
        check("after an assignment");
        inputs[1] = random_tensor({f, c.weight}, 9);
        inputs[1].set_parameter({});
        check("of another parameter");
        inputs[1] = random_tensor({f, c.weight}, 11);
        check("of a plain tensor");
    }
}

TEST_F(ExecutableTest, wrong_inputs_are_refused) {
    auto graph = graph_with({{DType::f32, {4}}}, [](auto&, auto& x) { return (x[0] + 1.0).value(); });
    auto executable = compile(*graph);
    std::vector<Tensor> outputs(1);
    EXPECT_THROW(executable->run(std::vector<Tensor>{Tensor::zeros(DType::f32, {5})}, outputs), Error);
    EXPECT_THROW(executable->run(std::vector<Tensor>{Tensor::zeros(DType::f64, {4})}, outputs), Error);
    EXPECT_THROW(executable->run(std::vector<Tensor>{}, outputs), Error);
}

TEST_F(ExecutableTest, an_error_leaves_the_program_usable) {
    auto graph = graph_with({{DType::i64, {3}}, {DType::i64, {3}}}, [](auto&, auto& x) {
        return call("floor_divide", {x[0] + x[0], x[1]}).value();
    });
    auto executable = compile(*graph);
    std::vector<Tensor> outputs(1);
    Tensor seven = Tensor::full(DType::i64, {3}, 7);
    EXPECT_THROW(executable->run(std::vector<Tensor>{seven, Tensor::zeros(DType::i64, {3})}, outputs), Error);
    executable->run(std::vector<Tensor>{seven, Tensor::full(DType::i64, {3}, 2)}, outputs);
    EXPECT_EQ(outputs[0].at(0), 7);
}

TEST_F(ExecutableTest, threads_may_run_one_program) {
    auto graph = graph_with({{DType::f32, {50, 20}}, {DType::f32, {20, 20}}}, [](auto&, auto& x) {
        return call("softmax", {call("matmul", {call("tanh", {x[0] * 2.0}), x[1]})}).value();
    });
    auto executable = compile(*graph);
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            auto inputs = inputs_for(*graph, t * 10);
            auto want = run_eagerly(*graph, inputs);
            for (int i = 0; i < 20; ++i) {
                std::vector<Tensor> outputs(1);
                executable->run(inputs, outputs);
                EXPECT_TRUE(are_close(outputs, want, 1e-5));
            }
        });
    for (std::thread& t : threads) t.join();
}

TEST_F(ExecutableTest, random_graphs_give_the_same_in_both_ways) {
    constexpr const char* kUnary[] = {"tanh", "exp",    "neg", "relu",  "sigmoid",
                                      "abs",  "square", "sin", "log1p", "gelu_erf"};
    constexpr const char* kBinary[] = {"add", "sub", "mul", "maximum", "minimum"};
    constexpr const char* kRows[] = {"softmax", "log_softmax"};
    for (uint64_t seed = 0; seed < 60; ++seed) {
        if (!is_of_today(seed)) continue;
        std::mt19937_64 random(seed);
        auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
        auto graph = graph_with({{DType::f32, {6, 8}}, {DType::f32, {8}}, {DType::f32, {6, 1}}}, [&](auto& b, auto& x) {
            std::vector<Expr> values(x.begin(), x.end());
            for (int i = 0; i < 25; ++i) {
                Expr a = values[pick(values.size())], c = values[pick(values.size())];
                Expr y;
                switch (pick(8)) {
                    case 0:
                    case 1:
                        y = call(kUnary[pick(std::size(kUnary))], {call("clamp", {a, -3.0, 3.0})});
                        break;
                    case 2:
                    case 3:
                        y = call(kBinary[pick(std::size(kBinary))], {a, c});
                        break;
                    case 4:
                        y = call("where", {call("less", {a, c}), a, c});
                        break;
                    case 5:
                        y = call(pick(2) ? "mean" : "amax", {a, a.rank() - 1, true});
                        break;
                    case 6:
                        y = call(kRows[pick(2)], {a, -1});
                        break;
                    default:
                        y = a.rank() == 2 ? a.transpose({1, 0}).transpose({1, 0}) : a.reshape({1, a.shape()[0]});
                        if (a.rank() == 2 && a.shape()[0] == 6 && a.shape()[1] == 8)
                            y = call("matmul", {a, a.transpose({1, 0})}).sum({1}, true) * 0.01;
                        break;
                }
                values.push_back(call("clamp", {y, -10.0, 10.0}));
            }
            std::vector<Expr> results(values.end() - 4, values.end());
            return b.list(results).value();
        });
        auto inputs = inputs_for(*graph, seed + 100);
        EXPECT_TRUE(are_close(run_compiled(*graph, inputs), run_eagerly(*graph, inputs), 1e-4)) << "seed " << seed;
        EXPECT_TRUE(are_close(run_compiled(*graph, inputs, false), run_eagerly(*graph, inputs), 1e-4))
            << "seed " << seed;
    }
}

}  // namespace
}  // namespace lunaria::graph
