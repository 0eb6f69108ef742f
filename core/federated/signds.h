// SignDS (Jiang, Zhou and Grossklags 2022): a client sends one sign and a few places, chosen so that those of its
// largest changes in the direction of the sign are likelier, with local differential privacy. How many of the `sent`
// places are among the top ones has the weight C(top, v) C(size - top, sent - v), times e^epsilon from a threshold on.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lunaria::federated {

struct SignDSPlan {
    int64_t size = 0;
    double k = 0.01;               // the share of places that are top ones: above 0, at most 1/4
    double epsilon = 100;          // above 0, at most 100
    double threshold_ratio = 0.6;  // the least expected share of top places among those sent: from 1/2 to 1
    int64_t most_sent = 0;         // how many places are sent, from 1 to 50; 0: by the ratio

    int64_t top = 0, sent = 0, threshold = 0;  // found
    std::vector<double> probabilities = {};    // of how many of the sent places are top ones
    double expected_share = 0;

    // Finds the rest. Throws an argument_error of `where` for values beyond their ranges.
    void find(std::string_view where);
};

struct SignDSUpdate {
    int sign = 1;
    std::vector<int64_t> places;
};

// draw(): 64 random bits. The places of a client's change, in ascending order.
template <class T>
SignDSUpdate signds(std::string_view where, const SignDSPlan& plan, std::span<const T> change,
                    const std::function<uint64_t()>& draw);
std::string written_signds(const SignDSPlan& plan, const SignDSUpdate& update);
// Throws a file_error where the payload is another plan's, or none.
SignDSUpdate read_signds(const SignDSPlan& plan, std::string_view payload);

}  // namespace lunaria::federated
