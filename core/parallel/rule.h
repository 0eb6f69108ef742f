// The rule of an operator: how one call can be divided among ranks.
//
// The axes of operands and results are named by *factors*: "mk,kn->mn" has three. A rule is made for one call, whose
// types and attributes it knows. Its user chooses an interval of each factor (all of it where the factor is not cut);
// the rule then tells which part of each operand that piece of the call needs, which part of each result it gives, and
// computes it with ordinary operators. The pieces of all ranks together give the bits of the whole call, except for
// sums, whose order changes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/operator/op.h"
#include "core/parallel/piece.h"

namespace lunaria::parallel {

enum class Kind : uint8_t {
    pass,    // in operands and results: each piece is computed alone
    reduce,  // in no result: pieces are partial results, to be merged
    make,    // in no operand: each piece makes its own part
    move,    // as `pass`, but a piece needs another part of an operand than its own: a halo, a flipped or shifted part
    spread,  // reduced first and used afterwards: a call that is cut here runs by Rule::expanded
    whole,   // cannot be cut
};
const char* name_of(Kind k);

struct Factor {
    std::string letter;  // for messages; `a`, `b` ...
    int64_t size = 0;
    Kind kind = Kind::whole;
    // For each result that does not have this factor: how its pieces are put together. A factor of kind `pass` may have
    // one, too: the rows of a batch in the gradient of a weight.
    Merge merge = Merge::none;
    // Cuts are at multiples of this number: the channels of a group.
    int64_t grain = 1;
    bool can_be_cut() const { return kind != Kind::whole && size > 1; }
};

// The factors of one axis, major to minor. Empty: an axis of size 1 that is broadcast, or one that no factor cuts. Of
// several factors only the first that is larger than 1 gives pieces without gaps.
using AxisFactors = std::vector<int>;

struct Operand {
    size_t argument = 0;
    int item = -1;  // of a list of tensors
    Shape shape;
    std::vector<AxisFactors> axes;
    // Incomplete sums pass: f(a + b) = f(a) + f(b) while the other operands stay as they are.
    bool is_linear = false;
};

struct Result {
    TensorType type;
    std::vector<AxisFactors> axes;
};

// One piece of a call. For each factor the chosen interval, and what follows from it: the parts of the operands (in the
// order of Rule::operands) that it needs and of the results that it gives.
struct Work {
    std::vector<Interval> cuts;
    std::vector<Region> operands, results;
};

class Rule {
  public:
    // Of a call with results of these types, whose axes have no factors yet.
    Rule(const Call& call, const Types& types);
    virtual ~Rule() = default;

    std::vector<Factor> factors;
    std::vector<Operand> operands;
    std::vector<Result> results;
    // Incomplete sums pass if all tensor operands are incomplete along the same mesh axis: add, concat, stack.
    bool is_jointly_linear = false;
    // Only the places of elements change, so that incomplete results of any kind pass.
    bool only_moves = false;
    // The operator is made of others (Op::expand) and has no rule of its own: run the expansion, each of its operators
    // has a rule. It has factors only where letters_of() was asked, for reports and searches.
    bool is_composite = false;

    const Op& op() const { return *op_; }
    std::span<const Value> args() const { return args_; }
    Call call() const { return {*op_, args_, dtype_}; }

    int find(std::string_view letter) const;  // a factor, or -1
    int count() const { return static_cast<int>(factors.size()); }
    bool occurs(int factor, const std::vector<AxisFactors>& axes) const;
    // How the pieces of a result along a factor are put together; none: they are its parts, or equal.
    Merge merge(int factor, size_t result) const;
    // The piece with these intervals, one for each factor.
    Work work(std::vector<Interval> cuts) const;
    // The intervals of the whole call.
    std::vector<Interval> whole() const;
    // Appends a factor, with the next letter, and gives its number.
    int add(Kind kind, int64_t size, Merge merge = Merge::none, int64_t grain = 1);
    // The operand that is this argument, or null: numbers and nil are none.
    Operand* operand(size_t argument);
    // Whether a cut of this factor gives all results in the pieces of piece_of().
    bool gives_pieces(int factor, int64_t parts) const;
    // The results of a piece (one, or a list of several), computed with `b`. `local`: the arguments of the call with
    // the parts work.operands in place of its tensors. Parts without elements are allowed. All pieces of a call that
    // draws random numbers must find the generator in the same state. Not for cuts of factors of kind `spread`.
    Value run(Builder& b, std::span<const Value> local, const Work& work) const;
    // The whole call made of other operators, to be applied to the global operands: amax, sub, exp, sum and div of a
    // softmax. Nil where no factor is of kind `spread`.
    Value expanded(Builder& b, std::span<const Value> global) const;

  protected:
    // Fills in the parts of operands and results. As given, they follow from the factors.
    virtual void place(Work& work) const;
    // The results of a piece that has elements.
    virtual Value compute(Builder& b, std::span<const Value> local, const Work& work) const;

  private:
    const Op* op_;
    std::vector<Value> args_;
    DType dtype_;
};

// The rule of a call: from Op::cut_text, or derived from what else the entry says. Operators without one have a rule
// whose factors are all whole. Arguments may be tensors, numbers or nodes of a graph; all sizes must be known.
std::unique_ptr<const Rule> rule_of(const Call& call);
std::unique_ptr<const Rule> rule_of(const Op& op, std::span<const Value> args);

// The same, and for composites the factors that go through their expansion (core/parallel/composite.h), which takes as
// long as it takes to expand the call.
std::unique_ptr<const Rule> letters_of(const Call& call);

// "ab,bc->ac b:sum", as reports print it.
std::string describe(const Rule& rule);

}  // namespace lunaria::parallel
