#include "core/parallel/memory_plan.h"

namespace lunaria::parallel {

double sharded_state_bytes(double parameters, int64_t ranks, int level, const StateBytes& bytes) {
    const auto share = [&](int from) { return level >= from ? 1 / static_cast<double>(ranks) : 1; };
    return parameters * (bytes.weight * share(3) + bytes.gradient * share(2) + bytes.optimizer * share(1));
}

// Of the 34 bytes for each of sequence * batch * hidden, 10 belong to normalisations, dropouts and the products' inputs
// that tensor parallelism leaves whole; 5 for each score of the attention: the scores, their softmax and a mask.
double activation_bytes(const TransformerLayer& layer, int64_t tensor, bool cuts_sequence, bool remakes_attention) {
    const auto cut = static_cast<double>(tensor);
    const double scores = remakes_attention ? 0 : 5 * layer.heads * layer.sequence / layer.hidden;
    return layer.sequence * layer.batch * layer.hidden * (10 / (cuts_sequence ? cut : 1) + 24 / cut + scores / cut);
}

}  // namespace lunaria::parallel
