// Updates that are not sent as features: the change of the weights as a payload of messages.h, and back.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/federated/messages.h"

namespace lunaria::federated {

// Whether an encoding has the change of the weights as its payload: compressed, or chosen by SignDS.
bool has_change(messages::Encoding encoding);

// The payload of a change in the encoding that the plan asks for. `residual`: what earlier payloads have left out (of
// top_k), which is sent with this one, and then what this one leaves out. Throws errors of `where`.
std::string payload_of(std::string_view where, const messages::Plan& plan, int64_t iteration, std::span<double> change,
                       std::string& residual);

// The change that a payload stands for: `size` numbers. Of SignDS it is sign_global_lr with the sign at the chosen
// places. Throws where the payload is none of this plan.
std::vector<double> change_of(const messages::Plan& plan, int64_t iteration, int64_t size, std::string_view payload);

}  // namespace lunaria::federated
