// The joining of branches of a record that differ only in the sizes of tensors, and in numbers that follow from these
// sizes, into one branch for any sizes. Rules of derivatives look at the sizes of their operands, so that each new size
// is recorded as a branch of its own. From three such branches, numbers that differ are found as formulas of the sizes
// by two of them and confirmed by the third. Then the operators of the branch are tried with types of quite different
// sizes: where a formula and an operator's own inference disagree, the branches stay as they are.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "jit/trace/trace.h"

namespace lunaria::trace {

class SizePattern {
  public:
    // A tensor whose sizes are the variables of the branch.
    struct Source {
        int32_t slot;
        Shape sizes;
        std::vector<int> variables;  // by axis; -1: it has exactly this size
    };
    // (factor * product + offset) / divisor; as a reciprocal scale / product.
    struct Term {
        enum class Form : uint8_t { integer, number, reciprocal };
        Form form = Form::integer;
        std::vector<int> variables;  // of the product
        int64_t factor = 1, offset = 0, divisor = 1;
        bool may_be_negative = false;  // other numbers count from the other end, or are invalid
        double scale = 0;
    };
    using Sizes = std::vector<int64_t>;  // by variable

    std::vector<Source> sources;
    std::vector<Term> terms;  // numbers of the branch
    size_t variables = 0;

    // Whether the tensors in these slots have sizes of the pattern.
    bool fits(std::span<const Value> slots) const { return sizes_in(slots).has_value(); }
    // Appends the values of the terms; the sizes must fit.
    void append_numbers(std::span<const Value> slots, vm::Values& results) const;
    // Nil: the term has no value for these sizes.
    static Value value(const Term& term, const Sizes& sizes);

  private:
    std::optional<Sizes> sizes_in(std::span<const Value> slots) const;
};

// Joins the latest three branches of the block if possible. True: they were joined.
bool join_sizes(Tree& tree, Block& block);

}  // namespace lunaria::trace
