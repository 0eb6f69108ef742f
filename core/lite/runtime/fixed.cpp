// Models whose variables become constants: what follows from them alone is computed once.
#include <cstring>

#include "core/lite/kernels/names.h"
#include "core/lite/kernels/product.h"
#include "core/lite/runtime/executor.h"

namespace lunaria::lite {

namespace {

// A matrix that a product of two matrices reads as its second operand, as the arranged weight of one with a weight.
class WeightProducts {
  public:
    WeightProducts(Model& model, std::vector<Memory>& kept) : model_(model), kept_(kept) {}

    bool arrange(Step& step) {
        if (step.kind != "batched_product" || step.operands.size() < 2 || step.results.size() != 1) return true;
        const View &a = step.operands[0], &b = step.operands[1];
        if (!a.whole || a.value == kNone || b.value == kNone || !is_constant_matrix(b)) return true;
        const Attribute* const factor = find(step.attributes, "factor");
        const bool is_plain = !factor || (!factor->numbers.empty() && factor->numbers[0] == 1) ||
                              (!factor->integers.empty() && factor->integers[0].value == 1);
        if (model_.values[a.value].shape.size() != 2 || !is_plain) return true;
        const Value& value = model_.values[b.value];
        const std::vector<Number>& shape = b.whole ? value.shape : b.shape;
        const int64_t k = shape[0].value, n = shape[1].value;
        const int64_t k_step = b.whole ? n : b.strides[0].value, n_step = b.whole ? 1 : b.strides[1].value;
        const int64_t bytes = kernels::weight_bytes(kernels::WeightType::f32, k, n);
        Memory& memory = kept_.emplace_back();
        if (!memory.reserve(static_cast<size_t>(std::max<int64_t>(bytes, 1)))) return false;
        kernels::pack_weight(kernels::WeightType::f32, k, n,
                             reinterpret_cast<const float*>(value.data) + b.offset.value, k_step, n_step,
                             memory.data());
        Value packed;
        packed.dtype = DType::u8;
        packed.home = Value::Home::constant;
        packed.shape = {bytes};
        packed.data = reinterpret_cast<const std::byte*>(memory.data());
        packed.bytes = static_cast<uint64_t>(bytes);
        model_.values.push_back(std::move(packed));
        step.kind = "product";
        step.operands[1] = {static_cast<uint32_t>(model_.values.size() - 1), true, {}, {}, 0};
        step.attributes.push_back({"k", Attribute::Kind::integers, {k}, {}, {}});
        step.attributes.push_back({"n", Attribute::Kind::integers, {n}, {}, {}});
        step.attributes.push_back({"type", Attribute::Kind::text, {}, {}, "f32"});
        return true;
    }

  private:
    bool is_constant_matrix(const View& view) const {
        const Value& value = model_.values[view.value];
        const std::vector<Number>& shape = view.whole ? value.shape : view.shape;
        const auto is_known = [](const Number& n) { return n.formula == kNone; };
        return value.home == Value::Home::constant && value.dtype == DType::f32 && value.form == Form::plain &&
               shape.size() == 2 && std::ranges::all_of(shape, is_known) &&
               std::ranges::all_of(view.strides, is_known) && is_known(view.offset);
    }

    Model& model_;
    std::vector<Memory>& kept_;
};

}  // namespace

// Runs the steps that read stored values alone; their results are in `results`, by value.
bool Executor::run_fixed(std::vector<bool>& is_fixed, std::vector<bool>& is_done, std::vector<Memory>& results,
                         std::string& fault) {
    const std::scoped_lock lock(threads_->turn, workspace_->turn);
    const kernels::Workers workers = this->workers();
    std::atomic<const char*> wrong{nullptr};
    for (size_t s = 0; s < steps_.size(); ++s) {
        const Step& step = model_.steps[s];
        const auto fixed = [&](const View& v) { return v.value == kNone || is_fixed[v.value]; };
        const auto temporary = [&](const View& v) {
            return v.value == kNone || model_.values[v.value].home == Value::Home::arena;
        };
        is_done[s] = std::ranges::all_of(step.operands, fixed) && std::ranges::all_of(step.results, temporary);
        if (!is_done[s]) continue;
        for (const View& view : step.results) {
            if (view.value == kNone) continue;
            if (!results[view.value].reserve(std::max<size_t>(bytes_[view.value], 1))) {
                fault = "there is not enough memory";
                return false;
            }
            is_fixed[view.value] = true;
            addresses_[view.value] = results[view.value].data();
        }
        run_step(steps_[s], workers, wrong);
        if (const char* text = wrong.load(std::memory_order_relaxed)) {
            fault = "step " + std::to_string(s) + ": " + text;
            return false;
        }
    }
    return true;
}

bool Executor::save_fixed(const std::string& path, std::string& fault) {
    std::vector<bool> is_fixed, is_done(model_.steps.size());
    for (const Value& v : model_.values) is_fixed.push_back(v.is_stored());
    std::vector<Memory> results(model_.values.size());
    if (!run_fixed(is_fixed, is_done, results, fault)) return false;
    Model fixed = model_;
    fixed.steps.clear();
    for (size_t s = 0; s < model_.steps.size(); ++s)
        if (!is_done[s]) fixed.steps.push_back(model_.steps[s]);
    for (uint32_t v = 0; v < fixed.values.size(); ++v) {
        Value& value = fixed.values[v];
        if (value.shares != kNone && is_fixed[value.shares]) value.shares = kNone;
        if (!is_fixed[v]) continue;
        value.home = Value::Home::constant;
        value.shares = kNone;
        value.data = reinterpret_cast<const std::byte*>(addresses_[v]);
        value.bytes = bytes_[v];
    }
    std::vector<Memory> packed;
    packed.reserve(fixed.steps.size());
    WeightProducts products(fixed, packed);
    for (Step& step : fixed.steps)
        if (!products.arrange(step)) {
            fault = "there is not enough memory";
            return false;
        }
    // What only steps that are done read, or was arranged anew.
    std::vector<bool> stays(fixed.values.size());
    for (const Step& step : fixed.steps)
        for (const View& v : step.operands)
            if (v.value != kNone) stays[v.value] = true;
    for (const uint32_t v : fixed.outputs) stays[v] = true;
    for (uint32_t v = 0; v < fixed.values.size(); ++v)
        if (fixed.values[v].home == Value::Home::constant && !stays[v]) {
            fixed.values[v].home = Value::Home::arena;
            fixed.values[v].data = nullptr;
            fixed.values[v].bytes = 0;
        }
    return write_file(fixed, path, fault);
}

}  // namespace lunaria::lite
