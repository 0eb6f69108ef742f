// A model that is built, run, resized and given other weights through the C interface.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>

#include "core/lite/format/file.h"
#include "core/lite/kernels/product.h"
#include "core/lite/runtime/lunaria-lite.h"
#include "tests/lite/runtime/allocations.h"

namespace lunaria::lite {
namespace {

using graph::LoopInstruction;
using graph::LoopOperand;

constexpr int64_t kIn = 37, kHidden = 21;

float weight(int64_t i, int64_t j) { return static_cast<float>((i * 7 + j * 3) % 11 - 5) / 9.0f; }

std::vector<std::byte> bytes_of(const Model& m) {
    std::vector<std::byte> file;
    EXPECT_EQ(write_model(m,
                          [&](std::span<const std::byte> part) {
                              file.insert(file.end(), part.begin(), part.end());
                              return true;
                          }),
              "");
    return file;
}

// y = tanh(relu(x w + b)) with an open number of rows.
std::vector<std::byte> network() {
    static std::vector<std::byte> packed;
    static float bias[kHidden], raw[kIn * kHidden];
    for (int64_t i = 0; i < kIn; ++i)
        for (int64_t j = 0; j < kHidden; ++j) raw[i * kHidden + j] = weight(i, j);
    for (int64_t j = 0; j < kHidden; ++j) bias[j] = static_cast<float>(j) / 50.0f;
    packed.resize(static_cast<size_t>(kernels::weight_bytes(kernels::WeightType::f32, kIn, kHidden)));
    kernels::pack_weight(kernels::WeightType::f32, kIn, kHidden, raw, kHidden, 1, packed.data());

    Model m;
    m.dimensions.push_back({.name = "rows", .size = 3});
    m.formulas.push_back({.terms = {{Formula::Kind::dimension, 0}}});
    m.formulas.push_back(
        {.terms = {{Formula::Kind::dimension, 0}, {Formula::Kind::constant, kHidden}, {Formula::Kind::multiply, 0}}});
    auto value = [&](const char* name, Value::Home home, std::vector<Number> shape, DType t, const void* data,
                     size_t bytes) {
        Value v;
        v.name = name;
        v.home = home;
        v.shape = std::move(shape);
        v.dtype = t;
        v.data = static_cast<const std::byte*>(data);
        v.bytes = bytes;
        m.values.push_back(std::move(v));
        View view;
        view.value = static_cast<uint32_t>(m.values.size() - 1);
        return view;
    };
    const View x = value("x", Value::Home::input, {{3, 0}, kIn}, DType::f32, nullptr, 0);
    const View w = value("w", Value::Home::constant, {static_cast<int64_t>(packed.size())}, DType::u8, packed.data(),
                         packed.size());
    const View b = value("b", Value::Home::constant, {kHidden}, DType::f32, bias, sizeof bias);
    const View h = value("", Value::Home::arena, {{3, 0}, kHidden}, DType::f32, nullptr, 0);
    const View y = value("y", Value::Home::output, {{3, 0}, kHidden}, DType::f32, nullptr, 0);
    m.inputs = {x.value};
    m.outputs = {y.value};
    auto integer = [](const char* name, int64_t n) {
        Attribute a;
        a.name = name;
        a.integers = {n};
        return a;
    };
    auto text = [](const char* name, const char* t) {
        Attribute a;
        a.name = name;
        a.kind = Attribute::Kind::text;
        a.text = t;
        return a;
    };
    Step product;
    product.kind = "product";
    product.operands = {x, w, b};
    product.results = {h};
    product.attributes = {integer("k", kIn), integer("n", kHidden), text("type", "f32"), text("activation", "relu")};
    product.label = "dense relu";
    m.steps.push_back(product);
    Loop loop;
    loop.program.operands = {{.written = false}, {.written = true}};
    LoopInstruction load, tanh, store;
    load.kind = LoopInstruction::Kind::load;
    tanh.kind = LoopInstruction::Kind::formula;
    tanh.name = "tanh";
    tanh.args = {0};
    store.kind = LoopInstruction::Kind::store;
    store.index = 1;
    store.args = {1};
    loop.program.code = {load, tanh, store};
    m.loops.push_back(loop);
    Step step;
    step.kind = "loop";
    step.loop = 0;
    step.operands = {h};
    step.results = {y};
    step.sizes = {{3 * kHidden, 1}};
    step.label = "tanh";
    m.steps.push_back(step);
    return bytes_of(m);
}

float wanted(const float* x, int64_t j, float more = 0) {
    double sum = static_cast<double>(j) / 50.0 + static_cast<double>(more);
    for (int64_t i = 0; i < kIn; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(weight(i, j));
    return static_cast<float>(std::tanh(std::max(sum, 0.0)));
}
void fill(float* x, int64_t count) {
    for (int64_t i = 0; i < count; ++i) x[i] = static_cast<float>(i % 17 - 8) / 13.0f;
}
void expect_right(lunaria_lite_model* model, int64_t rows, float more = 0) {
    const lunaria_lite_tensor *x = lunaria_lite_model_inputs(model, nullptr),
                              *y = lunaria_lite_model_outputs(model, nullptr);
    ASSERT_EQ(y->bytes, static_cast<size_t>(rows * kHidden) * sizeof(float));
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < kHidden; ++j)
            EXPECT_NEAR(static_cast<const float*>(y->data)[i * kHidden + j],
                        wanted(static_cast<const float*>(x->data) + i * kIn, j, more), 1e-5);
}

struct Built {
    const std::vector<std::byte> file;  // lives as long as the model
    lunaria_lite_context* context = lunaria_lite_context_create();
    lunaria_lite_model* model = lunaria_lite_model_create();

    explicit Built(std::vector<std::byte> bytes, int threads = 1, lunaria_lite_group* group = nullptr)
        : file(std::move(bytes)) {
        EXPECT_EQ(lunaria_lite_context_set_threads(context, threads), 0);
        if (group) {
            EXPECT_EQ(lunaria_lite_group_add(group, model), 0);
        }
        EXPECT_EQ(lunaria_lite_model_build(model, file.data(), file.size(), context), 0) << lunaria_lite_error();
    }
    ~Built() {
        lunaria_lite_context_free(context);
        lunaria_lite_model_free(model);
    }
    lunaria_lite_tensor* input() const { return lunaria_lite_model_inputs(model, nullptr); }
    int resize(int64_t rows) const {
        lunaria_lite_tensor shape = *input();
        shape.shape[0] = rows;
        return lunaria_lite_model_resize(model, &shape, 1);
    }
    void predict(int64_t rows) const {
        fill(static_cast<float*>(input()->data), rows * kIn);
        ASSERT_EQ(lunaria_lite_model_predict(model, nullptr, nullptr, nullptr), 0) << lunaria_lite_error();
    }
};

TEST(LightModel, is_built_from_memory_and_runs) {
    const Built built(network());
    ASSERT_STREQ(built.input()->name, "x");
    EXPECT_EQ(built.input()->rank, 2);
    built.predict(3);
    expect_right(built.model, 3);
}

TEST(LightModel, is_resized_and_refuses_other_shapes) {
    const Built built(network(), 2);
    for (const int64_t rows : {1, 500, 2}) {
        ASSERT_EQ(built.resize(rows), 0) << lunaria_lite_error();
        built.predict(rows);
        expect_right(built.model, rows);
    }
    lunaria_lite_tensor shape = *built.input();
    shape.shape[1] = kIn + 1;
    EXPECT_EQ(lunaria_lite_model_resize(built.model, &shape, 1), -1);
    built.predict(2);
    expect_right(built.model, 2);
}

TEST(LightModel, takes_no_memory_in_a_run) {
    for (const int threads : {1, 3}) {
        const Built built(network(), threads);
        ASSERT_EQ(built.resize(400), 0);
        built.predict(400);
        const int64_t before = lunaria::testing::allocations();
        for (int i = 0; i < 10; ++i)
            if (lunaria_lite_model_predict(built.model, nullptr, nullptr, nullptr) != 0) FAIL();
        EXPECT_EQ(lunaria::testing::allocations(), before);
    }
}

TEST(LightModel, shares_temporaries_with_its_group) {
    lunaria_lite_group* const group = lunaria_lite_group_create();
    const std::vector<std::byte> file = network();
    const Built first(file, 1, group), second(file, 1, group);
    lunaria_lite_group_free(group);
    ASSERT_EQ(second.resize(300), 0);
    std::thread other([&] {
        for (int i = 0; i < 20; ++i) first.predict(3);
    });
    for (int i = 0; i < 20; ++i) second.predict(300);
    other.join();
    expect_right(first.model, 3);
    expect_right(second.model, 300);
}

TEST(LightModel, runs_beside_others_in_contexts_of_their_own) {
    std::vector<std::unique_ptr<Built>> models;
    for (int i = 0; i < 3; ++i) {
        models.push_back(std::make_unique<Built>(network(), 1 + i % 2));
        ASSERT_EQ(models.back()->resize(50 + i), 0);
    }
    std::vector<std::thread> threads;
    for (size_t i = 0; i < models.size(); ++i)
        threads.emplace_back([&, i] {
            for (int k = 0; k < 20; ++k) models[i]->predict(50 + static_cast<int64_t>(i));
        });
    for (std::thread& t : threads) t.join();
    for (size_t i = 0; i < models.size(); ++i) expect_right(models[i]->model, 50 + static_cast<int64_t>(i));
}

TEST(LightModel, gets_other_weights_by_their_names) {
    const Built built(network());
    float bias[kHidden];
    for (int64_t j = 0; j < kHidden; ++j) bias[j] = static_cast<float>(j) / 50.0f + 0.25f;
    lunaria_lite_tensor weights{};
    weights.name = "b";
    weights.data = bias;
    weights.bytes = sizeof bias;
    ASSERT_EQ(lunaria_lite_model_update_weights(built.model, &weights, 1), 0) << lunaria_lite_error();
    built.predict(3);
    expect_right(built.model, 3, 0.25f);
    const std::string path = std::string(::testing::TempDir()) + "saved.lite";
    ASSERT_EQ(lunaria_lite_model_save(built.model, path.c_str()), 0) << lunaria_lite_error();
    lunaria_lite_model* const again = lunaria_lite_model_create();
    ASSERT_EQ(lunaria_lite_model_build_from_file(again, path.c_str(), nullptr), 0) << lunaria_lite_error();
    fill(static_cast<float*>(lunaria_lite_model_inputs(again, nullptr)->data), 3 * kIn);
    ASSERT_EQ(lunaria_lite_model_predict(again, nullptr, nullptr, nullptr), 0);
    expect_right(again, 3, 0.25f);
    lunaria_lite_model_free(again);
    std::remove(path.c_str());
    EXPECT_EQ(lunaria_lite_model_save(built.model, "/nowhere/saved.lite"), -1);
    weights.bytes -= 4;
    EXPECT_EQ(lunaria_lite_model_update_weights(built.model, &weights, 1), -1);
    weights.name = "c";
    EXPECT_EQ(lunaria_lite_model_update_weights(built.model, &weights, 1), -1);
    EXPECT_STREQ(lunaria_lite_error(), "there is no weight 'c'");
}

TEST(LightModel, calls_back_around_each_step_and_stops_when_told) {
    const Built built(network());
    fill(static_cast<float*>(built.input()->data), 3 * kIn);
    std::string seen;
    auto note = [](const lunaria_lite_step* step, void* user) {
        static_cast<std::string*>(user)->append(step->operators).append(";");
        return 0;
    };
    ASSERT_EQ(lunaria_lite_model_predict(built.model, note, note, &seen), 0);
    EXPECT_EQ(seen, "dense relu;dense relu;tanh;tanh;");
    auto stop = [](const lunaria_lite_step* step, void*) { return static_cast<int>(step->index); };
    EXPECT_EQ(lunaria_lite_model_predict(built.model, stop, nullptr, nullptr), -1);
}

TEST(LightModel, uses_memory_of_the_caller) {
    const Built built(network());
    std::vector<float> x(3 * kIn), y(3 * kHidden);
    fill(x.data(), 3 * kIn);
    built.input()->data = x.data();
    lunaria_lite_model_outputs(built.model, nullptr)->data = y.data();
    for (int i = 0; i < 2; ++i) {
        y[0] = 7;
        ASSERT_EQ(lunaria_lite_model_predict(built.model, nullptr, nullptr, nullptr), 0);
        EXPECT_EQ(lunaria_lite_model_outputs(built.model, nullptr)->data, y.data());
        EXPECT_NEAR(y[0], wanted(x.data(), 0), 1e-5);
    }
}

// What a model of one step makes of all elements of x, with constants behind it.
template <class T, class R>
R result_of(const char* kind, DType dtype, const std::vector<T>& x, DType result,
            const std::vector<Value>& constants = {}) {
    Model m;
    m.values.resize(2);
    m.values[0].home = Value::Home::input;
    m.values[0].dtype = dtype;
    m.values[0].shape = {static_cast<int64_t>(x.size())};
    m.values[1].home = Value::Home::output;
    m.values[1].dtype = result;
    m.values[1].shape = {1};
    m.inputs = {0};
    m.outputs = {1};
    Step step;
    step.kind = kind;
    step.operands.resize(1);
    step.operands[0].value = 0;
    for (const Value& v : constants) {
        step.operands.emplace_back().value = static_cast<uint32_t>(m.values.size());
        m.values.push_back(v);
    }
    step.results.resize(1);
    step.results[0].value = 1;
    m.steps.push_back(step);
    const Built built(bytes_of(m));
    std::memcpy(built.input()->data, x.data(), x.size() * sizeof(T));
    EXPECT_EQ(lunaria_lite_model_predict(built.model, nullptr, nullptr, nullptr), 0) << lunaria_lite_error();
    return *static_cast<const R*>(lunaria_lite_model_outputs(built.model, nullptr)->data);
}

TEST(LightModel, finds_the_best_of_integers_at_the_ends_of_their_range) {
    constexpr int64_t kMost = INT64_MAX;
    constexpr uint64_t kNatural = UINT64_MAX;
    EXPECT_EQ((result_of<int64_t, int64_t>("argmin", DType::i64, {kMost, 3, kMost, 1}, DType::i64)), 3);
    EXPECT_EQ((result_of<uint64_t, int64_t>("argmin", DType::u64, {kNatural, 3, 1, kNatural}, DType::i64)), 2);
    EXPECT_EQ((result_of<int64_t, int64_t>("argmin", DType::i64, {0, INT64_MIN + 1, INT64_MIN}, DType::i64)), 2);
    EXPECT_EQ((result_of<float, int64_t>("argmin", DType::f32, {-INFINITY, NAN, 1}, DType::i64)), 1);
    EXPECT_EQ((result_of<uint64_t, uint64_t>("amax", DType::u64, {5, kNatural, 7}, DType::u64)), kNatural);
    EXPECT_EQ((result_of<uint64_t, uint64_t>("amin", DType::u64, {5, kNatural, 7}, DType::u64)), 5u);
    EXPECT_EQ((result_of<uint64_t, double>("mean", DType::u64, {uint64_t{1} << 63, uint64_t{1} << 63}, DType::f64)),
              0x1p63);
}

TEST(LightModel, divides_the_lowest_integer_by_minus_one) {
    static const int64_t place = 0;
    static const int32_t divisor = -1;
    Value index, update;
    index.home = update.home = Value::Home::constant;
    index.dtype = DType::i64;
    index.shape = {1, 1};
    index.data = reinterpret_cast<const std::byte*>(&place);
    index.bytes = sizeof place;
    update.dtype = DType::i32;
    update.shape = {1};
    update.data = reinterpret_cast<const std::byte*>(&divisor);
    update.bytes = sizeof divisor;
    EXPECT_EQ((result_of<int32_t, int32_t>("tensor_scatter_div", DType::i32, {INT32_MIN}, DType::i32, {index, update})),
              INT32_MIN);
    EXPECT_EQ((result_of<int32_t, int32_t>("tensor_scatter_add", DType::i32, {INT32_MIN}, DType::i32, {index, update})),
              INT32_MAX);
}

TEST(LightModel, says_what_is_wrong_with_a_file) {
    std::vector<std::byte> file = network();
    file[80] ^= std::byte{1};
    lunaria_lite_model* const model = lunaria_lite_model_create();
    EXPECT_EQ(lunaria_lite_model_build(model, file.data(), file.size(), nullptr), -1);
    EXPECT_NE(std::string(lunaria_lite_error()).find("byte"), std::string::npos) << lunaria_lite_error();
    EXPECT_EQ(lunaria_lite_model_build_from_file(model, "/nowhere/model.lite", nullptr), -1);
    EXPECT_EQ(lunaria_lite_model_predict(model, nullptr, nullptr, nullptr), -1);
    lunaria_lite_model_free(model);
}

}  // namespace
}  // namespace lunaria::lite
