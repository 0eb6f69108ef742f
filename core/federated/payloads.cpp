#include "core/federated/payloads.h"

#include <cstring>

#include "core/federated/compression.h"
#include "core/federated/signds.h"
#include "core/io/secure_random.h"
#include "core/random/random.h"

namespace lunaria::federated {

namespace {

using messages::Encoding;
using messages::Plan;

constexpr std::string_view kPayload = "updateModel";

// The places are others in each iteration, and the same for all clients.
SparsePlan sparse_plan(const Plan& plan, int64_t iteration, int64_t size) {
    const auto words = philox(static_cast<uint64_t>(plan.seed), static_cast<uint64_t>(iteration), 0);
    SparsePlan sparse;
    sparse.size = size;
    sparse.rate = plan.sparse_rate;
    sparse.seed = uint64_t{words[0]} << 32 | words[1];
    return sparse;
}

SignDSPlan sign_plan(std::string_view where, const Plan& plan, int64_t size) {
    SignDSPlan sign;
    sign.size = size;
    sign.k = plan.cipher.sign_k;
    sign.epsilon = plan.cipher.sign_eps;
    sign.threshold_ratio = plan.cipher.sign_thr_ratio;
    sign.most_sent = plan.cipher.sign_dim_out;
    sign.find(where);
    return sign;
}

// What is left out of one payload is a part of the next.
std::string largest(std::string_view where, const Plan& plan, std::span<double> change, std::string& residual) {
    const auto size = static_cast<int64_t>(change.size());
    const size_t bytes = change.size() * sizeof(double);
    std::vector<double> left(change.size());
    if (residual.size() == bytes) std::memcpy(left.data(), residual.data(), bytes);
    for (size_t i = 0; i < change.size(); ++i) change[i] += left[i];
    const int64_t kept = kept_of(where, size, plan.sparse_rate);
    std::string payload = top_k(where, std::span<const double>(change), kept, 0);
    const std::vector<double> sent = from_top_k(size, kept, payload);
    for (size_t i = 0; i < change.size(); ++i) left[i] = change[i] - sent[i];
    residual.assign(reinterpret_cast<const char*>(left.data()), bytes);
    return payload;
}

}  // namespace

bool has_change(Encoding encoding) {
    return encoding == Encoding::sparse_quantised || encoding == Encoding::signds || encoding == Encoding::top_k;
}

std::string payload_of(std::string_view where, const Plan& plan, int64_t iteration, std::span<double> change,
                       std::string& residual) {
    const auto size = static_cast<int64_t>(change.size());
    const std::span<const double> given(change);
    switch (plan.upload) {
        case Encoding::sparse_quantised:
            return sparse_quantised(where, sparse_plan(plan, iteration, size), given);
        case Encoding::top_k:
            return largest(where, plan, change, residual);
        case Encoding::signds: {
            const SignDSPlan sign = sign_plan(where, plan, size);
            return written_signds(sign, signds(where, sign, given, [where] {
                                      uint64_t bits = 0;
                                      secure_random(where, &bits, sizeof bits);
                                      return bits;
                                  }));
        }
        default:
            throw state_error(where, str("the encoding ", name_of(plan.upload), " has no change as its payload"));
    }
}

std::vector<double> change_of(const Plan& plan, int64_t iteration, int64_t size, std::string_view payload) {
    switch (plan.upload) {
        case Encoding::sparse_quantised:
            return from_sparse_quantised(sparse_plan(plan, iteration, size), payload);
        case Encoding::top_k:
            return from_top_k(size, kept_of(kPayload, size, plan.sparse_rate), payload);
        case Encoding::signds: {
            const SignDSUpdate update = read_signds(sign_plan(kPayload, plan, size), payload);
            std::vector<double> change(static_cast<size_t>(size));
            for (const int64_t place : update.places)
                change[static_cast<size_t>(place)] = update.sign * plan.cipher.sign_global_lr;
            return change;
        }
        default:
            throw state_error(kPayload, str("the encoding ", name_of(plan.upload), " has no change as its payload"));
    }
}

}  // namespace lunaria::federated
