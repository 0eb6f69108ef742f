#include "core/lite/runtime/trainer.h"

#include <cmath>
#include <cstring>

#include "core/ops/formulas_optimizer.h"

namespace lunaria::lite {

namespace {

constexpr std::string_view kGradient = "gradient:", kState = "state:";

uint32_t find_value(const Model& model, std::string_view name, Value::Home home) {
    for (uint32_t v = 0; v < model.values.size(); ++v)
        if (model.values[v].home == home && model.values[v].name == name) return v;
    return kNone;
}

// Calls f with both flags as constants.
template <class F>
void with_flags(bool first, bool second, F&& f) {
    if (first)
        second ? f.template operator()<true, true>() : f.template operator()<true, false>();
    else
        second ? f.template operator()<false, true>() : f.template operator()<false, false>();
}

double number_of(const Model& model, std::string_view name, double otherwise = 0) {
    const Attribute* const a = find(model.properties, name);
    if (!a) return otherwise;
    if (!a->numbers.empty()) return a->numbers[0];
    return a->integers.empty() ? otherwise : static_cast<double>(a->integers[0].value);
}

}  // namespace

std::unique_ptr<Trainer> Trainer::make(std::shared_ptr<Executor> executor, std::string& fault) {
    std::unique_ptr<Trainer> made(new Trainer);
    made->executor_ = std::move(executor);
    return made->read(fault) ? std::move(made) : nullptr;
}

bool Trainer::read(std::string& fault) {
    const Model& model = executor_->model();
    const Attribute* const kind = find(model.properties, "optimizer");
    is_adam_ = kind && kind->text == "adam";
    const bool trains =
        kind && (is_adam_ || kind->text == "momentum") && !model.inputs.empty() && !model.outputs.empty() &&
        model.values[model.inputs.back()].name == "sens" && model.values[model.inputs.back()].dtype == DType::f32 &&
        executor_->bytes(model.inputs.back()) == sizeof(float) && model.values[model.outputs[0]].dtype == DType::f32 &&
        executor_->bytes(model.outputs[0]) == sizeof(float);
    if (!trains) {
        fault = "the model is none that trains: ms.lite.convert_training writes those";
        return false;
    }
    learning_rate = number_of(model, "learning_rate");
    momentum_ = number_of(model, "momentum");
    dampening_ = number_of(model, "dampening");
    weight_decay_ = number_of(model, "weight_decay");
    beta1_ = number_of(model, "beta1");
    beta2_ = number_of(model, "beta2");
    eps_ = number_of(model, "eps");
    nesterov_ = number_of(model, "nesterov") != 0;
    corrects_bias_ = number_of(model, "bias_correction", 1) != 0;
    scales_eps_ = number_of(model, "scales_eps") != 0;
    is_decoupled_ = number_of(model, "decoupled") != 0;
    steps_ = find_value(model, "steps", Value::Home::variable);
    if (steps_ == kNone || executor_->bytes(steps_) != sizeof(int64_t) || model.values[steps_].dtype != DType::i64) {
        fault = "the model has no number of steps";
        return false;
    }
    wanted_.resize(model.outputs.size());
    given_.resize(model.inputs.size());
    return find_weights(fault);
}

bool Trainer::find_weights(std::string& fault) {
    const Model& model = executor_->model();
    const Attribute* const decayed = find(model.properties, "decayed");
    for (size_t i = 1; i < model.outputs.size(); ++i) {
        const uint32_t output = model.outputs[i];
        const std::string& name = model.values[output].name;
        const bool is_gradient = name.starts_with(kGradient);
        const std::string variable = name.substr(std::min(name.size(), name.find(':') + 1));
        const uint32_t v = find_value(model, variable, Value::Home::variable);
        if ((!is_gradient && !name.starts_with(kState)) || v == kNone ||
            executor_->bytes(v) != executor_->bytes(output) || model.values[v].dtype != model.values[output].dtype) {
            fault = "output '" + name + "' belongs to no variable";
            return false;
        }
        if (!is_gradient) {
            states_.push_back({output, v, executor_->bytes(v)});
            continue;
        }
        Weight w;
        w.name = variable;
        w.variable = v;
        w.gradient = output;
        w.count = static_cast<int64_t>(executor_->bytes(v) / sizeof(float));
        w.moment1 = find_value(model, "moment1:" + variable, Value::Home::variable);
        w.moment2 = find_value(model, "moment2:" + variable, Value::Home::variable);
        w.most = find_value(model, "most:" + variable, Value::Home::variable);
        if (decayed && weights_.size() < decayed->integers.size())
            w.decays = decayed->integers[weights_.size()].value != 0;
        bool good = model.values[v].dtype == DType::f32 && (!is_adam_ || (w.moment1 != kNone && w.moment2 != kNone)) &&
                    (is_adam_ || momentum_ == 0 || w.moment1 != kNone);
        for (const uint32_t m : {w.moment1, w.moment2, w.most})
            good = good &&
                   (m == kNone || (model.values[m].dtype == DType::f32 && executor_->bytes(m) == executor_->bytes(v)));
        if (!good) {
            fault = "the optimizer's state of '" + variable + "' does not fit";
            return false;
        }
        weights_.push_back(std::move(w));
    }
    if (weights_.empty()) fault = "the model has no gradients";
    return !weights_.empty();
}

bool Trainer::run(std::span<const void* const> inputs, std::string& fault) {
    for (size_t i = 0; i + 1 < given_.size(); ++i) given_[i] = i < inputs.size() ? inputs[i] : nullptr;
    given_.back() = &sens_;
    return executor_->run(given_, wanted_, {}, fault);
}

double Trainer::loss() const {
    float value = 0;
    std::memcpy(&value, executor_->address(executor_->model().outputs[0]), sizeof value);
    return static_cast<double>(value);
}

bool Trainer::loss_of(std::span<const void* const> inputs, double& found, std::string& fault) {
    sens_ = 1;
    if (!run(inputs, fault)) return false;
    found = loss();
    return true;
}

bool Trainer::is_finite() const {
    for (const Weight& w : weights_) {
        const auto* const gradient = reinterpret_cast<const float*>(executor_->address(w.gradient));
        for (int64_t i = 0; i < w.count; ++i)
            if (!std::isfinite(gradient[i])) return false;
    }
    return true;
}

void Trainer::change_scale(bool good) {
    if (!loss_scale.is_dynamic) return;
    if (!good) {
        loss_scale.scale = std::max(1.0F, loss_scale.scale / 2);
        good_ = 0;
    } else if (++good_ >= loss_scale.patience) {
        loss_scale.scale = std::min(loss_scale.scale * 2, 0x1p24F);
        good_ = 0;
    }
}

bool Trainer::step(std::span<const void* const> inputs, double& found, std::string& fault) {
    sens_ = loss_scale.scale;
    if (!run(inputs, fault)) return false;
    found = loss();
    const bool is_scaled = loss_scale.is_dynamic || loss_scale.scale != 1;
    was_skipped_ = is_scaled && !is_finite();
    if (was_skipped_) {
        change_scale(false);
        return true;
    }
    for (const Copy& c : states_) std::memcpy(executor_->state(c.to), executor_->address(c.from), c.bytes);
    // Gradients are means over what the batches of a virtual one have in common.
    const float share = 1 / (sens_ * static_cast<float>(virtual_batch_));
    for (Weight& w : weights_) {
        w.sum.resize(static_cast<size_t>(w.count));
        const auto* const gradient = reinterpret_cast<const float*>(executor_->address(w.gradient));
        for (size_t i = 0; i < w.sum.size(); ++i) w.sum[i] = (added_ ? w.sum[i] : 0.0F) + gradient[i] * share;
    }
    change_scale(true);
    if (++added_ < virtual_batch_) return true;
    added_ = 0;
    update();
    return true;
}

bool Trainer::set_virtual_batch(int batches, std::string& fault) {
    if (batches < 1 || batches > 1 << 20) {
        fault = "a virtual batch has from 1 to 1048576 batches";
        return false;
    }
    virtual_batch_ = batches;
    added_ = 0;
    return true;
}

int64_t Trainer::steps() const {
    int64_t count = 0;
    std::memcpy(&count, executor_->address(steps_), sizeof count);
    return count;
}

void Trainer::update() {
    const int64_t count = steps() + 1;
    std::memcpy(executor_->state(steps_), &count, sizeof count);
    for (Weight& w : weights_) is_adam_ ? update_adam(w, w.sum.data()) : update_momentum(w, w.sum.data());
}

void Trainer::update_momentum(Weight& w, const float* gradient) {
    const double dampening = steps() == 1 ? 0 : dampening_;
    const formula::MomentumNumbers<float> numbers{static_cast<float>(learning_rate), static_cast<float>(momentum_),
                                                  static_cast<float>(1 - dampening),
                                                  static_cast<float>(w.decays ? weight_decay_ : 0)};
    float* const p = at(w.variable);
    float* const a = w.moment1 == kNone ? nullptr : at(w.moment1);
    float none = 0;
    with_flags(a != nullptr, a && nesterov_, [&]<bool kAccumulates, bool kNesterov>() {
        for (int64_t i = 0; i < w.count; ++i)
            formula::momentum_update<kAccumulates, kNesterov>(p[i], gradient[i], kAccumulates ? a[i] : none, numbers);
    });
}

void Trainer::update_adam(Weight& w, const float* gradient) {
    const auto t = static_cast<double>(steps());
    const double root = corrects_bias_ ? std::sqrt(1 - std::pow(beta2_, t)) : 1;
    const double size = corrects_bias_ ? learning_rate * root / (1 - std::pow(beta1_, t)) : learning_rate;
    const double decay = w.decays ? weight_decay_ : 0;
    const formula::AdamNumbers<float> numbers{static_cast<float>(size),
                                              static_cast<float>(beta1_),
                                              static_cast<float>(beta2_),
                                              static_cast<float>(1 - beta1_),
                                              static_cast<float>(1 - beta2_),
                                              static_cast<float>(scales_eps_ ? eps_ * root : eps_),
                                              static_cast<float>(is_decoupled_ ? 0 : decay),
                                              static_cast<float>(is_decoupled_ ? 1 - learning_rate * decay : 1)};
    float* const p = at(w.variable);
    float* const m = at(w.moment1);
    float* const v = at(w.moment2);
    float* const most = w.most == kNone ? nullptr : at(w.most);
    float none = 0;
    with_flags(most != nullptr, nesterov_, [&]<bool kMost, bool kNesterov>() {
        for (int64_t i = 0; i < w.count; ++i)
            formula::adam_update<kMost, kNesterov>(p[i], gradient[i], m[i], v[i], kMost ? most[i] : none, numbers);
    });
}

std::shared_ptr<Executor> Trainer::predictor(std::string& fault) {
    const Model& model = executor_->model();
    if (!predictor_) {
        const uint32_t file = find_value(model, "predict", Value::Home::constant);
        if (file == kNone || model.values[file].dtype != DType::u8) {
            fault = "the file holds no network that predicts";
            return nullptr;
        }
        predictor_ = Executor::make({model.values[file].data, model.values[file].bytes}, executor_->shared_threads(),
                                    std::make_shared<Workspace>(), fault);
        if (!predictor_) return nullptr;
    }
    const Model& other = predictor_->model();
    for (uint32_t v = 0; v < other.values.size(); ++v) {
        if (other.values[v].home != Value::Home::variable) continue;
        const uint32_t mine = find_value(model, other.values[v].name, Value::Home::variable);
        if (mine == kNone || executor_->bytes(mine) != predictor_->bytes(v)) {
            fault = "the network has a variable '" + other.values[v].name + "' that is not trained here";
            return nullptr;
        }
        std::memcpy(predictor_->state(v), executor_->address(mine), predictor_->bytes(v));
    }
    return predictor_;
}

bool Trainer::export_predictor(const std::string& path, std::string& fault) {
    const std::shared_ptr<Executor> network = predictor(fault);
    return network && network->save_fixed(path, fault);
}

}  // namespace lunaria::lite
