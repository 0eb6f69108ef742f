// Rules of operators that are computed at the points of an index space: which element of each operand a point reads,
// and which indices the result has. "x[i + 2*p - 1], w[p] -> i, sum" is a rule. Sizes come from the operands. The
// operands are seen at all points as views: windows of them where an axis is read by several indices.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/operator/op.h"

namespace lunaria {

// The position along one axis of an operand: the sum of some indices, each with a factor above 0, and an offset.
struct IndexAccess {
    struct Term {
        std::string index;
        int64_t factor = 1;
    };
    std::vector<Term> terms;
    int64_t offset = 0;

    bool is_plain() const { return terms.size() == 1 && terms[0].factor == 1 && offset == 0; }
    std::string text() const;
};

struct IndexRule {
    std::vector<std::string> output;
    std::vector<std::vector<IndexAccess>> inputs;        // per operand and axis
    std::string reduce;                                  // sum, mean, amax, amin, prod; empty: nothing to reduce
    std::vector<std::pair<std::string, int64_t>> sizes;  // of indices, where they are given
    std::optional<double> outside;                       // read beyond the edges; nothing: that is an error

    // All indices, those of the output first.
    std::vector<std::string> indices() const;
    // Whether each axis of the operand has an index of its own; whether the operand is read at this index.
    bool is_plain(size_t input) const;
    bool reads(size_t input, const std::string& index) const;
    std::string text() const;
};

using IndexSizes = std::unordered_map<std::string, int64_t>;

// The rule of the derivative by an `input` whose windows overlap: one point for each of its elements and each point of
// the forward rule that reads the element. Element h of x[i + p] is read where i = h - p. The cotangent is the last
// input. Operands are to be reversed along the axes of `reversed`, so that indices count up: q = P - 1 - p. Nothing
// where the axis cannot be solved for one index.
struct GatherRule {
    IndexRule rule;
    std::vector<Shape> reversed;       // per input
    std::vector<std::string> shifted;  // replaced indices: operands that have them are read beyond their edges
};
std::optional<GatherRule> gather_rule(const IndexRule& rule, size_t input, const IndexSizes& sizes);

// The sizes of all indices for the operands at hand. Throws shape_error where they do not fit the rule.
IndexSizes index_sizes(const Call& c, const IndexRule& rule);

// An operand as the points see it: one axis for each index of the rule, of size 1 where the operand does not have the
// index.
class AtPoints {
  public:
    AtPoints(const ExpandCall& c, const IndexRule& rule, const IndexSizes& sizes, size_t input);
    const Expr& value() const { return value_; }
    // The cotangent of the operand, given the cotangent of value().
    Expr adjoint(Expr d) const;

  private:
    struct Step {
        Expr from, to;
        std::string_view op;
        std::vector<Value> args;
    };
    void apply(std::string_view op, std::vector<Arg> args);
    void slice(int axis, int64_t begin, int64_t stop, int64_t step);

    Builder& builder_;
    Expr value_;
    std::vector<Step> steps_;
    std::vector<std::pair<int64_t, int64_t>> padding_;  // of each axis; empty: none
    Shape shape_;                                       // of the operand
};

}  // namespace lunaria
