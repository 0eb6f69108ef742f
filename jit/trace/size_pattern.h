// Ways of a record that differ in the sizes of tensors, and in what follows from these sizes alone, as one way for any
// sizes: rules of derivatives look at the sizes of what they are for, so that each new size is recorded as a way of its
// own. Of three such ways, numbers that differ are found as formulas of the sizes by two of them and confirmed by the
// third; then the operators of the way are tried with types of quite other sizes: where a formula and an operator's own
// inference disagree, the ways stay as they are.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "jit/trace/trace.h"

namespace lunaria::trace {

class SizePattern {
  public:
    // A tensor whose sizes are those of the way.
    struct Source {
        int32_t slot;
        Shape sizes;
        std::vector<int> variables;  // by axis; -1: it has that very size
    };
    // (factor * product + offset) / divisor; as a reciprocal scale / product.
    struct Term {
        enum class Form : uint8_t { integer, number, reciprocal };
        Form form = Form::integer;
        std::vector<int> variables;  // of the product
        int64_t factor = 1, offset = 0, divisor = 1;
        bool may_be_negative = false;  // other numbers are counted from the other end, or are none
        double scale = 0;
    };
    using Sizes = std::vector<int64_t>;  // by variable

    std::vector<Source> sources;
    std::vector<Term> terms;  // numbers of the way
    size_t variables = 0;

    // Whether the tensors in these slots have sizes of the pattern.
    bool fits(std::span<const Value> slots) const { return sizes_in(slots).has_value(); }
    // Appends the values of the terms; the sizes fit.
    void append_numbers(std::span<const Value> slots, vm::Values& results) const;
    // Nil: there is none for these sizes.
    static Value value(const Term& term, const Sizes& sizes);

  private:
    std::optional<Sizes> sizes_in(std::span<const Value> slots) const;
};

// The latest three ways on from the block become one if they can. True: they have.
bool join_sizes(Tree& tree, Block& block);

}  // namespace lunaria::trace
