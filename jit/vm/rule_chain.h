// Reverse rules that are chains of elementwise operators on dense operands of one shape: they run without registers.
#pragma once

#include <optional>
#include <vector>

#include "core/ir/graph.h"
#include "core/run/element_chain.h"

namespace lunaria::vm {

// A rule's graph in the terms of a chain. Values are marked by bits: bit p is parameter p.
struct RuleChain {
    struct Input {
        size_t parameter = 0;
        bool whole = true;  // of the shape of the rule; otherwise one element, or a plain number
        DType dtype = DType::f32;
    };
    struct Result {
        enum class Kind : uint8_t { none, parameter, output };
        Kind kind = Kind::none;
        size_t index = 0;       // parameter or output
        uint32_t depends = 0;   // parameters that it is computed from
        uint32_t may_hold = 0;  // inputs whose memory it may take
    };
    DType dtype = DType::f32;
    Shape shape;
    int64_t count = 0;
    std::vector<Input> inputs;
    std::vector<double> numbers;  // constants: inputs after the others
    std::vector<Result> results;
    size_t wanted = 0;                          // of the results, up to the last one that is none
    uint32_t given_back = 0;                    // parameters that are results
    std::unique_ptr<const ChainKernel> kernel;  // null: the results are parameters
};

inline constexpr size_t kMostRuleInputs = 24, kMostRuleResults = 6;

// Null: the rule is something else, or the device has no kernel for it.
std::unique_ptr<const RuleChain> chain_of_rule(const ir::Graph& rule);

}  // namespace lunaria::vm
