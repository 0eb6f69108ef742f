// Tensors as a client sends and receives them: encodings of updates, quantised models.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/federated/messages.h"

namespace lunaria::federated::client {

// What a rule makes of an iteration's data.
struct LocalUpdate {
    int64_t samples = 0;
    std::vector<messages::Feature> features, extra;
    std::vector<messages::Metric> metrics;
    std::string rule_state;      // kept for the rule, as it gave it
    bool is_difference = false;  // the features are changes of the weights, not weights
};

class SecureSteps;

// An update as the plan wants it. `base`: the model that the training began with. `residual`: what compression has left
// out so far, which it changes. `steps`: where the aggregation is secure. Throws where
// features are missing, have other shapes, or are not finite.
messages::UpdateModel encoded(const messages::Plan& plan, const messages::FeatureMap& base, LocalUpdate update,
                              int64_t iteration, std::string& residual, SecureSteps* steps);

// The map with quantised features as float32.
messages::FeatureMap plain(messages::FeatureMap map);

// How many numbers an update of the model has.
size_t size_of(const messages::FeatureMap& model);

// The elements of the aggregated features of floating dtypes, one after the other in the order of `order`, which `from`
// has all.
std::vector<double> flat(const messages::FeatureMap& order, const std::vector<messages::Feature>& from);

}  // namespace lunaria::federated::client
