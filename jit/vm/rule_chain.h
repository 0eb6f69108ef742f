// Reverse rules that are chains of elementwise operators on dense operands of one shape: they run without registers.
#pragma once

#include <optional>
#include <vector>

#include "core/ir/graph.h"
#include "core/run/element_chain.h"

namespace lunaria::vm {

// A rule's graph as a chain. Values are marked by bits: bit p is parameter p.
struct RuleChain {
    struct Input {
        size_t parameter = 0;
        bool whole = true;  // it has the shape of the rule; otherwise it is one element, or a plain number
        DType dtype = DType::f32;
    };
    struct Result {
        enum class Kind : uint8_t { none, parameter, output };
        Kind kind = Kind::none;
        size_t index = 0;       // parameter or output
        uint32_t depends = 0;   // parameters from which it is computed
        uint32_t may_hold = 0;  // inputs whose memory it may reuse
    };
    DType dtype = DType::f32;
    Shape shape;
    int64_t count = 0;
    std::vector<Input> inputs;
    std::vector<double> numbers;  // constants: inputs after the others
    std::vector<Result> results;
    size_t wanted = 0;                          // number of results, up to the last one that exists
    uint32_t given_back = 0;                    // parameters that are results
    std::unique_ptr<const ChainKernel> kernel;  // null: the results are parameters
};

inline constexpr size_t kMostRuleInputs = 24, kMostRuleResults = 6;

// Null: the rule is not a chain, or the device has no kernel for it.
std::unique_ptr<const RuleChain> chain_of_rule(const ir::Graph& rule);

}  // namespace lunaria::vm
