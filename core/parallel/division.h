// The division of one call: for each axis of the mesh the factor of the operator's rule that is cut along it, chosen so
// that the operands move least, and the layouts of operands and results that follow.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/parallel/laid.h"
#include "core/parallel/rule.h"

namespace lunaria::parallel {

class Division {
  public:
    // Chooses. `operands`: the content of each operand of the rule. `kept`: an operand that has to stay as it is, since
    // the call writes into it; -1: none.
    Division(const Rule& rule, const Mesh& mesh, std::span<const Laid> operands, int kept = -1);

    const Mesh& mesh() const { return mesh_; }
    // Whether a factor is cut that the rule handles by its expansion only.
    bool is_spread() const;
    // Whether a factor is cut of which pieces need other parts of an operand than their own.
    bool is_shifted() const;
    const Distribution* operand(size_t i) const;
    const Distribution* result(size_t i) const;
    // The intervals of the factors at a position of the mesh.
    std::vector<Interval> cuts(int64_t position) const;

  private:
    static constexpr int kNone = -1, kPasses = -2;  // instead of a factor: nothing is cut; incomplete sums pass

    bool has_cut(Kind kind) const;
    void find_moves();
    void choose(int axis);
    std::vector<int> candidates(int axis) const;
    bool is_possible(int factor, int axis) const;
    bool fits_axes(int factor, int64_t parts, const std::vector<AxisFactors>& axes) const;
    bool passes(int axis) const;
    double cost(int candidate, int axis) const;
    double merge_cost(int factor, int axis) const;
    bool changes_kept(int candidate, int axis) const;
    int factor_of_axis(const std::vector<AxisFactors>& axes, int axis) const;
    int axis_of_factor(int factor, const std::vector<AxisFactors>& axes) const;
    int cut_at(size_t operand, int mesh_axis) const;
    bool is_partial(size_t operand, int mesh_axis) const;
    void order_axes();

    const Rule& rule_;
    const Mesh& mesh_;
    std::span<const Laid> given_;
    const int kept_;
    // The factors of the operands' axes. An axis of which a piece needs another part than its own has none in the rule;
    // here it has the factor on which that part depends.
    std::vector<std::vector<AxisFactors>> axes_;
    std::vector<int> chosen_;              // for each mesh axis
    std::vector<std::vector<int>> along_;  // for each factor the mesh axes, major to minor
};

}  // namespace lunaria::parallel
