// An operator along rows in the form that generated code uses: formulas over the elements of a row, and reductions of
// them to one value per row. The operator's entry writes it (Op::reduction, Op::row_pass) with a builder that numbers
// the values; the builder gives them their meaning (jit/graph/loop_builder.cpp).
#pragma once

#include <initializer_list>
#include <string_view>

#include "core/operator/op.h"

namespace lunaria {

// One value per element or per row.
class RowValue {
  public:
    RowValue(RowPass& pass, uint16_t index) : pass_(&pass), index_(index) {}
    RowPass& pass() const { return *pass_; }
    uint16_t index() const { return index_; }

  private:
    RowPass* pass_;
    uint16_t index_;
};

class RowPass {
  public:
    explicit RowPass(const Call& of) : call(of) {}
    virtual ~RowPass() = default;

    const Call& call;

    virtual RowValue in(size_t i) = 0;  // operand i, broadcast against operand 0
    virtual RowValue number(double x) = 0;
    virtual double length() const = 0;  // of a row
    virtual bool as_host() const = 0;   // to the bits of the host's kernels; otherwise up to rounding
    // A formula (core/ops/formulas.h) by name. Wide operands are rounded to the operator's dtype where others are not
    // wide.
    virtual RowValue formula(std::string_view name, std::initializer_list<RowValue> args) = 0;
    // The value in the dtype of sums: float64, as in kernels, on the host.
    virtual RowValue sum(RowValue x) = 0;
    virtual RowValue squares(RowValue x) = 0;  // the sum of the squares, also where these leave the range of x
    virtual RowValue max(RowValue x) = 0;
    virtual RowValue min(RowValue x) = 0;
    RowValue mean(RowValue x) { return formula("div", {sum(x), number(length())}); }
};

inline RowValue operator+(RowValue a, RowValue b) { return a.pass().formula("add", {a, b}); }
inline RowValue operator-(RowValue a, RowValue b) { return a.pass().formula("sub", {a, b}); }
inline RowValue operator*(RowValue a, RowValue b) { return a.pass().formula("mul", {a, b}); }

// The axes in parameter `at`: one, or several where nil means all.
template <size_t at>
Shape one_axis(const Call& call) {
    return {call.axis(at, 0)};
}
template <size_t at>
Shape some_axes(const Call& call) {
    return call.axes(at, 0);
}

}  // namespace lunaria
