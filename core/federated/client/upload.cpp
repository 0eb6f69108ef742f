#include "core/federated/client/upload.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "core/federated/client/local_noise.h"
#include "core/federated/client/secure_steps.h"
#include "core/federated/compression.h"
#include "core/federated/payloads.h"
#include "core/io/secure_random.h"
#include "core/tensor/dtype.h"

namespace lunaria::federated::client {

namespace {

using messages::ElementType;
using messages::Encoding;
using messages::Feature;

constexpr std::string_view kUploadWhere = "federated.Client";

bool is_floating(ElementType type) {
    return type == ElementType::float32 || type == ElementType::float64 || type == ElementType::float16 ||
           type == ElementType::bfloat16;
}

template <class T, class Take>
void elements(const Feature& feature, Take take) {
    for (size_t i = 0; i + sizeof(T) <= feature.data.size(); i += sizeof(T)) {
        T value;
        std::memcpy(&value, feature.data.data() + i, sizeof value);
        take(static_cast<double>(value));
    }
}
// The floats of 16 bits by way of float.
template <class T, class Take>
void halves(const Feature& feature, Take take) {
    for (size_t i = 0; i + 2 <= feature.data.size(); i += 2) {
        T value;
        std::memcpy(&value.bits, feature.data.data() + i, 2);
        take(static_cast<double>(static_cast<float>(value)));
    }
}
template <class Take>
void floats_of(const Feature& feature, Take take) {
    switch (feature.type) {
        case ElementType::float32:
            return elements<float>(feature, take);
        case ElementType::float64:
            return elements<double>(feature, take);
        case ElementType::float16:
            return halves<Half>(feature, take);
        case ElementType::bfloat16:
            return halves<BFloat16>(feature, take);
        default:
            return;
    }
}

// Writes numbers into the elements of a feature.
template <class T>
void store(Feature& feature, const double* from) {
    for (size_t i = 0; i < feature.elements(); ++i) {
        const T value = static_cast<T>(static_cast<std::conditional_t<sizeof(T) == 2, float, double>>(from[i]));
        std::memcpy(feature.data.data() + i * sizeof value, &value, sizeof value);
    }
}
void put(Feature& feature, const double* from) {
    switch (feature.type) {
        case ElementType::float32:
            return store<float>(feature, from);
        case ElementType::float64:
            return store<double>(feature, from);
        case ElementType::float16:
            return store<Half>(feature, from);
        case ElementType::bfloat16:
            return store<BFloat16>(feature, from);
        default:
            return;
    }
}

const Feature* find(const std::vector<Feature>& features, const std::string& name) {
    for (const Feature& feature : features)
        if (feature.name == name) return &feature;
    return nullptr;
}

void check(const Feature& wanted, const Feature* given) {
    if (!given) throw argument_error(kUploadWhere, str("the update lacks the feature '", wanted.name, "'"));
    if (given->shape != wanted.shape)
        throw shape_error(kUploadWhere, str("the feature '", wanted.name, "' has another shape than the model's"));
    if (!is_floating(given->type))
        throw dtype_error(kUploadWhere,
                          str("the feature '", wanted.name, "' is of ", name_of(given->type), ", not of floats"));
    if (given->data.size() != given->elements() * messages::bytes_of(given->type))
        throw argument_error(kUploadWhere, str("the feature '", wanted.name, "' has ", given->data.size(), " bytes"));
    floats_of(*given, [&](double x) {
        if (!std::isfinite(x))
            throw value_error(kUploadWhere, str("the feature '", wanted.name, "' holds nan or infinity after training"))
                .hint("the server would refuse the update: a smaller learning rate, or gradients that are clipped");
    });
}

}  // namespace

messages::FeatureMap plain(messages::FeatureMap map) {
    constexpr float kSteps = 255.0f;
    for (Feature& feature : map.features) {
        if (feature.type != ElementType::quantised) continue;
        std::string data(feature.data.size() * sizeof(float), '\0');
        const float step = (feature.high - feature.low) / kSteps;
        for (size_t i = 0; i < feature.data.size(); ++i) {
            const float value = feature.low + static_cast<float>(static_cast<unsigned char>(feature.data[i])) * step;
            std::memcpy(data.data() + i * sizeof value, &value, sizeof value);
        }
        feature.data = std::move(data);
        feature.type = ElementType::float32;
        feature.low = feature.high = 0;
    }
    return map;
}

std::vector<double> flat(const messages::FeatureMap& order, const std::vector<Feature>& from) {
    std::vector<double> all;
    for (const Feature& feature : order.features)
        if (feature.is_aggregated)
            if (const Feature* found = find(from, feature.name)) floats_of(*found, [&](double x) { all.push_back(x); });
    return all;
}

namespace {

// Elements as bytes between the least and the largest of them.
void quantise(Feature& feature) {
    std::vector<double> values;
    floats_of(feature, [&](double x) { values.push_back(x); });
    const Quantised small = quantised(kUploadWhere, std::span<const double>(values), 8);
    feature.type = ElementType::quantised;
    feature.low = static_cast<float>(small.low);
    feature.high = static_cast<float>(small.high);
    feature.data.resize(values.size());
    constexpr int kMiddle = 128;
    for (size_t i = 0; i < values.size(); ++i) feature.data[i] = static_cast<char>(small.values[i] + kMiddle);
}

// The aggregated features of the model with other values.
std::vector<Feature> in_order(const messages::FeatureMap& base, const std::vector<double>& values) {
    std::vector<Feature> features;
    size_t at = 0;
    for (const Feature& wanted : base.features) {
        if (!wanted.is_aggregated) continue;
        Feature feature = wanted;
        put(feature, values.data() + at);
        at += feature.elements();
        features.push_back(std::move(feature));
    }
    return features;
}

}  // namespace

size_t size_of(const messages::FeatureMap& model) {
    size_t size = 0;
    for (const Feature& feature : model.features)
        if (feature.is_aggregated && is_floating(feature.type)) size += feature.elements();
    return size;
}

messages::UpdateModel encoded(const messages::Plan& plan, const messages::FeatureMap& base, LocalUpdate update,
                              int64_t iteration, std::string& residual, SecureSteps* steps) {
    messages::UpdateModel sent;
    sent.samples = update.samples;
    sent.base_version = base.version;
    sent.encoding = steps ? Encoding::masked : plan.upload;
    sent.extra = std::move(update.extra);
    sent.metrics = std::move(update.metrics);
    for (const Feature& wanted : base.features)
        if (wanted.is_aggregated) check(wanted, find(update.features, wanted.name));
    std::vector<double> values = flat(base, update.features);
    if (steps) {
        // What is added up beside the weights.
        for (const Feature& feature : std::exchange(sent.extra, {}))
            floats_of(feature, [&](double x) { values.push_back(x); });
        if (values.size() != steps->size())
            throw state_error(kUploadWhere, str("an update of ", values.size(),
                                                " numbers, with what the rule sends beside the "
                                                "weights, and the secure sum of the strategy ",
                                                plan.aggregation, " has ", steps->size()))
                .hint("what stands beside the weights is not sent unless the strategy's sums hide it, too");
    }
    const std::vector<double> before =
        update.is_difference ? std::vector<double>(values.size()) : flat(base, base.features);
    if (plan.cipher.type == "DP_ENCRYPT") {
        for (size_t i = 0; i < values.size(); ++i) values[i] -= before[i];
        make_private(values, plan.cipher.dp_norm_clip, plan.cipher.dp_eps, plan.cipher.dp_delta,
                     [](void* to, size_t bytes) { secure_random(kUploadWhere, to, bytes); });
        for (size_t i = 0; i < values.size(); ++i) values[i] += before[i];
    }
    if (steps) {
        sent.payload = steps->sealed(values, update.samples);
        return sent;
    }
    if (has_change(sent.encoding)) {
        for (size_t i = 0; i < values.size(); ++i) values[i] -= before[i];
        sent.payload = payload_of(kUploadWhere, plan, iteration, values, residual);
        return sent;
    }
    sent.features = in_order(base, values);
    if (sent.encoding == Encoding::quantised)
        for (Feature& feature : sent.features) quantise(feature);
    return sent;
}

}  // namespace lunaria::federated::client
