#include "core/federated/server/door.h"

#include <cmath>
#include <cstring>
#include <set>

#include "core/tensor/dtype.h"

namespace lunaria::federated {

namespace {

using messages::ElementType;
using messages::Encoding;
using messages::Feature;

// The first element for which |x| <= largest does not hold, as it does not for NaN; `count` where there is none.
template <class T>
size_t first_beyond(const std::string& data, double largest) {
    const size_t count = data.size() / sizeof(T);
    for (size_t i = 0; i < count; ++i) {
        T x;
        std::memcpy(&x, data.data() + i * sizeof(T), sizeof(T));
        if (!(std::abs(static_cast<double>(x)) <= largest)) return i;
    }
    return count;
}

template <class T>
double element(const std::string& data, size_t i) {
    T x;
    std::memcpy(&x, data.data() + i * sizeof(T), sizeof(T));
    return static_cast<double>(x);
}

template <class T>
std::string beyond(const Feature& feature, double largest) {
    const size_t at = first_beyond<T>(feature.data, largest);
    if (at == feature.data.size() / sizeof(T)) return {};
    const double value = element<T>(feature.data, at);
    return std::isfinite(value) ? str("tensor ", feature.name, ": element ", at, " is ", value, ", more than ", largest)
                                : str("tensor ", feature.name, ": element ", at, " is ", value);
}

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape) {
    std::string text = "(";
    for (const int64_t size : shape) text += str(text.size() > 1 ? ", " : "", size);
    return text + ")";
}

ModelShape::ModelShape(const messages::FeatureMap& model, double largest) : largest_(largest) {
    for (const Feature& feature : model.features) {
        rows_.emplace(feature.name, Row{feature.shape, feature.type, feature.is_aggregated});
        if (feature.is_aggregated) aggregated_ += feature.elements();
        bytes_ += feature.data.size();
    }
}

std::string ModelShape::number_problem(const Feature& feature) const {
    switch (feature.type) {
        case ElementType::float32:
            return beyond<float>(feature, largest_);
        case ElementType::float64:
            return beyond<double>(feature, largest_);
        case ElementType::float16:
            return beyond<Half>(feature, largest_);
        case ElementType::bfloat16:
            return beyond<BFloat16>(feature, largest_);
        case ElementType::quantised:
            return std::abs(feature.low) <= largest_ && std::abs(feature.high) <= largest_
                       ? std::string()
                       : str("tensor ", feature.name, ": its range is ", feature.low, " to ", feature.high);
        default:
            return {};
    }
}

std::string ModelShape::problem(const std::vector<Feature>& features, bool is_quantised) const {
    std::set<std::string_view> seen;
    for (const Feature& feature : features) {
        const auto row = rows_.find(feature.name);
        if (row == rows_.end()) return str("the model has no tensor ", feature.name);
        if (!row->second.is_aggregated) return str("tensor ", feature.name, " is not aggregated: it must not be sent");
        if (!seen.insert(feature.name).second) return str("tensor ", feature.name, " is there twice");
        if (feature.shape != row->second.shape)
            return str("tensor ", feature.name, " has shape ", shape_text(feature.shape), ", the model's has ",
                       shape_text(row->second.shape));
        const ElementType expected = is_quantised ? ElementType::quantised : row->second.type;
        if (feature.type != expected)
            return str("tensor ", feature.name, " is ", name_of(feature.type), ", not ", name_of(expected));
        if (std::string problem = number_problem(feature); !problem.empty()) return problem;
    }
    for (const auto& [name, row] : rows_)
        if (row.is_aggregated && !seen.contains(name)) return str("tensor ", name, " is missing");
    return {};
}

std::string ModelShape::extra_problem(const std::vector<Feature>& extra) const {
    constexpr size_t kTimes = 4;  // the model's size, such as of control variates and momenta
    constexpr size_t kLeast = 1 << 16;
    size_t bytes = 0;
    std::set<std::string_view> seen;
    for (const Feature& feature : extra) {
        if (!seen.insert(feature.name).second) return str("extra tensor ", feature.name, " is there twice");
        bytes += feature.data.size();
        if (std::string problem = number_problem(feature); !problem.empty()) return "extra " + problem;
    }
    return bytes > kTimes * bytes_ + kLeast ? str("extra tensors have ", bytes, " bytes, the model has ", bytes_)
                                            : std::string();
}

std::string ModelShape::problem(const messages::UpdateModel& update, Encoding expected) const {
    if (update.encoding != expected)
        return str("the update's encoding is ", name_of(update.encoding), ", the plan asks for ", name_of(expected));
    if (update.samples < 1) return "an update of no samples";
    if (std::string problem = extra_problem(update.extra); !problem.empty()) return problem;
    const bool has_features = expected == Encoding::plain || expected == Encoding::quantised;
    if (has_features != update.payload.empty())
        return has_features ? "an update of tensors has no payload" : "the update has no payload";
    if (has_features) return problem(update.features, expected == Encoding::quantised);
    return update.features.empty() ? std::string() : "an update with a payload has no tensors";
}

std::string ModelShape::problem(const messages::FeatureMap& weights) const { return problem(weights.features, false); }

}  // namespace lunaria::federated
