// The rules of vmap, tested from the operators' entries: a call for a whole batch gives what a loop over its samples
// gives, whichever operands differ from sample to sample.
#include "core/batching/batching.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "backends/cpu/device.h"
#include "core/ops/sample.h"

namespace lunaria {
namespace {

constexpr int64_t kBatch = 3;

Value stacked(const std::vector<Value>& samples) {
    if (samples[0].is_list()) {
        std::vector<Value> items;
        for (size_t k = 0; k < samples[0].items().size(); ++k) {
            std::vector<Value> column;
            for (const Value& s : samples) column.push_back(s.items()[k]);
            items.push_back(stacked(column));
        }
        return Value::list(std::move(items));
    }
    if (!samples[0].is_tensor()) return {};
    std::vector<Expr> items;
    for (const Value& s : samples) items.emplace_back(eager_builder(), s);
    return eager_builder().call("stack", {eager_builder().list(items), int64_t{0}}).value();
}

void expect_close(const Value& got, const Value& want, const std::string& where) {
    if (want.is_list()) {
        ASSERT_TRUE(got.is_list()) << where;
        ASSERT_EQ(got.items().size(), want.items().size()) << where;
        for (size_t k = 0; k < want.items().size(); ++k) expect_close(got.items()[k], want.items()[k], where);
        return;
    }
    const Tensor &a = got.tensor(), &b = want.tensor();
    ASSERT_EQ(a.dtype(), b.dtype()) << where;
    ASSERT_EQ(a.shape(), b.shape()) << where;
    for (int64_t i = 0; i < a.size(); ++i) {
        const double x = a.at(i), y = b.at(i);
        if (x == y || (std::isnan(x) && std::isnan(y))) continue;
        ASSERT_LE(std::abs(x - y), 1e-4 * (1 + std::abs(y))) << where << " element " << i;
    }
}

// The arguments of kBatch samples; those that are not in `mapped` are the same in all.
std::vector<std::vector<Value>> samples_of(const Op& op, const char* text, uint64_t mapped) {
    std::vector<std::vector<Value>> samples;
    for (uint64_t b = 0; b < kBatch; ++b) {
        samples.push_back(sample_args(op, text, 11 + b));
        for (size_t i = 0; i < samples[b].size(); ++i)
            if (!((mapped >> i) & 1)) samples[b][i] = samples[0][i];
    }
    return samples;
}

bool holds_tensor(const Value& v) {
    return v.is_tensor() || (v.is_list() && !v.items().empty() && v.items()[0].is_tensor());
}

// Whether the rule covers the call.
bool check(const Op& op, const char* text, uint64_t mapped) {
    const auto samples = samples_of(op, text, mapped);
    std::vector<Value> batched(samples[0].size());
    bool any = false;
    for (size_t i = 0; i < batched.size(); ++i) {
        if (!((mapped >> i) & 1) || !holds_tensor(samples[0][i])) continue;
        std::vector<Value> column;
        for (const auto& s : samples) column.push_back(s[i]);
        batched[i] = stacked(column);
        any = true;
    }
    if (!any) return false;
    const Call call(op, samples[0], promoted_dtype(op, samples[0]));
    Value result;
    try {
        result = apply_batch_rule(BatchCall(call, eager_builder(), batched, kBatch), op.infer_fn(call));
    } catch (const Error& e) {
        ADD_FAILURE() << op.name() << ": " << text << ", mapped " << mapped << ": " << e.what();
        return false;
    }
    if (result.is_nil()) return false;
    std::vector<Value> single;
    for (const auto& s : samples) single.push_back(run(op, s));
    expect_close(result, stacked(single), str(op.name(), ": ", text, ", mapped ", mapped));
    return true;
}

TEST(Batching, every_rule_gives_what_a_loop_over_the_samples_gives) {
    set_current_device(&cpu::device());
    int rules = 0, composites = 0, loops = 0, calls = 0;
    std::string looped;
    for (const auto& entry : registry().all()) {
        const Op& op = *entry;
        if (!op.is_repeatable()) continue;
        if (op.host_fn) {
            ++rules;
            continue;
        }
        if (!has_batch_rule(op) || !op.infer_fn) {
            op.expand_fn ? ++composites : ++loops;
            if (!op.expand_fn) looped += str(' ', op.name());
            continue;
        }
        ++rules;
        int covered = 0;
        for (const char* text : op.samples) {
            const size_t count = op.signature.params.size();
            covered += check(op, text, ~uint64_t{0});
            for (size_t i = 0; i < count; ++i) covered += check(op, text, uint64_t{1} << i);
        }
        EXPECT_GT(covered, 0) << op.name() << " has a rule that covers none of its samples";
        calls += covered;
    }
    std::cout << rules << " operators have a rule (" << calls << " calls compared), " << composites
              << " are made of others, " << loops << " are applied to one sample after the other:" << looped << "\n";
    EXPECT_GT(rules, 200);
}

}  // namespace
}  // namespace lunaria
