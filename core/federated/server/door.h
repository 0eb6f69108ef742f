// Checks of updates against the model of their job, before anything is done with them: an update that has the wrong
// tensors, or numbers that are not finite or too large to be weights, changes nothing.
#pragma once

#include <map>

#include "core/federated/messages.h"

namespace lunaria::federated {

// Names, shapes and types of the model's tensors.
class ModelShape {
  public:
    ModelShape() = default;
    // `largest`: the largest absolute value of a weight.
    ModelShape(const messages::FeatureMap& model, double largest);

    // What is wrong with an update, in words that name the tensor; empty where nothing is.
    std::string problem(const messages::UpdateModel& update, messages::Encoding expected) const;
    std::string problem(const messages::FeatureMap& weights) const;
    // Elements of the tensors that are summed.
    size_t aggregated() const { return aggregated_; }

  private:
    struct Row {
        std::vector<int64_t> shape;
        messages::ElementType type;
        bool is_aggregated;
    };
    std::string problem(const std::vector<messages::Feature>& features, bool is_quantised) const;
    std::string extra_problem(const std::vector<messages::Feature>& extra) const;
    std::string number_problem(const messages::Feature& feature) const;

    std::map<std::string, Row, std::less<>> rows_;
    size_t aggregated_ = 0, bytes_ = 0;
    double largest_ = 0;
};

// A text for (2, 3).
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace lunaria::federated
