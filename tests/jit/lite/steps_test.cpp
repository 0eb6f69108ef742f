// Steps of the light runtime that have the name of an operator give what the operator gives.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "backends/cpu/device.h"
#include "core/lite/runtime/executor.h"
#include "core/operator/op.h"
#include "core/ops/sample.h"
#include "tests/jit/graph/compare.h"

namespace lunaria::lite {
namespace {

using lunaria::testing::are_close;

std::vector<Number> numbers_of(const Shape& shape) {
    std::vector<Number> list;
    for (const int64_t n : shape) list.emplace_back(n);
    return list;
}

// A model of one step.
struct StepModel {
    Model model;
    std::vector<Tensor> inputs;

    View add(const Tensor& t, lite::Value::Home home) {
        lite::Value v;
        v.dtype = t.dtype();
        v.home = home;
        v.shape = numbers_of(t.shape());
        const auto index = static_cast<uint32_t>(model.values.size());
        (home == lite::Value::Home::input ? model.inputs : model.outputs).push_back(index);
        model.values.push_back(std::move(v));
        View view;
        view.value = index;
        return view;
    }
};

Attribute attribute_of(std::string_view name, const lunaria::Value& v) {
    Attribute a;
    a.name = name;
    if (v.kind() == lunaria::Value::Kind::string) {
        a.kind = Attribute::Kind::text;
        a.text = v.string();
    } else if (v.is_list()) {
        for (const lunaria::Value& item : v.items()) a.integers.emplace_back(item.integer());
    } else if (v.kind() == lunaria::Value::Kind::dtype) {
        a.integers.emplace_back(static_cast<int64_t>(v.dtype()));
    } else if (v.kind() == lunaria::Value::Kind::boolean) {
        a.integers.emplace_back(v.boolean());
    } else if (v.kind() == lunaria::Value::Kind::integer) {
        a.integers.emplace_back(v.integer());
    } else {
        a.kind = Attribute::Kind::numbers;
        a.numbers.push_back(v.number());
    }
    return a;
}

StepModel model_of(const Op& op, std::span<const lunaria::Value> args, std::span<const Tensor> results) {
    StepModel m;
    Step step;
    step.kind = op.name();
    auto operand = [&](const lunaria::Value& v) {
        m.inputs.push_back(v.tensor().contiguous());
        step.operands.push_back(m.add(m.inputs.back(), lite::Value::Home::input));
    };
    for (size_t i = 0; i < args.size(); ++i) {
        const Param& param = op.signature.params[i];
        const bool is_list = args[i].is_list() && !args[i].items().empty() && args[i].items()[0].is_tensor();
        if (args[i].is_tensor()) {
            operand(args[i]);
        } else if (is_list) {
            for (const lunaria::Value& item : args[i].items()) operand(item);
        } else if (!args[i].is_nil()) {
            step.attributes.push_back(attribute_of(param.name, args[i]));
        } else if (param.type == ArgType::tensor) {
            step.operands.emplace_back();
        }
    }
    for (const Tensor& t : results) step.results.push_back(m.add(t, lite::Value::Home::output));
    m.model.steps.push_back(std::move(step));
    return m;
}

std::vector<Tensor> run(const StepModel& m, std::span<const Tensor> like, int threads) {
    std::vector<std::byte> bytes;
    EXPECT_EQ(write_model(m.model,
                          [&](std::span<const std::byte> part) {
                              bytes.insert(bytes.end(), part.begin(), part.end());
                              return true;
                          }),
              "");
    Memory file;
    EXPECT_TRUE(file.reserve(bytes.size()));
    std::memcpy(file.data(), bytes.data(), bytes.size());
    std::string fault;
    const auto executor = Executor::make({reinterpret_cast<const std::byte*>(file.data()), bytes.size()},
                                         std::make_shared<Threads>(threads, Affinity::none, std::vector<int>()),
                                         std::make_shared<Workspace>(), fault);
    if (!executor) {
        ADD_FAILURE() << fault;
        return {};
    }
    std::vector<const void*> inputs;
    for (const Tensor& t : m.inputs) inputs.push_back(t.raw());
    std::vector<Tensor> results;
    std::vector<void*> outputs;
    for (const Tensor& t : like) {
        results.push_back(Tensor::empty(t.dtype(), t.shape()));
        outputs.push_back(results.back().raw());
    }
    EXPECT_TRUE(executor->run(inputs, outputs, {}, fault)) << fault;
    return results;
}

TEST(LightSteps, give_what_their_operators_give) {
    set_current_device(&cpu::device());
    std::set<std::string> seen;
    for (const auto& op : registry().all()) {
        if (!find_kind(op->name()) || op->host_fn || op->draws() || op->name() == "copy") continue;
        for (const char* sample : op->samples) {
            SCOPED_TRACE(str(op->name(), '(', sample, ')'));
            const std::vector<lunaria::Value> args = sample_args(*op, sample, 3);
            // Formulas with a number before a tensor are loops in all models.
            bool is_loop = false;
            for (size_t i = 1; i < args.size() && op->is_elementwise; ++i)
                is_loop |= args[i].is_tensor() && !args[i - 1].is_tensor();
            is_loop |= op->name() == "clamp" && args.size() > 1 && (args[1].is_tensor() || args[2].is_tensor());
            if (is_loop) continue;
            std::vector<Tensor> want;
            try {
                std::vector<lunaria::Value> copies = args;
                const lunaria::Value result = lunaria::run(*op, copies);
                if (result.is_tensor())
                    want.push_back(result.tensor().contiguous());
                else
                    for (const lunaria::Value& item : result.items()) want.push_back(item.tensor().contiguous());
            } catch (const Error&) {
                continue;
            }
            bool is_real = true;
            for (const Tensor& t : want) is_real &= is_lane(t.dtype());
            if (!is_real) continue;
            const StepModel m = model_of(*op, args, want);
            const std::vector<Tensor> got = run(m, want, static_cast<int>(seen.size() % 3) + 1);
            EXPECT_TRUE(are_close(got, want, 1e-6));
            seen.insert(std::string(op->name()));
        }
    }
    EXPECT_GT(seen.size(), 30u);
}

}  // namespace
}  // namespace lunaria::lite
